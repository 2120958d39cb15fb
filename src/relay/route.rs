//! One request → an answer from the pin, a refusal, or the way over.

use std::sync::Arc;

use super::channel;
use super::refusal;
use super::rounds::Asking;
use super::wishes::Again;
use super::{Caller, Open, Relay};
use crate::endpoint::OwnMethod;
use crate::harness::{error_line, legacy, list_result, modern, result_line};
use crate::surface::gate::Shape;
use crate::surface::{Admitted, Kind};
use crate::wire::code::{INVALID_PARAMS, METHOD_NOT_FOUND};
use crate::wire::{Client, Era, Id, Message, Payload, Request, json, meta, method};

impl Relay {
    /// Answers a request of the harness.
    pub(super) async fn answer(self: &Arc<Self>, id: &Id, message: Message, caller: &Caller) -> Payload {
        let method = message.method().unwrap_or_default();
        self.report.debug(|| format!("→ {}", crate::report::visible(method, 80)));
        let outcome = match (method, caller.era()) {
            ("initialize", _) => self.initialize(caller).await,
            ("ping", Era::Legacy) => Ok("{}".to_owned().into()),
            ("server/discover", Era::Modern) => self.discover().await,
            ("logging/setLevel", Era::Legacy) => self.set_log_level(&message, caller).await,
            ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) => {
                return match self.subscribe(method, &message).await {
                    Ok(result) => result_line(id.as_str(), result),
                    Err(error) => error_line(id.as_str(), error),
                };
            }
            ("subscriptions/listen", Era::Modern) => return self.listen(id, &message).await,
            ("skills/get", _) => self.skill(&message, caller).await,
            ("resources/read", _) => match self.skill_file(&message, caller).await {
                Some(Ok(result)) => return result_line(id.as_str(), result),
                Some(Err(error)) => return error_line(id.as_str(), error),
                None => return self.forward(id, message, caller).await,
            },
            (
                "ping"
                | "logging/setLevel"
                | "resources/subscribe"
                | "resources/unsubscribe"
                | "server/discover"
                | "subscriptions/listen"
                | "tasks/list"
                | "tasks/get"
                | "tasks/result"
                | "tasks/update"
                | "tasks/cancel",
                _,
            ) => Err(not_found(method)),
            _ => match Kind::of_method(method) {
                Some(kind) => self.list(kind, &message, caller).await,
                None => return self.forward(id, message, caller).await,
            },
        };
        match outcome {
            Ok(result) => result_line(id.as_str(), result),
            Err(error) => error_line(id.as_str(), error.into()),
        }
    }

    async fn initialize(self: &Arc<Self>, caller: &Caller) -> Result<Payload, String> {
        let Caller::Legacy(session) = caller else { return Err(not_found("initialize")) };
        let open = self.told_of(session.declared.client()).await?;
        Ok(legacy::initialize_result(open.served(), session.version, self.channel.is_some()))
    }

    /// The opened endpoint; a legacy one, which is told once what its client can do, has heard of all of this.
    pub(super) async fn told_of(self: &Arc<Self>, client: &Client) -> Result<Arc<Open>, String> {
        let open = self.opened().await?;
        if open.session.era() == Era::Modern || open.session.declared().covers(client) {
            return Ok(open);
        }
        self.reopen(open.generation, Again::Replaced);
        self.opened().await
    }

    async fn discover(self: &Arc<Self>) -> Result<Payload, String> {
        let open = self.opened().await?;
        Ok(modern::discover_result(open.served()))
    }

    async fn list(
        self: &Arc<Self>,
        kind: Kind,
        message: &Message,
        caller: &Caller,
    ) -> Result<Payload, String> {
        let open = self.opened().await?;
        if message.payload().get("cursor").is_some_and(|cursor| cursor != "null") {
            // The list is one page, so no cursor of ours exists.
            return Err(refusal::error(INVALID_PARAMS, "unknown cursor; the list has one page", None));
        }
        list_result(open.served(), kind, caller.era()).ok_or_else(|| not_found(kind.method()))
    }

    async fn set_log_level(self: &Arc<Self>, message: &Message, caller: &Caller) -> Result<Payload, String> {
        let open = self.opened().await?;
        let Caller::Legacy(session) = caller else { return Err(not_found("logging/setLevel")) };
        if !open.offers.logging {
            return Err(not_found("logging/setLevel"));
        }
        let params = message.payload();
        let level = params.string("level").filter(|level| method::log_rank(level).is_some());
        let Some(level) = level else {
            return Err(refusal::error(
                INVALID_PARAMS,
                "level must be one of the eight syslog severities",
                None,
            ));
        };
        let level = json::quote(&level);
        session.set_log_level(level.clone());
        if open.session.era() == Era::Legacy {
            open.session
                .ask(OwnMethod::SetLogLevel, &format!("{{\"level\":{level}}}"))
                .await
                .map_err(|trouble| refusal::trouble(&trouble, "logging/setLevel"))?;
        }
        Ok("{}".to_owned().into())
    }

    /// Over to the endpoint and back, as often as the endpoint asks a legacy harness's user something.
    async fn forward(self: &Arc<Self>, id: &Id, message: Message, caller: &Caller) -> Payload {
        // An endpoint allows two waits of a role at a time, and this one comes before the channel's.
        let _waiting = match self.channel.as_ref().zip(channel::waits_for(&message)) {
            Some((channel, role)) => Some(channel.waits.enter(&role).await),
            None => None,
        };
        let log_level = caller.log_level(&message.meta());
        let mut request = Request::new(message, caller.declared(), log_level);
        let mut asking = Asking::default();
        loop {
            let admitted = match self.cross(&request, caller.era()).await {
                Ok(admitted) => admitted,
                Err(error) => return error_line(id.as_str(), error.into()),
            };
            let session = match (caller, admitted.shape()) {
                (Caller::Legacy(session), Shape::InputRequired) => session,
                _ => return outcome_line(id, request.method(), admitted, caller.era()),
            };
            match self.next_round(&mut asking, request, &admitted, session).await {
                Ok(next) => request = next,
                Err(error) => return error_line(id.as_str(), error.into()),
            }
        }
    }
}

fn outcome_line(id: &Id, method: &str, admitted: Admitted, to: Era) -> Payload {
    match admitted.shape() {
        Shape::Error => error_line(id.as_str(), admitted.into_bytes().into()),
        Shape::InputRequired => result_line(id.as_str(), admitted.into_bytes().into()),
        Shape::Complete(from) => {
            let changes = meta::translate_result(method, from, to, &admitted.payload());
            result_line(id.as_str(), changes.apply(&admitted.into_bytes()))
        }
    }
}

pub(super) fn not_found(method: &str) -> String {
    let message = format!("method {} is not offered", crate::report::quoted(method, 80));
    refusal::error(METHOD_NOT_FOUND, &message, None)
}

//! The only way over: clear → send → admit.

use std::sync::Arc;

use super::Relay;
use super::asks::Asks;
use super::calls::same_token;
use super::refusal;
use super::unsolicited::is_announcement;
use super::url_elicitation::as_question;
use super::wishes::Again;
use crate::endpoint::{Exchange, OwnMethod, Reply, Step, Trouble};
use crate::harness::notification_line;
use crate::surface::{Admitted, Cleared};
use crate::wire::meta::Edit;
use crate::wire::{Era, Message, Object, Payload, Question, Request, code, json, method};

/// What comes back for a request: an answer that may be shown, or the text of our own error.
pub type Crossed = Result<Admitted, String>;

/// What a `requestState` refers to.
enum Parked {
    /// There is none, or it is none of ours.
    Nothing,
    /// A call that goes on.
    Call(Box<Exchange>),
    /// One of ours that does not fit.
    Unknown,
}

/// A request is sent once, and once more where the endpoint certainly did not act on it.
const ATTEMPTS: u32 = 2;

impl Relay {
    /// Takes a request over to the endpoint and brings its answer back. `caller` is the harness's era.
    pub async fn cross(self: &Arc<Self>, request: &Request, caller: Era) -> Crossed {
        let mut attempt = 1;
        loop {
            let open = self.told_of(request.client.client()).await?;
            let cleared = open.gate.clear(request).map_err(|refused| refusal::refused(&refused))?;
            let trouble = match self.attempt(&open, cleared, caller).await {
                Ok(crossed) => {
                    // It waits as long as the surface is in doubt; then it passes, or nothing does.
                    let undoubted = self.undoubted().await;
                    return crossed.and_then(|admitted| match undoubted {
                        Ok(()) => Ok(admitted),
                        Err(trouble) => Err(refusal::trouble(&trouble, request.method())),
                    });
                }
                Err(trouble) => trouble,
            };
            self.report.debug(|| format!("{}: {trouble}", crate::report::visible(request.method(), 80)));
            let again = match &trouble {
                // The endpoint did not handle it: the session was gone.
                Trouble::SessionLost => {
                    self.reopen(open.generation, Again::Lost);
                    true
                }
                Trouble::ConnectionLost => method::repeatable(request.method()),
                _ => false,
            };
            if !again || attempt == ATTEMPTS {
                return Err(refusal::trouble(&trouble, request.method()));
            }
            attempt += 1;
        }
    }

    async fn attempt(
        self: &Arc<Self>,
        open: &super::Open,
        cleared: Cleared<'_>,
        caller: Era,
    ) -> Result<Crossed, Trouble> {
        let request = cleared.request();
        let session = &open.session;
        let mut exchange = match self.take_parked(open, request).await? {
            Parked::Call(exchange) => *exchange,
            Parked::Unknown => {
                let text =
                    "requestState is unknown, expired, used, or of another request; call again without it";
                return Ok(Err(refusal::error(code::INVALID_PARAMS, text, None)));
            }
            Parked::Nothing => {
                if caller == Era::Modern && session.era() == Era::Legacy && open.offers.logging {
                    self.ask_for_log_messages(open, request).await;
                }
                session.send(cleared).await?
            }
        };
        let mut asks = Asks::default();
        loop {
            let step = tokio::select! {
                step = exchange.next() => step,
                trouble = asks.undelivered() => return Err(trouble),
            };
            match step {
                Step::Note(note) if asks.taken_back(&note) => {}
                // A legacy harness is asked while the call goes on; a modern one is told to ask, and calls again.
                Step::Question(question) if caller == Era::Legacy && method::may_ask(request.method()) => {
                    asks.put(self, session, question);
                }
                Step::Note(note) => self.note(note, request, caller, session).await,
                Step::Question(question) => {
                    let asked = Question {
                        method: question.method().unwrap_or_default(),
                        params: question.payload().text(),
                    };
                    if !(method::may_ask(request.method()) && request.client.client().can_answer(&asked)) {
                        session.decline(&question).await?;
                        continue;
                    }
                    match session.parking.park(exchange, question, request) {
                        Ok(result) => {
                            return Ok(open
                                .gate
                                .admit_question(cleared, result)
                                .map_err(|why| refusal::withheld(&why, request.method())));
                        }
                        Err(back) => {
                            let (returned, question) = *back;
                            exchange = returned;
                            session.decline(&question).await?;
                        }
                    }
                }
                Step::Done(Reply::Result(message)) => {
                    let admitted = open.gate.admit(cleared, session.era(), message);
                    return Ok(admitted.map_err(|why| refusal::withheld(&why, request.method())));
                }
                Step::Done(Reply::Error(message, status)) => {
                    if speaks_against(session.era(), message.payload().get("code"), status.as_ref()) {
                        self.reopen(open.generation, Again::Replaced);
                    }
                    let asked = match (caller, session.era()) {
                        (Era::Modern, Era::Legacy) => {
                            as_question(&message.payload(), request.client.client())
                        }
                        _ => None,
                    };
                    return Ok(match asked {
                        Some(question) => question.and_then(|question| {
                            open.gate
                                .admit_question(cleared, question)
                                .map_err(|why| refusal::withheld(&why, request.method()))
                        }),
                        None => open
                            .gate
                            .admit_error(message)
                            .map_err(|why| refusal::withheld(&why, request.method())),
                    });
                }
                Step::Done(Reply::Trouble(trouble)) => {
                    if speaks_against(session.era(), None, Some(&trouble)) {
                        self.reopen(open.generation, Again::Replaced);
                    }
                    return Err(trouble);
                }
            }
        }
    }

    /// A retry that answers a legacy endpoint's question: the parked call, after its answer was sent.
    async fn take_parked(&self, open: &super::Open, request: &Request) -> Result<Parked, Trouble> {
        if open.session.era() != Era::Legacy {
            return Ok(Parked::Nothing);
        }
        let params = request.params();
        let Some(handle) = params.string("requestState") else { return Ok(Parked::Nothing) };
        let Some((exchange, question)) = open.session.parking.take(&handle, request) else {
            return Ok(Parked::Unknown);
        };
        let responses = params.object("inputResponses").ok().flatten().unwrap_or_default();
        let response =
            responses.get(crate::endpoint::park::QUESTION_KEY).filter(|text| Object::read(text).is_ok());
        match response {
            Some(response) => open.session.answer(&question, &format!("\"result\":{response}")).await?,
            None => open.session.decline(&question).await?,
        }
        Ok(Parked::Call(Box::new(exchange)))
    }

    /// A notification that came with a request.
    async fn note(&self, note: Message, request: &Request, caller: Era, session: &crate::endpoint::Session) {
        if is_announcement(&note) {
            return session.unsolicited(note).await;
        }
        if self.undoubted().await.is_err() {
            return;
        }
        match note.method() {
            Some("notifications/progress") => {
                let said = note.payload().get("progressToken").map(str::to_owned);
                let held =
                    request.progress_token.as_deref().zip(said).filter(|(held, said)| same_token(held, said));
                if let Some((held, _)) = held {
                    self.stdout.send(progress_line(held, note)).await;
                }
            }
            Some("notifications/message") => {
                if wants_log(request.log_level.as_deref(), &note, caller) {
                    self.stdout
                        .send(notification_line("notifications/message", note.into_payload().into()))
                        .await;
                }
            }
            _ => session.unsolicited(note).await,
        }
    }

    /// A modern harness names a level with each request; a legacy endpoint has one for all: the lowest asked for.
    async fn ask_for_log_messages(&self, open: &super::Open, request: &Request) {
        let Some(level) = request.log_level.as_deref() else { return };
        let Some(rank) = rank(level) else { return };
        let lowest = || open.log_rank.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if lowest().is_some_and(|held| held <= rank) {
            return;
        }
        match open.session.ask(OwnMethod::SetLogLevel, &format!("{{\"level\":{level}}}")).await {
            Ok(_) => {
                let mut held = lowest();
                *held = Some(held.map_or(rank, |held| held.min(rank)));
            }
            Err(trouble) => {
                self.report.verbose(|| format!("the endpoint's log level could not be set: {trouble}"));
            }
        }
    }
}

/// Whether an answer says that the endpoint is not of the era it was of when it was opened (MCP 2026-07-28 "Versioning").
/// Then it is opened again, and verified again.
fn speaks_against(era: Era, code: Option<&str>, trouble: Option<&Trouble>) -> bool {
    let status = match trouble {
        Some(Trouble::HttpStatus { status, .. }) => Some(*status),
        _ => None,
    };
    let refused = matches!(status, Some(400 | 404 | 405 | 406 | 415 | 422));
    match (era, code.and_then(|code| code.parse::<i64>().ok())) {
        // A modern endpoint says what is wrong in a JSON-RPC error of the current specification. "Invalid Request" is what
        // some legacy ones say to a request without a session.
        (Era::Modern, None) => refused,
        (Era::Modern, Some(code)) => {
            refused && (code == code::INVALID_REQUEST || (-32019..=-32000).contains(&code))
        }
        (Era::Legacy, None) => refused && status != Some(404),
        (Era::Legacy, Some(-32022..=-32020)) => true,
        (Era::Legacy, Some(code)) => status == Some(400) && code == code::INVALID_PARAMS,
    }
}

/// Progress for the harness, its token spelled as it was given.
pub(super) fn progress_line(token: &str, note: Message) -> Payload {
    let payload = note.payload();
    let mut edit = Edit::new(&payload);
    if payload.get("progressToken") != Some(token) {
        edit.set("progressToken", token.to_owned());
    }
    let changes = edit.into_splice();
    notification_line("notifications/progress", changes.apply(&note.into_payload()))
}

fn rank(level: &str) -> Option<usize> {
    method::log_rank(&json::decode_string(level)?)
}

/// A modern harness gets what it asked for with this request; a legacy one, before it set a level, what the server sends.
fn wants_log(asked: Option<&str>, note: &Message, caller: Era) -> bool {
    let level = note.payload().get("level").and_then(rank);
    match (asked.and_then(rank), level) {
        (Some(asked), Some(level)) => level >= asked,
        (None, _) => caller == Era::Legacy,
        (Some(_), None) => false,
    }
}

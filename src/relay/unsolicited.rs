//! What a legacy endpoint sends without a request: questions for the user, log messages, announcements.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Open, Relay};
use crate::endpoint::Unsolicited;
use crate::harness::notification_line;
use crate::wire::{Message, Object, Question};

impl Relay {
    /// Looks after it until the session ends.
    pub(super) async fn hear(self: Arc<Self>, open: Arc<Open>, mut unsolicited: mpsc::Receiver<Unsolicited>) {
        loop {
            let heard = tokio::select! {
                heard = unsolicited.recv() => heard,
                () = open.session.ended() => None,
            };
            match heard {
                Some(Unsolicited::Message(message)) => self.hear_message(&open, message).await,
                Some(Unsolicited::SessionLost) => self.reopen(open.generation),
                None => return,
            }
        }
    }

    async fn hear_message(self: &Arc<Self>, open: &Arc<Open>, message: Message) {
        match message.method() {
            _ if message.id().is_some() => self.hear_question(open, message),
            Some("notifications/message") if self.legacy().is_some() => self.pass_on(message).await,
            Some("notifications/progress") => {
                let token = message.payload().get("progressToken").map(str::to_owned);
                if token.is_some_and(|token| self.calls.expects_progress(&token)) {
                    self.pass_on(message).await;
                }
            }
            // Never passed on: the lists served are those read at start.
            Some("notifications/tools/list_changed" | "notifications/prompts/list_changed") => {
                self.report
                    .warning("the endpoint says that its tools or prompts changed; start again to see them");
            }
            _ => {}
        }
    }

    async fn pass_on(&self, message: Message) {
        let method = message.method().unwrap_or_default().to_owned();
        self.stdout.send(notification_line(&method, message.into_payload().into())).await;
    }

    /// A question that belongs to no call can be put to a legacy harness alone.
    fn hear_question(self: &Arc<Self>, open: &Arc<Open>, message: Message) {
        let asked =
            Question { method: message.method().unwrap_or_default(), params: message.payload().text() };
        let session = self.legacy().filter(|session| session.declared.client().can_answer(&asked));
        let (relay, endpoint) = (Arc::clone(self), Arc::clone(&open.session));
        self.spawn(async move {
            let Some(session) = session else { return endpoint.decline(&message).await };
            session.initialized().await;
            let method = message.method().unwrap_or_default();
            let params = message.payload().text().to_owned();
            let answer = relay.questions.ask(method, params.into()).await;
            let result = answer.as_ref().and_then(Message::result).filter(|text| Object::read(text).is_ok());
            match result {
                Some(result) => endpoint.answer(&message, &format!("\"result\":{result}")).await,
                None => endpoint.decline(&message).await,
            }
        });
    }
}

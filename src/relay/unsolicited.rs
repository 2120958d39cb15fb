//! What a legacy endpoint sends without a request: questions for the user, log messages, announcements.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::asks::Asks;
use super::crossing::progress_line;
use super::opening::Reopen;
use super::{Open, Relay};
use crate::endpoint::Unsolicited;
use crate::harness::notification_line;
use crate::wire::Message;

impl Relay {
    /// Looks after it until the session ends.
    pub(super) async fn hear(self: Arc<Self>, open: Arc<Open>, mut unsolicited: mpsc::Receiver<Unsolicited>) {
        let mut asks = Asks::default();
        loop {
            let heard = tokio::select! {
                heard = unsolicited.recv() => heard,
                () = open.session.ended() => None,
            };
            match heard {
                // A question that belongs to no call can be put to a legacy harness alone.
                Some(Unsolicited::Message(message)) if message.id().is_some() => {
                    asks.put(&self, &open.session, message).await;
                }
                Some(Unsolicited::Message(message)) if asks.taken_back(&message) => {}
                Some(Unsolicited::Message(message)) => self.hear_note(message).await,
                Some(Unsolicited::SessionLost) => self.reopen(open.generation, Reopen::Lost),
                None => return,
            }
        }
    }

    async fn hear_note(&self, message: Message) {
        match message.method() {
            Some("notifications/message" | "notifications/elicitation/complete")
                if self.legacy().is_some() =>
            {
                self.pass_on(message).await;
            }
            Some("notifications/progress") => {
                let said = message.payload().get("progressToken").map(str::to_owned);
                if let Some(held) = said.and_then(|said| self.calls.progress_token(&said)) {
                    self.stdout.send(progress_line(&held, message)).await;
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
}

//! What a legacy endpoint sends without a request: questions for the user, log messages, announcements.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::asks::Asks;
use super::crossing::progress_line;
use super::wishes::Again;
use super::{Open, Relay};
use crate::endpoint::Unsolicited;
use crate::harness::notification_line;
use crate::wire::Message;

/// Whether it says that a list of the surface changed (MCP 2025-11-25 "List Changed Notification").
pub(super) fn is_announcement(message: &Message) -> bool {
    message.method().is_some_and(|method| {
        method.starts_with("notifications/") && method.ends_with("/list_changed") && message.id().is_none()
    })
}

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
                    asks.put(&self, &open.session, message);
                }
                Some(Unsolicited::Message(message)) if asks.taken_back(&message) => {}
                // Never passed on: the lists served are those read at start.
                Some(Unsolicited::Message(message)) if is_announcement(&message) => {
                    self.announced(message.method().unwrap_or_default());
                }
                Some(Unsolicited::Message(message)) => {
                    if self.undoubted().await.is_ok() {
                        self.hear_note(message).await;
                    }
                }
                Some(Unsolicited::SessionLost) => self.reopen(open.generation, Again::Lost),
                Some(Unsolicited::Missed) => self.look_again(),
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
            _ => {}
        }
    }

    async fn pass_on(&self, message: Message) {
        let method = message.method().unwrap_or_default().to_owned();
        self.stdout.send(notification_line(&method, message.into_payload().into())).await;
    }
}

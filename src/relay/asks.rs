//! Questions of a legacy endpoint that are put to a legacy harness while the call goes on.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::task::{AbortHandle, JoinSet};

use super::Relay;
use crate::endpoint::Session;
use crate::harness::LegacySession;
use crate::wire::{Id, Message, Object, Question};

/// Questions that may be open at once; more are declined.
const MOST: usize = 256;

/// The open questions of one call, or of one session. Those still open when it is dropped are withdrawn.
#[derive(Debug, Default)]
pub(super) struct Asks {
    tasks: JoinSet<()>,
    open: HashMap<Id, AbortHandle>,
}

impl Asks {
    /// Puts a question to the harness, and its answer to the endpoint.
    pub(super) async fn put(&mut self, relay: &Arc<Relay>, endpoint: &Arc<Session>, question: Message) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|_, task| !task.is_finished());
        let asked =
            Question { method: question.method().unwrap_or_default(), params: question.payload().text() };
        let harness = relay.legacy().filter(|session| session.declared.client().can_answer(&asked));
        let (Some(harness), Some(id)) = (harness.filter(|_| self.open.len() < MOST), question.id().cloned())
        else {
            return endpoint.decline(&question).await;
        };
        let task = self.tasks.spawn(ask(Arc::clone(relay), Arc::clone(endpoint), harness, question));
        self.open.insert(id, task);
    }

    /// The endpoint takes a question back. Says whether the notification was about one.
    pub(super) fn taken_back(&mut self, note: &Message) -> bool {
        if note.method() != Some("notifications/cancelled") {
            return false;
        }
        let id = note.payload().get("requestId").map(Id::from_json);
        match id.and_then(|id| self.open.remove(&id)) {
            Some(task) => {
                task.abort();
                true
            }
            None => false,
        }
    }
}

async fn ask(relay: Arc<Relay>, endpoint: Arc<Session>, harness: Arc<LegacySession>, question: Message) {
    harness.initialized().await;
    let params = question.payload().text().to_owned();
    let answer = relay.questions.ask(question.method().unwrap_or_default(), params.into()).await;
    let result = answer.as_ref().and_then(Message::result).filter(|text| Object::read(text).is_ok());
    match result {
        Some(result) => endpoint.answer(&question, &format!("\"result\":{result}")).await,
        None => endpoint.decline(&question).await,
    }
}

//! Questions of a legacy endpoint that are put to a legacy harness while the call goes on.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::Relay;
use crate::endpoint::{Session, Trouble};
use crate::harness::LegacySession;
use crate::wire::{Id, Message, Question};

/// Questions of one call, or of one session, that may be open at once; more are declined.
const MOST: usize = 64;

/// The open questions of one call, or of one session. Those still open when it is dropped are withdrawn.
#[derive(Debug)]
pub(super) struct Asks {
    tasks: JoinSet<()>,
    open: HashMap<Id, AbortHandle>,
    undelivered: (mpsc::Sender<Trouble>, mpsc::Receiver<Trouble>),
}

impl Default for Asks {
    fn default() -> Self {
        Asks { tasks: JoinSet::new(), open: HashMap::new(), undelivered: mpsc::channel(1) }
    }
}

impl Asks {
    /// Puts a question to the harness, and its answer to the endpoint.
    pub(super) fn put(&mut self, relay: &Arc<Relay>, endpoint: &Arc<Session>, question: Message) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|_, task| !task.is_finished());
        let Some(id) = question.id().cloned() else { return };
        let asked =
            Question { method: question.method().unwrap_or_default(), params: question.payload().text() };
        let harness = relay.legacy().filter(|session| session.declared.client().can_answer(&asked));
        let harness = harness.filter(|_| self.tasks.len() < MOST && !self.open.contains_key(&id));
        let asking =
            ask(Arc::clone(relay), Arc::clone(endpoint), harness, question, self.undelivered.0.clone());
        let task = self.tasks.spawn(asking);
        self.open.insert(id, task);
    }

    /// Resolves when an answer did not reach the endpoint, which therefore waits for it in vain.
    pub(super) async fn undelivered(&mut self) -> Trouble {
        self.undelivered.1.recv().await.unwrap_or(Trouble::ConnectionLost)
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

/// `harness` is the one that can answer, if there is one.
async fn ask(
    relay: Arc<Relay>,
    endpoint: Arc<Session>,
    harness: Option<Arc<LegacySession>>,
    question: Message,
    undelivered: mpsc::Sender<Trouble>,
) {
    let answer = match harness {
        // A question passes as little as an answer while the surface is in doubt.
        Some(harness) if relay.undoubted().await.is_ok() => {
            harness.initialized().await;
            let params = question.payload().text().to_owned();
            relay.questions.ask(question.method().unwrap_or_default(), params.into()).await
        }
        _ => None,
    };
    let delivered = match answer.as_ref().and_then(Message::result) {
        Some(result) => endpoint.answer(&question, &format!("\"result\":{result}")).await,
        None => endpoint.decline(&question).await,
    };
    if let Err(trouble) = delivered {
        let _ = undelivered.try_send(trouble);
    }
}

//! Requests of ours to a legacy harness: sent on behalf of the endpoint, answered by the user.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use super::stdout::Stdout;
use crate::wire::{Id, Message, Payload, json};

/// The questions that wait for an answer.
#[derive(Debug)]
pub struct Questions {
    stdout: Stdout,
    next: AtomicU64,
    waiting: Mutex<HashMap<Id, oneshot::Sender<Message>>>,
}

impl Questions {
    /// Questions that go out through `stdout`.
    pub fn new(stdout: Stdout) -> Self {
        Questions { stdout, next: AtomicU64::new(1), waiting: Mutex::default() }
    }

    /// Puts a question and waits for the answer, however long a person takes.
    /// Dropping the wait withdraws the question.
    pub async fn ask(&self, method: &str, params: Payload) -> Option<Message> {
        let id = Id::from_json(&format!("\"mcp-hasp:{}\"", self.next.fetch_add(1, Ordering::Relaxed)));
        let (answer, wait) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), answer);
        let _withdrawal = Withdrawal { questions: self, id: &id };
        let mut line = Payload::from(format!(
            r#"{{"jsonrpc":"2.0","id":{},"method":{},"params":"#,
            id.as_str(),
            json::quote(method)
        ));
        line.append(params);
        line.push("}\n".to_owned());
        self.stdout.send(line).await;
        wait.await.ok()
    }

    /// Takes an answer of the harness. One that nobody waits for is dropped.
    pub fn answered(&self, message: Message) {
        let Some(id) = message.id() else { return };
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(waiting) = waiting {
            let _ = waiting.send(message);
        }
    }

    /// The answer came, and cannot be used. Says whether it was to a question.
    pub fn unusable(&self, id: &str) -> bool {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&Id::from_json(id)).is_some()
    }
}

struct Withdrawal<'q> {
    questions: &'q Questions,
    id: &'q Id,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let unanswered =
            self.questions.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(self.id);
        if unanswered.is_some() {
            let params = format!(r#"{{"requestId":{}}}"#, self.id.as_str());
            self.questions
                .stdout
                .try_send(super::notification_line("notifications/cancelled", params.into()));
        }
    }
}

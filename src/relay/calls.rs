//! What is in flight: ids, progress tokens, cancellation.

use std::collections::{HashMap, hash_map};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::wire::{Id, json};

/// The requests of the harness that have no answer yet.
#[derive(Debug, Default)]
pub struct Calls {
    open: Mutex<HashMap<Id, Entry>>,
    fewer: Notify,
}

#[derive(Debug)]
struct Entry {
    cancelled: CancellationToken,
    progress_token: Option<String>,
    /// A listen has no answer for the whole session, and is not waited for.
    endless: bool,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// Another request with this id is under way.
    SameId,
    /// Too many are under way.
    TooMany,
}

/// A request's place in the list. Leaving it is part of dropping.
#[derive(Debug)]
pub struct Call {
    calls: Arc<Calls>,
    id: Id,
    cancelled: CancellationToken,
}

impl Calls {
    /// Takes a request in.
    ///
    /// # Errors
    /// Its id is in use, or `most` are under way.
    pub fn enter(
        self: &Arc<Self>,
        id: &Id,
        progress_token: Option<String>,
        endless: bool,
        most: usize,
    ) -> Result<Call, NotTaken> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let full = open.len() >= most;
        let hash_map::Entry::Vacant(place) = open.entry(id.clone()) else { return Err(NotTaken::SameId) };
        if full {
            return Err(NotTaken::TooMany);
        }
        let cancelled = CancellationToken::new();
        place.insert(Entry { cancelled: cancelled.clone(), progress_token, endless });
        Ok(Call { calls: Arc::clone(self), id: id.clone(), cancelled })
    }

    /// The harness no longer wants an answer. Unknown and finished ids are ignored (MCP "Cancellation").
    pub fn cancel(&self, id: &Id) {
        if let Some(entry) = self.open.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            entry.cancelled.cancel();
        }
    }

    /// The token that somebody waits for progress under, as the harness spelled it.
    pub fn progress_token(&self, said: &str) -> Option<String> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.values().find_map(|entry| entry.progress_token.clone().filter(|held| same_token(held, said)))
    }

    /// Waits until no request is left that will have an answer.
    pub async fn settled(&self) {
        loop {
            let fewer = self.fewer.notified();
            tokio::pin!(fewer);
            fewer.as_mut().enable();
            if self.open.lock().unwrap_or_else(PoisonError::into_inner).values().all(|entry| entry.endless) {
                return;
            }
            fewer.await;
        }
    }
}

impl Call {
    /// Resolves when the harness cancels.
    pub async fn cancelled(&self) {
        self.cancelled.cancelled().await;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
        self.calls.fewer.notify_waiters();
    }
}

/// `1` and `"1"` are two tokens. Two spellings of one string are the same, and so are an integer and what is left
/// of it where an endpoint keeps its numbers as doubles.
pub fn same_token(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    match (json::decode_string(one), json::decode_string(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            matches!((one.parse::<f64>(), other.parse::<f64>()), (Ok(one), Ok(other)) if one == other)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        Id::from_json(text)
    }

    #[tokio::test]
    async fn an_id_is_free_again_when_its_call_is_over() {
        let calls = Arc::new(Calls::default());
        let call = calls.enter(&id("1"), None, false, 9).unwrap();
        assert_eq!(calls.enter(&id("1"), None, false, 9).unwrap_err(), NotTaken::SameId);
        let _other = calls.enter(&id("\"1\""), None, true, 9).unwrap();
        assert_eq!(calls.enter(&id("2"), None, false, 2).unwrap_err(), NotTaken::TooMany);
        calls.cancel(&id("1"));
        call.cancelled().await;
        drop(call);
        calls.settled().await;
        assert!(calls.enter(&id("1"), None, false, 9).is_ok());
    }

    #[test]
    fn tokens_are_compared_by_value_and_type() {
        let calls = Arc::new(Calls::default());
        let _call = calls.enter(&id("1"), Some("\"\\u0061\"".into()), false, 9).unwrap();
        assert_eq!(calls.progress_token("\"a\"").as_deref(), Some("\"\\u0061\""));
        assert!(!same_token("1", "\"1\"") && !same_token("1", "2"));
        assert!(same_token("123456789012345678901234567890", "1.2345678901234568e29"));
    }
}

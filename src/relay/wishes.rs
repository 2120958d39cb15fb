//! What the one task that keeps the endpoint open is asked to do next.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// Why the endpoint is opened or looked at again. Later ones cover the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Again {
    /// Its surface may have changed without a word.
    Unannounced,
    /// It says that its surface changed; nothing passes until that was looked into.
    Announced,
    /// It has to hear of other capabilities, or does not seem to be of the era it was of.
    Replaced,
    /// It no longer knows the session, or did not let itself be opened.
    Lost,
}

/// At most one wish: the strongest that was uttered since the last was taken.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    state: Mutex<State>,
    uttered: Notify,
}

#[derive(Debug, Default)]
struct State {
    strongest: Option<Again>,
    closed: bool,
}

impl Wishes {
    /// Asks for something.
    pub(super) fn utter(&self, wish: Again) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.strongest = state.strongest.max(Some(wish));
        self.uttered.notify_one();
    }

    /// Nobody takes wishes any more.
    pub(super) fn close(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
    }

    /// Whether nobody takes wishes any more.
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).closed
    }

    /// The next wish.
    pub(super) async fn next(&self) -> Again {
        loop {
            if let Some(wish) = self.state.lock().unwrap_or_else(PoisonError::into_inner).strongest.take() {
                return wish;
            }
            self.uttered.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_strongest_wish_covers_the_others() {
        let wishes = Wishes::default();
        for wish in [Again::Announced, Again::Lost, Again::Unannounced] {
            wishes.utter(wish);
        }
        assert_eq!(wishes.next().await, Again::Lost);
        wishes.utter(Again::Unannounced);
        assert_eq!(wishes.next().await, Again::Unannounced);
    }
}

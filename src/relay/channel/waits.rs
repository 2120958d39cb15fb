//! How many waits of one role are under way: an endpoint allows two, and the model's own come first.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

/// Waits of one role at a time.
const MOST: usize = 2;

/// The waits under way, by role.
#[derive(Debug, Default)]
pub(in crate::relay) struct Waits {
    state: watch::Sender<HashMap<String, Count>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    model: usize,
    ours: usize,
}

/// A wait that is under way. Leaving is part of dropping.
#[derive(Debug)]
pub(in crate::relay) struct Waiting {
    waits: Arc<Waits>,
    role: String,
    is_ours: bool,
}

impl Waits {
    /// The model begins a wait; ours gives way first.
    pub(in crate::relay) async fn enter(self: &Arc<Self>, role: &str) -> Waiting {
        self.change(role, |count| count.model += 1);
        let waiting = Waiting { waits: Arc::clone(self), role: role.to_owned(), is_ours: false };
        let mut state = self.state.subscribe();
        // The sender is ours, so waiting cannot fail.
        let _ = state
            .wait_for(|all| all.get(role).is_none_or(|count| count.ours == 0 || count.model < MOST))
            .await;
        waiting
    }

    /// One of ours begins, as soon as there is room.
    pub(in crate::relay) async fn enter_ours(self: &Arc<Self>, role: &str) -> Waiting {
        let mut state = self.state.subscribe();
        loop {
            let _ = state.wait_for(|all| all.get(role).is_none_or(Count::has_room)).await;
            let entered = self.state.send_if_modified(|all| {
                let count = all.entry(role.to_owned()).or_default();
                let room = count.has_room();
                if room {
                    count.ours += 1;
                }
                room
            });
            if entered {
                return Waiting { waits: Arc::clone(self), role: role.to_owned(), is_ours: true };
            }
        }
    }

    /// Resolves when ours has to give way.
    pub(in crate::relay) async fn crowded(&self, role: &str) {
        let mut state = self.state.subscribe();
        let _ =
            state.wait_for(|all| all.get(role).is_some_and(|count| count.model + count.ours > MOST)).await;
    }

    fn change(&self, role: &str, change: impl FnOnce(&mut Count)) {
        self.state.send_modify(|all| {
            let count = all.entry(role.to_owned()).or_default();
            change(count);
            if count.model + count.ours == 0 {
                all.remove(role);
            }
        });
    }
}

impl Count {
    fn has_room(&self) -> bool {
        self.model + self.ours < MOST && self.ours == 0
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let is_ours = self.is_ours;
        self.waits.change(&self.role, |count| match is_ours {
            true => count.ours = count.ours.saturating_sub(1),
            false => count.model = count.model.saturating_sub(1),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether something does not happen without more ado.
    async fn is_pending<T>(future: impl Future<Output = T>) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = tokio::task::yield_now() => true,
        }
    }

    #[tokio::test]
    async fn ours_gives_way_to_the_models_second() {
        let waits = Arc::<Waits>::default();
        let ours = waits.enter_ours("a").await;
        let first = waits.enter("a").await;
        assert!(is_pending(waits.crowded("a")).await);
        let second = {
            let waits = Arc::clone(&waits);
            tokio::spawn(async move { waits.enter("a").await })
        };
        waits.crowded("a").await;
        drop(ours);
        let second = second.await.unwrap();
        assert!(is_pending(waits.enter_ours("a")).await);
        let _other = waits.enter_ours("b").await;
        drop(first);
        let ours = waits.enter_ours("a").await;
        assert!(is_pending(waits.enter_ours("a")).await, "one of ours is enough");
        drop((ours, second));
        assert_eq!(waits.state.borrow().len(), 1);
    }
}

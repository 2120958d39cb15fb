//! At most one event a second for each role, in order; what waits is bounded.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;

/// Between two events, and between two readings.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Events that wait. The oldest gives way.
const MOST: usize = 8;

/// The events of one role on their way.
#[derive(Debug, Default)]
pub struct Pace {
    waiting: VecDeque<Event>,
    last: Option<Instant>,
}

impl Pace {
    /// Puts events behind those that wait.
    pub fn push(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            // Texts of the owner that wait are told together.
            if let (Some(Event::Owner { texts: held, .. }), Event::Owner { texts, .. }) =
                (self.waiting.back_mut(), &event)
                && held.len() + texts.len() <= 20
            {
                held.extend(texts.iter().cloned());
                continue;
            }
            if self.waiting.len() == MOST {
                self.waiting.pop_front();
            }
            self.waiting.push_back(event);
        }
    }

    /// When the next one may go, seen from now; `None`: none waits.
    pub fn due(&self, now: Instant) -> Option<Instant> {
        self.waiting.front()?;
        Some(self.last.map_or(now, |last| last + INTERVAL))
    }

    /// The next one, if its time has come.
    pub fn take(&mut self, now: Instant) -> Option<Event> {
        if self.due(now).is_none_or(|due| due > now) {
            return None;
        }
        self.last = Some(now);
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Identifier;

    fn turn(name: &str) -> Event {
        Event::Turn { tool: Identifier::read(name).unwrap() }
    }

    #[tokio::test(start_paused = true)]
    async fn one_a_second_in_order() {
        let mut pace = Pace::default();
        assert!(pace.take(Instant::now()).is_none() && pace.due(Instant::now()).is_none());
        pace.push([turn("a"), turn("b")]);
        assert_eq!(pace.take(Instant::now()), Some(turn("a")));
        assert_eq!(pace.take(Instant::now()), None);
        tokio::time::sleep_until(pace.due(Instant::now()).unwrap()).await;
        assert_eq!(pace.take(Instant::now()), Some(turn("b")));
        pace.push((0..100).map(|number| turn(&number.to_string())));
        assert_eq!(pace.waiting.len(), MOST);
        assert_eq!(pace.waiting.back(), Some(&turn("99")), "the newest state wins");
    }
}

//! Pauses between attempts to get a stream back.

use std::time::Duration;

use tokio::time::Instant;

/// First and longest pause.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Doubling pauses with jitter. An attempt that lived for a while starts them over.
#[derive(Debug)]
pub struct Backoff {
    pause: Duration,
    begun: Instant,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { pause: FIRST_PAUSE, begun: Instant::now() }
    }
}

impl Backoff {
    /// An attempt begins.
    pub fn attempt(&mut self) {
        self.begun = Instant::now();
    }

    /// The attempt has ended: how long to wait before the next.
    pub fn pause(&mut self) -> Duration {
        if self.begun.elapsed() >= LONGEST_PAUSE {
            self.pause = FIRST_PAUSE;
        }
        let pause = jitter(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        pause
    }
}

/// A pause of 75 to 125 %, so that many clients of a restarted server do not come back at once.
fn jitter(pause: Duration) -> Duration {
    let mut byte = [128_u8];
    // Without randomness the pause is the plain one.
    let _ = rustls::crypto::ring::default_provider().secure_random.fill(&mut byte);
    let [byte] = byte;
    pause.mul_f64(0.75 + f64::from(byte) / 512.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_a_minute_and_start_over_after_a_long_life() {
        let mut backoff = Backoff::default();
        let near = |pause: Duration, seconds: f64| (0.74..=1.26).contains(&(pause.as_secs_f64() / seconds));
        for seconds in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0] {
            backoff.attempt();
            assert!(near(backoff.pause(), seconds));
        }
        backoff.attempt();
        tokio::time::advance(LONGEST_PAUSE).await;
        assert!(near(backoff.pause(), 1.0));
    }
}

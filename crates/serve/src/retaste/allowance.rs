//! How much of the time may be spent on something.

use std::time::{Duration, Instant};

/// That may be spent at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// One part in so many of all the time after that.
const PART: u32 = 100;

/// What was spent, less what has been gained since.
pub(super) struct Allowance {
    spent: Duration,
    at: Instant,
}

impl Allowance {
    /// Nothing was spent until `now`.
    pub(super) fn new(now: Instant) -> Allowance {
        Allowance { spent: Duration::ZERO, at: now }
    }

    /// Whether something may be spent `now`.
    pub(super) fn is_left(&mut self, now: Instant) -> bool {
        self.spent = self.spent.saturating_sub(now.saturating_duration_since(self.at) / PART);
        self.at = now;
        self.spent < AT_ONCE
    }

    /// So much was spent.
    pub(super) fn spend(&mut self, time: Duration) {
        self.spent = self.spent.saturating_add(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_at_once_and_a_hundredth_after_that() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let mut allowance = Allowance::new(began);
        for _ in 0..4 {
            assert!(allowance.is_left(began));
            allowance.spend(AT_ONCE / 4);
        }
        assert!(!allowance.is_left(began) && allowance.is_left(after(1)));
        // What took long is paid for.
        allowance.spend(Duration::from_secs(10));
        assert!(!allowance.is_left(after(900)) && allowance.is_left(after(1010)));
    }
}

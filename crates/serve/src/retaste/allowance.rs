//! The share of the time that tasting again may take.

use std::time::{Duration, Instant};

/// Time that may be spent at once.
const AT_ONCE: Duration = Duration::from_secs(1);
/// One part in so many of all the time after that.
const PART: u32 = 100;

/// Time that was spent, less what has been gained since.
pub(crate) struct Allowance {
    spent: Duration,
    at: Instant,
}

impl Allowance {
    /// Nothing was spent until `now`.
    pub(crate) fn new(now: Instant) -> Allowance {
        Allowance { spent: Duration::ZERO, at: now }
    }

    /// True where something may be spent `now`.
    pub(crate) fn is_left(&mut self, now: Instant) -> bool {
        self.spent = self.spent.saturating_sub(now.saturating_duration_since(self.at) / PART);
        self.at = now;
        self.spent < AT_ONCE
    }

    /// Takes `time` as spent.
    pub(crate) fn spend(&mut self, time: Duration) {
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

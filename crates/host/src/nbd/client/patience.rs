//! The deadlines that a client gives a server.

use std::time::Duration;

/// The deadlines of a server's answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The time to connect, and again the time until requests are accepted.
    pub handshake: Duration,
    /// The time from a request to the last byte of its answer, for each MiB that either carries and
    /// one more.
    pub request: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { handshake: Duration::from_secs(30), request: Duration::from_secs(120) }
    }
}

impl Patience {
    /// The time for a request that carries `length` bytes in either direction.
    pub(super) fn carries(&self, length: usize) -> Duration {
        carries(self.request, length)
    }
}

/// The time for a request that carries `length` bytes: `base`, and as much again for every MiB.
pub fn carries(base: Duration, length: usize) -> Duration {
    base.saturating_mul(u32::try_from(length >> 20).unwrap_or(u32::MAX).saturating_add(1))
}

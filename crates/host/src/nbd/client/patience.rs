//! Time that a client gives a server.

use std::time::Duration;

/// How long a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// To be connected, and again until it takes requests.
    pub handshake: Duration,
    /// From a request to the last byte of its answer, and as long again for every MiB that either carries.
    pub request: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { handshake: Duration::from_secs(30), request: Duration::from_secs(120) }
    }
}

impl Patience {
    /// How long a request may take that carries `length` bytes, or whose answer does.
    pub(super) fn carries(&self, length: usize) -> Duration {
        carries(self.request, length)
    }
}

/// Time for a request that carries `length` bytes: `base`, and as long again for every MiB.
pub fn carries(base: Duration, length: usize) -> Duration {
    base.saturating_mul(u32::try_from(length >> 20).unwrap_or(u32::MAX).saturating_add(1))
}

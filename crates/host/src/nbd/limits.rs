//! How much of a server a client may keep, and for how long; how long a client waits for a server.

use std::time::Duration;

/// What a client may keep. What it may hold in memory is [`crate::nbd::room`]'s, and bounded for each in `transmission`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients of a socket that are served at one time; further ones wait until one has gone.
    pub connections: usize,
    /// From the greeting to the first request.
    pub handshake: Duration,
    /// From the first byte of a request to its last, and as long again for every MiB of its payload. Between requests a client may
    /// be silent for ever.
    pub request: Duration,
    /// While others wait for the room that a large payload or reply takes, until its first byte; all of it then has
    /// [`Limits::request`], and as much of that as has come of its bytes.
    pub crowded: Duration,
    /// Without a byte of a reply being taken.
    pub reply: Duration,
    /// From being told to end until clients that have not taken what they asked for are cut off.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 128,
            handshake: Duration::from_secs(30),
            request: Duration::from_secs(60),
            crowded: Duration::from_secs(10),
            reply: Duration::from_secs(60),
            drain: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// How long a payload of `length` bytes may take.
    pub(super) fn payload(&self, length: usize) -> Duration {
        carries(self.request, length)
    }
}

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

fn carries(base: Duration, length: usize) -> Duration {
    base.saturating_mul(u32::try_from(length >> 20).unwrap_or(u32::MAX).saturating_add(1))
}

//! How much of a server a client may keep, and for how long.

use std::time::Duration;
use trueline_host::nbd::client::patience::carries;

/// What a client may keep. What it may hold in memory is [`crate::front::nbd::memory_budget`]'s, and bounded for each in `transmission`.
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

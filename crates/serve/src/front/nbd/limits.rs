//! Limits on a client's use of the server, in time and connections.

use std::time::Duration;
use trueline_host::nbd::client::patience::carries;

/// The limits of a client. Its memory is bounded by [`crate::front::nbd::memory_budget`] and in
/// `transmit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most clients of a socket at a time; further ones wait until one has gone.
    pub connections: usize,
    /// The time from the greeting to the first request.
    pub handshake: Duration,
    /// The time from the first byte of a request to its last, and as much again for every MiB of
    /// its payload. Between requests a client may be silent for ever.
    pub request: Duration,
    /// The time to the first byte of a large payload or reply while other clients wait for its
    /// memory. All of it then has [`Limits::request`], in proportion to the bytes that have passed.
    pub crowded: Duration,
    /// The time without any progress of a reply.
    pub reply: Duration,
    /// The time from the stop of the server until clients that have not taken their replies are cut
    /// off.
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
    /// The time for a payload of `length` bytes.
    pub(super) fn payload(&self, length: usize) -> Duration {
        carries(self.request, length)
    }
}

//! `[memory]`: a fixed time a command and a rate.

use serde::Deserialize;

/// What memory takes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Nanoseconds a command takes, whatever its size.
    pub command_ns: f64,
    /// Bytes a second; 0: as fast as can be.
    #[serde(default)]
    pub rate_bytes: u64,
}

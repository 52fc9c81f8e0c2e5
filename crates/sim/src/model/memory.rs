//! `[memory]`: a fixed time a command and a rate.

use super::Impossible;
use serde::Deserialize;

/// The parameters of a memory disk.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// The time of a command in ns, whatever its size.
    pub command_ns: f64,
    /// The rate in bytes a second; 0: unlimited.
    #[serde(default)]
    pub rate_bytes: u64,
}

impl Parameters {
    /// Checks the values: times must be below a second, and transfers must end before virtual time
    /// does.
    pub(super) fn check(&self) -> Result<(), Impossible> {
        if !(0.0..=1e9).contains(&self.command_ns) {
            return Err((
                "command_ns",
                format!(
                    "command_ns = {}: from 0 to 1000000000, which is a second",
                    self.command_ns
                ),
            ));
        }
        if self.rate_bytes != 0 && self.rate_bytes < 100_000 {
            return Err((
                "rate_bytes",
                format!(
                    "rate_bytes = {}: 0, which is as fast as can be, or 100000 at least",
                    self.rate_bytes
                ),
            ));
        }
        Ok(())
    }
}

//! `[ssd]`: flash behind an indirection unit.

use super::{Impossible, Model};
use serde::Deserialize;

/// What an SSD is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Dies that work at one time.
    pub dies: u32,
}

impl Parameters {
    /// What cannot be.
    pub(super) fn check(&self, _model: &Model) -> Result<(), Impossible> {
        if self.dies > 0 { Ok(()) } else { Err(("dies", "dies = 0: an SSD has at least one".into())) }
    }
}

//! `[disk]`: a hard disk's mechanics, caches and firmware.

use super::{Impossible, Model};
use serde::Deserialize;

/// What a hard disk is made of.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Revolutions a minute.
    pub rpm: f64,
}

impl Parameters {
    /// What cannot be.
    pub(super) fn check(&self, _model: &Model) -> Result<(), Impossible> {
        if self.rpm > 0.0 { Ok(()) } else { Err(("rpm", format!("rpm = {}: platters that do not turn", self.rpm))) }
    }
}

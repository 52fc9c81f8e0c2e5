//! `gpt`.
use super::{Class, Taste};
use crate::probe::Probe;
/// The class.
pub struct Gpt;
impl Class for Gpt {
    fn name(&self) -> &'static str {
        "gpt"
    }
    fn taste(&self, _probe: &Probe<'_>) -> Taste {
        Taste::No
    }
}

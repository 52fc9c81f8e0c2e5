//! `bsd`.
use super::{Class, Taste};
use crate::probe::Probe;
/// The class.
pub struct Bsd;
impl Class for Bsd {
    fn name(&self) -> &'static str {
        "bsd"
    }
    fn taste(&self, _probe: &Probe<'_>) -> Taste {
        Taste::No
    }
}

//! `mbr`.
use super::{Class, Taste};
use crate::probe::Probe;
/// The class.
pub struct Mbr;
impl Class for Mbr {
    fn name(&self) -> &'static str {
        "mbr"
    }
    fn taste(&self, _probe: &Probe<'_>) -> Taste {
        Taste::No
    }
}

//! `bsd64`.
use super::{Class, Taste};
use crate::probe::Probe;
/// The class.
pub struct Bsd64;
impl Class for Bsd64 {
    fn name(&self) -> &'static str {
        "bsd64"
    }
    fn taste(&self, _probe: &Probe<'_>) -> Taste {
        Taste::No
    }
}

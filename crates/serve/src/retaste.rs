//! Tasting again what clients have written.

pub(crate) mod allowance;
pub mod trigger;

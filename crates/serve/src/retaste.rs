//! Tasting again what clients have written.

pub mod trigger;

//! Parts of charts in pages: strips, positions on a line, values in words.

pub(crate) mod axis;
pub(crate) mod lanes;
pub(crate) mod quantity;
pub(crate) mod spent;
pub(crate) mod track;

/// The hatching that marks unaligned values besides their colour.
pub(crate) const HATCH: &str = include_str!("charts/hatch.svg");

//! Metadata contexts of `NBD_CMD_BLOCK_STATUS`: their names, their numbers, and the boundaries that they tell of.

use trueline_geom::base::topology::Why;

/// What the contexts of `BLOCK_STATUS` are, in the order of their numbers, which begin with 1: their names, and the boundaries they tell of.
pub const CONTEXTS: [(&str, Option<Why>); 12] = [
    ("base:allocation", None),
    ("trueline:grain", Some(Why::Physical)),
    ("trueline:atomic", Some(Why::Atomic)),
    ("trueline:preferred", Some(Why::Preferred)),
    ("trueline:optimal", Some(Why::Optimal)),
    ("trueline:chunk", Some(Why::Chunk)),
    ("trueline:row", Some(Why::Row)),
    ("trueline:full-stripe", Some(Why::FullStripe)),
    ("trueline:erase", Some(Why::Erase)),
    ("trueline:discard", Some(Why::Discard)),
    ("trueline:cluster", Some(Why::Cluster)),
    ("trueline:logical", Some(Why::Logical)),
];

/// The context that tells which part of an export an overlay holds.
pub const OVERLAY_NAME: &str = "trueline:overlay";
/// The number of the context `trueline:overlay`.
pub const OVERLAY: u32 = 13;

/// The number of `base:allocation`.
pub const ALLOCATION: u32 = 1;
/// The number of `trueline:grain`.
pub const GRAIN: u32 = 2;

/// What boundaries the context of a number tells of; [`None`] for another one.
pub fn told_by(number: u32) -> Option<Why> {
    CONTEXTS.get(usize::try_from(number).ok()?.checked_sub(1)?)?.1
}

//! Metadata contexts of `NBD_CMD_BLOCK_STATUS`: their names, their ids, and the boundaries that
//! they report.

use trueline_geom::base::topology::Why;

/// The contexts by id, from 1: the name, and the boundary that the context reports.
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

/// The context that reports the part of an export held by an overlay.
pub const OVERLAY_NAME: &str = "trueline:overlay";
/// The id of the context `trueline:overlay`.
pub const OVERLAY: u32 = 13;

/// The id of `base:allocation`.
pub const ALLOCATION: u32 = 1;
/// The id of `trueline:grain`.
pub const GRAIN: u32 = 2;

/// The boundary that the context with this id reports; [`None`] if it reports none.
pub fn told_by(number: u32) -> Option<Why> {
    CONTEXTS.get(usize::try_from(number).ok()?.checked_sub(1)?)?.1
}

//! Fuzz targets for tasting, each parser, edits, texts, newfs, volume groups, md sets, free space,
//! encrypted volumes, models, images that are written, journals and the network block device server.
//! What must hold is said once, in the `tests/hostile/` of `crates/geom`, `crates/sim`,
//! `crates/unlock` and `crates/serve`, and in `crates/geom/tests/qcow2/hostile.rs`.

#![forbid(unsafe_code)]

pub mod input;
pub mod paper;

// Images to write to, in memory.
#[allow(dead_code, reason = "the tests of geom use the rest")]
#[path = "../../crates/geom/tests/qcow2/blank.rs"]
mod blank;
#[allow(dead_code, reason = "the tests of geom use the rest")]
#[path = "../../crates/geom/tests/qcow2/guest.rs"]
mod guest;
#[path = "../../crates/geom/tests/qcow2/hostile.rs"]
pub mod qcow2;
#[allow(dead_code, reason = "the tests of geom use the rest")]
#[path = "../../crates/geom/tests/qcow2/tape.rs"]
mod tape;

#[allow(dead_code, reason = "the tests of geom use the rest")]
#[path = "../../crates/geom/tests/hostile/btrfs.rs"]
mod btrfs;
#[path = "../../crates/geom/tests/hostile/cases.rs"]
pub mod cases;
#[path = "../../crates/geom/tests/hostile/conversions.rs"]
pub mod conversions;
#[path = "../../crates/geom/tests/hostile/edits.rs"]
pub mod edits;
#[path = "../../crates/geom/tests/hostile/free_ranges.rs"]
pub mod free_ranges;
#[path = "../../crates/geom/tests/hostile/hexdump.rs"]
pub mod hexdump;
#[path = "../../crates/geom/tests/hostile/invariants.rs"]
pub mod invariants;
#[path = "../../crates/geom/tests/hostile/members.rs"]
pub mod members;
#[path = "../../crates/sim/tests/hostile/models.rs"]
pub mod models;
#[path = "../../crates/serve/tests/hostile/nbd.rs"]
pub mod nbd;
#[path = "../../crates/geom/tests/hostile/newfs.rs"]
pub mod newfs;
#[path = "../../crates/geom/tests/hostile/physical.rs"]
pub mod physical;
#[path = "../../crates/geom/tests/hostile/repair.rs"]
pub mod repair;
#[path = "../../crates/geom/tests/hostile/sequence.rs"]
pub mod sequence;
#[path = "../../crates/geom/tests/hostile/texts.rs"]
pub mod texts;
#[path = "../../crates/unlock/tests/hostile/volume.rs"]
pub mod volume;
#[path = "../../crates/geom/tests/hostile/volumes.rs"]
pub mod volumes;

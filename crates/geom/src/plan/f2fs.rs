//! F2FS: sections of whole erase units. Its block is 4 KiB on every device.
//!
//! Data are appended to segments of 2 MiB, and segments are cleaned by sections; a section that is
//! whole erase units is erased as one.
//!
//! # Sources
//! mkfs.f2fs(8): `-s` (segments in a section), `-w` (sector); `f2fs_format.c`,
//! `f2fs_prepare_super_block`: segments begin on zones counted from the beginning of the disk, so
//! that a partition's start is made up for.

use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe, describe_unit,
    fact, unit_size, written,
};
use crate::base::topology::{Topology, Why, is_whole};

/// Segment in bytes: 512 blocks.
const SEGMENT: u64 = 2 << 20;
/// Largest section in segments: beyond this a small volume has too few to clean.
const MOST: u64 = 32;

/// Parameters of mkfs.f2fs, as `-s` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Number of segments in a section.
    pub section: u64,
}

impl Parameters {
    /// Sections of whole erase units, where one is known and the volume holds enough of them.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let erase = fact(topology, Why::Erase).map_or(0, |f| f.grain.size());
        let section = erase / SEGMENT;
        let fits = is_whole(erase, SEGMENT)
            && (1..=MOST).contains(&section)
            && erase <= topology.length / 128;
        Parameters { section: if fits { section } else { 1 } }
    }

    /// Arguments of mkfs.f2fs: `-s`, in segments.
    pub fn options(&self) -> Vec<String> {
        ["-s".to_owned(), self.section.to_string()].into()
    }
}

pub(super) struct F2fs;

impl Layer for F2fs {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        let price = Price::amplified(written(t, PAGE, PAGE)).tail(PAGE);
        let block = Choice::new(
            "f2fs",
            "block",
            Value::Bytes(PAGE),
            format!(
                "the page, fixed; appended to segments, so that neighbours are written together; {}",
                describe_unit(t)
            ),
        );
        plan.choose(block.costing(price));
        let why = match fact(t, Why::Erase) {
            Some(f) if is_whole(p.section * SEGMENT, f.grain.size()) => {
                format!(
                    "a section is whole units of the {}: cleaned and erased as one",
                    describe(f)
                )
            }
            Some(f) => format!(
                "mkfs.f2fs's own; the {} is no whole number of segments, or too large for the volume",
                describe(f)
            ),
            None => "mkfs.f2fs's own; no erase unit is known".to_owned(),
        };
        let section =
            Choice::new("f2fs", "section", Value::Count(p.section, "segments of 2 MiB"), why)
                .typed(format!("-s {}", p.section));
        plan.choose(
            section.costing(
                Price::amplified(1.0)
                    .losing(6 * p.section * SEGMENT, "one open section for each of six logs"),
            ),
        );
        if t.sector > PAGE || unit_size(t) > SEGMENT {
            plan.note(format!(
                "f2fs: blocks of {PAGE} bytes on sectors of {}, a unit of {}: not reached",
                t.sector,
                unit_size(t)
            ));
        }
        base.make("f2fs", "mkfs.f2fs", &p.options(), plan);
        base.mount(plan);
        base.with_files("/mnt", Files { system: "f2fs", grid: PAGE, whole_blocks: false })
    }
}

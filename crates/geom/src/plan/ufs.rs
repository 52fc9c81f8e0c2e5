//! UFS2: block and fragment.
//!
//! A fragment is the smallest write, of files' ends and directories, so it is never below the unit.
//!
//! # Sources
//! FreeBSD newfs(8): `-b` (4096 to 65536, 32768 by default), `-f` (a block is 1 to 8 fragments,
//! 4096 by default), `-U`.

use super::{
    Above, Choice, Files, Host, Layer, LayerBase, Note, PAGE, Plan, Price, Value, describe_unit,
    powers, unit_size, written,
};
use crate::base::topology::Topology;

/// Largest block of the format, in bytes.
const MOST: u64 = 65536;

/// Parameters of newfs, as `-b` and `-f` take them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Block size in bytes, 1 to 8 fragments.
    pub block: u64,
    /// Fragment size in bytes, a power of two.
    pub fragment: u64,
}

impl Parameters {
    /// Fragments of at least the unit; blocks of eight, from the default to the largest.
    pub fn for_topology(topology: &Topology) -> Parameters {
        let unit = unit_size(topology);
        let fragment = powers(PAGE, MOST).find(|&fragment| fragment >= unit).unwrap_or(MOST);
        Parameters { block: (8 * fragment).clamp(32768, MOST), fragment }
    }

    /// Arguments of newfs: `-b` and `-f`, in bytes, and `-U`.
    pub fn options(&self) -> Vec<String> {
        [
            "-U".to_owned(),
            "-b".to_owned(),
            self.block.to_string(),
            "-f".to_owned(),
            self.fragment.to_string(),
        ]
        .into()
    }
}

pub(super) struct Ufs;

impl Layer for Ufs {
    fn in_image(&self, _disk: &Topology) -> bool {
        true
    }

    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let p = Parameters::for_topology(t);
        let price = |size| Price::amplified(written(t, size, size));
        let block = Choice::new(
            "ufs",
            "block",
            Value::Bytes(p.block),
            "eight fragments, as far as 64 KiB allows",
        )
        .typed(format!("-b {}", p.block));
        plan.choose(block.costing(price(p.block)));
        let mut fragment = Choice::new(
            "ufs",
            "fragment",
            Value::Bytes(p.fragment),
            format!("the smallest write is never below the {}", describe_unit(t)),
        )
        .typed(format!("-f {}", p.fragment))
        .costing(price(p.fragment).tail(p.fragment));
        for other in
            powers(2048, unit_size(t).clamp(8192, MOST)).filter(|&other| other != p.fragment)
        {
            let note = if other < p.fragment {
                "less lost at the ends of files"
            } else {
                "fewer, larger writes"
            };
            fragment = fragment.or(Value::Bytes(other), price(other).tail(other), note);
        }
        plan.choose(fragment);
        if unit_size(t) > MOST {
            plan.note(format!(
                "ufs: a fragment is at most {MOST} bytes: the unit of {} is not reached",
                unit_size(t)
            ));
        }
        if base.host == Host::FreeBsd {
            base.make("ufs", "newfs", &p.options(), plan);
            base.mount(plan);
        } else {
            base.make_here("ufs", &p.options(), plan);
            plan.note(Note::UfsMadeHere(p.options().join(" ")));
        }
        base.with_files("/mnt", Files { system: "ufs", grid: p.fragment, whole_blocks: false })
    }
}

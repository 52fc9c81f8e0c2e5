//! LVM: the start of the extents, and their size.
//!
//! A logical volume begins on any extent, so a boundary beneath holds for it only if an extent is
//! whole units of it. A row of three chunks is no power of two; an extent may be any multiple of
//! 128 KiB.
//!
//! # Sources
//! pvcreate(8): `--dataalignment`, `--dataalignmentoffset`; 1 MiB by default. vgcreate(8): `-s`, a
//! power of two, or else a multiple of 128 KiB; 4 MiB by default.

use super::{Above, Choice, Layer, LayerBase, Plan, Price, Value, describe, describe_all, written};
use crate::base::topology::{Grain, Topology, is_whole, lcm};

/// Default start of the extents of pvcreate, in bytes.
const START: u64 = 1 << 20;
/// Default extent of vgcreate, in bytes.
const EXTENT: u64 = 4 << 20;
/// Unit in bytes that an extent is a multiple of, unless it is a power of two.
const STEP: u64 = 128 << 10;
/// Largest extent in bytes: beyond this a volume can hardly be sized.
const MOST: u64 = 1 << 30;

pub(super) struct Lvm;

/// Adds a group over the whole of `base`; returns the topology from its first extent on, and the
/// extent in bytes.
pub(super) fn group(base: &LayerBase, plan: &mut Plan) -> (Topology, u64) {
    let t = &base.topology;
    let grain = super::partition::grain(t).0;
    let start = grain.and_then(|g| g.next(START)).filter(|&s| s < t.length).unwrap_or(START);
    let device = base.arguments();
    plan.run(format!("pvcreate --dataalignment {}b{} {device}", align(start), shift(start)));
    plan.choose(start_choice(t, start));
    let below = t.shift(start, t.length.saturating_sub(start));
    let extent = extent(&below);
    plan.choose(extent_choice(&below, extent));
    plan.run(format!("vgcreate -s {}k vg {device}", extent / 1024));
    (below, extent)
}

impl Layer for Lvm {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let (below, extent) = group(base, plan);
        plan.run("lvcreate -l 100%FREE -n data vg");
        LayerBase::device(volume(&below, extent, plan), "/dev/vg/data")
    }
}

/// The value in bytes of `--dataalignment` for `start`: itself where it is whole sectors of 4 KiB,
/// else [`START`].
fn align(start: u64) -> u64 {
    if is_whole(start, 4096) { start } else { START }
}

/// The option for the rest of `start` past that alignment; empty if there is none.
fn shift(start: u64) -> String {
    if is_whole(start, 4096) {
        String::new()
    } else {
        format!(" --dataalignmentoffset {}b", start.saturating_sub(START))
    }
}

fn start_choice(t: &Topology, start: u64) -> Choice {
    let why = if start == START {
        "pvcreate's own, already on"
    } else {
        "the first place behind the metadata on"
    };
    let mut choice = Choice::new(
        "lvm",
        "data alignment",
        Value::Bytes(start),
        format!("{why} the {}", describe_all(t)),
    )
    .typed(format!("--dataalignment {}b{}", align(start), shift(start)))
    .costing(Price::amplified(1.0).losing(start, "label and metadata"));
    if start != START {
        let off = t.shift(START, 1);
        let price = Price::amplified(written(&off, 4096, 4096)).losing(START, "label and metadata");
        choice = choice.or(
            Value::Bytes(START),
            price,
            format!("pvcreate's own{}", super::partition::missing(t, START)),
        );
    }
    choice
}

/// The smallest extent in bytes, from the default on, that is whole units of every boundary below.
fn extent(below: &Topology) -> u64 {
    let all = below.counting().try_fold(1, |all, f| lcm(all, f.grain.size()));
    let step = all.and_then(|all| if all.is_power_of_two() { Some(all) } else { lcm(all, STEP) });
    let extent = step.and_then(|step| Grain::new(step, 0)?.next(EXTENT));
    extent.filter(|&extent| extent <= MOST).unwrap_or(EXTENT)
}

fn extent_choice(below: &Topology, extent: u64) -> Choice {
    let why = if extent == EXTENT { "vgcreate's own, whole units of" } else { "whole units of" };
    let mut choice = Choice::new(
        "lvm",
        "extent",
        Value::Bytes(extent),
        format!("{why} the {}: every volume begins on them", describe_all(below)),
    )
    .typed(format!("-s {}k", extent / 1024))
    .costing(Price::amplified(1.0).losing(extent / 2, "the last extent of an average volume"));
    if extent != EXTENT {
        let price =
            Price::amplified(1.0).losing(EXTENT / 2, "the last extent of an average volume");
        choice = choice.or(
            Value::Bytes(EXTENT),
            price,
            "vgcreate's own: all volumes but the first may begin off the row",
        );
    }
    choice
}

/// The topology of a volume on any extent; boundaries that an extent does not keep become notes.
fn volume(below: &Topology, extent: u64, plan: &mut Plan) -> Topology {
    let (kept, lost): (Vec<_>, Vec<_>) =
        below.facts.iter().partition(|f| is_whole(extent, f.grain.size()) || !f.why.costs());
    for fact in lost {
        plan.note(format!(
            "lvm: extents of {extent} bytes are not whole units of the {}: only the first volume begins on it",
            describe(&fact)
        ));
    }
    Topology { facts: kept, ..below.clone() }
}

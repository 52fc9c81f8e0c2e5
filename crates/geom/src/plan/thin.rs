//! LVM thin pools: the chunk that is allocated, copied after a snapshot, and discarded as one.
//!
//! A thin volume's chunks lie anywhere in the pool, so a boundary beneath holds above only if a
//! chunk is whole units of it.
//!
//! # Sources
//! lvmthin(7): `--chunksize` (64 KiB to 1 GiB, a multiple of 64 KiB); lvcreate(8): `--type
//! thin-pool`, `--thinpool`, `-V`.

use super::{Above, Choice, Layer, LayerBase, PAGE, Plan, Price, Value, describe, describe_all};
use crate::base::topology::{Grain, Topology, is_whole, lcm, round_down};

/// Least chunk in bytes, of which every other is a multiple.
const STEP: u64 = 64 << 10;
/// Largest chunk, in bytes.
const MOST: u64 = 1 << 30;

pub(super) struct Thin;

impl Layer for Thin {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let (below, extent) = super::lvm::group(base, plan);
        let all = below.counting().try_fold(STEP, |all, f| lcm(all, f.grain.size()));
        let chunk = all
            .and_then(|all| Grain::new(all, 0)?.next(STEP))
            .filter(|&chunk| chunk <= MOST)
            .unwrap_or(STEP);
        let copies = |chunk: u64| {
            let pages = f64::from(u32::try_from(chunk / PAGE).unwrap_or(u32::MAX));
            Price::amplified(pages).losing(chunk / 2, "the last chunk of what is written together")
        };
        let why = format!(
            "whole units of the {}; the first 4096-byte write to a chunk after a snapshot copies all of it",
            describe_all(&below)
        );
        let mut choice = Choice::new("lvm-thin", "chunk", Value::Bytes(chunk), why)
            .typed(format!("--chunksize {}k", chunk / 1024))
            .costing(copies(chunk));
        for other in [STEP, 256 << 10, 1 << 20].into_iter().filter(|&other| other != chunk) {
            let off = below.counting().find(|f| !is_whole(other, f.grain.size()));
            let note = match off {
                Some(f) => format!("not whole units of the {}", describe(f)),
                None if other < chunk => "less to copy after a snapshot".to_owned(),
                None => "without snapshots: fewer chunks to map".to_owned(),
            };
            choice = choice.or(Value::Bytes(other), copies(other), note);
        }
        plan.choose(choice);
        plan.run(format!(
            "lvcreate --type thin-pool -l 95%FREE --chunksize {}k -n pool vg",
            chunk / 1024
        ));
        let length = round_down(below.length / 20 * 19, extent.max(chunk));
        plan.run(format!("lvcreate -V {length}b --thinpool pool -n data vg"));
        let (kept, lost): (Vec<_>, Vec<_>) =
            below.facts.iter().partition(|f| is_whole(chunk, f.grain.size()) || !f.why.costs());
        for fact in lost {
            plan.note(format!(
                "lvm-thin: chunks of {chunk} bytes are not whole units of the {}: \
                they lie anywhere on it",
                describe(&fact)
            ));
        }
        LayerBase::device(Topology { facts: kept, length, ..below }, "/dev/vg/data")
    }
}

//! bcache: where the data of the backing device begin, the block, the cache's bucket.
//!
//! A backing device's data begin 8 KiB behind its start by default, which is on no unit above that.
//!
//! # Sources
//! make-bcache(8): `-w` (block), `-b` (bucket), `-o` (data offset in sectors, 16 by default, not
//! less); Linux `Documentation/admin-guide/bcache.rst`: the bucket should be the erase unit;
//! `--data-offset` for RAID.

use super::{
    Above, Choice, Layer, LayerBase, PAGE, Plan, Price, Value, describe_all, fact, unit_size, up,
    written,
};
use crate::base::topology::{Topology, Trust, Why};

/// Where data begin by default.
const START: u64 = 8192;
/// A bucket by default.
const BUCKET: u64 = 512 << 10;

pub(super) struct Bcache;

impl Layer for Bcache {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let start = super::partition::grain(t)
            .0
            .and_then(|g| g.next(START))
            .filter(|&s| s < t.length)
            .unwrap_or(START);
        let why = format!(
            "the data of the backing device begin behind the superblock on the {}",
            describe_all(t)
        );
        let mut choice = Choice::new("bcache", "data offset", Value::Bytes(start), why)
            .typed(format!("--data-offset {}", start / 512));
        choice = choice.costing(Price::amplified(1.0).losing(start, "superblock"));
        if start != START {
            let off = t.shift(START, 1);
            let note = format!("make-bcache's own{}", super::partition::missing(t, START));
            choice = choice.or(
                Value::Bytes(START),
                Price::amplified(written(&off, PAGE, PAGE)).losing(START, "superblock"),
                note,
            );
        }
        plan.choose(choice);
        let block = t.sector.max(PAGE);
        let why = "no write to the cache or the disk is below it";
        plan.choose(
            Choice::new("bcache", "block", Value::Bytes(block), why)
                .typed(format!("--block {block}")),
        );
        let why = "the erase unit of the cache's drive, where its maker says it; a bucket is \
            thrown away as one";
        plan.choose(
            Choice::new("bcache", "bucket", Value::Bytes(BUCKET), why)
                .typed(format!("--bucket {BUCKET}")),
        );
        if unit_size(t) > PAGE && fact(t, Why::Physical).is_some_and(|f| f.trust >= Trust::Claimed)
        {
            plan.note(
                "bcache: in writeback mode sorted writes go to the disk; in writethrough every small one still costs what it costs below",
            );
        }
        plan.run(
            "CACHE=/dev/disk/by-id/...  # the cache, a partition on the grain of its own drive",
        );
        let (device, sectors) = (base.arguments(), start / 512);
        plan.run(format!(
            "make-bcache --block {block} --bucket {BUCKET} --data-offset {sectors} -B \
            {device} -C $CACHE"
        ));
        let offered: Topology = t.shift(start, t.length.saturating_sub(up(start, t.sector)));
        LayerBase::device(offered, "/dev/bcache0")
    }
}

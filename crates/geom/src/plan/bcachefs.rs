//! bcachefs: block, and buckets of whole erase units.
//!
//! # Sources
//! bcachefs(8), `format`: `--block_size` (a sector to 64 KiB, at most the page on kernels before
//! 6.15), `--bucket`, `--btree_node_size` (256 KiB by default).

use super::{
    Above, Choice, Files, Layer, LayerBase, PAGE, Plan, Price, Value, describe, describe_unit,
    fact, unit_size, written,
};
use crate::base::topology::Why;

/// Usual bucket of a large device, in bytes.
const BUCKET: u64 = 512 << 10;
const NODE: u64 = 256 << 10;
/// Largest bucket in bytes that is made of an erase unit.
const MOST: u64 = 16 << 20;

pub(super) struct Bcachefs;

impl Layer for Bcachefs {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let block = t.sector.clamp(PAGE, 65536);
        let price = |size| Price::amplified(written(t, size, size)).tail(size);
        let why = format!(
            "the page: the smallest write; larger ones are compressed and checksummed as one; {}",
            describe_unit(t)
        );
        let mut choice = Choice::new("bcachefs", "block", Value::Bytes(block), why)
            .typed(format!("--block_size={block}"))
            .costing(price(block));
        let unit = unit_size(t).min(65536);
        if unit > block && unit.is_power_of_two() {
            choice = choice.or(
                Value::Bytes(unit),
                price(unit),
                "whole units; only with a kernel that mounts blocks above its page",
            );
        }
        plan.choose(choice);
        let erase = fact(t, Why::Erase).filter(|f| {
            f.grain.size().is_power_of_two() && (NODE..=MOST).contains(&f.grain.size())
        });
        let bucket = erase.map_or(BUCKET, |f| f.grain.size());
        let why = match erase {
            Some(f) => format!("a bucket is emptied and used again as one: the {}", describe(f)),
            None => {
                "what format takes on a large device; buckets are emptied and used again as one"
                    .to_owned()
            }
        };
        let choice = Choice::new("bcachefs", "bucket", Value::Bytes(bucket), why)
            .typed(format!("--bucket={bucket}"));
        plan.choose(
            choice
                .costing(Price::amplified(1.0).losing(bucket / 2, "a bucket that is being filled")),
        );
        plan.run(format!(
            "bcachefs format --block_size={block} --bucket={bucket} {}",
            base.arguments()
        ));
        base.mount(plan);
        base.with_files("/mnt", Files { system: "bcachefs", grid: block, whole_blocks: true })
    }
}

//! Apache Cassandra: tables that are written once, from end to end, read in chunks; and a commit
//! log.
//!
//! # Sources
//! Cassandra 5 documentation: `chunk_length_in_kb` (16 by default, 64 before 4.0),
//! `commitlog_segment_size` (32 MiB), `commitlog_sync` (periodic, 10 s),
//! `disk_optimization_strategy`; compaction of the largest tables needs their size again.

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, describe_unit, power, powers, unit_size,
    written,
};

/// Default size of a compressed chunk, in bytes.
const CHUNK: u64 = 16 << 10;
/// Segment of the commit log, in bytes.
const SEGMENT: u64 = 32 << 20;

pub(super) struct Cassandra;

impl Layer for Cassandra {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let chunk = power(unit_size(t), 64 << 10).max(CHUNK);
        let why = format!(
            "read whole for any row in it, and compressed it ends anywhere; tables are written in one piece; {}",
            describe_unit(t)
        );
        let mut choice = Choice::new("cassandra", "chunk", Value::Bytes(chunk), why)
            .typed(format!("chunk_length_in_kb: {}", chunk / 1024));
        for other in powers(4096, 64 << 10).filter(|&other| other != chunk) {
            choice = choice.or(
                Value::Bytes(other),
                Price::amplified(1.0),
                if other < chunk { "small rows, read singly" } else { "better compression" },
            );
        }
        plan.choose(choice);
        let why = "allocated beforehand and synced every 10 s: what is synced in between is part \
            of a unit only at its end";
        let log = Choice::new("cassandra", "commit log", Value::Bytes(SEGMENT), why)
            .typed("commitlog_segment_size: 32MiB");
        plan.choose(log.costing(Price::amplified(written(
            t,
            SEGMENT,
            base.files.as_ref().map_or(4096, |f| f.grid),
        ))));
        plan.run(format!(
            "install -d -o cassandra {0}/cassandra {0}/cassandra/data {0}/cassandra/commitlog",
            base.arguments()
        ));
        plan.note(
            "cassandra: chunk_length_in_kb belongs to each table's compression, the rest to \
            cassandra.yaml; leave half of the space to compaction",
        );
        base.clone()
    }
}

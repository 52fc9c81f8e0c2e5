//! etcd: pages of 4 KiB in its database, and a log that is synced for every proposal.
//!
//! # Sources
//! etcd, `server/storage/wal/encoder.go` (`walPageBytes`, 8 × 512 = 4096) and `wal.go`
//! (`SegmentSizeBytes`, 64 MB, allocated beforehand); bbolt takes the system's page; etcd,
//! "Hardware recommendations": 50 to 500 sequential IOPS, each of them synced.

use super::{Above, Choice, Layer, LayerBase, Plan, Value, database, describe_unit, unit_size};

/// Page of the database and of the log, in bytes.
pub(super) const PAGE: u64 = 4096;

pub(super) struct Etcd;

impl Layer for Etcd {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let why = format!(
            "bbolt's, the system's page; copied, not overwritten, but two that say which tree counts; {}",
            describe_unit(t)
        );
        plan.choose(
            Choice::new("etcd", "page", Value::Bytes(PAGE), why)
                .costing(database::price(base, PAGE)),
        );
        let why = "the log's unit of writing, fixed; every proposal is synced by itself, so that \
            one of 200 bytes writes a page";
        plan.choose(
            Choice::new("etcd", "log page", Value::Bytes(PAGE), why)
                .costing(database::price(base, PAGE)),
        );
        if unit_size(t) > PAGE {
            plan.note(format!(
                "etcd: neither can be made the unit of {} bytes: a drive of smaller \
                units, or one with a cache that survives power failures",
                unit_size(t)
            ));
        }
        plan.run(format!("etcd --data-dir {}/etcd", base.arguments()));
        base.clone()
    }
}

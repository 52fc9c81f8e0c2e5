//! Apache Kafka: segments that are appended to and never overwritten.
//!
//! # Sources
//! Kafka documentation, broker configs: `log.segment.bytes` (1 GiB by default),
//! `log.flush.interval.messages` (the page cache decides, by default), `log.preallocate`; "Disks
//! and Filesystem": XFS, `noatime`.

use super::{
    Above, Choice, Layer, LayerBase, Plan, Price, Value, describe_unit, unit_size, up, written,
};

/// Default segment of a log, in bytes.
const SEGMENT: u64 = 1 << 30;
const MOST: u64 = (1 << 31) - 4096;

pub(super) struct Kafka;

impl Layer for Kafka {
    fn lay(&self, base: &LayerBase, _above: Above, plan: &mut Plan) -> LayerBase {
        let t = &base.topology;
        let segment = up(SEGMENT, unit_size(t)).min(MOST);
        let why = format!(
            "appended to by way of the page cache, so that the drive sees whole units but at the end; {}",
            describe_unit(t)
        );
        let choice = Choice::new("kafka", "segment", Value::Bytes(segment), why)
            .typed(format!("log.segment.bytes={segment}"));
        plan.choose(choice.costing(Price::amplified(written(
            t,
            segment,
            base.files.as_ref().map_or(4096, |f| f.grid),
        ))));
        let why = "the page cache writes neighbours together; a flush for every message writes the \
            last unit again for each";
        let flush = Choice::new("kafka", "flush", Value::word("by the page cache"), why);
        let each = Price::amplified(written(t, 4096, 4096));
        plan.choose(flush.or(
            Value::word("every message"),
            each,
            "log.flush.interval.messages=1, without replicas",
        ));
        let directory = format!("{}/kafka", base.arguments());
        plan.run(format!("install -d {directory}"));
        plan.run(format!(
            "printf '%s\\n' log.dirs={directory} log.segment.bytes={segment} > {}/kafka.properties",
            base.arguments()
        ));
        plan.note(
            "kafka: mount with noatime; the properties are for the end of config/server.properties",
        );
        base.clone()
    }
}

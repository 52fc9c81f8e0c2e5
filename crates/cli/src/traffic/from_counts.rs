//! The document of a layer's requests, made of what was counted.

use super::{Blame, Bucket, Deeds, Latency, Layer, Operations, Requests, Verdicts};
use crate::words;
use trueline_geom::audit::io::{self, IoKind, Tally};
use trueline_geom::base::topology::Placement;
use trueline_serve::counting::{self, LayerCounts};
use trueline_serve::layer::counted::Waits;

impl Layer {
    /// Counts of a layer on a disk, through the export called `export`, if there is one.
    pub(crate) fn new(export: Option<&str>, counted: &LayerCounts) -> Layer {
        let tally = &counted.tally;
        let (read, write) = (tally.work(IoKind::Read), tally.work(IoKind::Write));
        let device_operations = Operations {
            reads: read.done,
            writes: write.done,
            reads_needed: read.needed,
            writes_needed: write.needed,
        };
        Layer {
            provider: counted.provider.clone(),
            id: counted.number,
            gone: !counted.is_here,
            content: words::recognised(&counted.recognised),
            export: export.map(str::to_owned),
            disk: counted.disk.clone(),
            unit: counted.unit.map_or(0, |unit| unit.grain.size()),
            phase: counted.unit.map_or(0, |unit| unit.grain.phase()),
            why: counted.unit.map(|unit| unit.why.name()),
            members: counted.members.clone(),
            requests: requests(tally),
            request_bytes: by_kind(|kind| tally.requested(kind)),
            blamed_requests: by_kind(|kind| tally.requests_blamed(kind)),
            reads: verdicts(|verdict| tally.count(IoKind::Read, verdict)),
            writes: verdicts(|verdict| tally.count(IoKind::Write, verdict)),
            trims: verdicts(|verdict| tally.count(IoKind::Trim, verdict)),
            zeroes: verdicts(|verdict| tally.count(IoKind::Zero, verdict)),
            bytes: by_kind(|kind| tally.bytes(kind)),
            blame: counted.blame.as_ref().map(blame),
            blamed: by_kind(|kind| tally.blamed(kind)),
            device_operations,
            rmw_factor: device_operations.rmw_factor(),
            histogram: tally.histogram().map(bucket).collect(),
        }
    }
}

impl Deeds {
    /// Numbers in the order of [`IoKind::ALL`].
    pub(crate) fn new([reads, writes, trims, zeroes]: [u64; IoKind::ALL.len()]) -> Deeds {
        Deeds { reads, writes, trims, zeroes }
    }
}

impl Verdicts {
    /// Numbers in the order of [`Placement::ALL`].
    pub(crate) fn new(
        [aligned, misaligned, partial, unknown]: [u64; Placement::ALL.len()],
    ) -> Verdicts {
        Verdicts { aligned, misaligned, partial, unknown }
    }
}

impl Latency {
    /// Mean, quantiles and maximum; `None` of no request.
    pub(crate) fn new(waits: &Waits) -> Option<Latency> {
        let (count, mean, max) = (waits.count(), waits.mean(), waits.most());
        (count > 0).then(|| Latency {
            count,
            mean,
            p50: waits.quantile(500),
            p99: waits.quantile(990),
            max,
        })
    }
}

fn by_kind(of: impl Fn(IoKind) -> u64) -> Deeds {
    Deeds::new(IoKind::ALL.map(of))
}

fn verdicts(of: impl Fn(Placement) -> u64) -> Verdicts {
    Verdicts::new(Placement::ALL.map(of))
}

fn requests(tally: &Tally) -> Requests {
    let [reads, writes, trims, zeroes] =
        IoKind::ALL.map(|kind| verdicts(|verdict| tally.requests(kind, verdict)));
    Requests { reads, writes, trims, zeroes }
}

fn blame(blame: &counting::Blame) -> Blame {
    Blame {
        provider: blame.provider.clone(),
        remainder: blame.remainder,
        chunk: blame.chunk,
        rule: blame.rule.id,
    }
}

fn bucket(bucket: io::Bucket) -> Bucket {
    Bucket {
        op: bucket.kind.name(),
        verdict: bucket.fit.name(),
        size: io::class_start(bucket.size),
        alignment: io::class_start(bucket.alignment),
        count: bucket.count,
    }
}

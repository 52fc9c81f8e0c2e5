//! The document of what a server has counted, made of the server's own value.

use super::{
    Blame, Bucket, Deeds, Export, Latencies, Latency, Layer, Operations, Requests, Sample, Served,
    Verdicts,
};
use crate::remembered::Remembered;
use crate::words;
use std::time::Duration;
use trueline_geom::audit::io::{self, IoKind, Tally};
use trueline_geom::base::topology::Placement;
use trueline_serve::counting;
use trueline_serve::counting::{ExportCounts, LayerCounts, ServerCounts};
use trueline_serve::layer::counted::Waits;

impl Served {
    /// Counts of a server of `target`, whose disks are `judged` by a profile.
    pub(crate) fn new(target: &str, judged: Option<&Remembered>, counts: &ServerCounts) -> Served {
        let (mut layers, mut exports) = (Vec::new(), Vec::new());
        for counted in &counts.exports {
            let own: Vec<Layer> =
                counted.layers.iter().map(|layer| Layer::new(&counted.provider, layer)).collect();
            exports.push(Export::new(counted, &own));
            layers.extend(own);
        }
        let (target, judged, duration_ns) =
            (target.into(), judged.cloned(), nanoseconds(counts.duration));
        let generation = counts.generation;
        Served {
            format: "trueline/serve/1",
            target,
            judged,
            duration_ns,
            generation,
            layers,
            exports,
            emulation: None,
        }
    }
}

impl Export {
    /// Counts of an export, of which `layers` are the layers.
    fn new(counted: &ExportCounts, layers: &[Layer]) -> Export {
        let sum =
            |of: fn(&Layer) -> Deeds| layers.iter().map(of).fold(Deeds::default(), Deeds::merge);
        Export {
            provider: counted.provider.clone(),
            requests: sum(|layer| layer.requests.counts()),
            pieces: sum(Layer::pieces),
            bytes: sum(|layer| layer.request_bytes),
            flushes: counted.flushes,
            most_waiting: counted.most_waiting,
            errors: deeds(counted.failed),
            flush_errors: counted.failed_flushes,
            latency_ns: latencies(&counted.latencies),
        }
    }
}

impl Layer {
    /// Counts of a layer on a disk, through the export called `export`.
    fn new(export: &str, counted: &LayerCounts) -> Layer {
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
            export: export.into(),
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

impl From<counting::Sample> for Sample {
    fn from(sample: counting::Sample) -> Sample {
        let [aligned, misaligned, partial, unknown] = sample.requests;
        Sample {
            duration_ns: nanoseconds(sample.duration),
            verdicts: Verdicts { aligned, misaligned, partial, unknown },
            bytes: deeds(sample.bytes),
            p50_ns: sample.p50_ns,
            p99_ns: sample.p99_ns,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Numbers in the order of [`IoKind::ALL`].
fn deeds([reads, writes, trims, zeroes]: [u64; IoKind::ALL.len()]) -> Deeds {
    Deeds { reads, writes, trims, zeroes }
}

fn by_kind(of: impl Fn(IoKind) -> u64) -> Deeds {
    deeds(IoKind::ALL.map(of))
}

fn verdicts(of: impl Fn(Placement) -> u64) -> Verdicts {
    let [aligned, misaligned, partial, unknown] = Placement::ALL.map(of);
    Verdicts { aligned, misaligned, partial, unknown }
}

fn requests(tally: &Tally) -> Requests {
    let [reads, writes, trims, zeroes] =
        IoKind::ALL.map(|kind| verdicts(|verdict| tally.requests(kind, verdict)));
    Requests { reads, writes, trims, zeroes }
}

fn latencies(waits: &[Waits; IoKind::ALL.len() + 1]) -> Latencies {
    let [reads, writes, trims, zeroes, flushes] = waits.each_ref().map(|waits| {
        let (count, mean, max) = (waits.count(), waits.mean(), waits.most());
        (count > 0).then(|| Latency {
            count,
            mean,
            p50: waits.quantile(500),
            p99: waits.quantile(990),
            max,
        })
    });
    Latencies { reads, writes, trims, zeroes, flushes }
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

//! The document of what a server has counted, made of the server's own value.

use super::{Export, Latencies, Sample, Served};
use crate::remembered::Remembered;
use crate::traffic::{Deeds, Latency, Layer, Verdicts};
use std::time::Duration;
use trueline_geom::audit::io::IoKind;
use trueline_serve::counting;
use trueline_serve::counting::{ExportCounts, ServerCounts};
use trueline_serve::layer::counted::Waits;

impl Served {
    /// Counts of a server of `target`, whose disks are `judged` by a profile.
    pub(crate) fn new(target: &str, judged: Option<&Remembered>, counts: &ServerCounts) -> Served {
        let (mut layers, mut exports) = (Vec::new(), Vec::new());
        for counted in &counts.exports {
            let own: Vec<Layer> = counted
                .layers
                .iter()
                .map(|layer| Layer::new(Some(&counted.provider), layer))
                .collect();
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
            errors: Deeds::new(counted.failed),
            flush_errors: counted.failed_flushes,
            latency_ns: latencies(&counted.latencies),
        }
    }
}

impl From<counting::Sample> for Sample {
    fn from(sample: counting::Sample) -> Sample {
        Sample {
            duration_ns: nanoseconds(sample.duration),
            verdicts: Verdicts::new(sample.requests),
            bytes: Deeds::new(sample.bytes),
            p50_ns: sample.p50_ns,
            p99_ns: sample.p99_ns,
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn latencies(waits: &[Waits; IoKind::ALL.len() + 1]) -> Latencies {
    let [reads, writes, trims, zeroes, flushes] = waits.each_ref().map(Latency::new);
    Latencies { reads, writes, trims, zeroes, flushes }
}

//! What `serve` counted, as one value: the summary, `--top`, `--json`, the metrics and the live page are written from it.
//!
//! Its serialised form is the contract of `trueline serve --json`; keys may be added, never changed.

use crate::remembered::Remembered;
use serde::Serialize;

/// What a page is told: what was counted, and some of the samples before.
#[derive(Serialize)]
pub(crate) struct Event<'a> {
    #[serde(flatten)]
    pub served: &'a Served,
    pub history: &'a [Sample],
}

/// Everything that was counted until some moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Served {
    /// `trueline/serve/1`.
    pub format: &'static str,
    /// As the user named it.
    pub target: String,
    /// The profile that its disks are judged by; none where nothing names one.
    #[serde(rename = "for")]
    pub judged: Option<Remembered>,
    /// Since serving began.
    pub duration_ns: u64,
    /// How often something else than before was found on the disks since then.
    pub generation: u64,
    /// Of each export: the providers in which something was done, on each disk that it reached.
    pub layers: Vec<Layer>,
    /// What is counted of a provider as it is exported.
    pub exports: Vec<Export>,
    /// Whose time the times of emulated drives are; `null` without any, and before the end.
    pub emulation: Option<Emulation>,
}

/// Times of emulated drives, and of the machine that emulates them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Emulation {
    /// Virtual time in real time.
    pub speed: f64,
    /// Virtual time that the drives worked.
    pub drive_ns: u64,
    /// Virtual time that the drives had no work between two requests.
    pub machine_ns: u64,
    /// The same by kind of request.
    pub kinds: Vec<EmulatedKind>,
    /// The speed at which the machine distorts no kind much; `null` where it does not.
    pub true_speed: Option<f64>,
}

/// Requests to emulated drives, of one kind.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct EmulatedKind {
    /// `read` or `write`.
    pub op: &'static str,
    /// `sequential`, where each begins where the one before it ended, or `random`.
    pub pattern: &'static str,
    pub requests: u64,
    pub drive_ns: u64,
    pub machine_ns: u64,
    /// Whether ratios of such requests are the drive's: the machine takes a tenth of the drives' time or less.
    pub is_the_drives: bool,
}

/// Requests to one export that began in one provider, as pieces on one disk.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Layer {
    /// The deepest provider that was there, as far as it was tasted, where the requests begin.
    pub provider: String,
    /// Its place in the order of `check` when serving began; what was found later has further numbers.
    pub id: usize,
    /// Whether it is not there any more.
    pub gone: bool,
    /// What was last seen on it, for people.
    #[serde(skip)]
    pub content: String,
    /// The provider that is exported.
    pub export: String,
    /// The disk that the pieces are on, by which they are judged.
    pub disk: String,
    /// Numbers, as `id`, of what the layer is on beneath the uppermost set on the way to the disk: the member first, the disk last.
    pub members: Vec<usize>,
    /// The boundary they are judged by, in bytes; 0 where none is known.
    pub unit: u64,
    /// The first such boundary of the disk.
    pub phase: u64,
    /// What it is for.
    pub why: Option<&'static str>,
    /// Requests the first piece of which is on this disk, by the worst verdict of their pieces.
    pub requests: Requests,
    /// Bytes of these requests; of a mirror's copies each byte once.
    pub request_bytes: Deeds,
    /// The number of misaligned requests that are the blamed layer's doing; the others are the client's.
    pub blamed_requests: Deeds,
    /// Pieces, by verdict.
    pub reads: Verdicts,
    pub writes: Verdicts,
    pub trims: Verdicts,
    pub zeroes: Verdicts,
    pub bytes: Deeds,
    /// Which layer leaves the grain; `null` where none does.
    pub blame: Option<Blame>,
    /// How many of the misaligned are its doing; the others are the client's.
    pub blamed: Deeds,
    pub device_operations: Operations,
    /// Operations of writes relative to what they need; 1 where nothing is written.
    pub rmw_factor: f64,
    /// Reads and writes by size and alignment, those there are.
    pub histogram: Vec<Bucket>,
}

/// Requests of every kind, by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Requests {
    pub reads: Verdicts,
    pub writes: Verdicts,
    pub trims: Verdicts,
    pub zeroes: Verdicts,
}

/// Pieces, by how they lie on the unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Verdicts {
    pub aligned: u64,
    pub misaligned: u64,
    pub partial: u64,
    pub unknown: u64,
}

/// One number for each kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Deeds {
    pub reads: u64,
    pub writes: u64,
    pub trims: u64,
    pub zeroes: u64,
}

/// The layer at which a stack leaves the grain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Blame {
    /// It.
    pub provider: String,
    /// How far past a boundary it begins, in bytes.
    pub remainder: u64,
    /// Bytes of its chunks, where it begins on a boundary and its chunks are no whole units; else `null`.
    pub chunk: Option<u64>,
    /// What `trueline explain` has on it.
    pub rule: &'static str,
}

/// What reads and writes come to on a device that reads and writes whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Operations {
    pub reads: u64,
    pub writes: u64,
    /// What the same bytes come to on the grain.
    pub reads_needed: u64,
    pub writes_needed: u64,
}

/// Pieces of about one size and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bucket {
    /// `read` or `write`.
    pub op: &'static str,
    /// How they lie on the unit.
    pub verdict: &'static str,
    /// From this size up to below the next power of two; 0: below 512; 1 MiB: that and above.
    pub size: u64,
    /// The largest power of two that divides the first byte on the disk; 0: below 512; 1 MiB: that and above.
    pub alignment: u64,
    pub count: u64,
}

/// What is counted of an export as a whole.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Export {
    pub provider: String,
    /// Requests that were done, as clients made them.
    pub requests: Deeds,
    /// The pieces that the stack made of them, on all disks.
    pub pieces: Deeds,
    /// Bytes of the requests.
    pub bytes: Deeds,
    pub flushes: u64,
    /// Requests that waited for a device at one time, at most.
    pub most_waiting: u64,
    /// Requests that failed or were refused, which are counted nowhere else.
    pub errors: Deeds,
    pub flush_errors: u64,
    /// Latencies of requests that waited for a device.
    pub latency_ns: Latencies,
}

/// Latencies by kind of request; `null` where none waited for a device. What is answered from memory has none.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Latencies {
    pub reads: Option<Latency>,
    pub writes: Option<Latency>,
    pub trims: Option<Latency>,
    pub zeroes: Option<Latency>,
    pub flushes: Option<Latency>,
}

/// Latencies in ns; quantiles are right to an eighth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Latency {
    pub count: u64,
    pub mean: u64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

/// What was done until some moment, as the page's charts need it, and what was waited for since the moment before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Sample {
    /// Since serving began.
    pub duration_ns: u64,
    /// Requests of all kinds, by verdict.
    pub verdicts: Verdicts,
    /// Bytes of requests.
    pub bytes: Deeds,
    /// Latency of reads and writes since the sample before; 0 where none waited for a device.
    pub p50_ns: u64,
    pub p99_ns: u64,
}

impl Verdicts {
    /// All of them.
    pub(crate) fn sum(self) -> u64 {
        self.aligned + self.misaligned + self.partial + self.unknown
    }

    /// Both together.
    pub(crate) fn and(self, other: Verdicts) -> Verdicts {
        Verdicts {
            aligned: self.aligned + other.aligned,
            misaligned: self.misaligned + other.misaligned,
            partial: self.partial + other.partial,
            unknown: self.unknown + other.unknown,
        }
    }
}

impl Deeds {
    /// All of them.
    pub(crate) fn sum(self) -> u64 {
        self.reads + self.writes + self.trims + self.zeroes
    }

    /// Both together.
    pub(crate) fn and(self, other: Deeds) -> Deeds {
        Deeds {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            trims: self.trims + other.trims,
            zeroes: self.zeroes + other.zeroes,
        }
    }
}

impl Requests {
    /// Requests of all kinds, by verdict.
    pub(crate) fn verdicts(self) -> Verdicts {
        self.reads.and(self.writes).and(self.trims).and(self.zeroes)
    }

    /// Both together.
    pub(crate) fn and(self, other: Requests) -> Requests {
        Requests {
            reads: self.reads.and(other.reads),
            writes: self.writes.and(other.writes),
            trims: self.trims.and(other.trims),
            zeroes: self.zeroes.and(other.zeroes),
        }
    }

    /// Requests of each kind.
    pub(crate) fn counts(self) -> Deeds {
        Deeds { reads: self.reads.sum(), writes: self.writes.sum(), trims: self.trims.sum(), zeroes: self.zeroes.sum() }
    }
}

impl Operations {
    /// Both together.
    pub(crate) fn and(self, other: Operations) -> Operations {
        Operations {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            reads_needed: self.reads_needed + other.reads_needed,
            writes_needed: self.writes_needed + other.writes_needed,
        }
    }

    /// Operations of writes relative to what they need; 1 where nothing is written.
    #[allow(clippy::cast_precision_loss, reason = "a factor for people, not an address")]
    pub(crate) fn rmw_factor(self) -> f64 {
        if self.writes_needed == 0 { 1.0 } else { self.writes as f64 / self.writes_needed as f64 }
    }
}

impl Layer {
    /// All pieces, by verdict.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.reads.and(self.writes).and(self.trims).and(self.zeroes)
    }

    /// Pieces of each kind.
    pub(crate) fn pieces(&self) -> Deeds {
        Deeds { reads: self.reads.sum(), writes: self.writes.sum(), trims: self.trims.sum(), zeroes: self.zeroes.sum() }
    }

    /// Adds what was done through another export, or to another provider, on the same disk; but for the histogram.
    pub(crate) fn merge(&mut self, other: &Layer) {
        self.requests = self.requests.and(other.requests);
        self.request_bytes = self.request_bytes.and(other.request_bytes);
        self.blamed_requests = self.blamed_requests.and(other.blamed_requests);
        self.reads = self.reads.and(other.reads);
        self.writes = self.writes.and(other.writes);
        self.trims = self.trims.and(other.trims);
        self.zeroes = self.zeroes.and(other.zeroes);
        self.bytes = self.bytes.and(other.bytes);
        self.blamed = self.blamed.and(other.blamed);
        self.device_operations = self.device_operations.and(other.device_operations);
        self.rmw_factor = self.device_operations.rmw_factor();
    }

    /// Pieces that miss a unit, then operations above those needed: more is worse.
    fn harm(&self) -> (u64, u64) {
        let Operations { reads, writes, reads_needed, writes_needed } = self.device_operations;
        (self.verdicts().misaligned, (reads + writes).saturating_sub(reads_needed + writes_needed))
    }

    fn count(&mut self, more: &Bucket) {
        let kind = |b: &Bucket| (b.op, b.verdict, b.size, b.alignment);
        match self.histogram.iter_mut().find(|bucket| kind(bucket) == kind(more)) {
            Some(same) => same.count += more.count,
            None => self.histogram.push(*more),
        }
    }
}

/// A layer on all of its disks.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The sums over the disks; what is one disk's alone is that of one of them.
    pub all: Layer,
    /// The layer on each disk, the one that misses most first.
    pub disks: Vec<Layer>,
}

impl Row {
    fn add(&mut self, layer: Layer) {
        self.all.merge(&layer);
        match self.disks.iter_mut().find(|disk| disk.disk == layer.disk) {
            Some(same) => same.merge(&layer),
            None => self.disks.push(layer),
        }
    }

    /// The disk that misses most; [`None`] where there is but one.
    pub(crate) fn worst(&self) -> Option<&Layer> {
        self.disks.first().filter(|_| self.disks.len() > 1)
    }
}

impl Served {
    /// Layers of all exports together, in the order of the providers; without histograms.
    pub(crate) fn merged(&self) -> Vec<Row> {
        let mut rows: Vec<Row> = Vec::new();
        for layer in &self.layers {
            let bare = Layer { histogram: Vec::new(), ..layer.clone() };
            match rows.iter_mut().find(|row| row.all.id == layer.id) {
                Some(row) => row.add(bare),
                None => rows.push(Row { all: bare.clone(), disks: vec![bare] }),
            }
        }
        rows.iter_mut().for_each(|row| row.disks.sort_by_key(|disk| std::cmp::Reverse(disk.harm())));
        rows.sort_by_key(|row| row.all.id);
        rows
    }

    /// Layers that have the same names together: of an export, what was once called so and what is now.
    pub(crate) fn by_name(&self) -> Vec<Layer> {
        let mut merged: Vec<Layer> = Vec::new();
        for layer in &self.layers {
            let same = |m: &&mut Layer| (&m.export, &m.provider, &m.disk) == (&layer.export, &layer.provider, &layer.disk);
            match merged.iter_mut().find(same) {
                Some(same) => {
                    same.merge(layer);
                    layer.histogram.iter().for_each(|bucket| same.count(bucket));
                }
                None => merged.push(layer.clone()),
            }
        }
        merged
    }
}

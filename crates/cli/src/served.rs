//! What `serve` counted, as one value: the summary, `--top`, `--json`, the metrics and the live page are written from it.
//!
//! Its serialised form is the contract of `trueline serve --json`; keys may be added, never changed.

use serde::Serialize;

/// Everything that was counted until some moment.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Served {
    /// `trueline/serve/1`.
    pub format: &'static str,
    /// As the user named it.
    pub target: String,
    /// Since serving began.
    pub duration_ns: u64,
    /// How often something else than before was found on the disks since then.
    pub generation: u64,
    /// Of each export: the providers in which something was done, on each disk that it reached.
    pub layers: Vec<Layer>,
    /// What is counted of a provider as it is exported.
    pub exports: Vec<Export>,
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
    /// The boundary they are judged by, in bytes; 0 where none is known.
    pub unit: u64,
    /// The first such boundary of the disk.
    pub phase: u64,
    /// What it is for.
    pub why: Option<&'static str>,
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
    pub flushes: u64,
    /// Requests that waited for a device at one time, at most.
    pub most_waiting: u64,
    /// Requests that failed, which are counted nowhere else.
    pub errors: Deeds,
    pub flush_errors: u64,
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
    /// All requests, by verdict.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.reads.and(self.writes).and(self.trims).and(self.zeroes)
    }

    /// Adds what was done through another export, or to another provider, on the same disk; but for the histogram.
    pub(crate) fn merge(&mut self, other: &Layer) {
        self.reads = self.reads.and(other.reads);
        self.writes = self.writes.and(other.writes);
        self.trims = self.trims.and(other.trims);
        self.zeroes = self.zeroes.and(other.zeroes);
        self.bytes = self.bytes.and(other.bytes);
        self.blamed = self.blamed.and(other.blamed);
        self.device_operations = self.device_operations.and(other.device_operations);
        self.rmw_factor = self.device_operations.rmw_factor();
    }

    fn count(&mut self, more: &Bucket) {
        let kind = |b: &Bucket| (b.op, b.verdict, b.size, b.alignment);
        match self.histogram.iter_mut().find(|bucket| kind(bucket) == kind(more)) {
            Some(same) => same.count += more.count,
            None => self.histogram.push(*more),
        }
    }
}

impl Served {
    /// Layers of all exports together, in the order of the providers and disks; without histograms.
    pub(crate) fn merged(&self) -> Vec<Layer> {
        let mut merged: Vec<Layer> = Vec::new();
        for layer in &self.layers {
            match merged.iter_mut().find(|m| m.id == layer.id && m.disk == layer.disk) {
                Some(same) => same.merge(layer),
                None => merged.push(Layer { histogram: Vec::new(), ..layer.clone() }),
            }
        }
        merged.sort_by_key(|layer| layer.id);
        merged
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

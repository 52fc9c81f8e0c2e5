//! Requests by layer, size and alignment as a document, whether they were served or seen.
//!
//! Its serialised form is part of the contract of `serve --json` and `trace --json`; keys may be
//! added, never changed.

mod from_counts;

use serde::Serialize;

/// Requests to one export that began in one provider, as pieces on one disk.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Layer {
    /// The deepest provider known where the requests begin.
    pub provider: String,
    /// Its index in the order of `check` when serving began; providers found later have further
    /// numbers.
    pub id: usize,
    /// True if it is no longer on the disks.
    pub gone: bool,
    /// Its content when it was last tasted, in words.
    #[serde(skip)]
    pub content: String,
    /// The provider that is exported; `None` of requests that were seen, not served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
    /// The disk that the pieces are on; it judges them.
    pub disk: String,
    /// Numbers, like `id`, of the providers beneath the uppermost set on the way to the disk: the
    /// member first, the disk last.
    pub members: Vec<usize>,
    /// The boundary that judges them, in bytes; 0 if none is known.
    pub unit: u64,
    /// The first such boundary on the disk, in bytes.
    pub phase: u64,
    /// Purpose of the boundary: `physical`, `chunk`, …
    pub why: Option<&'static str>,
    /// Requests with their first piece on this disk, by the worst verdict of their pieces.
    pub requests: Requests,
    /// Bytes of these requests; a byte that a mirror copies counts once.
    pub request_bytes: Deeds,
    /// Misaligned requests that the blamed layer causes; the client causes the others.
    pub blamed_requests: Deeds,
    /// Pieces of requests, by verdict.
    pub reads: Verdicts,
    pub writes: Verdicts,
    pub trims: Verdicts,
    pub zeroes: Verdicts,
    pub bytes: Deeds,
    /// The layer that leaves the grain; `null` if none does.
    pub blame: Option<Blame>,
    /// Misaligned pieces that it causes; the client causes the others.
    pub blamed: Deeds,
    pub device_operations: Operations,
    /// Operations for writes relative to those needed; 1 without writes.
    pub rmw_factor: f64,
    /// Reads and writes by size and alignment; sizes without requests are left out.
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

/// Pieces, by their place on the unit.
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
    /// Name of the provider.
    pub provider: String,
    /// Distance of its start past a boundary, in bytes.
    pub remainder: u64,
    /// Size of its chunks in bytes, if it begins on a boundary and its chunks are no whole units;
    /// else `null`.
    pub chunk: Option<u64>,
    /// Id of the rule for `trueline explain`.
    pub rule: &'static str,
}

/// Operations for reads and writes on a device that reads and writes whole units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Operations {
    pub reads: u64,
    pub writes: u64,
    /// Operations for the same bytes on the grain.
    pub reads_needed: u64,
    pub writes_needed: u64,
}

/// Pieces of about one size and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Bucket {
    /// Kind of request: `read` or `write`.
    pub op: &'static str,
    /// Verdict on their place on the unit.
    pub verdict: &'static str,
    /// Least size of the class, which ends below the next power of two; 0: below 512; 1 MiB: that
    /// and above.
    pub size: u64,
    /// The largest power of two that divides the first byte on the disk; 0: below 512; 1 MiB: that
    /// and above.
    pub alignment: u64,
    pub count: u64,
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

impl Verdicts {
    /// The sum over all verdicts.
    pub(crate) fn sum(self) -> u64 {
        self.aligned + self.misaligned + self.partial + self.unknown
    }

    /// The sums of both, for each verdict.
    pub(crate) fn merge(self, other: Verdicts) -> Verdicts {
        Verdicts {
            aligned: self.aligned + other.aligned,
            misaligned: self.misaligned + other.misaligned,
            partial: self.partial + other.partial,
            unknown: self.unknown + other.unknown,
        }
    }
}

impl Deeds {
    /// The sum over all kinds.
    pub(crate) fn sum(self) -> u64 {
        self.reads + self.writes + self.trims + self.zeroes
    }

    /// The sums of both, for each kind.
    pub(crate) fn merge(self, other: Deeds) -> Deeds {
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
        self.reads.merge(self.writes).merge(self.trims).merge(self.zeroes)
    }

    /// The sums of both, for each kind and verdict.
    pub(crate) fn merge(self, other: Requests) -> Requests {
        Requests {
            reads: self.reads.merge(other.reads),
            writes: self.writes.merge(other.writes),
            trims: self.trims.merge(other.trims),
            zeroes: self.zeroes.merge(other.zeroes),
        }
    }

    /// Requests of each kind.
    pub(crate) fn counts(self) -> Deeds {
        Deeds {
            reads: self.reads.sum(),
            writes: self.writes.sum(),
            trims: self.trims.sum(),
            zeroes: self.zeroes.sum(),
        }
    }
}

impl Operations {
    /// The sums of both, for each field.
    pub(crate) fn merge(self, other: Operations) -> Operations {
        Operations {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            reads_needed: self.reads_needed + other.reads_needed,
            writes_needed: self.writes_needed + other.writes_needed,
        }
    }

    /// Operations for writes relative to those needed; 1 without writes.
    #[allow(clippy::cast_precision_loss, reason = "a factor for people, not an address")]
    pub(crate) fn rmw_factor(self) -> f64 {
        if self.writes_needed == 0 { 1.0 } else { self.writes as f64 / self.writes_needed as f64 }
    }
}

impl Layer {
    /// All pieces, by verdict.
    pub(crate) fn verdicts(&self) -> Verdicts {
        self.reads.merge(self.writes).merge(self.trims).merge(self.zeroes)
    }

    /// Pieces of each kind.
    pub(crate) fn pieces(&self) -> Deeds {
        Deeds {
            reads: self.reads.sum(),
            writes: self.writes.sum(),
            trims: self.trims.sum(),
            zeroes: self.zeroes.sum(),
        }
    }

    /// Adds the counts through another export, or of another provider, on the same disk; the
    /// histogram stays.
    pub(crate) fn merge(&mut self, other: &Layer) {
        self.requests = self.requests.merge(other.requests);
        self.request_bytes = self.request_bytes.merge(other.request_bytes);
        self.blamed_requests = self.blamed_requests.merge(other.blamed_requests);
        self.reads = self.reads.merge(other.reads);
        self.writes = self.writes.merge(other.writes);
        self.trims = self.trims.merge(other.trims);
        self.zeroes = self.zeroes.merge(other.zeroes);
        self.bytes = self.bytes.merge(other.bytes);
        self.blamed = self.blamed.merge(other.blamed);
        self.device_operations = self.device_operations.merge(other.device_operations);
        self.rmw_factor = self.device_operations.rmw_factor();
    }

    /// The order of harm: pieces that miss a unit, then operations above those needed.
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
    /// The sums over the disks; fields that cannot be summed are those of one disk.
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

    /// The disk that misses most; [`None`] if there is only one.
    pub(crate) fn worst(&self) -> Option<&Layer> {
        self.disks.first().filter(|_| self.disks.len() > 1)
    }
}

/// Layers of all exports together, in the order of the providers; without histograms.
pub(crate) fn rows(layers: &[Layer]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for layer in layers {
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

/// Layers with equal names together: in an export, a provider and its successors of that name.
pub(crate) fn by_name(layers: &[Layer]) -> Vec<Layer> {
    let mut merged: Vec<Layer> = Vec::new();
    for layer in layers {
        let same = |m: &&mut Layer| {
            (&m.export, &m.provider, &m.disk) == (&layer.export, &layer.provider, &layer.disk)
        };
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

//! Extents of a disk in files of their own, one after another, as a descriptor lists them.

use crate::base::topology::Topology;
use crate::mapping::geom;
use crate::mapping::geom::{Geom, Op, Part, Slot};
use crate::mapping::segments::{Places, Segments};
use std::sync::Arc;

const READ_ONLY: &str = "the contents of a container are read, not written";

/// Extent of a disk.
pub(super) struct Run {
    /// Bytes of it on the disk.
    pub(super) bytes: u64,
    /// Byte of its file at which it begins; none for zeros, which have no file.
    pub(super) start: Option<u64>,
    /// True if its file has tables of grains, of which some may not be there.
    pub(super) is_sparse: bool,
}

/// Disk of extents, of which the files are not here: [`Geom::over`] is the disk once they are.
pub(super) struct Extents {
    runs: Vec<Run>,
    length: u64,
}

impl Extents {
    /// The disk of these extents; `None` if it would be empty or too large.
    pub(super) fn new(runs: Vec<Run>) -> Option<Extents> {
        let length = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.bytes))?;
        (length > 0).then_some(Extents { runs, length })
    }

    /// The disk over files of these lengths, in the order of the extents that have one.
    fn joined(&self, lengths: &[u64]) -> Option<Segments> {
        // The descriptor itself is the first consumer.
        let mut files = (1..).zip(lengths);
        let mut parts: Vec<(u64, Places)> = Vec::new();
        for &Run { bytes, start, .. } in &self.runs {
            let Some(start) = start else {
                parts.push((bytes, Places::Zero));
                continue;
            };
            let (consumer, length) = files.next()?;
            // A file that is too short: what it has of its extent is there.
            let here = length.saturating_sub(start).min(bytes);
            parts.push((here, Places::Striped(0, vec![(consumer, start)])));
            parts.push((bytes - here, Places::Fail));
        }
        let parts = parts.into_iter().filter(|(bytes, _)| *bytes > 0);
        Some(Segments::new(String::new(), parts)?.read_only_for(Some(READ_ONLY)))
    }
}

impl Geom for Extents {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, _below: &[Topology]) -> Topology {
        Topology::new(1, self.length)
    }

    fn map(&self, slot: usize, offset: u64, length: u64, op: Op) -> geom::Extent {
        if op == Op::Write {
            return geom::Extent::ReadOnly { length };
        }
        match self.joined(&[]) {
            Some(zeros) => zeros.map(slot, offset, length, op),
            None => geom::Extent::Fail { length },
        }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        Some(READ_ONLY)
    }

    fn parts(&self) -> Vec<Part> {
        let mut end = 0;
        let part = |&Run { bytes, start, is_sparse }: &Run| {
            // The sum of all is a number: it was added up when the disk was made.
            end += bytes;
            let part = |within| Part { start: end - bytes, length: bytes, within, is_sparse };
            start.map(part)
        };
        self.runs.iter().filter_map(part).collect()
    }

    fn over(&self, lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        self.joined(lengths).map(|disk| Arc::new(disk) as _)
    }
}

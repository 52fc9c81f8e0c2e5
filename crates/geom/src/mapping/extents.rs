//! Disk of extents in files of their own, one after another, as a descriptor lists them.

use crate::base::topology::Topology;
use crate::mapping::geom;
use crate::mapping::geom::{Geom, Op, Part, Slot};
use crate::mapping::segments::{Places, Segments};
use std::sync::Arc;

/// Extents with tables that a disk may have, each of which takes memory for pages of them; more
/// files are not followed to.
const MOST_SPARSE: usize = 256;

const READ_ONLY: &str = "the contents of a container are read, not written";

/// Run of a disk in one file.
pub(crate) struct Run {
    /// Bytes of it on the disk.
    pub(crate) bytes: u64,
    /// Number of the reference that has it, from 0, and its first byte there; none for zeros.
    pub(crate) place: Option<(usize, u64)>,
}

/// Disk of extents, of which the files are not here: [`Geom::over`] is the disk once they are.
pub(crate) struct Extents {
    runs: Vec<Run>,
    parts: Vec<Part>,
    length: u64,
}

impl Extents {
    /// The disk of these runs, of which references have `parts`; `None` if it would be empty or too
    /// large.
    pub(crate) fn new(runs: Vec<Run>, parts: Vec<Part>) -> Option<Extents> {
        let length = runs.iter().try_fold(0u64, |sum, run| sum.checked_add(run.bytes))?;
        (length > 0).then_some(Extents { runs, parts, length })
    }

    /// True if more of its files have tables than are joined.
    pub(crate) fn has_too_many_tables(&self) -> bool {
        self.parts.iter().filter(|part| part.is_sparse).count() > MOST_SPARSE
    }

    /// The disk over files of these lengths, in the order of the references.
    fn joined(&self, lengths: &[u64]) -> Option<Segments> {
        let mut parts: Vec<(u64, Places)> = Vec::new();
        for &Run { bytes, place } in &self.runs {
            let Some((nth, start)) = place else {
                parts.push((bytes, Places::Zero));
                continue;
            };
            let length = lengths.get(nth)?;
            // A file that is too short: what it has of its extent is there.
            let here = length.saturating_sub(start).min(bytes);
            // The descriptor itself is the first consumer.
            parts.push((here, Places::Striped(0, vec![(nth + 1, start)])));
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
        self.parts.clone()
    }

    fn over(&self, lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        self.joined(lengths).map(|disk| Arc::new(disk) as _)
    }
}

//! Runs that disks have told of their contents, kept for one answer about a set's.

use crate::base::error::Errno;
use crate::base::store::{Run, Store};

/// Questions to disks for one answer: each may be a round trip.
pub(super) const MOST_QUESTIONS: usize = 8;

/// Runs that disks have told for one answer. Chunks of a set are short, and runs of its disks long:
/// without them every chunk would be a question.
#[derive(Default)]
pub(super) struct KnownRuns(Vec<(usize, u64, Run)>);

impl KnownRuns {
    /// The run at `offset` of a disk, within a piece of so many bytes; the disk is asked about as
    /// many as the whole question has. Errors: those of the disk, and [`Errno::Io`] where
    /// enough was asked.
    pub(super) fn at(
        &mut self,
        (index, store): (usize, &dyn Store),
        offset: u64,
        (piece, asked): (u64, u64),
    ) -> Result<Run, Errno> {
        let left = |&(of, from, run): &(usize, u64, Run)| {
            let left = run.length.checked_sub(offset.checked_sub(from)?)?;
            (of == index && left > 0).then_some(Run { length: left.min(piece), ..run })
        };
        if let Some(known) = self.0.iter().find_map(left) {
            return Ok(known);
        }
        if self.0.len() >= MOST_QUESTIONS {
            return Err(Errno::Io);
        }
        // What reaches past the end is the disk's to refuse.
        let room = store.length().saturating_sub(offset);
        let run = store.extent(offset, asked.min(room).max(piece))?;
        self.0.push((index, offset, run));
        Ok(Run { length: run.length.min(piece), ..run })
    }
}

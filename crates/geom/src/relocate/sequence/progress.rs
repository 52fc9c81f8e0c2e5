//! Progress of a sequence on a disk, as its table alone tells it.

use super::{Sectors, Sequence, State, after};
use crate::base::error::Errno;
use crate::base::store::Store;
use std::ops::Range;

/// Progress of a sequence on a disk without a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of stages that are behind it.
    pub done: usize,
    /// Number of all stages.
    pub stages: usize,
    /// True if the table is between two states: the next stage was writing it.
    pub is_half: bool,
    /// Sectors of tables that have to stay as they are in this state, in bytes: those that the
    /// sequence knows, and those in partitions that are still to move.
    pub tables: Vec<Range<u64>>,
}

impl Progress {
    /// True if some of it is done and some is not, so that a way forward and one back are open.
    pub fn is_under_way(&self) -> bool {
        self.is_half || (self.done > 0 && self.done < self.stages)
    }
}

impl Sequence {
    /// Progress on `disk`, the provider with the table; `None` for a table of no state of it.
    pub fn progress(&self, disk: &dyn Store) -> Result<Option<Progress>, Errno> {
        if disk.length() != self.medium {
            return Ok(None);
        }
        let (done, is_half) = match self.state(disk)? {
            State::Whole(done) => (done, false),
            State::Half(done) => (done, true),
            State::Other => return Ok(None),
        };
        let (mut known, mut appear) = (Sectors::new(), self.appear());
        for n in 0..=done {
            known.extend(appear.remove(&n).unwrap_or_default());
            self.stages.get(n).filter(|_| n < done).into_iter().for_each(|s| after(&mut known, s));
        }
        let mut tables: Vec<Range<u64>> =
            known.into_keys().map(|at| at..at.saturating_add(self.sector)).collect();
        if let Some(stage) = self.stages.get(done).filter(|_| is_half) {
            tables.extend(stage.turn.fresh.iter().map(|patch| patch.offset..patch.end()));
        }
        for (n, sectors) in appear {
            let moves = self.stages[done..n].iter().rev().filter_map(|stage| stage.moved);
            tables.extend(sectors.into_keys().map(|there| {
                // Back to where it is now, move by move.
                let at = moves.clone().fold(there, |at, moved| {
                    let inside = at.checked_sub(moved.to).filter(|&inside| inside < moved.length);
                    inside.map_or(at, |inside| moved.from.saturating_add(inside))
                });
                at..at.saturating_add(self.sector)
            }));
        }
        Ok(Some(Progress { done, stages: self.stages.len(), is_half, tables }))
    }
}

//! Writes of a layout in order: the tables inside a partition are complete before the partition
//! appears.
//!
//! # Order
//! | the partition | its inner table is written |
//! |---|---|
//! | is new, and no table that is there shows the sectors of the inner table | before the outer table: both appear at once |
//! | is new, and the old table shows some of these sectors | between the outer table without the partition, and with it |
//! | is there already, or shares sectors with the table around it | after the outer table |
//!
//! One sector makes a partition appear, and another makes a table inside an old partition change:
//! only the first case is one step. [`Stage::leaves`] describes the state that an interruption
//! leaves in the others.

use crate::base::patch::Patch;
use crate::table::Table;
use std::ops::Range;

/// Writes that change the visible contents at most once, in addresses of the target.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Writes in order. All of the stage before are on the medium first.
    pub patches: Vec<Patch>,
    /// State once they are on the medium, in words; `None` if it equals the old one or the whole
    /// layout.
    pub leaves: Option<String>,
}

impl Stage {
    /// A stage with the state in `leaves`; `None` where it writes nothing.
    pub(super) fn unless_empty(patches: Vec<Patch>, leaves: Option<String>) -> Option<Stage> {
        (!patches.is_empty()).then_some(Stage { patches, leaves })
    }

    /// The same writes at a place that no table shows.
    fn unseen(self) -> Stage {
        Stage { leaves: None, ..self }
    }
}

/// All writes of `stages`, each stage after a flush.
pub fn in_order(stages: &[Stage]) -> Vec<Patch> {
    let mut patches: Vec<Patch> = Vec::new();
    for stage in stages {
        let first = patches.len();
        patches.extend(stage.patches.iter().cloned());
        if let Some(patch) = patches.get_mut(first).filter(|_| first > 0) {
            patch.after_flush = true;
        }
    }
    patches
}

/// Tables inside one table, by the time at which they are written.
#[derive(Default)]
pub(super) struct Inside {
    before: Vec<Stage>,
    between: Vec<Stage>,
    after: Vec<Stage>,
    /// Indexes of the partitions that the outer table gets last.
    pub(super) held: Vec<u32>,
}

/// Time at which an inner table is written, relative to the one around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Before,
    Between,
    After,
}

impl Inside {
    /// Adds the writes inside the partition `index`.
    pub(super) fn add(&mut self, index: u32, when: When, stages: Vec<Stage>) {
        if stages.is_empty() {
            return;
        }
        match when {
            When::Before => self.before.extend(stages.into_iter().map(Stage::unseen)),
            When::After => self.after.extend(stages),
            When::Between => {
                self.held.push(index);
                self.between.extend(stages.into_iter().map(Stage::unseen));
            }
        }
    }

    /// All stages in order. `without` is the outer table lacking the partitions that are held,
    /// `whole` the complete one.
    pub(super) fn around(self, without: Option<Stage>, whole: Option<Stage>) -> Vec<Stage> {
        let parts =
            [self.before, Vec::from_iter(without), self.between, Vec::from_iter(whole), self.after];
        parts.into_iter().flatten().collect()
    }

    /// True if some are written after the table around them.
    pub(super) fn follow(&self) -> bool {
        !self.after.is_empty()
    }
}

/// Ranges of a provider that its table shows: a write there changes the visible contents.
pub(super) fn shown(table: &Table) -> Vec<Range<u64>> {
    // The table itself lies outside the range for partitions, or right before one.
    let own = [0..table.usable.start, table.usable.end..u64::MAX];
    let entries = table
        .entries
        .iter()
        .map(|e| e.partition.start.saturating_sub(table.lead)..e.partition.end());
    own.into_iter().chain(table.taken.iter().cloned()).chain(entries).collect()
}

/// True if some of `stages`, whose addresses begin at `offset`, write into one of `ranges`.
pub(super) fn meet(stages: &[Stage], offset: u64, ranges: &[Range<u64>]) -> bool {
    let mut patches = stages.iter().flat_map(|stage| &stage.patches);
    patches.any(|p| {
        ranges.iter().any(|r| {
            p.offset.saturating_sub(offset) < r.end && r.start < p.end().saturating_sub(offset)
        })
    })
}

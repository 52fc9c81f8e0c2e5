//! A table that is read and never written, in the form in which tables are shown.

use crate::base::patch::Patch;
use crate::base::store::Sparse;
use crate::mapping::slices::{PartitionType, Slice, Slices};
use crate::probe::Probe;
use crate::table::scheme::{New, Scheme, TableSite};
use crate::table::{Entry, Refusal, Table};

/// The scheme of one table that cannot be edited: its class's name and the names of its
/// partitions, as tasting found them. Every edit is refused.
pub struct ReadOnly {
    class: &'static str,
    slices: Vec<Slice>,
}

/// The scheme that a table itself knows, which lives longer than the names of one table's
/// partitions do. It refuses every edit too.
static UNNAMED: ReadOnly = ReadOnly { class: "this kind", slices: Vec::new() };

impl ReadOnly {
    /// The scheme and the table of `slices`, which a class called `class` found on a provider of
    /// `length` bytes with sectors of `sector` bytes.
    pub fn new(
        class: &'static str,
        slices: &Slices,
        sector: u64,
        length: u64,
    ) -> (ReadOnly, Table) {
        let entry = |slice: &Slice| Entry {
            partition: slice.partition.clone(),
            attributes: 0,
            from: Some(slice.partition.index),
        };
        let mut entries: Vec<Entry> = slices.entries.iter().map(entry).collect();
        entries.sort_by_key(|entry| entry.partition.index);
        let table = Table {
            scheme: &UNNAMED,
            sector,
            length,
            origin: 0,
            usable: slices.usable.clone(),
            capacity: entries.last().map_or(0, |entry| entry.partition.index),
            kept: Vec::new(),
            entries,
            id: None,
            dialect: None,
            geometry: None,
            attributes: 0,
            lead: 0,
            taken: Vec::new(),
            damage: Vec::new(),
            raw: Sparse::default(),
        };
        (ReadOnly { class, slices: slices.entries.clone() }, table)
    }

    fn refusal(&self) -> Refusal {
        Refusal::new(format!("tables of {} are only read", self.class), "use its system's own tool")
    }
}

impl Scheme for ReadOnly {
    fn name(&self) -> &'static str {
        self.class
    }

    fn is_editable(&self) -> bool {
        false
    }

    fn read(&self, _: &Probe<'_>) -> Option<Table> {
        None
    }

    fn create(&self, _: &Probe<'_>, _: &TableSite<'_>, _: &New) -> Result<Table, Refusal> {
        Err(self.refusal())
    }

    fn suffix(&self, entry: &Entry) -> String {
        let same = |slice: &&Slice| {
            (slice.partition.index, slice.partition.start)
                == (entry.partition.index, entry.partition.start)
        };
        self.slices.iter().find(same).map_or_else(String::new, |slice| slice.suffix.clone())
    }

    fn kind(&self, _: &str) -> Option<PartitionType> {
        None
    }

    fn accept(&self, _: &Table, _: &Entry) -> Result<(), Refusal> {
        Err(self.refusal())
    }

    fn render(&self, _: &Table, _: &Table) -> Vec<Patch> {
        Vec::new()
    }

    fn erase(&self, _: &Table) -> Vec<Patch> {
        Vec::new()
    }
}

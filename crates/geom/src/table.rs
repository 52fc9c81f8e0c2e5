//! Partition table in memory, and the edits that are the same for all schemes.
//!
//! Reading and writing are the scheme's ([`crate::table::scheme::Scheme`]); overlap, the choice of
//! an index and of a place, resizing and undoing are here.

use crate::base::ondisk::Guid;
use crate::base::store::Sparse;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Dialect, PartitionType, free_within, place};
use crate::table::scheme::{Attribute, Geometry, Id, Scheme, TableSite};
use std::ops::Range;

mod autofill;
mod editor;
pub(crate) mod geometry;
mod place;
pub mod read_only;
mod refusal;
pub mod scheme;
pub mod turn;
pub mod types;

pub use editor::Editor;
pub(crate) use place::free_ranges;
pub use place::{Request, Rules};
pub use refusal::{Advice, Property, Refusal};

/// Partition table that can be edited.
#[derive(Clone, Debug)]
pub struct Table {
    /// Scheme that reads and writes it; text shows its name, such as `GPT`.
    pub scheme: &'static dyn Scheme,
    /// Logical sector in bytes.
    pub sector: u64,
    /// Length in bytes of the provider it lies on.
    pub length: u64,
    /// Bytes that the table's own numbers add to addresses of the provider: 0, unless they count
    /// from elsewhere.
    pub origin: u64,
    /// Range in which partitions may lie, in bytes.
    pub usable: Range<u64>,
    /// Greatest index of an entry.
    pub capacity: u32,
    /// Indexes that no partition gets, or whose entries are no partitions here.
    pub kept: Vec<u32>,
    /// Entries in use, by index.
    pub entries: Vec<Entry>,
    /// Identity of the table; `None` if it has none.
    pub id: Option<Id>,
    /// Flavour of a BSD label.
    pub dialect: Option<Dialect>,
    /// Geometry by which the table counts cylinders; `None` for none.
    pub geometry: Option<Geometry>,
    /// Attribute bits of the table itself.
    pub attributes: u64,
    /// Bytes before every partition that belong to the table: an EBR.
    pub lead: u64,
    /// Ranges of `usable` that belong to the table.
    pub taken: Vec<Range<u64>>,
    /// Faults of the table in words. A damaged table can be shown, recovered or destroyed, and
    /// nothing else.
    pub damage: Vec<String>,
    /// Bytes that it was read from.
    pub raw: Sparse,
}

/// One partition of a table as it is edited: in a damaged table it may lie anywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Facts that the table records of it.
    pub partition: Partition,
    /// Attribute bits of the scheme, as they are on the disk.
    pub attributes: u64,
    /// Index it was read at, whose bytes it keeps; `None` for a new one.
    pub from: Option<u32>,
}

impl Entry {
    /// Names of the attributes that are set on it.
    pub fn marks(&self, scheme: &dyn Scheme) -> Vec<&'static str> {
        let set = |a: &&Attribute| !a.of_table && self.attributes & a.bit == a.bit;
        scheme.attributes().iter().filter(set).map(|a| a.name).collect()
    }
}

/// Partition to add. A `None` is chosen.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Type of the partition.
    pub kind: PartitionType,
    /// Place of the partition.
    pub place: Request,
    /// Number from 1; `None` for the least free one.
    pub index: Option<u32>,
    /// Name, of schemes that have names.
    pub label: Option<String>,
    /// GUID, of schemes that have GUIDs.
    pub uuid: Option<Guid>,
    /// Attribute bits of the scheme.
    pub attributes: u64,
}

impl Table {
    /// An empty table without room for entries, on a provider of `length` bytes.
    pub fn new(scheme: &'static dyn Scheme, sector: u64, length: u64) -> Table {
        Table {
            scheme,
            sector,
            length,
            origin: 0,
            usable: 0..0,
            capacity: 0,
            kept: Vec::new(),
            entries: Vec::new(),
            id: None,
            dialect: None,
            geometry: None,
            attributes: 0,
            lead: 0,
            taken: Vec::new(),
            damage: Vec::new(),
            raw: Sparse::new(length),
        }
    }

    /// The entry with number `index`, if it is in use.
    pub fn entry(&self, index: u32) -> Option<&Entry> {
        self.entries.iter().find(|e| e.partition.index == index)
    }

    /// Entries in the order of their starts.
    pub fn by_start(&self) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.entries.iter().collect();
        entries.sort_by_key(|e| (e.partition.start, e.partition.index));
        entries
    }

    /// Ranges of `usable` that neither a partition nor the table takes, in ascending order.
    pub fn free(&self) -> Vec<Range<u64>> {
        let entries = self.entries.iter().map(|entry| entry.partition.range());
        free_within(&self.usable, entries.chain(self.taken.iter().cloned()))
    }

    /// The bytes of `entry` as gpart(8) counts them: in an EBR with the range before it that
    /// belongs to the table.
    pub fn counted(&self, entry: &Entry) -> Range<u64> {
        let own = self.taken.iter().find(|r| self.lead > 0 && r.end == entry.partition.start);
        own.map_or(entry.partition.start, |r| r.start)..entry.partition.end()
    }

    /// True for the chain of an extended partition before it has a link: no table that could be
    /// lost.
    pub fn is_bare_chain(&self) -> bool {
        self.lead > 0 && self.entries.is_empty()
    }

    /// The least index that is free; `None` if the table is full.
    pub fn free_index(&self) -> Option<u32> {
        (1..=self.capacity).find(|i| !self.kept.contains(i) && self.entry(*i).is_none())
    }

    /// Adds a partition; returns its index.
    pub fn add(
        &mut self,
        site: &TableSite<'_>,
        wanted: Wanted,
        rules: Rules,
    ) -> Result<u32, Refusal> {
        self.require_whole()?;
        self.follow(rules);
        let index = match wanted.index {
            None => self.free_index().ok_or_else(|| self.full())?,
            Some(index) if index == 0 || index > self.capacity || self.kept.contains(&index) => {
                return Err(Refusal::new(
                    format!("index {index} cannot be used"),
                    format!("use 1 to {}", self.capacity),
                ));
            }
            Some(index) if self.entry(index).is_some() => {
                return Err(Refusal::new(
                    format!("index {index} is in use"),
                    Advice::DeleteOrChooseIndex,
                ));
            }
            Some(index) => index,
        };
        let range = place::place(self, site, &wanted.place, rules)?;
        let (label, uuid, attributes) = (wanted.label, wanted.uuid, wanted.attributes);
        let (start, length) = (range.start, range.end - range.start);
        let entry = Entry {
            partition: Partition { index, start, length, kind: wanted.kind, label, guid: uuid },
            attributes,
            from: None,
        };
        self.require_apart(&entry)?;
        self.scheme.accept(self, &entry)?;
        let mut next = self.clone();
        next.put(entry);
        self.scheme.settle(&mut next);
        let given = next
            .entries
            .iter()
            .find(|e| e.partition.start == start)
            .map_or(index, |e| e.partition.index);
        if wanted.index.is_some_and(|wanted| wanted != given) {
            let found = format!(
                "a partition at {} gets index {given}, by its place",
                place(start, self.sector)
            );
            return Err(Refusal::new(found, Advice::LeaveOut(Property::Index)));
        }
        *self = next;
        Ok(given)
    }

    /// Removes the partition with number `index`, and returns it.
    pub fn delete(&mut self, index: u32) -> Result<Entry, Refusal> {
        self.require_whole()?;
        let at = self.position(index)?;
        let entry = self.entries.remove(at);
        self.scheme.settle(self);
        Ok(entry)
    }

    /// Changes the type or the name of the partition with number `index`.
    pub fn modify(
        &mut self,
        index: u32,
        kind: Option<PartitionType>,
        label: Option<String>,
    ) -> Result<(), Refusal> {
        self.change(index, |entry| {
            entry.partition.kind = kind.unwrap_or(entry.partition.kind);
            entry.partition.label = label.or(entry.partition.label.take());
        })
    }

    /// Changes the size of the partition with number `index`: to that of `place`, or to all that is
    /// free behind it.
    pub fn resize(
        &mut self,
        site: &TableSite<'_>,
        index: u32,
        place: &Request,
        rules: Rules,
    ) -> Result<(), Refusal> {
        self.require_whole()?;
        self.follow(rules);
        let entry = self.entries[self.position(index)?].clone();
        let length = place::resize(self, site, &entry, place, rules)?;
        self.require_apart(&Entry { partition: Partition { length, ..entry.partition }, ..entry })?;
        self.change(index, |entry| entry.partition.length = length)?;
        self.scheme.settle(self);
        Ok(())
    }

    /// Gives the partition with number `index` another place of the same size: from `to` on, or the
    /// nearest on the best grain on which there is room. Returns its first byte. The contents stay
    /// where they are: [`crate::relocate`] moves them.
    pub fn relocate(
        &mut self,
        site: &TableSite<'_>,
        index: u32,
        to: Option<u64>,
    ) -> Result<u64, Refusal> {
        self.relocate_inside(site, index, to, 0)
    }

    /// As [`Table::relocate`], for the byte at offset `inside` of the partition, which comes out on
    /// the grain: that of a slice or of a data area in it.
    pub fn relocate_inside(
        &mut self,
        site: &TableSite<'_>,
        index: u32,
        to: Option<u64>,
        inside: u64,
    ) -> Result<u64, Refusal> {
        self.require_whole()?;
        let entry = self.entries[self.position(index)?].clone();
        if self.lead > 0 {
            let found = format!(
                "a logical partition is a link of a chain: its {} lies before it",
                self.scheme
            );
            return Err(Refusal::new(found, "move the extended partition, with all that is in it"));
        }
        // Bytes that overlap another partition must not be moved.
        self.require_apart(&entry)?;
        let start = place::relocate(self, site, &entry, to, inside)?;
        // The new range may overlap only the partition's own old one.
        self.require_apart(&Entry {
            partition: Partition { start, ..entry.partition.clone() },
            ..entry.clone()
        })?;
        self.change(index, |entry| entry.partition.start = start)?;
        self.scheme.settle(self);
        match self.entry(index).is_some_and(|moved| moved.partition.start == start) {
            true => Ok(start),
            false => Err(Refusal::new(
                format!("at {} it would not keep its index", place(start, self.sector)),
                "",
            )),
        }
    }

    /// Sets or unsets `attribute` on the partition with number `index`, or on the table.
    pub fn mark(
        &mut self,
        index: Option<u32>,
        attribute: &Attribute,
        on: bool,
    ) -> Result<(), Refusal> {
        self.require_whole()?;
        let scheme = self.scheme;
        let set = |bits: &mut u64| {
            *bits = if on { *bits | scheme.sets(attribute) } else { *bits & !attribute.bit }
        };
        match index {
            None if attribute.of_table => set(&mut self.attributes),
            None => {
                return Err(Refusal::new(
                    format!("{} belongs to a partition", attribute.name),
                    Advice::NameIndex,
                ));
            }
            Some(_) if attribute.of_table => {
                return Err(Refusal::new(
                    format!("{} belongs to the table", attribute.name),
                    Advice::LeaveOut(Property::Index),
                ));
            }
            Some(index) => {
                self.position(index)?;
                if on && attribute.exclusive {
                    self.entries.iter_mut().for_each(|e| e.attributes &= !attribute.bit);
                }
                self.change(index, |entry| set(&mut entry.attributes))?;
            }
        }
        Ok(())
    }

    /// Sets gpart's geometry under gpart's rules, for the CHS fields of an MBR, which no kernel
    /// reads.
    fn follow(&mut self, rules: Rules) {
        if rules != Rules::Aligned && matches!(self.scheme.name(), "MBR" | "EBR") {
            self.geometry.get_or_insert(Geometry::derive(self.length, self.sector));
        }
    }

    /// Refuses edits of a damaged table.
    fn require_whole(&self) -> Result<(), Refusal> {
        match self.damage.as_slice() {
            [] => Ok(()),
            damage => Err(Refusal::new(
                format!("the {} is damaged: {}", self.scheme, damage.join("; ")),
                Advice::Recover,
            )),
        }
    }

    fn full(&self) -> Refusal {
        Refusal::new(
            format!("all {} entries of the {} are in use", self.capacity, self.scheme),
            "delete one",
        )
    }

    fn position(&self, index: u32) -> Result<usize, Refusal> {
        self.entries.iter().position(|e| e.partition.index == index).ok_or_else(|| {
            let used: Vec<String> =
                self.entries.iter().map(|e| e.partition.index.to_string()).collect();
            let used = if used.is_empty() { "none".into() } else { used.join(", ") };
            Refusal::new(
                format!("there is no partition with index {index}"),
                format!("in use: {used}"),
            )
        })
    }

    fn change(&mut self, index: u32, change: impl FnOnce(&mut Entry)) -> Result<(), Refusal> {
        self.require_whole()?;
        let at = self.position(index)?;
        let mut entry = self.entries[at].clone();
        change(&mut entry);
        self.scheme.accept(self, &entry)?;
        self.entries[at] = entry;
        Ok(())
    }

    fn put(&mut self, entry: Entry) {
        let at = self.entries.partition_point(|e| e.partition.index < entry.partition.index);
        self.entries.insert(at, entry);
    }

    /// Refuses `entry` unless it lies within the usable range and overlaps no other.
    fn require_apart(&self, entry: &Entry) -> Result<(), Refusal> {
        let (range, sector) = (entry.partition.range(), self.sector);
        let usable = self.scheme.bounds(self);
        let bounds = || {
            format!(
                "partitions lie from {} up to {}",
                place(usable.start, sector),
                place(usable.end, sector)
            )
        };
        if range.is_empty() {
            return Err(Refusal::new("a partition of no bytes", "give it a size"));
        }
        if range.start < usable.start || range.end > usable.end {
            let found = format!(
                "{} bytes at {} do not lie where partitions may",
                entry.partition.length,
                place(entry.partition.start, sector)
            );
            return Err(Refusal::new(found, bounds()));
        }
        let others = self
            .entries
            .iter()
            .filter(|e| e.partition.index != entry.partition.index)
            .map(|e| (format!("index {}", e.partition.index), e.partition.range()));
        let own = self.taken.iter().map(|r| ("the table itself".to_string(), r.clone()));
        // The bytes before an existing entry that belong to the table are its own.
        let lead = range.start.saturating_sub(if entry.from.is_none() { self.lead } else { 0 });
        match others.chain(own).find(|(_, r)| r.start < range.end && lead < r.end) {
            None => Ok(()),
            Some((name, other)) => {
                let found = format!(
                    "{} bytes at {} overlap {name}",
                    entry.partition.length,
                    place(entry.partition.start, sector)
                );
                let advice = format!(
                    "it takes {} up to {}",
                    place(other.start, sector),
                    place(other.end, sector)
                );
                Err(Refusal::new(found, advice))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_another_partition_frees_nothing_of_it() {
        let mut table = Table { usable: 0..100, ..Table::new(&crate::class::gpt::Gpt, 1, 100) };
        table.taken = vec![10..60, 20..30, 70..80];
        assert_eq!(table.free(), [0..10, 60..70, 80..100]);
    }
}

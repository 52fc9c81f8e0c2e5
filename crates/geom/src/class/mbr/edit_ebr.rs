//! Editing the chain of logical partitions, as a table on the extended partition.
//!
//! All places count from the extended partition. Logical partitions have no numbers on the disk:
//! they are numbered along the chain, from 5, so deleting one renumbers those behind it. Edits of
//! the chain are in [`crate::class::mbr::chain`].
//!
//! # Limits
//! 128 EBRs. Of a disk with two extended partitions, each is numbered from 5 here. In a chain that
//! is damaged nothing is edited; recovering it cuts off a last link that leads nowhere.
//!
//! # Sources
//! As [`crate::class::mbr::ebr`].

use super::chain::{ChainEdit, FIRST, Node};
use super::ebr::{Chain, LINKS, Medium, walk};
use super::edit::{ATTRIBUTES, blank, check_kind, check_site, in_order};
use super::kinds::kind;
use super::{Ebr, Record};
use crate::base::patch::Patch;
use crate::base::store::Sparse;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{PartitionType, Slice};
use crate::probe::Probe;
use crate::table::scheme::{Attribute, Geometry, New, Scheme, TableSite};
use crate::table::{Advice, Entry, Property, Refusal, Rules, Table};

/// Largest number that a logical partition can have: one in each of [`LINKS`] EBRs.
const LAST: u32 = 132;
const _: () = assert!(LINKS == 128 && FIRST == 5);

fn chain(read: &dyn Fn(u64) -> Option<Record>, sector: u64, length: u64) -> Chain {
    walk(&Medium::of(read, sector, length), &(0..length), FIRST)
}

/// The chain that a table was read from; empty for one that is not on the disk yet.
fn chain_of(raw: &Sparse, table: &Table) -> Chain {
    chain(&|at| Record::read_at(raw, at), table.sector, table.length)
}

fn plan(raw: &Sparse, table: &Table) -> Result<ChainEdit, Refusal> {
    ChainEdit::new(&chain_of(raw, table).links, table)
}

fn empty(sector: u64, length: u64, origin: u64) -> Table {
    let table = blank(&Ebr, sector, length);
    Table {
        origin,
        capacity: LAST,
        kept: (1..FIRST).collect(),
        lead: sector,
        usable: 0..table.usable.end,
        ..table
    }
}

impl Scheme for Ebr {
    fn name(&self) -> &'static str {
        "EBR"
    }

    fn read(&self, probe: &Probe<'_>) -> Option<Table> {
        let (sector, length) = (probe.sector(), probe.length());
        probe.kind().filter(|kind| kind.is_extended())?;
        check_site(probe).ok()?;
        let chain = chain(&|at| probe.read(at), sector, length);
        chain.links.first()?;
        let mut table = empty(sector, length, probe.start().unwrap_or(0));
        for link in &chain.links {
            table.raw.put(link.at, &probe.bytes(link.at, usize::try_from(sector).ok()?)?);
        }
        let flags = chain.links.iter().flat_map(|l| {
            l.data.iter().map(|&slot| l.record.partition_record[slot].boot_indicator)
        });
        let entry = |(slice, flag): (Slice, u8)| Entry {
            attributes: u64::from(flag),
            from: Some(slice.partition.index),
            partition: slice.partition,
        };
        table.entries = chain.logicals.iter().cloned().zip(flags).map(entry).collect();
        table.damage = chain.findings.into_iter().map(|f| f.message).collect();
        self.settle(&mut table);
        Some(table)
    }

    fn create(&self, probe: &Probe<'_>, site: &TableSite<'_>, new: &New) -> Result<Table, Refusal> {
        check_site(probe)?;
        if !site.kind.is_some_and(PartitionType::is_extended) {
            return Err(Refusal::new("this is no extended partition", Advice::AddExtended));
        }
        if new.entries.is_some() {
            return Err(Refusal::new("a number of entries", Advice::LeaveOut(Property::Entries)));
        }
        if new.id.is_some() {
            return Err(Refusal::new("an identity", "only the MBR has one"));
        }
        let mut table = empty(probe.sector(), probe.length(), site.base);
        let first = probe.bytes(0, usize::try_from(table.sector).unwrap_or(0));
        table
            .raw
            .put(0, &first.ok_or_else(|| Refusal::new("the first sector cannot be read", ""))?);
        if chain_of(&table.raw, &table)
            .links
            .iter()
            .any(|link| !link.data.is_empty() || link.next.is_some())
        {
            return Err(Refusal::new(
                "there is a chain of logical partitions, or a boot sector that looks like one",
                "destroy it first",
            ));
        }
        table.usable = new.usable(table.usable.clone(), self.bounds(&table), table.sector)?;
        table.geometry = match (new.geometry, new.rules) {
            (None, Rules::Aligned) => None,
            (None, Rules::Gpart | Rules::Gpart9) => {
                Some(Geometry::derive(table.length, table.sector))
            }
            (given, _) => given,
        };
        Ok(table)
    }

    fn suffix(&self, entry: &Entry) -> String {
        format!("s{}", entry.partition.index)
    }

    fn kind(&self, name: &str) -> Option<PartitionType> {
        kind(name)
    }

    fn attributes(&self) -> &'static [Attribute] {
        ATTRIBUTES
    }

    fn accept(&self, table: &Table, entry: &Entry) -> Result<(), Refusal> {
        check_kind(table, entry)?;
        if entry.partition.kind.is_extended() {
            return Err(Refusal::new(
                "an extended partition inside another",
                "logical partitions go into the one there is",
            ));
        }
        if entry.partition.start < table.sector {
            return Err(Refusal::new(
                "the first sector of an extended partition holds the first EBR",
                format!("begin at {} or behind it", table.sector),
            ));
        }
        let mut with = table.clone();
        with.entries.retain(|e| e.partition.index != entry.partition.index);
        with.entries.push(entry.clone());
        plan(&table.raw, &with).map(|_| ())
    }

    fn settle(&self, table: &mut Table) {
        // A change that cannot be planned was refused by `accept`, or the table is damaged and
        // stays as it is.
        let Ok(plan) = plan(&table.raw, table) else { return };
        let along = plan.last.iter().flat_map(|node| node.data.iter().map(|(_, e)| e.clone()));
        table.entries = (FIRST..)
            .zip(along)
            .map(|(index, e)| Entry { partition: Partition { index, ..e.partition }, ..e })
            .collect();
        table.taken = plan.taken(table);
    }

    fn render(&self, before: &Table, after: &Table) -> Vec<Patch> {
        let (raw, sector) = (&before.raw, before.sector);
        let links = chain_of(raw, before).links;
        let Ok(plan) = ChainEdit::new(&links, after) else { return Vec::new() };
        let none = Sparse::new(0);
        let patch = |node: &Node, what| {
            let beneath = if node.is_new || links.is_empty() { &none } else { raw };
            Patch::new(node.at, node.record.within(beneath, node.at, sector), what)
        };
        let mut patches: Vec<Patch> = Vec::new();
        for node in &plan.middle {
            if links.iter().any(|link| link.at == node.at && link.record != node.record) {
                patches.push(in_order(&patches, patch(node, "EBR")));
            }
        }
        let new = plan.last.iter().filter(|n| n.is_new).enumerate();
        let new: Vec<Patch> =
            new.map(|(i, n)| {
                if i == 0 { in_order(&patches, patch(n, "new EBR")) } else { patch(n, "new EBR") }
            })
            .collect();
        patches.extend(new);
        for node in plan.last.iter().filter(|n| !n.is_new) {
            let is_there = plan.middle.iter().any(|m| m.at == node.at && m.record == node.record)
                && !links.is_empty();
            if !is_there {
                patches.push(in_order(&patches, patch(node, "EBR that leads to it")));
            }
        }
        patches
    }

    fn erase(&self, table: &Table) -> Vec<Patch> {
        vec![Patch::new(0, vec![0; usize::try_from(table.sector).unwrap_or(0)], "first EBR")]
    }

    fn recover(&self, table: &Table, _site: &TableSite<'_>) -> Result<Table, Refusal> {
        let chain = chain_of(&table.raw, table);
        if chain.findings.len() > usize::from(chain.broken) {
            let found = table.damage.join("; ");
            return Err(Refusal::new(
                found,
                "copy what is left, destroy the chain, and write it anew",
            ));
        }
        let mut whole = Table { damage: Vec::new(), ..table.clone() };
        self.settle(&mut whole);
        Ok(whole)
    }
}

//! Edits of a chain of EBRs.
//!
//! The old chain becomes the new one in two steps, and each step can be cut short anywhere:
//!
//! 1. Deleted partitions are skipped: one sector each, the EBR before. Types, flags and sizes
//!    change in their own EBR.
//! 2. New EBRs are written where no link leads; then the one link that makes them visible.
//!
//! So every state on the way is a chain, and no partition that both tables have is ever missing
//! from it.
//!
//! A new partition comes before the first one that lies behind it on the disk; partitions of other
//! tools keep their order. The first EBR stays where it is, at the start of the extended partition.
//! If its partition goes, it takes over the next EBR's, as sfdisk and parted do. Where that EBR
//! holds more than it could take over, it becomes a pure link (a link in its first entry, which
//! Linux and FreeBSD both follow). If a partition comes before its own, that one moves to an EBR in
//! the sector before it, which is kept free for this.
//!
//! Any other new EBR lies 1 MiB before its partition, where sfdisk puts it, or else in the sector
//! before it.

use super::ebr::{LINKS, Link};
use super::edit::BLANK;
use super::{PartitionRecord, Record};
use crate::mapping::slices;
use crate::table::{Entry, Refusal, Table};
use std::ops::Range;

/// The number of the first logical partition.
pub(super) const FIRST: u32 = 5;
/// Bytes from an EBR to its partition, by sfdisk.
const BEFORE: u64 = 1 << 20;
/// Type of a link; FreeBSD follows no other.
const LINK: u8 = 0x05;

/// One EBR of a chain while it is edited.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) at: u64,
    pub(super) record: Record,
    /// Its partitions, each with the index of its entry.
    pub(super) data: Vec<(usize, Entry)>,
    next: Option<usize>,
    /// True if the place of a partition in it has changed.
    changed: bool,
    /// True if nothing of it is on the disk yet.
    pub(super) is_new: bool,
}

/// Chains after the two steps of an edit.
pub(super) struct ChainEdit {
    /// Chain without the deleted partitions.
    pub(super) middle: Vec<Node>,
    /// Chain with the new partitions.
    pub(super) last: Vec<Node>,
    /// Sector that is kept free for the EBR of the first partition.
    kept: Option<Range<u64>>,
}

impl ChainEdit {
    /// Plans the steps from `links` to the entries of `table`; an entry read from them has their
    /// number in [`Entry::from`].
    pub(super) fn new(links: &[Link], table: &Table) -> Result<ChainEdit, Refusal> {
        let chain = Edit { table };
        let middle = chain.survivors(links)?;
        let mut last = middle.clone();
        let mut new: Vec<&Entry> =
            table.entries.iter().filter(|e| !middle.iter().any(|n| n.has(e))).collect();
        new.sort_by_key(|e| e.partition.start);
        for entry in new {
            chain.insert(&mut last, entry)?;
        }
        chain.link(&mut last)?;
        if last.len() > LINKS {
            return Err(Refusal::new(
                format!("{} logical partitions are in use", LINKS),
                "no system reads more; delete one",
            ));
        }
        let kept = last.first().and_then(|first| chain.moved(first, &last));
        Ok(ChainEdit { middle, kept: kept.map(|at| at..at + table.sector), last })
    }

    /// Ranges of the extended partition that partitions cannot take: every EBR, up to its partition
    /// if that is near. An empty first EBR takes none: it serves whatever comes first, even if that
    /// begins right behind it.
    pub(super) fn taken(&self, table: &Table) -> Vec<Range<u64>> {
        let ebr = |node: &Node| {
            let end = node.at.saturating_add(table.sector);
            let near = |start: &u64| {
                node.at < *start
                    && start - node.at <= BEFORE
                    && table
                        .entries
                        .iter()
                        .all(|e| e.partition.end() <= node.at || *start <= e.partition.start)
            };
            node.at..node.start().filter(near).unwrap_or(end)
        };
        let used = self.last.iter().enumerate().filter(|(n, node)| *n > 0 || !node.data.is_empty());
        let mut taken: Vec<Range<u64>> = used.map(|(_, node)| ebr(node)).collect();
        let kept = self
            .kept
            .clone()
            .filter(|kept| !taken.iter().any(|t| t.start <= kept.start && kept.end <= t.end));
        taken.extend(kept);
        taken
    }
}

impl Node {
    fn new(at: u64) -> Node {
        Node {
            at,
            record: Record::empty(),
            data: Vec::new(),
            next: None,
            changed: true,
            is_new: true,
        }
    }

    fn has(&self, entry: &Entry) -> bool {
        self.data.iter().any(|(_, e)| {
            e.partition.index == entry.partition.index && e.partition.start == entry.partition.start
        })
    }

    /// First byte of its first partition; `None` without one.
    fn start(&self) -> Option<u64> {
        self.data.iter().map(|(_, e)| e.partition.start).min()
    }

    /// Byte after its last partition; `None` without one.
    fn end(&self) -> Option<u64> {
        self.data.iter().map(|(_, e)| e.partition.end()).max()
    }

    /// Index of an unused entry, the first of `order`.
    fn free(&self, order: [usize; 4]) -> Option<usize> {
        order.into_iter().find(|&slot| {
            self.next != Some(slot) && self.record.partition_record.get(slot) == Some(&BLANK)
        })
    }

    /// Removes the other links. Readers follow the first of several: where that goes or moves, none
    /// that was passed over may take its place.
    fn forget_links(&mut self) {
        for (slot, entry) in self.record.partition_record.iter_mut().enumerate() {
            if self.next != Some(slot) && entry.kind().is_extended() {
                *entry = BLANK;
            }
        }
    }

    /// True if it holds one partition, a link, and nothing else at all.
    fn is_plain(&self) -> bool {
        let known =
            |slot: usize| self.next == Some(slot) || self.data.iter().any(|(s, _)| *s == slot);
        let code = Record { partition_record: self.record.partition_record, ..Record::empty() };
        let rest = self
            .record
            .partition_record
            .iter()
            .enumerate()
            .all(|(slot, e)| known(slot) || *e == BLANK);
        self.data.len() == 1 && rest && code == self.record
    }
}

struct Edit<'a> {
    table: &'a Table,
}

impl Edit<'_> {
    /// The chain without the deleted partitions, with every other change made in place.
    fn survivors(&self, links: &[Link]) -> Result<Vec<Node>, Refusal> {
        let (mut nodes, mut number): (Vec<Node>, u32) = (Vec::new(), FIRST);
        let mut emptied = false;
        for (position, link) in links.iter().enumerate() {
            let (at, record) = (link.at, link.record.clone());
            let mut node = Node {
                at,
                record,
                data: Vec::new(),
                next: link.next,
                changed: false,
                is_new: false,
            };
            for &slot in &link.data {
                let wanted = self
                    .table
                    .entries
                    .iter()
                    .find(|e| e.from == Some(number) && e.partition.start > at);
                number += 1;
                match wanted {
                    Some(entry) => self.put(&mut node, slot, entry)?,
                    None => node.record.partition_record[slot] = BLANK,
                }
            }
            let gone = !link.data.is_empty() && node.data.is_empty();
            emptied |= gone && position == 0;
            if !gone || position == 0 {
                nodes.push(node);
            }
        }
        if nodes.is_empty() {
            nodes.push(Node { is_new: false, ..Node::new(0) });
        }
        if emptied && nodes.len() > 1 {
            self.refill(&mut nodes)?;
        }
        self.link(&mut nodes)?;
        Ok(nodes)
    }

    /// Gives the first EBR, which lost its partition, that of the second one; or turns it into a
    /// pure link.
    fn refill(&self, nodes: &mut Vec<Node>) -> Result<(), Refusal> {
        let plain = nodes[1].is_plain();
        let Some(slot) = nodes[0].free([0, 1, 2, 3]) else { return Ok(()) };
        if plain {
            let second = nodes.remove(1);
            for (was, entry) in second.data {
                self.take_over(&mut nodes[0], slot, second.record.partition_record[was], &entry)?;
            }
        } else if let Some(link) = nodes[0].next.filter(|&link| slot < link) {
            nodes[0].record.partition_record.swap(slot, link);
            nodes[0].next = Some(slot);
        }
        Ok(())
    }

    /// Puts `entry` into `slot` of `node`.
    fn put(&self, node: &mut Node, slot: usize, entry: &Entry) -> Result<(), Refusal> {
        let on_disk = &mut node.record.partition_record[slot];
        let was = (on_disk.starting_lba, on_disk.size_in_lba);
        on_disk.set(self.table, entry, node.at)?;
        node.changed |= was != (on_disk.starting_lba, on_disk.size_in_lba);
        node.data.push((slot, entry.clone()));
        Ok(())
    }

    /// As [`Edit::put`], of an entry that was `was` in another EBR: it stays where it is, and so do
    /// its CHS fields.
    fn take_over(
        &self,
        node: &mut Node,
        slot: usize,
        was: PartitionRecord,
        entry: &Entry,
    ) -> Result<(), Refusal> {
        node.record.partition_record[slot] = was;
        self.put(node, slot, entry)?;
        let on_disk = &mut node.record.partition_record[slot];
        (on_disk.starting_chs, on_disk.ending_chs) = (was.starting_chs, was.ending_chs);
        Ok(())
    }

    /// Puts a new partition into the chain.
    fn insert(&self, nodes: &mut Vec<Node>, entry: &Entry) -> Result<(), Refusal> {
        let behind = |n: &Node| n.start().is_some_and(|start| start > entry.partition.start);
        let mut at = nodes.iter().position(behind).unwrap_or(nodes.len());
        if at == 0 {
            match self.moved(&nodes[0], nodes) {
                Some(to) => self.move_first(nodes, to)?,
                None => at = 1,
            }
        }
        let first = &mut nodes[0];
        if at <= 1 && first.data.is_empty() {
            // No longer a pure link: the partition comes first.
            if let (Some(link @ 0), Some(to)) = (first.next, first.free([1, 2, 3, 1])) {
                first.record.partition_record.swap(link, to);
                first.next = Some(to);
                first.forget_links();
            }
            if let Some(slot) = first.free([0, 2, 3, 1]).filter(|&slot| slot == 0) {
                return self.put(first, slot, entry);
            }
        }
        let mut node = Node::new(self.place(nodes, entry)?);
        self.put(&mut node, 0, entry)?;
        nodes.insert(at.max(1), node);
        Ok(())
    }

    /// The place of an EBR for the first EBR's partition: the sector before it; `None` if that is
    /// taken.
    fn moved(&self, first: &Node, nodes: &[Node]) -> Option<u64> {
        let blank = |(slot, e): (usize, &PartitionRecord)| {
            first.next == Some(slot) || first.data.iter().any(|(s, _)| *s == slot) || *e == BLANK
        };
        let one =
            first.data.len() == 1 && first.record.partition_record.iter().enumerate().all(blank);
        let at = first.start()?.checked_sub(self.table.sector)?;
        (one && at >= self.table.sector && self.is_free(nodes, at)).then_some(at)
    }

    /// Moves the first EBR's partition to one at `to`.
    fn move_first(&self, nodes: &mut Vec<Node>, to: u64) -> Result<(), Refusal> {
        let mut node = Node::new(to);
        for (slot, entry) in std::mem::take(&mut nodes[0].data) {
            let was = std::mem::replace(&mut nodes[0].record.partition_record[slot], BLANK);
            self.take_over(&mut node, 0, was, &entry)?;
        }
        nodes.insert(1, node);
        Ok(())
    }

    /// The first byte for the EBR of `entry`; refused without a free sector before it.
    fn place(&self, nodes: &[Node], entry: &Entry) -> Result<u64, Refusal> {
        let sector = self.table.sector;
        let kept = self.moved(&nodes[0], nodes);
        let free = |&at: &u64| at >= sector && kept != Some(at) && self.is_free(nodes, at);
        // FreeBSD expects an EBR a track before its partition.
        let track = self
            .table
            .geometry
            .and_then(|g| u64::from(g.sectors).checked_mul(sector))
            .unwrap_or(BEFORE);
        let places =
            [track, BEFORE, sector].map(|before| entry.partition.start.checked_sub(before));
        places.into_iter().flatten().find(free).ok_or_else(|| {
            let found = format!(
                "no room for the EBR of the partition at {}",
                slices::place(entry.partition.start, sector)
            );
            Refusal::new(found, format!("leave {sector} bytes free before it"))
        })
    }

    /// True if neither a partition nor an EBR takes the sector at `at`.
    fn is_free(&self, nodes: &[Node], at: u64) -> bool {
        let end = at.saturating_add(self.table.sector);
        let apart = |r: Range<u64>| r.end <= at || end <= r.start;
        let entries = self.table.entries.iter().all(|e| apart(e.partition.range()));
        entries && nodes.iter().all(|n| apart(n.at..n.at.saturating_add(self.table.sector)))
    }

    /// Links every EBR to the next.
    fn link(&self, nodes: &mut [Node]) -> Result<(), Refusal> {
        // A link that leads nowhere is removed only by a recovery.
        if !self.table.damage.is_empty() {
            return Ok(());
        }
        for i in 0..nodes.len() {
            let next = nodes
                .get(i + 1)
                .map(|n| (n.at, n.end().unwrap_or(n.at + self.table.sector), n.changed));
            self.lead(&mut nodes[i], next)?;
        }
        Ok(())
    }

    /// Links `node` to the next EBR: its first byte, the end of its partitions, and if it has
    /// changed. `None` removes the link.
    fn lead(&self, node: &mut Node, next: Option<(u64, u64, bool)>) -> Result<(), Refusal> {
        let Some((at, end, changed)) = next else {
            if let Some(link) = node.next.take() {
                node.record.partition_record[link] = BLANK;
                node.forget_links();
            }
            return Ok(());
        };
        let full = || {
            Refusal::new(
                "the EBR before has no entry left for a link",
                "add the partition elsewhere",
            )
        };
        let slot = node.next.or_else(|| node.free([1, 2, 3, 0])).ok_or_else(full)?;
        let sector = self.table.sector;
        let field = |bytes: u64| {
            u32::try_from(bytes / sector)
                .map_err(|_| Refusal::new("a link past 2^32 sectors", "use GPT"))
        };
        let (start, size) = (field(at)?, field(end.saturating_sub(at))?);
        let on_disk = &mut node.record.partition_record[slot];
        let leads_there = node.next == Some(slot) && on_disk.starting_lba.get() == start;
        if leads_there && (!changed || on_disk.size_in_lba.get() == size) {
            return Ok(());
        }
        if !on_disk.kind().is_extended() {
            on_disk.os_type = LINK;
        }
        (on_disk.starting_lba, on_disk.size_in_lba) = (start.into(), size.into());
        on_disk.set_chs(self.table, self.table.origin.saturating_add(at) / sector, u64::from(size));
        node.next = Some(slot);
        Ok(())
    }
}

//! Writes of an edited GPT, and their order.
//!
//! # Order
//! The copy that a reader relies on is written last: the backup, then the primary; in a recovery
//! from the backup, the primary, then the backup. One flush lies between. LBA 0 goes with the
//! backup, for then there is a valid primary, which is found whatever an interrupted write leaves
//! there.
//!
//! A table on a disk that had none, or an MBR, comes with LBA 0 last: Linux, blkid and sfdisk look
//! for no GPT without the protective MBR, and treat a protective MBR without a GPT as a disk of its
//! own kind. Where LBA 1 has other contents, a BSD label perhaps, the backup and then LBA 0 go
//! first: with them the GPT exists, whatever becomes of LBA 1. For the same reason LBA 0 is the
//! first to go where a GPT is removed. Where LBA 0 protects another GPT already, that one is found
//! until the new backup is whole, and then the backup until the new primary is.
//!
//! # Bytes that stay
//! A header's bytes past its fields, an entry's past the 128, boot code, and every bit that the
//! edit does not concern. A hybrid MBR is left as it is byte for byte, also where an entry that it
//! mirrors changes: which of its partitions was meant to follow, and whether the other system can
//! bear that, is not to be guessed. `check` reports where the two disagree.
//!
//! # Sources
//! UEFI 2.10 §5.2.3, §5.3; FreeBSD `sys/geom/part/g_part_gpt.c` (the protective entry; what
//! destroying removes).

use super::copies::{Copies, Copy, Flaw, header_crc};
use super::scheme::{ACTIVE, LENOVOFIX};
use super::structures::{self, Header, SIGNATURE};
use super::{Guard, differences};
use crate::base::patch::Patch;
use crate::class::mbr;
use crate::mapping::slices::PartitionType;
use crate::probe::Probe;
use crate::table::scheme::Id;
use crate::table::{Entry, Table};
use std::ops::Range;
use zerocopy::FromBytes;

/// Number of sectors that a table of entries takes: that of the copy to use, or of the usual 128
/// entries.
pub(super) fn array_sectors(copies: &Copies, sector: u64) -> u64 {
    copies.best().map_or(128 * 128, |(copy, _)| copy.bytes()).div_ceil(sector)
}

/// True if each copy can be written without touching the other or a partition.
pub(super) fn is_apart(copies: &Copies, sector: u64) -> bool {
    let (Ok(primary), Ok(backup)) = (&copies.primary, &copies.backup) else { return false };
    let (front, back) = (primary.array(sector), backup.array(sector));
    front.end <= primary.header.first_usable_lba.get()
        && back.start > backup.header.last_usable_lba.get()
        && back.end <= backup.header.my_lba.get()
}

impl Copy {
    /// Length of its table of entries, in bytes.
    fn bytes(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Range of the sectors of its table of entries.
    fn array(&self, sector: u64) -> Range<u64> {
        let from = self.header.partition_entry_lba.get();
        from..from.saturating_add(self.bytes().div_ceil(sector))
    }
}

impl Copies {
    /// Table of entries of each valid copy, as (first byte, bytes), in whole sectors.
    pub(super) fn arrays(&self, sector: u64) -> impl Iterator<Item = (u64, u64)> {
        let valid = [self.primary.as_ref().ok(), self.backup.as_ref().ok()];
        valid.into_iter().flatten().map(move |copy| {
            let array = copy.array(sector);
            (array.start.saturating_mul(sector), (array.end - array.start).saturating_mul(sector))
        })
    }
}

/// Renders an edit, as [`crate::table::scheme::Scheme::render`]; `probe` reads `before.raw`.
pub(super) fn render(
    probe: &Probe<'_>,
    guard: &Guard,
    copies: &Copies,
    before: &Table,
    after: &Table,
) -> Vec<Patch> {
    let last = (after.length / after.sector).saturating_sub(1);
    let new = Writer { probe, before, after, source: copies.best().map(|(copy, _)| copy) };
    let primary = new.copy(copies.primary.as_ref().ok(), "primary GPT", 1, last);
    let backup = new.copy(
        copies.backup.as_ref().ok().filter(|b| b.header.my_lba.get() == last),
        "backup GPT",
        last,
        1,
    );
    let boot = new.boot(guard);
    match copies.best() {
        None if matches!(guard, Guard::Mbr)
            || !matches!(guard, Guard::Protective(_))
                && new.now(1, 1).iter().all(|byte| *byte == 0) =>
        {
            // A header without its entries would be a damaged table: it comes once they are there.
            let (header, entries) =
                primary.split_last().map_or((Vec::new(), Vec::new()), |(header, rest)| {
                    (vec![header.clone()], rest.to_vec())
                });
            ordered(ordered(join([backup, entries].concat()), header), boot.into_iter().collect())
        }
        None => ordered(ordered(backup, boot.into_iter().collect()), join(primary)),
        Some((_, "primary")) => {
            ordered(join([backup, boot.into_iter().collect()].concat()), join(primary))
        }
        Some(_) => ordered(join(primary), join([backup, boot.into_iter().collect()].concat())),
    }
}

/// Removes the table, as [`crate::table::scheme::Scheme::erase`].
///
/// The tables of entries stay: no reader finds them without a header, but a tool that searches may
/// bring them back. The protective MBR is the first to go: without it neither copy counts, and
/// alone it would be found.
pub(super) fn erase(probe: &Probe<'_>, guard: &Guard, copies: &Copies) -> Vec<Patch> {
    let sector = probe.sector();
    let header = |lba: u64| {
        let at = lba.checked_mul(sector)?;
        let own = probe
            .read::<Header>(at)
            .filter(|h| h.signature == *SIGNATURE && (lba == 1 || h.my_lba.get() == lba));
        own.map(|_| blank(at, sector, "GPT header"))
    };
    let boot = matches!(guard, Guard::Protective(_)).then(|| blank(0, sector, "protective MBR"));
    let alternate = copies
        .primary
        .as_ref()
        .map_or_else(Flaw::alternate, |copy| Some(copy.header.alternate_lba.get()));
    let last = (probe.length() / sector).checked_sub(1);
    let mut backups: Vec<u64> =
        [last, alternate, guard.protected()].into_iter().flatten().filter(|&lba| lba > 1).collect();
    backups.sort_unstable();
    backups.dedup();
    ordered(
        boot.into_iter().collect(),
        join(header(1).into_iter().chain(backups.into_iter().filter_map(header)).collect()),
    )
}

fn blank(at: u64, sector: u64, what: &'static str) -> Patch {
    Patch::new(at, vec![0; usize::try_from(sector).unwrap_or(0)], what)
}

/// The patches of `first`, a flush, those of `then`.
fn ordered(first: Vec<Patch>, mut then: Vec<Patch>) -> Vec<Patch> {
    if let Some(patch) = then.first_mut().filter(|_| !first.is_empty()) {
        patch.after_flush = true;
    }
    [first, then].concat()
}

/// Patches in order of offset; adjacent ones become one write, under the name of the last.
fn join(mut patches: Vec<Patch>) -> Vec<Patch> {
    patches.sort_by_key(|p| p.offset);
    let mut joined: Vec<Patch> = Vec::new();
    for patch in patches {
        match joined.last_mut() {
            Some(before) if before.end() == patch.offset => {
                before.bytes.extend(patch.bytes);
                before.what = patch.what;
            }
            _ => joined.push(patch),
        }
    }
    joined
}

/// New table, with the bytes that are kept of the old one.
struct Writer<'a> {
    /// Reader of the present contents.
    probe: &'a Probe<'a>,
    before: &'a Table,
    after: &'a Table,
    /// Copy that was read; `None` for a new table.
    source: Option<&'a Copy>,
}

impl Writer<'_> {
    /// The writes of the copy with its header in sector `lba` and the other one's in `other`. `own`
    /// is the copy that is there now, if it is valid.
    fn copy(&self, own: Option<&Copy>, what: &'static str, lba: u64, other: u64) -> Vec<Patch> {
        let sector = self.after.sector;
        // A copy that differs from the one in use is made anew, as if it were damaged.
        let own = own.filter(|own| {
            self.source.is_some_and(|source| differences(&own.header, &source.header).is_empty())
        });
        let entries = self.entries();
        let sectors = (entries.len() as u64).div_ceil(sector);
        let (first, last) = (self.after.usable.start / sector, self.after.usable.end / sector);
        let fits = |array: &Range<u64>| {
            if lba == 1 { array.end <= first } else { last <= array.start && array.end <= lba }
        };
        let kept = own.map(|own| own.array(sector)).filter(fits);
        let table = kept
            .map_or(if lba == 1 { 2 } else { lba.saturating_sub(sectors) }, |array| array.start);
        let header = self.header(own, &entries, lba, other, table);
        let mut array = self.now(table, sectors);
        let length = array.len().min(entries.len());
        array[..length].copy_from_slice(&entries[..length]);
        let at = |lba: u64| lba.saturating_mul(sector);
        vec![Patch::new(at(table), array, what), Patch::new(at(lba), header, what)]
    }

    /// The whole sector of a header.
    fn header(
        &self,
        own: Option<&Copy>,
        entries: &[u8],
        lba: u64,
        other: u64,
        table: u64,
    ) -> Vec<u8> {
        let sector = self.after.sector;
        let mut bytes = match (own, self.source) {
            (Some(_), _) => self.now(lba, 1),
            (None, Some(source)) => {
                let mut bytes = self.now(source.header.my_lba.get(), 1);
                bytes[index(source.header.header_size.get())..].fill(0);
                bytes
            }
            (None, None) => {
                let mut bytes = vec![0; usize::try_from(sector).unwrap_or(0)];
                bytes[..8].copy_from_slice(SIGNATURE);
                bytes
            }
        };
        let Ok((header, _)) = Header::mut_from_prefix(&mut bytes) else { return bytes };
        if self.source.is_none() {
            header.revision = 0x1_0000.into();
            header.header_size = 92.into();
            header.size_of_partition_entry = 128.into();
            header.number_of_partition_entries = self.after.capacity.into();
        }
        // Ranges that were cut at the end of the disk, or rounded, are not written back without
        // need.
        if self.source.is_none() || self.after.usable != self.before.usable {
            header.first_usable_lba = (self.after.usable.start / sector).into();
            header.last_usable_lba = (self.after.usable.end / sector).saturating_sub(1).into();
        }
        if let Some(Id::Guid(guid)) = self.after.id {
            header.disk_guid = guid;
        }
        header.my_lba = lba.into();
        header.alternate_lba = other.into();
        header.partition_entry_lba = table.into();
        header.partition_entry_array_crc32 = crc32fast::hash(entries).into();
        let size = index(header.header_size.get()).min(bytes.len());
        let crc = header_crc(&bytes[..size]);
        bytes[16..20].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The bytes of all entries, used or not.
    fn entries(&self) -> Vec<u8> {
        let (old, stride) = match self.source {
            Some(source) => {
                (source.entries.clone(), index(source.header.size_of_partition_entry.get()))
            }
            None => (vec![0; index(self.after.capacity) * 128], 128),
        };
        let slot = |n: u32| {
            let start = index(n.saturating_sub(1)).saturating_mul(stride);
            start..start.saturating_add(stride)
        };
        let mut new = old.clone();
        for entry in &self.before.entries {
            new.get_mut(slot(entry.partition.index)).into_iter().for_each(|bytes| bytes.fill(0));
        }
        for entry in &self.after.entries {
            let from =
                entry.from.and_then(|from| Some((self.before.entry(from)?, old.get(slot(from))?)));
            let Some(bytes) = new.get_mut(slot(entry.partition.index)) else { continue };
            if let Some((_, kept)) = from {
                bytes.copy_from_slice(kept);
            }
            put(bytes, from.map(|(before, _)| before), entry, self.after.sector);
        }
        new
    }

    /// The write of LBA 0; `None` where it does not change.
    fn boot(&self, guard: &Guard) -> Option<Patch> {
        let now = self.now(0, 1);
        let mut bytes = now.clone();
        let there = match (guard, self.source) {
            (Guard::Protective(record), Some(_)) => Some(record),
            _ => None,
        };
        let sectors = (self.after.length / self.after.sector).saturating_sub(1);
        let sectors = u32::try_from(sectors).unwrap_or(u32::MAX).to_le_bytes();
        let slot = |n: usize| 446 + 16 * n..446 + 16 * (n + 1);
        let (at, attributes) = match there {
            None => {
                // A table that lost its protective MBR keeps the rest of LBA 0: the MBR's own
                // signature.
                bytes[if self.source.is_some() { 446 } else { 440 }..510].fill(0);
                bytes[slot(0)][..12].copy_from_slice(&[
                    0,
                    0,
                    2,
                    0,
                    mbr::PROTECTIVE,
                    0xff,
                    0xff,
                    0xff,
                    1,
                    0,
                    0,
                    0,
                ]);
                bytes[slot(0)][12..].copy_from_slice(&sectors);
                bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
                (0, 0)
            }
            Some(record) => {
                let at = record
                    .entries()
                    .iter()
                    .position(mbr::PartitionRecord::is_protective)
                    .unwrap_or(0);
                if !self.before.damage.is_empty() {
                    bytes[slot(at)][8..12].copy_from_slice(&[1, 0, 0, 0]);
                    // In a hybrid it covers the range its maker chose.
                    if record.used().next().is_none() {
                        bytes[slot(at)][12..].copy_from_slice(&sectors);
                    }
                }
                (at, self.before.attributes)
            }
        };
        let changed = attributes ^ self.after.attributes;
        if changed & ACTIVE != 0 {
            bytes[slot(at).start] ^= 0x80;
        }
        if changed & LENOVOFIX != 0 {
            let to = usize::from(self.after.attributes & LENOVOFIX != 0);
            let entry = bytes[slot(at)].to_vec();
            bytes.copy_within(slot(to), slot(at).start);
            bytes[slot(to)].copy_from_slice(&entry);
        }
        (bytes != now || self.source.is_none()).then(|| Patch::new(0, bytes, "protective MBR"))
    }

    /// The present contents of `sectors` sectors from `lba`; zeros where they cannot be read.
    fn now(&self, lba: u64, sectors: u64) -> Vec<u8> {
        let length = usize::try_from(sectors.saturating_mul(self.after.sector)).unwrap_or(0);
        let read = lba.checked_mul(self.after.sector).and_then(|at| self.probe.bytes(at, length));
        read.unwrap_or_else(|| vec![0; length])
    }
}

/// Writes the fields that differ between `before` and `entry` into the entry's bytes; all fields of
/// a new one.
fn put(bytes: &mut [u8], before: Option<&Entry>, entry: &Entry, sector: u64) {
    let Ok((raw, _)) = structures::GptEntry::mut_from_prefix(bytes) else { return };
    let same = |of: fn(&Entry, &Entry) -> bool| before.is_some_and(|before| of(before, entry));
    if let PartitionType::Gpt(kind) = entry.partition.kind {
        raw.partition_type_guid = kind;
    }
    if !same(|a, b| a.partition.guid == b.partition.guid) {
        raw.unique_partition_guid = entry.partition.guid.unwrap_or_default();
    }
    if !same(|a, b| {
        (a.partition.start, a.partition.length) == (b.partition.start, b.partition.length)
    }) {
        raw.starting_lba = (entry.partition.start / sector).into();
        raw.ending_lba = (entry.partition.end() / sector).saturating_sub(1).into();
    }
    raw.attributes = entry.attributes.into();
    if !same(|a, b| a.partition.label == b.partition.label) {
        raw.partition_name.fill(0);
        let units = entry.partition.label.iter().flat_map(|label| label.encode_utf16());
        for (field, unit) in raw.partition_name.chunks_exact_mut(2).zip(units) {
            field.copy_from_slice(&unit.to_le_bytes());
        }
    }
}

/// A 32-bit number as an index into bytes that are in memory.
fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

//! GPTs for sectors of another size, and for two sizes at once.
//!
//! # On disk
//! A header lies in the second and in the last sector, so those for 512 and for 4096 bytes lie in
//! different bytes of one disk: at 512 and 4096 at the front; at the back in the last 512 bytes,
//! and at the first of the last 4096. Each names its own array of entries, and counts in its own
//! sectors. The arrays of a universal disk lie behind byte 8192, that for 4096 bytes first, and
//! before the last 4096 bytes in the same order. Its protective entry covers `FFFFFFFF` sectors,
//! which is right for both.
//!
//! # Sources
//! UEFI 2.10 §5.2.3 (`SizeInLBA`), §5.3.1, §5.3.2 (the array may begin anywhere from LBA 2 up to
//! the first usable sector).

use super::Guard;
use super::copies::{Copies, Copy, header_crc};
use super::structures::{GptEntry, Header, SIGNATURE};
use crate::base::resize::{Aim, LARGE, Overlay, SMALL, Tables, Write};
use crate::base::topology::{is_whole, round_up};
use crate::probe::Probe;
use crate::table::{Refusal, Table};
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a header's sector that count, in every size of sector.
const HEAD: usize = 512;

/// Bytes that the arrays and headers take behind the last usable byte.
pub(super) fn tail(copies: &Copies, aim: &Aim) -> u64 {
    let bytes = copies.best().map_or(0, |(copy, _)| copy.entries.len() as u64);
    let arrays = aim.sizes().iter().map(|&size| array(bytes, size, aim));
    arrays.sum::<u64>().saturating_add(aim.grid())
}

/// Bytes of an array for sectors of `size` bytes.
fn array(bytes: u64, size: u64, aim: &Aim) -> u64 {
    round_up(bytes, if aim.universal { LARGE } else { size }).unwrap_or(u64::MAX)
}

/// The writes of the new tables and of zeros over the old ones.
pub(super) fn convert(
    probe: &Probe<'_>,
    guard: &Guard,
    copies: &Copies,
    table: &Table,
    tables: &Tables<'_>,
) -> Result<Vec<Write>, Refusal> {
    let aim = tables.aim;
    let Some((copy, _)) = copies.best() else {
        return Err(Refusal::new("neither copy of its table can be used", ""));
    };
    let Guard::Protective(record) = guard else {
        return Err(Refusal::new("it has no protective MBR", "mend it first"));
    };
    if record.used().next().is_some() {
        let found = "its MBR is a hybrid, which counts sectors of one size";
        return Err(Refusal::new(found, "make the MBR a protective one first"));
    }
    let mut all = Overlay::default();
    clear(&mut all, probe, copies, table);
    let bytes = copy.entries.len() as u64;
    let (mut front, mut back) = (2 * aim.grid(), tables.length.saturating_sub(aim.grid()));
    let mut places = Vec::new();
    for &size in aim.sizes() {
        let length = array(bytes, size, aim);
        back = back.checked_sub(length).ok_or_else(|| Refusal::new("it is too short", ""))?;
        places.push((size, front, back));
        front = front.saturating_add(length);
    }
    let usable = usable(table, aim, front..back)?;
    for (size, primary, backup) in places {
        let entries = entries(copy, table, tables, size)?;
        let last = (tables.length / size).saturating_sub(1);
        for (lba, other, at) in [(1, last, primary), (last, 1, backup)] {
            all.put(at, &entries);
            let place = CopyPlace { size, lba, other, array: at / size, usable: usable.clone() };
            all.put(lba.saturating_mul(size), &header(copy, &entries, &place));
        }
    }
    let mut boot = record.as_ref().clone();
    let sectors = match aim.universal {
        true => u32::MAX,
        false => u32::try_from((tables.length / aim.to).saturating_sub(1)).unwrap_or(u32::MAX),
    };
    boot.protect(sectors);
    all.put(0, boot.as_bytes());
    Ok(all.writes("GPT"))
}

/// Zeros over the old arrays, and over every header that a reader of either size would find.
fn clear(all: &mut Overlay, probe: &Probe<'_>, copies: &Copies, table: &Table) {
    for (at, bytes) in copies.arrays(table.sector) {
        all.zero(at..at.saturating_add(bytes));
    }
    let last = |size: u64| (table.length / size).saturating_sub(1).saturating_mul(size);
    let own = copies.backup.iter().map(|copy| copy.header.my_lba.get() * table.sector);
    for at in [SMALL, LARGE, last(SMALL), last(LARGE)].into_iter().chain(own) {
        if probe.has(at, SIGNATURE) {
            all.zero(at..at.saturating_add(SMALL));
        }
    }
}

/// The range for partitions: what is between the tables, and in it what was usable before, unless
/// that began or ended with the old tables.
fn usable(table: &Table, aim: &Aim, between: Range<u64>) -> Result<Range<u64>, Refusal> {
    let old = table.usable.clone();
    let tight = |gap: u64| gap < LARGE * 2;
    let first = table.entries.iter().map(|entry| entry.partition.start).min();
    let start = if old.start > between.start && !tight(old.start - between.start) {
        round_up(old.start, aim.grid()).filter(|&at| first.is_none_or(|first| at <= first))
    } else {
        None
    };
    let range = start.unwrap_or(between.start)..between.end;
    if range.is_empty() { Err(Refusal::new("it is too short", "")) } else { Ok(range) }
}

/// The entries in sectors of `size` bytes.
fn entries(copy: &Copy, table: &Table, tables: &Tables<'_>, size: u64) -> Result<Vec<u8>, Refusal> {
    let mut entries = copy.entries.clone();
    let stride = usize::try_from(copy.header.size_of_partition_entry.get()).unwrap_or(usize::MAX);
    for entry in &table.entries {
        let partition = &entry.partition;
        let end = tables.end(partition.start, partition.end());
        if !is_whole(partition.start, size) || !is_whole(end, size) || end <= partition.start {
            let found =
                format!("entry {} is not in whole sectors of {size} bytes", partition.index);
            return Err(Refusal::new(found, ""));
        }
        let at = usize::try_from(partition.index.saturating_sub(1)).unwrap_or(usize::MAX);
        let slot = at.checked_mul(stride).and_then(|at| entries.get_mut(at..)).unwrap_or(&mut []);
        if let Ok((slot, _)) = GptEntry::mut_from_prefix(slot) {
            slot.starting_lba = (partition.start / size).into();
            slot.ending_lba = (end / size).saturating_sub(1).into();
        }
    }
    Ok(entries)
}

/// CopyPlace of a copy of the table.
struct CopyPlace {
    /// Size of its sectors in bytes.
    size: u64,
    /// Sector that its header is in.
    lba: u64,
    /// The other header's sector.
    other: u64,
    /// First sector of its array.
    array: u64,
    /// Bytes in which partitions may lie.
    usable: Range<u64>,
}

/// The first bytes of a header's sector.
fn header(copy: &Copy, entries: &[u8], place: &CopyPlace) -> Vec<u8> {
    let mut header: Header = copy.header.clone();
    header.my_lba = place.lba.into();
    header.alternate_lba = place.other.into();
    header.partition_entry_lba = place.array.into();
    header.first_usable_lba = (place.usable.start / place.size).into();
    header.last_usable_lba = (place.usable.end / place.size).saturating_sub(1).into();
    header.header_size = 92.into();
    header.partition_entry_array_crc32 = crc32fast::hash(entries).into();
    let mut bytes = header.as_bytes().to_vec();
    let crc = header_crc(&bytes);
    bytes[16..20].copy_from_slice(&crc.to_le_bytes());
    bytes.resize(HEAD, 0);
    bytes
}

//! MBRs, with the chain of logical partitions, for sectors of another size.
//!
//! # On disk
//! Every number of an MBR and of an EBR counts sectors, so it is divided or multiplied; the records
//! stay at their bytes, at the front of a sector. CHS fields are for geometry 255/63 in sectors of
//! the new size, as sfdisk writes them.
//!
//! # Limits
//! Numbers of 32 bits: 2 TiB in sectors of 512 bytes.
//!
//! # Sources
//! As [`super`] and [`super::ebr`].

use super::ebr::{Link, Medium, walk};
use super::edit::within;
use super::{PartitionRecord, Record};
use crate::base::resize::{Tables, Write};
use crate::base::topology::is_whole;
use crate::mapping::slices::place;
use crate::table::{Advice, Entry, Refusal, Table};
use zerocopy::IntoBytes;

/// The writes of the table and of the chain in its extended partition.
pub(super) fn convert(table: &Table, tables: &Tables<'_>) -> Result<Vec<Write>, Refusal> {
    if tables.aim.universal {
        let found = "an MBR counts sectors of one size";
        return Err(Refusal::new(found, "only a GPT can be right on both: make one instead"));
    }
    let Some(mut record) = Record::read_at(&table.raw, 0) else {
        return Err(Refusal::new("its first sector cannot be read", ""));
    };
    let mut writes = Vec::new();
    // CHS fields are those of a table without a geometry of its own.
    let table = &Table { geometry: None, sector: tables.aim.to, ..table.clone() };
    for entry in &table.entries {
        let (start, end) = (entry.partition.start, entry.partition.end());
        let end = tables.end(start, end);
        let index = usize::try_from(entry.partition.index).unwrap_or_default();
        if let Some(slot) = index.checked_sub(1).and_then(|n| record.partition_record.get_mut(n)) {
            number(slot, table, 0, start, end)?;
        }
        if entry.partition.kind.is_extended() {
            chain(table, tables, entry, &mut writes)?;
        }
    }
    writes.push(Write::new(0, record.as_bytes().to_vec(), "MBR"));
    Ok(writes)
}

/// Adds the writes of the chain in the extended partition `entry`.
fn chain(
    table: &Table,
    tables: &Tables<'_>,
    entry: &Entry,
    writes: &mut Vec<Write>,
) -> Result<(), Refusal> {
    let from = tables.aim.from;
    let outer = entry.partition.start;
    let read = |at| Record::read_at(&table.raw, at);
    let medium = Medium::of(&read, from, table.length);
    let links = walk(&medium, &within(entry, table.length), 5).links;
    let data = |link: &Link, slot: usize| {
        let slot = &link.record.partition_record[slot];
        let start = link.at.saturating_add(slot.start().saturating_mul(from));
        let end = start.saturating_add(slot.size().saturating_mul(from));
        (start, tables.end(start, end))
    };
    for (n, link) in links.iter().enumerate() {
        if !is_whole(link.at, tables.aim.to) {
            let found = format!("an EBR lies at {}", place(link.at, from));
            return Err(Refusal::new(found, Advice::Align));
        }
        let mut record = link.record.clone();
        for &slot in &link.data {
            let (start, end) = data(link, slot);
            number(&mut record.partition_record[slot], table, link.at, start, end)?;
        }
        if let Some((slot, next)) = link.next.zip(links.get(n + 1)) {
            let last = next.data.iter().map(|&slot| data(next, slot).1).max();
            let end = last.unwrap_or(next.at.saturating_add(tables.aim.to));
            number(&mut record.partition_record[slot], table, outer, next.at, end)?;
        }
        writes.push(Write::new(link.at, record.as_bytes().to_vec(), "EBR"));
    }
    Ok(())
}

/// Writes a range of bytes into an entry that counts from byte `origin`.
fn number(
    slot: &mut PartitionRecord,
    table: &Table,
    origin: u64,
    start: u64,
    end: u64,
) -> Result<(), Refusal> {
    let sectors = |bytes: u64| {
        let whole = Some(bytes).filter(|&bytes| is_whole(bytes, table.sector));
        whole.and_then(|bytes| u32::try_from(bytes / table.sector).ok()).ok_or_else(|| {
            let found = format!("{bytes} bytes are no number of {} bytes in 32 bits", table.sector);
            Refusal::new(found, "make a GPT instead")
        })
    };
    let size = sectors(end.saturating_sub(start))?;
    slot.starting_lba = sectors(start.saturating_sub(origin))?.into();
    slot.size_in_lba = size.into();
    slot.set_chs(table, start / table.sector, u64::from(size));
    Ok(())
}

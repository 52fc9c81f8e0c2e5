//! Labels for sectors of another size.
//!
//! # On disk
//! `d_secsize` and every number of sectors are written anew. FreeBSD and NetBSD look for the label
//! in the second sector, so it lies at another byte; OpenBSD's stays at byte 512, and its numbers
//! count sectors there too. Entries elsewhere on the disk and those for the whole are converted
//! with the others; a size that is no whole number of sectors is rounded up in these. Sectors a
//! track and tracks a cylinder stay.
//!
//! # Limits
//! Boot code of FreeBSD and NetBSD fills the first 8192 bytes but for a hole of 512 where the label
//! is: where there is code at the new place, it is refused. Numbers of 32 bits, but for OpenBSD's.
//!
//! # Sources
//! FreeBSD `sys/geom/part/g_part_bsd.c` (`g_part_bsd_read`: the label at `pp->sectorsize`, whose
//! `d_secsize` has to be that); OpenBSD `sys/sys/disklabel.h` (`DL_SECTOBLK`),
//! `sys/kern/subr_disk.c` (`readdoslabel`: `DOS_LABELSECTOR` in blocks of 512 bytes).

use super::label::{Head, Label, Part, Slot, most};
use super::raw::{in_table, span, to_usize};
use super::scheme::{keeps_clear, suffix};
use super::{C, D, EntryRelation, placed};
use crate::base::resize::{Tables, Write};
use crate::base::topology::{is_whole, round_up};
use crate::mapping::slices::{Dialect, PartitionType};
use crate::table::{Entry, Refusal, Table};
use std::ops::Range;

/// Bytes that a label may have, and that are written.
const LABEL: u64 = 512;

/// The writes of the label at its new place, and of zeros over the old one.
pub(super) fn convert(table: &Table, tables: &Tables<'_>) -> Result<Vec<Write>, Refusal> {
    let aim = tables.aim;
    if aim.universal {
        let found = "a BSD label counts sectors of one size";
        return Err(Refusal::new(found, "only a GPT can be right on both: make one instead"));
    }
    let label = in_table(&table.raw, table.sector);
    let Some((label, dialect)) = label.zip(table.dialect) else {
        return Err(Refusal::new("its label cannot be read", ""));
    };
    let at = match (dialect, label.at) {
        // A port that has it in the first sector has it there on sectors of any size.
        (Dialect::OpenBsd, at) | (_, at @ ..LABEL) => at,
        _ => aim.to,
    };
    if at != label.at {
        require_free(table, tables, at)?;
    }
    let anew = Anew { label: &label, dialect, table, tables };
    let slots = (0..label.entries.len()).map(|i| anew.slot(i)).collect::<Result<Vec<_>, _>>()?;
    let head = anew.head()?;
    let own = span(label.at, label.size(), LABEL);
    let mut new = held(tables, &own)?;
    label.write(&mut new[to_usize(label.at - own.start)..], &head, &slots);
    if at == label.at {
        return Ok(vec![Write::new(own.start, new, "disklabel")]);
    }
    let zeros = vec![0; new.len()];
    Ok(vec![Write::new(at, new, "disklabel"), Write::new(own.start, zeros, "disklabel")])
}

/// The bytes of the slice in `range`.
fn held(tables: &Tables<'_>, range: &Range<u64>) -> Result<Vec<u8>, Refusal> {
    let mut bytes = vec![0; to_usize(range.end - range.start)];
    let read = (tables.read)(range.start, &mut bytes);
    read.map_err(|errno| Refusal::new(format!("it cannot be read: {errno}"), ""))?;
    Ok(bytes)
}

/// Refuses a new place of the label at byte `at` that holds code, or that a partition uses.
fn require_free(table: &Table, tables: &Tables<'_>, at: u64) -> Result<(), Refusal> {
    let place = at..at.saturating_add(LABEL);
    if held(tables, &place)?.iter().any(|&byte| byte != 0) {
        let found = format!("at its byte {at}, where the label would be, there is boot code");
        return Err(Refusal::new(found, "clear it: no BIOS starts from such a disk"));
    }
    let over = |entry: &&Entry| {
        let is_clear = matches!(entry.partition.kind, PartitionType::Bsd(_, fstype)
            if keeps_clear(table.dialect, fstype));
        entry.partition.start < place.end && entry.partition.end() > at && !is_clear
    };
    table.entries.iter().find(over).map_or(Ok(()), |entry| {
        let letter = suffix(entry.partition.index);
        let found = format!("its {letter} is where the label would be, at byte {at}");
        Err(Refusal::new(found, "move it behind the boot area, to byte 8192 or further"))
    })
}

/// Label and the sectors that it is to count.
struct Anew<'a> {
    label: &'a Label,
    dialect: Dialect,
    table: &'a Table,
    tables: &'a Tables<'a>,
}

impl Anew<'_> {
    /// The range of its slice in the label's bytes, before and after.
    fn slices(&self) -> [Range<u64>; 2] {
        let start = self.table.origin;
        [self.table.length, self.tables.length].map(|length| start..start.saturating_add(length))
    }

    /// A number of new sectors. A number at the limit means as much as there is, and stays there.
    fn sectors(&self, bytes: u64, is_cut: bool) -> Result<u64, Refusal> {
        let most = most(self.label.is_wide());
        let count = bytes / self.tables.aim.to;
        match count <= most || is_cut {
            true => Ok(count.min(most)),
            false => {
                let found = format!("{bytes} bytes are more than its label can say");
                Err(Refusal::new(found, "use a GPT"))
            }
        }
    }

    /// The end of a range in the label's bytes, in whole new sectors.
    fn end(&self, end: u64) -> Result<u64, Refusal> {
        let [before, after] = self.slices();
        let up = round_up(end, self.tables.aim.to);
        let end = if end == before.end { Some(after.end) } else { up };
        end.ok_or_else(|| Refusal::new("its numbers do not fit", ""))
    }

    fn require_whole(&self, start: u64, name: &str) -> Result<(), Refusal> {
        if is_whole(start, self.tables.aim.to) {
            return Ok(());
        }
        let to = self.tables.aim.to;
        let found = format!("{name} begins at byte {start} in its label's count, off {to} bytes");
        Err(Refusal::new(found, "put it on a multiple of that first"))
    }

    /// The new bytes of an entry.
    fn slot(&self, i: usize) -> Result<Slot, Refusal> {
        let Some(part) = self.label.entries.get(i).filter(|part| part.length > 0) else {
            return Ok(Slot::Keep);
        };
        let [slice, _] = self.slices();
        let index = u32::try_from(i + 1).unwrap_or(0);
        self.require_whole(part.offset, &suffix(index))?;
        let end = match placed(self.label, self.dialect, i, &slice) {
            EntryRelation::At(start) => {
                let end = self.tables.end(start, start.saturating_add(part.length));
                end.saturating_add(slice.start)
            }
            _ => self.end(part.end())?,
        };
        if !is_whole(end, self.tables.aim.to) {
            let found = format!("{} does not end at a whole sector", suffix(index));
            return Err(Refusal::new(found, ""));
        }
        Ok(Slot::Put {
            offset: self.sectors(part.offset, false)?,
            size: self.sectors(end.saturating_sub(part.offset), self.is_cut(i, part))?,
            fstype: part.fstype,
            from: Some(i),
        })
    }

    /// True if an entry is for the whole, or says as much as there is.
    fn is_cut(&self, i: usize, part: &Part) -> bool {
        let most = self.label.most().saturating_mul(self.label.sector);
        i == C || i == D && self.dialect == Dialect::NetBsd || part.length == most
    }

    fn head(&self) -> Result<Head, Refusal> {
        let from = self.label.sector;
        let bounds = &self.label.bounds;
        let is_bound = self.label.is_wide() && bounds.start < bounds.end;
        let bounds = match is_bound {
            false => None,
            true => {
                let start = bounds.start.saturating_mul(from);
                self.require_whole(start, "what is OpenBSD's")?;
                let end = self.end(bounds.end.saturating_mul(from))?;
                Some((self.sectors(start, false)?, self.sectors(end, true)?))
            }
        };
        let total = self.label.total.saturating_mul(from);
        let own = self.table.length;
        let total = if total == own { self.tables.length } else { self.end(total)? };
        let sector = u32::try_from(self.tables.aim.to).ok();
        Ok(Head { sector, bounds, total: Some(self.sectors(total, true)?), ..Head::default() })
    }
}

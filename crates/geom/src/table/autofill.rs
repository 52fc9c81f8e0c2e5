//! Placement of a partition as gpart(8) does it, to the sector, with its oddities.
//!
//! gpart rounds to the provider's stripe size, counted from the medium's boundaries, unless `-a`
//! names another unit; two releases of it differ. Asked for by name ([`Rules::Gpart`],
//! [`Rules::Gpart9`]), so that a layout published with its commands comes out again. gpart counts
//! in sectors and ends on the last one; here are bytes, and ends are the byte after. In the middle
//! of the calculation addresses are moved up by `off`, which makes them multiples of the unit.
//!
//! Refusals of the kernel are worded as it does: `start '34': Invalid argument`.
//!
//! # Sources
//! FreeBSD `lib/geom/part/geom_part.c` (`gpart_autofill`, `gpart_autofill_resize`) of 9.1 and of 12
//! and later; `sys/geom/part/g_part.c` (`g_part_ctl_add`, `g_part_ctl_resize`), `g_part_mbr.c`,
//! `g_part_ebr.c` for the tracks.

use super::place::free_ranges;
use super::{Entry, Refusal, Request, Rules, Table};
use crate::base::topology::{Grain, round_down, round_up};
use crate::table::scheme::TableSite;
use std::ops::Range;

/// The range that a new partition takes.
pub(super) fn place(
    table: &Table,
    site: &TableSite<'_>,
    request: &Request,
    rules: Rules,
) -> Result<Range<u64>, Refusal> {
    let (start, size) = match *request {
        // A start and a size without a unit are taken literally, aligned or not.
        Request { start: Some(start), size: Some(size), align: None } => (start, size),
        _ => fill(table, &Unit::new(table, site, request.align), request, rules)
            .ok_or_else(|| no_space(table))?,
    };
    let (start, size) = on_tracks(table, start, size, rules)?;
    let end =
        start.checked_add(size).filter(|_| size > 0).ok_or_else(|| invalid(table, "size", size))?;
    kernel_checks(table, &(start..end), None)?;
    // The track before an EBR's partition belongs to it.
    Ok(start + ebr_track(table)..end)
}

/// The new length of `entry` in bytes.
pub(super) fn resize(
    table: &Table,
    site: &TableSite<'_>,
    entry: &Entry,
    request: &Request,
    rules: Rules,
) -> Result<u64, Refusal> {
    let lead = ebr_track(table).min(entry.partition.start);
    let (start, length) =
        (entry.partition.start - lead, entry.partition.length.saturating_add(lead));
    let size = match *request {
        Request { size: Some(size), align: None, .. } => size,
        _ => {
            let unit = Unit::new(table, site, request.align);
            refill(table, &unit, start..entry.partition.end(), request.size)
                .ok_or_else(|| no_space(table))?
        }
    };
    let size = track(table, rules).map_or(size, |track| round_down(size, track));
    if size <= lead {
        return Err(invalid(table, "size", size));
    }
    if request.size.is_some_and(|asked| size < asked)
        && track(table, rules).is_some()
        && size < length
    {
        return Err(Refusal::new(
            "resizing will lead to unexpected shrinking due to alignment: Device busy",
            "",
        ));
    }
    let end = start.checked_add(size).ok_or_else(|| invalid(table, "size", size))?;
    kernel_checks(table, &(start..end), Some(entry.partition.index))?;
    Ok(size - lead)
}

/// Unit that gpart rounds to.
struct Unit {
    /// Size in bytes: `-a`, else the stripe size, else a sector.
    size: u64,
    /// Bytes from the boundary before the provider to its first byte, less than `size`.
    off: u64,
}

impl Unit {
    fn new(table: &Table, site: &TableSite<'_>, align: Option<u64>) -> Unit {
        let (stripe_size, stripe_offset) = match site.topology.stripesize_and_offset() {
            // GEOM adds up the offset even where no stripe size reduces it: then it is the place on
            // the medium.
            (0, _) => (0, site.base),
            pair => pair,
        };
        let size = align.unwrap_or(round_down(stripe_size, table.sector)).max(table.sector);
        let off = Grain::new(size, 0)
            .map_or(0, |grain| grain.remainder(round_down(stripe_offset, table.sector)));
        Unit { size, off }
    }

    /// `byte`, moved by `off` and up to the next multiple.
    fn up(&self, byte: u64) -> Option<u64> {
        round_up(byte.checked_add(self.off)?, self.size)
    }

    /// `byte`, moved by `off` and down to a multiple.
    fn down(&self, byte: u64) -> Option<u64> {
        byte.checked_add(self.off).map(|byte| round_down(byte, self.size))
    }
}

/// State of the search for a hole, in moved addresses.
struct Choice {
    /// Size that is wanted, in bytes.
    size: Option<u64>,
    /// Start that is wanted, in moved bytes.
    start: Option<u64>,
    /// Start and size of the best hole so far, and the bytes it leaves over.
    best: Option<(u64, u64, u64)>,
}

impl Choice {
    /// Considers a hole from `from` up to `limit`, of which `length` bytes are whole units.
    fn offer(&mut self, from: u64, limit: u64, length: u64, unit: u64) {
        let found = match (self.size, self.start) {
            // The tightest fit, and of equals the first, even where a start was given.
            (Some(size), _) => {
                let left = length
                    .checked_sub(size)
                    .filter(|left| self.best.is_none_or(|(_, _, least)| *left < least));
                left.map(|left| (from, size, left))
            }
            (None, Some(start)) => {
                (from..limit).contains(&start).then(|| (start, round_down(limit - start, unit), 0))
            }
            (None, None) => {
                self.best.is_none_or(|(_, most, _)| length > most).then_some((from, length, 0))
            }
        };
        self.best = found.or(self.best);
    }
}

/// Start and size of a new partition; `None` if nothing is found.
fn fill(table: &Table, unit: &Unit, request: &Request, rules: Rules) -> Option<(u64, u64)> {
    let old = rules == Rules::Gpart9;
    // A size of no more than one unit is not rounded.
    let size =
        request.size.map(|size| if size > unit.size { round_down(size, unit.size) } else { size });
    let start = unit.up(request.start.unwrap_or(0))?;
    let mut choice = Choice { size, start: request.start.map(|_| start), best: None };
    let end = if old {
        // Release 9 rounds the last sector where it means the one after it, and loses up to a unit
        // at the end.
        unit.down(table.usable.end.checked_sub(table.sector)?)?.checked_add(table.sector)?
    } else {
        unit.down(table.usable.end)?
    };
    let mut from = unit.up(table.usable.start)?;
    if !old {
        // Release 9 looks for room in front of the given start, too.
        from = from.max(start);
    }
    let mut at = table.usable.start;
    for taken in taken(table) {
        if taken.start < at {
            continue;
        }
        let limit = unit.down(taken.start)?;
        // gpart also asks whether `at` lies before the limit, unmoved; it does wherever `from`
        // does.
        if from < limit {
            choice.offer(from, limit, limit - from, unit.size);
        }
        at = taken.end;
        from = from.max(unit.up(at)?);
    }
    if from < end {
        choice.offer(from, end, round_down(end - from, unit.size), unit.size);
    }
    choice.best.map(|(start, size, _)| (start - unit.off, size))
}

/// The size of the partition that is at `now` once resized; `None` if there is no room.
fn refill(table: &Table, unit: &Unit, now: Range<u64>, size: Option<u64>) -> Option<u64> {
    let next = taken(table).into_iter().map(|r| r.start).find(|&start| start >= now.end);
    let upto = |end: u64| unit.down(end)?.checked_sub(unit.off)?.checked_sub(now.start);
    match (size, next) {
        (Some(size), next) if size <= now.end - now.start || next.is_none() => {
            upto(now.start.checked_add(size)?)
        }
        (_, None) => upto(table.usable.end).filter(|&size| size >= now.end - now.start),
        // gpart means to use `-s` here and does not: with `-a` and a neighbour, growing takes all
        // there is up to it. Its test for room, too, compares an end with the last sector: no
        // growth at all passes.
        (_, Some(next)) => upto(next).filter(|&size| now.start + size >= now.end),
    }
}

/// Ranges in use, in the order of their starts.
fn taken(table: &Table) -> Vec<Range<u64>> {
    let mut taken: Vec<Range<u64>> = table
        .entries
        .iter()
        .map(|e| e.partition.range())
        .chain(table.taken.iter().cloned())
        .collect();
    taken.sort_by_key(|r| (r.start, r.end));
    taken
}

/// Bytes of a track, where the kernel puts partitions on tracks: always in an EBR, and up to
/// release 9 in an MBR; otherwise `None`.
fn track(table: &Table, rules: Rules) -> Option<u64> {
    let rounds =
        table.scheme.name() == "EBR" || (table.scheme.name() == "MBR" && rules == Rules::Gpart9);
    table
        .geometry
        .filter(|g| rounds && g.sectors > 0)
        .map(|g| u64::from(g.sectors).saturating_mul(table.sector))
}

/// Bytes of the track before an EBR's partition; 0 in other tables.
fn ebr_track(table: &Table) -> u64 {
    if table.scheme.name() == "EBR" { track(table, Rules::Gpart).unwrap_or(0) } else { 0 }
}

/// The start moved up to a track and the size cut to whole ones, where the kernel does that.
fn on_tracks(table: &Table, start: u64, size: u64, rules: Rules) -> Result<(u64, u64), Refusal> {
    let Some(track) = track(table, rules) else { return Ok((start, size)) };
    let least = track.saturating_add(ebr_track(table));
    let from = round_up(start, track).ok_or_else(|| invalid(table, "start", start))?;
    let whole = size
        .checked_sub(from - start)
        .map(|size| round_down(size, track))
        .filter(|&size| size >= least);
    whole.map(|size| (from, size)).ok_or_else(|| invalid(table, "size", size))
}

/// Checks a range as the kernel does, but for the checks of the scheme; `own` is the entry that is
/// resized.
fn kernel_checks(table: &Table, range: &Range<u64>, own: Option<u32>) -> Result<(), Refusal> {
    let (start, last) = (range.start, range.end - table.sector.min(range.end));
    if !table.usable.contains(&start) {
        return Err(invalid(table, "start", start));
    }
    if range.end > table.usable.end {
        return Err(invalid(table, "size", range.end - start));
    }
    let clash = |what: &str, byte: u64| {
        Err(Refusal::new(format!("{what} '{}': No space left on device", sectors(table, byte)), ""))
    };
    for entry in table.entries.iter().filter(|e| own != Some(e.partition.index)) {
        let other = entry.partition.range();
        if other.contains(&start) {
            return clash("start", start);
        }
        if other.contains(&last) {
            return clash("end", last);
        }
        if range.contains(&other.start) {
            return clash("size", range.end - start);
        }
    }
    Ok(())
}

fn sectors(table: &Table, bytes: u64) -> u64 {
    bytes / table.sector.max(1)
}

fn invalid(table: &Table, what: &str, bytes: u64) -> Refusal {
    Refusal::new(format!("{what} '{}': Invalid argument", sectors(table, bytes)), "")
}

fn no_space(table: &Table) -> Refusal {
    Refusal::new("autofill: No space left on device", free_ranges(table))
}

#[cfg(test)]
#[path = "autofill/tests.rs"]
mod tests;

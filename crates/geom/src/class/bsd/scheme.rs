//! Editing of a BSD label.
//!
//! A label is one sector, so an edit is one write. It keeps the place, the byte order and every
//! field that the edit does not concern: boot code beside it, sizes of fragments, entries elsewhere
//! on the disk or of no type.
//!
//! # Starts of partitions
//! FreeBSD's `a` begins at 0 by default, as gpart(8) has it, and so holds the label itself: that is
//! where the slice's own start is on the grain. A type that leaves its first blocks alone may begin
//! there: UFS leaves 64 KiB, ZFS and LFS 8 KiB, swap as many pages as the boot area has, which all
//! three systems skip for this reason. A type that begins with its own data is refused there.
//!
//! # Sources
//! Beside the class's own: FreeBSD `sys/vm/swap_pager.c` (`swaponsomething` reserves
//! `howmany(BBSIZE, PAGE_SIZE)` pages), NetBSD and OpenBSD `uvm_swap.c`.

use super::convert::convert;
use super::create::NewLabel;
use super::label::{self, BBSIZE, Head, Label, Part, Slot};
use super::raw::{bytes, in_table, span, to_usize};
use super::{
    Bsd, C, D, EntryRelation, REPAIR, UNUSED, checksum, dialect, geometry, is_remains, origin,
    other_sector, placed, usable,
};
use crate::base::patch::Patch;
use crate::base::resize::{Tables, Write};
use crate::base::store::{Sparse, Store};
use crate::base::topology::is_whole;
use crate::mapping::partition::Partition;
use crate::mapping::slices::{Dialect, PartitionType, place};
use crate::probe::Probe;
use crate::table::scheme::{Geometry, Id, New, Scheme, TableSite};
use crate::table::{Advice, Entry, Property, Refusal, Table, types};
use std::ops::Range;

impl Scheme for Bsd {
    fn name(&self) -> &'static str {
        "BSD"
    }

    fn read(&self, probe: &Probe<'_>) -> Option<Table> {
        // A label whose sector is cut off could not be written again.
        if matches!(probe.kind(), Some(PartitionType::Bsd(..)))
            || probe.length() < probe.sector().saturating_mul(2)
        {
            return None;
        }
        let found = label::find(&|at, length| probe.bytes(at, length), probe.sector())?;
        let raw = held(probe, None)?;
        let label = match found {
            Ok(label) if label.sector == probe.sector() => label,
            Ok(label) => return Some(unreadable(probe, raw, other_sector(probe, &label).message)),
            Err(finding) => return Some(unreadable(probe, raw, finding.message)),
        };
        Some(table(probe, &label, raw))
    }

    fn create(&self, probe: &Probe<'_>, site: &TableSite<'_>, new: &New) -> Result<Table, Refusal> {
        let plan = NewLabel::new(probe, site, new)?;
        let raw = held(probe, Some((plan.at(), &plan.bytes())))
            .ok_or_else(|| Refusal::new("where the label goes cannot be read", ""))?;
        let label = in_table(&raw, plan.sector)
            .ok_or_else(|| Refusal::new("no label can be written here", ""))?;
        // The marks of a dialect do not fit every size: a label that reads as another's would not
        // come back.
        if dialect(probe, &label) != plan.dialect {
            let found = format!(
                "a label of {} here would be read as one of {}",
                plan.dialect.name(),
                dialect(probe, &label).name()
            );
            return Err(Refusal::new(found, "put it into a partition of its type, or use GPT"));
        }
        let bounds = usable(&label, plan.dialect, plan.origin, plan.length);
        let bounds = bounds.start..bounds.end.min(reach(&label, plan.origin));
        Ok(Table {
            usable: new.usable(bounds.clone(), bounds, plan.sector)?,
            kept: kept(&label, plan.dialect, &[]),
            id: plan.uid.map(Id::Duid),
            geometry: Some(plan.geometry),
            ..bare(probe, raw, plan.dialect, plan.origin, plan.count)
        })
    }

    fn is_guest(&self) -> bool {
        true
    }

    fn boot_area(&self) -> u64 {
        u64::from(BBSIZE)
    }

    fn suffix(&self, entry: &Entry) -> String {
        suffix(entry.partition.index)
    }

    fn kind(&self, name: &str) -> Option<PartitionType> {
        types::bsd::fstype(Dialect::FreeBsd, name).map(|n| PartitionType::Bsd(Dialect::FreeBsd, n))
    }

    fn kind_in(&self, table: &Table, name: &str) -> Option<PartitionType> {
        let dialect = table.dialect.unwrap_or(Dialect::FreeBsd);
        types::bsd::fstype(dialect, name).map(|n| PartitionType::Bsd(dialect, n))
    }

    fn accept(&self, table: &Table, entry: &Entry) -> Result<(), Refusal> {
        if entry.partition.label.as_ref().is_some_and(|l| !l.is_empty()) {
            return Err(Refusal::new(
                "labels are not supported by BSD",
                Advice::LeaveOut(Property::Label),
            ));
        }
        if entry.attributes != 0 {
            return Err(Refusal::new("partitions of BSD have no attributes", "leave them out"));
        }
        let fstype = accept_kind(table, entry)?;
        let label = in_table(&table.raw, table.sector)
            .ok_or_else(|| Refusal::new("the label cannot be read", REPAIR))?;
        let start =
            entry.partition.start.checked_add(table.origin).filter(|&s| is_whole(s, table.sector));
        let most = label.most();
        let fits = |bytes: u64| bytes / table.sector <= most;
        match start {
            Some(start)
                if is_whole(entry.partition.length, table.sector)
                    && fits(start)
                    && fits(entry.partition.length) => {}
            _ => {
                let found = format!(
                    "{} bytes at byte {} of the disk are more than the label can say",
                    entry.partition.length,
                    start.unwrap_or(entry.partition.start)
                );
                return Err(Refusal::new(
                    found,
                    format!("it counts whole sectors, at most {most}: use GPT"),
                ));
            }
        }
        let holds_label = entry.partition.start < label.at.saturating_add(label.size() as u64)
            && entry.partition.end() > label.at;
        let as_before = table.entry(entry.partition.index).is_some_and(|e| {
            e.partition.start == entry.partition.start && e.partition.kind == entry.partition.kind
        });
        if holds_label && !as_before && !keeps_clear(table.dialect, fstype) {
            let found = format!(
                "a {} at byte {} would overwrite the label itself",
                types::name(entry.partition.kind),
                entry.partition.start
            );
            return Err(Refusal::new(
                found,
                format!("start it behind the boot area, at {BBSIZE} bytes or later, with -b"),
            ));
        }
        Ok(())
    }

    fn render(&self, before: &Table, after: &Table) -> Vec<Patch> {
        let Some(label) = in_table(&after.raw, after.sector) else { return Vec::new() };
        let mut bytes = bytes(&after.raw, label.at, label.size());
        let uid = after.id.and_then(|id| if let Id::Duid(uid) = id { Some(uid) } else { None });
        let head = Head { uid: uid.filter(|_| label.is_wide()), ..Head::default() };
        label.write(&mut bytes, &head, &slots(before, after, label.entries.len()));
        let mut new = after.raw.clone();
        new.put(label.at, &bytes);
        let own = span(label.at, label.size(), after.sector);
        let mut patches = changed(&before.raw, &new, own.clone(), "disklabel");
        let is_new = in_table(&before.raw, before.sector)
            .is_some_and(|l| before.entries.is_empty() && l.stored == !l.computed);
        if is_new {
            patches.extend(others(&new, &own, after.sector));
        }
        patches
    }

    fn follow(&self, table: &Table, origin: u64) -> Option<Vec<Patch>> {
        super::shift::shifted(table, origin)
    }

    fn outside(&self, table: &Table) -> Vec<(u32, Range<u64>)> {
        super::shift::outside(table)
    }

    fn rename(&self, table: &Table, starts: &[(u32, Option<u64>)]) -> Option<Vec<Patch>> {
        super::shift::renamed(table, starts)
    }

    fn convert(&self, table: &Table, tables: &Tables<'_>) -> Result<Vec<Write>, Refusal> {
        convert(table, tables)
    }

    fn erase(&self, table: &Table) -> Vec<Patch> {
        let (mut raw, mut patches) = (table.raw.clone(), Vec::<Patch>::new());
        // The label that is found first goes last: until then the table exists.
        for at in label::places(table.sector).into_iter().rev() {
            if !label::is_magic(&|at, length| Some(bytes(&raw, at, length)), at) {
                continue;
            }
            // The whole sector is zeroed if it is the label's own, as gpart(8) does; a boot sector
            // around a label stays.
            let most = in_table(&raw, table.sector)
                .filter(|l| l.at == at)
                .map_or(512, |l| l.size() as u64);
            let length = if at == table.sector { table.sector } else { most };
            let size = usize::try_from(length).unwrap_or(0);
            raw.put(at, &vec![0; size]);
            let cleared = span(at, size, table.sector);
            let patch = Patch::new(
                cleared.start,
                bytes(&raw, cleared.start, to_usize(cleared.end - cleared.start)),
                "disklabel",
            );
            patches.push(if patches.is_empty() { patch } else { patch.after_flush() });
        }
        patches
    }

    fn recover(&self, table: &Table, site: &TableSite<'_>) -> Result<Table, Refusal> {
        let _ = site;
        let Some((label, dialect)) = in_table(&table.raw, table.sector).zip(table.dialect) else {
            return Err(Refusal::new(
                format!("the label cannot be made whole: {}", table.damage.join("; ")),
                REPAIR,
            ));
        };
        let slice = table.origin..table.origin.saturating_add(table.length);
        let outside =
            |i: &usize| matches!(placed(&label, dialect, *i, &slice), EntryRelation::Outside(_));
        if let Some(i) = (0..label.entries.len()).find(outside) {
            let found = beyond(
                &suffix(u32::try_from(i).unwrap_or(0) + 1),
                &label.entries[i],
                &slice,
                label.sector,
            );
            return Err(Refusal::new(
                found,
                "give the disk or image its length back, or destroy the table",
            ));
        }
        let mut raw = table.raw.clone();
        let mut bytes = bytes(&raw, label.at, label.size());
        let (head, slots) = fitted(table, &label, dialect);
        label.write(&mut bytes, &head, &slots);
        raw.put(label.at, &bytes);
        let geometry =
            head.tracks.map(|(sectors, heads)| Geometry { sectors, heads }).or(table.geometry);
        Ok(Table { raw, geometry, damage: Vec::new(), ..table.clone() })
    }
}

/// Types that leave the boot area alone.
const CLEAR: [&str; 8] = ["4.2BSD", "swap", "4.4LFS", "vinum", "RAID", "ISO9660", "UDF", "ZFS"];

pub(super) fn keeps_clear(dialect: Option<Dialect>, fstype: u8) -> bool {
    dialect.and_then(|d| types::bsd::name(d, fstype)).is_some_and(|name| CLEAR.contains(&name))
}

/// The number of the type, if the label's own dialect has it.
fn accept_kind(table: &Table, entry: &Entry) -> Result<u8, Refusal> {
    let (PartitionType::Bsd(theirs, fstype), Some(own)) = (entry.partition.kind, table.dialect)
    else {
        return Err(Refusal::new(
            format!("{} is no type of a BSD label", types::name(entry.partition.kind)),
            "use one, such as freebsd-ufs",
        ));
    };
    if theirs != own && types::bsd::name(theirs, fstype) != types::bsd::name(own, fstype) {
        let found = format!(
            "type {} is {}'s; this label is {}'s",
            types::name(entry.partition.kind),
            theirs.name(),
            own.name()
        );
        return Err(Refusal::new(found, "name a type of that system"));
    }
    // FreeBSD has partitions of no type; the other systems would drop them.
    if fstype == UNUSED && (own != Dialect::FreeBsd || entry.from.is_none()) {
        return Err(Refusal::new("a partition of type unused is none", "delete it instead"));
    }
    Ok(fstype)
}

/// Every sector that contains a label's magics. With a new label and its place, that sector among
/// them, and the magic of the others removed.
fn held(probe: &Probe<'_>, new: Option<(u64, &[u8])>) -> Option<Sparse> {
    let (sector, mut raw) = (probe.sector(), Sparse::new(probe.length()));
    let get = |at, length| probe.bytes(at, length);
    let stale: Vec<u64> =
        label::places(sector).into_iter().filter(|&at| label::is_magic(&get, at)).collect();
    for at in stale.iter().copied().chain(new.map(|(at, _)| at)) {
        let span = span(at, 512, sector);
        raw.put(
            span.start,
            &probe.bytes(span.start, to_usize(span.end.min(probe.length()) - span.start))?,
        );
    }
    if let Some((at, bytes)) = new {
        stale.iter().for_each(|&at| raw.put(at, &[0; 4]));
        raw.put(at, bytes);
    }
    Some(raw)
}

/// A table of `capacity` entries, of which none is in use and nothing else is known.
fn bare(probe: &Probe<'_>, raw: Sparse, dialect: Dialect, origin: u64, capacity: u16) -> Table {
    let table = Table::new(&Bsd, probe.sector(), probe.length());
    Table { origin, capacity: u32::from(capacity), dialect: Some(dialect), raw, ..table }
}

fn unreadable(probe: &Probe<'_>, raw: Sparse, why: String) -> Table {
    let bare = bare(probe, raw, Dialect::FreeBsd, 0, 0);
    Table { dialect: None, damage: vec![why], ..bare }
}

/// The label as a table.
fn table(probe: &Probe<'_>, label: &Label, raw: Sparse) -> Table {
    let dialect = dialect(probe, label);
    let origin = origin(probe, label, dialect);
    let slice = origin..origin.saturating_add(probe.length());
    let sums = checksum(label)
        .filter(|_| dialect != Dialect::FreeBsd || is_remains(label, dialect, &slice));
    let mut damage: Vec<String> =
        sums.into_iter().chain(geometry(label, dialect)).map(|f| f.message).collect();
    let (mut entries, mut taken) = (Vec::new(), Vec::new());
    for (i, (index, part)) in (1..).zip(&label.entries).enumerate() {
        let kind = PartitionType::Bsd(dialect, part.fstype);
        match placed(label, dialect, i, &slice) {
            EntryRelation::Nothing | EntryRelation::Foreign => {}
            EntryRelation::At(start) => {
                let (label, uuid, attributes, from) = (None, None, 0, Some(index));
                entries.push(Entry {
                    partition: Partition {
                        index,
                        start,
                        length: part.length,
                        kind,
                        label,
                        guid: uuid,
                    },
                    attributes,
                    from,
                });
            }
            // The part of it that lies here is taken.
            out @ (EntryRelation::Past | EntryRelation::Outside(_)) => {
                let inside = |at: u64| at.clamp(slice.start, slice.end) - slice.start;
                taken.push(inside(part.offset)..inside(part.end()));
                // OpenBSD and NetBSD allow partitions past their slice where an MBR ends.
                damage.extend(
                    matches!(out, EntryRelation::Outside(_))
                        .then(|| beyond(&suffix(index), part, &slice, label.sector)),
                );
            }
        }
    }
    taken.retain(|r: &Range<u64>| r.start < r.end);
    let (sectors, heads) = label.tracks;
    let uid = Some(label.uid).filter(|uid| label.is_wide() && *uid != [0; 8]);
    let range = usable(label, dialect, origin, probe.length());
    Table {
        usable: range.start..range.end.min(reach(label, origin)),
        kept: kept(label, dialect, &entries),
        id: uid.map(Id::Duid),
        geometry: Some(Geometry { sectors, heads }),
        entries,
        taken,
        damage,
        ..bare(probe, raw, dialect, origin, u16::try_from(label.entries.len()).unwrap_or(0))
    }
}

/// The letter of the partition numbered `index`.
pub(super) fn suffix(index: u32) -> String {
    ('a'..='z')
        .zip(1..)
        .find(|(_, i)| *i == index)
        .map(|(letter, _)| letter.into())
        .unwrap_or_default()
}

/// The damage, in words, of a partition that does not lie within the slice: the slice's length was
/// another once, or the entry is wrong.
fn beyond(letter: &str, part: &Part, slice: &Range<u64>, sector: u64) -> String {
    let (from, to) = (place(part.offset, sector), place(part.end(), sector));
    format!(
        "{letter} takes {from} up to {to}, and the label's slice {} up to {}",
        place(slice.start, sector),
        place(slice.end, sector)
    )
}

/// First byte of the slice that the label's numbers do not reach.
fn reach(label: &Label, origin: u64) -> u64 {
    let most = if label.is_wide() { 1 << 48 } else { u64::from(u32::MAX) };
    label.sector.saturating_mul(most).saturating_sub(origin)
}

/// Indexes of the entries that stand for the whole, and of those that describe no partition here.
fn kept(label: &Label, dialect: Dialect, entries: &[Entry]) -> Vec<u32> {
    let whole = |i: usize| i == C || i == D && dialect == Dialect::NetBsd;
    let used = |index: u32| entries.iter().any(|e| e.partition.index == index);
    let kept = |i: usize, index: u32| whole(i) || label.entries[i].length > 0 && !used(index);
    (1..)
        .zip(0..label.entries.len())
        .filter(|&(index, i)| kept(i, index))
        .map(|(index, _)| index)
        .collect()
}

/// The change of every entry's bytes.
fn slots(before: &Table, after: &Table, count: usize) -> Vec<Slot> {
    let place = |index: u32| usize::try_from(index).ok().and_then(|i| i.checked_sub(1));
    let slot = |index: u32| match (after.entry(index), before.entry(index)) {
        (
            Some(Entry {
                partition: Partition { start, length, kind: PartitionType::Bsd(_, fstype), .. },
                from,
                ..
            }),
            _,
        ) => Slot::Put {
            offset: start.saturating_add(after.origin) / after.sector,
            size: length / after.sector,
            fstype: *fstype,
            from: from.and_then(place),
        },
        (None, Some(_)) => Slot::Clear,
        _ => Slot::Keep,
    };
    (1..).take(count).map(slot).collect()
}

/// The write of the sectors in `range`, if `new` has other bytes there.
fn changed(old: &Sparse, new: &Sparse, range: Range<u64>, what: &'static str) -> Vec<Patch> {
    let length = to_usize(range.end.min(new.length()) - range.start);
    let now = bytes(new, range.start, length);
    if now == bytes(old, range.start, length) {
        Vec::new()
    } else {
        vec![Patch::new(range.start, now, what)]
    }
}

/// The writes of the sectors of `raw` outside `own`, which held another label.
fn others(raw: &Sparse, own: &Range<u64>, sector: u64) -> Vec<Patch> {
    let starts = raw.runs().flat_map(|(at, run)| {
        let step = to_usize(sector).max(1);
        (at..at + run.len() as u64).step_by(step)
    });
    let outside = starts.filter(|at| !own.contains(at));
    outside
        .map(|at| Patch::new(at, bytes(raw, at, to_usize(sector)), "an older label").after_flush())
        .collect()
}

/// Head and entries for the whole that fit the provider as it is now.
fn fitted(table: &Table, label: &Label, dialect: Dialect) -> (Head, Vec<Slot>) {
    let mut slots: Vec<Slot> = label.entries.iter().map(|_| Slot::Keep).collect();
    let (own, start) = (table.length / table.sector, table.origin / table.sector);
    let end = start.saturating_add(own);
    let whole = |i: usize, offset, size| {
        label.entries.get(i).map(|e| Slot::Put { offset, size, fstype: e.fstype, from: Some(i) })
    };
    let is_own = label
        .entries
        .get(C)
        .is_some_and(|c| c.offset == table.origin && c.length > 0 && end <= u64::from(u32::MAX));
    let mut head = Head::default();
    match dialect {
        Dialect::OpenBsd if label.is_wide() && label.bounds.start == start => {
            head.bounds = Some((start, end.min(label.most())))
        }
        Dialect::FreeBsd | Dialect::NetBsd if is_own => {
            slots.splice(C..=C, whole(C, start, own));
            head.total = (dialect == Dialect::FreeBsd).then_some(own);
        }
        _ => {}
    }
    // The disk does not end before this slice of it.
    let disk = if dialect == Dialect::OpenBsd { C } else { D };
    let reach = label.most();
    let short = label.entries.get(disk).is_some_and(|d| {
        d.offset == 0 && d.fstype == UNUSED && d.length / table.sector < end && end <= reach
    });
    if dialect != Dialect::FreeBsd && short {
        slots.splice(disk..=disk, whole(disk, 0, end));
        head.total = Some(end);
    }
    if geometry(label, dialect).is_some() {
        let made = Geometry::derive(table.length, table.sector);
        head.tracks = Some((made.sectors, made.heads));
    }
    (head, slots)
}

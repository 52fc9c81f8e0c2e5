//! What a disk's tables are to be, as a value, and the edits that make them so.
//!
//! A layout names the partitions of a table, and inside each, if it likes, another table, at any depth. [`plan`] compares it
//! with what is there: what agrees is kept, what is missing is made, what contradicts is refused. A partition is never moved,
//! resized or deleted by the way, and what is in place already gives no write, so a layout can be applied again and again.
//!
//! Shares in percent are of what lies between the first and the last boundary of the usable range, whatever else is on the disk:
//! two halves fill it. (libparted counts percents of the whole device and then looks for a free place near by, so that its
//! halves never quite fit.) Several partitions that take what is left share it equally.
//!
//! # Limits
//! The flavour of a BSD label and the geometry of a table that is there are kept as they are.

use crate::base::ondisk::Guid;
use crate::base::patch::Patch;
use crate::base::topology::{Grain, round_up};
use crate::graph::Found;
use crate::graph::occupant::{Contents, Occupant, seen};
use crate::mapping::slices::{Dialect, Kind, place};
use crate::probe::Probe;
use crate::table::scheme::{self, Id, New, Scheme, TableSite};
use crate::table::{Entry, Refusal, Request, Rules, Table, Wanted, free_ranges, types};
use change::{Change, own_of};
use lay::{Floor, Item, lay, percent, whole};
use stages::Inside;

pub mod backup;
mod change;
mod lay;
pub mod sfdisk;
mod stages;

pub use stages::{Stage, in_order};

/// One percent in [`Size::Percent`], which counts hundredths.
pub const PERCENT: u32 = 100;

/// What a table is to be.
#[derive(Clone)]
pub struct Layout {
    /// Of which scheme.
    pub scheme: &'static dyn Scheme,
    /// What tells it from others; `None`: whatever it is.
    pub id: Option<Id>,
    /// Entries it has room for.
    pub entries: Option<u32>,
    /// First byte and byte after the last of where partitions may lie.
    pub usable: Option<(u64, u64)>,
    /// What chosen starts and ends are multiples of on the medium; `None`: the best grain there is.
    pub align: Option<u64>,
    /// The flavour of a BSD label.
    pub dialect: Option<Dialect>,
    /// Whether starts count from where the table above counts, as those of logical partitions do in sfdisk's scripts.
    pub from_above: bool,
    /// Its partitions.
    pub parts: Vec<Part>,
}

/// What a partition is to be. What is `None` is chosen for a new one, and left alone on one that is there.
#[derive(Clone)]
pub struct Part {
    /// Its number; `None`: the least that the layout does not name.
    pub index: Option<u32>,
    /// First byte.
    pub start: Option<u64>,
    /// How large.
    pub size: Size,
    /// What it is, as [`Scheme::kind`] knows it.
    pub kind: String,
    /// Its name.
    pub label: Option<String>,
    /// Its GUID.
    pub uuid: Option<Guid>,
    /// The scheme's bits.
    pub attributes: Option<u64>,
    /// The table inside.
    pub inside: Option<Layout>,
}

/// How large a partition is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Bytes, rounded up to whole sectors.
    Bytes(u64),
    /// A share of the usable range, in hundredths of a percent.
    Percent(u32),
    /// What is left. A partition that is there keeps the size it has.
    Rest,
}

/// What may be done about a disk that contradicts the layout.
#[derive(Clone, Copy, Debug, Default)]
pub struct May {
    /// Delete partitions that the layout does not name.
    pub delete: bool,
    /// Write a new table over whatever is there.
    pub replace: bool,
}

/// How a layout is carried out.
#[derive(Default)]
pub struct Planned {
    /// Its tables, the outer before the inner.
    pub steps: Vec<Step>,
    /// The writes, in the order of [`Stage`]s.
    pub stages: Vec<Stage>,
}

/// One table of the layout: where it is, what it will be.
pub struct Step {
    /// The provider's name within the target: empty for the target itself, `s1`, `p2a`.
    pub provider: String,
    /// Its first byte on the target.
    pub offset: u64,
    /// Whose table it is.
    pub scheme: &'static dyn Scheme,
    /// The table as it will be.
    pub table: Table,
    /// What is done, in words; empty: nothing.
    pub edits: Vec<String>,
}

/// Why a layout cannot be applied, and to which provider within the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// As [`Step::provider`].
    pub provider: String,
    /// Why.
    pub why: Refusal,
}

/// The tables of `layout` on the provider that `probe` sees, and their writes. Every refusal comes before the first write. `medium`: bytes of the disk that it is on. `random` gives what new tables and partitions are told apart by.
pub fn plan(
    layout: &Layout,
    probe: &Probe<'_>,
    ground: &TableSite<'_>,
    medium: u64,
    may: May,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Planned, Refused> {
    let mut planning = Planning { medium, may, random, steps: Vec::new() };
    let mut stages = planning.table(layout, probe, ground, "", 0, 0)?;
    if let Some(last) = stages.last_mut() {
        last.leaves = None;
    }
    Ok(Planned { steps: planning.steps, stages })
}

struct Planning<'a> {
    medium: u64,
    may: May,
    random: &'a mut dyn FnMut() -> [u8; 16],
    steps: Vec<Step>,
}

impl Planning<'_> {
    /// The writes of the table on one provider and of those inside it.
    fn table(
        &mut self,
        layout: &Layout,
        probe: &Probe<'_>,
        ground: &TableSite<'_>,
        name: &str,
        offset: u64,
        above: u64,
    ) -> Result<Vec<Stage>, Refused> {
        let refused = |why| Refused { provider: name.into(), why };
        let layout = &if layout.from_above { counted_from(layout, offset - above).map_err(refused)? } else { layout.clone() };
        let change = self.one(layout, probe, ground).map_err(refused)?;
        let numbers = numbers(layout, &change.after).map_err(refused)?;
        let whole = change.writes(probe, &change.after).map_err(refused)?;
        self.steps.push(change.step(name, offset));
        // What is inside is read as it will be once this table is written.
        let written = probe.after(&whole);
        let mut inside = Inside::default();
        for (part, index) in layout.parts.iter().zip(numbers) {
            let Some(entry) = change.after.entry(index) else { continue };
            // An extended partition begins with an empty chain, which is part of what is in it.
            let own = own_of(entry, &whole).map(|p| Patch { offset: p.offset.saturating_add(offset), ..p.clone() }).collect();
            let mut stages = Vec::from_iter(Stage::of(own, None));
            if let Some(table) = &part.inside {
                let name = called(layout.scheme, name, entry);
                let route = written.route_within(entry.start, entry.length);
                let inner = written.within(&route, entry.start, &entry.kind);
                let topology = ground.topology.shift(entry.start, entry.length);
                let ground = TableSite { topology: &topology, base: ground.base.saturating_add(entry.start), kind: Some(entry.kind) };
                stages.extend(self.table(table, &inner, &ground, &name, offset.saturating_add(entry.start), offset)?);
            }
            inside.add(index, change.when(entry, &stages, offset, &whole), stages);
        }
        change.around(inside, probe, whole, name, offset).map_err(refused)
    }

    /// The change of the table on one provider.
    fn one(&mut self, layout: &Layout, probe: &Probe<'_>, ground: &TableSite<'_>) -> Result<Change, Refusal> {
        let there = there(probe);
        seen(probe)?;
        let (before, after, edits) = match &there {
            Occupant::Table(scheme, table) if scheme.name() == layout.scheme.name() => match self.edited(layout, table, ground) {
                Err(_) if self.may.replace => return self.replaced(layout, there, probe, ground),
                edited => edited.map(|(after, edits)| (Table::clone(table), after, edits))?,
            },
            Occupant::Table(scheme, table) if !self.may.replace => {
                let found = format!("there is a table of another scheme, {}, with {} partitions", scheme.name(), table.entries.len());
                return Err(Refusal::new(found, "--replace puts the layout in its place, and what is in these partitions is lost"));
            }
            Occupant::Data(what, _) | Occupant::Remains(what) if !self.may.replace => {
                return Err(Refusal::new(what.clone(), "--replace writes the layout over it, and what is in it is lost"));
            }
            _ => return self.replaced(layout, there, probe, ground),
        };
        Ok(Change { scheme: layout.scheme, before, over: None, after, edits })
    }

    /// A table made anew, in the place of what is there.
    fn replaced(&mut self, layout: &Layout, there: Occupant, probe: &Probe<'_>, ground: &TableSite<'_>) -> Result<Change, Refusal> {
        let new = New {
            entries: layout.entries,
            id: layout.id,
            random: (self.random)(),
            dialect: layout.dialect,
            usable: layout.usable,
            medium: Some(self.medium),
            ..New::default()
        };
        let empty = there.create(probe, ground, layout.scheme, &new)?;
        let mut edits = Vec::new();
        if let Occupant::Table(scheme, table) = &there {
            edits.push(format!("destroy {} of {} partitions", scheme.name(), table.entries.len()));
        }
        edits.push(format!("create {}", layout.scheme.name()));
        let mut after = empty.clone();
        self.fill(layout, &mut after, ground, &mut edits)?;
        Ok(Change { scheme: layout.scheme, before: empty, over: Some(there), after, edits })
    }

    /// The table that is there, made to agree with the layout.
    fn edited(&mut self, layout: &Layout, table: &Table, ground: &TableSite<'_>) -> Result<(Table, Vec<String>), Refusal> {
        let (mut after, mut edits) = (table.clone(), Vec::new());
        if !after.damage.is_empty() {
            after = layout.scheme.recover(table, ground)?;
            edits.push(format!("recover: {}", table.damage.join("; ")));
            after.damage.clear();
        }
        if let Some(entries) = layout.entries.filter(|&n| n != after.capacity) {
            let found = format!("the {} has room for {} entries, the layout says {entries}", after.scheme, after.capacity);
            return Err(Refusal::new(found, "leave it out of the layout"));
        }
        if let Some((first, end)) = layout.usable.filter(|&(first, end)| (first, end) != (after.usable.start, after.usable.end)) {
            if layout.scheme.keeps_usable() {
                let lies = |first, end| format!("from {} up to {}", place(first, table.sector), place(end, table.sector));
                let found = format!("partitions lie {}, the layout says {}", lies(after.usable.start, after.usable.end), lies(first, end));
                return Err(Refusal::new(found, "leave it out of the layout"));
            }
            let new = New { usable: layout.usable, ..New::default() };
            after.usable = new.usable(after.usable.clone(), layout.scheme.bounds(&after), after.sector)?;
        }
        if let Some(id) = layout.id.filter(|&id| after.id != Some(id)) {
            after.id = Some(id);
            edits.push("change the table's id".into());
        }
        self.fill(layout, &mut after, ground, &mut edits)?;
        Ok((after, edits))
    }

    /// Makes the partitions of `table` those of the layout.
    fn fill(&mut self, layout: &Layout, table: &mut Table, ground: &TableSite<'_>, edits: &mut Vec<String>) -> Result<(), Refusal> {
        let numbers = numbers(layout, table)?;
        let others: Vec<u32> = table.entries.iter().map(|e| e.index).filter(|i| !numbers.contains(i)).collect();
        if !others.is_empty() && !self.may.delete {
            let list: Vec<String> = others.iter().map(u32::to_string).collect();
            let found = format!("the layout does not name partitions that are there: index {}", list.join(", "));
            return Err(Refusal::new(found, "add them to it, or delete them with --delete-others"));
        }
        for index in others {
            let gone = table.delete(index)?;
            edits.push(format!("delete {index}: {} bytes at {}", gone.length, place(gone.start, table.sector)));
        }
        if layout.align == Some(0) {
            return Err(Refusal::new("an alignment of 0", "leave it out for the best there is"));
        }
        let grains = ground.grains(layout.align);
        for (part, &index) in layout.parts.iter().zip(&numbers) {
            agree(layout, table, part, index, &grains, edits)?;
        }
        let items: Vec<Item> =
            layout.parts.iter().zip(&numbers).map(|(part, &i)| item(part, table.entry(i), table.sector)).collect::<Result<_, _>>()?;
        let ranges = laid(table, &items, &grains, layout, &numbers)?;
        for ((part, &index), range) in layout.parts.iter().zip(&numbers).zip(ranges) {
            let Some(range) = range else { continue };
            let kind = kind(layout, table, &part.kind)?;
            let uuid = part.uuid.or_else(|| matches!(kind, Kind::Gpt(_)).then(|| Guid::random((self.random)())));
            let place_there = Request { start: Some(range.start), size: Some(range.end - range.start), align: None };
            let attributes = part.attributes.unwrap_or(0);
            let wanted = Wanted { kind, place: place_there, index: Some(index), label: part.label.clone(), uuid, attributes };
            let of_part = |why: Refusal| Refusal::new(format!("partition {index}: {}", why.found), why.advice);
            table.add(layout.scheme, ground, wanted, Rules::Aligned).map_err(of_part)?;
            edits.push(format!(
                "add {index}: {}, {} bytes at {}",
                types::name(kind),
                range.end - range.start,
                place(range.start, table.sector)
            ));
        }
        Ok(())
    }
}

/// What is on the provider.
fn there(probe: &Probe<'_>) -> Occupant {
    let nothing = Contents { table: None, member: None, signs: &[], findings: &[] };
    if probe.kind().is_some_and(|kind| kind.is_extended()) {
        // An extended partition is an EBR's, and an empty chain until it has one.
        return nothing.table(probe).map_or(Occupant::Nothing, |(scheme, table)| Occupant::Table(scheme, Box::new(table)));
    }
    let mut found = Found::by(probe);
    found.settle();
    let table = found.tables.first().map(|(class, _)| *class);
    let member = found.member.as_ref().map(|(class, member)| (class.name(), member));
    Contents { table, member, signs: &found.signs, findings: &found.findings }.there(probe)
}

/// The name of the partition `entry` on the provider `name`.
fn called(scheme: &dyn Scheme, name: &str, entry: &Entry) -> String {
    // A logical partition is the disk's, not the extended one's.
    let digits = |c: char| c.is_ascii_digit();
    let name = if scheme.name() == "EBR" { name.trim_end_matches(digits).trim_end_matches('s') } else { name };
    format!("{name}{}", scheme.suffix(entry))
}

/// The type of that name in the scheme.
fn kind(layout: &Layout, table: &Table, name: &str) -> Result<Kind, Refusal> {
    scheme::typed_kind(layout.scheme, table, name).map(|(kind, _)| kind)
}

/// The layout with its starts counted from its own provider, `distance` bytes further on.
fn counted_from(layout: &Layout, distance: u64) -> Result<Layout, Refusal> {
    let mut layout = layout.clone();
    for part in &mut layout.parts {
        if let Some(start) = part.start {
            let before =
                || Refusal::new(format!("{start} lies before the partition that it is in"), "starts here count from the table above");
            part.start = Some(start.checked_sub(distance).ok_or_else(before)?);
        }
    }
    Ok(layout)
}

/// The number of each partition of the layout.
fn numbers(layout: &Layout, table: &Table) -> Result<Vec<u32>, Refusal> {
    let said: Vec<u32> = layout.parts.iter().filter_map(|p| p.index).collect();
    if let Some(twice) = said.iter().enumerate().find_map(|(i, index)| said[..i].contains(index).then_some(index)) {
        return Err(Refusal::new(format!("the layout has two partitions of index {twice}"), "number them differently"));
    }
    let mut free = (1..=table.capacity).filter(|i| !said.contains(i) && !table.kept.contains(i));
    let full = || Refusal::new(format!("the layout has {} partitions, more than the {} takes", layout.parts.len(), table.scheme), "");
    layout.parts.iter().map(|p| p.index.or_else(|| free.next()).ok_or_else(full)).collect()
}

/// Whether the partition that is there is the one of the layout; what may change is changed.
fn agree(layout: &Layout, table: &mut Table, part: &Part, index: u32, grains: &[Grain], edits: &mut Vec<String>) -> Result<(), Refusal> {
    let Some(at) = table.entries.iter().position(|e| e.index == index) else { return Ok(()) };
    let (mut entry, sector) = (table.entries[at].clone(), table.sector);
    let advice = || "a partition is not moved or resized here: correct the layout, or delete or resize it first".to_string();
    if let Some(start) = part.start.filter(|&start| start != entry.start) {
        let found = format!("partition {index} begins at {}, the layout says {}", place(entry.start, sector), place(start, sector));
        return Err(Refusal::new(found, advice()));
    }
    let sizes: Vec<u64> = match part.size {
        Size::Bytes(size) => round_up(size, sector).into_iter().collect(),
        Size::Percent(p) => grains.iter().map(|&grain| percent(whole(&table.usable, grain), p, grain)).collect(),
        Size::Rest => vec![entry.length],
    };
    // A share takes what the table needs before the partition with it.
    let is_size = |&size: &u64| size == entry.length || (table.lead > 0 && matches!(part.size, Size::Percent(_)) && size > entry.length);
    if !sizes.iter().any(is_size) {
        let said = sizes.first().copied().unwrap_or(u64::MAX);
        return Err(Refusal::new(format!("partition {index} has {} bytes, the layout says {said}", entry.length), advice()));
    }
    let mut changed = Vec::new();
    let kind = kind(layout, table, &part.kind)?;
    if entry.kind != kind {
        changed.push(format!("type {} to {}", types::name(entry.kind), types::name(kind)));
        entry.kind = kind;
    }
    // No name at all and an empty one are the same.
    if let Some(label) = part.label.as_ref().filter(|&l| l != entry.label.as_deref().unwrap_or_default()) {
        changed.push(format!("label to {label}"));
        entry.label = Some(label.clone());
    }
    if let Some(uuid) = part.uuid.filter(|&uuid| entry.uuid != Some(uuid)) {
        changed.push(format!("uuid to {uuid}"));
        entry.uuid = Some(uuid);
    }
    if let Some(attributes) = part.attributes.filter(|&a| a != entry.attributes) {
        changed.push("attributes".into());
        entry.attributes = attributes;
    }
    if !changed.is_empty() {
        layout.scheme.accept(table, &entry)?;
        table.entries[at] = entry;
        edits.push(format!("modify {index}: {}", changed.join(", ")));
    }
    Ok(())
}

/// The partition as what is to be laid.
fn item(part: &Part, there: Option<&Entry>, sector: u64) -> Result<Item, Refusal> {
    if let Some(entry) = there {
        return Ok(Item::Occupant(entry.end()));
    }
    let size = match part.size {
        Size::Bytes(size) => {
            Size::Bytes(round_up(size, sector).ok_or_else(|| Refusal::new(format!("a size of {size} bytes"), "no disk is so large"))?)
        }
        size => size,
    };
    Ok(Item::New { start: part.start, size })
}

/// The new partitions on the best grain on which all find room.
fn laid(
    table: &Table,
    items: &[Item],
    grains: &[Grain],
    layout: &Layout,
    numbers: &[u32],
) -> Result<Vec<Option<std::ops::Range<u64>>>, Refusal> {
    let floor = Floor { usable: table.usable.clone(), free: table.free(), lead: table.lead };
    let mut homeless = None;
    for &grain in grains {
        match lay(&floor, items, grain) {
            Ok(ranges) => return Ok(ranges),
            Err(i) => homeless = homeless.or(Some(i)),
        }
    }
    let i = homeless.unwrap_or(0);
    let size = match layout.parts.get(i).map(|p| p.size) {
        Some(Size::Bytes(size)) => format!(" of {size} bytes"),
        Some(Size::Percent(p)) => format!(" of {}.{:02} %", p / PERCENT, p % PERCENT),
        _ => String::new(),
    };
    let free = format!("before the layout, {}", free_ranges(table));
    Err(Refusal::new(format!("no room for partition {}{size}", numbers.get(i).copied().unwrap_or(0)), free))
}

#[cfg(test)]
#[path = "layout/tests.rs"]
mod tests;

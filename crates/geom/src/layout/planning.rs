//! Planning of a layout: its tables one by one, the outer before the inner.

use super::agree::{agree, kind};
use super::change::{Change, own_of};
use super::lay::{Floor, Item, lay};
use super::stages::{Inside, Stage};
use super::{Layout, May, PERCENT, Part, Refused, Size, Step};
use crate::base::ondisk::Guid;
use crate::base::patch::Patch;
use crate::base::topology::{Grain, round_up};
use crate::graph::Found;
use crate::graph::occupant::{Contents, Occupant, require_readable};
use crate::mapping::slices::{PartitionType, place};
use crate::probe::Probe;
use crate::table::scheme::{New, TableSite};
use crate::table::{Advice, Entry, Refusal, Request, Rules, Table, Wanted, free_ranges, types};

/// Planning of one layout: what it may do, and the steps so far.
pub(super) struct Planning<'a> {
    /// Length of the disk in bytes.
    pub(super) medium: u64,
    /// Permissions for what contradicts the layout.
    pub(super) may: May,
    /// Source of random bytes for identities.
    pub(super) random: &'a mut dyn FnMut() -> [u8; 16],
    /// Tables that were planned, the outer before the inner.
    pub(super) steps: Vec<Step>,
}

impl Planning<'_> {
    /// The writes of the table on one provider and of those inside it. `offset` and `above` are the
    /// first bytes, on the target, of the provider and of the one around it.
    pub(super) fn table(
        &mut self,
        layout: &Layout,
        probe: &Probe<'_>,
        site: &TableSite<'_>,
        name: &str,
        offset: u64,
        above: u64,
    ) -> Result<Vec<Stage>, Refused> {
        let refused = |why| Refused { provider: name.into(), why };
        let layout = &if layout.from_above {
            counted_from(layout, offset - above).map_err(refused)?
        } else {
            layout.clone()
        };
        let change = self.change_table(layout, probe, site).map_err(refused)?;
        let numbers = numbers(layout, &change.after).map_err(refused)?;
        let whole = change.writes(probe, &change.after).map_err(refused)?;
        self.steps.push(change.step(name, offset));
        // The tables inside are read as they will be once this one is written.
        let written = probe.after(&whole);
        let mut inside = Inside::default();
        for (part, index) in layout.parts.iter().zip(numbers) {
            let Some(entry) = change.after.entry(index) else { continue };
            // An extended partition begins with an empty chain, which belongs to its contents.
            let own = own_of(entry, &whole)
                .map(|p| Patch { offset: p.offset.saturating_add(offset), ..p.clone() })
                .collect();
            let mut stages = Vec::from_iter(Stage::unless_empty(own, None));
            if let Some(table) = &part.inside {
                let name = called(&change.after, name, entry);
                let route = written.route_within(entry.partition.start, entry.partition.length);
                let inner = written.within(&route, entry.partition.start, &entry.partition.kind);
                let topology = site.topology.shift(entry.partition.start, entry.partition.length);
                let site = TableSite {
                    topology: &topology,
                    base: site.base.saturating_add(entry.partition.start),
                    kind: Some(entry.partition.kind),
                };
                stages.extend(self.table(
                    table,
                    &inner,
                    &site,
                    &name,
                    offset.saturating_add(entry.partition.start),
                    offset,
                )?);
            }
            inside.add(index, change.when(entry, &stages, offset, &whole), stages);
        }
        change.around(inside, probe, whole, name, offset).map_err(refused)
    }

    /// The change of the table on one provider, of those inside it none.
    fn change_table(
        &mut self,
        layout: &Layout,
        probe: &Probe<'_>,
        site: &TableSite<'_>,
    ) -> Result<Change, Refusal> {
        let there = occupant(probe);
        require_readable(probe)?;
        let (before, after, edits) = match &there {
            Occupant::Table(table) if table.scheme.name() == layout.scheme.name() => {
                match self.edited(layout, table, site) {
                    Err(_) if self.may.replace => return self.replaced(layout, there, probe, site),
                    edited => edited.map(|(after, edits)| (Table::clone(table), after, edits))?,
                }
            }
            Occupant::Table(table) if !self.may.replace => {
                let found = format!(
                    "there is a table of another scheme, {}, with {} partitions",
                    table.scheme,
                    table.entries.len()
                );
                return Err(Refusal::new(found, Advice::ReplaceTable));
            }
            Occupant::Data(what, _) | Occupant::Remains(what) if !self.may.replace => {
                return Err(Refusal::new(what.clone(), Advice::ReplaceContents));
            }
            _ => return self.replaced(layout, there, probe, site),
        };
        Ok(Change { before, over: None, after, edits })
    }

    /// A table made anew, in the place of `there`.
    fn replaced(
        &mut self,
        layout: &Layout,
        there: Occupant,
        probe: &Probe<'_>,
        site: &TableSite<'_>,
    ) -> Result<Change, Refusal> {
        let new = New {
            entries: layout.entries,
            id: layout.id,
            random: (self.random)(),
            dialect: layout.dialect,
            usable: layout.usable,
            medium: Some(self.medium),
            ..New::default()
        };
        let empty = there.create(probe, site, layout.scheme, &new)?;
        let mut edits = Vec::new();
        if let Occupant::Table(table) = &there {
            let count = table.entries.len();
            edits.push(format!(
                "destroy {} of {count} partition{}",
                table.scheme,
                if count == 1 { "" } else { "s" }
            ));
        }
        edits.push(format!("create {}", layout.scheme.name()));
        let mut after = empty.clone();
        self.fill(layout, &mut after, site, &mut edits)?;
        Ok(Change { before: empty, over: Some(there), after, edits })
    }

    /// The table on the disk, edited to agree with the layout, and the edits in words.
    fn edited(
        &mut self,
        layout: &Layout,
        table: &Table,
        site: &TableSite<'_>,
    ) -> Result<(Table, Vec<String>), Refusal> {
        let (mut after, mut edits) = (table.clone(), Vec::new());
        if !after.damage.is_empty() {
            after = layout.scheme.recover(table, site)?;
            edits.push(format!("recover: {}", table.damage.join("; ")));
            after.damage.clear();
        }
        if let Some(entries) = layout.entries.filter(|&n| n != after.capacity) {
            let found = format!(
                "the {} has room for {} entries, the layout says {entries}",
                after.scheme, after.capacity
            );
            return Err(Refusal::new(found, "leave it out of the layout"));
        }
        if let Some((first, end)) = layout
            .usable
            .filter(|&(first, end)| (first, end) != (after.usable.start, after.usable.end))
        {
            if layout.scheme.keeps_usable() {
                let lies = |first, end| {
                    format!(
                        "from {} up to {}",
                        place(first, table.sector),
                        place(end, table.sector)
                    )
                };
                let found = format!(
                    "partitions lie {}, the layout says {}",
                    lies(after.usable.start, after.usable.end),
                    lies(first, end)
                );
                return Err(Refusal::new(found, "leave it out of the layout"));
            }
            let new = New { usable: layout.usable, ..New::default() };
            after.usable =
                new.usable(after.usable.clone(), layout.scheme.bounds(&after), after.sector)?;
        }
        if let Some(id) = layout.id.filter(|&id| after.id != Some(id)) {
            after.id = Some(id);
            edits.push("change the table's id".into());
        }
        self.fill(layout, &mut after, site, &mut edits)?;
        Ok((after, edits))
    }

    /// Makes the partitions of `table` agree with the layout; adds the edits in words.
    fn fill(
        &mut self,
        layout: &Layout,
        table: &mut Table,
        site: &TableSite<'_>,
        edits: &mut Vec<String>,
    ) -> Result<(), Refusal> {
        let numbers = numbers(layout, table)?;
        let others: Vec<u32> = table
            .entries
            .iter()
            .map(|e| e.partition.index)
            .filter(|i| !numbers.contains(i))
            .collect();
        if !others.is_empty() && !self.may.delete {
            let list: Vec<String> = others.iter().map(u32::to_string).collect();
            let found = format!(
                "the layout does not name partitions that are there: index {}",
                list.join(", ")
            );
            return Err(Refusal::new(found, Advice::AddOrDeleteOthers));
        }
        for index in others {
            let gone = table.delete(index)?;
            edits.push(format!(
                "delete {index}: {} bytes at {}",
                gone.partition.length,
                place(gone.partition.start, table.sector)
            ));
        }
        if layout.align == Some(0) {
            return Err(Refusal::new("an alignment of 0", "leave it out for the best there is"));
        }
        let grains = site.grains(layout.align);
        for (part, &index) in layout.parts.iter().zip(&numbers) {
            agree(table, part, index, &grains, edits)?;
        }
        let items: Vec<Item> = layout
            .parts
            .iter()
            .zip(&numbers)
            .map(|(part, &i)| item(part, table.entry(i), table.sector))
            .collect::<Result<_, _>>()?;
        let ranges = laid(table, &items, &grains, layout, &numbers)?;
        for ((part, &index), range) in layout.parts.iter().zip(&numbers).zip(ranges) {
            let Some(range) = range else { continue };
            let kind = kind(table, &part.kind)?;
            let uuid = part.uuid.or_else(|| {
                matches!(kind, PartitionType::Gpt(_)).then(|| Guid::random((self.random)()))
            });
            let place_there = Request {
                start: Some(range.start),
                size: Some(range.end - range.start),
                align: None,
            };
            let attributes = part.attributes.unwrap_or(0);
            let wanted = Wanted {
                kind,
                place: place_there,
                index: Some(index),
                label: part.label.clone(),
                uuid,
                attributes,
            };
            let of_part = |why: Refusal| {
                Refusal::new(format!("partition {index}: {}", why.found), why.advice)
            };
            table.add(site, wanted, Rules::Aligned).map_err(of_part)?;
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

/// Contents of the provider, from tasting it.
fn occupant(probe: &Probe<'_>) -> Occupant {
    let nothing = Contents { table: None, member: None, signs: &[], findings: &[] };
    if probe.kind().is_some_and(|kind| kind.is_extended()) {
        // An extended partition is read by the EBR alone, and is an empty chain until it has one.
        return nothing
            .table(probe)
            .map_or(Occupant::Nothing, |table| Occupant::Table(Box::new(table)));
    }
    let mut found = Found::ask(probe, None);
    found.settle();
    let table = found.tables.first().map(|(class, _)| *class);
    let member = found.member.as_ref().map(|(class, member)| (class.name(), member));
    Contents { table, member, signs: &found.signs, findings: &found.findings }.occupant(probe)
}

/// The name of the partition `entry` of `table`, which is on the provider `name`.
pub(super) fn called(table: &Table, name: &str, entry: &Entry) -> String {
    // A logical partition is named after the disk, not after the extended one.
    let digits = |c: char| c.is_ascii_digit();
    let name = if table.scheme.name() == "EBR" {
        name.trim_end_matches(digits).trim_end_matches('s')
    } else {
        name
    };
    format!("{name}{}", table.scheme.suffix(entry))
}

/// The layout with its starts counted from its own provider, which begins `distance` bytes later.
fn counted_from(layout: &Layout, distance: u64) -> Result<Layout, Refusal> {
    let mut layout = layout.clone();
    for part in &mut layout.parts {
        if let Some(start) = part.start {
            let before = || {
                Refusal::new(
                    format!("{start} lies before the partition that it is in"),
                    "starts here count from the table above",
                )
            };
            part.start = Some(start.checked_sub(distance).ok_or_else(before)?);
        }
    }
    Ok(layout)
}

/// Numbers of the layout's partitions, in its order.
fn numbers(layout: &Layout, table: &Table) -> Result<Vec<u32>, Refusal> {
    let given: Vec<u32> = layout.parts.iter().filter_map(|p| p.index).collect();
    if let Some(twice) =
        given.iter().enumerate().find_map(|(i, index)| given[..i].contains(index).then_some(index))
    {
        return Err(Refusal::new(
            format!("the layout has two partitions of index {twice}"),
            "number them differently",
        ));
    }
    let mut free = (1..=table.capacity).filter(|i| !given.contains(i) && !table.kept.contains(i));
    let full = || {
        Refusal::new(
            format!(
                "the layout has {} partitions, more than the {} takes",
                layout.parts.len(),
                table.scheme
            ),
            "",
        )
    };
    layout.parts.iter().map(|p| p.index.or_else(|| free.next()).ok_or_else(full)).collect()
}

/// The partition as an item to be placed; `there` is the existing one.
fn item(part: &Part, there: Option<&Entry>, sector: u64) -> Result<Item, Refusal> {
    if let Some(entry) = there {
        return Ok(Item::Occupant(entry.partition.end()));
    }
    let size = match part.size {
        Size::Bytes(size) => Size::Bytes(round_up(size, sector).ok_or_else(|| {
            Refusal::new(format!("a size of {size} bytes"), "no disk is so large")
        })?),
        size => size,
    };
    Ok(Item::New { start: part.start, size })
}

/// Ranges of the new partitions on the best grain on which all find room; `None` for each existing
/// one.
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
    Err(Refusal::new(
        format!("no room for partition {}{size}", numbers.get(i).copied().unwrap_or(0)),
        free,
    ))
}

//! Change of one table: its old and new contents, the writes between, and its place among the
//! tables inside it.

use super::Step;
use super::planning::called;
use super::stages::{Inside, Stage, When, meet, shown};
use crate::base::patch::{Patch, changes};
use crate::graph::occupant::Occupant;
use crate::probe::Probe;
use crate::table::{Entry, Refusal, Table};
use std::ops::Range;

/// Change of one table.
pub(super) struct Change {
    /// The table that is edited: the one that was read, or an empty one.
    pub(super) before: Table,
    /// Contents that the table replaces, where it is made anew.
    pub(super) over: Option<Occupant>,
    /// The table as it will be.
    pub(super) after: Table,
    /// Edits of the table in words.
    pub(super) edits: Vec<String>,
}

impl Change {
    /// The step as it is reported: `name` and first byte of its provider.
    pub(super) fn step(&self, name: &str, offset: u64) -> Step {
        Step { provider: name.into(), offset, table: self.after.clone(), edits: self.edits.clone() }
    }

    /// The writes that turn the table into `after`, in addresses of its provider, without those
    /// that change nothing.
    pub(super) fn writes(&self, probe: &Probe<'_>, after: &Table) -> Result<Vec<Patch>, Refusal> {
        let made = if self.edits.is_empty() {
            Vec::new()
        } else {
            after.scheme.render(&self.before, after)
        };
        let patches = match &self.over {
            Some(there) => there.replaced(probe, made),
            None => made,
        };
        changed(patches, probe)
    }

    /// The point at which the writes inside the partition `entry` are made: see the head of
    /// [`crate::layout::stages`].
    pub(super) fn when(
        &self,
        entry: &Entry,
        stages: &[Stage],
        offset: u64,
        whole: &[Patch],
    ) -> When {
        let own = whole.iter().filter(|p| !own_of(entry, whole).any(|own| own == *p));
        let own: Vec<Range<u64>> = own.map(|p| p.offset..p.end()).collect();
        if entry.from.is_some()
            || meet(stages, offset, &own) && !matches!(self.over, Some(Occupant::Data(..)))
        {
            return When::After;
        }
        let shown = match &self.over {
            None => shown(&self.before),
            Some(Occupant::Nothing | Occupant::Remains(_)) => Vec::new(),
            Some(Occupant::Table(table)) => shown(table),
            Some(Occupant::Data(..)) => std::iter::once(0..u64::MAX).collect(),
        };
        if meet(stages, offset, &shown) { When::Between } else { When::Before }
    }

    /// The writes of this table, `whole` of them, among those `inside` it, in addresses of the
    /// target.
    pub(super) fn around(
        &self,
        inside: Inside,
        probe: &Probe<'_>,
        whole: Vec<Patch>,
        name: &str,
        offset: u64,
    ) -> Result<Vec<Stage>, Refusal> {
        let (table, scheme) =
            (if name.is_empty() { "the disk" } else { name }, self.after.scheme.name());
        // The first sectors of a new partition are written with its contents.
        let outside = |patches: Vec<Patch>| -> Vec<Patch> {
            let inner = |p: &Patch| {
                self.after
                    .entries
                    .iter()
                    .any(|entry| own_of(entry, std::slice::from_ref(p)).next().is_some())
            };
            patches.into_iter().filter(|p| !inner(p)).collect()
        };
        let rest = inside.follow().then(|| {
            format!("{table}: the {scheme} as the layout says, a table inside it not yet")
        });
        if inside.held.is_empty() {
            return Ok(inside.around(
                None,
                Stage::unless_empty(
                    moved(outside(whole), offset),
                    rest.or_else(|| Some(format!("{table}: as the layout says"))),
                ),
            ));
        }
        let mut less = self.after.clone();
        less.entries.retain(|e| !inside.held.contains(&e.partition.index));
        let first = outside(self.writes(probe, &less)?);
        let probe = probe.after(&first);
        let unread = || {
            Refusal::new(
                format!("the {scheme} would not be read back"),
                "make the outer table first, then the inner ones",
            )
        };
        let now = self.after.scheme.read(&probe).ok_or_else(unread)?;
        let read_at = |entry: &Entry| {
            now.entries
                .iter()
                .find(|e| e.partition.start == entry.partition.start)
                .map(|e| e.partition.index)
        };
        let entries =
            self.after.entries.iter().map(|e| Entry { from: read_at(e), ..e.clone() }).collect();
        let last = changed(now.scheme.render(&now, &Table { entries, ..now.clone() }), &probe)?;
        let names = inside
            .held
            .iter()
            .filter_map(|&index| self.after.entry(index))
            .map(|e| called(&self.after, name, e));
        let without = format!(
            "{table}: the {scheme} as the layout says, but without {}",
            names.collect::<Vec<_>>().join(", ")
        );
        let whole = Stage::unless_empty(
            moved(outside(last), offset),
            rest.or_else(|| Some(format!("{table}: as the layout says"))),
        );
        Ok(inside.around(Stage::unless_empty(moved(first, offset), Some(without)), whole))
    }
}

/// Those of `patches` that a new extended partition `entry` begins with. Zeros do not count: they
/// remove old contents.
pub(super) fn own_of<'a>(
    entry: &'a Entry,
    patches: &'a [Patch],
) -> impl Iterator<Item = &'a Patch> {
    let within = |p: &&Patch| {
        entry.from.is_none()
            && entry.partition.kind.is_extended()
            && p.offset >= entry.partition.start
            && p.end() <= entry.partition.end()
    };
    patches.iter().filter(within).filter(|p| p.bytes.iter().any(|&byte| byte != 0))
}

/// Those of `patches` that change anything on the provider.
fn changed(patches: Vec<Patch>, probe: &Probe<'_>) -> Result<Vec<Patch>, Refusal> {
    changes(patches, &mut |at, out| probe.fill(at, out)).map_err(|errno| {
        Refusal::new(format!("what would be overwritten cannot be read: {errno}"), "")
    })
}

/// The same patches, from addresses of a provider to those of the target, on which it begins at
/// byte `offset`.
fn moved(patches: Vec<Patch>, offset: u64) -> Vec<Patch> {
    patches.into_iter().map(|p| Patch { offset: p.offset.saturating_add(offset), ..p }).collect()
}

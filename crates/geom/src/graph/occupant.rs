//! What stands on a provider before it is written, and what a new table does with it: asked once, for every command.
//!
//! What tasting passes over is no table here either. The front of a mirror's member, or of a RAID with its metadata at the end,
//! looks like a table whose end is missing; to mend it there would be to write over the metadata.

use crate::base::finding::{Finding, Severity};
use crate::base::patch::{self, Patch};
use crate::class::Member;
use crate::class::gpt::left;
use crate::format::{Inside, Sign};
use crate::mapping::slices::place;
use crate::probe::{Blind, Probe};
use crate::registry::SCHEMES;
use crate::table::scheme::{New, Scheme, TableSite};
use crate::table::{Refusal, Table};
use std::ops::Range;

/// What tasting made of a provider.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// The class of its table.
    pub table: Option<&'static str>,
    /// The class and the name of the set that it is a member of.
    pub member: Option<(&'static str, &'a Member)>,
    /// What was recognised on it.
    pub signs: &'a [Sign],
    /// What is wrong with it.
    pub findings: &'a [Finding],
}

/// What a new table would take the place of.
pub enum Occupant {
    /// Nothing that anybody would miss.
    Nothing,
    /// Bytes that no class or format knows, in words. Nothing is found again by them, so what is not written over stays.
    Remains(String),
    /// A table, whole or damaged.
    Table(&'static dyn Scheme, Box<Table>),
    /// Something else, in words, and the places of magic by which it would be found again.
    Data(String, Vec<u64>),
}

impl Contents<'_> {
    /// The table that is there, whole or damaged. What tasting does not see is not edited: a kernel would not see it either.
    pub fn table(&self, probe: &Probe<'_>) -> Option<(&'static dyn Scheme, Table)> {
        let is_extended = probe.kind().is_some_and(|kind| kind.is_extended());
        SCHEMES.iter().find_map(|&scheme| {
            let table = scheme.read(probe)?;
            let agreed = match self.table {
                Some(class) => scheme.name().eq_ignore_ascii_case(class),
                None => is_extended || !table.damage.is_empty() && self.holder().is_none(),
            };
            agreed.then_some((scheme, table))
        })
    }

    /// Who shows the front of this provider as its own bytes, in words.
    pub fn holder(&self) -> Option<String> {
        let member = self.member.map(|(class, member)| format!("it is a member of the {class} set {}", member.provider));
        let sign = self.signs.iter().find(|s| s.data.is_some_and(|d| d.offset == 0));
        member.or_else(|| sign.map(|s| format!("there is {} on it", s.kind)))
    }

    /// Why a table that seems to be there could not be read.
    pub fn unread(&self) -> Option<&str> {
        let worst = self.findings.iter().find(|f| self.table.is_none() && f.severity >= Severity::Warning);
        worst.map(|f| f.message.as_str())
    }

    /// What would be lost if the provider were written over: a format in use, a table that is none of [`SCHEMES`] or that nobody
    /// can read.
    pub fn holds(&self) -> Option<String> {
        // Under a table a format is what was there before, unless it is never written.
        let sign = self.signs.iter().find(|s| self.table.is_none() || s.inside == Inside::ReadOnly);
        let sign = sign.map(|s| format!("there is {} on it", s.kind));
        let table = || self.table.map(|class| format!("there is a {class} table on it"));
        let unread = || self.unread().map(|what| format!("there is something that cannot be read: {what}"));
        sign.or_else(|| self.holder()).or_else(table).or_else(unread)
    }

    /// What a new table would take the place of.
    pub fn there(&self, probe: &Probe<'_>) -> Occupant {
        match self.table(probe).filter(|(_, table)| !table.is_bare_chain()) {
            Some((scheme, table)) => Occupant::Table(scheme, Box::new(table)),
            None => match self.holds() {
                Some(what) => Occupant::Data(what, self.signs.iter().map(|s| s.magic).collect()),
                None => remains(probe, &[]).map_or(Occupant::Nothing, Occupant::Remains),
            },
        }
    }
}

/// Bytes that a message shows of what is not recognised.
const SHOWN: usize = 8;

/// The first bytes at the ends of a provider ([`patch::ends`]) that are not zero, in words; for one on which nothing was
/// recognised, but for what a destroyed GPT leaves. `known`: ranges that belong to something else, as the first sectors of a partition
/// may to the table around it.
/// An extended partition is made of other partitions, old ones too: what it holds by itself is its chain alone.
pub fn remains(probe: &Probe<'_>, known: &[Range<u64>]) -> Option<String> {
    if probe.kind().is_some_and(|kind| kind.is_extended()) {
        return None;
    }
    let left = left::left(probe);
    patch::ends(probe.length()).find_map(|(at, bytes)| {
        let mut piece = vec![0; bytes];
        if let Err(errno) = probe.look(at, &mut piece) {
            return Some(format!("{} cannot be read: {errno}", place(at, probe.sector())));
        }
        let is_known = |byte: u64| known.iter().chain(&left).any(|range| range.contains(&byte));
        let first = piece.iter().enumerate().position(|(i, &value)| value != 0 && !is_known(at.saturating_add(i as u64)))?;
        let shown: Vec<String> = piece[first..].iter().take(SHOWN).map(|value| format!("{value:02x}")).collect();
        Some(format!("there is something that is not recognised: {} has {}", place(at + first as u64, probe.sector()), shown.join(" ")))
    })
}

impl Occupant {
    /// What removes it.
    fn gone(&self, probe: &Probe<'_>) -> Vec<Patch> {
        match self {
            Occupant::Nothing | Occupant::Remains(_) => Vec::new(),
            Occupant::Table(scheme, table) => scheme.erase(table),
            Occupant::Data(_, magic) => patch::blank(probe.length(), magic, probe.sector()),
        }
    }

    /// An empty table. Of what is given up, nothing stays in the sectors that the table shares with it: else it would be
    /// recognised by them. Another table is seen to by the scheme itself, which must know of it to choose the order of its writes.
    pub fn create(&self, probe: &Probe<'_>, ground: &TableSite<'_>, scheme: &dyn Scheme, new: &New) -> Result<Table, Refusal> {
        let bare = match self {
            Occupant::Table(old, _) if !scheme.is_guest() || old.name() == scheme.name() => probe.after(&[]),
            _ => probe.after(&self.gone(probe)),
        };
        let table = scheme.create(&bare, ground, new)?;
        seen(&bare)?;
        Ok(table)
    }

    /// The writes that make the new table, and then remove what else is left of what was there: nobody finds it again.
    pub fn replaced(&self, probe: &Probe<'_>, made: Vec<Patch>) -> Vec<Patch> {
        patch::instead(made, self.gone(probe))
    }
}

/// Nothing is written where something could not be read.
pub fn seen(probe: &Probe<'_>) -> Result<(), Refusal> {
    match probe.blind() {
        None => Ok(()),
        Some(Blind::Budget) => Err(Refusal::new("there is more to read than any table has", "destroy what is there first")),
        Some(Blind::Unreadable(at, errno)) => Err(Refusal::new(format!("{} cannot be read: {errno}", place(at, probe.sector())), "")),
    }
}

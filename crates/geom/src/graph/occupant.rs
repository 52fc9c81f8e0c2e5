//! Contents of a provider before it is written, and their fate under a new table: decided once, for
//! every command.
//!
//! A table that tasting passes over is no table here either. The front of a mirror's member, or of
//! a RAID with its metadata at the end, looks like a table whose end is missing; a repair of it
//! there would overwrite the metadata.

use crate::base::finding::{Finding, Severity};
use crate::base::patch::{self, Patch};
use crate::class::Member;
use crate::class::gpt::left;
use crate::format::{Inside, Sign};
use crate::mapping::slices::place;
use crate::probe::{Blind, Probe};
use crate::registry::{self, SCHEMES};
use crate::table::scheme::{New, Scheme, TableSite};
use crate::table::{Refusal, Table};
use std::ops::Range;

/// Results of tasting one provider.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// Class of its table, if it has one.
    pub table: Option<&'static str>,
    /// Class of the set that it is a member of, and its membership.
    pub member: Option<(&'static str, &'a Member)>,
    /// Signs of the formats recognised on it.
    pub signs: &'a [Sign],
    /// Findings of tasting on it.
    pub findings: &'a [Finding],
}

/// Contents that a new table would replace.
pub enum Occupant {
    /// Nothing of value: every byte at the ends is zero, or left by a destroyed GPT.
    Nothing,
    /// Bytes that no class or format knows, in words. They form no signature, so those outside the
    /// new table stay.
    Remains(String),
    /// A table, whole or damaged.
    Table(Box<Table>),
    /// Another format or set, in words, and the offsets of magic by which it would be recognised
    /// again.
    Data(String, Vec<u64>),
}

impl Contents<'_> {
    /// The table on the provider, whole or damaged. A table that tasting does not see is not
    /// edited: a kernel would not see it either.
    pub fn table(&self, probe: &Probe<'_>) -> Option<Table> {
        let is_extended = probe.kind().is_some_and(|kind| kind.is_extended());
        SCHEMES.iter().find_map(|&scheme| {
            let table = scheme.read(probe)?;
            let agreed = match self.table {
                Some(class) => {
                    registry::scheme_of(class).is_some_and(|own| own.name() == scheme.name())
                }
                None => is_extended || !table.damage.is_empty() && self.holder().is_none(),
            };
            agreed.then_some(table)
        })
    }

    /// The set or format that shows the front of this provider as its own bytes, in words; `None`
    /// if there is none.
    pub fn holder(&self) -> Option<String> {
        let member = self.member.map(|(class, member)| {
            format!("it is a member of the {class} set {}", member.provider)
        });
        let sign = self.signs.iter().find(|s| s.data.is_some_and(|d| d.offset == 0));
        member.or_else(|| sign.map(|s| format!("there is {} on it", s.kind)))
    }

    /// Message of the first warning or error on a provider without a table that could be read;
    /// `None` otherwise.
    pub fn unread(&self) -> Option<&str> {
        let worst =
            self.findings.iter().find(|f| self.table.is_none() && f.severity >= Severity::Warning);
        worst.map(|f| f.message.as_str())
    }

    /// Contents that an overwrite would destroy, in words: a format in use, a table that none of
    /// [`SCHEMES`] edits, or one that cannot be read. `None` if there are none.
    pub fn holds(&self) -> Option<String> {
        // Under a table a format is a leftover, unless it is a read-only one.
        let sign = self.signs.iter().find(|s| self.table.is_none() || s.inside == Inside::ReadOnly);
        let sign = sign.map(|s| format!("there is {} on it", s.kind));
        let table =
            || self.table.map(|class| format!("there is a partition table ({class}) on it"));
        let unread =
            || self.unread().map(|what| format!("there is something that cannot be read: {what}"));
        sign.or_else(|| self.holder()).or_else(table).or_else(unread)
    }

    /// Contents that a new table would replace.
    pub fn occupant(&self, probe: &Probe<'_>) -> Occupant {
        match self.table(probe).filter(|table| !table.is_bare_chain()) {
            Some(table) => Occupant::Table(Box::new(table)),
            None => match self.holds() {
                Some(what) => Occupant::Data(what, self.signs.iter().map(|s| s.magic).collect()),
                None => remains(probe, &[]).map_or(Occupant::Nothing, Occupant::Remains),
            },
        }
    }
}

/// Bytes that a message shows of unrecognised contents.
const SHOWN: usize = 8;

/// The first nonzero bytes at the ends of a provider ([`patch::ends`]), in words; `None` if there
/// are none. For a provider on which nothing was recognised; remains of a destroyed GPT are
/// ignored. `known`: ranges that belong to something else, as the first sectors of a partition may
/// to the table around it.
///
/// An extended partition is made of other partitions, old ones too: all that it holds by itself is
/// its chain.
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
        let first = piece
            .iter()
            .enumerate()
            .position(|(i, &value)| value != 0 && !is_known(at.saturating_add(i as u64)))?;
        let shown: Vec<String> =
            piece[first..].iter().take(SHOWN).map(|value| format!("{value:02x}")).collect();
        Some(format!(
            "there is something that is not recognised: {} has {}",
            place(at + first as u64, probe.sector()),
            shown.join(" ")
        ))
    })
}

impl Occupant {
    /// Writes that remove these contents.
    fn gone(&self, probe: &Probe<'_>) -> Vec<Patch> {
        match self {
            Occupant::Nothing | Occupant::Remains(_) => Vec::new(),
            Occupant::Table(table) => table.scheme.erase(table),
            Occupant::Data(_, magic) => patch::blank(probe.length(), magic, probe.sector()),
        }
    }

    /// An empty table. No byte of the contents given up stays in the sectors that the table shares
    /// with them: else they would be recognised by it. Another table is handled by the scheme
    /// itself, which must know of it to order its writes.
    pub fn create(
        &self,
        probe: &Probe<'_>,
        site: &TableSite<'_>,
        scheme: &dyn Scheme,
        new: &New,
    ) -> Result<Table, Refusal> {
        let bare = match self {
            Occupant::Table(old) if !scheme.is_guest() || old.scheme.name() == scheme.name() => {
                probe.after(&[])
            }
            _ => probe.after(&self.gone(probe)),
        };
        let table = scheme.create(&bare, site, new)?;
        require_readable(&bare)?;
        Ok(table)
    }

    /// The writes that make the new table, then those that remove every remaining signature of the
    /// old contents.
    pub fn replaced(&self, probe: &Probe<'_>, made: Vec<Patch>) -> Vec<Patch> {
        patch::instead(made, self.gone(probe))
    }
}

/// Refusal to write where something could not be read.
pub fn require_readable(probe: &Probe<'_>) -> Result<(), Refusal> {
    match probe.blind() {
        None => Ok(()),
        Some(Blind::Budget) => Err(Refusal::new(
            "there is more to read than any table has",
            "destroy what is there first",
        )),
        Some(Blind::Unreadable(at, errno)) => {
            Err(Refusal::new(format!("{} cannot be read: {errno}", place(at, probe.sector())), ""))
        }
    }
}

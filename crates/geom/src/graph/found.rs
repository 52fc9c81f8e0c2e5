//! Answers of the classes and formats for one provider, and the choice between those that exclude
//! each other.

use crate::base::finding::{self, Finding, Severity};
use crate::class::{Class, Member, Taste};
use crate::format::{FormatKind, Inside, Sign};
use crate::mapping::geom::Geom;
use crate::mapping::slices::Slices;
use crate::probe::reach::{REACH, Reach};
use crate::probe::{Blind, Probe};
use crate::registry::{self, CLASSES, FORMATS, LAST};
use crate::table::types;
use std::sync::Arc;

/// Answers of the classes and formats for one provider.
pub(crate) struct Found {
    pub(crate) tables: Vec<(&'static str, Arc<dyn Geom>)>,
    /// The container that the provider is, and the geom of its contents.
    pub(crate) container: Option<(&'static dyn Class, Arc<dyn Geom>)>,
    pub(crate) member: Option<(&'static dyn Class, Member)>,
    pub(crate) signs: Vec<Sign>,
    pub(crate) findings: Vec<Finding>,
}

impl Found {
    /// Asks every format and class; where none answers, the list of known magic ([`LAST`]).
    ///
    /// Of a provider that is said to have the `format`, no other container is recognised.
    ///
    /// Where each read is a round trip, places far from both ends are asked for once it is known
    /// that what stands near them says nothing of those.
    pub(crate) fn ask(probe: &Probe<'_>, format: Option<&str>) -> Found {
        let found = Found::ask_within_reach(probe, format, !probe.is_far());
        let is_awaited = probe.blind().is_some_and(Blind::is_awaited);
        if !probe.is_far() || found.is_nothing() && is_awaited {
            return found;
        }
        probe.set_reach(found.reach(probe));
        Found::ask_within_reach(probe, format, true)
    }

    /// Places beyond those that were looked at in which something may be.
    fn reach(&self, probe: &Probe<'_>) -> Reach {
        let length = probe.length();
        // The front of a member is the set's, and of a container there is nothing else to know.
        let is_holder =
            |sign: &Sign| sign.data.is_some_and(|data| data.offset == 0) || shows_a_disk(sign);
        if self.container.is_some() || self.member.is_some() || self.signs.iter().any(is_holder) {
            return Reach::From(length);
        }
        if self.is_nothing() {
            return match probe.kind() {
                Some(&kind) if types::is_without_format(kind) => Reach::From(length),
                _ => Reach::All,
            };
        }
        if let Some((_, geom)) = self.tables.first() {
            return Reach::From(geom.table().map_or(0, |table| known_by(table, length)));
        }
        // Of a whole disk two reads more cost little, and it may have been a member of a set.
        if probe.is_medium() {
            return Reach::From(0);
        }
        // A format that says no size has at least what follows its sign.
        let known = |sign: &Sign| sign.size.unwrap_or(REACH).min(length);
        Reach::From(self.signs.iter().map(known).max().unwrap_or(0))
    }

    /// The answers that the places have which are looked at now.
    fn ask_within_reach(probe: &Probe<'_>, format: Option<&str>, is_last: bool) -> Found {
        let is_said = |name: &str| format.is_none_or(|format| format == name);
        let signs = FORMATS.iter().filter_map(|format| format.recognise(probe));
        let signs = signs.filter(|sign| is_said(sign.kind.name) || !shows_a_disk(sign)).collect();
        let mut found = Found {
            tables: Vec::new(),
            container: None,
            member: None,
            signs,
            findings: Vec::new(),
        };
        for class in CLASSES {
            if class.shows_a_disk() && !is_said(class.name()) {
                continue;
            }
            if class.waits_for_contents() && found.is_shown_elsewhere(class.sign()) {
                continue;
            }
            match class.taste(probe) {
                Taste::No => {}
                Taste::Refused(why) => found.findings.extend(why),
                Taste::Geom(geom, damage) if class.shows_a_disk() => {
                    // What else the file seems to hold is a guest's, or was there before.
                    (found.tables, found.findings) = (Vec::new(), damage);
                    found.signs.retain(|sign| Some(sign.kind) == class.sign());
                    if found.signs.is_empty() {
                        let named = LAST.recognise(probe);
                        let inside = Inside::Container;
                        found.signs.extend(named.map(|sign| Sign { inside, ..sign }));
                    }
                    found.container = Some((*class, geom));
                    found.member = None;
                    return found;
                }
                Taste::Geom(geom, damage) => {
                    found.findings.extend(class.contradicted(probe, registry::recognises));
                    found.findings.extend(damage);
                    found.tables.push((class.name(), geom));
                }
                Taste::Member(member) => found.member = Some((*class, member)),
            }
        }
        let place = |found: &Found| {
            let kind = found.member.as_ref().and_then(|(class, _)| class.sign())?;
            Some(found.signs.iter().find(|sign| sign.kind == kind)?.magic)
        };
        let before = place(&found);
        let signs = std::mem::take(&mut found.signs);
        found.signs = signs.into_iter().filter_map(|sign| found.own(sign, probe)).collect();
        if place(&found) != before {
            // What said so is a slice's.
            found.member = None;
        }
        if found.is_nothing() && is_last {
            found.signs.extend(LAST.recognise(probe));
        }
        found
    }

    /// True if what stands here with the sign of the kind `own` is a set's or another format's too,
    /// or is no more: a second copy alone beside a table or another format is what they left.
    fn is_shown_elsewhere(&self, own: Option<FormatKind>) -> bool {
        let mut others = self.signs.iter().filter(|sign| Some(sign.kind) != own);
        let holds = |sign: &Sign| sign.data.is_some_and(|data| data.offset == 0);
        let is_copy = |sign: &Sign| Some(sign.kind) == own && sign.magic != 0;
        let is_left = self.signs.iter().any(is_copy)
            && (!self.tables.is_empty() || others.clone().next().is_some());
        self.member.is_some() || is_left || others.any(holds)
    }

    /// The sign, unless a slice has all of its metadata at the end; then what its format finds in
    /// another place.
    fn own(&self, sign: Sign, probe: &Probe<'_>) -> Option<Sign> {
        let mut slices = self
            .tables
            .iter()
            .filter_map(|(_, geom)| geom.table())
            .flat_map(|table| table.entries.iter());
        match &sign.tail {
            Some(tail) if slices.any(|slice| slice.partition.covers(tail)) => {
                sign.kind.format.recognise_elsewhere(probe)
            }
            _ => Some(sign),
        }
    }

    /// True if it is what it was said to be: anything may be raw.
    pub(crate) fn has_format(&self, said: &str) -> bool {
        said == "raw" || self.signs.iter().any(|sign| sign.kind.name == said)
    }

    /// Forgets what all of it seems to be.
    pub(crate) fn be_bytes(&mut self) {
        (self.tables, self.member, self.signs, self.findings) = Default::default();
    }

    /// True if neither a class nor a format has answered.
    pub(crate) fn is_nothing(&self) -> bool {
        self.tables.is_empty()
            && self.container.is_none()
            && self.member.is_none()
            && self.signs.is_empty()
    }

    /// Chooses between answers that exclude each other, where that can be known; names those where
    /// it cannot.
    pub(crate) fn settle(&mut self) {
        // The front of a set's member, or of a format whose data begin at byte 0 (RAID 1.0, a fixed
        // VHD), is shown by the set or the data area too: it is read there, where it is whole and
        // ends where it should.
        if self.signs.iter().any(|sign| sign.inside == Inside::Moving) {
            // Of contents in two places every other signature may be the old one or the new one.
            self.tables.clear();
            self.member = None;
            self.findings.clear();
            self.signs.retain(|sign| sign.inside == Inside::Moving);
        }
        let entries =
            |(_, geom): &(&str, Arc<dyn Geom>)| geom.table().is_some_and(|t| !t.entries.is_empty());
        if self.tables.iter().any(entries) {
            self.member = self.member.take().filter(|(class, _)| !class.yields_to_tables());
        }
        let holder = self.signs.iter().position(|s| s.data.is_some_and(|d| d.offset == 0));
        if self.member.is_some() || holder.is_some() {
            self.tables.clear();
            self.findings.clear();
            let own = self.member.as_ref().and_then(|(class, _)| class.sign());
            let own = self.signs.iter().position(|sign| Some(sign.kind) == own);
            self.signs = own.or(holder).map(|i| self.signs.swap_remove(i)).into_iter().collect();
        }
        self.pass_over_empty();
        if self.tables.len() > 1 {
            let names: Vec<&str> = self.tables.iter().map(|(name, _)| *name).collect();
            let message = format!(
                "partition tables of {} kinds stand here: {}; read as {}",
                names.len(),
                names.join(", "),
                names[0]
            );
            let finding = Finding::new(&finding::AMBIVALENT, Severity::Warning, 0, message);
            self.findings.push(finding.fix(
                "wipe the table that is not in use: wipefs DEVICE \
                lists them, wipefs --backup --offset N DEVICE removes one",
            ));
        }
    }

    /// Passes over a table without partitions where something else is recognised, and adds a
    /// finding.
    fn pass_over_empty(&mut self) {
        let Some(sign) = self.signs.iter().find(|s| s.inside != Inside::ReadOnly) else { return };
        let empty =
            |(_, geom): &(&str, Arc<dyn Geom>)| geom.table().is_some_and(|t| t.entries.is_empty());
        let Some(at) = self.tables.iter().position(empty) else { return };
        let (scheme, _) = self.tables.remove(at);
        let message = format!(
            "an empty {scheme} table stands here as well as {}: it is passed over",
            sign.kind
        );
        let finding = Finding::new(&finding::AMBIVALENT, Severity::Warning, 0, message);
        self.findings.push(finding.fix(
            "wipe the one that is not in use: wipefs DEVICE lists \
            both, wipefs --backup --offset N DEVICE removes one",
        ));
    }
}

/// True if the sign is that of a container.
fn shows_a_disk(sign: &Sign) -> bool {
    CLASSES.iter().any(|class| class.shows_a_disk() && class.sign() == Some(sign.kind))
}

/// Bytes from the front of `length` in which nothing but partitions can be, by their table: all
/// where they begin behind every label at the front, and one has the place of those at the end.
fn known_by(table: &Slices, length: u64) -> u64 {
    let mut partitions = table.entries.iter().map(|slice| &slice.partition);
    if table.entries.is_empty() || partitions.clone().any(|own| own.start < LABELS) {
        return 0;
    }
    let (first, last) = (length.saturating_sub(REACH), length.saturating_sub(LAST_LABEL));
    let has_end = partitions.any(|own| own.start <= first && own.end() >= last);
    if has_end { length } else { length.min(REACH) }
}

/// Bytes at the front in which a format of a whole disk has its label.
const LABELS: u64 = 68 << 10;
/// Bytes from the end to the end of the last label in reach that is not near: md's version 0.90.
const LAST_LABEL: u64 = 60 << 10;

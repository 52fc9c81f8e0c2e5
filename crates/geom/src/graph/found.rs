//! Answers of the classes and formats for one provider, and the choice between those that exclude
//! each other.

use crate::base::finding::{self, Finding, Severity};
use crate::class::{Class, Member, Taste};
use crate::format::{FormatKind, Inside, Sign};
use crate::mapping::geom::Geom;
use crate::probe::Probe;
use crate::registry::{self, CLASSES, FORMATS, LAST};
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
    pub(crate) fn ask(probe: &Probe<'_>, format: Option<&str>) -> Found {
        let is_said = |name: &str| format.is_none_or(|format| format == name);
        let signs = FORMATS.iter().filter_map(|format| format.recognise(probe));
        let shows = |sign: &Sign| {
            CLASSES.iter().any(|class| class.shows_a_disk() && class.sign() == Some(sign.kind))
        };
        let signs = signs.filter(|sign| is_said(sign.kind.name) || !shows(sign)).collect();
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
        if found.is_nothing() && probe.is_far() && probe.blind().is_none() {
            probe.look_far();
            let signs = FORMATS.iter().filter_map(|format| format.recognise(probe));
            found.signs.extend(signs.filter(|sign| is_said(sign.kind.name) || !shows(sign)));
        }
        if found.is_nothing() {
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

//! Containers whose blocks lie off a boundary of what their file is on.

use super::{PAGE, name_of, severity, start};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::{Cost, Fact, Grain, Translation, Why, cost, is_whole};
use crate::format::Sign;
use crate::graph::{Graph, Id, Provider};
use crate::mapping::slices::place;

/// Findings about the container that the contents `id` are of. None for every other provider.
pub(super) fn findings(graph: &Graph, id: Id) -> Vec<Finding> {
    Shown::of(graph, id).map_or(Vec::new(), |shown| {
        let off = shown.off();
        let next = if off.is_some() { None } else { shown.next_off() };
        off.into_iter().chain(next).chain(shown.small_claim()).collect()
    })
}

/// The finding about a partition of a disk whose container is off, and that is off by itself too:
/// it stays so in a container that is not. None for every other provider.
pub(super) fn own_start(graph: &Graph, id: Id) -> Option<Finding> {
    let p = &graph.providers[id];
    let range = p.route().set().filter(|_| !p.is_contents && p.placed)?;
    range.geom.translation()?;
    let mut contents = p.parents.first().copied();
    while let Some(above) = contents.filter(|&above| !graph.providers[above].is_contents) {
        contents = graph.providers[above].parents.first().copied();
    }
    let shown = Shown::of(graph, contents?)?;
    let lost = |fact: &&Fact| missed(shown.translation, fact).is_some();
    // The guest's disk is what it will begin in the next container: at byte 0 of it.
    let whole = |fact: &Fact| Grain::new(fact.grain.size(), 0);
    let past = |fact: &Fact| whole(fact).map_or(0, |grain| grain.remainder(range.base));
    let mut facts = shown.file.topology.counting().filter(lost).filter(|fact| past(fact) > 0);
    let fact = facts.next()?;
    let (unit, remainder) = (fact.grain.size(), past(fact));
    let cost = cost(PAGE, unit, remainder, fact.why.is_rmw());
    let message = format!(
        "{} {} {remainder} bytes past a multiple of {unit}: off a {} in a container that is on it too",
        start::subject(p),
        start::starts(p),
        name_of(fact)
    );
    let worst = severity(cost).max(Severity::Warning);
    let finding = Finding::new(&finding::START, worst, 0, message);
    let to = place(whole(fact)?.next(range.base)?, p.topology.sector);
    Some(
        finding
            .against(unit, remainder, cost)
            .fix(format!("when the disk is in another container, start it at {to} of the disk")),
    )
}

/// A container, by what is known of it.
struct Shown<'a> {
    translation: &'a Translation,
    file: &'a Provider,
    sign: &'a Sign,
}

impl<'a> Shown<'a> {
    fn of(graph: &'a Graph, id: Id) -> Option<Shown<'a>> {
        // The contents of a fixed disk are a slice, whose place says everything.
        let p = &graph.providers[id];
        let file = &graph.providers[*p.parents.first().filter(|_| p.is_contents && p.is_set)?];
        let geom = p.route().set()?.geom;
        let translation = geom.translation().filter(|known| !known.is_transport())?;
        let sign = file.signs.iter().find(|sign| sign.kind.name == p.class)?;
        Some(Shown { translation, file, sign })
    }

    /// The beginning of a message: the format, and the program that made the file.
    fn subject(&self) -> String {
        let creator = self.sign.details.iter().find(|(name, _)| *name == "creator");
        let by = creator.map_or(String::new(), |(_, creator)| format!(", made by {creator},"));
        format!("{}{by}", self.sign.kind)
    }

    /// The finding about blocks that miss a boundary beneath the file: the costliest, if there are
    /// several.
    fn off(&self) -> Option<Finding> {
        let facts = self.file.topology.counting();
        let found = facts.filter_map(|fact| missed(self.translation, fact));
        let worst = found.max_by_key(|missed| (missed.severity(), missed.unit))?;
        let message = format!("{} {}", self.subject(), worst.message);
        let finding = Finding::new(&finding::CONTAINER, worst.severity(), 0, message).against(
            worst.unit,
            worst.remainder,
            worst.cost(),
        );
        Some(finding.fix(self.sign.kind.format.remake()))
    }

    /// The note about the next block, which the file has room for off a boundary only.
    fn next_off(&self) -> Option<Finding> {
        let off = |fact: &'a Fact| Some((self.translation.next_off(fact.grain)?, fact));
        let (past, fact) =
            self.file.topology.counting().filter_map(off).find(|(past, _)| *past > 0)?;
        let message = format!(
            "{} has room for its next block {past} bytes past a {}: what the guest writes there will be off it",
            self.subject(),
            name_of(fact)
        );
        let unit = fact.grain.size();
        let note = Finding::new(&finding::CONTAINER, Severity::Note, 0, message);
        Some(note.against(unit, past, None).fix(self.sign.kind.format.remake()))
    }

    /// The note about a physical unit that a guest is told, and that is smaller than the one
    /// beneath the file.
    fn small_claim(&self) -> Option<Finding> {
        let claim = self.translation.claim()?;
        let physical = |fact: &&Fact| fact.why == Why::Physical && fact.grain.size() > claim;
        let fact = self.file.topology.counting().find(physical)?;
        let message = format!(
            "{} tells its guest of physical sectors of {claim} bytes, and lies on a {}: the guest may write parts of it",
            self.subject(),
            name_of(fact)
        );
        let unit = fact.grain.size();
        let note = Finding::new(&finding::CONTAINER, Severity::Note, 0, message);
        Some(note.against(unit, 0, None).fix(format!(
            "say so in the file, with the machine shut down: Set-VHD -PhysicalSectorSizeBytes {unit}"
        )))
    }
}

/// A boundary of the file that blocks of the guest miss.
struct Missed {
    unit: u64,
    remainder: u64,
    is_rmw: bool,
    /// The rest of a sentence about the container.
    message: String,
}

impl Missed {
    fn cost(&self) -> Option<Cost> {
        cost(PAGE, self.unit, self.remainder, self.is_rmw)
    }

    fn severity(&self) -> Severity {
        severity(self.cost()).max(Severity::Warning)
    }
}

fn missed(translation: &Translation, fact: &Fact) -> Option<Missed> {
    let unit = fact.grain.size();
    let name = name_of(fact);
    let remainder = translation.past(fact.grain);
    let message = if is_whole(translation.grain().size(), unit) {
        // One class of the guest's addresses is on the unit, and 0 may not be in it.
        format!("puts byte 0 of every block {remainder} bytes past a {name}")
    } else if let Some(all) = translation.looked_at() {
        let off = translation.off(fact.grain).filter(|&off| off > 0)?;
        format!(
            "puts {off} of {all} blocks off a {name}: an offset that is on it for the guest is not on it in the file"
        )
    } else {
        format!(
            "puts clusters of {} bytes anywhere, and a {name} holds several: what the guest writes to one unit lies in several places",
            translation.allocation
        )
    };
    let is_rmw = fact.why.is_rmw();
    (remainder > 0).then_some(Missed { unit, remainder, is_rmw, message })
}

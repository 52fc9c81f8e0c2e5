//! Containers whose blocks lie off a boundary of what their file is on.

use super::{PAGE, name_of, severity};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::{Cost, Fact, Translation, cost, is_whole};
use crate::graph::{Graph, Id};

/// The finding about the contents of a container whose blocks miss a boundary beneath its file: the
/// costliest, if there are several. `None` for every other provider.
pub(super) fn off(graph: &Graph, id: Id) -> Option<Finding> {
    let p = &graph.providers[id];
    let file = &graph.providers[*p.parents.first().filter(|_| p.is_contents)?];
    let set = p.route().set()?;
    let translation = set.geom.translation()?;
    let found = file.topology.counting().filter_map(|fact| missed(translation, fact));
    let worst = found.max_by_key(|missed| (missed.severity(), missed.unit))?;
    let sign = file.signs.iter().find(|sign| sign.kind.name == p.class)?;
    let creator = sign.details.iter().find(|(name, _)| *name == "creator");
    let by = creator.map_or(String::new(), |(_, creator)| format!(", made by {creator},"));
    let message = format!("{}{by} {}", sign.kind, worst.message);
    let finding = Finding::new(&finding::CONTAINER, worst.severity(), 0, message).against(
        worst.unit,
        worst.remainder,
        worst.cost(),
    );
    Some(finding.fix(sign.kind.format.remake()))
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
    let distance = translation.grain();
    let (remainder, message) = if is_whole(distance.size(), unit) {
        // One class of the guest's addresses is on the unit, and 0 may not be in it.
        let remainder = fact.grain.shift(distance.phase()).remainder(0);
        let message = format!("puts byte 0 of every block {remainder} bytes past a {name}");
        (remainder, message)
    } else if let Some(all) = translation.looked_at() {
        let off = translation.off(unit).filter(|&off| off > 0)?;
        let message = format!(
            "puts {off} of {all} blocks off a {name}: an offset that is on it for the guest is not on it in the file"
        );
        (distance.size() % unit, message)
    } else {
        let message = format!(
            "puts clusters of {} bytes anywhere, and a {name} holds several: what the guest writes to one unit lies in several places",
            translation.allocation
        );
        (distance.size() % unit, message)
    };
    let is_rmw = fact.why.is_rmw();
    (remainder > 0).then_some(Missed { unit, remainder, is_rmw, message })
}

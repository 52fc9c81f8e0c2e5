//! Clashes: boundaries that the members of a set have in different places.

use super::{PAGE, severity};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::{Clash, Why, cost, is_whole};
use crate::graph::{Graph, Id};

/// Findings about clashes that arise on `id`, where members meet.
pub(super) fn clashes(graph: &Graph, id: Id) -> Vec<Finding> {
    let p = &graph.providers[id];
    let inherited =
        |c| p.parents.iter().any(|&parent| graph.providers[parent].topology.clashes.contains(c));
    // A clash on a disk was reported by the kernel, and has its finding.
    let fresh = p.topology.clashes.iter().filter(|c| {
        let own = p.is_set && !p.is_contents;
        own && c.why.costs() && !inherited(c)
    });
    let name = |&member: &Id| graph.providers[member].name.as_str();
    let chunk = p.topology.facts.iter().find(|fact| fact.why == Why::Chunk).map(|f| f.grain.size());
    let has_row = p.topology.facts.iter().any(|f| matches!(f.why, Why::Row | Why::FullStripe));
    let finding = |c: &Clash| match chunk.filter(|&chunk| c.unit > 0 && !is_whole(chunk, c.unit)) {
        // Chunks of a thin volume, a snapshot or a cache lie anywhere on what is beneath.
        Some(chunk) if p.class == "lvm" && !has_row => in_chunks(c, chunk),
        _ => clash(c, p.class, p.parents.get(c.member).map_or("?", name)),
    };
    fresh.map(finding).collect()
}

/// The finding about a volume in chunks of `chunk` bytes, which are not whole units of what they
/// lie on.
fn in_chunks(clash: &Clash, chunk: u64) -> Finding {
    let (unit, why) = (clash.unit, clash.why.name());
    let cost = cost(PAGE, unit, clash.remainder, clash.why.is_rmw());
    let message = format!(
        "its chunks of {chunk} bytes lie anywhere on a {unit}-byte {why}: what begins on that above does not begin on it beneath"
    );
    let severity = severity(cost).max(Severity::Warning);
    Finding::new(&finding::CLASH, severity, 0, message).against(unit, clash.remainder, cost).fix(
        format!(
            "make its pool anew with chunks of whole units: --chunksize, a multiple of {unit}b"
        ),
    )
}

/// The finding about a clash of a set of `class`, in which the member that disagrees is called
/// `member`.
pub(super) fn clash(clash: &Clash, class: &str, member: &str) -> Finding {
    let cost = cost(PAGE, clash.unit, clash.remainder, clash.why.is_rmw());
    let why = clash.why.name();
    let message = match clash.unit {
        0 => format!("no address is on a {why} boundary of all members of what {member} stands on"),
        unit => {
            let (number, off) = (clash.member, clash.remainder);
            format!(
                "no address is on a {unit}-byte {why} boundary of all members; member {number} ({member}) is {off} bytes off"
            )
        }
    };
    let fix = match class {
        "concat" => {
            "make every member of a whole number of units, on its boundary: label aligned partitions, not bare disks"
        }
        "lvm" => {
            "make the physical volumes anew, one after another, so that the data of each begin on its boundary: pvcreate --dataalignment"
        }
        "md" => {
            "begin the data of every member on its own boundary: partitions on it, and mdadm --create --data-offset on a multiple of it"
        }
        _ => {
            "begin the data of every member on its own boundary: label aligned partitions, not bare disks"
        }
    };
    let finding = Finding::new(&finding::CLASH, severity(cost).max(Severity::Warning), 0, message);
    finding.against(clash.unit, clash.remainder, cost).fix(fix)
}

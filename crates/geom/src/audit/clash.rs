//! Clashes: boundaries that the members of a set have in different places.

use super::{PAGE, severity};
use crate::base::finding::{self, Finding, Severity};
use crate::base::topology::{Clash, cost};
use crate::graph::{Graph, Id};

/// Findings about clashes that arise on `id`, where members meet.
pub(super) fn clashes(graph: &Graph, id: Id) -> Vec<Finding> {
    let p = &graph.providers[id];
    let inherited =
        |c| p.parents.iter().any(|&parent| graph.providers[parent].topology.clashes.contains(c));
    // A clash on a disk was reported by the kernel, and has its finding.
    let fresh = p.topology.clashes.iter().filter(|c| p.is_set && c.why.costs() && !inherited(c));
    let name = |&member: &Id| graph.providers[member].name.as_str();
    fresh.map(|c| clash(c, p.class, p.parents.get(c.member).map_or("?", name))).collect()
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

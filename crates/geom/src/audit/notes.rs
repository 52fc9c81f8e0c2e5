//! Notes about boundaries where no I/O of a file system is judged: carriers, empty disks, ends,
//! hints.

use super::start::{neighbours, starts};
use super::{PAGE, Role, name_of};
use crate::base::finding::{self, Finding, Fix, Severity, Statement};
use crate::base::topology::{Fact, Trust, Why};
use crate::graph::{Graph, Provider};
use crate::mapping::slices::place;

/// The note about a start off the grain from which there is no I/O.
pub(super) fn carrier(p: &Provider, role: Role, fact: &Fact) -> Finding {
    let why = match role {
        Role::Idle => "it holds boot code or is reserved: nothing writes it while the system runs",
        _ if p.table.is_some() || p.is_extended() => {
            "it only carries a table; what counts is where the partitions in it start"
        }
        _ => "what counts is where its data begin",
    };
    // The providers on it move with it, and may be aligned already.
    let fix = if role == Role::Idle {
        "nothing to do"
    } else {
        "nothing to do here: what it carries is judged by itself"
    };
    let message =
        format!("{} {} bytes past a {}: {why}", starts(p), fact.grain.remainder(0), name_of(fact));
    Finding::new(&finding::CARRIER, Severity::Note, 0, message).against_fact(fact, None).fix(fix)
}

/// The note about an empty disk or set off its own boundary.
pub(super) fn blank(p: &Provider, fact: &Fact) -> Finding {
    let message = format!(
        "its byte 0 is {} bytes past a {}: what uses it whole would be off the boundary",
        fact.grain.remainder(0),
        name_of(fact)
    );
    let finding =
        Finding::new(&finding::START, Severity::Note, 0, message).against_fact(fact, None);
    match p.topology.nearest(1).1 {
        Some(first) => finding.fix(format!(
            "partition it, from a boundary: the first is {}",
            place(first, p.topology.sector)
        )),
        None => finding,
    }
}

/// The note about a slice that has only part of its last physical unit; `None` for one that ends
/// there with its table.
pub(super) fn off_end(graph: &Graph, p: &Provider) -> Option<Finding> {
    p.kind.filter(|k| !k.is_extended())?;
    let parent = &graph.providers[*p.parents.first()?];
    let physical = p.topology.counting().filter(|f| f.why == Why::Physical);
    let fact = physical.into_iter().find(|f| !f.grain.contains(p.topology.length))?;
    let (unit, remainder) = (fact.grain.size(), fact.grain.remainder(p.topology.length));
    let end = p.base() + p.topology.length;
    let shared = neighbours(parent, p.base())
        .any(|(start, _)| end <= start && start < end.saturating_add(unit - remainder));
    let last = parent.slices().is_some_and(|t| end >= parent.base().saturating_add(t.usable.end));
    if last && !shared {
        return None;
    }
    let why = if shared {
        "the next one begins in the same unit"
    } else {
        "no other partition uses the rest of that unit"
    };
    let message = format!(
        "ends at {}, {remainder} bytes into a {}: {why}",
        place(end, p.topology.sector),
        name_of(fact)
    );
    let finding = Finding::new(&finding::END, Severity::Note, p.topology.length, message)
        .against(unit, remainder, None);
    let words = format!("make it {remainder} bytes shorter, or end it on the next boundary");
    let lacks = (!shared && !last).then_some(Fix::Lengthen(unit - remainder));
    Some(lacks.into_iter().chain([words.into()]).fold(finding, Finding::fix))
}

/// The note about a start that is on every boundary that counts, but not on one that is only a
/// hint: the 1 MiB convention for an unnamed drive, or an optimal I/O size that only the device
/// claims.
pub(super) fn off_hint(p: &Provider) -> Option<Finding> {
    // The convention for partitions says nothing of a data area; the unit that a drive may have
    // does.
    let partition = p.kind.is_some();
    let unit = |f: &Fact| f.why == Why::Convention && f.grain.size() <= PAGE;
    let place_of =
        |f: &Fact| f.why == Why::Convention || (f.why == Why::Optimal && f.trust == Trust::Claimed);
    let hint = |f: &&Fact| unit(f) || (partition && place_of(f));
    let fact = p.topology.facts.iter().filter(hint).find(|f| !f.grain.contains(0))?;
    let at = place(p.base(), p.topology.sector);
    let past = fact.grain.remainder(0);
    let (message, statement) = if unit(fact) {
        let doubt = "nothing on this device, which claims smaller units; four times the operations \
            on one that has them and does not say";
        (
            format!("starts at {at}, {past} bytes past a {}-byte unit: {doubt}", fact.grain.size()),
            Statement::Physical(4096),
        )
    } else if fact.why == Why::Convention {
        let doubt = "right for 4096-byte units, perhaps not for a drive or set with larger ones";
        (format!("starts at {at}, not on a multiple of 1 MiB: {doubt}"), Statement::Drive)
    } else {
        let doubt = "a boundary on a RAID controller, a transfer limit on many drives";
        (
            format!("starts at {at}, {past} bytes past the {}: {doubt}", name_of(fact)),
            Statement::Optimal,
        )
    };
    let found = Finding::new(&finding::HINT, Severity::Note, 0, message).against_fact(fact, None);
    Some(found.fix(Fix::State(statement)))
}

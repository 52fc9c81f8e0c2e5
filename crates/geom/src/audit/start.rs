//! Starts off a boundary: the finding, the reasons for which one costs nothing, and other starts.

use super::contents;
use super::{name_of, severity};
use crate::base::finding::{self, Finding, Fix, Severity};
use crate::base::size::PAGE;
use crate::base::topology::{Cost, Fact, Why};
use crate::format::{Inside, Piece};
use crate::graph::{Graph, Id, Provider};
use crate::mapping::slices::{PartitionType, place};

/// Cost factor below which a start off a boundary costs next to nothing in the layer's own blocks.
const LITTLE: f64 = 1.05;
/// GPT type of the EFI system partition, below its MBR type: a file system, but one that is hardly
/// ever written.
const EFI_GPT: &str = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";

const EFI_MBR: u8 = 0xef;

/// The finding for a start, or the start of a data area, off the boundaries `missed`, the costliest
/// first.
pub(super) fn off_start(
    graph: &Graph,
    id: Id,
    missed: &[(Fact, Option<Cost>)],
    harmless: Option<&str>,
) -> Finding {
    let p = &graph.providers[id];
    let ((fact, cost), also) = (missed[0], &missed[1..]);
    let data_area = p.is_data_area();
    let (rule, what) = if data_area {
        (&finding::DATA, format!("{} data area", p.class))
    } else {
        (&finding::START, subject(p))
    };
    let past = |f: &Fact| format!("{} bytes past a {}", f.grain.remainder(0), name_of(f));
    let mut message = format!("{what} {} {}", starts(p), past(&fact));
    // A boundary whose class lies inside that of the missed one is missed with it.
    let implied = |f: &Fact| f.grain.intersect(fact.grain).is_some_and(|both| both == f.grain);
    for (other, _) in also.iter().filter(|(f, _)| !implied(f)) {
        message.push_str(&format!("; also {}", past(other)));
    }
    if let Some(why) = harmless {
        return Finding::new(rule, Severity::Note, 0, message)
            .against_fact(&fact, None)
            .fix(format!("nothing to do: {why}"));
    }
    if cost.is_none_or(|c| c.rmw_factor < LITTLE) {
        message.push_str("; small I/O hardly notices, I/O as large as that ");
        message.push_str(&full_stripe(p, &fact).unwrap_or("always touches one more".into()));
    }
    // The factor is that of whole blocks; the end of a file may be written in smaller pieces, and
    // cost more.
    let dearer = fragment(p)
        .map(|size| (size, fact.cost(size)))
        .filter(|(_, of_it)| factor(*of_it) > factor(cost));
    if let Some((size, of_it)) = dearer {
        message.push_str(&format!("; a fragment of {size} bytes costs {:.2} x", factor(of_it)));
    }
    let worst = severity(cost).max(dearer.map_or(Severity::Note, |(_, of_it)| severity(of_it)));
    let mut finding = Finding::new(rule, worst, 0, message).against_fact(&fact, cost);
    finding.fix = match p.parents.first() {
        Some(&parent) if data_area => contents::data_fixes(graph, id, &graph.providers[parent]),
        _ => start_fixes(graph, id),
    };
    finding
}

/// The bytes that members of a parity set read and write for a full stripe that begins off the
/// boundary `fact`; `None` for other boundaries.
fn full_stripe(p: &Provider, fact: &Fact) -> Option<String> {
    let rows = p.route().parity_rows().filter(|_| fact.why == Why::FullStripe)?;
    let remainder = fact.grain.remainder(0);
    let (off, on) = (rows.full_write(remainder)?, rows.full_write(0)?);
    let bytes = |pages: u64| pages * PAGE;
    Some(format!(
        "reads {} bytes of old data or parity and writes {}, instead of none and {}: {:.2} x",
        bytes(off.reads),
        bytes(off.writes),
        bytes(on.writes),
        rows.factor(remainder)?
    ))
}

/// The smallest piece of data in bytes that is written by itself though it is less than a block;
/// `None` without one.
fn fragment(p: &Provider) -> Option<u64> {
    p.signs.iter().filter_map(|s| s.piece).filter(Piece::is_data).map(|piece| piece.size).min()
}

/// The reason for which a start off a boundary for `why` costs nothing, in words; `None` if it does
/// cost. Only writes must fill such a unit, and a running system does not write the provider: it,
/// or one beneath it, has a format that is never written in place; or it is the inside of an EFI
/// system partition that itself begins on such a boundary.
pub(super) fn unwritten(graph: &Graph, id: Id, why: Why) -> Option<&'static str> {
    let p = &graph.providers[id];
    let parent = p.parents.first().filter(|_| !p.is_set && why.is_rmw());
    if why.is_rmw() && p.signs.iter().any(|s| s.inside == Inside::ReadOnly) {
        return Some("it is never written in place");
    }
    if why.is_rmw() && p.signs.iter().any(|s| s.inside == Inside::Moving) {
        return Some("it is on its way");
    }
    let outer = &graph.providers[*parent?];
    if p.is_data_area()
        && boots(outer)
        && outer.topology.counting().all(|f| f.why != why || f.grain.contains(0))
    {
        return Some("it is written only when what boots is installed");
    }
    unwritten(graph, *parent?, why)
}

/// True if it is an EFI system partition.
pub(super) fn boots(p: &Provider) -> bool {
    match p.kind {
        Some(PartitionType::Gpt(guid)) => guid.to_string() == EFI_GPT,
        Some(PartitionType::Mbr(kind)) => kind == EFI_MBR,
        _ => false,
    }
}

/// The noun for a provider, for the beginning of a sentence.
pub(super) fn subject(p: &Provider) -> String {
    match p.signs.as_slice() {
        [one] => one.kind.to_string(),
        [] if p.member.is_some() => "set member".into(),
        [] if p.is_set => "set".into(),
        [] if p.parents.is_empty() => "disk".into(),
        [] => "partition".into(),
        _ => "contents".into(),
    }
}

/// The start of a provider, if it is known, for a message that goes on with the distance past a
/// boundary.
pub(super) fn starts(p: &Provider) -> String {
    if p.placed {
        format!("starts at {},", place(p.base(), p.topology.sector))
    } else {
        "starts, at a place that is not reported,".into()
    }
}

/// Advice for a logical volume that begins off the boundary: the data area of its physical volume
/// does, or an extent is no whole number of units.
fn extent_fix(graph: &Graph, id: Id) -> String {
    let p = &graph.providers[id];
    let unit = p.topology.counting().map(|fact| fact.grain.size()).max().unwrap_or(1);
    let area = p.parents.first().and_then(|&parent| {
        let parent = &graph.providers[parent];
        let data = parent.signs.iter().find_map(|sign| sign.data)?;
        Some(parent.topology.shift(data.offset, parent.topology.length))
    });
    let area_is_on = area.is_some_and(|area| area.missed(1).is_empty());
    if area_is_on {
        format!(
            "its extents are no whole number of {unit} bytes: make the group anew with extents (vgcreate -s) of a multiple of that"
        )
    } else {
        format!(
            "empty the physical volume (pvmove, vgreduce, pvremove), then pvcreate --dataalignment {unit}b and vgextend"
        )
    }
}

/// Other starts, in the addresses of the disk or set at its root, or advice where there is none to
/// give.
fn start_fixes(graph: &Graph, id: Id) -> Vec<Fix> {
    let (p, root) = (&graph.providers[id], &graph.providers[graph.root(id)]);
    if !p.placed {
        let later = p
            .topology
            .nearest(1)
            .1
            .map_or_else(String::new, |later| format!("start it {later} bytes later; "));
        return vec![format!("{later}sfdisk --dump tells where it starts now").into()];
    }
    if p.class == "lvm" {
        return vec![extent_fix(graph, id).into()];
    }
    let Some(&parent) = p.parents.first() else {
        return vec![
            "the device itself begins off its own boundary: partitions on it can begin on one"
                .into(),
        ];
    };
    let parent = &graph.providers[parent];
    let own = p.base();
    let usable = parent.slices().map_or(0..parent.topology.length, |t| t.usable.clone());
    let allowed = |&x: &u64| {
        let free = !neighbours(parent, own).any(|(from, to)| from <= x.max(own) && x.min(own) < to);
        free && x.checked_sub(parent.base()).is_some_and(|x| usable.contains(&x))
    };
    let at = own.saturating_sub(root.base());
    let (below, above) = root.topology.nearest(at);
    let mut near: Vec<u64> =
        [below, above].into_iter().flatten().map(|x| root.base() + x).filter(allowed).collect();
    // The conventional place comes first, unless one of these is such a place.
    let usual = root.topology.usual().filter(|g| !near.iter().any(|x| g.contains(x - root.base())));
    let usual = usual.and_then(|g| g.next(at)).filter(|&x| x < root.topology.length);
    near.splice(0..0, usual.map(|x| root.base() + x).filter(allowed));
    vec![Fix::StartAt(near)]
}

/// First byte, and byte after the last, of the other partitions of the table on `parent`, without
/// the slice at `own`; in the addresses of its disk or set.
pub(super) fn neighbours(parent: &Provider, own: u64) -> impl Iterator<Item = (u64, u64)> {
    let entries = parent.slices().map(|t| t.entries.as_slice()).unwrap_or_default();
    let ranges = entries.iter().filter(|s| !s.partition.kind.is_extended()).map(|s| {
        let start = parent.base().saturating_add(s.partition.start);
        (start, start.saturating_add(s.partition.length))
    });
    ranges.filter(move |&(start, _)| start != own)
}

/// Device operations relative to the same I/O on the grain; 0 if not known.
fn factor(cost: Option<Cost>) -> f64 {
    cost.map_or(0.0, |c| c.rmw_factor)
}

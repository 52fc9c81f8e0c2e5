//! Verdicts and findings about a graph.
//!
//! A verdict is about I/O. A start counts where it is the origin of I/O: a file system, swap, a
//! member of a set, the payload of an encrypted volume, unknown contents, a bare partition. A slice
//! that only carries another table, or a format whose data begin further in, is judged by the
//! providers on it.

use crate::base::finding::{self, Finding, Fix, Severity};
use crate::base::topology::{Clash, Cost, Fact, Trust, Why, cost};
use crate::format::{Inside, Piece, Sign};
use crate::graph::{Graph, Id, Provider};
use crate::mapping::slices::{Kind, Purpose, place};
use crate::table::types;

pub(crate) mod contents;
pub mod io;
pub mod limits;
pub mod members;
pub mod profile;
mod vacant;

pub use vacant::vacant;

/// Verdict about I/O, in ascending order of severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// All I/O is on the grain.
    Aligned,
    /// Part of the provider could not be known.
    Unknown,
    /// Some I/O is off the grain.
    Misaligned,
}

impl Verdict {
    /// Name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Aligned => "aligned",
            Verdict::Unknown => "unknown",
            Verdict::Misaligned => "misaligned",
        }
    }
}

/// Verdicts, roles and findings of a graph; every list goes by provider.
pub struct Audit {
    /// Verdict of each provider, or the worst among the providers on it where it only carries
    /// others.
    pub verdicts: Vec<Verdict>,
    /// Role of each provider in I/O.
    pub roles: Vec<Role>,
    /// Every finding with its provider, the most severe first.
    pub findings: Vec<(Id, Finding)>,
}

/// Role of a provider in I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Origin of I/O: a file system, swap, a member of a set, a bare partition.
    Data,
    /// Carrier of a table or a data area, without I/O of its own.
    Carrier,
    /// Boot code or reserved space, which a running system does not write.
    Idle,
    /// Disk or set on which nothing was recognised.
    Blank,
}

/// Size in bytes of a write where no format gives it: a page.
const PAGE: u64 = 4096;
/// Cost factor from which on misalignment is an error rather than a warning.
const DEAR: f64 = 1.5;

/// GPT types (as text) of partitions that hold boot code or nothing; below, the MBR type.
const IDLE_GPT: &[&str] = &[
    "21686148-6449-6e6f-744e-656564454649", // BIOS boot (GRUB)
    "83bd6b9d-7f41-11dc-be0b-001560b84f0f", // freebsd-boot
    "e3c9e316-0b5c-4db8-817d-f92df00215ae", // Microsoft reserved
    "9e1a2d38-c612-4316-aa26-8b49521e5a8b", // PReP boot
];
const IDLE_MBR: u8 = 0x41; // PReP boot
/// GPT type of the EFI system partition, below its MBR type: a file system, but one that is hardly
/// ever written.
const EFI_GPT: &str = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b";
const EFI_MBR: u8 = 0xef;
/// Cost factor below which a start off a boundary costs next to nothing in the layer's own blocks.
const LITTLE: f64 = 1.05;

/// Judges every provider of `graph`, from the disks up.
pub fn audit(graph: &Graph) -> Audit {
    let roles: Vec<Role> = (0..graph.providers.len()).map(|id| role(graph, id)).collect();
    let mut findings = Vec::new();
    let mut verdicts = Vec::new();
    for (id, provider) in graph.providers.iter().enumerate() {
        findings.extend(provider.findings.iter().map(|f| (id, f.clone())));
        let mut found = Vec::new();
        let own = judge(graph, id, roles[id], &mut found);
        // A format whose blocks are too small writes them in its data area.
        let outer = provider
            .parents
            .first()
            .filter(|_| provider.is_data_area())
            .map(|&parent| verdicts[parent]);
        let own = own.max(outer.filter(|&v| v == Verdict::Misaligned).unwrap_or(own));
        verdicts.push(if shows_a_set(graph, id) { own.max(Verdict::Unknown) } else { own });
        found.extend(clashes(graph, id));
        findings.extend(found.into_iter().map(|f| (id, f)));
    }
    // A provider comes after those it stands on, so one pass from the end carries every verdict
    // down.
    for id in (0..verdicts.len()).rev() {
        for &parent in &graph.providers[id].parents {
            if roles[parent] == Role::Carrier {
                verdicts[parent] = verdicts[parent].max(verdicts[id]);
            }
        }
    }
    findings.sort_by_key(|(id, f)| (std::cmp::Reverse(f.severity), *id));
    Audit { verdicts, roles, findings }
}

/// True if it is the front of a member of a firmware RAID, whose chunks and start are unknown.
fn shows_a_set(graph: &Graph, id: Id) -> bool {
    graph
        .outer_sign(id)
        .is_some_and(|sign| sign.data.is_some() && matches!(sign.inside, Inside::Unknown(_)))
}

fn role(graph: &Graph, id: Id) -> Role {
    let p = &graph.providers[id];
    let idle = match p.kind {
        Some(Kind::Gpt(guid)) => IDLE_GPT.contains(&guid.to_string().as_str()),
        Some(Kind::Mbr(kind)) => kind == IDLE_MBR,
        Some(Kind::Tag(tag)) => tag.purpose == Purpose::Boot,
        _ => false,
    };
    let carries = p.table.is_some()
        || p.is_extended()
        || p.kind.is_some_and(types::is_described_elsewhere)
        || (!p.signs.is_empty() && p.signs.iter().all(|s| s.data.is_some()));
    if carries {
        Role::Carrier
    } else if p.member.is_some() || !p.signs.is_empty() {
        Role::Data
    } else if idle {
        Role::Idle
    } else if p.parents.is_empty() || p.is_set {
        Role::Blank
    } else {
        Role::Data // a bare partition or an inner data area
    }
}

/// The verdict of one provider by itself; adds the findings of the way there.
fn judge(graph: &Graph, id: Id, role: Role, found: &mut Vec<Finding>) -> Verdict {
    let p = &graph.providers[id];
    let blocked = p.findings.iter().any(hides);
    let mut verdict = if blocked { Verdict::Unknown } else { Verdict::Aligned };
    let missed = p.topology.missed(block(graph, id));
    contents::signatures(p, found);
    match role {
        Role::Carrier | Role::Idle => {
            // A disk cannot be moved.
            let movable = missed.first().filter(|_| !p.parents.is_empty());
            found.extend(movable.map(|(fact, _)| carrier(p, role, fact)));
            verdict = verdict.max(contents::judge(graph, id, role, found));
        }
        Role::Blank => {
            found.extend(missed.first().map(|(fact, _)| blank(p, fact)));
            if p.topology.clashes.iter().any(|c| c.why.costs()) {
                verdict = Verdict::Misaligned;
            }
            verdict = verdict.max(contents::judge(graph, id, role, found));
        }
        Role::Data => {
            // A unit that writes must fill costs nothing where nothing is written; every boundary
            // is excused by itself.
            let (excused, charged): (Vec<_>, Vec<_>) = missed
                .iter()
                .copied()
                .partition(|(fact, _)| unwritten(graph, id, fact.why).is_some());
            if !charged.is_empty() {
                found.push(off_start(graph, id, &charged, None));
                verdict = verdict.max(Verdict::Misaligned);
            }
            if let Some((fact, _)) = excused.first() {
                found.push(off_start(graph, id, &excused, unwritten(graph, id, fact.why)));
            }
            if p.topology.clashes.iter().any(|c| c.why.costs()) {
                verdict = Verdict::Misaligned;
            }
            verdict = verdict.max(contents::judge(graph, id, role, found));
        }
    }
    if missed.is_empty() && p.placed {
        found.extend(off_end(graph, p));
        found.extend(
            off_hint(p)
                .filter(|_| role == Role::Data && unwritten(graph, id, Why::Physical).is_none()),
        );
    }
    verdict
}

/// True if a finding means that part of the provider was not seen, so that nothing there may be
/// called aligned: a table that cannot be read, or only in part, a set with missing members, a
/// failed read, a device without read permission. One bad copy of two hides nothing.
fn hides(finding: &Finding) -> bool {
    let rule = finding.rule;
    let tables = [&finding::GPT, &finding::SECTOR, &finding::EBR, &finding::LABEL, &finding::RANGE];
    let damaged = finding.severity == Severity::Error && tables.iter().any(|r| **r == *rule);
    let unseen =
        finding.severity > Severity::Note && *rule == finding::BLIND || *rule == finding::UNREAD;
    damaged || unseen || *rule == finding::INCOMPLETE
}

/// The name of a fact in a message: `4096-byte physical unit (assumed)`.
fn name_of(fact: &Fact) -> String {
    let source = if fact.trust == Trust::Assumed { " (assumed)" } else { "" };
    let what = match fact.why {
        Why::Physical => "physical unit",
        Why::Preferred => "preferred write unit",
        Why::Optimal => "optimal I/O size",
        Why::Chunk => "chunk",
        Why::FullStripe => "full stripe",
        Why::Erase => "erase unit",
        Why::Cluster => "container cluster",
        Why::Logical | Why::Atomic | Why::Row | Why::Discard | Why::Convention => fact.why.name(),
    };
    format!("{}-byte {what}{source}", fact.grain.size())
}

/// The smallest piece of data in bytes that is written by itself though it is less than a block;
/// `None` without one.
fn fragment(p: &Provider) -> Option<u64> {
    p.signs.iter().filter_map(|s| s.piece).filter(Piece::is_data).map(|piece| piece.size).min()
}

/// Device operations relative to the same I/O on the grain; 0 if not known.
fn factor(cost: Option<Cost>) -> f64 {
    cost.map_or(0.0, |c| c.rmw_factor)
}

/// The severity of a cost: an error from [`DEAR`] on, else a warning.
fn severity(cost: Option<Cost>) -> Severity {
    match cost {
        Some(c) if c.rmw_factor >= DEAR => Severity::Error,
        _ => Severity::Warning,
    }
}

/// The layer's own unit of I/O in bytes; of a data area, that of its format.
fn block(graph: &Graph, id: Id) -> u64 {
    let p = &graph.providers[id];
    let own = p.signs.iter().filter_map(|s| s.block).min();
    own.or_else(|| graph.outer_sign(id)?.block).unwrap_or(PAGE)
}

/// The finding for a start, or the start of a data area, off the boundaries `missed`, the costliest
/// first.
fn off_start(
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
        message
            .push_str("; small I/O hardly notices, I/O as large as that always touches one more");
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

/// The reason for which a start off a boundary for `why` costs nothing, in words; `None` if it does
/// cost. Only writes must fill such a unit, and a running system does not write the provider: it,
/// or one beneath it, has a format that is never written in place; or it is the inside of an EFI
/// system partition that itself begins on such a boundary.
fn unwritten(graph: &Graph, id: Id, why: Why) -> Option<&'static str> {
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
fn boots(p: &Provider) -> bool {
    match p.kind {
        Some(Kind::Gpt(guid)) => guid.to_string() == EFI_GPT,
        Some(Kind::Mbr(kind)) => kind == EFI_MBR,
        _ => false,
    }
}

/// The noun for a provider, for the beginning of a sentence.
fn subject(p: &Provider) -> String {
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
fn starts(p: &Provider) -> String {
    if p.placed {
        format!("starts at {},", place(p.base(), p.topology.sector))
    } else {
        "starts, at a place that is not told,".into()
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
fn neighbours(parent: &Provider, own: u64) -> impl Iterator<Item = (u64, u64)> {
    let entries = parent.slices().map(|t| t.entries.as_slice()).unwrap_or_default();
    let ranges = entries.iter().filter(|s| !s.kind.is_extended()).map(|s| {
        let start = parent.base().saturating_add(s.start);
        (start, start.saturating_add(s.length))
    });
    ranges.filter(move |&(start, _)| start != own)
}

/// The note about a start off the grain from which there is no I/O.
fn carrier(p: &Provider, role: Role, fact: &Fact) -> Finding {
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
fn blank(p: &Provider, fact: &Fact) -> Finding {
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
fn off_end(graph: &Graph, p: &Provider) -> Option<Finding> {
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
        "the rest of that unit is nobody's"
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
fn off_hint(p: &Provider) -> Option<Finding> {
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
    let (message, fix) = if unit(fact) {
        let doubt = "nothing on this device, which claims smaller units; four times the operations on one that has them and does not say";
        (
            format!("starts at {at}, {past} bytes past a {}-byte unit: {doubt}", fact.grain.size()),
            "if it is one: --physical 4096",
        )
    } else if fact.why == Why::Convention {
        let doubt = "right for 4096-byte units, perhaps not for a drive or set with larger ones";
        (
            format!("starts at {at}, not on a multiple of 1 MiB: {doubt}"),
            "say what drive it is for: --for ssd-16k, --for sd-4m, --for raid64kx4",
        )
    } else {
        let doubt = "a boundary on a RAID controller, a transfer limit on many drives";
        (
            format!("starts at {at}, {past} bytes past the {}: {doubt}", name_of(fact)),
            "if it is one, say so: --grain optimal=SIZE",
        )
    };
    Some(Finding::new(&finding::HINT, Severity::Note, 0, message).against_fact(fact, None).fix(fix))
}

/// Findings about clashes that arise on `id`, where members meet.
fn clashes(graph: &Graph, id: Id) -> Vec<Finding> {
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
fn clash(clash: &Clash, class: &str, member: &str) -> Finding {
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
        _ => {
            "begin the data of every member on its own boundary: label aligned partitions, not bare disks"
        }
    };
    let finding = Finding::new(&finding::CLASH, severity(cost).max(Severity::Warning), 0, message);
    finding.against(clash.unit, clash.remainder, cost).fix(fix)
}

/// The subject of a message about a sign: "ext4 on s1".
fn on(p: &Provider, sign: &Sign) -> String {
    if p.name.is_empty() { sign.kind.to_string() } else { format!("{} on {}", sign.kind, p.name) }
}

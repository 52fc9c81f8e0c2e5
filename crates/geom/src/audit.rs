//! Verdicts and findings about a graph.
//!
//! A verdict is about I/O. A start counts where it is the origin of I/O: a file system, swap, a
//! member of a set, the payload of an encrypted volume, unknown contents, a bare partition. A slice
//! that only carries another table, or a format whose data begin further in, is judged by the
//! providers on it.

use crate::base::finding::{self, Finding, Severity};
use crate::base::size::PAGE;
use crate::base::topology::{Cost, Fact, Trust, Why};
use crate::format::{Inside, Sign};
use crate::graph::{Graph, Id, Provider};
use crate::mapping::slices::{PartitionType, Purpose};
use crate::table::types;
use clash::{clash, clashes};
use notes::{blank, carrier, off_end, off_hint};
use start::{boots, off_start, unwritten};

mod clash;
mod container;
pub(crate) mod contents;
pub mod io;
pub mod limits;
pub mod members;
mod notes;
pub mod profile;
mod start;
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
        Some(PartitionType::Gpt(guid)) => IDLE_GPT.contains(&guid.to_string().as_str()),
        Some(PartitionType::Mbr(kind)) => kind == IDLE_MBR,
        Some(PartitionType::Tag(tag)) => tag.purpose == Purpose::Boot,
        _ => false,
    };
    let carries = p.table.is_some()
        || p.is_backing
        || p.is_extended()
        || p.kind.is_some_and(types::is_described_elsewhere)
        || (!p.signs.is_empty() && p.signs.iter().all(|s| s.shows_data()));
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
    found.extend(container::findings(graph, id));
    match role {
        Role::Carrier | Role::Idle => {
            // A disk cannot be moved.
            let movable = missed.first().filter(|_| !p.parents.is_empty() && !p.is_contents);
            found.extend(movable.map(|(fact, _)| carrier(p, role, fact)));
            verdict = verdict.max(contents::judge(graph, id, role, found));
        }
        Role::Blank => {
            found.extend(missed.first().filter(|_| !p.is_contents).map(|(fact, _)| blank(p, fact)));
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
            if !charged.is_empty() && p.is_contents {
                // Its container has put it there, and has its own finding.
                verdict = verdict.max(Verdict::Misaligned);
            } else if !charged.is_empty() {
                found.push(off_start(graph, id, &charged, None));
                verdict = verdict.max(Verdict::Misaligned);
            }
            if let Some((fact, _)) = excused.first() {
                found.push(off_start(graph, id, &excused, unwritten(graph, id, fact.why)));
            }
            found.extend(container::own_start(graph, id));
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

/// The subject of a message about a sign: "ext4 on s1".
fn name_sign(p: &Provider, sign: &Sign) -> String {
    if p.name.is_empty() { sign.kind.to_string() } else { format!("{} on {}", sign.kind, p.name) }
}

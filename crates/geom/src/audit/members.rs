//! Objections to a set of given providers: contents that would be lost, and boundaries that no
//! address of the set could be on.

use super::{clash, hides};
use crate::base::finding::Fix;
use crate::base::topology::{Cost, Topology, Trust, Why, in_place_cost, is_whole, round_down};
use crate::class::{Class, Member, metadata};
use crate::graph::{Graph, Id, occupant};

/// Weight of an objection, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Worth a warning to the user.
    Warning,
    /// Refused unless the user insists.
    Doubt,
    /// Refused in any case.
    Bar,
}

/// Objection to a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Weight of the objection.
    pub weight: Weight,
    /// Reason, as a clause of a message.
    pub found: String,
    /// Action that mends it.
    pub advice: Advice,
}

/// Action that mends an objection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Sentence about an action of the user or of another program.
    Words(String),
    /// Clearing the metadata of a set of this class.
    Clear(&'static str),
    /// As [`Advice::Words`], or stating what the drives are, where that is presumed.
    StateDrives(String),
    /// Partitions on the set, whose starts are placed on the boundary.
    Partition,
}

impl Advice {
    fn words(text: impl Into<String>) -> Advice {
        Advice::Words(text.into())
    }
}

impl Objection {
    fn new(weight: Weight, found: impl Into<String>, advice: Advice) -> Objection {
        Objection { weight, found: found.into(), advice }
    }
}

/// Objections to a set of `class` over the providers `ids`, with the labels `members`, the heaviest
/// first.
pub fn objections(
    graph: &Graph,
    class: &dyn Class,
    ids: &[Id],
    members: &[Member],
) -> Vec<Objection> {
    let mut found = shared(graph, ids);
    for &id in ids {
        let taken = taken(graph, id);
        found.extend(lost(graph, class, id, taken.is_some()));
        found.extend(taken);
    }
    let below: Vec<Topology> = ids.iter().map(|&id| graph.providers[id].topology.clone()).collect();
    found.extend(units(graph, ids, members.first().map_or(0, |m| m.chunk)));
    match class.assemble(members) {
        Some(geom) => found.extend(grains(graph, class, ids, &below, &geom.topology(0, &below))),
        None => found.push(Objection::new(
            Weight::Bar,
            "the set would be larger than 2^64 bytes",
            Advice::words("use fewer or smaller members"),
        )),
    }
    found.sort_by_key(|o| std::cmp::Reverse(o.weight));
    found
}

/// Name of a provider in a message.
fn name(graph: &Graph, id: Id) -> &str {
    match graph.providers[id].name.as_str() {
        "" => "the disk",
        name => name,
    }
}

/// Objections to members that share bytes.
fn shared(graph: &Graph, ids: &[Id]) -> Vec<Objection> {
    let range = |id: Id| {
        let route = graph.providers[id].route();
        (route.base(), route.base().saturating_add(route.length()))
    };
    let meet = |a: Id, b: Id| {
        let ((from, to), (start, end)) = (range(a), range(b));
        graph.root(a) == graph.root(b) && from < end && start < to
            || stands_on(graph, a, b)
            || stands_on(graph, b, a)
    };
    let pairs =
        ids.iter().enumerate().flat_map(|(i, &a)| ids[i + 1..].iter().map(move |&b| (a, b)));
    let meeting = pairs.filter(|&(a, b)| meet(a, b));
    meeting
        .map(|(a, b)| {
            let found = if a == b {
                format!("{} is named twice", name(graph, a))
            } else {
                format!("{} and {} share bytes", name(graph, a), name(graph, b))
            };
            Objection::new(Weight::Bar, found, Advice::words("name every member once"))
        })
        .collect()
}

/// True if `id` stands on `below`, however far down.
fn stands_on(graph: &Graph, id: Id, below: Id) -> bool {
    // A provider comes after those it stands on, so one pass is enough, however many paths there
    // are.
    let mut under = vec![false; id + 1];
    under[id] = true;
    for at in (0..=id).rev().filter(|&at| at > below) {
        if under[at] {
            graph.providers[at].parents.iter().for_each(|&parent| under[parent] = true);
        }
    }
    id > below && under[below]
}

/// Objection to overwriting the last sector of a member, which the label takes; `None` if it holds
/// no metadata.
fn taken(graph: &Graph, id: Id) -> Option<Objection> {
    let (probe, name) = (graph.probe(id), name(graph, id));
    let sector = probe
        .from_end(probe.sector())
        .and_then(|at| probe.bytes(at, usize::try_from(probe.sector()).ok()?));
    let Some(sector) = sector else {
        return Some(Objection::new(
            Weight::Bar,
            format!("the last sector of {name} cannot be read"),
            Advice::words("leave it out"),
        ));
    };
    if let Some(magic) = metadata::magic(&sector) {
        let advice = match magic.as_str() {
            "GEOM::STRIPE" => Advice::Clear("stripe"),
            "GEOM::MIRROR" => Advice::Clear("mirror"),
            "GEOM::CONCAT" => Advice::Clear("concat"),
            _ => Advice::words("clear it first, with the tool that it belongs to"),
        };
        return Some(Objection::new(
            Weight::Bar,
            format!("the last sector of {name} holds {magic} metadata"),
            advice,
        ));
    }
    let gpt = sector.starts_with(b"EFI PART");
    gpt.then(|| {
        let found = format!(
            "there is a GPT on {name}, and its backup header is in the last \
            sector, which the label would take"
        );
        Objection::new(Weight::Doubt, found, Advice::words("label a partition, not the disk"))
    })
}

/// Objections to contents of a member that would be lost, or shown by the set in its place.
/// `taken`: an objection to its last sector exists, so its table or set need not be named.
fn lost(graph: &Graph, class: &dyn Class, id: Id, taken: bool) -> Vec<Objection> {
    let (p, name) = (&graph.providers[id], name(graph, id));
    let fate = match class.name() {
        "stripe" => "its bytes would be those of other places of the set",
        _ => "the set would show it, or the part of it that is on this member",
    };
    let mut found: Vec<String> =
        p.in_use().map(|s| format!("there is {} on {name}", s.kind)).collect();
    found.extend(p.table.as_ref().filter(|_| !taken).map(|(scheme, _)| {
        let entries = p.slices().map_or(0, |s| s.entries.len());
        format!("there is a partition table on {name} ({scheme}, entries in use: {entries})")
    }));
    if p.is_extended() {
        found.push(format!("{name} is the extended partition, which holds others"));
    }
    // Contents that could not be read may be of value.
    found.extend(
        p.findings
            .iter()
            .filter(|f| p.table.is_none() && hides(f))
            .map(|f| format!("{name}: {}", f.message)),
    );
    let nothing = found.is_empty() && !taken && p.member.is_none() && graph.veil(id).is_none();
    found.extend(
        occupant::remains(&graph.probe(id), &[])
            .filter(|_| nothing)
            .map(|what| format!("{name}: {what}")),
    );
    let objection = |found| {
        Objection::new(
            Weight::Doubt,
            format!("{found}: {fate}"),
            Advice::words("use another, or wipe it first"),
        )
    };
    found.into_iter().map(objection).collect()
}

/// Objections to units of the members that do not divide the chunk, each unit once.
fn units(graph: &Graph, ids: &[Id], chunk: u64) -> Vec<Objection> {
    let (mut found, mut seen) = (Vec::new(), Vec::new());
    let facts = ids
        .iter()
        .flat_map(|&id| graph.providers[id].topology.counting().map(move |fact| (id, fact)));
    for (id, fact) in
        facts.filter(|(_, f)| chunk > 0 && f.why.is_rmw() && !is_whole(chunk, f.grain.size()))
    {
        let unit = fact.grain.size();
        if seen.contains(&(fact.why, unit)) {
            continue;
        }
        seen.push((fact.why, unit));
        let said = format!(
            "a chunk of {chunk} bytes is not a multiple of {}'s {}: the disk reads the rest of a unit before it writes a chunk{}",
            name(graph, id),
            super::name_of(fact),
            times(in_place_cost(chunk, unit)),
        );
        // A row may still fill units that a chunk does not.
        let weight = if fact.why == Why::Physical { Weight::Doubt } else { Weight::Warning };
        let advice = unit
            .checked_next_power_of_two()
            .map_or(String::new(), |size| format!("use -s {size} or a multiple of it"));
        found.push(Objection::new(weight, said, Advice::words(advice)));
    }
    found
}

fn times(cost: Option<Cost>) -> String {
    cost.filter(|c| c.rmw_factor > 1.0)
        .map_or(String::new(), |c| format!(", {:.2} x the device operations", c.rmw_factor))
}

/// Objections to clashes of the members' boundaries, and to those that byte 0 of the set misses.
fn grains(
    graph: &Graph,
    class: &dyn Class,
    ids: &[Id],
    below: &[Topology],
    top: &Topology,
) -> Vec<Objection> {
    let mut found: Vec<Objection> = Vec::new();
    for c in top.clashes.iter().filter(|c| c.why.costs()) {
        let member = ids.get(c.member).map_or("?", |&id| name(graph, id));
        let finding = clash(c, class.name(), member);
        let assumed = below
            .iter()
            .flat_map(|t| &t.facts)
            .any(|f| f.why == c.why && f.trust == Trust::Assumed);
        let advice = match below.get(c.member) {
            // The sector of its metadata makes it end off the boundary.
            Some(t) if class.name() == "concat" && t.counting().all(|f| f.grain.contains(0)) => {
                let whole =
                    round_down(t.length.saturating_sub(t.sector), c.unit).saturating_add(t.sector);
                format!(
                    "give {member} {whole} bytes ({} sectors): whole units, and one sector for the metadata",
                    whole / t.sector
                )
            }
            _ => finding.fix.iter().filter_map(Fix::words).collect::<Vec<_>>().join("; "),
        };
        let advice = if assumed { Advice::StateDrives(advice) } else { Advice::words(advice) };
        found.push(Objection::new(
            Weight::Doubt,
            format!("{}{}", finding.message, times(finding.cost)),
            advice,
        ));
    }
    for (fact, cost) in top.missed(super::PAGE) {
        let said = format!(
            "byte 0 of the set is {} bytes past a {}{}",
            fact.grain.remainder(0),
            super::name_of(&fact),
            times(cost).replacen(',', ": what uses it whole does", 1),
        );
        found.push(Objection::new(Weight::Warning, said, Advice::Partition));
    }
    found
}

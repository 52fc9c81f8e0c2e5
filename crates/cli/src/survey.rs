//! The way from a tasted graph to the report.

pub(crate) mod cure;
mod journal;

use crate::failure::Reason;
use crate::report::{
    self, Arrangement, Container, Finding, FirstWrite, Grain, Provider, Range, Table, TouchedRange,
    Verdict,
};
use crate::survey::cure::Cures;
use crate::target::{DiskOverrides, Target};
use crate::write_target;
use trueline_geom::audit::{self, Audit, Role};
use trueline_geom::base::topology::{Fact, GUEST_WRITE, Translation, UnitOps, largest_grain};
use trueline_geom::format::Sign;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::geom;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::table::types;

/// The target of a report, from an audit of `graph`. `only` limits it to one provider and all that
/// stands on it.
///
/// Errors: there is no such provider; the message names those there are.
pub(crate) fn survey(
    target: &Target,
    graph: &Graph,
    only: Option<&str>,
) -> Result<report::Target, Reason> {
    survey_with(target, None, graph, only)
}

/// As [`survey`], with the options that describe the disk: the commands of its cures repeat them.
pub(crate) fn survey_with(
    target: &Target,
    overrides: Option<&DiskOverrides>,
    graph: &Graph,
    only: Option<&str>,
) -> Result<report::Target, Reason> {
    Ok(report(target, overrides, (graph, &audit::audit(graph)), &kept(target, graph, only)?))
}

/// As [`survey_with`], of all providers of a graph whose audit is there already.
pub(crate) fn survey_audited(
    target: &Target,
    overrides: Option<&DiskOverrides>,
    graph: &Graph,
    audit: &Audit,
) -> report::Target {
    let all: Vec<Id> = (0..graph.providers.len()).collect();
    report(target, overrides, (graph, audit), &all)
}

/// The report of the providers that are `kept`.
fn report(
    target: &Target,
    overrides: Option<&DiskOverrides>,
    (graph, audit): (&Graph, &Audit),
    kept: &[Id],
) -> report::Target {
    let providers: Vec<Provider> = kept.iter().map(|&id| provider(graph, audit, id)).collect();
    let vacant = audit::vacant(graph, audit, kept);
    let found = audit.findings.iter().filter(|(id, _)| kept.contains(id)).chain(&vacant);
    let cures = Cures::new(target, overrides, graph);
    let findings = found.map(|(id, f)| finding(graph, &cures, *id, f));
    let findings = findings.chain(journal::finding(target, graph, kept)).collect();
    let judged = kept.iter().map(|&id| audit.verdicts[id].into()).max();
    let verdict = judged.filter(|_| vacant.is_none()).unwrap_or(Verdict::Unknown);
    report::Target {
        target: target.typed().into(),
        judged: None,
        verdict,
        providers,
        findings,
        incomplete: graph.incomplete.clone(),
    }
}

/// Ids of all providers, or of `only` and all that stands on it.
fn kept(target: &Target, graph: &Graph, only: Option<&str>) -> Result<Vec<Id>, Reason> {
    let all = 0..graph.providers.len();
    let Some(name) = only else { return Ok(all.collect()) };
    let Some(first) = graph.find(name) else {
        let names: Vec<&str> =
            graph.providers.iter().map(|p| p.name.as_str()).filter(|n| !n.is_empty()).collect();
        let there = if names.is_empty() {
            "there are none".into()
        } else {
            format!("there are {}{}", names.join(", "), write_target::not_followed(graph))
        };
        let found = write_target::missing_members(target, name, graph).unwrap_or(there);
        return Err(Reason(format!("no provider #{name}: {found}")));
    };
    let mut kept = vec![first];
    for id in first + 1..graph.providers.len() {
        if graph.providers[id].parents.iter().any(|parent| kept.contains(parent)) {
            kept.push(id);
        }
    }
    Ok(kept)
}

fn arrangement(set: &geom::Arrangement, read_only: Option<&'static str>) -> Arrangement {
    Arrangement {
        level: set.level.clone(),
        layout: set.layout.clone(),
        chunk: set.chunk,
        members: set.members,
        present: set.present,
        read_only,
    }
}

fn provider(graph: &Graph, audit: &Audit, id: Id) -> Provider {
    let p = &graph.providers[id];
    let names =
        |ids: &[Id]| ids.iter().map(|&i| graph.providers[i].name.clone()).collect::<Vec<_>>();
    let (parent, members) = match p.parents[..] {
        [one] if !p.is_set || p.is_contents => {
            (Some(graph.providers[one].name.clone()), Vec::new())
        }
        _ => (None, names(&p.parents)),
    };
    let signs: Vec<&Sign> = p.in_use().collect();
    let sign = match signs[..] {
        [one] => Some(one),
        _ => None,
    };
    let (stripe_size, stripe_offset) = p.topology.stripesize_and_offset();
    let table = p.table.as_ref().zip(p.slices()).map(|((scheme, _), slices)| Table {
        scheme,
        first: slices.usable.start,
        end: slices.usable.end,
        free: slices
            .free()
            .into_iter()
            .map(|r| Range { start: r.start, length: r.end - r.start })
            .collect(),
    });
    Provider {
        provider: p.name.clone(),
        parent,
        class: p.class,
        sign: sign.map(|s| s.kind.to_string()),
        start: p.start,
        length: p.topology.length,
        sector_size: p.topology.sector,
        stripe_size,
        stripe_offset,
        grains: p.topology.facts.iter().map(grain).collect(),
        largest_grain: p.start.and_then(largest_grain),
        verdict: audit.verdicts[id].into(),
        data_bearing: audit.roles[id] == Role::Data,
        base: p.base(),
        root: graph.providers[graph.root(id)].name.clone(),
        signs: if signs.len() > 1 {
            signs.iter().map(|s| s.kind.to_string()).collect()
        } else {
            Vec::new()
        },
        table,
        members,
        container: container(graph, id),
        arrangement: p.arrangement.as_ref().map(|set| arrangement(set, p.route().read_only())),
        // An MBR has no entry of type 0: it stands for a type that no source reports.
        kind: p.kind.filter(|&kind| kind != PartitionType::Mbr(0)).map(types::name),
        label: sign.and_then(|s| s.label.clone()).or_else(|| p.label.clone()),
        uuid: sign.and_then(|s| s.uuid.clone()).or_else(|| p.uuid.clone()),
        block_size: sign.and_then(|s| s.block),
        mountpoint: None,
        placed: p.placed,
        details: details(graph, id, sign),
    }
}

/// Facts of what was recognised; of the disk in a container, those of the container first.
fn details(graph: &Graph, id: Id, own: Option<&Sign>) -> Vec<(&'static str, String)> {
    let p = &graph.providers[id];
    let file = p.parents.first().filter(|_| p.is_contents);
    let signs = file.into_iter().flat_map(|&file| &graph.providers[file].signs);
    let around = signs.filter(|sign| sign.kind.name == p.class);
    around.chain(own).flat_map(|sign| sign.details.iter().cloned()).collect()
}

/// The translation of the contents of a container in the form of the report.
fn container(graph: &Graph, id: Id) -> Option<Container> {
    let p = Some(&graph.providers[id]).filter(|p| p.is_contents)?;
    let set = p.route().set()?;
    let translation = set.geom.translation()?;
    Some(Container {
        allocation: translation.allocation,
        grain: translation.grain().size(),
        phase: translation.grain().phase(),
        blocks_looked_at: translation.looked_at(),
        first_write: first_write(graph, id, translation),
    })
}

/// The price of a first write to the contents `id` of a container. A parent or a data file that is
/// not here is taken to be on a drive like the file's.
fn first_write(graph: &Graph, id: Id, translation: &Translation) -> Option<FirstWrite> {
    let parents = &graph.providers[id].parents;
    let below = |consumer: usize| {
        let parent = parents.get(consumer).or(parents.first());
        parent.map(|&parent| &graph.providers[parent].topology)
    };
    let mut priced = FirstWrite {
        bytes: GUEST_WRITE,
        unit: below(0)?.judged_unit().size(),
        reads: 0,
        writes: 0,
        ranges: Vec::new(),
    };
    for range in translation.first_write()?.ranges() {
        let UnitOps { reads, writes } = range.operations(below(range.consumer)?);
        priced.reads = priced.reads.saturating_add(reads);
        priced.writes = priced.writes.saturating_add(writes);
        let (what, length) = (range.what, range.length);
        priced.ranges.push(TouchedRange { what, length, reads, writes });
    }
    Some(priced)
}

/// A boundary in the form of the report.
pub(crate) fn grain(fact: &Fact) -> Grain {
    Grain {
        size: fact.grain.size(),
        phase: fact.grain.phase(),
        why: fact.why,
        source: fact.source,
        trust: fact.trust,
    }
}

fn finding(
    graph: &Graph,
    cures: &Cures<'_>,
    id: Id,
    f: &trueline_geom::base::finding::Finding,
) -> Finding {
    let p = &graph.providers[id];
    let cure = cures.cure(id, f);
    Finding {
        rule: f.rule.id,
        severity: f.severity,
        provider: p.name.clone(),
        offset: p.base().saturating_add(f.offset),
        unit: f.unit,
        remainder: f.remainder,
        straddle: f.cost.map_or(0.0, |c| c.straddle),
        rmw_factor: f.cost.map_or(1.0, |c| c.rmw_factor),
        message: f.message.clone(),
        fix: cure.fix,
        commands: cure.commands,
    }
}

impl From<audit::Verdict> for Verdict {
    fn from(verdict: audit::Verdict) -> Verdict {
        match verdict {
            audit::Verdict::Aligned => Verdict::Aligned,
            audit::Verdict::Unknown => Verdict::Unknown,
            audit::Verdict::Misaligned => Verdict::Misaligned,
        }
    }
}

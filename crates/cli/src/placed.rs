//! A partition as an entry of its table: `move` works on it, and a cure that names `move` checks it
//! first.

use trueline_geom::audit::{self, Role};
use trueline_geom::base::finding;
use trueline_geom::graph::{Graph, Id, Provider};
use trueline_geom::table::scheme::TableSite;
use trueline_geom::table::types;
use trueline_geom::table::{Entry, Refusal, Table};

/// A partition, with the table that holds its entry.
pub(crate) struct Placed {
    /// The provider that holds the table.
    pub(crate) on: Id,
    pub(crate) table: Table,
    pub(crate) entry: Entry,
}

impl Placed {
    /// The entry of partition `id`, or the reason why it cannot be moved.
    pub(crate) fn find(graph: &Graph, id: Id) -> Result<Placed, Refusal> {
        let p = &graph.providers[id];
        let none = || {
            let inner = graph.providers.iter().find(|p| p.start.is_some() && p.parents == [id]);
            let example = inner.map_or("p2", |p| p.name.as_str());
            Refusal::new(
                "it is not a partition of a table that can be edited",
                format!("name one after a #: disk.img#{example}"),
            )
        };
        let &[on] = p.parents.as_slice() else { return Err(none()) };
        let table = table_on(graph, on).ok_or_else(none)?;
        let named = |entry: &&Entry| {
            graph.providers[on].base().saturating_add(entry.partition.start) == p.base()
                && p.name.ends_with(&table.scheme.suffix(entry))
        };
        let entry =
            table.entries.iter().find(named).cloned().ok_or_else(|| match extended(graph, id) {
                Some(extended) => {
                    let extended = &graph.providers[extended].name;
                    Refusal::new(
                        "it is a link of a chain of logical partitions",
                        format!("move the extended partition, {extended}"),
                    )
                }
                None => none(),
            })?;
        if let Some(half) = half_moved(graph, id) {
            let found = format!(
                "{} is being moved already, and that was interrupted",
                graph.providers[half].name
            );
            return Err(Refusal::new(found, "go on with that: trueline move --resume JOURNAL"));
        }
        require_one_table(graph, on)?;
        if let Some(refusal) = bound(graph, id) {
            return Err(refusal);
        }
        Ok(Placed { on, table, entry })
    }

    /// Site of the table: topology, base and type of the provider that holds it.
    pub(crate) fn site<'a>(&self, graph: &'a Graph) -> TableSite<'a> {
        let p = &graph.providers[self.on];
        TableSite { topology: &p.topology, base: p.base(), kind: p.kind }
    }
}

/// Refuses to move partitions of the table on provider `on` where another one contradicts it.
pub(crate) fn require_one_table(graph: &Graph, on: Id) -> Result<(), Refusal> {
    if graph.providers[on].findings.iter().any(|f| *f.rule == finding::HYBRID) {
        return Err(Refusal::new(
            "its GPT and its MBR disagree, and only one of them would be changed",
            "see trueline explain TL0021",
        ));
    }
    if graph.providers[on].findings.iter().any(|f| *f.rule == finding::SECTOR) {
        let found =
            "its table was written for sectors of another size, and begins elsewhere in those";
        return Err(Refusal::new(found, "see trueline explain TL0007"));
    }
    // A hybrid image: its partitions are files of the file system around them.
    if let Some(sign) = graph.providers[on].in_use().next() {
        let found = format!("its partitions are ranges of the {} that all of it holds", sign.kind);
        return Err(Refusal::new(found, "make the image anew"));
    }
    Ok(())
}

/// The reason why partition `id` must stay where it is, although its table could be changed; `None`
/// if it may move.
pub(crate) fn bound(graph: &Graph, id: Id) -> Option<Refusal> {
    if let Some(label) = counts_from_elsewhere(graph, id) {
        return Some(Refusal::new(
            format!("a BSD label in it counts from byte {} before it", label.origin),
            "make it again where the partition is to be: part backup, part destroy, part restore",
        ));
    }
    let kind = graph.providers[id].kind.filter(|&kind| types::is_described_elsewhere(kind))?;
    let name = types::name(kind);
    Some(Refusal::new(
        format!("its type is {name}: a database of Windows says where its volumes begin"),
        "move its volumes with Windows' own tools",
    ))
}

/// The BSD label in partition `id` that counts from elsewhere, and could not be made to count from
/// another place, or that has a partition which reaches past it, whose end would stay. The numbers
/// of a chain count from its extended partition, those of a GPT from its own; a label may count
/// from anywhere.
pub(crate) fn counts_from_elsewhere(graph: &Graph, id: Id) -> Option<Table> {
    let label = |inner: Id| {
        let table = absolute_label(graph, inner)?;
        let follows = graph.providers[inner].start == Some(table.origin)
            && table.taken.iter().all(|taken| taken.end < table.length)
            && table.scheme.follow(&table, table.origin).is_some();
        (!follows).then_some(table)
    };
    (0..graph.providers.len()).filter(|&inner| graph.is_within(id, inner)).find_map(label)
}

/// The BSD label on provider `id`, if its numbers count from elsewhere.
pub(crate) fn absolute_label(graph: &Graph, id: Id) -> Option<Table> {
    table_on(graph, id).filter(|table| table.scheme.name() == "BSD" && table.origin != 0)
}

/// Provider `id`, or the first that stands on it, through sets too, whose move was interrupted.
pub(crate) fn half_moved(graph: &Graph, id: Id) -> Option<Id> {
    let mut above = vec![id];
    // A provider comes after what it stands on.
    for next in id..graph.providers.len() {
        if next == id || graph.providers[next].parents.iter().any(|parent| above.contains(parent)) {
            if graph.providers[next].is_moving() {
                return Some(next);
            }
            above.push(next);
        }
    }
    None
}

/// The extended partition around the logical partition `id`.
pub(crate) fn extended(graph: &Graph, id: Id) -> Option<Id> {
    let p = &graph.providers[id];
    let around = |e: &Provider| {
        e.is_extended() && e.base() <= p.base() && p.base() - e.base() < e.topology.length
    };
    (0..graph.providers.len()).find(|&other| other != id && around(&graph.providers[other]))
}

/// True if everything in partition `id` that does I/O is on the grain of its disk once the
/// partition begins at byte `to` of provider `on`; of one that holds nothing that is known, if its
/// first byte is.
pub(crate) fn lands_on_grain(graph: &Graph, on: Id, id: Id, to: u64) -> bool {
    let root = &graph.providers[graph.root(id)];
    let Some(grain) = root.topology.common() else { return false };
    let own = graph.providers[id].base();
    let begins = graph.providers[on].base().saturating_add(to);
    let roles = audit::audit(graph).roles;
    let is_inner = |other: &Id| graph.is_within(id, *other) || is_logical(graph, *other, id);
    let inner = (0..graph.providers.len()).filter(is_inner);
    let mut bearing: Vec<Id> = inner.filter(|&inner| roles[inner] == Role::Data).collect();
    if bearing.is_empty() {
        bearing.push(id);
    }
    bearing.into_iter().all(|inner| {
        let at = graph.providers[inner].base().saturating_sub(own).saturating_add(begins);
        at.checked_sub(root.base()).is_some_and(|at| grain.contains(at))
    })
}

/// True if `id` is a logical partition of the extended one `outer`, or stands on one.
fn is_logical(graph: &Graph, id: Id, outer: Id) -> bool {
    let mut at = id;
    loop {
        match graph.providers[at].parents.as_slice() {
            _ if extended(graph, at) == Some(outer) => return true,
            &[parent] if !graph.providers[at].is_set => at = parent,
            _ => return false,
        }
    }
}

/// The table on provider `id`, whole or damaged.
pub(crate) fn table_on(graph: &Graph, id: Id) -> Option<Table> {
    graph.providers[id].tasted().table(&graph.probe(id))
}

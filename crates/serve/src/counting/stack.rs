//! The stack of providers that requests are counted by.

use std::sync::{Mutex, MutexGuard};
use trueline_geom::audit::{Audit, Role};
use trueline_geom::format::Sign;
use trueline_geom::graph::{Graph, Id};
use trueline_host::lock::lock;

/// A tasted graph and what its audit found, as the last tasting that found something else left
/// them.
pub struct Stack {
    /// Locked because its budget of reads is one thread's at a time.
    graph: Mutex<Graph>,
    /// The audit of the graph.
    pub audit: Audit,
    /// The number of each of its providers in what is counted.
    pub numbers: Vec<usize>,
    /// The number of times that something else had been found before.
    pub generation: u64,
}

impl Stack {
    pub(super) fn new(graph: Graph, audit: Audit, numbers: Vec<usize>, generation: u64) -> Stack {
        Stack { graph: Mutex::new(graph), audit, numbers, generation }
    }

    /// A copy of the graph, which reads the same disks.
    pub fn graph(&self) -> Graph {
        self.own().clone()
    }

    fn own(&self) -> MutexGuard<'_, Graph> {
        // Reading leaves nothing half done.
        lock(&self.graph)
    }

    /// True where a reader is told the same of another tasting's providers.
    pub(super) fn is_as(&self, graph: &Graph, audit: &Audit, numbers: &[usize]) -> bool {
        let own = &*self.own();
        self.numbers == numbers
            && (0..numbers.len()).all(|id| is_same(id, (own, &self.audit), (graph, audit)))
    }
}

/// True if provider `id` is the same in two tastings that number their providers alike.
fn is_same(id: Id, (old, old_audit): (&Graph, &Audit), (new, new_audit): (&Graph, &Audit)) -> bool {
    let (was, is) = (&old.providers[id], &new.providers[id]);
    let place = (
        &was.name,
        was.class,
        &was.parents,
        was.is_set,
        was.start,
        was.base(),
        was.placed,
        &was.topology,
    ) == (
        &is.name,
        is.class,
        &is.parents,
        is.is_set,
        is.start,
        is.base(),
        is.placed,
        &is.topology,
    );
    let entry = (was.kind, &was.label, &was.uuid) == (is.kind, &is.label, &is.uuid);
    let table = was.table.as_ref().map(|table| table.0) == is.table.as_ref().map(|table| table.0)
        && was.slices() == is.slices();
    let sign = |sign: &Sign| (sign.kind, sign.label.clone(), sign.uuid.clone(), sign.block);
    let signs = was.in_use().map(sign).eq(is.in_use().map(sign));
    let carries = |audit: &Audit| (audit.verdicts[id], audit.roles[id] == Role::Data);
    place && entry && table && signs && carries(old_audit) == carries(new_audit)
}

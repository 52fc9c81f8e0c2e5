//! What stands between an export and its disks, from the disks up. Each layer is a [`Store`] over the one below.

use super::notices::Notices;
use super::{emulate, record};
use crate::command::serve::args::{Serve, Strict as Strictness};
use crate::command::serve::summary::Emulation;
use crate::failure::{Failure, complain};
use crate::words;
use std::sync::Arc;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::{Grain, Topology, Why};
use trueline_geom::class::nop::fault::Plan;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_serve::counting::{Counting, Notice};
use trueline_serve::errseq::ErrorSequence;
use trueline_serve::export::RefusalLog;
use trueline_serve::layer::emulated::{Drives, Emulated};
use trueline_serve::layer::faulty::{Faults, Faulty};
use trueline_serve::layer::recorded::{Recorded, RecordedRefusals};
use trueline_serve::layer::sectored::Sectored;
use trueline_serve::layer::strict::{Refused, Strict};
use trueline_sim::model::Model;

/// What the layers of all exports share.
pub(super) struct Layers {
    /// The sector that somebody has said: requests are in whole ones.
    sector: Option<u64>,
    models: Vec<Model>,
    drives: Option<Arc<Drives>>,
    faults: Option<Arc<Faults>>,
    record: Option<record::Record>,
    /// Requests that --strict refuses, and those that it has.
    strict: Option<(Strictness, Arc<Refused>)>,
    /// What is counted, unless nothing is.
    counting: Option<Arc<Counting>>,
    /// Errors of the disks.
    errors: Arc<ErrorSequence>,
}

impl Layers {
    /// For the exports of `graph`, of which `id` is the default one. `models`: of its disks, if they are simulated drives. `notices`: takes
    /// what is to be said of them meanwhile.
    pub(super) fn new(graph: &Graph, id: Id, models: &[Model], args: &Serve, notices: &Arc<Notices>) -> Result<Layers, Failure> {
        let (notices, target) = (notices.clone(), args.target.clone());
        let tell = Box::new(move |notice: Notice| notices.say(&format!("{target}: {notice}")));
        let counting = (!args.no_counters).then(|| Arc::new(Counting::new(graph, tell)));
        let unit = graph.providers[id].topology.unit().is_some();
        if args.strict.is_some() && !unit {
            let why = "--strict: nothing is known of its units: say --physical 4096";
            return Err(Failure::Message(format!("serve {}: {why}", args.target)));
        }
        let plan = Plan { rules: args.fault.clone(), seed: args.seed };
        Ok(Layers {
            counting,
            strict: args.strict.map(|strict| (strict, Arc::default())),
            sector: args.disk.logical,
            errors: Arc::default(),
            models: models.to_vec(),
            faults: (!plan.rules.is_empty()).then(|| Arc::new(Faults::new(plan))),
            record: args.record.as_deref().map(|path| record::Record::new(path, graph, id, args)).transpose()?,
            // Last: drives are switched on when all else is ready.
            drives: emulate::drives(models, args),
        })
    }

    /// Whether seeking takes time.
    pub(super) fn rotational(&self) -> bool {
        self.models.iter().any(|model| model.disk.is_some())
    }

    /// Provider `id` of `graph` with every layer, as it is exported.
    pub(super) fn over(&self, graph: &Graph, id: Id) -> Arc<dyn Store> {
        let provider = &graph.providers[id];
        let (route, topology) = (provider.route(), &provider.topology);
        let mut store: Arc<dyn Store> = Arc::new(Through::new(graph, id));
        if let Some(view) = self.sector.and_then(|sector| Sectored::new(store.clone(), sector)) {
            store = Arc::new(view);
        }
        if let Some(drives) = &self.drives {
            store = Arc::new(Emulated::new(store, route.clone(), sector(topology), drives.clone()));
        }
        if let Some(faults) = &self.faults {
            store = Arc::new(Faulty::new(store, topology.sector, faults.clone()));
        }
        if let Some(((strict, refused), unit)) = self.strict.as_ref().zip(topology.unit()) {
            let (last, reads) = (provider.parents.is_empty(), *strict == Strictness::All);
            store = Arc::new(Strict::new(store, words::name(&provider.name), unit.grain, last, reads, refused.clone()));
        }
        if let Some((record, place)) = self.record.as_ref().and_then(|record| Some((record, record.place(route)?))) {
            store = Arc::new(Recorded::new(store, place, record.recorder()));
        }
        // Outermost: what clients ask for is counted, not what becomes of it.
        match &self.counting {
            Some(counting) => counting.over(graph, id, store),
            None => store,
        }
    }

    /// Logs of what is refused of the export that is provider `id`, after [`Layers::over`].
    pub(super) fn refusals(&self, graph: &Graph, id: Id) -> Vec<Arc<dyn RefusalLog>> {
        let mut logs: Vec<Arc<dyn RefusalLog>> = Vec::new();
        if let Some(counters) = self.counting.as_ref().and_then(|counting| counting.counters(id)) {
            logs.push(counters);
        }
        if let Some((record, place)) = self.record.as_ref().and_then(|record| Some((record, record.place(graph.providers[id].route())?))) {
            logs.push(Arc::new(RecordedRefusals::new(place, record.recorder())));
        }
        logs
    }

    /// Errors of the disks: every export stands on those of the default one.
    pub(super) fn errors(&self) -> Arc<ErrorSequence> {
        self.errors.clone()
    }

    /// What is counted, unless nothing is.
    pub(super) fn counting(&self) -> Option<&Arc<Counting>> {
        self.counting.as_ref()
    }

    /// Times of emulated drives until now, if there are any.
    pub(super) fn emulation(&self) -> Option<Emulation> {
        self.drives.as_deref().map(emulate::emulation)
    }

    /// Every way in is there.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        self.record.as_ref().map_or(Ok(()), record::Record::begin)
    }

    /// Time passes.
    pub(super) fn tick(&self) {
        if let Some(record) = &self.record {
            record.recorder().pass();
        }
    }

    /// Tells how many requests --strict has refused; `true` if there are any.
    pub(super) fn refused(&self) -> bool {
        let told = self.strict.as_ref().map(|(_, refused)| refused.told());
        match told {
            Some((count, Some(first))) => {
                let requests = if count == 1 { "request was" } else { "requests were" };
                complain(&format!("strict: {count} {requests} off the grain and refused, the first a {first}"));
                true
            }
            _ => false,
        }
    }

    /// Nothing is served any more: what the layers did is told.
    pub(super) fn end(self) -> Result<(), Failure> {
        if let Some(drives) = &self.drives {
            // Where nobody reads it, the rest is done all the same.
            let _ = emulate::tell(drives, &self.models);
        }
        self.faults.iter().for_each(|faults| tell(faults));
        self.record.map_or(Ok(()), record::Record::end)
    }
}

/// What every rule did, on stderr.
fn tell(faults: &Faults) {
    for (rule, done) in faults.plan().rules.iter().zip(faults.done()) {
        let first: Vec<String> = done.first.iter().map(u64::to_string).collect();
        let more = if done.count > done.first.len() as u64 { ", ..." } else { "" };
        let which = if first.is_empty() { String::new() } else { format!(", number {}{more}", first.join(", ")) };
        let (count, all) = (done.count, faults.asked(rule));
        complain(&format!("fault {rule}: {count} of {all} requests{which}"));
    }
}

/// What the drives beneath a provider take, in its own addresses.
fn sector(topology: &Topology) -> Option<Grain> {
    let logical = topology.facts.iter().filter(|fact| fact.why == Why::Logical).map(|fact| fact.grain);
    logical.max_by_key(|grain| grain.size()).or_else(|| Grain::new(topology.sector, 0))
}

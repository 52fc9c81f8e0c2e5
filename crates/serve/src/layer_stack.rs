//! Layers between an export and its disks, from the disks up. Each is a [`Store`] over the one
//! below.

use crate::counting::Counting;
use crate::error::Error;
use crate::error_sequence::ErrorSequence;
use crate::export::RefusalLog;
use crate::layer::emulated::{Drives, Emulated, Monotonic, Speed};
use crate::layer::faulty::{Faults, Faulty};
use crate::layer::recorded::{Recorded, RecordedRefusals, Recording};
use crate::layer::sectored::Sectored;
use crate::layer::strict::{Refused, Strict};
use crate::notice::Tell;
use std::path::PathBuf;
use std::sync::Arc;
use trueline_geom::base::escape;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::{Grain, Topology, Why};
use trueline_geom::class::nop::fault::{FaultPlan, Rule};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// Requests that are refused if they are not whole units of the grain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strictness {
    /// Writes and zeros that are off the grain.
    Writes,
    /// Reads off the grain as well.
    All,
}

/// The layers that are wanted. The default is none at all.
#[derive(Clone, Debug, Default)]
pub struct LayerConfig {
    /// The target as its user names it, for messages and descriptions.
    pub target: String,
    /// Counters of requests and of how they lie on the grain.
    pub count: bool,
    /// Sectors of this many bytes instead of the disk's: requests are in whole ones.
    pub sector: Option<u64>,
    /// Refusal of requests off the grain.
    pub strict: Option<Strictness>,
    /// Models of the disks, in the order of the graph's stores, if they are simulated drives.
    pub models: Vec<Model>,
    /// The time that the drives of the models take, at this speed.
    pub emulate: Option<Speed>,
    /// Requests that fail or are late.
    pub faults: Vec<Rule>,
    /// The seed of what is random in faults and drives.
    pub seed: u64,
    /// A file that requests are written down in, as a trace.
    pub record: Option<PathBuf>,
}

/// State that the layers of all exports share.
pub struct LayerStack {
    sector: Option<u64>,
    models: Vec<Model>,
    drives: Option<Arc<Drives>>,
    faults: Option<Arc<Faults>>,
    recording: Option<Recording>,
    /// Strictness, and the requests that it has refused.
    strict: Option<(Strictness, Arc<Refused>)>,
    counting: Option<Arc<Counting>>,
    /// Errors of the disks.
    errors: Arc<ErrorSequence>,
}

impl LayerStack {
    /// Layers for the exports of `graph`, of which `id` is the default one. `tell` takes what
    /// happens to them meanwhile.
    pub fn new(
        graph: &Graph,
        id: Id,
        config: &LayerConfig,
        tell: &Arc<Tell>,
    ) -> Result<LayerStack, Error> {
        if config.strict.is_some() && graph.providers[id].topology.unit().is_none() {
            return Err(Error::NoGrain { target: config.target.clone() });
        }
        let plan = FaultPlan { rules: config.faults.clone(), seed: config.seed };
        let record = |path: &PathBuf| Recording::new(path, graph, id, &config.target, tell.clone());
        Ok(LayerStack {
            counting: config.count.then(|| Arc::new(Counting::new(graph, tell.clone()))),
            strict: config.strict.map(|strict| (strict, Arc::default())),
            sector: config.sector,
            errors: Arc::default(),
            models: config.models.clone(),
            faults: (!plan.rules.is_empty()).then(|| Arc::new(Faults::new(plan))),
            recording: config.record.as_ref().map(record).transpose()?,
            // Last: drives are switched on when all else is ready.
            drives: config.emulate.map(|speed| drives(config, speed)),
        })
    }

    /// True where seeking takes time.
    pub fn rotational(&self) -> bool {
        self.models.iter().any(|model| model.disk.is_some())
    }

    /// Provider `id` of `graph` with every layer, as it is exported.
    pub fn over(&self, graph: &Graph, id: Id) -> Arc<dyn Store> {
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
            let name = escape::name(&provider.name);
            store = Arc::new(Strict::new(store, name, unit.grain, last, reads, refused.clone()));
        }
        if let Some((recording, place)) = self.recorded(graph, id) {
            store = Arc::new(Recorded::new(store, place, recording.recorder()));
        }
        // Outermost: what clients ask for is counted, not what becomes of it.
        match &self.counting {
            Some(counting) => counting.over(graph, id, store),
            None => store,
        }
    }

    /// Logs of what is refused of the export that is provider `id`, after [`LayerStack::over`].
    pub fn refusals(&self, graph: &Graph, id: Id) -> Vec<Arc<dyn RefusalLog>> {
        let mut logs: Vec<Arc<dyn RefusalLog>> = Vec::new();
        if let Some(counters) = self.counting.as_ref().and_then(|counting| counting.counters(id)) {
            logs.push(counters);
        }
        if let Some((recording, place)) = self.recorded(graph, id) {
            logs.push(Arc::new(RecordedRefusals::new(place, recording.recorder())));
        }
        logs
    }

    /// The recording that provider `id` is part of, and its first byte there.
    fn recorded(&self, graph: &Graph, id: Id) -> Option<(&Recording, u64)> {
        let recording = self.recording.as_ref()?;
        Some((recording, recording.place(graph.providers[id].route())?))
    }

    /// Errors of the disks: every export stands on those of the default one.
    pub fn errors(&self) -> Arc<ErrorSequence> {
        self.errors.clone()
    }

    /// The counters, if requests are counted.
    pub fn counting(&self) -> Option<&Arc<Counting>> {
        self.counting.as_ref()
    }

    /// The emulated drives, if there are any.
    pub fn drives(&self) -> Option<&Drives> {
        self.drives.as_deref()
    }

    /// Models of the disks, if they are simulated drives.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Faults that requests had.
    pub fn faults(&self) -> Option<&Faults> {
        self.faults.as_deref()
    }

    /// Requests that were refused because they were off the grain.
    pub fn refused(&self) -> Option<&Refused> {
        self.strict.as_ref().map(|(_, refused)| &**refused)
    }

    /// The recording of all exports, if there is one.
    pub fn recording(&self) -> Option<&Recording> {
        self.recording.as_ref()
    }

    /// Begins what begins once every way in is there.
    pub fn begin(&self) -> Result<(), Error> {
        self.recording.as_ref().map_or(Ok(()), Recording::begin)
    }

    /// Does what is due by the clock; called some twenty times a second.
    pub fn tick(&self) {
        if let Some(recording) = &self.recording {
            recording.recorder().pass();
        }
    }
}

/// Drives that are switched on now.
fn drives(config: &LayerConfig, speed: Speed) -> Arc<Drives> {
    let mut seeds = Random::new(config.seed);
    let drives: Vec<_> = config
        .models
        .iter()
        .map(|model| (model.drive(seeds.bits()), model.logical_block_size))
        .collect();
    let depth = drives.iter().fold(0_usize, |sum, (drive, _)| sum.saturating_add(drive.tags()));
    // A few more than the drives take: the next one waits before them, not in the client.
    let depth = depth.saturating_mul(2);
    Arc::new(Drives::new(World::new(drives, Schedule::Fifo), depth, speed, Box::new(Monotonic)))
}

/// The sector of the drives beneath a provider, in its own addresses.
fn sector(topology: &Topology) -> Option<Grain> {
    let logical =
        topology.facts.iter().filter(|fact| fact.why == Why::Logical).map(|fact| fact.grain);
    logical.max_by_key(|grain| grain.size()).or_else(|| Grain::new(topology.sector, 0))
}

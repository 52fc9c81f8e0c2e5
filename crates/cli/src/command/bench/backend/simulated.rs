//! Simulated drives, in virtual time.

use super::{Job, RunOutput};
use crate::command::bench::args::{Bench, Host};
use crate::command::bench::task::Task;
use crate::failure::Failure;
use crate::target::{Target, open};
use crate::write_target;
use std::sync::Arc;
use trueline_geom::graph::{Id, Provider};
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::Slices;
use trueline_lab::error::Error;
use trueline_lab::layer::page_cache::{PageCache, Sync};
use trueline_lab::layer::stack::LayerStack;
use trueline_lab::os::freebsd_ufs::{FreebsdUfs, UfsLayout};
use trueline_lab::os::linux_writeback::{self, LinuxWriteback};
use trueline_lab::os::openbsd_ffs::{self, OpenbsdFfs};
use trueline_lab::rig::{self, Rig};
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::time::{NS, Ps};
use trueline_sim::world::{Schedule, World};

/// A provider on simulated drives.
pub(in super::super) struct Simulated {
    drives: open::Simulated,
    id: Id,
    buffered: bool,
    host: Host,
    /// The layers between the host and the provider.
    through: LayerStack,
    /// Size in bytes of the single file that the host `freebsd-ufs` has.
    file: Option<u64>,
    /// Processor time of a request at each layer.
    layer: Ps,
}

/// Size of the host's page cache in bytes.
const MEMORY: u64 = 1 << 30;

impl Simulated {
    /// The provider named after the `#`, or the only disk.
    pub(super) fn new(
        target: &Target,
        drives: open::Simulated,
        args: &Bench,
    ) -> Result<Simulated, Failure> {
        let id = match target.provider() {
            Some(name) => drives
                .graph
                .find(name)
                .ok_or_else(|| write_target::no_provider(target, name, &drives.graph))?,
            None if drives.models.len() < 2 => drives.graph.disk(0),
            None => return Err(super::several(target)),
        };
        let layer = u64::from(args.layer_ns).saturating_mul(NS);
        Ok(Simulated {
            drives,
            id,
            buffered: args.buffered,
            host: args.host.unwrap_or_default(),
            through: LayerStack::new(args.through.clone())
                .map_err(|error| format!("bench {target}: --through: {}", error.message))?,
            file: args.size,
            layer,
        })
    }

    pub(super) fn provider(&self) -> &Provider {
        &self.drives.graph.providers[self.id]
    }

    /// The model of every drive, in order.
    pub(in super::super) fn models(&self) -> &[Model] {
        &self.drives.models
    }

    /// Runs a job once, on drives whose platters begin as its seed says.
    pub(super) fn run(&mut self, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        let mut seeds = Random::new(job.seed);
        let drives = self
            .drives
            .models
            .iter()
            .map(|model| (model.drive(seeds.bits()), model.logical_block_size));
        let schedule = match (job.task, self.host) {
            (_, Host::OpenbsdFfs | Host::FreebsdUfs) => Schedule::CLook,
            (Task::Blocks(_), _) => Schedule::Fifo,
            (_, Host::LinuxWriteback) => Schedule::ReadsFirst,
        };
        let world = World::new(drives.collect(), schedule);
        let route = self.route(job.place)?.cold(super::TABLE_PAGES);
        let sector = self.provider().topology.sector;
        let cost = self.layer.saturating_mul(self.provider().depth as u64);
        let mut rig = rig::simulated::Simulated::new(world, route, sector, cost);
        let (done, layers) = self.through.run(&mut rig, |rig| self.run_on(rig, job))?;
        Ok(RunOutput { layers, spent: rig.counters(), ..done })
    }

    /// Runs a job once on a rig, through the host.
    fn run_on(&self, rig: &mut dyn Rig, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        Ok(match job.task {
            Task::Blocks(_) if self.buffered => {
                let mut buffered = PageCache::alone(Sync::Medium, MEMORY, rig)?;
                let run = job.task.on_blocks(&mut buffered, job.seed, job.watch)?;
                RunOutput { host_reads: Some(buffered.caused_reads()), ..RunOutput::from_run(run) }
            }
            Task::Blocks(_) if self.host == Host::FreebsdUfs => {
                let shape = UfsLayout::newfs(self.file, rig.length())?;
                RunOutput::from_run(job.task.on_blocks(
                    &mut FreebsdUfs::new(rig, shape)?,
                    job.seed,
                    job.watch,
                )?)
            }
            Task::Blocks(_) => RunOutput::from_run(job.task.on_blocks(rig, job.seed, job.watch)?),
            Task::Files(_) | Task::Bonnie(_) => {
                let (run, phases) = match self.host {
                    Host::LinuxWriteback => {
                        let mut files =
                            LinuxWriteback::new(rig, linux_writeback::Parameters::default())?;
                        job.task.on_files(&mut files, job.seed, job.watch)?
                    }
                    Host::OpenbsdFfs => {
                        let mut files = OpenbsdFfs::new(rig, openbsd_ffs::Parameters::default())?;
                        job.task.on_files(&mut files, job.seed, job.watch)?
                    }
                    Host::FreebsdUfs => {
                        return Err(Error::new(
                            "freebsd-ufs is one large file, in which blocks are read and written"
                                .into(),
                        ));
                    }
                };
                RunOutput { phases, ..RunOutput::from_run(run) }
            }
        })
    }

    /// The route of the provider from byte `place` on.
    fn route(&self, place: u64) -> Result<Route, Error> {
        let own = self.provider().route();
        match own.length().checked_sub(place).filter(|&room| room > 0) {
            None => Err(Error::new(format!("from {place}: the target has {} bytes", own.length()))),
            Some(_) if place == 0 => Ok(own.clone()),
            Some(room) => {
                let moved: Arc<dyn Geom> = Arc::new(Slices::data_area(place, room));
                Ok(Route::new(&moved, 0, room, std::slice::from_ref(own)))
            }
        }
    }
}

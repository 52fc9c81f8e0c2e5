//! Backends of `bench`: simulated drives, new for every run; files and devices; exports of NBD
//! servers; memory; a directory.

use super::task::Task;
use crate::command::bench::args::Bench;
use crate::failure::Failure;
use crate::target::{DiskOverrides, Target, open};
use directory::Directory;
use exported::Exported;
use memory::Memory;
use real::Real;
use simulated::Simulated;
use trueline_geom::base::topology::{Fact, Trust};
use trueline_geom::graph::Provider;
use trueline_lab::error::Error;
use trueline_lab::layer::counts::NamedCounts;
use trueline_lab::result::bench::Missed;
use trueline_lab::run::Run;
use trueline_lab::workload::bonnie::Phases;
use trueline_lab::workload::{Needs, WORKLOADS, Watch, WorkloadKind};
use trueline_sim::counters::Counters;

mod directory;
mod exported;
mod memory;
mod real;
mod simulated;

/// Pages of 4 KiB that a run keeps of the tables of a container: 32 MiB, as much as QEMU has for
/// the L2 tables of a qcow2 by default. A run begins with none.
const TABLE_PAGES: usize = 8192;

/// The backend that runs a variant's jobs.
pub(super) enum Backend {
    Simulated(Simulated),
    Real(Box<Real>),
    Exported(Box<Exported>),
    Memory(Memory),
    Directory(Directory),
}

/// One run of a task.
pub(super) struct Job<'a, 'b> {
    pub(super) task: &'a Task,
    /// Seed of its random numbers and of the platters' positions.
    pub(super) seed: u64,
    /// First byte of a simulated file system on the target.
    pub(super) place: u64,
    /// Rest before it in ns, after a flush, where it writes to files, devices and exports.
    /// Simulated drives are new for every run, and memory collects no garbage.
    pub(super) rest_ns: u64,
    pub(super) watch: &'a mut Watch<'b>,
}

/// A run and its counters.
pub(super) struct RunOutput {
    pub(super) run: Run,
    /// Counters of every simulated drive.
    pub(super) spent: Vec<Counters>,
    /// Reads that the page cache added in a simulation, or real reads of the device.
    pub(super) host_reads: Option<u64>,
    /// Counts of the layers of `--through`, the outermost first.
    pub(super) layers: Vec<NamedCounts>,
    /// Name of the engine, where bytes were really moved.
    pub(super) engine: Option<&'static str>,
    /// Phases of a bonnie run.
    pub(super) phases: Option<Phases>,
}

impl AsMut<Run> for RunOutput {
    fn as_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

impl RunOutput {
    /// A run without counters.
    fn from_run(run: Run) -> RunOutput {
        RunOutput {
            run,
            spent: Vec::new(),
            host_reads: None,
            layers: Vec::new(),
            engine: None,
            phases: None,
        }
    }
}

/// Opens a target for a workload, its disks as the overrides describe them. `writes`: the workload
/// writes.
pub(super) fn open(
    target: &Target,
    overrides: &DiskOverrides,
    args: &Bench,
    kind: &WorkloadKind,
    writes: bool,
) -> Result<Backend, Failure> {
    let of_files = matches!(kind.needs, Needs::Files(_));
    let simulated =
        if of_files && Directory::is(target) { None } else { open::simulated(target, overrides)? };
    if let Some(drives) = simulated {
        return Ok(Backend::Simulated(Simulated::new(target, drives, args)?));
    }
    let options = [
        ("--set", !args.disk.set.is_empty()),
        ("--layer-ns", args.layer_ns > 0),
        ("--host", args.host.is_some()),
        ("--through", !args.through.is_empty()),
    ];
    if let Some((option, _)) = options.iter().find(|(_, given)| *given) {
        return Err(format!("bench {target}: {option} is for simulated drives").into());
    }
    if of_files {
        return match args.offset.iter().all(|&offset| offset == 0) {
            true => Ok(Backend::Directory(Directory::open(target)?)),
            false => Err(format!(
                "bench {target}: --offset moves a simulated file system: compare two directories"
            )
            .into()),
        };
    }
    if Directory::is(target) {
        let those: Vec<&str> = WORKLOADS
            .iter()
            .filter(|kind| matches!(kind.needs, Needs::Files(_)))
            .map(|kind| kind.name)
            .collect();
        let what = "it is a directory: name an image file or a block device";
        return Err(format!(
            "bench {target}: {what}; the workloads for directories are {}",
            those.join(", ")
        )
        .into());
    }
    if target.has_objects() {
        let mend = "serve it and name the export";
        return Err(format!("bench {target}: workloads do not run on objects: {mend}").into());
    }
    if target.is_remote() {
        let export = Exported::open(target, overrides, args, writes)?;
        return Ok(Backend::Exported(Box::new(export)));
    }
    match Memory::open(target, overrides, args, writes)? {
        Some(memory) => Ok(Backend::Memory(memory)),
        None => Ok(Backend::Real(Box::new(Real::open(target, overrides, args, writes)?))),
    }
}

/// The refusal of several disks without a provider.
fn several(target: &Target) -> Failure {
    format!("bench {target}: several disks: name the provider after a #: #stripe/data").into()
}

impl Backend {
    /// True if its time is virtual.
    pub(super) fn is_virtual(&self) -> bool {
        matches!(self, Backend::Simulated(_))
    }

    /// The provider; `None` for a directory.
    fn provider(&self) -> Option<&Provider> {
        match self {
            Backend::Simulated(drives) => Some(drives.provider()),
            Backend::Real(media) => Some(media.provider()),
            Backend::Exported(export) => Some(export.provider()),
            Backend::Memory(memory) => Some(memory.provider()),
            Backend::Directory(_) => None,
        }
    }

    /// The kind of the container that it is the disk of; `None` for anything else.
    pub(super) fn container(&self) -> Option<&'static str> {
        self.provider().filter(|provider| provider.is_contents).map(|provider| provider.class)
    }

    /// Length in bytes; 0 for a directory.
    pub(super) fn length(&self) -> u64 {
        self.provider().map_or(0, |provider| provider.topology.length)
    }

    /// Sector in bytes; 1 for a directory.
    pub(super) fn sector(&self) -> u64 {
        self.provider().map_or(1, |provider| provider.topology.sector)
    }

    /// Number of layers between it and its disks.
    pub(super) fn depth(&self) -> usize {
        self.provider().map_or(0, |provider| provider.depth)
    }

    /// The boundary missed by requests that are moved by `offset` bytes and do I/O in `block`
    /// bytes; assumed boundaries do not count. `None` if the target claims none, or its disks have
    /// none in common.
    pub(super) fn lies(&self, offset: u64, block: u64) -> Option<Option<Missed>> {
        let topology = &self.provider()?.topology;
        let is_known = |fact: &Fact| fact.trust > Trust::Assumed;
        if !topology.counting().any(is_known) {
            return None;
        }
        let moved = topology.shift(offset, topology.length.saturating_sub(offset));
        let missed = moved.missed(block).into_iter().find(|(fact, _)| is_known(fact));
        match missed {
            None if !topology.clashes.is_empty() => None,
            None => Some(None),
            Some((Fact { grain, why, .. }, _)) => {
                Some(Some(Missed { why, size: grain.size(), remainder: grain.remainder(0) }))
            }
        }
    }

    /// Unit in bytes that requests must be multiples of.
    pub(super) fn grain(&self) -> u64 {
        match self {
            Backend::Real(media) => media.grain(),
            _ => self.sector(),
        }
    }

    /// Warnings that the results here need, in words.
    pub(super) fn warnings(&self) -> Vec<String> {
        match self {
            Backend::Real(media) => media.holes().map(str::to_owned).into_iter().collect(),
            Backend::Exported(export) => export.warnings(),
            _ => Vec::new(),
        }
    }

    /// Runs a job once.
    pub(super) fn run(&mut self, job: &mut Job<'_, '_>) -> Result<RunOutput, Error> {
        match self {
            Backend::Simulated(drives) => drives.run(job),
            Backend::Real(media) => media.run(job),
            Backend::Exported(export) => export.run(job),
            Backend::Memory(memory) => memory.run(job),
            Backend::Directory(directory) => directory.run(job),
        }
    }
}

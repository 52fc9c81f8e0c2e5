//! What variants run on: drives in virtual time, new for every run, memory, or what is there.

use super::task::Task;
use crate::command::bench::args::Bench;
use crate::failure::Failure;
use crate::target::{self, DiskOverrides};
use directory::Directory;
use memory::Memory;
use real::Real;
use simulated::Simulated;
use trueline_geom::base::topology::{Fact, Trust};
use trueline_geom::graph::Provider;
use trueline_lab::error::Error;
use trueline_lab::result::bench::Missed;
use trueline_lab::run::Run;
use trueline_lab::workload::bonnie::Phases;
use trueline_lab::workload::{Kind, Needs, Watch};
use trueline_sim::counters::Counters;

mod directory;
mod memory;
mod real;
mod simulated;

/// Where to run.
pub(super) enum Backend {
    Simulated(Simulated),
    Real(Box<Real>),
    Memory(Memory),
    Directory(Directory),
}

/// One run of a task.
pub(super) struct Job<'a, 'b> {
    pub(super) task: &'a Task,
    /// What is random in it, and where platters stand.
    pub(super) seed: u64,
    /// Byte of the target at which a file system that is simulated begins.
    pub(super) place: u64,
    pub(super) watch: &'a mut Watch<'b>,
}

/// A run, and what came of it besides.
pub(super) struct Done {
    pub(super) run: Run,
    /// What every simulated drive did.
    pub(super) spent: Vec<Counters>,
    /// Reads that the page cache added, or real ones of the device.
    pub(super) host_reads: Option<u64>,
    /// What moved the bytes, where they were moved.
    pub(super) engine: Option<&'static str>,
    /// Of bonnie.
    pub(super) phases: Option<Phases>,
}

impl Done {
    /// A run, and nothing besides.
    fn of(run: Run) -> Done {
        Done { run, spent: Vec::new(), host_reads: None, engine: None, phases: None }
    }
}

/// Opens a target, as `said` describes its disks, for a workload. `writes`: what runs on it writes.
pub(super) fn open(target: &str, said: &DiskOverrides, args: &Bench, kind: &Kind, writes: bool) -> Result<Backend, Failure> {
    let of_files = matches!(kind.needs, Needs::Files(_));
    let simulated = if of_files && Directory::is(target) { None } else { target::simulated(target, said)? };
    if let Some(drives) = simulated {
        return Ok(Backend::Simulated(Simulated::new(target, drives, args)?));
    }
    let options = [("--set", !args.disk.set.is_empty()), ("--layer-ns", args.layer_ns > 0), ("--host", args.host.is_some())];
    if let Some((option, _)) = options.iter().find(|(_, said)| *said) {
        return Err(format!("bench {target}: {option} is for simulated drives").into());
    }
    if of_files {
        return match args.offset.iter().all(|&offset| offset == 0) {
            true => Ok(Backend::Directory(Directory::open(target)?)),
            false => Err(format!("bench {target}: --offset moves a simulated file system: compare two directories").into()),
        };
    }
    if target::is_remote(target) {
        let mend = "serve it with --fuse and name the file, or run fio with --ioengine=nbd";
        return Err(format!("bench {target}: workloads do not run on what a server has: {mend}").into());
    }
    match Memory::open(target, said, args)? {
        Some(memory) => Ok(Backend::Memory(memory)),
        None => Ok(Backend::Real(Box::new(Real::open(target, said, args, writes)?))),
    }
}

/// A target of which a provider has to be named.
fn several(target: &str) -> Failure {
    format!("bench {target}: several disks: name the provider after a #: #stripe/data").into()
}

impl Backend {
    /// Whether its time is virtual.
    pub(super) fn is_virtual(&self) -> bool {
        matches!(self, Backend::Simulated(_))
    }

    /// The provider; a directory is none.
    fn provider(&self) -> Option<&Provider> {
        match self {
            Backend::Simulated(drives) => Some(drives.provider()),
            Backend::Real(media) => Some(media.provider()),
            Backend::Memory(memory) => Some(memory.provider()),
            Backend::Directory(_) => None,
        }
    }

    /// Bytes; 0 of a directory.
    pub(super) fn length(&self) -> u64 {
        self.provider().map_or(0, |provider| provider.topology.length)
    }

    /// Bytes of its sector; 1 of a directory.
    pub(super) fn sector(&self) -> u64 {
        self.provider().map_or(1, |provider| provider.topology.sector)
    }

    /// Layers between it and its disks.
    pub(super) fn depth(&self) -> usize {
        self.provider().map_or(0, |provider| provider.depth)
    }

    /// What requests miss that are moved by `offset` bytes and do I/O in `block` bytes: of what the target says of its boundaries,
    /// nothing that is only assumed. `None` if it says nothing, or its disks cannot agree.
    pub(super) fn lies(&self, offset: u64, block: u64) -> Option<Option<Missed>> {
        let topology = &self.provider()?.topology;
        let told = |fact: &Fact| fact.trust > Trust::Assumed;
        if !topology.counting().any(told) {
            return None;
        }
        let moved = topology.shift(offset, topology.length.saturating_sub(offset));
        let missed = moved.missed(block).into_iter().find(|(fact, _)| told(fact));
        match missed {
            None if !topology.clashes.is_empty() => None,
            None => Some(None),
            Some((Fact { grain, why, .. }, _)) => Some(Some(Missed { why, size: grain.size(), remainder: grain.remainder(0) })),
        }
    }

    /// Bytes that it takes whole.
    pub(super) fn grain(&self) -> u64 {
        match self {
            Backend::Real(media) => media.grain(),
            _ => self.sector(),
        }
    }

    /// What is to be known before what is measured here is believed.
    pub(super) fn warning(&self) -> Option<String> {
        match self {
            Backend::Real(media) => media.holes().map(str::to_owned),
            _ => None,
        }
    }

    /// Runs a job once.
    pub(super) fn run(&mut self, job: &mut Job<'_, '_>) -> Result<Done, Error> {
        match self {
            Backend::Simulated(drives) => drives.run(job),
            Backend::Real(media) => media.run(job),
            Backend::Memory(memory) => memory.run(job),
            Backend::Directory(directory) => directory.run(job),
        }
    }
}

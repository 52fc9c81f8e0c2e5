//! Variants to compare: a workload on a target, moved by an offset.

use super::backend::{self, Backend, Job};
use super::task::Task;
use crate::command::bench::args::{Bench, Host};
use crate::failure::Failure;
use crate::remembered::Remembered;
use crate::target::DiskOverrides;
use std::cell::RefCell;
use std::rc::Rc;
use trueline_geom::base::topology::is_whole;
use trueline_lab::error::Error;
use trueline_lab::layer::counts::NamedCounts;
use trueline_lab::run::Run;
use trueline_lab::workload::bonnie::Phases;
use trueline_lab::workload::{Needs, Parameters, Watch, WorkloadKind, mkfs};
use trueline_sim::counters::Counters;
use trueline_sim::random::Random;

/// One variant and its finished runs.
pub(super) struct Variant {
    pub(super) name: String,
    pub(super) target: String,
    /// The profile that gives the target's boundaries, and its source.
    pub(super) judged: Option<Remembered>,
    /// Distance in bytes that its requests or file system are moved by.
    pub(super) offset: u64,
    pub(super) depth: usize,
    /// First byte of a simulated file system.
    place: u64,
    task: Task,
    /// The backend; variants of one target share it.
    pub(super) backend: Rc<RefCell<Backend>>,
    /// Reads that the page cache added, for every run that counts.
    pub(super) host_reads: Vec<Option<u64>>,
    /// Phases of bonnie's runs that count.
    pub(super) phases: Vec<Phases>,
    pub(super) engine: Option<&'static str>,
    /// Counts of the layers of `--through` in all runs that count.
    pub(super) layers: Vec<Vec<NamedCounts>>,
    /// Counters of each drive, summed over all runs that count.
    pub(super) spent: Vec<Counters>,
}

/// A variant for every target at every offset. `own`: parameters without an offset.
pub(super) fn list(
    args: &Bench,
    kind: &WorkloadKind,
    own: &Parameters,
) -> Result<Vec<Variant>, Failure> {
    let several = args.targets.len() > 1;
    // An offset moves a simulated file system, not the requests in it.
    let of_a_file_system = matches!(kind.needs, Needs::Files(_))
        || kind.name == mkfs::KIND.name
        || args.host == Some(Host::FreebsdUfs);
    let writes = Task::new(kind, own)?.writes();
    let mut variants = Vec::new();
    for target in &args.targets {
        let overrides = DiskOverrides::announced(&args.disk, target)?;
        let backend = Rc::new(RefCell::new(backend::open(target, &overrides, args, kind, writes)?));
        let (sector, depth) = (backend.borrow().sector(), backend.borrow().depth());
        let moves = !matches!(*backend.borrow(), Backend::Directory(_));
        let by_place = of_a_file_system && backend.borrow().is_virtual();
        let grain = backend.borrow().grain();
        let least = [0, grain.checked_div(sector).filter(|_| is_whole(grain, sector)).unwrap_or(1)];
        let offsets = match args.offset.as_slice() {
            [] if several || !moves => &[0][..],
            [] => &least,
            given => given,
        };
        for &offset in offsets {
            let name = match (several, offsets.len()) {
                (true, 1) => target.to_string(),
                (true, _) => format!("{target} offset {offset}"),
                (false, _) if !moves => target.to_string(),
                (false, _) => format!("offset {offset}"),
            };
            let bytes = offset.checked_mul(sector);
            let bytes = bytes.ok_or_else(|| {
                format!("bench {target}: an offset of {offset} sectors: no disk has so many")
            })?;
            if !is_whole(bytes, grain) {
                let instead = format!("say --buffered, or --offset 0,{}", least[1]);
                return Err(format!(
                    "bench {target}: an offset of {bytes} bytes: it takes whole \
                    blocks of {grain} bytes: {instead}"
                )
                .into());
            }
            let (place, within) = if by_place { (bytes, 0) } else { (0, bytes) };
            let task = Task::new(kind, &Parameters { offset: within, ..own.clone() })?;
            let (target, judged, backend) =
                (target.to_string(), overrides.judged().cloned(), Rc::clone(&backend));
            let (host_reads, phases, spent, engine) = (Vec::new(), Vec::new(), Vec::new(), None);
            variants.push(Variant {
                name,
                target,
                judged,
                offset: bytes,
                depth,
                place,
                task,
                backend,
                host_reads,
                phases,
                engine,
                layers: Vec::new(),
                spent,
            });
        }
    }
    Ok(variants)
}

impl Variant {
    /// Requests of a run; `None` if only time ends it.
    pub(super) fn extent(&self) -> Option<u64> {
        self.task.extent(self.backend.borrow().length().saturating_sub(self.place))
    }

    /// A warning that the results of its task need.
    pub(super) fn warning(&self) -> Option<String> {
        self.task.warning()
    }

    /// True if a run leaves dirty caches and garbage to the next: it writes, in real time.
    pub(super) fn leaves_dirty(&self) -> bool {
        match *self.backend.borrow() {
            Backend::Real(_) | Backend::Exported(_) => self.task.writes(),
            Backend::Directory(_) => true,
            Backend::Simulated(_) | Backend::Memory(_) => false,
        }
    }

    /// Run number `run`. All variants have the same requests in it, on drives with equal positions
    /// of their platters. `counts`: it is no warm-up. `rest_ns`: the rest before it, if it writes.
    pub(super) fn run(
        &mut self,
        run: usize,
        counts: bool,
        seed: u64,
        rest_ns: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Run, Error> {
        let seed = Random::new(seed.wrapping_add(run as u64)).bits();
        let done = self.backend.borrow_mut().run(&mut Job {
            task: &self.task,
            seed,
            place: self.place,
            rest_ns,
            watch,
        })?;
        // A time with failed requests is no time of the workload.
        if let Some(first) = &done.run.first_error {
            return Err(Error::new(format!(
                "{} of {} requests failed, the first: {first}",
                done.run.errors,
                done.run.ops + done.run.errors
            )));
        }
        if counts {
            self.engine = done.engine;
            self.host_reads.push(done.host_reads);
            self.phases.extend(done.phases);
            self.layers.push(done.layers);
            self.spent.resize(done.spent.len().max(self.spent.len()), Counters::default());
            for (all, one) in self.spent.iter_mut().zip(done.spent) {
                *all += one;
            }
        }
        Ok(done.run)
    }
}

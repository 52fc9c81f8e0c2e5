//! `--emulate`: which drives, and what they did.

use crate::Failure;
use crate::options::serve::Serve;
use crate::out::{Style, spent};
use crate::target;
use std::sync::Arc;
use trueline_lab::emulated::{Drives, Monotonic};
use trueline_lab::result::Spent;
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// Refuses drives that are said twice, or not at all.
pub(super) fn check(args: &Serve) -> Result<(), Failure> {
    let simulated = target::split(&args.target).0.into_iter().any(target::simulated::is_simulated);
    let refused = |why: &str| Err(Failure::Message(format!("serve {}: {why}", args.target)));
    match &args.drive {
        None if args.emulate && !simulated => {
            refused("--emulate: which drive? --drive wd10ears puts the target on one; trueline drives lists them")
        }
        Some(_) if simulated => refused("--drive: the target names a drive already: leave one of them out"),
        _ => Ok(()),
    }
}

/// The drives, switched on now; [`None`] without `--emulate`.
pub(super) fn drives(models: &[Model], args: &Serve) -> Option<Arc<Drives>> {
    args.emulate.then(|| {
        let mut seeds = Random::new(args.seed);
        let drives: Vec<_> = models.iter().map(|model| (model.drive(seeds.bits()), model.logical_block_size)).collect();
        let depth = drives.iter().fold(0_usize, |sum, (drive, _)| sum.saturating_add(drive.tags()));
        // A few more than the drives take: the next one waits before them, not in the client.
        let depth = depth.saturating_mul(2);
        Arc::new(Drives::new(World::new(drives, Schedule::Fifo), depth, args.speed, Box::new(Monotonic)))
    })
}

/// What they did, on stderr.
pub(super) fn tell(drives: &Drives, models: &[Model]) -> Result<(), Failure> {
    let spends: Vec<_> = drives.counters().iter().map(|drive| Spent::of(std::slice::from_ref(drive), 0)).collect();
    let rows: Vec<_> = models.iter().map(|model| model.name.as_str()).zip(&spends).collect();
    Ok(spent::write(&rows, Style::default(), &mut anstream::stderr().lock())?)
}

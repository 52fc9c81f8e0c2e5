//! `--drive`: the requests of a recording on simulated drives, as they are and with every layer on
//! the grain.

use crate::failure::{Failure, Reason};
use crate::target::open;
use crate::target::{DiskOverrides, Target};
use serde::Serialize;
use std::path::Path;
use trueline_geom::base::topology::Grain;
use trueline_host::process::signal;
use trueline_lab::error::{Error, Remedy};
use trueline_lab::result::Spent;
use trueline_lab::rig::Rig;
use trueline_lab::rig::filter::Filter;
use trueline_lab::rig::shifted::Shifted;
use trueline_lab::rig::simulated::Simulated;
use trueline_lab::workload::{Needs, Parameters, replay};
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// The seed of where the platters of the drives stand.
const SEED: u64 = 1;

/// The requests of a recording on one drive.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct DriveRun {
    /// The model of the drive.
    pub drive: String,
    /// `traced`: at their own places; `aligned`: with the start of every layer on the grain.
    pub variant: &'static str,
    /// Time of the drive, in ns, with each request sent when the one before it is done.
    pub duration_ns: u64,
    pub requests: u64,
    pub bytes: u64,
    /// Where the drive's time went.
    pub spent: Spent,
}

/// The time of a run relative to that of the same drive with layers on the grain; `None` of such a
/// run, and where there is none.
#[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
pub(super) fn ratio_of(run: &DriveRun, runs: &[DriveRun]) -> Option<f64> {
    let same = |other: &&DriveRun| other.drive == run.drive && other.variant == "aligned";
    let aligned = runs.iter().find(same).filter(|_| run.variant == "traced")?;
    (aligned.duration_ns > 0).then(|| run.duration_ns as f64 / aligned.duration_ns as f64)
}

/// Runs the requests in `file` on a drive of each model. `parts` has the first byte of every part
/// of the disk they were to, and the first byte of the layer in that part.
pub(super) fn runs(
    models: &[String],
    file: &Path,
    parts: &[(u64, u64)],
) -> Result<Vec<DriveRun>, Failure> {
    let mut runs = Vec::new();
    for model in models {
        let name =
            if model.starts_with("drive:") { model.clone() } else { format!("drive:{model}") };
        let target = Target::parse(&name);
        let overrides = DiskOverrides::new(&Default::default())?;
        let drives = open::simulated(&target, &overrides)?
            .ok_or_else(|| Reason(format!("trace --drive {model}: trueline drives lists them")))?;
        let unit = drives.graph.providers[drives.graph.disk(0)].topology.unit();
        let moved: Vec<(u64, u64)> = unit.map_or(Vec::new(), |unit| downs(parts, unit.grain));
        runs.push(run(model, "traced", &drives, file, Vec::new())?);
        if moved.iter().any(|&(_, down)| down > 0) {
            runs.push(run(model, "aligned", &drives, file, moved)?);
        }
    }
    Ok(runs)
}

/// The bytes by which each part goes down so that its layer begins on `grain`.
fn downs(parts: &[(u64, u64)], grain: Grain) -> Vec<(u64, u64)> {
    parts.iter().map(|&(start, layer)| (start, grain.remainder(layer))).collect()
}

/// Runs the requests once, with parts moved down.
fn run(
    model: &str,
    variant: &'static str,
    drives: &open::Simulated,
    file: &Path,
    parts: Vec<(u64, u64)>,
) -> Result<DriveRun, Failure> {
    let parameters = Parameters { file: Some(file.to_owned()), ..Parameters::default() };
    let Needs::Blocks(make) = replay::KIND.needs else {
        return Err(Reason("trace --drive: replay is no workload of blocks".into()).into());
    };
    let workload = make(&parameters).map_err(Reason::from)?;
    let mut seeds = Random::new(SEED);
    let world = drives
        .models
        .iter()
        .map(|model| (model.drive(seeds.bits()), model.logical_block_size))
        .collect();
    let disk = &drives.graph.providers[drives.graph.disk(0)];
    let rig = Simulated::new(
        World::new(world, Schedule::Fifo),
        disk.route().clone(),
        disk.topology.sector,
        0,
    );
    let mut rig = Shifted::new(rig, parts);
    let began = rig.now();
    let failed = |error: Error| match error.remedy {
        // Folded into the drive, requests would not be in their layers any more.
        Some(Remedy::Wrap) => {
            let name = model.split_once('@').map_or(model, |(name, _)| name);
            Reason(format!("trace --drive {model}: {}: write {name}@SIZE", error.message))
        }
        _ => Reason::from(error),
    };
    let done = workload.run(&mut rig, SEED, &mut |_| !signal::happened()).map_err(failed)?;
    if signal::happened() {
        return Err(Reason(format!("trace --drive {model}: interrupted")).into());
    }
    // A time with failed requests is no time of the recording.
    if let Some(first) = &done.first_error {
        let (errors, all) = (done.errors, done.ops + done.errors);
        let what = format!("{errors} of {all} requests failed, the first: {first}");
        return Err(Reason(format!("trace --drive {model}: {what}")).into());
    }
    let duration_ns = rig.now().saturating_sub(began);
    Ok(DriveRun {
        drive: model.to_owned(),
        variant,
        duration_ns,
        requests: done.ops,
        bytes: done.bytes,
        spent: Spent::sum(&rig.beneath().counters(), 0),
    })
}

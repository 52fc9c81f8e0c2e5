//! `bench`: one workload on several variants, run in turn, and the ratio of their times.

use crate::command::bench::args::Bench;
use crate::failure::{Failure, worded_lab};
use crate::style::Style;
use progress::Progress;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use trueline_host::process::signal;
use trueline_lab::ab::{self, Measure, Measurement, MeasurementPlan};
use trueline_lab::error::Error;
use trueline_lab::result::bench::{
    BenchDocument, BenchRun, Correction, Judged, Variant as ShownVariant, VariantComparison,
};
use trueline_lab::result::{LayerResult, Spent};
use trueline_lab::run::Run;
use trueline_lab::statistics::{Slope, slope};
use trueline_lab::workload::{self, Needs, Parameters, WORKLOADS, WorkloadKind, latency};
use variant::Variant;

pub(crate) mod args;
mod backend;
pub(crate) mod csv;
mod fits;
mod genfile;
mod hidden;
mod phases;
mod progress;
mod task;
pub(crate) mod text;
mod tree;
mod variant;

pub(crate) fn run(args: &Bench) -> Result<ExitCode, Failure> {
    let kind = workload::named(&args.workload).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|kind| kind.name).collect();
        format!("bench: no workload '{}': there are {}", args.workload, names.join(", "))
    })?;
    fits::fits(args, kind)?;
    if let Some(path) = &args.genfile {
        genfile::run(args, path)?;
        return Ok(ExitCode::SUCCESS);
    }
    let own = Parameters {
        entries: args.tar.as_deref().map(tree::list).transpose()?,
        ..args.parameters(0)
    };
    let mut variants = variant::list(args, kind, &own)?;
    if args.rest.is_some() && !variants.iter().any(Variant::leaves_dirty) {
        let what = "--rest is for runs that write to files, devices and exports";
        return Err(Failure::Message(format!("bench {}: {what}", kind.name)));
    }
    signal::remember_first();
    let measured = measure(args, &mut variants);
    if measured.runs.iter().all(Vec::is_empty) {
        let why = measured
            .stopped
            .map_or_else(|| "no run was finished".into(), |error| worded_lab(&error));
        return Err(Failure::Message(format!("bench {}: {why}", kind.name)));
    }
    let document = document(args, kind, &variants, &measured);
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &document).map_err(std::io::Error::from)?;
        writeln!(stdout)?;
    } else if args.csv {
        csv::write(&document, &mut stdout)?;
    } else {
        text::write(&document, Style::of_stdout(), &mut stdout)?;
    }
    stdout.flush()?;
    // The results are printed whatever happened after them.
    match measured.stopped {
        None => Ok(ExitCode::SUCCESS),
        Some(error) => Err(Failure::Message(format!(
            "bench {}: {}: the runs before it are shown",
            kind.name,
            worded_lab(&error)
        ))),
    }
}

/// Runs all variants in turn, until every one has its runs or an error or interrupt ends it.
fn measure(args: &Bench, variants: &mut [Variant]) -> Measurement {
    let is_virtual = is_virtual(variants);
    let plan = MeasurementPlan {
        variants: variants.iter().map(|variant| variant.name.clone()).collect(),
        warmup: args
            .warmup
            .map_or(usize::from(!is_virtual), |n| usize::try_from(n).unwrap_or(usize::MAX)),
        runs: usize::try_from(args.runs).unwrap_or(usize::MAX),
        until: None,
        measure: if args.seconds.is_some() { Measure::TimePerRequest } else { Measure::Time },
        seed: args.seed,
        is_virtual,
    };
    let progress = Progress::new(variants, args.seconds);
    let asked_ns = args.rest.map(|rest| u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX));
    let mut rest_ns = asked_ns.unwrap_or(0);
    let mut one = |nth: usize, run: usize| {
        let Some(variant) = variants.get_mut(nth) else {
            return Err(Error::new("a variant that is not there".into()));
        };
        let done = variant
            .run(run, run >= plan.warmup, args.seed, rest_ns, &mut |asked| progress.asked(asked));
        // An interrupt may be the reason why this run failed.
        if signal::happened() {
            return Err(Error::new("interrupted".into()));
        }
        rest_ns = asked_ns.unwrap_or_else(|| done.as_ref().map_or(0, Run::rest_ns));
        done.map_err(|error| {
            let message = format!("{}: {}", variant.name, error.message);
            Error { message, ..error }
        })
    };
    let measured = ab::measure(&plan, &mut one, &mut |at| progress.begin(&at));
    progress.end();
    measured
}

/// True if all variants run in virtual time.
fn is_virtual(variants: &[Variant]) -> bool {
    variants.iter().all(|variant| variant.backend.borrow().is_virtual())
}

fn document(
    args: &Bench,
    kind: &WorkloadKind,
    variants: &[Variant],
    measured: &Measurement,
) -> BenchDocument {
    let comparison = measured.comparison.as_ref().ok().copied();
    let of_files =
        (matches!(kind.needs, Needs::Files(_)) || args.host.is_some()) && is_virtual(variants);
    let mut warnings = measured.warnings.clone();
    if kind.name == latency::KIND.name
        && args.layer_ns == 0
        && variants.iter().any(|v| v.depth > 0 && v.backend.borrow().is_virtual())
    {
        warnings.push(
            "layers cost nothing on simulated drives unless --layer-ns says what; \
            md:SIZE=IMAGE measures ours"
                .into(),
        );
    }
    let done: Vec<(u64, u64)> = measured
        .runs
        .iter()
        .map(|runs| runs.first().map_or((0, 0), |run| (run.ops, run.bytes)))
        .collect();
    warnings.extend(variants.first().and_then(Variant::warning));
    warnings.extend(hidden::warnings(args, kind, variants, &done));
    warnings.extend(hidden::containers(variants));
    for warning in variants.iter().flat_map(|variant| variant.backend.borrow().warnings()) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    let shown: Vec<ShownVariant> = variants
        .iter()
        .enumerate()
        .map(|(nth, variant)| result_of(args, variant, nth, measured))
        .collect();
    BenchDocument {
        format: "trueline/bench/1",
        workload: kind.name.into(),
        time: if is_virtual(variants) { "virtual" } else { "real" },
        buffered: args.buffered,
        host: of_files.then(|| args.host.unwrap_or_default().name()),
        ratio: comparison.map(|comparison| comparison.ratio),
        comparison,
        comparisons: comparisons(variants, measured),
        correction: Correction::of(measured.comparisons.len()),
        slope: slope_of(variants, &shown, measured),
        variants: shown,
        warnings,
        ended: measured.stopped.as_ref().map(ToString::to_string),
    }
}

/// Every variant after the first against it, where a ratio is defined.
fn comparisons(variants: &[Variant], measured: &Measurement) -> Vec<VariantComparison> {
    let Some((first, others)) = variants.split_first() else { return Vec::new() };
    let found = others.iter().zip(&measured.comparisons);
    found
        .filter_map(|(variant, found)| {
            Some(VariantComparison {
                variant: variant.name.clone(),
                against: first.name.clone(),
                comparison: *found.as_ref().ok()?,
            })
        })
        .collect()
}

fn result_of(args: &Bench, variant: &Variant, nth: usize, measured: &Measurement) -> ShownVariant {
    let reads = variant.host_reads.iter().copied();
    let mut runs: Vec<BenchRun> = measured.runs[nth]
        .iter()
        .zip(reads)
        .map(|(run, reads)| BenchRun::from_run(run, reads))
        .collect();
    let table = phases::tell(args, variant, &mut runs);
    let host_reads = runs.iter().filter_map(|run| run.host_reads).sum();
    let drives = (!variant.spent.is_empty()).then(|| Spent::sum(&variant.spent, host_reads));
    let block =
        measured.runs[nth].iter().find_map(|run| run.bytes.checked_div(run.ops)).unwrap_or(0);
    let lies = variant.backend.borrow().lies(variant.offset, block);
    let Variant { name, target, judged, offset, depth, engine, .. } = variant;
    let judged = judged
        .as_ref()
        .map(|judged| Judged { profile: judged.profile.clone(), from: judged.from.clone() });
    let (name, target) = (name.clone(), target.clone());
    let (aligned, missed) = (lies.map(|missed| missed.is_none()), lies.flatten());
    ShownVariant {
        name,
        target,
        judged,
        offset: *offset,
        aligned,
        missed,
        depth: *depth,
        engine: *engine,
        runs,
        drives,
        layers: LayerResult::sum(variant.layers.iter().cloned()),
        table,
    }
}

/// The time that a layer adds to a request, from the mean of every run, if the variants differ in
/// depth. Not of variants that differ in alignment as well: what that costs is no layer's.
fn slope_of(variants: &[Variant], shown: &[ShownVariant], measured: &Measurement) -> Option<Slope> {
    if shown.windows(2).any(|pair| pair[0].aligned != pair[1].aligned) {
        return None;
    }
    let runs = variants.iter().zip(&measured.runs);
    #[allow(clippy::cast_precision_loss, reason = "a handful of layers")]
    let points = runs
        .flat_map(|(variant, runs)| runs.iter().map(|run| (variant.depth as f64, run.mean_ns())));
    slope(&points.collect::<Vec<_>>())
}

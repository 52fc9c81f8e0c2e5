//! Warnings about runs that fit a cache: the drive's, or that of the files' host.

use super::backend::Backend;
use super::variant::Variant;
use crate::command::bench::args::Bench;
use crate::words::{escape, size};
use trueline_lab::workload::WorkloadKind;
use trueline_sim::counters::Counters;

/// Multiple of the drive's cache that a run has to write; below it a warning is due.
const TIMES: u64 = 10;

/// Workloads that write one block after another, and those with their requests counted by
/// `--count`.
const IN_SEQUENCE: [&str; 2] = ["dd", "fill"];
const COUNTED: [&str; 4] = ["dd", "random-write", "raidtest", "latency"];

/// Divisor of a run's bytes that have to be at the drive by its end; below that share a warning is
/// due.
const SHARE: u64 = 4;
/// Workloads on files that write as many bytes as they count.
const WRITTEN: [&str; 2] = ["copy", "tree"];

/// The warnings on every target of simulated drives, each once. `done`: requests and bytes of a run
/// of each variant.
pub(super) fn warnings(
    args: &Bench,
    kind: &WorkloadKind,
    variants: &[Variant],
    done: &[(u64, u64)],
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for (variant, &(ops, bytes)) in variants.iter().zip(done) {
        let one =
            of_host(args, kind, variant, bytes).or_else(|| of_drive(args, kind, variant, ops));
        all.extend(one.filter(|warning| !all.contains(warning)));
    }
    all
}

/// The notes that a target is the disk in a container, where others that it is compared with are of
/// another kind: its tables are read besides.
pub(super) fn containers(variants: &[Variant]) -> Vec<String> {
    let kind = |variant: &Variant| variant.backend.borrow().container();
    let first = variants.first().and_then(kind);
    let mut all: Vec<String> = Vec::new();
    for variant in variants.iter().filter(|_| variants.iter().any(|other| kind(other) != first)) {
        let Some(kind) = kind(variant) else { continue };
        let target = escape::plain(&variant.target);
        let note = format!(
            "{target}: the disk in a {kind} is measured, and its tables with it; others here are of another kind"
        );
        all.extend(Some(note).filter(|note| !all.contains(note)));
    }
    all
}

/// The warning that most bytes of the files are still in the host's memory at the end, and cost the
/// drive nothing.
fn of_host(args: &Bench, kind: &WorkloadKind, variant: &Variant, bytes: u64) -> Option<String> {
    let runs = u64::try_from(variant.host_reads.len()).ok().filter(|&runs| runs > 0)?;
    if args.sync
        || args.read
        || !WRITTEN.contains(&kind.name)
        || !variant.backend.borrow().is_virtual()
    {
        return None;
    }
    let written =
        variant.spent.iter().map(|drive| drive.bytes_written).fold(0, u64::saturating_add) / runs;
    if bytes == 0 || written >= bytes / SHARE {
        return None;
    }
    let (all, written) = (size::human(bytes), size::human(written));
    let advice = if kind.name == "copy" {
        "--sync, or more than the memory in --size"
    } else {
        "more --files"
    };
    let target = escape::plain(&variant.target);
    Some(format!(
        "{target}: of the {all} of a run the drive had {written} at its end, and the host's memory the rest; the drive's cost shows with {advice}"
    ))
}

fn of_drive(args: &Bench, kind: &WorkloadKind, variant: &Variant, ops: u64) -> Option<String> {
    let backend = variant.backend.borrow();
    let Backend::Simulated(drives) = &*backend else { return None };
    let runs = u64::try_from(variant.host_reads.len()).ok().filter(|&runs| runs > 0)?;
    // Writes through the cache, or flushed at the end, were waited for.
    if args.buffered || args.sync || variant.spent.iter().any(|drive| drive.flushes > 0) {
        return None;
    }
    let extent = |drive: &Counters| match IN_SEQUENCE.contains(&kind.name) {
        true => u64::MAX,
        false => drive.bytes_written.checked_div(drive.writes).unwrap_or(0),
    };
    let kept =
        variant.spent.iter().zip(drives.models()).map(|(drive, model)| model.kept(extent(drive)));
    let kept = kept.fold(0, u64::saturating_add);
    let written =
        variant.spent.iter().map(|drive| drive.bytes_written).fold(0, u64::saturating_add) / runs;
    if written == 0 || kept.saturating_mul(TIMES) < written {
        return None;
    }
    let (holds, writes) = (size::human(kept), size::human(written));
    let found = match written <= kept {
        true => {
            format!("all {writes} that a run writes fit what the drive keeps in memory, {holds}")
        }
        false => {
            format!("of {writes} that a run writes the drive may keep {holds} in memory at its end")
        }
    };
    let count = u128::from(ops) * u128::from(kept) * u128::from(TIMES) / u128::from(written) + 1;
    let advice = match args.seconds {
        Some(_) => "; the medium's cost shows in a longer run".into(),
        None if COUNTED.contains(&kind.name) => {
            format!("; the medium's cost shows with --count {count} or more")
        }
        None => String::new(),
    };
    Some(format!("{}: {found}{advice}", escape::plain(&variant.target)))
}

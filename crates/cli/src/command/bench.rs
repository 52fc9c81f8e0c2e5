//! `bench`: one workload on several variants, run in turn, and the ratio of their times.

use crate::Failure;
use crate::options::bench::Bench;
use crate::out::{self, Style};
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use trueline_lab::result::Spent;
use trueline_lab::result::bench::{BenchDocument, BenchRun, Ratio, Variant as Told};
use trueline_lab::workload::{self, Kind, Needs, WORKLOADS};
use variant::Variant;

mod ground;
mod variant;

pub(crate) fn run(args: &Bench) -> Result<ExitCode, Failure> {
    let kind = workload::named(&args.workload).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|kind| kind.name).collect();
        format!("bench: no workload '{}': there are {}", args.workload, names.join(", "))
    })?;
    let mut variants = variant::all(args, kind)?;
    let ended = measure(args, &mut variants);
    let document = document(args, kind, &variants, ended.clone());
    let mut stdout = BufWriter::new(anstream::stdout().lock());
    if args.json {
        serde_json::to_writer_pretty(&mut stdout, &document).map_err(std::io::Error::from)?;
        writeln!(stdout)?;
    } else if args.csv {
        out::bench_csv::write(&document, &mut stdout)?;
    } else {
        out::bench::write(&document, Style::of_stdout(), &mut stdout)?;
    }
    stdout.flush()?;
    // What was measured is told whatever happened afterwards.
    ended.map_or(Ok(ExitCode::SUCCESS), |why| Err(Failure::Message(why)))
}

/// Runs all variants in turn, there and back, until every one has its runs; why there are fewer.
fn measure(args: &Bench, variants: &mut [Variant]) -> Option<String> {
    for run in 0..args.runs {
        let order: Vec<usize> = if run % 2 == 0 { (0..variants.len()).collect() } else { (0..variants.len()).rev().collect() };
        for nth in order {
            let variant = &mut variants[nth];
            if let Err(error) = variant.run(u64::from(run), args.seed) {
                return Some(format!("bench {} on {}: {error}", args.workload, variant.target));
            }
        }
    }
    None
}

fn document(args: &Bench, kind: &Kind, variants: &[Variant], ended: Option<String>) -> BenchDocument {
    let is_virtual = variants.iter().all(|v| v.ground.borrow().is_virtual());
    let told: Vec<Told> = variants.iter().map(told).collect();
    BenchDocument {
        format: "trueline/bench/1",
        workload: kind.name.into(),
        time: if is_virtual { "virtual" } else { "real" },
        bs: None,
        buffered: args.buffered,
        ratio: ratio(&told),
        variants: told,
        slope: None,
        warnings: Vec::new(),
        ended,
    }
}

fn told(variant: &Variant) -> Told {
    let runs: Vec<BenchRun> = variant.runs.iter().map(|run| BenchRun::of(&run.run, run.host_reads)).collect();
    let host_reads = variant.runs.iter().filter_map(|run| run.host_reads).sum();
    let drives = (!variant.spent.is_empty()).then(|| Spent::of(&variant.spent, host_reads));
    Told { name: variant.name.clone(), target: variant.target.clone(), offset: variant.offset, depth: variant.depth, runs, drives }
}

/// Time of the last over the first, a request.
fn ratio(variants: &[Told]) -> Option<Ratio> {
    let [first, .., last] = variants else { return None };
    #[allow(clippy::cast_precision_loss, reason = "for statistics")]
    let each = |run: &BenchRun| run.seconds / run.ops.max(1) as f64;
    let mut ratios: Vec<f64> = first.runs.iter().zip(&last.runs).map(|(a, b)| each(b) / each(a)).filter(|r| r.is_finite()).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (*ratios.first()?, *ratios.last()?);
    Some(Ratio { median: ratios[ratios.len() / 2], low, high })
}

/// A workload of blocks.
fn make(kind: &Kind, parameters: &workload::Parameters) -> Result<Box<dyn workload::Blocks>, String> {
    match kind.needs {
        Needs::Blocks(make) => make(parameters).map_err(|e| format!("bench {}: {e}", kind.name)),
    }
}

//! Reports of bonnie's runs: a line of each, and the table of the run with the median time.

use super::variant::Variant;
use crate::command::bench::args::Bench;
use trueline_lab::result::bench::BenchRun;
use trueline_lab::workload::bonnie::{Parameters, line};

/// Adds the line of every run. Returns the table, if there are phases.
pub(super) fn tell(args: &Bench, variant: &Variant, runs: &mut [BenchRun]) -> Option<String> {
    let parameters = Parameters::from_options(&args.parameters(0)).ok()?;
    // bonnie++ writes the time since 1970 here; our random numbers begin with the seed.
    let head = line::Head { machine: &variant.name, time: args.seed, parameters };
    for (run, phases) in runs.iter_mut().zip(&variant.phases) {
        run.bonnie_csv = Some(line::csv(&head, phases));
    }
    let mut order: Vec<usize> = (0..runs.len().min(variant.phases.len())).collect();
    order.sort_by(|&a, &b| runs[a].seconds.total_cmp(&runs[b].seconds));
    let middle = order.get(order.len().saturating_sub(1) / 2)?;
    Some(line::table(&head, &variant.phases[*middle]))
}

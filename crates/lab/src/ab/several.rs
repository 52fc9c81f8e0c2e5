//! Comparisons of every variant with the first.

use super::{MeasurementPlan, compare_among};
use crate::error::Error;
use crate::run::Run;
use crate::statistics::Comparison;

/// Every variant after the first compared with it, their intervals widened to hold together; none
/// of a single variant. Of two it is `last`, the comparison of the last with the first alone.
pub(super) fn compare_each(
    plan: &MeasurementPlan,
    runs: &[Vec<Run>],
    last: &Result<Comparison, Error>,
) -> Vec<Result<Comparison, Error>> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    if others.len() == 1 {
        return vec![last.clone()];
    }
    others.iter().map(|own| compare_among(plan, first, own, others.len())).collect()
}

//! The effect of a run on the next (dirty caches, garbage to collect, heat), of two variants in the
//! order A B B A: each variant after itself is compared with the same after the other.

use super::comparison::{Ratio, percent};
use super::{median, rank};
use std::fmt;

/// The probability by chance below which a run before counts. One thing is tested a measurement,
/// and it must also move the ratio out of its interval.
const IMPROBABLE: f64 = 0.05;

/// The least number of runs of each variant that can tell: four that follow themselves are then
/// compared with four of the other. The ranks of four and three never show one in twenty.
const ENOUGH: usize = 9;

/// The effect of the run before.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct CarryOver {
    /// The time of the first variant after itself over that after the other, a run before.
    pub first: f64,
    /// The same of the last variant.
    pub last: f64,
    /// The time of a run after the last variant over that of one after the first.
    pub effect: f64,
    /// The ratio of the last variant over the first where each follows itself.
    pub alone: f64,
    /// The probability of such an effect by chance, by rank.
    pub probability: f64,
    /// True if the order decides: the probability is below 0.05, and `alone` outside the interval
    /// of the ratio.
    pub decides: bool,
}

impl CarryOver {
    /// The effect in series of the order A B B A, whose ratio is known; `None` with fewer than nine
    /// runs. A drift adds the same to both variants' comparisons, and cancels.
    pub fn between(first: &[f64], last: &[f64], ratio: Ratio) -> Option<CarryOver> {
        let runs = first.len().min(last.len());
        if runs < ENOUGH {
            return None;
        }
        // Neighbours in time: the last variant's runs within A B B A, the first's between two of
        // these. The second of both follows its own variant, the first the other.
        let of_first = doubles(&first[1..runs]);
        let of_last = doubles(&last[..runs]);
        let (first, last) = (median(&of_first), median(&of_last));
        let effect = (last / first).sqrt();
        let alone = ratio.median * effect;
        let probability = rank::same(&of_first, &of_last);
        let decides = probability < IMPROBABLE && !(ratio.low..=ratio.high).contains(&alone);
        Some(CarryOver { first, last, effect, alone, probability, decides })
    }
}

/// The ratio of every second time over the one before it.
fn doubles(times: &[f64]) -> Vec<f64> {
    times.chunks_exact(2).map(|two| two[1] / two[0]).collect()
}

impl fmt::Display for CarryOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (change, way) = if self.effect > 1.0 {
            (self.effect - 1.0, "longer")
        } else {
            (1.0 - self.effect, "less time")
        };
        write!(
            f,
            "the order decides: a run takes {} {way} after the second than after the first, and where each follows itself the ratio is {:.3}",
            percent(change),
            self.alone
        )
    }
}

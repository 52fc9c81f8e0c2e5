//! The evidence: times by length and position, and how well a grain explains them.
//!
//! A grain divides the requests of one length into those that touch as many units as they must,
//! and those that cut one more ([`Grain::cuts`]). It explains the times as well as that division
//! lessens their squared deviations, where cuts cost time. Times are logarithms, clipped at six
//! deviations from the median of their length, so that a pause of the drive proves nothing.

use super::field::Field;
use crate::statistics::{MAD_TO_SIGMA, Summary, real};
use trueline_geom::base::topology::Grain;

/// One measured time of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The index of its length in [`Evidence::lengths`].
    pub(super) nth: usize,
    /// The position in bytes within the field.
    pub(super) position: u64,
    /// The logarithm of the time.
    pub(super) time: f64,
}

/// All the times of one search.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    pub(super) lengths: Vec<u64>,
    pub(super) samples: Vec<Sample>,
}

/// The account of one grain by all times.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) grain: Grain,
    /// The gain of its likelihood over that of no grain at all, in nats, less the number of phases
    /// that it was chosen from.
    pub(super) score: f64,
    /// The index of the length that says most, and the gain there.
    pub(super) best: usize,
    pub(super) gain: f64,
    /// The most that a cut can cost, as a logarithm, at the shortest length of a whole unit, or the
    /// longest of all; infinite where that is not known.
    pub(super) bound: f64,
}

/// Deviations from the median at which times are clipped.
const CLIP: f64 = 6.0;
/// The deviation of the logarithm of a time that no clock resolves.
const RESOLUTION: f64 = 0.002;
/// Deviations within which an effect is bounded.
const WITHIN: f64 = 3.0;

/// Samples to either side whose mean is the level of a time.
const NEIGHBOURS: usize = 32;

/// Takes the slow rise and fall of a drive's times away, which all positions share.
fn detrend(samples: &mut [Sample]) {
    let mut sums = vec![0.0];
    for sample in samples.iter() {
        sums.push(sums[sums.len() - 1] + sample.time);
    }
    let count = samples.len();
    for (nth, sample) in samples.iter_mut().enumerate() {
        let (from, to) = (nth.saturating_sub(NEIGHBOURS), (nth + NEIGHBOURS + 1).min(count));
        let others = sums[to] - sums[from] - sample.time;
        sample.time -= others / real((to - from).max(2) - 1);
    }
}

/// Sums of one side of a division.
#[derive(Clone, Copy, Default)]
struct Side {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Side {
    fn add(&mut self, time: f64) {
        self.count += 1.0;
        self.sum += time;
        self.squares += time * time;
    }

    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    fn deviations(&self) -> f64 {
        (self.squares - self.sum * self.mean()).max(0.0)
    }
}

impl Evidence {
    pub(super) fn of(field: &Field) -> Evidence {
        Evidence { lengths: field.lengths.clone(), samples: Vec::new() }
    }

    /// The samples with times relative to the median of their length, clipped.
    fn clipped(&self) -> Vec<Sample> {
        let centres: Vec<Option<(f64, f64)>> = (0..self.lengths.len())
            .map(|nth| {
                let of = self.samples.iter().filter(|sample| sample.nth == nth);
                let times: Vec<f64> = of.map(|sample| sample.time).collect();
                let Summary { median, mad, deviation, .. } = Summary::from_values(&times)?;
                // More than half of the times may be equal.
                let sigma = if mad > 0.0 { mad * MAD_TO_SIGMA } else { deviation };
                Some((median, sigma.max(RESOLUTION)))
            })
            .collect();
        let clip = |sample: &Sample| {
            let (median, sigma) = centres.get(sample.nth).copied().flatten()?;
            let time = (sample.time - median).clamp(-CLIP * sigma, CLIP * sigma);
            Some(Sample { time, ..*sample })
        };
        let mut samples: Vec<Sample> = self.samples.iter().filter_map(clip).collect();
        detrend(&mut samples);
        samples
    }

    /// The accounts of grains, the best first. Each grain of a size has the same weight.
    pub(super) fn accounts(&self, grains: &[Grain]) -> Vec<Account> {
        let samples = self.clipped();
        let mut all = vec![Side::default(); self.lengths.len()];
        for sample in &samples {
            all[sample.nth].add(sample.time);
        }
        let mut accounts: Vec<Account> = grains
            .iter()
            .map(|&grain| {
                let phases = grains.iter().filter(|other| other.size() == grain.size()).count();
                self.account(grain, &samples, &all, real(phases).ln())
            })
            .collect();
        accounts.sort_by(|one, other| other.score.total_cmp(&one.score));
        accounts
    }

    fn account(&self, grain: Grain, samples: &[Sample], all: &[Side], choice: f64) -> Account {
        let mut cut = vec![Side::default(); self.lengths.len()];
        for sample in samples {
            if grain.cuts(sample.position, self.lengths[sample.nth]) {
                cut[sample.nth].add(sample.time);
            }
        }
        let mut account =
            Account { grain, score: -choice, best: 0, gain: 0.0, bound: f64::INFINITY };
        for (nth, (all, cut)) in all.iter().zip(&cut).enumerate() {
            let whole = Side {
                count: all.count - cut.count,
                sum: all.sum - cut.sum,
                squares: all.squares - cut.squares,
            };
            if whole.count < 2.0 || cut.count < 2.0 {
                continue;
            }
            let within = whole.deviations() + cut.deviations();
            let variance = (within / (all.count - 2.0).max(1.0)).max(RESOLUTION * RESOLUTION);
            let effect = cut.mean() - whole.mean();
            let error = (variance * (1.0 / whole.count + 1.0 / cut.count)).sqrt();
            let length = self.lengths[nth];
            let mut lengths = self.lengths.iter().copied();
            let whole_unit = lengths.find(|&of| of >= grain.size());
            if Some(length) == whole_unit.or_else(|| self.lengths.last().copied()) {
                account.bound = effect + WITHIN * error;
            }
            if effect <= 0.0 {
                continue;
            }
            let blur = all.count * RESOLUTION * RESOLUTION;
            let gain = all.count / 2.0 * ((all.deviations() + blur) / (within + blur)).ln();
            account.score += gain;
            if gain > account.gain {
                (account.gain, account.best) = (gain, nth);
            }
        }
        account
    }
}

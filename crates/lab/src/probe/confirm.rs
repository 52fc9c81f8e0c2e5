//! The confirmation of a grain, on times that were measured for it alone.
//!
//! Requests at places that must cost nothing by the grain, and others that must cost, are made in
//! turn, in random order. Every one of the first kind has to be faster than every one of the
//! second, by a rank sum test each. The places are chosen so that no other grain of a power of two
//! bytes, and no other phase, agrees: half a unit further, or a sector, costs; a unit further does
//! not.

use super::instrument::Instrument;
use crate::error::Error;
use crate::statistics::{median, rank};
use trueline_geom::base::topology::Grain;

/// A grain that new times have confirmed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Confirmed {
    pub(super) grain: Grain,
    /// The length in bytes of the requests that showed it.
    pub(super) length: u64,
    /// The probability that chance alone showed it.
    pub(super) chance: f64,
    /// The time of requests that cut a unit, relative to those that do not.
    pub(super) ratio: f64,
}

/// The result of one confirmation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Judgement {
    Confirmed(Confirmed),
    Refuted,
    /// Time was over before.
    Open,
}

/// Rounds after which the times are tested.
const LOOKS: [usize; 8] = [16, 32, 64, 128, 256, 512, 1024, 2048];
/// The probability of a confirmation by chance, over all looks and pairs.
const CHANCE: f64 = 0.001;
/// The probability above which a pair that should differ is thought not to, where another one
/// differs for certain, or after so many rounds.
const ALIKE: f64 = 0.2;
const PATIENCE: usize = 256;
/// The least ratio of times that is worth a word: 1 %.
const LEAST: f64 = 1.01;

/// The places of one confirmation, in bytes: those that must be cheap, and those that must not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    cheap: Vec<u64>,
    costly: Vec<u64>,
}

impl Places {
    /// The places for requests of `length` bytes. `step`: the distance of two phases that are told
    /// apart, in bytes; `blur`: the distance in bytes that a boundary may be off.
    pub(super) fn new(grain: Grain, length: u64, step: u64, blur: u64) -> Places {
        let unit = grain.size();
        // Two units on, so that nothing is below 0.
        let home = grain.phase() + 2 * unit;
        let (near, far) = (home, home + unit);
        let mut places = Places::default();
        if length >= unit {
            places.cheap.extend([near, far]);
            places.costly.extend([near + unit / 2, near + step, near - step]);
        } else {
            places.cheap.extend([near + blur, near - length - blur, far + blur]);
            if length + 2 * blur <= unit / 2 {
                places.cheap.push(near + unit / 2 - length / 2);
            }
            places.costly.extend([near - length / 2, far - length / 2]);
            if blur == 0 {
                places.costly.extend([near - step, near + step - length]);
            }
        }
        places.costly.sort_unstable();
        places.costly.dedup();
        places
    }
}

/// Measures the places in turn until they agree with the grain, or do not.
pub(super) fn confirm(
    instrument: &mut Instrument<'_>,
    (grain, length): (Grain, u64),
    places: &Places,
    pitch: u64,
) -> Result<Judgement, Error> {
    let all: Vec<u64> = places.cheap.iter().chain(&places.costly).copied().collect();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); all.len()];
    let pairs = places.cheap.len() * places.costly.len();
    #[allow(clippy::cast_precision_loss, reason = "a handful of tests")]
    let tests = (pairs * LOOKS.len()) as f64;
    for rounds in LOOKS {
        while times[0].len() < rounds {
            // In turn, in random order: a drive's state is the same for all of them.
            let more = instrument.batch().min(rounds - times[0].len());
            let mut order: Vec<usize> = Vec::new();
            for _ in 0..more {
                let begin = order.len();
                order.extend(0..all.len());
                shuffle(&mut order[begin..], instrument);
            }
            for part in order.chunks(instrument.batch()) {
                let asks: Vec<(u64, u64)> = part.iter().map(|&nth| (length, all[nth])).collect();
                let Some(found) = instrument.times(&asks, pitch)? else {
                    return Ok(Judgement::Open);
                };
                part.iter().zip(found).for_each(|(&nth, time)| times[nth].push(time));
            }
        }
        let (cheap, costly) = times.split_at(places.cheap.len());
        let chances: Vec<f64> =
            cheap.iter().flat_map(|low| costly.iter().map(|high| slower(low, high))).collect();
        let worst = chances.iter().copied().fold(0.0, f64::max);
        let best = chances.iter().copied().fold(1.0, f64::min);
        if worst * tests <= CHANCE {
            let log = median(&costly.concat()) - median(&cheap.concat());
            let chance = (worst * tests).max(1e-6);
            return Ok(if log.exp() < LEAST {
                Judgement::Refuted
            } else {
                Judgement::Confirmed(Confirmed { grain, length, chance, ratio: log.exp() })
            });
        }
        let is_visible = best * tests <= CHANCE;
        if worst > ALIKE && (is_visible && rounds > LOOKS[0] || rounds >= PATIENCE) {
            break;
        }
    }
    Ok(Judgement::Refuted)
}

/// Puts places in random order.
pub(super) fn shuffle(order: &mut [usize], instrument: &mut Instrument<'_>) {
    for nth in (1..order.len()).rev() {
        let other = instrument.random.below(nth as u64 + 1);
        order.swap(nth, usize::try_from(other).unwrap_or(0));
    }
}

/// The probability that `high` is slower than `low` by chance alone.
pub(super) fn slower(low: &[f64], high: &[f64]) -> f64 {
    let chance = rank::same(low, high) / 2.0;
    if median(high) > median(low) { chance } else { 1.0 - chance }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every other grain disagrees with a place of a confirmation.
    #[test]
    fn no_other_grain_agrees() {
        let sector = 512;
        let grains: Vec<Grain> = (1..=7)
            .flat_map(|bit| {
                let size = sector << bit;
                (0..1u64 << bit).filter_map(move |nth| Grain::new(size, nth * sector))
            })
            .collect();
        for &grain in &grains {
            for length in (1..=8).map(|bit| sector << bit) {
                let places = Places::new(grain, length, sector, 0);
                let agrees = |other: Grain| {
                    places.cheap.iter().all(|&at| !other.cuts(at, length))
                        && places.costly.iter().all(|&at| other.cuts(at, length))
                };
                for &other in &grains {
                    assert_eq!(agrees(other), other == grain, "{grain:?} {other:?} {length}");
                }
            }
        }
    }
}

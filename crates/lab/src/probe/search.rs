//! The search of a field for the grain that explains its times.
//!
//! Lengths and positions are drawn at random first. Later ones are drawn where the best grains so
//! far disagree, or where the best one is seen best. What the search finds is confirmed by new
//! times alone, so that nothing is believed because it was chosen from many.

use super::confirm::{Confirmed, Judgement, Places, confirm};
use super::evidence::{Account, Evidence, Sample};
use super::field::Field;
use super::instrument::{Instrument, Pace};
use crate::error::Error;
use trueline_geom::base::topology::Grain;

/// The outcome of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Found(Confirmed),
    /// No grain costs more than this ratio.
    Nothing(f64),
    /// Time or samples were over.
    Open,
}

/// The limits of a search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Samples before the first look.
    pub(super) first: usize,
    /// Samples after which it gives up.
    pub(super) most: usize,
    /// Samples after which it gives up unless a grain looks likely.
    pub(super) patience: usize,
    /// The logarithm of the ratio below which a grain is thought to cost nothing.
    pub(super) effect: f64,
}

/// The score at which a grain is worth a confirmation, and its lead over the next one, in nats.
const WORTH: f64 = 8.0;
const LEAD: f64 = 2.0;
/// The score at which a grain looks likely, in nats.
const HOPE: f64 = 4.0;
/// The most confirmations of one search.
const TRIES: usize = 8;
/// Grains whose disagreements are measured.
const RIVALS: usize = 8;

/// Searches a field within bounds. Errors: a request that failed.
pub(super) fn search(
    instrument: &mut Instrument<'_>,
    field: &Field,
    step: u64,
    bounds: Bounds,
) -> Result<Outcome, Error> {
    let mut evidence = Evidence::of(field);
    let mut best: Vec<Account> = Vec::new();
    let mut refuted: Vec<(Grain, usize)> = Vec::new();
    let mut goal = bounds.first;
    let mut open: Vec<Grain> = Vec::new();
    loop {
        while evidence.samples.len() < goal {
            let count = instrument.batch().min(goal - evidence.samples.len());
            let chosen: Vec<(usize, u64)> =
                (0..count).map(|_| choose(instrument, field, &best, &open)).collect();
            let asks: Vec<(u64, u64)> =
                chosen.iter().map(|&(nth, position)| (field.lengths[nth], position)).collect();
            let Some(times) = instrument.times(&asks, field.pitch)? else {
                return Ok(Outcome::Open);
            };
            let times = chosen.into_iter().zip(times);
            evidence.samples.extend(times.map(|((nth, position), time)| Sample {
                nth,
                position,
                time,
            }));
        }
        let count = evidence.samples.len();
        let accounts = evidence.accounts(&field.grains);
        refuted.retain(|&(_, at)| count < at + at / 2);
        best = accounts.iter().take(RIVALS).cloned().collect();
        let is_out = |grain: Grain| refuted.iter().any(|&(out, _)| out == grain);
        let mut rivals = accounts.iter().filter(|account| !is_out(account.grain));
        let (first, second) = (rivals.next(), rivals.next());
        let next = second.map_or(0.0, |second| second.score);
        if let Some(first) = first.filter(|first| first.score >= WORTH.max(next + LEAD)) {
            // The drives of a set are as busy as each other if requests are at any two units, and
            // share what is long, so that a cut of it costs nothing.
            let is_mixed = matches!(instrument.pace, Pace::Mixed { .. });
            let best = if is_mixed && field.blur > 0 { 0 } else { first.best };
            let length = field.lengths[best];
            let places = Places::new(first.grain, length, step, field.blur);
            let pitch = if is_mixed { first.grain.size() * 2 } else { field.pitch };
            match confirm(instrument, (first.grain, length), &places, pitch)? {
                Judgement::Confirmed(found) => return Ok(Outcome::Found(found)),
                Judgement::Open => return Ok(Outcome::Open),
                Judgement::Refuted => refuted.push((first.grain, count)),
            }
        }
        let unknown = accounts.iter().filter(|account| account.bound >= bounds.effect);
        open = unknown.map(|account| account.grain).collect();
        // Whole units of the largest are whole ones of some smaller grains, too.
        let largest = open.iter().map(|grain| grain.size()).max().unwrap_or(0);
        open.retain(|grain| grain.size() == largest);
        let bound = accounts.iter().map(|account| account.bound).fold(0.0, f64::max);
        if bound < bounds.effect {
            return Ok(Outcome::Nothing(bound.exp()));
        }
        let is_likely = accounts.first().is_some_and(|first| first.score >= HOPE);
        if count >= bounds.most || refuted.len() >= TRIES || count >= bounds.patience && !is_likely
        {
            return Ok(Outcome::Open);
        }
        goal = (count + count / 4).min(bounds.most);
    }
}

/// The next length, by index, and position. `open` are grains that may still cost something.
fn choose(
    instrument: &mut Instrument<'_>,
    field: &Field,
    best: &[Account],
    open: &[Grain],
) -> (usize, u64) {
    let random = &mut instrument.random;
    let mut index = |count: usize| usize::try_from(random.below(count as u64)).unwrap_or(0);
    let any = index(field.lengths.len());
    let mut position = field.positions[index(field.positions.len())];
    let [first, .., _] = best else { return (any, position) };
    // While nothing looks likely, what cannot be excluded yet is looked at.
    let kinds = if first.score < HOPE && !open.is_empty() { 12 } else { 4 };
    match index(kinds) {
        0 => (any, position),
        1 => (first.best, position),
        2 => {
            let (one, other) = (&best[index(best.len())], &best[index(best.len())]);
            let nth = if index(2) == 0 { one.best } else { other.best };
            let length = field.lengths[nth];
            // As many draws as find a rare place.
            for _ in 0..field.positions.len() {
                if one.grain.cuts(position, length) != other.grain.cuts(position, length) {
                    break;
                }
                position = field.positions[index(field.positions.len())];
            }
            (nth, position)
        }
        _ => {
            // Whole units of a grain: the rare places that would be cheap.
            let Some(&grain) = open.get(index(open.len())) else { return (any, position) };
            let nth = field.lengths.iter().position(|&length| length >= grain.size());
            // Of larger ones the places that cut them are rare.
            let Some(nth) = nth else {
                for _ in 0..field.positions.len() {
                    if grain.cuts(position, field.lengths[any]) {
                        break;
                    }
                    position = field.positions[index(field.positions.len())];
                }
                return (any, position);
            };
            (
                nth,
                grain.next(position).filter(|at| field.positions.contains(at)).unwrap_or(position),
            )
        }
    }
}

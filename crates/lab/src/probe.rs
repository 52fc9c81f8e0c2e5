//! The units of a drive, found by the time that requests take.
//!
//! A drive that works in units reads, before it writes, what a request has of a unit only in part;
//! a request that cuts one unit more than it must takes longer. A probe searches the grain, size
//! and phase, that divides requests into slow and fast ones, and confirms it by new requests, each
//! test with a known chance to be wrong. Nothing is assumed of how long anything takes.
//!
//! 1. Single requests, durable before the next, show what a drive does that has no protected
//!    buffer.
//! 2. Streams of requests that fill the buffer show the others, by their rate.
//! 3. Larger units, of cards, are searched from the found one up, with longer requests.
//!
//! Of a set, several drives that answer at once, the chunks are searched, by reads.
//!
//! # Sources
//! A. Bergmann, flashbench (README, 2011): the time of reads across boundaries. P. Kamp's
//! `phybs` (FreeBSD, `tools/tools/tinybsd`): writes off the sector. Both leave the judgement to the
//! reader.

use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::statistics::{MAD_TO_SIGMA, Summary};
use confirm::Confirmed;
use field::Field;
use instrument::{Instrument, Pace, SHORT, Spread};
use search::{Bounds, Outcome, search};
use trueline_geom::base::topology::{Grain, Why};

mod confirm;
mod evidence;
mod field;
mod instrument;
mod search;
mod sets;

pub use instrument::ProbeProgress;

/// The setup of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSetup {
    /// Writes, which destroy what they hit, or reads.
    pub op: Op,
    /// The time in ns after which it ends.
    pub budget_ns: u64,
    /// The seed of its places and their order.
    pub seed: u64,
    /// The requests in flight of streams; 1: no streams.
    pub depth: usize,
    /// True for a set, several drives that answer at once: its chunks are searched, by reads. The
    /// units of its drives show on each of them alone.
    pub is_set: bool,
}

/// A unit that was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredUnit {
    /// Size and phase in bytes, counted from the start of the target.
    pub grain: Grain,
    /// The purpose of the unit, as its times tell it.
    pub why: Why,
    /// The probability that it is no result of chance.
    pub confidence: f64,
    /// The time of a request that cuts a unit, relative to one that does not.
    pub ratio: f64,
    /// The length in bytes of the requests that showed it.
    pub length: u64,
    /// The bytes by which the phase may be off to either side.
    pub blur: u64,
}

/// The verdict of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProbeVerdict {
    /// A unit was found.
    Found,
    /// No unit up to this many bytes costs more than the ratio.
    Nothing {
        /// The largest size in bytes that was looked for.
        largest: u64,
        /// The most that one could cost.
        ratio: f64,
    },
    /// Single requests take the same time everywhere, and nothing shows that they reach a medium.
    Alike,
    /// Time was over before anything was certain.
    Unsure,
}

/// The report of a probe.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeReport {
    /// The units, the smallest first.
    pub units: Vec<MeasuredUnit>,
    /// The verdict on units of up to [`FINE`] bytes.
    pub verdict: ProbeVerdict,
    /// The largest unit in bytes that the verdict is about.
    pub searched: u64,
    /// The distance in bytes between places that requests could be made at.
    pub step: u64,
    /// The median time in ns of a single request of 4 KiB, durable and not.
    pub single_ns: [u64; 2],
    /// The number of requests made.
    pub requests: u64,
    /// The bytes of these requests.
    pub bytes: u64,
    /// The time in ns that it took.
    pub spent_ns: u64,
    /// True if it was ended before its time.
    pub interrupted: bool,
}

/// The largest unit in bytes that is searched at every sector.
pub const FINE: u64 = 64 << 10;
/// The largest unit in bytes that is searched at all.
pub const COARSE: u64 = 64 << 20;

/// The time in ns of a turn, 15,000 to 4,200 a minute, with what a command adds.
const TURNS: std::ops::Range<u64> = 3_900_000..16_000_000;
/// The time in ns of a turn of the fastest drives, 15,000 a minute.
const FASTEST_TURN: f64 = 4e6;
/// Factor from near to far requests, in time, on drives that collect writes to large units.
const COLLECTS: u64 = 8;

/// A pause in ns in which a drive empties its buffer.
const PAUSE: u64 = 500_000_000;

/// Probes a rig. `watch` is told of the progress, and ends the probe with false. Errors: a request
/// that failed; a target too small for requests of 128 KiB.
pub fn probe(
    rig: &mut dyn Rig,
    setup: ProbeSetup,
    watch: &mut dyn FnMut(ProbeProgress) -> bool,
) -> Result<ProbeReport, Error> {
    let mut instrument = Instrument::new(rig, setup.op, setup.seed, watch);
    if instrument.sector() * 4 > FINE {
        let sector = instrument.sector();
        return Err(Error::new(format!("its sectors of {sector} bytes are too large")));
    }
    if instrument.length() < FINE * 8 {
        let least = FINE * 8;
        let length = instrument.length();
        return Err(Error::new(format!("it has {length} bytes: a probe needs {least}")));
    }
    let budget = setup.budget_ns;
    let mut report = ProbeReport {
        units: Vec::new(),
        verdict: ProbeVerdict::Unsure,
        searched: FINE,
        step: instrument.sector(),
        single_ns: [0; 2],
        requests: 0,
        bytes: 0,
        spent_ns: 0,
        interrupted: false,
    };
    let sector = instrument.sector();
    instrument.until = budget;
    if let Some(first) = Character::of(&mut instrument)? {
        report.single_ns = [first.durable, first.plain];
        if setup.is_set {
            (report.searched, report.verdict) =
                sets::chunks(&mut instrument, setup.depth, &mut report.units)?;
        } else {
            report.verdict = fine(&mut instrument, &setup, first, &mut report.units)?;
        }
        instrument.until = budget;
        let inner = report.units.last().map(|unit| unit.grain);
        let inner = inner.or_else(|| Grain::new(sector, 0));
        if let Some(inner) = inner.filter(|_| instrument.pace == Pace::Single) {
            instrument.spread = Spread::Far;
            // A unit that a drive collects writes to is erased whole; other boundaries are those of
            // chunks on several members, or of a map.
            let why = if first.collects() { Why::Erase } else { Why::Chunk };
            coarse(&mut instrument, inner, why, &mut report.units)?;
        }
    }
    report.spent_ns = instrument.spent();
    report.requests = instrument.requests;
    report.bytes = instrument.bytes;
    report.interrupted = instrument.interrupted;
    Ok(report)
}

/// Median times in ns of single requests of 4 KiB, by which kinds of drives are told apart.
#[derive(Clone, Copy, Debug)]
struct Character {
    durable: u64,
    plain: u64,
    near: u64,
    /// Rewrites of one place.
    again: u64,
    /// The deviation of the logarithm of those: small where they wait for one turn.
    again_spread: f64,
    /// The deviation of the logarithm of durable times: large where a medium turns.
    spread: f64,
}

impl Character {
    /// Measures a drive, durable and plain ones in turn, so that its state is the same for both;
    /// `None` if time is over.
    fn of(instrument: &mut Instrument<'_>) -> Result<Option<Character>, Error> {
        let length = instrument.sector().max(4096);
        let mut times: [Vec<u64>; 4] = Default::default();
        // Near ones by themselves: those in between would end what they collect.
        let far = (0..50).map(|nth| (Spread::Far, nth % 2));
        let near = (0..25).map(|_| (Spread::Near, 2));
        let again = (0..25).map(|_| (Spread::Again, 3));
        for (nth, (spread, kind)) in far.chain(near).chain(again).enumerate() {
            if instrument.is_over() {
                return Ok(None);
            }
            instrument.spread = spread;
            let at = if kind == 3 { 0 } else { instrument.random.below(FINE / length) * length };
            let Some(ns) = instrument.single(length, at, FINE * 4, kind != 1)? else {
                return Ok(None);
            };
            // The first ones may wake the drive up.
            times[kind].extend((nth > 1).then_some(ns));
        }
        #[allow(clippy::cast_precision_loss, reason = "times")]
        let spread_of = |times: &[u64]| {
            let logs: Vec<f64> = times.iter().map(|&ns| (ns.max(1) as f64).ln()).collect();
            Summary::from_values(&logs).map_or(0.0, |all| all.mad * MAD_TO_SIGMA)
        };
        let (spread, again_spread) = (spread_of(&times[0]), spread_of(&times[3]));
        let [durable, plain, near, again] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        Ok(Some(Character { durable, plain, near, again, again_spread, spread }))
    }

    /// True if the drive has a medium that turns: a place that is written again comes round after
    /// one turn, of 15,000 to 4,200 a minute, and other places after any part of one.
    fn turns(self) -> bool {
        TURNS.contains(&self.again)
            && self.again_spread < 0.1
            && self.spread > 0.1
            && self.durable > self.again / 3
    }

    /// The logarithm of the ratio below which a cut is thought to cost nothing. One more turn is
    /// much of a time of milliseconds; a read of flash is little of a program.
    #[allow(clippy::cast_precision_loss, reason = "a time")]
    fn least_effect(self) -> f64 {
        if self.turns() {
            (FASTEST_TURN / self.durable as f64).ln_1p().clamp(0.15, 0.45)
        } else {
            0.03
        }
    }

    /// True if requests far apart take so much longer than near ones that the drive must collect
    /// them to large units.
    fn collects(self) -> bool {
        self.durable > self.near.saturating_mul(COLLECTS)
    }
}

/// Searches units up to [`FINE`].
fn fine(
    instrument: &mut Instrument<'_>,
    setup: &ProbeSetup,
    character: Character,
    units: &mut Vec<MeasuredUnit>,
) -> Result<ProbeVerdict, Error> {
    let sector = instrument.sector();
    let mut field = Field::fine(sector, FINE);
    if character.turns() {
        field = field.of_turns();
    }
    instrument.largest = FINE;
    instrument.spread = Spread::Far;
    if character.collects() {
        instrument.spread = Spread::Near;
    }
    let effect = character.least_effect();
    let depth = setup.depth.min(instrument.depth());
    // Single requests of other media say nothing of a unit that costs a rate alone, nor show that
    // they reach a medium.
    let has_streams = depth > 1 && setup.op == Op::Write && !character.turns();
    instrument.until = setup.budget_ns / if has_streams { 3 } else { 1 };
    let bounds = Bounds { first: 384, most: 50_000, patience: usize::MAX, effect };
    match search(instrument, &field, sector, bounds)? {
        Outcome::Found(found) => {
            add_with_larger(instrument, found, units)?;
            return Ok(ProbeVerdict::Found);
        }
        Outcome::Nothing(ratio) if !has_streams => {
            let is_alike = setup.op == Op::Write && !character.turns();
            let nothing = ProbeVerdict::Nothing { largest: FINE, ratio };
            return Ok(if is_alike { ProbeVerdict::Alike } else { nothing });
        }
        Outcome::Open if !has_streams => return Ok(ProbeVerdict::Unsure),
        Outcome::Nothing(_) | Outcome::Open => {}
    }
    instrument.until = setup.budget_ns;
    let Some(count) = saturate(instrument, depth, SHORT)? else {
        let is_over = instrument.is_over();
        return Ok(if is_over { ProbeVerdict::Unsure } else { ProbeVerdict::Alike });
    };
    let long = saturate(instrument, depth, FINE)?.unwrap_or(count);
    instrument.pace = Pace::Stream { depth, count, long };
    let bounds = Bounds { first: 96, most: 4000, patience: usize::MAX, effect: 0.25 };
    field.lengths.retain(|&length| length <= FINE);
    match search(instrument, &field, sector, bounds)? {
        Outcome::Nothing(ratio) => Ok(ProbeVerdict::Nothing { largest: FINE, ratio }),
        Outcome::Open => Ok(ProbeVerdict::Unsure),
        Outcome::Found(found) => {
            add_with_larger(instrument, found, units)?;
            Ok(ProbeVerdict::Found)
        }
    }
}

/// Bytes of the longest stream that is to fill a buffer.
const MOST_BYTES: u64 = 2 << 30;

/// Requests of `length` bytes in a stream that fill a drive's buffer so that its rate falls to that
/// of the medium, and four times as many: the length of a measurement. `None` if the rate does not
/// fall.
fn saturate(
    instrument: &mut Instrument<'_>,
    depth: usize,
    length: u64,
) -> Result<Option<u64>, Error> {
    let length = length.max(instrument.sector());
    let most = MOST_BYTES / length;
    let mut count = 32;
    instrument.rest(PAUSE);
    let mut fastest = u64::MAX;
    let mut last = 0u64;
    while count <= most {
        let Some(ns) = instrument.pour(length, None, FINE * 4, (depth, count))? else {
            return Ok(None);
        };
        let each = ns.saturating_mul(1000) / count;
        let is_steady = each < last.saturating_mul(11) / 10 && last < each.saturating_mul(11) / 10;
        if is_steady && each > fastest.saturating_mul(3) / 2 {
            return Ok(Some(count));
        }
        fastest = fastest.min(each);
        last = each;
        count *= 2;
    }
    Ok(None)
}

/// Share of the logarithm of a smaller unit's cost that a larger one must cost to be the unit that
/// is read before it is written: less is another boundary, such as one of a cache or of a chunk.
const COMPARABLE: f64 = 0.2;

/// Adds a found unit, and larger ones up to [`FINE`] that hold several of it: a page of flash may
/// show before the unit that the drive maps, and is none then.
fn add_with_larger(
    instrument: &mut Instrument<'_>,
    first: Confirmed,
    units: &mut Vec<MeasuredUnit>,
) -> Result<(), Error> {
    let until = instrument.until;
    let (mut physical, mut other, mut outer) = (first, None, first);
    while outer.grain.size() < FINE {
        let unit = outer.grain.size();
        let field = Field::above(outer.grain, FINE);
        let spent = instrument.spent();
        instrument.until = spent.saturating_add(until.saturating_sub(spent) / 2);
        let bounds = match instrument.pace {
            Pace::Single | Pace::Mixed { .. } => {
                Bounds { first: 256, most: 3000, patience: 512, effect: 0.03 }
            }
            Pace::Stream { .. } => Bounds { first: 64, most: 500, patience: 96, effect: 0.1 },
        };
        let outcome = search(instrument, &field, unit, bounds)?;
        instrument.until = until;
        let Outcome::Found(larger) = outcome else { break };
        outer = larger;
        if larger.ratio.ln() >= physical.ratio.ln() * COMPARABLE {
            (physical, other) = (larger, None);
        } else {
            other = Some(larger);
        }
    }
    // What a read pays for is no read before a write.
    let why = if instrument.op == Op::Write { Why::Physical } else { Why::Chunk };
    units.push(MeasuredUnit::exact(physical, why));
    units.extend(other.map(|other| MeasuredUnit::exact(other, Why::Chunk)));
    Ok(())
}

impl MeasuredUnit {
    /// A unit whose phase is exact.
    fn exact(found: Confirmed, why: Why) -> MeasuredUnit {
        let Confirmed { grain, length, chance, ratio } = found;
        MeasuredUnit { grain, why, confidence: 1.0 - chance, ratio, length, blur: 0 }
    }
}

/// Searches units above [`FINE`], from a boundary of `inner` on.
fn coarse(
    instrument: &mut Instrument<'_>,
    inner: Grain,
    why: Why,
    units: &mut Vec<MeasuredUnit>,
) -> Result<(), Error> {
    let largest = instrument.length() / 16;
    let largest = field::doublings(FINE * 2, COARSE.min(largest)).last().copied();
    let Some(largest) = largest else { return Ok(()) };
    instrument.largest = largest;
    let field = Field::coarse(inner, FINE, largest);
    let bounds = Bounds { first: 64, most: 1000, patience: 256, effect: 0.0 };
    let Outcome::Found(rough) = search(instrument, &field, FINE, bounds)? else { return Ok(()) };
    units.push(pinned(instrument, &field, rough, why)?);
    Ok(())
}

/// The unit at the exact phase of a grain that a coarse field has shown, or within what its
/// positions tell apart.
fn pinned(
    instrument: &mut Instrument<'_>,
    field: &Field,
    rough: Confirmed,
    why: Why,
) -> Result<MeasuredUnit, Error> {
    // Its cell and those beside it: a request that reaches into the next unit by a little costs
    // little at once.
    let blur = (field.blur * 3).min(rough.grain.size() / 4);
    let near = Field::around(rough.grain, blur, instrument.sector());
    let bounds = match instrument.pace {
        Pace::Mixed { .. } => Bounds { first: 512, most: 50_000, patience: 50_000, effect: 0.0 },
        _ => Bounds { first: 64, most: 1000, patience: 1000, effect: 0.0 },
    };
    let exact = match search(instrument, &near, instrument.sector(), bounds)? {
        Outcome::Found(found) => Some(found),
        _ => None,
    };
    let found = exact.unwrap_or(rough);
    Ok(MeasuredUnit {
        grain: found.grain,
        why,
        confidence: 1.0 - found.chance,
        ratio: rough.ratio,
        length: rough.length,
        blur: if exact.is_some() { 0 } else { blur },
    })
}

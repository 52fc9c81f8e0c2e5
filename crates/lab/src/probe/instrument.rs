//! The instrument: one request, or a stream of them, at a place, and the time that it took.

use crate::error::Error;
use crate::rig::{FinishedRequest, Op, Request, Rig};
use crate::streams::{self, Ask, Limit};
use trueline_geom::base::error::Errno;
use trueline_sim::random::Random;

/// The pace of requests whose time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// One request at a time, durable before the next: its latency.
    Single,
    /// A stream of as many requests at a time: the time between two, once the drive's buffer is
    /// full.
    Stream {
        /// The requests in flight.
        depth: usize,
        /// The requests of one measurement, of up to 4 KiB each. The first half fills the buffer.
        count: u64,
        /// The least requests of one measurement of longer ones, which fill it sooner.
        long: u64,
    },
    /// Many requests at a time, at places of all kinds: the latency of each. The drives of a set
    /// are busy alike then, and a request that cuts a chunk waits for the slower of two.
    Mixed {
        /// The requests in flight.
        depth: usize,
    },
}

/// The way in which requests are spread over the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spread {
    /// Any place at random.
    Far,
    /// The next place behind the last one, for drives that collect writes to a few large units.
    Near,
    /// One place again and again.
    Again,
}

/// The progress of a probe, for a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeProgress {
    /// The time in ns since the probe began.
    pub spent_ns: u64,
    /// The requests so far.
    pub requests: u64,
    /// The largest unit in bytes that is looked for now.
    pub largest: u64,
}

/// A measuring rig: it knows where to ask, how, and until when.
pub(super) struct Instrument<'a> {
    rig: &'a mut dyn Rig,
    watch: &'a mut dyn FnMut(ProbeProgress) -> bool,
    pub(super) random: Random,
    pub(super) op: Op,
    pub(super) pace: Pace,
    pub(super) spread: Spread,
    /// The largest unit that is looked for, for the display.
    pub(super) largest: u64,
    began: u64,
    /// The time in ns, since `began`, at which nothing more is asked.
    pub(super) until: u64,
    slot: u64,
    pub(super) requests: u64,
    pub(super) bytes: u64,
    pub(super) interrupted: bool,
    done: Vec<FinishedRequest>,
}

/// The bytes of a target that requests are spread over: far enough apart for caches, near enough
/// for an arm.
const WINDOW: u64 = 8 << 30;

/// The length in bytes of requests by which a buffer's size is found.
pub(super) const SHORT: u64 = 4096;
/// The time in ns of a part of a stream, between two looks at the clock, and the most requests of
/// one.
const PART: u64 = 50_000_000;
const LOOK: u64 = 4096;

/// The logarithm of a time.
#[allow(clippy::cast_precision_loss, reason = "a time")]
fn logarithm(ns: u64) -> f64 {
    (ns.max(1) as f64).ln()
}

/// The name of an operation.
fn attempt(op: Op) -> &'static str {
    if op == Op::Read { "read" } else { "write" }
}

/// The error of a request at a place of the target, in bytes.
fn failed(op: Op, offset: u64, errno: Errno) -> Error {
    Error::io(attempt(op), offset, errno)
}

impl<'a> Instrument<'a> {
    /// An instrument on `rig`. `watch` is told of the progress, and ends the probe with false.
    pub(super) fn new(
        rig: &'a mut dyn Rig,
        op: Op,
        seed: u64,
        watch: &'a mut dyn FnMut(ProbeProgress) -> bool,
    ) -> Instrument<'a> {
        let began = rig.now();
        Instrument {
            rig,
            watch,
            random: Random::new(seed),
            op,
            pace: Pace::Single,
            spread: Spread::Far,
            largest: 0,
            began,
            until: u64::MAX,
            slot: 0,
            requests: 0,
            bytes: 0,
            interrupted: false,
            done: Vec::new(),
        }
    }

    /// The length of the target in bytes.
    pub(super) fn length(&self) -> u64 {
        self.rig.length()
    }

    /// The smallest unit of a request in bytes.
    pub(super) fn sector(&self) -> u64 {
        self.rig.sector().max(1)
    }

    /// The most requests in flight.
    pub(super) fn depth(&self) -> usize {
        self.rig.depth()
    }

    /// The time in ns since the probe began.
    pub(super) fn spent(&mut self) -> u64 {
        self.rig.now().saturating_sub(self.began)
    }

    /// True if time is over, or the display has ended the probe.
    pub(super) fn is_over(&mut self) -> bool {
        let spent_ns = self.spent();
        let (requests, largest) = (self.requests, self.largest);
        self.interrupted |= !(self.watch)(ProbeProgress { spent_ns, requests, largest });
        self.interrupted || spent_ns >= self.until
    }

    /// Asks nothing for `ns` nanoseconds.
    pub(super) fn rest(&mut self, ns: u64) {
        self.rig.rest(ns);
    }

    /// A multiple of `pitch` at which a request that ends `reach` bytes further lies inside of the
    /// target; `None` if it has no room.
    fn base(&mut self, pitch: u64, reach: u64) -> Option<u64> {
        let room = self.rig.length().checked_sub(reach)?.checked_div(pitch)?;
        let slots = (room + 1).min(WINDOW / pitch).max(1);
        self.slot = match self.spread {
            Spread::Far => self.random.below(slots),
            Spread::Near if self.slot + 1 < slots => self.slot + 1,
            Spread::Near | Spread::Again => 0,
        };
        Some(self.slot * pitch)
    }

    /// The most measurements that are asked for at once: where requests are not mixed, what comes
    /// of one may change the next.
    pub(super) fn batch(&self) -> usize {
        if matches!(self.pace, Pace::Mixed { .. }) { usize::MAX } else { 1 }
    }

    /// The logarithms of the times in ns that requests take, each of a length in bytes, and as many
    /// bytes past a multiple of `pitch`; `None` if time is over, or the target is too small. An
    /// error of a request names its place.
    pub(super) fn times(
        &mut self,
        asks: &[(u64, u64)],
        pitch: u64,
    ) -> Result<Option<Vec<f64>>, Error> {
        if let Pace::Mixed { depth } = self.pace {
            let times = self.mixed(asks, pitch, depth)?;
            return Ok(times.map(|times| times.into_iter().map(logarithm).collect()));
        }
        asks.iter().map(|&(length, position)| self.time(length, position, pitch)).collect()
    }

    fn time(&mut self, length: u64, position: u64, pitch: u64) -> Result<Option<f64>, Error> {
        if self.is_over() {
            return Ok(None);
        }
        let ns = match self.pace {
            Pace::Single | Pace::Mixed { .. } => {
                self.single(length, position, pitch, self.op == Op::Write)?
            }
            Pace::Stream { depth, count, long } => {
                let of_bytes = count.saturating_mul(SHORT) / length.max(SHORT);
                let count = of_bytes.max(long).min(count);
                self.stream(length, position, pitch, depth, count)?
            }
        };
        Ok(ns.map(logarithm))
    }

    /// The times in ns of requests of which `depth` are in flight; `None` if time is over.
    fn mixed(
        &mut self,
        asks: &[(u64, u64)],
        pitch: u64,
        depth: usize,
    ) -> Result<Option<Vec<u64>>, Error> {
        let depth = depth.min(self.depth()).max(1);
        let (op, mut sent, mut answered, mut is_over) = (self.op, 0, 0, false);
        // Times of requests: at first those at which they were sent; and their places.
        let mut times: Vec<u64> = Vec::with_capacity(asks.len());
        let mut places: Vec<u64> = Vec::with_capacity(asks.len());
        let mut done = Vec::with_capacity(depth);
        while answered < sent || sent < asks.len() && !is_over {
            while sent < asks.len() && sent - answered < depth && !is_over {
                let (length, position) = asks[sent];
                let base = self.base(pitch, position + length);
                let Some(base) = base.filter(|_| !self.is_over()) else {
                    is_over = true;
                    break;
                };
                let offset = base + position;
                times.push(self.rig.now());
                places.push(offset);
                let request = Request { tag: sent as u64, op, offset, length, fua: false };
                self.rig.push(request).map_err(|errno| failed(op, offset, errno))?;
                self.requests += 1;
                self.bytes = self.bytes.saturating_add(length);
                sent += 1;
            }
            self.rig.wait(1, &mut done).map_err(|errno| failed(op, 0, errno))?;
            if done.is_empty() && answered < sent {
                return Err(Error::new(format!(
                    "{} requests were never answered",
                    sent - answered
                )));
            }
            for FinishedRequest { tag, at, error } in done.drain(..) {
                let nth = usize::try_from(tag).unwrap_or(usize::MAX);
                if let Some(errno) = error {
                    return Err(failed(op, places.get(nth).copied().unwrap_or(0), errno));
                }
                if let Some(since) = times.get_mut(nth) {
                    *since = at.saturating_sub(*since);
                }
                answered += 1;
            }
        }
        Ok((!is_over).then_some(times))
    }

    /// The time in ns of one request; `durable`: a write is on the medium by then.
    pub(super) fn single(
        &mut self,
        length: u64,
        position: u64,
        pitch: u64,
        durable: bool,
    ) -> Result<Option<u64>, Error> {
        let Some(base) = self.base(pitch, position + length) else { return Ok(None) };
        let (op, offset) = (self.op, base + position);
        let failed = |errno| failed(op, offset, errno);
        let since = self.rig.now();
        let request = Request { tag: 0, op, offset, length, fua: durable };
        self.rig.push(request).map_err(failed)?;
        self.done.clear();
        self.rig.wait(1, &mut self.done).map_err(failed)?;
        let Some(&FinishedRequest { at, error, .. }) = self.done.first() else {
            return Err(Error::new(format!("{} at {offset}: it was never answered", attempt(op))));
        };
        if let Some(errno) = error {
            return Err(failed(errno));
        }
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(length);
        Ok(Some(at.saturating_sub(since)))
    }

    /// Picoseconds between two requests of the second half of a stream, so that fast drives are
    /// told apart.
    fn stream(
        &mut self,
        length: u64,
        position: u64,
        pitch: u64,
        depth: usize,
        count: u64,
    ) -> Result<Option<u64>, Error> {
        if self.pour(length, Some(position), pitch, (depth, count / 2))?.is_none() {
            return Ok(None);
        }
        let ns = self.pour(length, Some(position), pitch, (depth, count.div_ceil(2)))?;
        Ok(ns.map(|ns| ns.saturating_mul(1000) / count.div_ceil(2).max(1)))
    }

    /// The time in ns of `count` requests with `depth` in flight, at one position or, without one,
    /// at any sector; `None` if time is over.
    pub(super) fn pour(
        &mut self,
        length: u64,
        position: Option<u64>,
        pitch: u64,
        (depth, count): (usize, u64),
    ) -> Result<Option<u64>, Error> {
        let (mut left, mut ns) = (count, 0u64);
        let mut look = 2 * depth as u64;
        let (op, sector) = (self.op, self.sector());
        while left > 0 {
            if self.is_over() {
                return Ok(None);
            }
            let part = left.min(look);
            let mut asks = Vec::new();
            for _ in 0..part {
                let reach = position.unwrap_or(pitch) + length;
                let Some(base) = self.base(pitch, reach) else { return Ok(None) };
                let at = position.unwrap_or_else(|| self.random.below(pitch / sector) * sector);
                asks.push(Ask { op, offset: base + at, length, fua: false });
            }
            let mut next = asks.into_iter();
            let run = streams::run(self.rig, depth, Limit::Source, &mut |_: usize| next.next())?;
            if let Some(error) = run.first_error {
                return Err(Error::new(error));
            }
            ns = ns.saturating_add(run.ns);
            self.requests += part;
            self.bytes = self.bytes.saturating_add(part.saturating_mul(length));
            left -= part;
            if run.ns < PART {
                look = (look * 2).min(LOOK);
            }
        }
        Ok(Some(ns))
    }
}

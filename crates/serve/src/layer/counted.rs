//! A store that counts what is done to it, and how it lies on the grains beneath.
//!
//! A request is counted when it is done. To judge it touches more than a dozen lines of memory, which the bytes of requests push out of
//! the nearest cache; so a thread that has a log to itself only notes it there, and judges many in one go when the log is full. Whoever asks
//! for the counts has all judged first. The numbers are in shards, one for each log, and only where something was counted.
//!
//! Nothing waits for a note: an atomic addition would wait until everything before it is in the cache, the bytes of the request among it.
//! Threads that come when all logs are taken share a shard, judge each request and add atomically.
//!
//! What is watched may change: requests are then counted in a further generation. A layer that is in both goes on where it was. What was
//! noted until a flush is judged at the flush, by what was there before it.

mod latency;
mod log;

pub use latency::Waits;

use crate::export::RefusalLog;
use crate::generations::Generations;
use crate::retaste::trigger::RetasteTrigger;
use latency::Latency;
use log::Log;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use trueline_geom::audit::io::{IoAudit, IoKind, Layer, Medium, SLOTS, Tally};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Run, Store};
use trueline_geom::graph::Id;
use trueline_host::clock;

/// Logs, each with its set of numbers, that a thread has to itself.
const OWN: usize = 16;
/// Those, and one for all other threads.
const SHARDS: usize = OWN + 1;

/// The place of flushes among latencies.
const FLUSH: usize = IoKind::ALL.len();

/// The numbers of one layer on one disk, of some threads.
type Shard = OnceLock<Box<[AtomicU64]>>;

/// The numbers of one layer on one disk.
type Cell = [Shard; SHARDS];

/// What requests are counted by until something else is found there.
struct Generation {
    watch: IoAudit,
    /// Of every cell of the watch.
    cells: Box<[Arc<Cell>]>,
    /// Cells that are in no generation before.
    own: Vec<usize>,
}

/// What is counted of one provider.
pub struct Counters {
    generations: Generations<Generation>,
    /// What no generation has counted yet.
    logs: [Log; OWN],
    /// Where a write makes it necessary to look again what is there.
    tasted: Arc<RetasteTrigger>,
    /// Requests that wait for a device.
    waiting: AtomicU64,
    most_waiting: AtomicU64,
    /// Of requests that waited for a device, in the order of [`IoKind::ALL`], then of flushes.
    latencies: [Latency; IoKind::ALL.len() + 1],
    flushes: AtomicU64,
    failed: [AtomicU64; IoKind::ALL.len()],
    failed_flushes: AtomicU64,
}

/// What was counted until some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Layers on disks of which there is anything, those first that were there first.
    pub cells: Vec<(Place, Tally)>,
    /// Requests that waited for a device at one time, at most. What is answered from memory does not wait.
    pub most_waiting: u64,
    /// Flushes.
    pub flushes: u64,
    /// Requests that failed or were refused, in the order of [`IoKind::ALL`]; they are counted nowhere else.
    pub failed: [u64; IoKind::ALL.len()],
    /// Flushes that failed.
    pub failed_flushes: u64,
    /// Latencies of requests that waited for a device, in the order of [`IoKind::ALL`], then of flushes. What is answered from memory has
    /// none.
    pub latencies: [Waits; IoKind::ALL.len() + 1],
}

/// A layer on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The layer.
    pub layer: Layer,
    /// On which of [`Layer::blamed`] the disk is.
    pub nth: usize,
    /// The disk.
    pub medium: Medium,
}

impl Generation {
    /// For what `watch` judges, after `before`.
    fn new<'a>(watch: IoAudit, before: impl Iterator<Item = &'a Generation>) -> Generation {
        let mut known = BTreeMap::new();
        for generation in before {
            known.extend(generation.own.iter().map(|&cell| (generation.key(cell), generation.cells[cell].clone())));
        }
        let mut generation = Generation { watch, cells: Box::new([]), own: Vec::new() };
        let (mut cells, count) = (Vec::new(), generation.watch.cells());
        for cell in 0..count {
            let same = known.get(&generation.key(cell)).cloned();
            generation.own.extend(same.is_none().then_some(cell));
            cells.push(same.unwrap_or_else(|| Arc::new([const { Shard::new() }; SHARDS])));
        }
        Generation { cells: cells.into(), ..generation }
    }

    /// Provider and store.
    fn key(&self, cell: usize) -> (Id, usize) {
        let (layer, medium) = self.watch.cell(cell);
        (self.watch.layers()[layer].provider, self.watch.media()[medium].store)
    }

    fn place(&self, cell: usize) -> Place {
        let (layer, nth) = self.watch.cell(cell);
        Place { layer: self.watch.layers()[layer].clone(), nth, medium: self.watch.media()[nth].clone() }
    }

    /// What was counted in its own cells.
    fn counts(&self) -> impl Iterator<Item = (Place, Tally)> {
        self.own.iter().filter_map(|&cell| {
            let mut counted = self.cells[cell].iter().filter_map(OnceLock::get).peekable();
            counted.peek()?;
            let mut tally = Tally::default();
            for numbers in counted {
                numbers.iter().enumerate().for_each(|(slot, number)| tally.put(slot, number.load(Ordering::Relaxed)));
            }
            Some((self.place(cell), tally))
        })
    }
}

impl Counters {
    /// For what `watch` judges; `tasted` is told of writes.
    pub fn new(watch: IoAudit, tasted: Arc<RetasteTrigger>) -> Counters {
        let zero = AtomicU64::default;
        Counters {
            generations: Generations::new(Generation::new(watch, std::iter::empty())),
            logs: Default::default(),
            tasted,
            waiting: zero(),
            most_waiting: zero(),
            latencies: Default::default(),
            flushes: zero(),
            failed: Default::default(),
            failed_flushes: zero(),
        }
    }

    /// What judges the requests now.
    pub fn watch(&self) -> &IoAudit {
        &self.generations.get().watch
    }

    /// Whether something else may judge them from now on.
    pub fn has_room(&self) -> bool {
        self.generations.room() > 0
    }

    /// From now on `watch` judges the requests. Its layers are those of the watches before that have their numbers and their disk. `false`,
    /// and nothing is done, where there have been too many. One thread at a time.
    pub fn follow(&self, watch: IoAudit) -> bool {
        self.generations.put(Generation::new(watch, self.generations.iter()))
    }

    /// What was counted so far.
    pub fn counts(&self) -> Counts {
        self.settle_all();
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counts {
            cells: self.generations.iter().flat_map(Generation::counts).collect(),
            most_waiting: of(&self.most_waiting),
            flushes: of(&self.flushes),
            failed: [0, 1, 2, 3].map(|deed| of(&self.failed[deed])),
            failed_flushes: of(&self.failed_flushes),
            latencies: [0, 1, 2, 3, 4].map(|kind: usize| self.latencies[kind].waits()),
        }
    }

    /// Latencies so far of requests of a kind that waited for a device.
    pub fn waits_of(&self, deed: IoKind) -> Waits {
        self.latencies[deed as usize].waits()
    }

    fn count(&self, deed: IoKind, offset: u64, length: usize) {
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        let seat = SEAT.try_with(|seat| seat.0).unwrap_or(OWN);
        match self.logs.get(seat) {
            Some(log) if log.note(deed, offset, length) => {}
            Some(_) => self.settle(seat),
            None => self.judge(OWN, deed, offset, length),
        }
    }

    /// Judges what is in the logs.
    pub fn settle_all(&self) {
        (0..OWN).for_each(|seat| self.settle(seat));
    }

    /// Judges what is in a log.
    #[inline(never)]
    fn settle(&self, seat: usize) {
        self.logs[seat].take(|deed, offset, length| self.judge(seat, deed, offset, length));
    }

    /// Adds a request to a shard.
    fn judge(&self, shard: usize, deed: IoKind, offset: u64, length: u64) {
        let generation = self.generations.get();
        generation.watch.judge(deed, offset, length, &mut |cell, seen| {
            if let (true, Some(mark)) = (deed != IoKind::Read, seen.piece) {
                self.tasted.wrote(mark.store, mark.offset, mark.length);
            }
            let numbers = generation.cells[cell][shard].get_or_init(|| (0..SLOTS).map(|_| AtomicU64::default()).collect());
            seen.each(|slot, by| {
                let number = &numbers[slot];
                if shard < OWN {
                    // Nobody else adds: what is in a log is taken out by one at a time.
                    number.store(number.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
                } else {
                    number.fetch_add(by, Ordering::Relaxed);
                }
            });
        });
    }

    /// Counts a request that is done, or has failed.
    fn done(&self, deed: IoKind, offset: u64, length: usize, done: Result<(), Errno>) -> Result<(), Errno> {
        match done {
            Ok(()) => self.count(deed, offset, length),
            Err(_) => {
                // How much of it was done is not known.
                if deed != IoKind::Read {
                    self.tasted.stale();
                }
                self.fail(deed);
            }
        }
        done
    }

    fn fail(&self, deed: IoKind) {
        let nth = IoKind::ALL.into_iter().position(|other| other == deed).unwrap_or(0);
        self.failed[nth].fetch_add(1, Ordering::Relaxed);
    }

    /// Runs what may wait for a device; `kind` as in [`Counts::latencies`].
    fn waits<T>(&self, kind: usize, wait: impl FnOnce() -> T) -> T {
        let now = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        // Most of the time it is not the most, and a read shares what a write would not.
        if self.most_waiting.load(Ordering::Relaxed) < now {
            self.most_waiting.fetch_max(now, Ordering::Relaxed);
        }
        let begin = clock::now();
        let done = wait();
        self.latencies[kind].add(clock::now().saturating_sub(begin));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        done
    }
}

impl RefusalLog for Counters {
    fn refused(&self, deed: IoKind, _: u64, _: u64) {
        self.fail(deed);
    }
}

/// Seats that are taken, a bit each.
static TAKEN: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static SEAT: Seat = Seat::take();
}

/// The log that a thread notes in, its own until it ends; or [`OWN`], the shard for all others.
struct Seat(usize);

impl Seat {
    fn take() -> Seat {
        // Whoever takes a seat sees what the one before him has noted.
        let free = |taken: u32| (0..OWN).find(|&seat| taken >> seat & 1 == 0);
        let taken = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| free(taken).map(|seat| taken | 1 << seat));
        Seat(taken.ok().and_then(free).unwrap_or(OWN))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.0 < OWN {
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

/// A store that counts.
pub struct Counted {
    below: Arc<dyn Store>,
    counters: Arc<Counters>,
    /// Writes are done at once.
    at_once: bool,
    /// Called after a flush when what was tasted has been written, or is being tasted again.
    settled: Box<Settled>,
}

/// What is called when there may be something else to watch.
pub type Settled = dyn Fn() + Send + Sync;

impl Counted {
    /// Over `below`, which is what `counters` watch. `settled` is called by whoever flushes after somebody has written where tasting had
    /// looked, before he is told that it is done: what he does next is counted by what is there then.
    pub fn new(below: Arc<dyn Store>, counters: Arc<Counters>, settled: Box<Settled>) -> Counted {
        Counted { at_once: below.writes_now(), below, counters, settled }
    }

    fn settle(&self) {
        self.counters.settle_all();
        if self.counters.tasted.is_unsettled() {
            (self.settled)();
        }
    }

    /// A request of which a range of `length` bytes is known.
    fn ranged(&self, deed: IoKind, offset: u64, length: u64, run: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        let done = self.counters.waits(deed as usize, run);
        self.counters.done(deed, offset, usize::try_from(length).unwrap_or(usize::MAX), done)
    }
}

impl Store for Counted {
    fn length(&self) -> u64 {
        self.below.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let done = self.counters.waits(IoKind::Read as usize, || self.below.read_at(buffer, offset));
        self.counters.done(IoKind::Read, offset, buffer.len(), done)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let write = || self.below.write_at(bytes, offset);
        let done = if self.at_once { write() } else { self.counters.waits(IoKind::Write as usize, write) };
        self.counters.done(IoKind::Write, offset, bytes.len(), done)
    }

    fn zero(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.ranged(IoKind::Zero, offset, length, || self.below.zero(offset, length))
    }

    fn hasten(&self, offset: u64, length: u64) {
        self.below.hasten(offset, length);
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.below.prefetch(offset, length);
    }

    fn flush(&self) -> Result<(), Errno> {
        let done = self.counters.waits(FLUSH, || self.below.flush());
        let counter = if done.is_ok() { &self.counters.flushes } else { &self.counters.failed_flushes };
        counter.fetch_add(1, Ordering::Relaxed);
        self.settle();
        done
    }

    fn read_now(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let done = self.below.read_now(buffer, offset);
        match done {
            // Whoever must wait asks again, and is counted then.
            Ok(false) => {}
            Ok(true) => self.counters.count(IoKind::Read, offset, buffer.len()),
            Err(errno) => self.counters.done(IoKind::Read, offset, buffer.len(), Err(errno))?,
        }
        done
    }

    fn writes_now(&self) -> bool {
        self.at_once
    }

    fn never_waits(&self) -> bool {
        self.below.never_waits()
    }

    fn lend(&self, offset: u64, length: u64) -> Option<&[AtomicU8]> {
        let lent = self.below.lend(offset, length)?;
        self.counters.count(IoKind::Read, offset, lent.len());
        Some(lent)
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        let done = self.counters.waits(IoKind::Write as usize, || self.below.write_through(bytes, offset));
        let done = self.counters.done(IoKind::Write, offset, bytes.len(), done);
        self.settle();
        done
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.ranged(IoKind::Trim, offset, length, || self.below.discard(offset, length))
    }

    fn zero_fast(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        match self.counters.waits(IoKind::Zero as usize, || self.below.zero_fast(offset, length, keep)) {
            // Not a failure: whoever asks writes zeros instead, or is told at once.
            Err(Errno::Unsupported) => Err(Errno::Unsupported),
            done => self.counters.done(IoKind::Zero, offset, usize::try_from(length).unwrap_or(usize::MAX), done),
        }
    }

    fn run(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.below.run(offset, length)
    }

    fn unit(&self) -> u64 {
        self.below.unit()
    }

    fn depth(&self) -> usize {
        self.below.depth()
    }
}

#[cfg(test)]
mod tests;

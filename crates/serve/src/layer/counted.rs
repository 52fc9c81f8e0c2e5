//! A store that counts requests, and their alignment to the grains beneath.
//!
//! A request is counted when it is done. Judging it touches more than a dozen cache lines, which
//! the requests' own bytes evict from the nearest cache; so a thread with a log of its own only
//! notes the request there, and judges many at once when the log is full. A query of the counts
//! judges all first. The counters are in shards, one for each log, allocated on first use.
//!
//! A note waits for nothing: an atomic addition would wait until all earlier stores are in the
//! cache, including the request's bytes. Threads without a log share a shard, judge each request at
//! once, and add atomically.
//!
//! The graph under watch may change; requests are then counted in a further generation. A layer in
//! both generations continues its counters. Requests noted before a flush are judged at the flush,
//! by the graph before it.

mod latency;
mod log;

pub use latency::Waits;

use crate::export::RefusalLog;
use crate::generations::Generations;
use crate::retaste::trigger::RetasteTrigger;
use latency::Latency;
use log::Log;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use trueline_geom::audit::io::{IoAudit, IoKind, Layer, Medium, SLOTS, Tally};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{Action, Filter, Request};
use trueline_geom::base::store::{Properties, Store};
use trueline_geom::graph::Id;
use trueline_host::clock;

/// The number of logs, each with its shard, that a thread can have to itself.
const OWN: usize = 16;
/// The number of shards: one for each log, and one for all other threads.
const SHARDS: usize = OWN + 1;

/// The index of flushes among latencies.
const FLUSH: usize = IoKind::ALL.len();

/// The counters of one layer on one disk, from some threads.
type Shard = OnceLock<Box<[AtomicU64]>>;

/// The counters of one layer on one disk, from all threads.
type Cell = [Shard; SHARDS];

/// The watch of requests for one state of the graph.
struct Generation {
    watch: IoAudit,
    /// The cells of the watch, by index.
    cells: Box<[Arc<Cell>]>,
    /// Indices of cells that are in no earlier generation.
    own: Vec<usize>,
}

/// The counters of one provider.
pub struct Counters {
    generations: Generations<Generation>,
    /// The requests that no generation has counted yet.
    logs: [Log; OWN],
    /// The trigger that a write may fire, so that the disk is tasted again.
    tasted: Arc<RetasteTrigger>,
    /// Requests that are waiting for a device.
    waiting: AtomicU64,
    most_waiting: AtomicU64,
    /// Latencies of requests that waited for a device, in the order of [`IoKind::ALL`], then of
    /// flushes.
    latencies: [Latency; IoKind::ALL.len() + 1],
    flushes: AtomicU64,
    failed: [AtomicU64; IoKind::ALL.len()],
    failed_flushes: AtomicU64,
}

/// The counts up to some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Counts of layers on disks, if there are any, in the order of the layers' appearance.
    pub cells: Vec<(LayerOnDisk, Tally)>,
    /// The most requests that waited for a device at one time. Requests answered from memory do not
    /// wait.
    pub most_waiting: u64,
    /// The number of flushes.
    pub flushes: u64,
    /// Requests that failed or were refused, in the order of [`IoKind::ALL`]; they are counted
    /// nowhere else.
    pub failed: [u64; IoKind::ALL.len()],
    /// The number of failed flushes.
    pub failed_flushes: u64,
    /// Latencies of requests that waited for a device, in the order of [`IoKind::ALL`], then of
    /// flushes. Requests answered from memory have none.
    pub latencies: [Waits; IoKind::ALL.len() + 1],
}

/// A layer on a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerOnDisk {
    /// The layer of the graph.
    pub layer: Layer,
    /// The index of the disk among [`Layer::blamed`].
    pub nth: usize,
    /// The disk beneath the layer.
    pub medium: Medium,
}

impl Generation {
    /// The generation of `watch`, which continues counters of those `before`.
    fn new<'a>(watch: IoAudit, before: impl Iterator<Item = &'a Generation>) -> Generation {
        let mut known = BTreeMap::new();
        for generation in before {
            known.extend(
                generation
                    .own
                    .iter()
                    .map(|&cell| (generation.key(cell), generation.cells[cell].clone())),
            );
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

    /// The provider and the store of a cell, which identify it across generations.
    fn key(&self, cell: usize) -> (Id, usize) {
        let (layer, medium) = self.watch.cell(cell);
        (self.watch.layers()[layer].provider, self.watch.media()[medium].store)
    }

    fn place(&self, cell: usize) -> LayerOnDisk {
        let (layer, nth) = self.watch.cell(cell);
        LayerOnDisk {
            layer: self.watch.layers()[layer].clone(),
            nth,
            medium: self.watch.media()[nth].clone(),
        }
    }

    /// The counts of its own cells.
    fn counts(&self) -> impl Iterator<Item = (LayerOnDisk, Tally)> {
        self.own.iter().filter_map(|&cell| {
            let mut counted = self.cells[cell].iter().filter_map(OnceLock::get).peekable();
            counted.peek()?;
            let mut tally = Tally::default();
            for numbers in counted {
                numbers
                    .iter()
                    .enumerate()
                    .for_each(|(slot, number)| tally.put(slot, number.load(Ordering::Relaxed)));
            }
            Some((self.place(cell), tally))
        })
    }
}

impl Counters {
    /// Counters for `watch`; `tasted` is told of writes.
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

    /// The current watch of requests.
    pub fn watch(&self) -> &IoAudit {
        &self.generations.get().watch
    }

    /// True if the watch can still be replaced.
    pub fn has_room(&self) -> bool {
        self.generations.room() > 0
    }

    /// Makes `watch` judge the requests from now on. Layers with a known provider on a known disk
    /// continue their counters. False, without an effect, after too many replacements. One thread
    /// at a time may call it.
    pub fn follow(&self, watch: IoAudit) -> bool {
        self.generations.put(Generation::new(watch, self.generations.iter()))
    }

    /// The counts so far.
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

    fn count(&self, deed: IoKind, offset: u64, length: u64) {
        let seat = LOG_SLOT.try_with(|seat| seat.0).unwrap_or(OWN);
        match self.logs.get(seat) {
            Some(log) if log.note(deed, offset, length) => {}
            Some(_) => self.settle(seat),
            None => self.judge(OWN, deed, offset, length),
        }
    }

    /// Judges the requests in all logs.
    pub fn settle_all(&self) {
        (0..OWN).for_each(|seat| self.settle(seat));
    }

    /// Judges the requests in a log.
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
            let numbers = generation.cells[cell][shard]
                .get_or_init(|| (0..SLOTS).map(|_| AtomicU64::default()).collect());
            seen.visit_counts(|slot, by| {
                let number = &numbers[slot];
                if shard < OWN {
                    // There is no other writer: one thread at a time empties a log.
                    number
                        .store(number.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
                } else {
                    number.fetch_add(by, Ordering::Relaxed);
                }
            });
        });
    }

    /// Counts a request that is done or has failed.
    fn done(
        &self,
        deed: IoKind,
        offset: u64,
        length: u64,
        done: Result<(), Errno>,
    ) -> Result<(), Errno> {
        match done {
            Ok(()) => self.count(deed, offset, length),
            Err(_) => {
                // The part of a failed request that was done is unknown.
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

    /// Calls `wait`, which may wait for a device, and times it; `kind` as in [`Counts::latencies`].
    fn waits<T>(&self, kind: usize, wait: impl FnOnce() -> T) -> T {
        let now = self.waiting.fetch_add(1, Ordering::Relaxed) + 1;
        // A load leaves the cache line shared; the maximum rarely grows.
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

/// The taken logs, one bit each.
static TAKEN: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static LOG_SLOT: LogSlot = LogSlot::take();
}

/// The index of a thread's log, its own until it ends; or [`OWN`], the shard of all other threads.
struct LogSlot(usize);

impl LogSlot {
    fn take() -> LogSlot {
        // Acquire: the thread that takes a log sees the notes of its predecessor.
        let free = |taken: u32| (0..OWN).find(|&seat| taken >> seat & 1 == 0);
        let taken = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, |taken| {
            free(taken).map(|seat| taken | 1 << seat)
        });
        LogSlot(taken.ok().and_then(free).unwrap_or(OWN))
    }
}

impl Drop for LogSlot {
    fn drop(&mut self) {
        if self.0 < OWN {
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

/// A store that counts its requests.
pub struct Counted {
    below: Arc<dyn Store>,
    counters: Arc<Counters>,
    /// True if writes never wait for a device.
    at_once: bool,
    /// Called after a flush if tasted ranges were written, or are being tasted again.
    settled: Box<Settled>,
}

/// A callback for when the graph may have changed.
pub type Settled = dyn Fn() + Send + Sync;

impl Counted {
    /// A counting layer over `below`, which `counters` watch. A flush after a write to a tasted
    /// range calls `settled` before it returns: the client's next requests are judged by the new
    /// graph.
    pub fn new(below: Arc<dyn Store>, counters: Arc<Counters>, settled: Box<Settled>) -> Counted {
        Counted { at_once: below.properties().write_back, below, counters, settled }
    }

    fn settle(&self) {
        self.counters.settle_all();
        if self.counters.tasted.is_unsettled() {
            (self.settled)();
        }
    }

    /// Counts the way of a request that may wait.
    fn waits(
        &self,
        kind: IoKind,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let done = self.counters.waits(kind as usize, run);
        self.counters.done(kind, request.offset, request.length, done)
    }
}

/// The kind of a request in what is counted; a flush has none.
fn kind_of(action: Action) -> Option<IoKind> {
    match action {
        Action::Read => Some(IoKind::Read),
        Action::Write => Some(IoKind::Write),
        Action::Zero => Some(IoKind::Zero),
        Action::Discard => Some(IoKind::Trim),
        Action::Flush => None,
    }
}

impl Filter for Counted {
    fn inner(&self) -> &dyn Store {
        &*self.below
    }

    #[inline]
    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match kind_of(request.action) {
            Some(kind) if kind == IoKind::Write && !request.durable && self.at_once => {
                self.counters.done(kind, request.offset, request.length, run())
            }
            Some(kind) => {
                let done = self.waits(kind, request, run);
                if request.durable {
                    self.settle();
                }
                done
            }
            None => {
                let done = self.counters.waits(FLUSH, run);
                let counter = if done.is_ok() {
                    &self.counters.flushes
                } else {
                    &self.counters.failed_flushes
                };
                counter.fetch_add(1, Ordering::Relaxed);
                self.settle();
                done
            }
        }
    }

    #[inline]
    fn attempt<T>(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        let Some(kind) = kind_of(request.action) else { return run() };
        // A file system may work on zeros for a while; nothing else that may be declined waits.
        let tried =
            if kind == IoKind::Zero { self.counters.waits(kind as usize, run) } else { run() };
        match tried {
            // It comes again, and is counted then.
            Ok(None) => {}
            Ok(Some(_)) => self.counters.count(kind, request.offset, request.length),
            Err(errno) => self.counters.done(kind, request.offset, request.length, Err(errno))?,
        }
        tried
    }

    fn offered(&self) -> Properties {
        self.below.properties()
    }
}

#[cfg(test)]
mod tests;

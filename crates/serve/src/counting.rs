//! Counters of every export, and the stack of providers that they are kept by.
//!
//! A client may write a table or a file system while it is served. One thread then tastes the disks
//! again, and counters go on by what it finds: a provider that is still there keeps its number and
//! its counts.

mod history;
mod observed;
mod provider_registry;
mod server_counts;
mod stack;

pub use history::{History, Sample};
pub use observed::{CountedRequest, ObservedProvider};
pub use server_counts::{Blame, ExportCounts, LayerCounts, ServerCounts};
pub use stack::Stack;
use trueline_host::clock::TICK;
use trueline_host::lock::lock;

use crate::layer::counted::{Counted, Counters, Counts, LayerOnDisk, Waits};
use crate::notice::{Notice, Tell};
use crate::retaste::allowance::Allowance;
use crate::retaste::trigger::RetasteTrigger;
use provider_registry::ProviderRegistry;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};
use trueline_geom::audit::audit;
use trueline_geom::audit::io::{IoAudit, IoKind, Tally};
use trueline_geom::base::finding;
use trueline_geom::base::store::Store;
use trueline_geom::graph::{Graph, Id};

/// Quiet time after a write to a table before the disk is tasted again, if no flush comes.
const QUIET: Duration = Duration::from_secs(1);
/// The longest wait of a flush for tasting: milliseconds are enough for most disks.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time that tasting may take before no flush waits for it any more. It is reported, because it
/// is seldom done from then on.
const LONG: Duration = Duration::from_secs(2);
/// Further tries at a place that cannot be read any more before its content is taken for gone.
const TRIES: u32 = 3;

/// The counters of all exports, and the stack they are on.
pub struct Counting {
    began: Instant,
    /// Places where a write makes it necessary to taste again.
    trigger: Arc<RetasteTrigger>,
    /// One set of counters a provider, by its first number, under however many names it is served.
    exports: Mutex<BTreeMap<usize, Arc<Counters>>>,
    found: Mutex<Found>,
    /// Locked by the one thread that tastes.
    tasting: Mutex<Tasting>,
    asked: Mutex<TasteRequests>,
    /// Signalled by a flush that asks.
    ask: Condvar,
    /// Signalled when flushes have their answer.
    answer: Condvar,
    tell: Arc<Tell>,
}

/// Providers that were ever found, and those that are there now.
struct Found {
    registry: ProviderRegistry,
    stack: Arc<Stack>,
}

/// The state of tasting again.
struct Tasting {
    /// The graph of the disks alone, without what was found on them.
    bare: Graph,
    allowance: Allowance,
    /// True once it is not done any more.
    over: bool,
    /// Places that could not be read when something was found last.
    blind: usize,
    /// Tastings since then that found more such places.
    tried: u32,
}

/// Flushes that ask for tasting; one thread does that for all of them.
#[derive(Default)]
struct TasteRequests {
    /// The number of flushes that have asked.
    asked: u64,
    /// The number of those that have their answer.
    answered: u64,
    /// True once no answer comes any more, or not soon enough.
    over: bool,
}

impl Counting {
    /// Counters for the providers of `graph`. `tell` takes what they cannot follow.
    pub fn new(graph: &Graph, tell: Arc<Tell>) -> Counting {
        let mut registry = ProviderRegistry::default();
        let numbers = registry.number(graph).unwrap_or_default();
        let stack = Stack::new(graph.clone(), audit(graph), numbers, 0);
        let now = Instant::now();
        Counting {
            began: now,
            trigger: Arc::new(RetasteTrigger::new(graph.read_set())),
            exports: Mutex::default(),
            found: Mutex::new(Found { registry, stack: Arc::new(stack) }),
            tasting: Mutex::new(Tasting {
                bare: graph.bare(),
                allowance: Allowance::new(now),
                over: false,
                blind: blind(graph),
                tried: 0,
            }),
            asked: Mutex::default(),
            ask: Condvar::new(),
            answer: Condvar::new(),
            tell,
        }
    }

    /// A store that counts: `store` has the bytes of provider `id` of the graph that counting began
    /// with.
    pub fn over(
        self: &Arc<Counting>,
        graph: &Graph,
        id: Id,
        store: Arc<dyn Store>,
    ) -> Arc<dyn Store> {
        let mut exports = lock(&self.exports);
        let new = || Arc::new(Counters::new(IoAudit::new(graph, id), self.trigger.clone()));
        let counters = exports.entry(id).or_insert_with(new).clone();
        let counting = self.clone();
        Arc::new(Counted::new(store, counters, Box::new(move || counting.ask())))
    }

    /// The counters of provider `id` of the graph that is served, once it is exported.
    pub fn counters(&self, id: Id) -> Option<Arc<Counters>> {
        lock(&self.exports).get(&id).cloned()
    }

    /// The stack as it was found last.
    pub fn stack(&self) -> Arc<Stack> {
        lock(&self.found).stack.clone()
    }

    /// The counts of all exports until now.
    pub fn counts(&self) -> ServerCounts {
        let exports = lock(&self.exports).clone();
        let counts: Vec<_> =
            exports.into_iter().map(|(number, counters)| (number, counters.counts())).collect();
        // Locked after counting: what has counts is known by now.
        let found = lock(&self.found);
        let export = |(number, counts): (usize, Counts)| ExportCounts {
            provider: found.registry.name(number),
            layers: counts
                .cells
                .into_iter()
                .map(|(place, tally)| layer(&found.registry, &place, tally))
                .collect(),
            flushes: counts.flushes,
            most_waiting: counts.most_waiting,
            failed: counts.failed,
            failed_flushes: counts.failed_flushes,
            latencies: counts.latencies,
        };
        let exports = counts.into_iter().map(export).collect();
        ServerCounts { duration: self.began.elapsed(), generation: found.stack.generation, exports }
    }

    /// Latencies of reads and writes through all exports so far.
    pub fn waits(&self) -> Waits {
        let exports = lock(&self.exports).clone();
        let mut all = Waits::default();
        for counters in exports.values() {
            [IoKind::Read, IoKind::Write]
                .into_iter()
                .for_each(|kind| all.merge(&counters.waits_of(kind)));
        }
        all
    }

    /// Waits until what was written is found, or [`PATIENCE`] is over: a flush is no place to taste
    /// a slow disk.
    fn ask(&self) {
        let mut asked = lock(&self.asked);
        asked.asked += 1;
        let own = asked.asked;
        self.ask.notify_one();
        let waits = |asked: &mut TasteRequests| asked.answered < own && !asked.over;
        drop(self.answer.wait_timeout_while(asked, PATIENCE, waits));
    }

    /// Tastes again, until it is to `stop`, where a client has written a table: at once after a
    /// flush, else after a second of quiet.
    pub fn keep_up(&self, stop: &AtomicBool) {
        let (mut since, mut judged) = (None, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let asked = lock(&self.asked);
            let idle = |asked: &mut TasteRequests| asked.answered == asked.asked;
            let waited = self.ask.wait_timeout_while(asked, TICK, idle);
            let (asked, answered) = {
                let (asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
                (asked.asked, asked.answered)
            };
            // What a thread has noted and no flush has judged may be a table.
            if judged.elapsed() >= QUIET / 2 {
                self.settle();
                judged = Instant::now();
            }
            since = self.trigger.is_stale().then(|| since.unwrap_or_else(Instant::now));
            if asked != answered || since.is_some_and(|since| since.elapsed() >= QUIET) {
                self.taste_again();
                since = None;
            }
            lock(&self.asked).answered = asked;
            self.answer.notify_all();
        }
        lock(&self.asked).over = true;
        self.answer.notify_all();
    }

    /// Tastes a last time: a client that has written a table and gone without a flush has made it,
    /// too.
    pub fn taste_last(&self) {
        self.settle();
        self.taste_again();
    }

    /// Judges what was noted.
    fn settle(&self) {
        let exports = lock(&self.exports).clone();
        exports.values().for_each(|counters| counters.settle_all());
    }

    /// Tastes the disks again where that is due. After its share of the time is spent, it stays
    /// due.
    fn taste_again(&self) {
        let tasting = &mut *lock(&self.tasting);
        let begin = Instant::now();
        if tasting.over || !self.trigger.is_stale() || !tasting.allowance.is_left(begin) {
            return;
        }
        self.trigger.again(|| {
            let graph = tasting.bare.again();
            // What cannot be read for a moment is not gone.
            let blind = blind(&graph);
            if blind > tasting.blind && tasting.tried < TRIES {
                tasting.tried += 1;
                self.trigger.stale();
                return;
            }
            (tasting.blind, tasting.tried) = (blind, 0);
            tasting.over = !self.follow(graph);
        });
        let took = begin.elapsed();
        tasting.allowance.spend(took);
        if tasting.over {
            (self.tell)(&Notice::TooMuch);
        } else if took > LONG {
            lock(&self.asked).over = true;
            (self.tell)(&Notice::Slow(took));
        }
    }

    /// Counts by what `graph` has found from now on. `false` if that is too much: counters then
    /// stay with what was found before.
    fn follow(&self, graph: Graph) -> bool {
        // First: it may read further places, where a write makes it necessary to taste again.
        let audit = audit(&graph);
        let exports = lock(&self.exports).clone();
        let mut found = lock(&self.found);
        if !exports.values().all(|counters| counters.has_room())
            || !self.trigger.looked(&graph.read_set())
        {
            return false;
        }
        let Some(numbers) = found.registry.number(&graph) else { return false };
        for (number, counters) in exports {
            // What is not there any more is served as it was, and counted so.
            let Some(id) = numbers.iter().position(|&of| of == number) else { continue };
            let watch = IoAudit::new(&graph, id).numbered(&numbers);
            if !watch.agrees(counters.watch()) {
                // By what was there before: it was done before.
                counters.settle_all();
                counters.follow(watch);
            }
        }
        if !found.stack.is_as(&graph, &audit, &numbers) {
            let generation = found.stack.generation + 1;
            found.stack = Arc::new(Stack::new(graph, audit, numbers, generation));
        }
        true
    }
}

/// Places of the disks that could not be read.
fn blind(graph: &Graph) -> usize {
    graph
        .providers
        .iter()
        .flat_map(|provider| &provider.findings)
        .filter(|found| *found.rule == finding::BLIND)
        .count()
}

/// Counts of a layer on a disk.
fn layer(registry: &ProviderRegistry, place: &LayerOnDisk, tally: Tally) -> LayerCounts {
    let (number, unit) = (place.layer.provider, place.medium.unit);
    LayerCounts {
        provider: registry.name(number),
        number,
        is_here: !registry.is_gone(number),
        recognised: registry.recognised(number),
        disk: place.medium.provider.map_or_else(String::new, |number| registry.name(number)),
        unit,
        members: place.layer.members[place.nth].clone(),
        blame: place.layer.blamed[place.nth]
            .zip(unit)
            .and_then(|(number, unit)| registry.blame(number, &unit)),
        tally,
    }
}

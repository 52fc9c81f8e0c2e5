//! What is counted of every export, and who it is.

use super::allowance::Allowance;
use super::known::ProviderRegistry;
use super::notices::Notices;
use crate::command::serve::summary::{Bucket, Deeds, Export, Latencies, Latency, Layer, Operations, Requests, Served, Verdicts};
use crate::report::Target;
use crate::survey::survey_with;
use crate::target::DiskOverrides;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trueline_geom::audit::io::{self, IoAudit, IoKind, Tally};
use trueline_geom::base::finding;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Placement;
use trueline_geom::graph::{Graph, Id};
use trueline_serve::layer::counted::{Counted, Counters, Place, Waits};
use trueline_serve::retaste::trigger::RetasteTrigger;

/// Who has written a table and does not flush is given so long to go on.
const QUIET: Duration = Duration::from_secs(1);
/// So long a flush waits for what it has made to be found: milliseconds are enough for most disks.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where tasting has taken longer, no flush waits for it any more, and it is told of, because it is seldom done.
const LONG: Duration = Duration::from_secs(2);
/// How often a place that cannot be read any more is tried again before it is taken for what is there.
const TRIES: u32 = 3;

/// What is on the disks, as far as it is known.
pub(crate) struct Stack {
    pub(crate) target: Target,
    /// The number of each of its providers in what is counted.
    pub(crate) numbers: Vec<usize>,
    /// How often something else had been found.
    pub(crate) generation: u64,
}

/// The counters of all exports, and the stack they are on.
pub(crate) struct Counting {
    target: String,
    /// The description of its disks: a cure says it again.
    said: DiskOverrides,
    began: Instant,
    /// Where a write makes it necessary to look again.
    tasted: Arc<RetasteTrigger>,
    /// One set of counters a provider, by its first number, under however many names it is served.
    exports: Mutex<BTreeMap<usize, Arc<Counters>>>,
    found: Mutex<Found>,
    /// Who has it is the only one who tastes.
    tasting: Mutex<Tasting>,
    asked: Mutex<Asked>,
    /// Somebody asks.
    ask: Condvar,
    /// Somebody has his answer.
    answer: Condvar,
    notices: Arc<Notices>,
}

/// What was found.
struct Found {
    known: ProviderRegistry,
    stack: Arc<Stack>,
}

/// What it takes to look again.
struct Tasting {
    /// The disks.
    bare: Graph,
    allowance: Allowance,
    /// It is not done any more.
    over: bool,
    /// Places that could not be read when something was found last.
    blind: usize,
    /// How often there were more of them since.
    tried: u32,
}

/// Who flushes asks for what he has made to be found; one thread does that for all of them.
#[derive(Default)]
struct Asked {
    /// How often somebody has asked.
    asked: u64,
    /// How many of those have their answer.
    answered: u64,
    /// Nobody answers any more, or not soon enough.
    over: bool,
}

impl Counting {
    /// For the providers of `graph`; says in `notices` what it cannot follow.
    pub(super) fn new(target: &str, said: &DiskOverrides, graph: &Graph, notices: Arc<Notices>) -> Result<Counting, String> {
        let report = survey_with(target, Some(said), graph, None)?;
        let mut known = ProviderRegistry::default();
        let numbers = known.number(graph, &report).unwrap_or_default();
        let now = Instant::now();
        Ok(Counting {
            target: target.into(),
            said: said.clone(),
            began: now,
            tasted: Arc::new(RetasteTrigger::new(graph.looked())),
            exports: Mutex::default(),
            found: Mutex::new(Found { known, stack: Arc::new(Stack { target: report, numbers, generation: 0 }) }),
            tasting: Mutex::new(Tasting { bare: graph.bare(), allowance: Allowance::new(now), over: false, blind: blind(graph), tried: 0 }),
            asked: Mutex::default(),
            ask: Condvar::new(),
            answer: Condvar::new(),
            notices,
        })
    }

    /// `store` as the bytes of provider `id`, counted. `graph` is the one that it was made for.
    pub(super) fn over(self: &Arc<Counting>, graph: &Graph, id: Id, store: Arc<dyn Store>) -> Arc<dyn Store> {
        let mut exports = lock(&self.exports);
        let new = || Arc::new(Counters::new(IoAudit::new(graph, id), self.tasted.clone()));
        let counters = exports.entry(id).or_insert_with(new).clone();
        let counting = self.clone();
        Arc::new(Counted::new(store, counters, Box::new(move || counting.ask())))
    }

    /// The counters of provider `id` of the graph that is served, once it is exported.
    pub(super) fn counters(&self, id: Id) -> Option<Arc<Counters>> {
        lock(&self.exports).get(&id).cloned()
    }

    /// What was last found.
    pub(crate) fn stack(&self) -> Arc<Stack> {
        lock(&self.found).stack.clone()
    }

    /// What was counted so far.
    pub(crate) fn served(&self) -> Served {
        let exports = lock(&self.exports).clone();
        let counts: Vec<_> = exports.into_iter().map(|(number, counters)| (number, counters.counts())).collect();
        // After what was counted: what has counts is known by now.
        let found = lock(&self.found);
        let (mut layers, mut all) = (Vec::new(), Vec::new());
        for (number, counts) in counts {
            let own: Vec<Layer> = counts.cells.iter().map(|(place, tally)| layer(&found.known, number, place, tally)).collect();
            let sum = |of: fn(&Layer) -> Deeds| own.iter().map(of).fold(Deeds::default(), Deeds::and);
            let [reads, writes, trims, zeroes] = counts.failed;
            all.push(Export {
                provider: found.known.name(number),
                requests: sum(|layer| layer.requests.counts()),
                pieces: sum(Layer::pieces),
                bytes: sum(|layer| layer.request_bytes),
                flushes: counts.flushes,
                most_waiting: counts.most_waiting,
                errors: Deeds { reads, writes, trims, zeroes },
                flush_errors: counts.failed_flushes,
                latency_ns: latencies(&counts.latencies),
            });
            layers.extend(own);
        }
        let duration_ns = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let (target, judged, generation) = (self.target.clone(), self.said.judged().cloned(), found.stack.generation);
        Served { format: "trueline/serve/1", target, judged, duration_ns, generation, layers, exports: all, emulation: None }
    }

    /// Latencies of reads and writes through all exports so far.
    pub(super) fn waits(&self) -> Waits {
        let exports = lock(&self.exports).clone();
        let mut all = Waits::default();
        for counters in exports.values() {
            [IoKind::Read, IoKind::Write].into_iter().for_each(|deed| all.merge(&counters.waits_of(deed)));
        }
        all
    }

    /// Waits until what was written is found, or [`PATIENCE`] is over: a flush is no place to taste a slow disk.
    fn ask(&self) {
        let mut asked = lock(&self.asked);
        asked.asked += 1;
        let own = asked.asked;
        self.ask.notify_one();
        let waits = |asked: &mut Asked| asked.answered < own && !asked.over;
        drop(self.answer.wait_timeout_while(asked, PATIENCE, waits));
    }

    /// Until it is to `stop`, looks again where somebody has written a table: at once for who flushes, else when he seems to be done.
    pub(super) fn keep_up(&self, stop: &AtomicBool) {
        let (mut since, mut judged) = (None, Instant::now());
        while !stop.load(Ordering::Relaxed) {
            let asked = lock(&self.asked);
            let idle = |asked: &mut Asked| asked.answered == asked.asked;
            let waited = self.ask.wait_timeout_while(asked, super::TICK, idle);
            let (asked, answered) = {
                let (asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
                (asked.asked, asked.answered)
            };
            // What a thread has noted and nobody judged may be a table.
            if judged.elapsed() >= QUIET / 2 {
                self.settle();
                judged = Instant::now();
            }
            since = self.tasted.is_stale().then(|| since.unwrap_or_else(Instant::now));
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

    /// Looks a last time: whoever has written a table and gone without a flush has made it, too.
    pub(super) fn look_once_more(&self) {
        self.settle();
        self.taste_again();
    }

    /// Judges what was noted.
    fn settle(&self) {
        let exports = lock(&self.exports).clone();
        exports.values().for_each(|counters| counters.settle_all());
    }

    /// Looks again what is on the disks. If it was done too often, it stays to be done.
    fn taste_again(&self) {
        let tasting = &mut *lock(&self.tasting);
        let begin = Instant::now();
        if tasting.over || !self.tasted.is_stale() || !tasting.allowance.is_left(begin) {
            return;
        }
        self.tasted.again(|| {
            let graph = tasting.bare.again();
            // What cannot be read for a moment is not gone.
            let blind = blind(&graph);
            if blind > tasting.blind && tasting.tried < TRIES {
                tasting.tried += 1;
                self.tasted.stale();
                return;
            }
            (tasting.blind, tasting.tried) = (blind, 0);
            tasting.over = !self.follow(&graph);
        });
        let took = begin.elapsed();
        tasting.allowance.spend(took);
        if tasting.over {
            self.notices.say(&format!("{}: too much was made anew: counters keep the layers that were found until now", self.target));
        } else if took > LONG {
            lock(&self.asked).over = true;
            let (target, seconds) = (&self.target, took.as_secs_f64());
            self.notices
                .say(&format!("{target}: to find what was made on it took {seconds:.1} s: it is looked again after a hundred times that"));
        }
    }

    /// Counts by what `graph` has found from now on; `false`, and by what was found before, if that is too much.
    fn follow(&self, graph: &Graph) -> bool {
        // It was tasted before, and names no provider that might be missing.
        let Ok(report) = survey_with(&self.target, Some(&self.said), graph, None) else { return false };
        let exports = lock(&self.exports).clone();
        let mut found = lock(&self.found);
        if !exports.values().all(|counters| counters.has_room()) || !self.tasted.looked(&graph.looked()) {
            return false;
        }
        let Some(numbers) = found.known.number(graph, &report) else { return false };
        for (number, counters) in exports {
            // What is not there any more is served as it was, and counted so.
            let Some(id) = numbers.iter().position(|&of| of == number) else { continue };
            let watch = IoAudit::new(graph, id).numbered(&numbers);
            if !watch.agrees(counters.watch()) {
                // By what was there before: it was done before.
                counters.settle_all();
                counters.follow(watch);
            }
        }
        if (&found.stack.numbers, &found.stack.target.providers) != (&numbers, &report.providers) {
            let generation = found.stack.generation + 1;
            found.stack = Arc::new(Stack { target: report, numbers, generation });
        }
        true
    }
}

/// Places of the disks that could not be read.
fn blind(graph: &Graph) -> usize {
    graph.providers.iter().flat_map(|provider| &provider.findings).filter(|found| *found.rule == finding::BLIND).count()
}

/// What a thread that panicked has left is whole: nothing is half done while it is locked.
fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What was counted of a layer on a disk, through the export of that number.
fn layer(known: &ProviderRegistry, export: usize, place: &Place, tally: &Tally) -> Layer {
    let (number, unit) = (place.layer.provider, place.medium.unit.as_ref());
    let blamed = place.layer.blamed[place.nth].zip(unit).and_then(|(number, unit)| known.blame(number, unit));
    let (read, write) = (tally.work(IoKind::Read), tally.work(IoKind::Write));
    let device_operations = Operations { reads: read.done, writes: write.done, reads_needed: read.needed, writes_needed: write.needed };
    Layer {
        provider: known.name(number),
        id: number,
        gone: known.is_gone(number),
        content: known.content(number),
        export: known.name(export),
        disk: place.medium.provider.map_or_else(String::new, |number| known.name(number)),
        unit: unit.map_or(0, |unit| unit.grain.size()),
        phase: unit.map_or(0, |unit| unit.grain.phase()),
        why: unit.map(|unit| unit.why.name()),
        members: place.layer.members[place.nth].clone(),
        requests: requests(tally),
        request_bytes: deeds(|deed| tally.requested(deed)),
        blamed_requests: deeds(|deed| tally.requests_blamed(deed)),
        reads: verdicts(tally, IoKind::Read),
        writes: verdicts(tally, IoKind::Write),
        trims: verdicts(tally, IoKind::Trim),
        zeroes: verdicts(tally, IoKind::Zero),
        bytes: deeds(|deed| tally.bytes(deed)),
        blame: blamed,
        blamed: deeds(|deed| tally.blamed(deed)),
        device_operations,
        rmw_factor: device_operations.rmw_factor(),
        histogram: tally.histogram().map(bucket).collect(),
    }
}

fn verdicts(tally: &Tally, deed: IoKind) -> Verdicts {
    let of = |fit| tally.count(deed, fit);
    Verdicts {
        aligned: of(Placement::Aligned),
        misaligned: of(Placement::Misaligned),
        partial: of(Placement::Partial),
        unknown: of(Placement::Unknown),
    }
}

fn latencies(waits: &[Waits; 5]) -> Latencies {
    let [reads, writes, trims, zeroes, flushes] = waits.each_ref().map(|waits| {
        let (count, mean, max) = (waits.count(), waits.mean(), waits.most());
        (count > 0).then(|| Latency { count, mean, p50: waits.quantile(500), p99: waits.quantile(990), max })
    });
    Latencies { reads, writes, trims, zeroes, flushes }
}

fn requests(tally: &Tally) -> Requests {
    let verdicts = |deed| {
        let of = |fit| tally.requests(deed, fit);
        Verdicts {
            aligned: of(Placement::Aligned),
            misaligned: of(Placement::Misaligned),
            partial: of(Placement::Partial),
            unknown: of(Placement::Unknown),
        }
    };
    let [reads, writes, trims, zeroes] = IoKind::ALL.map(verdicts);
    Requests { reads, writes, trims, zeroes }
}

fn deeds(of: impl Fn(IoKind) -> u64) -> Deeds {
    Deeds { reads: of(IoKind::Read), writes: of(IoKind::Write), trims: of(IoKind::Trim), zeroes: of(IoKind::Zero) }
}

fn bucket(bucket: io::Bucket) -> Bucket {
    Bucket {
        op: bucket.deed.name(),
        verdict: bucket.fit.name(),
        size: io::class_start(bucket.size),
        alignment: io::class_start(bucket.alignment),
        count: bucket.count,
    }
}

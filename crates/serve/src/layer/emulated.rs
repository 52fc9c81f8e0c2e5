//! Drives in virtual time as a store in real time: a request takes as long as the model's drives
//! take for it.
//!
//! Data are read and written below at once; the answer waits until the simulated drives are done.
//! All stores over the same drives share them and their clock. Virtual time follows the real one,
//! [`Speed`] times as fast: a request that comes while the drives are busy waits for them, as it
//! would for real ones.
//!
//! The drives have no thread of their own. One of the threads that wait for requests, the leader,
//! sleeps until the drives' next event and advances them. So a single request is completed by its
//! own thread, without waking another.
//!
//! # Limits
//! Virtual time ends after 106 days ([`World::submit`]); from then on requests fail. Discards take
//! no time; one resets the zones of a host-managed drive that lie wholly within it. A write that
//! such a drive takes and the store below does not has moved its write pointer. The drives are
//! given whole sectors: a partial write counts as a read and a write of whole sectors, as a host
//! would make.

use pace::Pace;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, Thread};
use timeline::Timeline;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{self, Action, Filter};
use trueline_geom::base::store::{Properties, Store};
use trueline_geom::base::topology::Grain;
use trueline_geom::mapping::route::Route;
use trueline_host::clock;
use trueline_host::lock::lock;
use trueline_lab::rig::{Op, Request};
use trueline_sim::counters::Counters;
use trueline_sim::world::World;

mod pace;
mod speed;
mod timeline;

pub use pace::{MUCH, RequestPace};
pub use speed::Speed;

/// A source of real time.
pub trait Clock: Send + Sync {
    /// The time in nanoseconds since an arbitrary start.
    fn now(&self) -> u64;

    /// Returns at `until`, which may change meanwhile, or earlier: if the thread is unparked, or
    /// spuriously.
    fn wait(&self, until: &AtomicU64);
}

/// The monotonic clock of this machine.
pub struct Monotonic;

impl Clock for Monotonic {
    fn now(&self) -> u64 {
        clock::now()
    }

    fn wait(&self, until: &AtomicU64) {
        clock::wait(until);
    }
}

/// The drives that several stores share.
pub struct Drives {
    clock: Box<dyn Clock>,
    depth: usize,
    speed: Speed,
    state: Mutex<State>,
    /// The time at which the leader has to advance the drives.
    until: AtomicU64,
}

struct State {
    timeline: Timeline,
    pace: Pace,
    /// Requests that are not done, by number.
    open: BTreeMap<u64, Waiter>,
    leader: Option<u64>,
    /// The number of the next request.
    next: u64,
}

/// The thread of a request.
struct Waiter {
    thread: Thread,
    /// True if the thread waits for nothing else.
    waits: bool,
}

/// A request to be waited for.
#[must_use]
struct Ticket(u64);

/// The sleep of a leader while drives are at rest, in ns; a lost wake-up would be noticed after
/// this second.
const REST_NS: u64 = 1_000_000_000;

impl Drives {
    /// The drives of a world that is switched on now. `depth`: the most requests in flight.
    pub fn new(world: World, depth: usize, speed: Speed, clock: Box<dyn Clock>) -> Drives {
        let timeline = Timeline::new(world, speed, clock.now());
        let pace = Pace::new(speed.ps_per_ns());
        let state = State { timeline, pace, open: BTreeMap::new(), leader: None, next: 0 };
        Drives { clock, depth, speed, state: Mutex::new(state), until: AtomicU64::new(0) }
    }

    /// The ratio of virtual to real time.
    pub fn speed(&self) -> Speed {
        self.speed
    }

    /// The counters of every drive until now.
    pub fn counters(&self) -> Vec<Counters> {
        let mut state = self.state();
        state.advance(self.clock.now());
        state.timeline.counters()
    }

    /// Drive time and machine time until now, of every kind of request made.
    pub fn kinds(&self) -> Vec<RequestPace> {
        let mut state = self.state();
        state.advance(self.clock.now());
        state.pace.kinds()
    }

    fn reset_zones(&self, route: &Route, offset: u64, length: u64) -> Result<(), Errno> {
        self.state().timeline.reset_zones(self.clock.now(), route, offset, length)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Submits a request to the drives now.
    fn enter(&self, route: &Route, request: Request) -> Result<Ticket, Errno> {
        let mut state = self.state();
        let now = self.clock.now();
        state.advance(now);
        let tag = state.next;
        state.next += 1;
        let at = state.timeline.enter(now, route, Request { tag, ..request })?;
        state.pace.enter(at, route.base(), &request);
        state.open.insert(tag, Waiter { thread: thread::current(), waits: false });
        let next = state.timeline.next().unwrap_or(u64::MAX);
        if next < self.until.load(Ordering::Relaxed) {
            self.until.store(next, Ordering::Relaxed);
            state.wake_leader();
        }
        Ok(Ticket(tag))
    }

    /// Waits until the drives are done with a request.
    fn finish(&self, ticket: Ticket) {
        let Ticket(tag) = ticket;
        loop {
            let mut state = self.state();
            let now = self.clock.now();
            state.advance(now);
            let leads = state.leader.is_none_or(|leader| leader == tag);
            let Some(waiter) = state.open.get_mut(&tag) else {
                if state.leader == Some(tag) {
                    state.leader = None;
                    state.appoint();
                }
                return;
            };
            waiter.waits = true;
            if leads {
                state.leader = Some(tag);
                self.until.store(state.timeline.next().unwrap_or(now + REST_NS), Ordering::Relaxed);
                drop(state);
                self.clock.wait(&self.until);
            } else {
                drop(state);
                thread::park();
            }
        }
    }
}

impl State {
    /// Advances the drives, and wakes the threads whose requests are done.
    fn advance(&mut self, now: u64) {
        let own = thread::current().id();
        for completion in self.timeline.advance(now) {
            self.pace.leave(completion.at);
            if let Some(waiter) =
                self.open.remove(&completion.tag).filter(|waiter| waiter.thread.id() != own)
            {
                waiter.thread.unpark();
            }
        }
    }

    fn wake_leader(&self) {
        if let Some(leader) = self.leader.and_then(|leader| self.open.get(&leader)) {
            leader.thread.unpark();
        }
    }

    /// Makes another waiting thread the leader.
    fn appoint(&mut self) {
        if let Some((&tag, waiter)) = self.open.iter().find(|(_, waiter)| waiter.waits) {
            self.leader = Some(tag);
            waiter.thread.unpark();
        }
    }
}

/// A provider on drives in virtual time.
pub struct Emulated {
    below: Arc<dyn Store>,
    route: Route,
    sector: Option<Grain>,
    drives: Arc<Drives>,
}

impl Emulated {
    /// A store of the bytes `below`, timed by `drives` along `route`. `sector` is their unit in the
    /// provider's addresses; [`None`]: any byte.
    pub fn new(
        below: Arc<dyn Store>,
        route: Route,
        sector: Option<Grain>,
        drives: Arc<Drives>,
    ) -> Emulated {
        Emulated { below, route, sector, drives }
    }

    /// Calls `work` while the drives do `op` on the range. Returns when both are done.
    fn timed(
        &self,
        op: Op,
        range: (u64, u64),
        fua: bool,
        work: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (offset, length) = range;
        if length == 0 && op != Op::Flush {
            return work();
        }
        let (start, end) = self.sectors(offset, length)?;
        if op == Op::Write && (start, end) != (offset, offset + length) {
            self.ask(Op::Read, (start, end - start), false, || Ok(()))?;
        }
        self.ask(op, (start, end - start), fua, work)
    }

    fn ask(
        &self,
        op: Op,
        range: (u64, u64),
        fua: bool,
        work: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let (offset, length) = range;
        let ticket = self.drives.enter(&self.route, Request { tag: 0, op, offset, length, fua })?;
        let done = work();
        self.drives.finish(ticket);
        done
    }

    /// The whole sectors that contain a range: (start, end). The last sector of a file may end
    /// behind it.
    fn sectors(&self, offset: u64, length: u64) -> Result<(u64, u64), Errno> {
        let end = offset.checked_add(length).ok_or(Errno::Range)?;
        let Some(sector) = self.sector.filter(|_| length > 0) else { return Ok((offset, end)) };
        let start = sector.previous(offset).ok_or(Errno::Unaligned)?;
        let end = match sector.next(end).ok_or(Errno::Unaligned)? {
            beyond if beyond > self.route.length() && end == self.route.length() => end,
            within if within <= self.route.length() => within,
            _ => return Err(Errno::Unaligned),
        };
        Ok((start, end))
    }
}

impl Filter for Emulated {
    fn inner(&self) -> &dyn Store {
        &*self.below
    }

    fn pass(
        &self,
        request: &filter::Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let op = match request.action {
            Action::Read => Op::Read,
            Action::Write | Action::Zero => Op::Write,
            Action::Flush => Op::Flush,
            // Zones have no other way to be reset; a drive without them has no command for it.
            Action::Discard => {
                run()?;
                return self.drives.reset_zones(&self.route, request.offset, request.length);
            }
        };
        self.timed(op, (request.offset, request.length), request.durable, run)
    }

    fn offered(&self) -> Properties {
        let below = self.below.properties();
        Properties {
            depth: self.drives.depth.max(below.depth),
            write_back: false,
            non_blocking: false,
            ..below
        }
    }
}

#[cfg(test)]
mod tests;

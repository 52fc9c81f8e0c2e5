//! Several drives under the classes of `trueline-geom`, and the clock that they share.
//!
//! A request goes down a [`Route`] as in every other engine. Its adjacent pieces on one drive are
//! one command, as gstripe and dm-stripe send it; a write to a set with parity becomes the reads
//! and writes of `stripes`. The host keeps a queue for each drive, which is given as many commands
//! as it has tags. The processor is one server: the cost of layers is spent there, one request
//! after another. Pages of a container's tables that a route fetches are read first, one after
//! another, and then the bytes of the request; requests beside it that need the same page do not
//! wait for it.

use crate::counters::Counters;
use crate::drive::zones::Zones;
use crate::drive::{Command, Completion, Drive, Op};
use crate::time::Ps;
use elevator::Elevator;
use std::collections::VecDeque;
use stripes::{Next, Stripes};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{is_whole, round_down, round_up};
use trueline_geom::mapping::geom;
use trueline_geom::mapping::route::{Piece, RangeOfSet, Route};

mod elevator;
mod host_managed;
mod stripes;

pub use elevator::Schedule;

/// A drive with the host's queue for it.
struct Port {
    drive: Box<dyn Drive>,
    /// The logical sector size in bytes.
    sector: u64,
    queue: Elevator,
    in_flight: usize,
    /// The zones of a host-managed drive.
    zones: Option<Zones>,
}

/// The origin of a request in progress.
#[derive(Clone, Copy)]
enum Owner {
    /// The host, with its tag.
    Host(u64),
    /// A batch of stripes, of the set with that index.
    Batch { set: usize, batch: usize },
    /// A page of a table, for the lookup with that index.
    Lookup(usize),
}

/// A run on a drive: its number, first byte, bytes.
type Run = (usize, u64, u64);

/// A request that waits until pages of tables are read.
struct Lookup {
    owner: Owner,
    op: Op,
    fua: bool,
    /// Runs of tables that are still to be read.
    tables: VecDeque<Run>,
    /// Runs of the request itself.
    pieces: Vec<Run>,
}

/// A request in progress.
#[derive(Clone, Copy)]
struct Open {
    owner: Owner,
    commands: usize,
    /// The completion time of the last of its commands so far.
    at: Ps,
}

/// A request of a host to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The host's tag, returned with the completion.
    pub tag: u64,
    /// The operation; a flush goes to every drive.
    pub op: Op,
    /// The first byte, counted in the provider.
    pub offset: u64,
    /// The length in bytes; 0 for a flush.
    pub length: u64,
    /// True if a write must be on the medium before it is done (force unit access).
    pub fua: bool,
}

/// The latest start of a request: half of the range of [`Ps`] (106 days), so that the time drives
/// add does not overflow.
const LATEST: Ps = Ps::MAX / 2;

/// Several drives and their clock.
pub struct World {
    now: Ps,
    ports: Vec<Port>,
    open: Slab<Open>,
    /// Indices in `open` by the number of a command.
    commands: Slab<usize>,
    /// Commands passing through the processor, in order: (time, drive, command).
    arriving: VecDeque<(Ps, usize, Command)>,
    processor: Ps,
    done: VecDeque<Completion>,
    /// Requests that wait for tables.
    lookups: Slab<Lookup>,
    /// Sets with parity that were written to.
    stripes: Vec<Stripes>,
    /// Requests of the host that sets with parity hold.
    held: usize,
    finished: Vec<Completion>,
    /// A vector reused for the pieces of a request.
    pieces: Vec<Run>,
    digest: u64,
}

impl World {
    /// A world with these drives, each with its logical sector size in bytes, at time 0.
    pub fn new(drives: Vec<(Box<dyn Drive>, u64)>, schedule: Schedule) -> World {
        let port = |(drive, sector): (Box<dyn Drive>, u64)| {
            let zones = drive.zones();
            Port { drive, sector, queue: Elevator::new(schedule), in_flight: 0, zones }
        };
        World {
            now: 0,
            ports: drives.into_iter().map(port).collect(),
            open: Slab::default(),
            commands: Slab::default(),
            arriving: VecDeque::new(),
            processor: 0,
            done: VecDeque::new(),
            lookups: Slab::default(),
            stripes: Vec::new(),
            held: 0,
            finished: Vec::new(),
            pieces: Vec::with_capacity(4),
            digest: 0xcbf2_9ce4_8422_2325,
        }
    }

    /// The current virtual time.
    pub fn now(&self) -> Ps {
        self.now
    }

    /// Requests in progress, or done and not yet collected.
    pub fn in_flight(&self) -> usize {
        self.open.used + self.held + self.done.len()
    }

    /// The counters of every drive up to [`World::now`].
    pub fn counters(&self) -> Vec<Counters> {
        self.ports.iter().map(|port| port.drive.counters(self.now)).collect()
    }

    /// A digest of all completions: equal for two runs only if every request was done at the same
    /// picosecond (FNV-1a).
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Sends a request down `route`, after `cost` of processor time. Sectors of which a container
    /// has a part are read whole. [`Errno::Range`] if it is outside the provider or not whole
    /// sectors of a drive; [`Errno::Zone`] if a zone of a host-managed drive does not take it, and
    /// then no drive gets any of it; [`Errno::Unsupported`] for a write to a set with parity that
    /// has such a drive; [`Errno::Io`] when virtual time is over, after 106 days.
    pub fn submit(&mut self, route: &Route, request: Request, cost: Ps) -> Result<(), Errno> {
        match self.stripes_of(route).filter(|_| request.op == Op::Write) {
            // The pages of stripes are written anywhere.
            Some((set, _)) if self.has_zones(&self.stripes[set].below) => Err(Errno::Unsupported),
            Some((set, base)) => self.write_rows(set, base, route, request, cost),
            None => self.submit_for(Owner::Host(request.tag), route, request, cost),
        }
    }

    fn submit_for(
        &mut self,
        owner: Owner,
        route: &Route,
        request: Request,
        cost: Ps,
    ) -> Result<(), Errno> {
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.clear();
        let sent = self.send(owner, route, request, cost, &mut pieces);
        self.pieces = pieces;
        sent
    }

    /// The index in `stripes` of the set with parity that `route` is a range of, and its first byte
    /// there.
    fn stripes_of(&mut self, route: &Route) -> Option<(usize, u64)> {
        let RangeOfSet { geom, slot, below, base } = route.set()?;
        if let Some(set) = self.stripes.iter().position(|stripes| stripes.is_of(geom, slot)) {
            return Some((set, base));
        }
        self.stripes.push(Stripes::new(geom, slot, below)?);
        Some((self.stripes.len() - 1, base))
    }

    fn write_rows(
        &mut self,
        set: usize,
        base: u64,
        route: &Route,
        request: Request,
        cost: Ps,
    ) -> Result<(), Errno> {
        let Request { tag, offset, length, fua, .. } = request;
        if offset.checked_add(length).is_none_or(|end| end > route.length()) {
            return Err(Errno::Range);
        }
        let through = self.processor.max(self.now).checked_add(cost);
        self.processor = through.filter(|&at| at <= LATEST).ok_or(Errno::Io)?;
        let next = self.stripes[set].write(tag, base + offset, length, fua);
        self.held += 1;
        self.go_on(set, next, self.processor)
    }

    /// Sends the commands of a set with parity, and ends the requests that it has done at `at`.
    fn go_on(&mut self, set: usize, next: Next, at: Ps) -> Result<(), Errno> {
        let below = self.stripes[set].below.clone();
        for io in next.commands {
            let owner = Owner::Batch { set, batch: io.batch };
            let request =
                Request { tag: 0, op: io.op, offset: io.offset, length: io.length, fua: io.fua };
            let member = below.get(io.member).ok_or(Errno::NoDevice)?;
            self.submit_for(owner, member, request, 0)?;
        }
        self.held -= next.done.len();
        self.done.extend(next.done.into_iter().map(|tag| Completion { tag, at }));
        Ok(())
    }

    /// Does the work of [`World::submit`], with a vector for the pieces of the request.
    fn send(
        &mut self,
        owner: Owner,
        route: &Route,
        request: Request,
        cost: Ps,
        pieces: &mut Vec<Run>,
    ) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        let mut tables = VecDeque::new();
        match op {
            Op::Flush => pieces.extend((0..self.ports.len()).map(|port| (port, 0, 0))),
            Op::Read | Op::Write => {
                let way = if op == Op::Read { geom::Op::Read } else { geom::Op::Write };
                let ports = &self.ports;
                route.extents(offset, length, way, &mut |_, piece| {
                    match piece {
                        Piece::Store { store, offset, length } => {
                            join(pieces, (store, offset, length));
                        }
                        Piece::Table { store, offset, length } => {
                            let sector = ports.get(store).ok_or(Errno::NoDevice)?.sector;
                            tables.push_back(whole_sectors(store, offset, length, sector)?);
                        }
                        Piece::Zero { .. } | Piece::Rebuilt { .. } => {}
                    }
                    Ok(())
                })?;
            }
        }
        // Blocks of a container may begin and end at any byte of its file, which may end at any.
        let any = op == Op::Read && route.has_tables();
        let ends = route.medium().is_some() && route.base() == 0;
        let last = ends && offset.checked_add(length) == Some(route.length());
        for piece in &mut *pieces {
            let (store, offset, length) = *piece;
            let sector = self.ports.get(store).ok_or(Errno::NoDevice)?.sector;
            let whole = whole_sectors(store, offset, length, sector)?;
            if *piece != whole && !any && !(last && is_whole(offset, sector)) {
                return Err(Errno::Range);
            }
            *piece = whole;
        }
        let through = self.processor.max(self.now).checked_add(cost);
        let through = through.filter(|&at| at <= LATEST).ok_or(Errno::Io)?;
        self.pass_zones(op, pieces)?;
        self.processor = through;
        match tables.pop_front() {
            None => self.issue(owner, (op, fua), pieces),
            Some(first) => {
                let lookup = Lookup { owner, op, fua, tables, pieces: pieces.clone() };
                let lookup = self.lookups.put(lookup);
                self.issue(Owner::Lookup(lookup), (Op::Read, false), &[first]);
            }
        }
        Ok(())
    }

    /// Sends the next read of a table, or the request that waited for the last one.
    fn look_further(&mut self, lookup: usize) {
        let next = self.lookups.get(lookup).and_then(|waiting| waiting.tables.pop_front());
        // The processor may be busy with other requests meanwhile, and those go first.
        self.processor = self.processor.max(self.now);
        if let Some(next) = next {
            self.issue(Owner::Lookup(lookup), (Op::Read, false), &[next]);
        } else if let Some(Lookup { owner, op, fua, pieces, .. }) = self.lookups.take(lookup) {
            self.issue(owner, (op, fua), &pieces);
        }
    }

    /// Sends the commands of a request that has passed the processor.
    fn issue(&mut self, owner: Owner, (op, fua): (Op, bool), pieces: &[Run]) {
        let open = self.open.put(Open { owner, commands: pieces.len(), at: self.processor });
        for &(port, offset, length) in pieces {
            let tag = self.commands.put(open) as u64;
            self.arriving.push_back((
                self.processor,
                port,
                Command { tag, op, offset, length, fua },
            ));
        }
        if pieces.is_empty() {
            self.close(open);
        }
        self.arrive();
    }

    /// Keeps the processor busy for `span`, while drives go on.
    pub fn think(&mut self, span: Ps) {
        self.pass(self.now.saturating_add(span));
    }

    /// Simulates until `least` requests are done or nothing more happens. Appends all completions,
    /// in order of time.
    pub fn wait(&mut self, least: usize, done: &mut Vec<Completion>) {
        while self.done.len() < least {
            let Some(next) = self.next() else { break };
            self.happen(next);
        }
        for completion in self.done.drain(..) {
            for word in [completion.tag, completion.at] {
                self.digest = (self.digest ^ word).wrapping_mul(0x100_0000_01b3);
            }
            done.push(completion);
        }
    }

    /// Simulates up to `until`. Time ends where no request can begin any more.
    pub fn pass(&mut self, until: Ps) {
        let until = until.min(LATEST + 1);
        while let Some(next) = self.next().filter(|&next| next <= until) {
            self.happen(next);
        }
        self.now = self.now.max(until);
    }

    /// The time of the next event, if no request comes before; `None` while everything is at rest.
    pub fn next(&self) -> Option<Ps> {
        let arrival = self.arriving.front().map(|&(at, ..)| at);
        self.ports.iter().filter_map(|port| port.drive.next()).chain(arrival).min()
    }

    /// Handles all events at `at`.
    fn happen(&mut self, at: Ps) {
        debug_assert!(at >= self.now, "time goes back from {} to {at}", self.now);
        self.now = at.max(self.now);
        for port in 0..self.ports.len() {
            if self.ports[port].drive.next().is_some_and(|next| next <= self.now) {
                let mut finished = std::mem::take(&mut self.finished);
                self.ports[port].drive.advance(self.now, &mut finished);
                for completion in finished.drain(..) {
                    self.complete(port, completion);
                }
                self.finished = finished;
                self.feed(port);
            }
        }
        self.arrive();
    }

    /// Moves commands that have passed the processor to their drives' queues.
    fn arrive(&mut self) {
        while let Some(&(at, port, command)) =
            self.arriving.front().filter(|(at, ..)| *at <= self.now)
        {
            debug_assert!(at <= self.now);
            self.arriving.pop_front();
            let Port { drive, queue, in_flight, .. } = &mut self.ports[port];
            if *in_flight < drive.tags() && queue.is_empty() {
                queue.pass(&command);
                *in_flight += 1;
                drive.submit(self.now, command);
            } else {
                queue.push(command);
                self.feed(port);
            }
        }
    }

    /// Gives a drive queued commands, as many as it has tags for.
    fn feed(&mut self, port: usize) {
        let now = self.now;
        let Port { drive, queue, in_flight, .. } = &mut self.ports[port];
        while *in_flight < drive.tags() {
            let Some(command) = queue.pop() else { break };
            *in_flight += 1;
            drive.submit(now, command);
        }
    }

    fn complete(&mut self, port: usize, completion: Completion) {
        self.ports[port].in_flight -= 1;
        let Some(open) =
            usize::try_from(completion.tag).ok().and_then(|tag| self.commands.take(tag))
        else {
            debug_assert!(false, "a drive completes what it was not given, or twice");
            return;
        };
        if let Some(request) = self.open.get(open) {
            request.at = request.at.max(completion.at);
            request.commands -= 1;
            if request.commands == 0 {
                self.close(open);
            }
        }
    }

    fn close(&mut self, open: usize) {
        let Some(Open { owner, at, .. }) = self.open.take(open) else { return };
        match owner {
            Owner::Host(tag) => self.done.push_back(Completion { tag, at }),
            Owner::Lookup(lookup) => self.look_further(lookup),
            Owner::Batch { set, batch } => {
                let next = self.stripes[set].finish(batch);
                // A command inside its member is sent, as the ones before it were.
                let sent = self.go_on(set, next, at);
                debug_assert_eq!(sent, Ok(()), "a member refuses a page of a stripe");
            }
        }
    }
}

/// Appends a run. One that continues the last one on the same drive is a part of that.
fn join(runs: &mut Vec<Run>, (store, offset, length): Run) {
    match runs.iter_mut().rev().find(|(own, ..)| *own == store) {
        Some((_, at, bytes)) if *at + *bytes == offset => *bytes += length,
        _ => runs.push((store, offset, length)),
    }
}

/// The sectors of a drive that a run lies in.
fn whole_sectors(store: usize, offset: u64, length: u64, sector: u64) -> Result<Run, Errno> {
    let start = round_down(offset, sector);
    let end = offset.checked_add(length).and_then(|end| round_up(end, sector));
    let length = end.and_then(|end| end.checked_sub(start)).ok_or(Errno::Range)?;
    Ok((store, start, length))
}

/// Values by number. A number is reused once its value is taken.
struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<usize>,
    used: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { places: Vec::new(), free: Vec::new(), used: 0 }
    }
}

impl<T> Slab<T> {
    fn put(&mut self, thing: T) -> usize {
        self.used += 1;
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[place] = Some(thing);
        place
    }

    fn get(&mut self, place: usize) -> Option<&mut T> {
        self.places.get_mut(place)?.as_mut()
    }

    fn take(&mut self, place: usize) -> Option<T> {
        let thing = self.places.get_mut(place)?.take()?;
        self.free.push(place);
        self.used -= 1;
        Some(thing)
    }
}

#[cfg(test)]
mod tests;

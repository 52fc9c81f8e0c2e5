//! Files and block devices as a rig: one engine over the media of a provider.
//!
//! A request goes down a [`Route`] as in every other engine. Each piece on a medium is one transfer; the request is done when all of
//! them are, at the moment at which the engine says so.

use super::{Done, Op, Request, Rig};
use crate::error::Error;
use std::time::Duration;
use trueline_geom::class;
use trueline_geom::error::Errno;
use trueline_geom::route::{Piece, Route};
use trueline_geom::topology::lcm;
use trueline_host::buffers::Buffers;
use trueline_host::clock;
use trueline_host::engine::{self, Choice, Engine, Finished, Transfer};
use trueline_host::lane::Lane;

/// How a rig is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Requests at a time.
    pub depth: u32,
    /// Bytes of the largest request that is one transfer; larger ones are several.
    pub largest: u64,
    /// Which engine.
    pub engine: Choice,
}

/// The longest transfer, whatever the largest request: so much memory for each request in flight.
const LONGEST: u64 = 16 << 20;

/// A request that is not done.
#[derive(Clone, Copy)]
struct Open {
    tag: u64,
    transfers: usize,
    error: Option<Errno>,
}

/// A provider on real media.
pub struct Real {
    engine: Engine,
    route: Route,
    /// The medium and the byte at which the provider begins, where it is a plain range.
    plain: Option<(usize, u64)>,
    sector: u64,
    /// Bytes of memory of one request.
    place: u64,
    open: Vec<Open>,
    free: Vec<u32>,
    finished: Vec<Finished>,
    pieces: Vec<Transfer>,
    /// Done without a transfer, or before its time.
    early: Vec<Done>,
}

impl Real {
    /// The provider that `route` leads from, in sectors of `sector` bytes, over `lanes`, one for every store of the route.
    pub fn new(route: Route, sector: u64, lanes: Vec<Lane>, shape: Shape) -> Result<Real, Error> {
        let failed = |what: &str, why: &dyn std::fmt::Display| Error(format!("{what}: {why}"));
        let sector = lanes.iter().try_fold(sector.max(1), |all, lane| lcm(all, lane.grain()));
        let sector = sector.ok_or_else(|| failed("open the media", &"their sectors have no common multiple"))?;
        let depth = shape.depth.clamp(1, 4096);
        let longest = shape.largest.clamp(sector, LONGEST.max(sector));
        let buffers = Buffers::new(depth as usize, longest).map_err(|e| failed("reserve memory for requests", &e))?;
        let place = buffers.place() as u64;
        let engine = Engine::new(shape.engine, lanes, buffers, depth).map_err(|e| failed("set up io_uring", &e))?;
        let count = if matches!(engine, Engine::Sync(_)) { 1 } else { depth };
        Ok(Real {
            plain: route.medium().map(|medium| (medium, route.base())),
            engine,
            route,
            sector,
            place,
            open: vec![Open { tag: 0, transfers: 0, error: None }; count as usize],
            free: (0..count).rev().collect(),
            finished: Vec::with_capacity(depth as usize),
            pieces: Vec::new(),
            early: Vec::new(),
        })
    }

    /// The engine's name: `io_uring`, `sync`.
    pub fn engine(&self) -> &'static str {
        self.engine.name()
    }

    /// Asks for a request that is one transfer, `base` bytes further on `lane`: the way of almost every request, one addition.
    #[inline]
    fn start_one(&mut self, slot: u32, (lane, base): (usize, u64), request: Request) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        if offset.checked_add(length).is_none_or(|end| end > self.route.length()) {
            return Err(Errno::Range);
        }
        let (place, length) = (index(u64::from(slot) * self.place)?, u32::try_from(length).map_err(|_| Errno::Range)?);
        let op = if op == Op::Read { engine::Op::Read } else { engine::Op::Write };
        self.engine.push_new(|| Transfer { tag: u64::from(slot), op, lane, offset: base + offset, place, length, fua })
    }

    /// Asks for all transfers of any request, and says how many they are.
    #[inline(never)]
    fn start(&mut self, slot: u32, request: Request) -> Result<usize, Errno> {
        let tag = u64::from(slot);
        if request.op == Op::Flush {
            let lanes = self.engine.lanes().len();
            self.pieces.clear();
            let flush = |lane| Transfer { tag, op: engine::Op::Flush, lane, offset: 0, place: 0, length: 0, fua: request.fua };
            self.pieces.extend((0..lanes).map(flush));
        } else {
            self.split(tag, tag * self.place, request)?;
        }
        self.send(slot)
    }

    /// The transfers of a request that is several.
    fn split(&mut self, tag: u64, first: u64, request: Request) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        let (way, op) = match op {
            Op::Read => (class::Op::Read, engine::Op::Read),
            _ => (class::Op::Write, engine::Op::Write),
        };
        let (pieces, longest) = (&mut self.pieces, self.place);
        pieces.clear();
        self.route.extents(offset, length, way, &mut |done, piece| {
            let Piece::Store { store, mut offset, mut length } = piece else {
                return if way == class::Op::Write { Err(Errno::ReadOnly) } else { Ok(()) };
            };
            let mut done = done;
            while length > 0 {
                // A place in memory is used again by what of a long request does not fit into it.
                let within = done % longest;
                let part = length.min(longest - within);
                let bytes = u32::try_from(part).map_err(|_| Errno::Range)?;
                let place = index(first + within)?;
                pieces.push(Transfer { tag, op, lane: store, offset, place, length: bytes, fua });
                (done, offset, length) = (done + part, offset + part, length - part);
            }
            Ok(())
        })
    }

    /// Asks for the transfers in `pieces`. What could not be asked for is an error of a request that is in flight with the others.
    fn send(&mut self, slot: u32) -> Result<usize, Errno> {
        let mut sent = 0;
        for &piece in &self.pieces {
            match self.engine.push(piece) {
                Ok(()) => sent += 1,
                Err(errno) if sent == 0 => return Err(errno),
                Err(errno) => {
                    self.open[slot as usize].error = Some(errno);
                    break;
                }
            }
        }
        Ok(sent)
    }

    /// Waits until a request is done, and takes its slot: more were pushed than [`Rig::depth`] says.
    #[cold]
    fn make_room(&mut self) -> Result<u32, Errno> {
        let mut early = std::mem::take(&mut self.early);
        let waited = self.collect(1, &mut early);
        self.early = early;
        waited?;
        self.free.pop().ok_or(Errno::Io)
    }

    /// Takes what the engine has done: at least `least` requests, or all there are.
    fn collect(&mut self, least: usize, done: &mut Vec<Done>) -> Result<(), Errno> {
        let enough = done.len() + least.min(self.open.len() - self.free.len());
        let mut want = enough - done.len();
        loop {
            self.finished.clear();
            self.engine.wait(want, &mut self.finished)?;
            let at = clock::now();
            for &Finished { tag, error } in &self.finished {
                let Some(slot) = index(tag).ok().filter(|&slot| slot < self.open.len()) else { return Err(Errno::Io) };
                let open = &mut self.open[slot];
                open.error = open.error.or(error);
                open.transfers -= 1;
                if open.transfers == 0 {
                    done.push(Done { tag: open.tag, at, error: open.error });
                    self.free.push(u32::try_from(slot).map_err(|_| Errno::Io)?);
                }
            }
            if done.len() >= enough {
                return Ok(());
            }
            want = 1;
        }
    }
}

impl Rig for Real {
    fn length(&self) -> u64 {
        self.route.length()
    }

    fn sector(&self) -> u64 {
        self.sector
    }

    fn depth(&self) -> usize {
        self.open.len()
    }

    fn now(&mut self) -> u64 {
        clock::now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.make_room()?,
        };
        self.open[slot as usize] = Open { tag: request.tag, transfers: 1, error: None };
        let started = match self.plain {
            Some(begin) if request.op != Op::Flush && request.length <= self.place => self.start_one(slot, begin, request).map(|()| 1),
            _ => self.start(slot, request),
        };
        match started {
            Ok(1) => {}
            Ok(0) => {
                self.early.push(Done { tag: request.tag, at: clock::now(), error: None });
                self.free.push(slot);
            }
            Ok(transfers) => self.open[slot as usize].transfers = transfers,
            Err(errno) => {
                self.free.push(slot);
                return Err(errno);
            }
        }
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Done>) -> Result<(), Errno> {
        let early = self.early.len();
        if early > 0 {
            done.append(&mut self.early);
        }
        self.collect(least.saturating_sub(early), done)
    }

    fn think(&mut self, _ns: u64) {}

    fn rest(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn is_virtual(&self) -> bool {
        false
    }
}

/// A place in memory.
fn index(n: u64) -> Result<usize, Errno> {
    usize::try_from(n).map_err(|_| Errno::Range)
}

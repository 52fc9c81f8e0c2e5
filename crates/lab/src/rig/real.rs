//! Files and block devices as a rig: one engine over the media of a provider.
//!
//! A request goes down a [`Route`] as in every other engine. Each piece on a medium is one transfer; the request is done when all of
//! them are, at the moment at which the engine says so.

use super::{Done, Op, Request, Rig};
use crate::error::Error;
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::lcm;
use trueline_geom::mapping::geom;
use trueline_geom::mapping::route::{Piece, Route};
use trueline_host::clock;
use trueline_host::disk::buffers::Buffers;
use trueline_host::engine::open_file::OpenFile;
use trueline_host::engine::ring::DEEPEST;
use trueline_host::engine::{self, Choice, Engine, Finished, Transfer};

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

/// What a transfer is of.
#[derive(Clone, Copy, Default)]
struct Of {
    /// The request's tag.
    tag: u64,
    /// The request's place in `several`, unless this is all of it.
    part: Option<usize>,
}

/// A request of several transfers that is not done.
#[derive(Clone, Copy, Default)]
struct Several {
    /// Transfers that are not done.
    left: usize,
    error: Option<Errno>,
}

/// A provider on real media.
pub struct Real {
    engine: Engine<Of>,
    route: Route,
    /// The medium and the byte at which the provider begins, where it is a plain range.
    plain: Option<(usize, u64)>,
    sector: u64,
    /// Bytes of the longest transfer.
    longest: u64,
    depth: usize,
    /// Requests that are not done.
    in_flight: usize,
    /// Those of several transfers; the places of others are in `free`.
    several: Vec<Several>,
    free: Vec<usize>,
    pieces: Vec<Transfer<Of>>,
    /// Done without a transfer, or before its time.
    early: Vec<Done>,
}

impl Real {
    /// The provider that `route` leads from, in sectors of `sector` bytes, over `lanes`, one for every store of the route.
    pub fn new(route: Route, sector: u64, lanes: Vec<OpenFile>, shape: Shape) -> Result<Real, Error> {
        let failed = |what: &str, why: &dyn std::fmt::Display| Error(format!("{what}: {why}"));
        let sector = lanes.iter().try_fold(sector.max(1), |all, lane| lcm(all, lane.grain()));
        let sector = sector.ok_or_else(|| failed("open the media", &"their sectors have no common multiple"))?;
        let depth = shape.depth.clamp(1, DEEPEST) as usize;
        let longest = shape.largest.clamp(sector, LONGEST.max(sector));
        // Every medium may be asked for a part of every request.
        let transfers = depth.saturating_mul(lanes.len()).min(DEEPEST as usize);
        let buffers = Buffers::new(transfers, longest).map_err(|e| failed("reserve memory for requests", &e))?;
        let longest = buffers.place() as u64;
        let engine = Engine::new(shape.engine, lanes, buffers).map_err(|e| failed("set up io_uring", &e))?;
        Ok(Real {
            plain: route.medium().map(|medium| (medium, route.base())),
            depth: engine.depth().min(depth),
            engine,
            route,
            sector,
            longest,
            in_flight: 0,
            several: Vec::new(),
            free: Vec::new(),
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
    fn push_one(&mut self, (lane, base): (usize, u64), request: Request) -> Result<(), Errno> {
        let Request { tag, op, offset, length, fua } = request;
        if offset.checked_add(length).is_none_or(|end| end > self.route.length()) {
            return Err(Errno::Range);
        }
        let length = u32::try_from(length).map_err(|_| Errno::Range)?;
        let op = if op == Op::Read { engine::Op::Read } else { engine::Op::Write };
        if self.engine.is_full() {
            self.make_room()?;
        }
        self.engine.push(Transfer { tag: Of { tag, part: None }, op, lane, offset: base + offset, length, fua })?;
        self.in_flight += 1;
        Ok(())
    }

    /// Asks for any request. If one of its transfers cannot be asked for, that is the request's error: at once, or when those before it
    /// are done.
    #[inline(never)]
    fn push_several(&mut self, request: Request) -> Result<(), Errno> {
        let place = self.free.pop().unwrap_or(self.several.len());
        self.several.resize(self.several.len().max(place + 1), Several::default());
        // One more than there are, until all are asked for.
        self.several[place] = Several { left: 1, error: None };
        let tag = request.tag;
        let sent = self.split(Of { tag, part: Some(place) }, request).and_then(|()| self.send(place));
        let Several { left, error } = &mut self.several[place];
        *left -= 1;
        if *left > 0 {
            *error = error.or(sent.err());
            self.in_flight += 1;
            return Ok(());
        }
        self.free.push(place);
        sent?;
        self.early.push(Done { tag, at: clock::now(), error: *error });
        Ok(())
    }

    /// The transfers of a request, into `pieces`.
    fn split(&mut self, tag: Of, request: Request) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        let (pieces, longest) = (&mut self.pieces, self.longest);
        pieces.clear();
        let (way, op) = match op {
            Op::Read => (geom::Op::Read, engine::Op::Read),
            Op::Write => (geom::Op::Write, engine::Op::Write),
            Op::Flush => {
                let flush = |lane| Transfer { tag, op: engine::Op::Flush, lane, offset: 0, length: 0, fua };
                pieces.extend((0..self.engine.lanes().len()).map(flush));
                return Ok(());
            }
        };
        self.route.extents(offset, length, way, &mut |_, piece| {
            let Piece::Store { store, mut offset, mut length } = piece else {
                return if way == geom::Op::Write { Err(Errno::ReadOnly) } else { Ok(()) };
            };
            while length > 0 {
                let part = length.min(longest);
                let bytes = u32::try_from(part).map_err(|_| Errno::Range)?;
                pieces.push(Transfer { tag, op, lane: store, offset, length: bytes, fua });
                (offset, length) = (offset + part, length - part);
            }
            Ok(())
        })
    }

    /// Asks for the transfers in `pieces`, of the request in this place of `several`.
    fn send(&mut self, place: usize) -> Result<(), Errno> {
        for at in 0..self.pieces.len() {
            if self.engine.is_full() {
                self.make_room()?;
            }
            self.engine.push(self.pieces[at])?;
            self.several[place].left += 1;
        }
        Ok(())
    }

    /// Waits until the engine takes a transfer more: there are more than it does at a time.
    #[cold]
    fn make_room(&mut self) -> Result<(), Errno> {
        let mut early = std::mem::take(&mut self.early);
        let mut waited = Ok(());
        while waited.is_ok() && self.engine.is_full() {
            waited = self.take(1, &mut early);
        }
        self.early = early;
        waited
    }

    /// Takes what the engine has done, at least `least` transfers, and appends the requests that are done with them.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the way back of every request; `make_room` has the other copy")]
    fn take(&mut self, least: usize, done: &mut Vec<Done>) -> Result<(), Errno> {
        self.engine.wait(least)?;
        let at = clock::now();
        self.engine.take(|Finished { tag: Of { tag, part }, mut error, .. }| {
            if let Some(place) = part {
                let several = &mut self.several[place];
                several.left -= 1;
                several.error = several.error.or(error);
                if several.left > 0 {
                    return;
                }
                error = several.error;
                self.free.push(place);
            }
            self.in_flight -= 1;
            done.push(Done { tag, at, error });
        });
        Ok(())
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
        self.depth
    }

    fn now(&mut self) -> u64 {
        clock::now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        match self.plain {
            Some(begin) if request.op != Op::Flush && request.length <= self.longest => self.push_one(begin, request),
            _ => self.push_several(request),
        }
    }

    fn wait(&mut self, least: usize, done: &mut Vec<Done>) -> Result<(), Errno> {
        let enough = done.len() + least.min(self.early.len() + self.in_flight);
        done.append(&mut self.early);
        loop {
            self.take(enough.saturating_sub(done.len()), done)?;
            if done.len() >= enough {
                return Ok(());
            }
        }
    }

    fn think(&mut self, _ns: u64) {}

    fn rest(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn is_virtual(&self) -> bool {
        false
    }
}

//! Files and block devices as a rig: one engine over the media of a provider.
//!
//! A request goes down a [`Route`] as in every other engine. Each piece on a medium is one
//! transfer; the request is done when all of The request is done when all of them are, at the time
//! the engine reports.

use super::{FinishedRequest, Op, Request, Rig};
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

/// The setup of a rig: depth, longest request, engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RigSetup {
    /// The most requests in flight.
    pub depth: u32,
    /// The size in bytes of the longest request that is a single transfer; longer ones are split.
    pub largest: u64,
    /// The engine that performs the transfers.
    pub engine: Choice,
}

/// The longest transfer in bytes, whatever the longest request: so much memory is taken for each
/// request in flight.
const LONGEST: u64 = 16 << 20;

/// The request that a transfer belongs to.
#[derive(Clone, Copy, Default)]
struct Of {
    /// The tag of the request.
    tag: u64,
    /// The request's index in `several`; `None` if this transfer is all of it.
    part: Option<usize>,
}

/// A request of several transfers that is not done.
#[derive(Clone, Copy, Default)]
struct Several {
    /// Transfers that are not yet done.
    left: usize,
    error: Option<Errno>,
}

/// A provider on real media.
pub struct Real {
    engine: Engine<Of>,
    route: Route,
    /// The medium and the first byte of the provider, if it is a plain range of one medium.
    plain: Option<(usize, u64)>,
    sector: u64,
    /// The longest transfer in bytes.
    longest: u64,
    depth: usize,
    /// Requests in flight, not counting those in `early`.
    in_flight: usize,
    /// Requests of several transfers; `free` lists the unused entries.
    several: Vec<Several>,
    free: Vec<usize>,
    pieces: Vec<Transfer<Of>>,
    /// Completions without a transfer, and those taken while making room in the engine.
    early: Vec<FinishedRequest>,
}

impl Real {
    /// The provider that `route` leads from, in sectors of `sector` bytes. `files` has one open
    /// file for every store of the route.
    pub fn new(
        route: Route,
        sector: u64,
        files: Vec<OpenFile>,
        shape: RigSetup,
    ) -> Result<Real, Error> {
        let failed = |what: &str, why: &dyn std::fmt::Display| Error::new(format!("{what}: {why}"));
        let sector = files.iter().try_fold(sector.max(1), |all, file| lcm(all, file.grain()));
        let sector = sector
            .ok_or_else(|| failed("open the media", &"their sectors have no common multiple"))?;
        let depth = shape.depth.clamp(1, DEEPEST) as usize;
        let longest = shape.largest.clamp(sector, LONGEST.max(sector));
        // Every medium may have a part of every request in flight.
        let transfers = depth.saturating_mul(files.len()).min(DEEPEST as usize);
        let buffers = Buffers::new(transfers, longest)
            .map_err(|e| failed("reserve memory for requests", &e))?;
        let longest = buffers.place() as u64;
        let engine =
            Engine::new(shape.engine, files, buffers).map_err(|e| failed("set up io_uring", &e))?;
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

    /// Submits a request that is one transfer, at `base` bytes further on the medium `file`. Almost
    /// every request goes this way, at the cost of one addition.
    #[inline]
    fn push_one(&mut self, (file, base): (usize, u64), request: Request) -> Result<(), Errno> {
        let Request { tag, op, offset, length, fua } = request;
        if offset.checked_add(length).is_none_or(|end| end > self.route.length()) {
            return Err(Errno::Range);
        }
        let length = u32::try_from(length).map_err(|_| Errno::Range)?;
        let op = if op == Op::Read { engine::Op::Read } else { engine::Op::Write };
        if self.engine.is_full() {
            self.make_room()?;
        }
        self.engine.push(Transfer {
            tag: Of { tag, part: None },
            op,
            file,
            offset: base + offset,
            length,
            fua,
        })?;
        self.in_flight += 1;
        Ok(())
    }

    /// Submits any request. An error of one of its transfers is the request's error: returned at
    /// once, or with the completion of the transfers already submitted.
    #[inline(never)]
    fn push_several(&mut self, request: Request) -> Result<(), Errno> {
        let place = self.free.pop().unwrap_or(self.several.len());
        self.several.resize(self.several.len().max(place + 1), Several::default());
        // One more than submitted, so that the request cannot complete before all transfers are
        // submitted.
        self.several[place] = Several { left: 1, error: None };
        let tag = request.tag;
        let sent =
            self.split(Of { tag, part: Some(place) }, request).and_then(|()| self.send(place));
        let Several { left, error } = &mut self.several[place];
        *left -= 1;
        if *left > 0 {
            *error = error.or(sent.err());
            self.in_flight += 1;
            return Ok(());
        }
        self.free.push(place);
        sent?;
        self.early.push(FinishedRequest { tag, at: clock::now(), error: *error });
        Ok(())
    }

    /// Splits a request into transfers, in `pieces`.
    fn split(&mut self, tag: Of, request: Request) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        let (pieces, longest) = (&mut self.pieces, self.longest);
        pieces.clear();
        let (way, op) = match op {
            Op::Read => (geom::Op::Read, engine::Op::Read),
            Op::Write => (geom::Op::Write, engine::Op::Write),
            Op::Flush => {
                let flush =
                    |file| Transfer { tag, op: engine::Op::Flush, file, offset: 0, length: 0, fua };
                pieces.extend((0..self.engine.files().len()).map(flush));
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
                pieces.push(Transfer { tag, op, file: store, offset, length: bytes, fua });
                (offset, length) = (offset + part, length - part);
            }
            Ok(())
        })
    }

    /// Submits the transfers in `pieces` for the request at `place` of `several`.
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

    /// Waits until the engine accepts another transfer.
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

    /// Takes finished transfers from the engine, at least `least`, and appends the requests
    /// completed by them.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "the way back of every request; `make_room` has the other copy"
    )]
    fn take(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
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
            done.push(FinishedRequest { tag, at, error });
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
            Some(begin) if request.op != Op::Flush && request.length <= self.longest => {
                self.push_one(begin, request)
            }
            _ => self.push_several(request),
        }
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
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

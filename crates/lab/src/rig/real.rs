//! Files, block devices and exports of NBD servers as a rig: one engine over the media of a
//! provider.
//!
//! A request goes down a [`Route`] as in every other engine. Each piece on a medium is one
//! transfer; the request is done when all of them are, at the time the engine reports.
//!
//! Pages of a container's tables that the route fetches are transfers too, which the others of the
//! request wait for. The route has read them by then, through the page cache, to know where the
//! others lie; the transfer is the read that a program has to do which finds them in no cache.

use super::{FinishedRequest, Op, Request, Rig};
use crate::error::Error;
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{lcm, round_down, round_up};
use trueline_geom::mapping::geom;
use trueline_geom::mapping::route::{Piece, Route};
use trueline_geom::mapping::tables::PAGE;
use trueline_host::clock;
use trueline_host::disk::buffers::Buffers;
use trueline_host::engine::open_file::OpenFile;
use trueline_host::engine::ring::DEEPEST;
use trueline_host::engine::{self, Choice, Engine, Finished, Transfer};
use trueline_host::nbd::client::pipeline::Pipeline;
use trueline_host::process::signal;

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
#[derive(Default)]
struct Several {
    /// Transfers that are not yet done.
    left: usize,
    error: Option<Errno>,
    /// Transfers that wait for those of tables.
    later: Vec<Transfer<Of>>,
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
    /// Reads of tables that the request in `pieces` waits for.
    tables: Vec<Transfer<Of>>,
    /// Requests in `several` whose tables are read.
    looked_up: Vec<usize>,
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
        let largest = if route.has_tables() { shape.largest.max(PAGE) } else { shape.largest };
        let longest = largest.clamp(sector, LONGEST.max(sector));
        // Every medium may have a part of every request in flight.
        let transfers = depth.saturating_mul(files.len()).min(DEEPEST as usize);
        let buffers = Buffers::new(transfers, longest)
            .map_err(|e| failed("reserve memory for requests", &e))?;
        let longest = buffers.place() as u64;
        let engine =
            Engine::new(shape.engine, files, buffers).map_err(|e| failed("set up io_uring", &e))?;
        Ok(Real::over(engine, route, sector, longest, depth))
    }

    /// The provider that `route` leads from on the export of the NBD server at `uri`, in sectors of
    /// `sector` bytes. `writes`: it will be written. `length`: the length of the export when it was
    /// looked at; one of another length is refused.
    pub fn of_export(
        route: Route,
        sector: u64,
        uri: &str,
        writes: bool,
        length: u64,
        shape: RigSetup,
    ) -> Result<Real, Error> {
        let depth = shape.depth.clamp(1, DEEPEST) as usize;
        let largest = shape.largest.clamp(sector, LONGEST.max(sector));
        let export = Pipeline::open(uri, writes, depth, largest, length, signal::happened)
            .map_err(|e| Error::new(e.to_string()))?;
        let longest = export.longest();
        Ok(Real::over(Engine::Export(Box::new(export)), route, sector, longest, depth))
    }

    /// The provider that `route` leads from, over an engine for transfers of up to `longest` bytes.
    fn over(engine: Engine<Of>, route: Route, sector: u64, longest: u64, depth: usize) -> Real {
        Real {
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
            tables: Vec::new(),
            looked_up: Vec::new(),
            early: Vec::new(),
        }
    }

    /// True if writes to an export had to wait until reads were answered.
    pub fn is_held_back(&self) -> bool {
        matches!(&self.engine, Engine::Export(export) if export.is_held_back())
    }

    /// The engine's name: `io_uring`, `sync`, `nbd`.
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
        if place == self.several.len() {
            self.several.push(Several::default());
        }
        // One more than submitted, so that the request cannot complete before all transfers are
        // submitted.
        self.several[place] = Several { left: 1, ..Several::default() };
        let tag = request.tag;
        let split = self.split(Of { tag, part: Some(place) }, request);
        if split.is_ok() && !self.tables.is_empty() {
            std::mem::swap(&mut self.tables, &mut self.pieces);
            self.several[place].later = std::mem::take(&mut self.tables);
        }
        let sent = split.and_then(|()| self.send(place));
        let is_under_way = self.is_under_way(place, sent.err());
        let Several { error, later, .. } = &self.several[place];
        let waits = error.is_none() && !later.is_empty();
        if is_under_way || waits {
            self.in_flight += 1;
            // Its tables are read already, if the engine was full.
            self.looked_up.extend((!is_under_way).then_some(place));
            return Ok(());
        }
        self.free.push(place);
        sent?;
        let error = self.several[place].error;
        self.early.push(FinishedRequest { tag, at: clock::now(), error });
        Ok(())
    }

    /// True if transfers of the request at `place` of `several` are in flight after some were
    /// submitted, which may have failed by `error`.
    fn is_under_way(&mut self, place: usize, error: Option<Errno>) -> bool {
        let several = &mut self.several[place];
        several.left -= 1;
        several.error = several.error.or(error);
        several.left > 0
    }

    /// Submits what waited for tables, of the requests whose tables are read.
    #[cold]
    fn go_on(&mut self, done: &mut Vec<FinishedRequest>) {
        while let Some(place) = self.looked_up.pop() {
            self.several[place].left = 1;
            self.pieces = std::mem::take(&mut self.several[place].later);
            let tag = self.pieces.first().map_or(0, |transfer| transfer.tag.tag);
            let sent = self.send(place);
            if !self.is_under_way(place, sent.err()) {
                self.free.push(place);
                self.in_flight -= 1;
                let error = self.several[place].error;
                done.push(FinishedRequest { tag, at: clock::now(), error });
            }
        }
    }

    /// Splits a request into transfers, in `pieces`.
    fn split(&mut self, tag: Of, request: Request) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        let (pieces, tables) = (&mut self.pieces, &mut self.tables);
        let (longest, sector, engine) = (self.longest, self.sector, &self.engine);
        pieces.clear();
        tables.clear();
        let (way, op) = match op {
            Op::Read => (geom::Op::Read, engine::Op::Read),
            Op::Write => (geom::Op::Write, engine::Op::Write),
            Op::Flush => {
                let flush =
                    |file| Transfer { tag, op: engine::Op::Flush, file, offset: 0, length: 0, fua };
                pieces.extend((0..engine.file_count()).map(flush));
                return Ok(());
            }
        };
        self.route.extents(offset, length, way, &mut |_, piece| {
            let (list, file, op, start, end) = match piece {
                Piece::Store { store, offset, length } => {
                    (&mut *pieces, store, op, offset, offset.checked_add(length))
                }
                Piece::Table { store, offset, length } => {
                    // Whole sectors of it, as far as the file has them.
                    let all = engine.file_length(store).ok_or(Errno::NoDevice)?;
                    let end = round_up(offset.saturating_add(length), sector);
                    let end = end.filter(|&end| end <= all).unwrap_or(round_down(all, sector));
                    (&mut *tables, store, engine::Op::Read, round_down(offset, sector), Some(end))
                }
                _ if way == geom::Op::Write => return Err(Errno::ReadOnly),
                _ => return Ok(()),
            };
            let (mut offset, end) = (start, end.ok_or(Errno::Range)?);
            while offset < end {
                let part = (end - offset).min(longest);
                let length = u32::try_from(part).map_err(|_| Errno::Range)?;
                list.push(Transfer { tag, op, file, offset, length, fua });
                offset += part;
            }
            Ok(())
        })
    }

    /// Submits the transfers in `pieces` for the request at `place` of `several`.
    fn send(&mut self, place: usize) -> Result<(), Errno> {
        // Other requests that go on while room is made have pieces of their own.
        let pieces = std::mem::take(&mut self.pieces);
        let sent = pieces.iter().try_for_each(|transfer| {
            if self.engine.is_full() {
                self.make_room()?;
            }
            self.engine.push(*transfer)?;
            self.several[place].left += 1;
            Ok(())
        });
        self.pieces = pieces;
        sent
    }

    /// Waits until the engine accepts another transfer.
    #[cold]
    fn make_room(&mut self) -> Result<(), Errno> {
        let mut early = std::mem::take(&mut self.early);
        let mut waited = Ok(());
        while waited.is_ok() && self.engine.is_full() {
            waited = self.take(1, &mut early);
        }
        early.append(&mut self.early);
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
                if several.error.is_none() && !several.later.is_empty() {
                    self.looked_up.push(place);
                    return;
                }
                error = several.error;
                self.free.push(place);
            }
            self.in_flight -= 1;
            done.push(FinishedRequest { tag, at, error });
        });
        if !self.looked_up.is_empty() {
            self.go_on(done);
        }
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
            if !self.looked_up.is_empty() {
                self.go_on(done);
            }
            self.take(enough.saturating_sub(done.len()), done)?;
            done.append(&mut self.early);
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

/// The time between two looks at an interrupt while a drive rests, in ns.
const REST_TICK: u64 = 20_000_000;

/// Leaves the drives alone for `ns`, or until `goes_on` is false.
pub fn rest(ns: u64, goes_on: &mut dyn FnMut() -> bool) {
    let mut left = ns;
    while left > 0 && goes_on() {
        let now = left.min(REST_TICK);
        std::thread::sleep(Duration::from_nanos(now));
        left -= now;
    }
}

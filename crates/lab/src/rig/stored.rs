//! A provider over stores as a rig. Every request is done synchronously when submitted, by the
//! route that all commands take. Over memory it measures the cost of our own layers.

use super::{FinishedRequest, Op, Request, Rig};
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::is_whole;
use trueline_geom::mapping::route::Route;
use trueline_host::clock;

/// A provider over stores.
pub struct Stored<'a> {
    stores: &'a [Box<dyn Store>],
    route: Route,
    sector: u64,
    /// A buffer as long as the longest request so far.
    buffer: Vec<u8>,
    done: Vec<FinishedRequest>,
}

/// The longest request in bytes.
const LONGEST: usize = 64 << 20;

impl<'a> Stored<'a> {
    /// The provider that `route` leads from, in sectors of `sector` bytes.
    pub fn new(stores: &'a [Box<dyn Store>], route: Route, sector: u64) -> Stored<'a> {
        Stored { stores, route, sector, buffer: Vec::new(), done: Vec::new() }
    }

    fn at_once(&mut self, request: Request) -> Result<(), Errno> {
        let Request { op, offset, length, fua, .. } = request;
        if op != Op::Flush && !(is_whole(offset, self.sector) && is_whole(length, self.sector)) {
            return Err(Errno::Unaligned);
        }
        let flush = || self.stores.iter().try_for_each(|store| store.flush());
        if op == Op::Flush {
            return flush();
        }
        let length =
            usize::try_from(length).ok().filter(|&length| length <= LONGEST).ok_or(Errno::Range)?;
        if self.buffer.len() < length {
            // Not zeros: writes of zeros may be cheaper.
            self.buffer.extend((self.buffer.len()..length).map(|n| n.to_le_bytes()[0] ^ 0x5a));
        }
        match op {
            Op::Write => self.route.write_at(self.stores, &self.buffer[..length], offset)?,
            _ => self.route.read_at(self.stores, &mut self.buffer[..length], offset)?,
        }
        if op == Op::Write && fua { flush() } else { Ok(()) }
    }
}

impl Rig for Stored<'_> {
    fn length(&self) -> u64 {
        self.route.length()
    }

    fn sector(&self) -> u64 {
        self.sector
    }

    fn depth(&self) -> usize {
        1
    }

    fn now(&mut self) -> u64 {
        clock::now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        self.at_once(request)?;
        self.done.push(FinishedRequest { tag: request.tag, at: 0, error: None });
        Ok(())
    }

    fn wait(&mut self, _least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        let at = clock::now();
        done.extend(self.done.drain(..).map(|one| FinishedRequest { at, ..one }));
        Ok(())
    }

    fn think(&mut self, _ns: u64) {}

    fn rest(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }

    fn is_virtual(&self) -> bool {
        false
    }
}

//! What a host has in its drive: requests that are waited for, and requests that are not.

use super::numbered::Numbered;
use crate::error::Error;
use crate::rig::{Done, Op, Request, Rig};

/// A place for a request that is not done.
struct Open {
    /// What it is called: its place, and above how often that was used before. Nobody is called the same again.
    tag: u64,
    offset: u64,
    length: u64,
}

/// By how much the tags of one place differ.
const AGAIN: u64 = 1 << 32;

/// A rig, and what was asked of it that is not done.
pub(crate) struct Queue<'a> {
    rig: &'a mut dyn Rig,
    /// What is not done, and places for more.
    open: Vec<Open>,
    free: Vec<u32>,
    bytes: u64,
    /// First byte → tag: what is being written is not written again before it is done (`B_BUSY`, `PG_writeback`).
    busy: Numbered<u64, u64>,
    done: Vec<Done>,
    failed: Option<Error>,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(rig: &'a mut dyn Rig) -> Queue<'a> {
        Queue { rig, open: Vec::new(), free: Vec::new(), bytes: 0, busy: Numbered::default(), done: Vec::new(), failed: None }
    }

    /// Bytes of the provider.
    pub(crate) fn length(&self) -> u64 {
        self.rig.length()
    }

    /// Its sector.
    pub(crate) fn sector(&self) -> u64 {
        self.rig.sector()
    }

    pub(crate) fn now(&mut self) -> u64 {
        self.rig.now()
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.rig.is_virtual()
    }

    /// The host computes, and drives go on.
    pub(crate) fn think(&mut self, ns: u64) {
        self.rig.think(ns);
    }

    /// Asks, once what was last asked of the same place is done. The tag is for [`Queue::finish`].
    pub(crate) fn begin(&mut self, op: Op, offset: u64, length: u64) -> Result<u64, Error> {
        if let Some(&tag) = self.busy.get(&offset) {
            self.finish(tag)?;
        }
        self.settle(self.rig.depth().saturating_sub(1))?;
        let place = self.free.pop().unwrap_or_else(|| self.room());
        let own = &mut self.open[place as usize];
        (own.offset, own.length) = (offset, length);
        let tag = own.tag;
        if let Err(errno) = self.rig.push(Request { tag, op, offset, length, fua: false }) {
            self.free.push(place);
            return Err(Error::io(attempt(op), offset, errno));
        }
        self.bytes += length;
        if op == Op::Write {
            self.busy.insert(offset, tag);
        }
        Ok(tag)
    }

    /// A place more.
    fn room(&mut self) -> u32 {
        let place = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.open.push(Open { tag: place.into(), offset: 0, length: 0 });
        place
    }

    /// Asks, and returns when it is done.
    pub(crate) fn wait_for(&mut self, op: Op, offset: u64, length: u64) -> Result<(), Error> {
        let tag = self.begin(op, offset, length)?;
        self.finish(tag)
    }

    /// Returns when `tag` is done.
    pub(crate) fn finish(&mut self, tag: u64) -> Result<(), Error> {
        while place(&self.open, tag).is_some() {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns when at most `most` are not done.
    pub(crate) fn settle(&mut self, most: usize) -> Result<(), Error> {
        while self.in_flight() > most {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// How many are not done, as far as is known.
    pub(crate) fn in_flight(&self) -> usize {
        self.open.len() - self.free.len()
    }

    /// Bytes of them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes note of what is done by now.
    pub(crate) fn poll(&mut self) -> Result<(), Error> {
        self.gather(0)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns when at least one more is done, if anything is in flight.
    pub(crate) fn wait_some(&mut self) -> Result<(), Error> {
        if self.in_flight() > 0 {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// At least one must be done.
    fn wait(&mut self) -> Result<(), Error> {
        let before = self.in_flight();
        self.gather(1)?;
        if self.in_flight() == before {
            return Err(Error(format!("wait for {before} requests: they were never answered")));
        }
        Ok(())
    }

    fn gather(&mut self, least: usize) -> Result<(), Error> {
        let waiting = self.in_flight();
        self.rig.wait(least, &mut self.done).map_err(|errno| Error(format!("wait for {waiting} requests: {errno}")))?;
        for Done { tag, error, .. } in self.done.drain(..) {
            let Some(place) = place(&self.open, tag) else { continue };
            let own = &mut self.open[place as usize];
            let (offset, length) = (own.offset, own.length);
            own.tag = tag.wrapping_add(AGAIN);
            self.free.push(place);
            self.bytes -= length;
            if self.busy.get(&offset) == Some(&tag) {
                self.busy.remove(&offset);
            }
            if let Some(errno) = error {
                self.failed.get_or_insert_with(|| Error::io("a request", offset, errno));
            }
        }
        Ok(())
    }
}

/// The place of what is called `tag`, while it is not done.
fn place(open: &[Open], tag: u64) -> Option<u32> {
    let place = u32::try_from(tag % AGAIN).ok()?;
    open.get(place as usize).filter(|open| open.tag == tag).map(|_| place)
}

fn attempt(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    }
}

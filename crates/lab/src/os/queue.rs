//! The queue of a host's requests to its drive, waited for or not.

use super::numbered::Numbered;
use crate::error::Error;
use crate::rig::{FinishedRequest, Op, Request, Rig};

/// A slot for a request in flight.
struct Open {
    /// The tag of the slot's current request: the slot's index, plus [`AGAIN`] for every earlier
    /// use. No tag is used twice.
    tag: u64,
    offset: u64,
    length: u64,
}

/// The distance between two tags of one slot.
const AGAIN: u64 = 1 << 32;

/// A rig and the requests in flight on it.
pub(crate) struct Queue<'a> {
    rig: &'a mut dyn Rig,
    /// The slots, used and free, and the indices of the free ones.
    open: Vec<Open>,
    free: Vec<u32>,
    bytes: u64,
    /// Tags of writes in flight by first byte: a block under write is not written again before that
    /// is done (`B_BUSY`, `PG_writeback`).
    busy: Numbered<u64, u64>,
    done: Vec<FinishedRequest>,
    failed: Option<Error>,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(rig: &'a mut dyn Rig) -> Queue<'a> {
        Queue {
            rig,
            open: Vec::new(),
            free: Vec::new(),
            bytes: 0,
            busy: Numbered::default(),
            done: Vec::new(),
            failed: None,
        }
    }

    /// The size of the provider in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.rig.length()
    }

    /// The sector size in bytes.
    pub(crate) fn sector(&self) -> u64 {
        self.rig.sector()
    }

    pub(crate) fn now(&mut self) -> u64 {
        self.rig.now()
    }

    pub(crate) fn is_virtual(&self) -> bool {
        self.rig.is_virtual()
    }

    /// Spends `ns` of computing, while the drives go on.
    pub(crate) fn think(&mut self, ns: u64) {
        self.rig.think(ns);
    }

    /// Starts a request, after the last write at the same offset is done. Returns the tag for
    /// [`Queue::finish`].
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

    /// Adds a free slot, and returns its index.
    fn room(&mut self) -> u32 {
        let place = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.open.push(Open { tag: place.into(), offset: 0, length: 0 });
        place
    }

    /// Starts a request, and waits until it is done.
    pub(crate) fn wait_for(&mut self, op: Op, offset: u64, length: u64) -> Result<(), Error> {
        let tag = self.begin(op, offset, length)?;
        self.finish(tag)
    }

    /// Waits until the request `tag` is done. Returns the first error of any request since the last
    /// wait.
    pub(crate) fn finish(&mut self, tag: u64) -> Result<(), Error> {
        while place(&self.open, tag).is_some() {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until at most `most` requests are in flight.
    pub(crate) fn settle(&mut self, most: usize) -> Result<(), Error> {
        while self.in_flight() > most {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Requests in flight, counting those whose completion is not yet known.
    pub(crate) fn in_flight(&self) -> usize {
        self.open.len() - self.free.len()
    }

    /// Bytes of the requests in flight.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Collects the requests that are done by now, without waiting.
    pub(crate) fn poll(&mut self) -> Result<(), Error> {
        self.gather(0)?;
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits until at least one more request is done, if any is in flight.
    pub(crate) fn wait_some(&mut self) -> Result<(), Error> {
        if self.in_flight() > 0 {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Waits for at least one completion. It is an error if none comes.
    fn wait(&mut self) -> Result<(), Error> {
        let before = self.in_flight();
        self.gather(1)?;
        if self.in_flight() == before {
            return Err(Error::new(format!(
                "wait for {before} requests: they were never answered"
            )));
        }
        Ok(())
    }

    fn gather(&mut self, least: usize) -> Result<(), Error> {
        let waiting = self.in_flight();
        self.rig
            .wait(least, &mut self.done)
            .map_err(|errno| Error::new(format!("wait for {waiting} requests: {errno}")))?;
        for FinishedRequest { tag, error, .. } in self.done.drain(..) {
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

/// The slot of the request `tag`; `None` if it is done.
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

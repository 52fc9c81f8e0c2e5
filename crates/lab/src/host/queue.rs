//! What a host has in its drive: requests that are waited for, and requests that are not.

use crate::error::Error;
use crate::rig::{Done, Op, Request, Rig};
use std::collections::HashMap;

/// A rig, and what was asked of it that is not done.
pub(super) struct Queue<'a> {
    rig: &'a mut dyn Rig,
    next: u64,
    /// Tag → the first byte.
    open: HashMap<u64, u64>,
    /// First byte → tag: what is being written is not written again before it is done (`B_BUSY`, `PG_writeback`).
    busy: HashMap<u64, u64>,
    done: Vec<Done>,
    failed: Option<Error>,
}

impl<'a> Queue<'a> {
    pub(super) fn new(rig: &'a mut dyn Rig) -> Queue<'a> {
        Queue { rig, next: 0, open: HashMap::new(), busy: HashMap::new(), done: Vec::new(), failed: None }
    }

    /// Bytes of the provider.
    pub(super) fn length(&self) -> u64 {
        self.rig.length()
    }

    /// Its sector.
    pub(super) fn sector(&self) -> u64 {
        self.rig.sector()
    }

    pub(super) fn now(&mut self) -> u64 {
        self.rig.now()
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.rig.is_virtual()
    }

    /// The host computes, and drives go on.
    pub(super) fn think(&mut self, ns: u64) {
        self.rig.think(ns);
    }

    /// Asks, once what was last asked of the same place is done. The tag is for [`Queue::finish`].
    pub(super) fn begin(&mut self, op: Op, offset: u64, length: u64) -> Result<u64, Error> {
        if let Some(&tag) = self.busy.get(&offset) {
            self.finish(tag)?;
        }
        self.settle(self.rig.depth().saturating_sub(1))?;
        let tag = self.next;
        self.next += 1;
        self.rig.push(Request { tag, op, offset, length, fua: false }).map_err(|errno| Error::io(attempt(op), offset, errno))?;
        self.open.insert(tag, offset);
        if op == Op::Write {
            self.busy.insert(offset, tag);
        }
        Ok(tag)
    }

    /// Asks, and returns when it is done.
    pub(super) fn wait_for(&mut self, op: Op, offset: u64, length: u64) -> Result<(), Error> {
        let tag = self.begin(op, offset, length)?;
        self.finish(tag)
    }

    /// Returns when `tag` is done.
    pub(super) fn finish(&mut self, tag: u64) -> Result<(), Error> {
        while self.open.contains_key(&tag) {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Returns when at most `most` are not done.
    pub(super) fn settle(&mut self, most: usize) -> Result<(), Error> {
        while self.open.len() > most {
            self.wait()?;
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Takes note of what is done by now, if anything must be waited for: at least one.
    fn wait(&mut self) -> Result<(), Error> {
        let waiting = self.open.len();
        let lost = |what: &str| Error(format!("wait for {waiting} requests: {what}"));
        self.rig.wait(1, &mut self.done).map_err(|errno| lost(&errno.to_string()))?;
        if self.done.is_empty() {
            return Err(lost("they were never answered"));
        }
        for Done { tag, error, .. } in self.done.drain(..) {
            let Some(offset) = self.open.remove(&tag) else { continue };
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

fn attempt(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    }
}

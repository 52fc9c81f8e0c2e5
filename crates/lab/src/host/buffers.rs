//! A buffer cache as BSD's: buffers at places of the provider, dirty ones kept by whom they belong to, each owner with the second
//! in which a syncer writes all of his.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// To whom buffers belong: a file, a directory, or the device (inodes and maps).
pub(super) type Owner = u64;

/// Dirty buffers of one owner, and when they are due.
#[derive(Default)]
struct Dirty {
    /// First byte → bytes.
    buffers: BTreeMap<u64, u64>,
    due: u64,
}

/// What is in memory.
pub(super) struct Buffers {
    /// First byte → bytes, dirty or clean.
    known: HashMap<u64, u64>,
    /// In the order they came: the oldest clean buffer goes first.
    order: VecDeque<u64>,
    capacity: u64,
    bytes: u64,
    owners: HashMap<Owner, Dirty>,
    /// (due, owner).
    slots: BTreeSet<(u64, Owner)>,
    /// First byte → owner, of the dirty ones.
    of: HashMap<u64, Owner>,
    dirty: u64,
}

impl Buffers {
    /// Room for `capacity` bytes of clean buffers.
    pub(super) fn new(capacity: u64) -> Buffers {
        Buffers {
            known: HashMap::new(),
            order: VecDeque::new(),
            capacity,
            bytes: 0,
            owners: HashMap::new(),
            slots: BTreeSet::new(),
            of: HashMap::new(),
            dirty: 0,
        }
    }

    /// Whether the buffer at `offset` is in memory.
    pub(super) fn has(&self, offset: u64) -> bool {
        self.known.contains_key(&offset)
    }

    /// Whether it is dirty.
    pub(super) fn is_dirty(&self, offset: u64) -> bool {
        self.of.contains_key(&offset)
    }

    /// Bytes that are dirty.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// A buffer is in memory, as long as it may be now.
    pub(super) fn keep(&mut self, offset: u64, length: u64) {
        match self.known.insert(offset, length) {
            Some(old) => self.bytes -= old,
            None => self.order.push_back(offset),
        }
        self.bytes += length;
        if self.order.len() > 2 * self.known.len() + 64 {
            self.reorder();
        }
        // A call passes over a few dirty buffers, not over all: the next goes on from there.
        let mut passed = 0;
        while self.bytes > self.capacity && passed < 8 {
            let Some(oldest) = self.order.pop_front() else { break };
            if self.of.contains_key(&oldest) || oldest == offset {
                self.order.push_back(oldest);
                passed += 1;
            } else if let Some(length) = self.known.remove(&oldest) {
                self.bytes -= length;
            }
        }
    }

    /// A buffer is dirty; an owner who had none is due at `due`.
    pub(super) fn soil(&mut self, owner: Owner, offset: u64, length: u64, due: u64) {
        self.keep(offset, length);
        if self.of.get(&offset).is_some_and(|&other| other != owner) {
            self.clean(offset);
        }
        let dirty = self.owners.entry(owner).or_default();
        if dirty.buffers.is_empty() {
            dirty.due = due;
            self.slots.insert((due, owner));
        }
        let old = dirty.buffers.insert(offset, length).unwrap_or(0);
        self.dirty = self.dirty + length - old;
        self.of.insert(offset, owner);
    }

    /// A buffer is written.
    pub(super) fn clean(&mut self, offset: u64) {
        let Some(owner) = self.of.remove(&offset) else { return };
        let Some(dirty) = self.owners.get_mut(&owner) else { return };
        self.dirty -= dirty.buffers.remove(&offset).unwrap_or(0);
        if dirty.buffers.is_empty() {
            self.slots.remove(&(dirty.due, owner));
            self.owners.remove(&owner);
        }
    }

    /// A buffer is of no use any more.
    pub(super) fn forget(&mut self, offset: u64) {
        self.clean(offset);
        if let Some(length) = self.known.remove(&offset) {
            self.bytes -= length;
        }
    }

    /// Who is due first, if by `by`.
    pub(super) fn due(&self, by: u64) -> Option<Owner> {
        self.slots.first().filter(|(due, _)| *due <= by).map(|&(_, owner)| owner)
    }

    /// Takes the dirty buffers of one owner, by place; they are clean now.
    pub(super) fn take(&mut self, owner: Owner) -> BTreeMap<u64, u64> {
        let Some(dirty) = self.owners.remove(&owner) else { return BTreeMap::new() };
        self.slots.remove(&(dirty.due, owner));
        for (offset, length) in &dirty.buffers {
            self.of.remove(offset);
            self.dirty -= length;
        }
        dirty.buffers
    }

    /// Everything clean is forgotten.
    pub(super) fn empty(&mut self) {
        let of = &self.of;
        self.known.retain(|offset, _| of.contains_key(offset));
        self.bytes = self.known.values().sum();
        self.reorder();
    }

    /// Each buffer that is known once, in the order in which they came.
    fn reorder(&mut self) {
        let mut seen = HashSet::with_capacity(self.known.len());
        let known = &self.known;
        self.order.retain(|offset| known.contains_key(offset) && seen.insert(*offset));
    }
}

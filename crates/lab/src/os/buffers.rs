//! A buffer cache as in BSD: buffers by offset on the provider. A dirty one belongs to an owner,
//! and a syncer writes all dirty buffers of an owner at the owner's due time.

use super::numbered::Numbered;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashSet, VecDeque};

/// The owner of dirty buffers: a file, a directory, or the device (inodes and maps).
pub(super) type Owner = u64;

/// A buffer in memory.
struct Buffer {
    length: u64,
    /// The owner of the dirty data; `None` if the buffer is clean.
    owner: Option<Owner>,
}

impl Buffer {
    /// Sets the buffer's length and adjusts the totals `bytes` and `dirty`.
    fn resize(&mut self, length: u64, bytes: &mut u64, dirty: &mut u64) {
        *bytes = *bytes - self.length + length;
        if self.owner.is_some() {
            *dirty = *dirty - self.length + length;
        }
        self.length = length;
    }
}

/// The dirty buffers of one owner, and their due time.
struct Dirty {
    /// Offsets in the order in which the buffers became dirty. Those written since are still
    /// listed.
    offsets: Vec<u64>,
    count: usize,
    due: u64,
}

/// The cached buffers, clean and dirty.
pub(super) struct Buffers {
    /// Buffers by the offset of their first byte.
    known: Numbered<u64, Buffer>,
    /// Offsets in the order of arrival: the oldest clean buffer is evicted first.
    order: VecDeque<u64>,
    capacity: u64,
    bytes: u64,
    owners: Numbered<Owner, Dirty>,
    /// Vectors of owners without dirty buffers, kept for reuse.
    spare: Vec<Vec<u64>>,
    /// Owners by due time: (due, owner).
    slots: BTreeSet<(u64, Owner)>,
    dirty: u64,
}

impl Buffers {
    /// An empty cache that holds `capacity` bytes before clean buffers are evicted.
    pub(super) fn new(capacity: u64) -> Buffers {
        Buffers {
            known: Numbered::default(),
            order: VecDeque::new(),
            capacity,
            bytes: 0,
            owners: Numbered::default(),
            spare: Vec::new(),
            slots: BTreeSet::new(),
            dirty: 0,
        }
    }

    /// True if the buffer at `offset` is cached.
    pub(super) fn has(&self, offset: u64) -> bool {
        self.known.contains_key(&offset)
    }

    /// Dirty bytes in the cache.
    pub(super) fn dirty(&self) -> u64 {
        self.dirty
    }

    /// Caches the buffer at `offset`, now `length` bytes long.
    pub(super) fn keep(&mut self, offset: u64, length: u64) {
        self.hold(offset, length);
        self.bound(offset);
    }

    /// As [`Buffers::keep`], for a cached buffer only. True if it is cached.
    pub(super) fn keeps(&mut self, offset: u64, length: u64) -> bool {
        let Some(buffer) = self.known.get_mut(&offset) else { return false };
        buffer.resize(length, &mut self.bytes, &mut self.dirty);
        self.bound(offset);
        true
    }

    /// The owner field of the buffer at `offset`, which is cached if it was not.
    fn hold(&mut self, offset: u64, length: u64) -> &mut Option<Owner> {
        let buffer = match self.known.entry(offset) {
            Entry::Occupied(known) => {
                let buffer = known.into_mut();
                buffer.resize(length, &mut self.bytes, &mut self.dirty);
                buffer
            }
            Entry::Vacant(new) => {
                self.order.push_back(offset);
                self.bytes += length;
                new.insert(Buffer { length, owner: None })
            }
        };
        &mut buffer.owner
    }

    /// Evicts clean buffers above the capacity, except the one at `offset`.
    fn bound(&mut self, offset: u64) {
        if self.order.len() > 2 * self.known.len() + 64 {
            self.reorder();
        }
        // One call passes over a few dirty buffers, not over all; the next call continues there.
        let mut passed = 0;
        while self.bytes > self.capacity && passed < 8 {
            let Some(oldest) = self.order.pop_front() else { break };
            let Entry::Occupied(known) = self.known.entry(oldest) else { continue };
            if known.get().owner.is_some() || oldest == offset {
                self.order.push_back(oldest);
                passed += 1;
            } else {
                self.bytes -= known.remove().length;
            }
        }
    }

    /// Marks a buffer dirty. An owner without dirty buffers becomes due at `due`.
    pub(super) fn soil(&mut self, owner: Owner, offset: u64, length: u64, due: u64) {
        let before = self.hold(offset, length).replace(owner);
        if before != Some(owner) {
            self.disown(before, length);
            self.own(owner, offset, due);
            self.dirty += length;
        }
        self.bound(offset);
    }

    /// Caches a buffer of `length` bytes as just written, so clean.
    pub(super) fn write(&mut self, offset: u64, length: u64) {
        let before = self.hold(offset, length).take();
        self.disown(before, length);
        self.bound(offset);
    }

    fn own(&mut self, owner: Owner, offset: u64, due: u64) {
        let spare = &mut self.spare;
        let dirty = self.owners.entry(owner).or_insert_with(|| Dirty {
            offsets: spare.pop().unwrap_or_default(),
            count: 0,
            due,
        });
        if dirty.count == 0 {
            self.slots.insert((due, owner));
        }
        dirty.count += 1;
        dirty.offsets.push(offset);
        if dirty.offsets.len() > 2 * dirty.count + 64 {
            let known = &self.known;
            dirty.offsets.sort_unstable();
            dirty.offsets.dedup();
            dirty
                .offsets
                .retain(|other| known.get(other).is_some_and(|buffer| buffer.owner == Some(owner)));
        }
    }

    /// Marks a buffer clean. True if it was dirty.
    pub(super) fn clean(&mut self, offset: u64) -> bool {
        let Some(buffer) = self.known.get_mut(&offset) else { return false };
        let (before, length) = (buffer.owner.take(), buffer.length);
        self.disown(before, length);
        before.is_some()
    }

    /// Takes a buffer that is no longer dirty out of its owner's count.
    fn disown(&mut self, before: Option<Owner>, length: u64) {
        let Some(owner) = before else { return };
        self.dirty -= length;
        let Some(dirty) = self.owners.get_mut(&owner) else { return };
        dirty.count -= 1;
        if dirty.count == 0 {
            self.slots.remove(&(dirty.due, owner));
            if let Some(gone) = self.owners.remove(&owner) {
                self.give_room(gone.offsets);
            }
        }
    }

    /// Drops a buffer, dirty or not: its block is no longer used.
    pub(super) fn forget(&mut self, offset: u64) {
        self.clean(offset);
        if let Some(buffer) = self.known.remove(&offset) {
            self.bytes -= buffer.length;
        }
    }

    /// The owner that is due first, if its due time is at most `by`.
    pub(super) fn due(&self, by: u64) -> Option<Owner> {
        self.slots.first().filter(|(due, _)| *due <= by).map(|&(_, owner)| owner)
    }

    /// Appends the dirty buffers of one owner as (first byte, bytes), sorted by offset, and marks
    /// them clean.
    pub(super) fn take(&mut self, owner: Owner, taken: &mut Vec<(u64, u64)>) {
        let Some(mut dirty) = self.owners.remove(&owner) else { return };
        self.slots.remove(&(dirty.due, owner));
        dirty.offsets.sort_unstable();
        for &offset in &dirty.offsets {
            // A buffer that was written and became dirty again is listed twice; the second entry
            // finds it clean.
            let buffer = self.known.get_mut(&offset).filter(|buffer| buffer.owner == Some(owner));
            let Some(buffer) = buffer else { continue };
            buffer.owner = None;
            self.dirty -= buffer.length;
            taken.push((offset, buffer.length));
        }
        self.give_room(dirty.offsets);
    }

    /// Keeps small vectors for reuse: the size that most files need.
    fn give_room(&mut self, mut offsets: Vec<u64>) {
        if offsets.capacity() <= 128 {
            offsets.clear();
            self.spare.push(offsets);
        }
    }

    /// Drops all clean buffers.
    pub(super) fn empty(&mut self) {
        self.known.retain(|_, buffer| buffer.owner.is_some());
        self.bytes = self.known.values().map(|buffer| buffer.length).sum();
        self.reorder();
    }

    /// Removes duplicates and evicted buffers from the order of arrival.
    fn reorder(&mut self) {
        let mut seen = HashSet::with_capacity(self.known.len());
        let known = &self.known;
        self.order.retain(|offset| known.contains_key(offset) && seen.insert(*offset));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(buffers: &mut Buffers, owner: Owner) -> Vec<(u64, u64)> {
        let mut taken = Vec::new();
        buffers.take(owner, &mut taken);
        taken
    }

    #[test]
    fn what_is_dirty_twice_is_taken_once_and_in_order() {
        let mut buffers = Buffers::new(1 << 20);
        for (owner, offset) in [(1, 8192), (1, 4096), (2, 0)] {
            buffers.soil(owner, offset, 512, 30);
        }
        assert!(buffers.clean(8192) && !buffers.clean(8192));
        assert_eq!((buffers.dirty(), buffers.has(8192)), (1024, true));
        // Again, longer; and a buffer that goes to another owner.
        buffers.soil(1, 8192, 1024, 40);
        buffers.soil(1, 0, 512, 40);
        assert_eq!((buffers.dirty(), buffers.due(29), buffers.due(30)), (2048, None, Some(1)));
        assert_eq!(taken(&mut buffers, 1), [(0, 512), (4096, 512), (8192, 1024)]);
        assert_eq!(
            (buffers.dirty(), buffers.due(u64::MAX), taken(&mut buffers, 2).len()),
            (0, None, 0)
        );
    }

    #[test]
    fn an_owner_that_writes_again_and_again_takes_no_more_memory() {
        let mut buffers = Buffers::new(1 << 20);
        buffers.soil(1, 0, 512, 30);
        for _ in 0..10_000 {
            buffers.soil(1, 512, 512, 30);
            assert!(buffers.clean(512));
        }
        assert!(buffers.owners.values().all(|dirty| dirty.offsets.len() <= 128));
        buffers.soil(1, 512, 512, 30);
        assert_eq!(taken(&mut buffers, 1), [(0, 512), (512, 512)]);
    }
}

//! The places of records on the device: each write of one goes to a new place.

use std::collections::{BTreeSet, HashMap};
use trueline_geom::base::error::Errno;

/// Places of one record each, given out in turn.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The number of places.
    count: u64,
    /// The records that were written before, each at the place of its number.
    filled: u64,
    /// Places of records that have been written since.
    moved: HashMap<u64, u64>,
    /// Places that were given up in groups that have ended.
    free: BTreeSet<u64>,
    /// Places that are given up and stay as they are until the group has ended.
    freed: Vec<u64>,
    /// The first place that no record ever had, and all behind it.
    fresh: u64,
    next: u64,
}

impl Places {
    /// `count` places, of which `filled` have the record of their number.
    pub(super) fn new(count: u64, filled: u64) -> Places {
        Places {
            count,
            filled,
            moved: HashMap::new(),
            free: BTreeSet::new(),
            freed: Vec::new(),
            fresh: filled,
            next: filled,
        }
    }

    /// The place of a record; `None` if it was never written.
    pub(super) fn of(&self, record: u64) -> Option<u64> {
        let before = (record < self.filled).then_some(record);
        self.moved.get(&record).copied().or(before)
    }

    /// The number of places that can be given out in this group.
    pub(super) fn available(&self) -> u64 {
        self.count - self.fresh + u64::try_from(self.free.len()).unwrap_or(u64::MAX)
    }

    /// A new place for a record, the next one that is free.
    pub(super) fn renew(&mut self, record: u64) -> Result<u64, Errno> {
        // None is fresh before `next`.
        let behind = self.free.range(self.next..).next().copied();
        let fresh = (self.fresh < self.count).then_some(self.fresh);
        let again = || self.free.first().copied();
        let place = behind.or(fresh).or_else(again).ok_or(Errno::NoSpace)?;
        if !self.free.remove(&place) {
            self.fresh += 1;
        }
        self.freed.extend(self.of(record));
        self.moved.insert(record, place);
        self.next = place + 1;
        Ok(place)
    }

    /// Ends the group: places that were given up can be given out.
    pub(super) fn group_ended(&mut self) {
        self.free.extend(self.freed.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_out_again_after_its_group() {
        let mut places = Places::new(4, 2);
        assert_eq!((places.of(1), places.of(2)), (Some(1), None));
        assert_eq!((places.renew(1), places.renew(1)), (Ok(2), Ok(3)));
        // 1 and 2 are given up, and not free yet.
        assert_eq!((places.renew(0), places.of(1)), (Err(Errno::NoSpace), Some(3)));
        places.group_ended();
        assert_eq!((places.renew(0), places.renew(2)), (Ok(1), Ok(2)));
        assert_eq!(places.renew(3), Err(Errno::NoSpace));
        places.group_ended();
        assert_eq!(places.renew(0), Ok(0));
    }
}

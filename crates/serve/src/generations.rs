//! What is replaced now and then, and read by many threads all the time, none of which waits or says that it reads: what was replaced is
//! kept, so there is room for so many alone.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Values that may come after the first.
const MORE: usize = 255;

/// A value, and those that it took the place of.
pub(crate) struct Generations<T> {
    first: T,
    more: Box<[OnceLock<Box<T>>]>,
    /// How many of `more` there are.
    newest: AtomicUsize,
}

impl<T> Generations<T> {
    /// With that one.
    pub(crate) fn new(first: T) -> Generations<T> {
        Generations { first, more: (0..MORE).map(|_| OnceLock::new()).collect(), newest: AtomicUsize::new(0) }
    }

    /// The newest.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        let newest = self.newest.load(Ordering::Acquire).checked_sub(1);
        newest.and_then(|nth| self.more.get(nth)?.get()).map_or(&self.first, |value| &**value)
    }

    /// Takes the place of the newest; `false` where there is no room. One thread at a time.
    pub(crate) fn put(&self, value: T) -> bool {
        let nth = self.newest.load(Ordering::Acquire);
        let put = self.more.get(nth).is_some_and(|slot| slot.set(Box::new(value)).is_ok());
        if put {
            self.newest.store(nth + 1, Ordering::Release);
        }
        put
    }

    /// How many may still be put.
    pub(crate) fn room(&self) -> usize {
        MORE - self.newest.load(Ordering::Acquire).min(MORE)
    }

    /// All of them, the first first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first).chain(self.more.iter().map_while(|slot| slot.get().map(|value| &**value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_read_until_there_is_no_room() {
        let latest = Generations::new(0);
        assert_eq!((*latest.get(), latest.room()), (0, MORE));
        for value in 1..=MORE {
            assert!(latest.put(value) && *latest.get() == value);
        }
        assert!(!latest.put(1000) && *latest.get() == MORE && latest.room() == 0);
        assert!(latest.iter().copied().eq(0..=MORE));
    }
}

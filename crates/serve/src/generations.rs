//! A value replaced rarely and read constantly. Readers are wait-free and untracked, so old values
//! are never freed; at most 255 replacements fit.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most replacements of the first value.
const MORE: usize = 255;

/// A value with all its predecessors.
pub(crate) struct Generations<T> {
    first: T,
    more: Box<[OnceLock<Box<T>>]>,
    /// The number of values in `more`.
    newest: AtomicUsize,
}

impl<T> Generations<T> {
    /// A single generation, `first`.
    pub(crate) fn new(first: T) -> Generations<T> {
        Generations {
            first,
            more: (0..MORE).map(|_| OnceLock::new()).collect(),
            newest: AtomicUsize::new(0),
        }
    }

    /// The newest of the values.
    #[inline]
    pub(crate) fn get(&self) -> &T {
        let newest = self.newest.load(Ordering::Acquire).checked_sub(1);
        newest.and_then(|nth| self.more.get(nth)?.get()).map_or(&self.first, |value| &**value)
    }

    /// Replaces the newest value. False if there is no room. One thread at a time may call it.
    pub(crate) fn put(&self, value: T) -> bool {
        let nth = self.newest.load(Ordering::Acquire);
        let put = self.more.get(nth).is_some_and(|slot| slot.set(Box::new(value)).is_ok());
        if put {
            self.newest.store(nth + 1, Ordering::Release);
        }
        put
    }

    /// The number of replacements still possible.
    pub(crate) fn room(&self) -> usize {
        MORE - self.newest.load(Ordering::Acquire).min(MORE)
    }

    /// All values, the first one first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        std::iter::once(&self.first)
            .chain(self.more.iter().map_while(|slot| slot.get().map(|value| &**value)))
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

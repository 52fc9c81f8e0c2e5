//! A sorted map in rows of neighbours: one row for a few dozen entries, some hundred rows for
//! thousands. A binary search runs over contiguous keys, and an iteration reads contiguous memory;
//! a tree of nodes offers neither.

/// The most entries of a row.
const ROW: usize = 64;

/// A row of neighbours: ascending keys, and the values under them.
#[derive(Debug)]
struct Row<T> {
    keys: Vec<u64>,
    things: Vec<T>,
}

/// Values by key, ascending. No row is empty.
#[derive(Debug)]
pub(super) struct Sorted<T> {
    rows: Vec<Row<T>>,
    /// The first key of every row.
    firsts: Vec<u64>,
    length: usize,
    /// The last row that became empty, kept so that a map alternating between one entry and none
    /// does not allocate.
    spare: Option<Row<T>>,
}

/// The position of an entry: row, and index in the row. Past the last entry it is the row after the
/// last.
type At = (usize, usize);

/// Neighbouring entries: keys, and the values under them.
pub(super) type Part<'a, T> = (&'a [u64], &'a [T]);

impl<T> Row<T> {
    fn new() -> Row<T> {
        Row { keys: Vec::new(), things: Vec::new() }
    }

    fn entry(&self, at: usize) -> Option<(u64, &T)> {
        Some((*self.keys.get(at)?, self.things.get(at)?))
    }

    fn whole(&self) -> Part<'_, T> {
        (&self.keys, &self.things)
    }

    fn len(&self) -> usize {
        self.keys.len()
    }
}

impl<T> Sorted<T> {
    pub(super) fn new() -> Sorted<T> {
        Sorted { rows: Vec::new(), firsts: Vec::new(), length: 0, spare: None }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The position of the first entry at or after `key`.
    fn find(&self, key: u64) -> At {
        // It is in the row before the first one that begins at or after `key`, or else at the
        // beginning of the next.
        let after = self.firsts.partition_point(|first| *first < key);
        let Some(row) = after.checked_sub(1) else { return (0, 0) };
        let at = self.rows[row].keys.partition_point(|own| *own < key);
        if at < self.rows[row].len() { (row, at) } else { (after, 0) }
    }

    fn entry(&self, (row, at): At) -> Option<(u64, &T)> {
        self.rows.get(row)?.entry(at)
    }

    /// The value under `key`, if there is one.
    pub(super) fn get(&self, key: u64) -> Option<&T> {
        self.entry(self.find(key)).filter(|(own, _)| *own == key).map(|(_, thing)| thing)
    }

    /// The value under `key`, to be changed.
    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let (row, at) = self.find(key);
        let row = self.rows.get_mut(row).filter(|row| row.keys.get(at) == Some(&key))?;
        row.things.get_mut(at)
    }

    /// The first entry at or after `key`.
    pub(super) fn first_from(&self, key: u64) -> Option<(u64, &T)> {
        self.entry(self.find(key))
    }

    /// The last entry before `key`.
    pub(super) fn last_before(&self, key: u64) -> Option<(u64, &T)> {
        let (row, at) = self.find(key);
        match at.checked_sub(1) {
            Some(before) => self.entry((row, before)),
            None => self.rows.get(row.checked_sub(1)?).and_then(|row| row.entry(row.len() - 1)),
        }
    }

    /// The entries before `key`, in parts of which the last comes first, each ascending; and those
    /// at or after it, in ascending parts.
    pub(super) fn around(
        &self,
        key: u64,
    ) -> (impl Iterator<Item = Part<'_, T>>, impl Iterator<Item = Part<'_, T>>) {
        let (row, at) = self.find(key);
        let (before, from) = self.rows.split_at(row);
        let (below, above) = match from.first() {
            Some(row) => {
                ((&row.keys[..at], &row.things[..at]), (&row.keys[at..], &row.things[at..]))
            }
            None => Default::default(),
        };
        (
            [below].into_iter().chain(before.iter().rev().map(Row::whole)),
            [above].into_iter().chain(from.iter().skip(1).map(Row::whole)),
        )
    }

    /// The entries at or after `key`, ascending.
    pub(super) fn from(&self, key: u64) -> impl Iterator<Item = (u64, &T)> {
        self.around(key).1.flat_map(|(keys, things)| keys.iter().copied().zip(things))
    }

    /// Adds a value under a key that is not there yet.
    pub(super) fn insert(&mut self, key: u64, thing: T) {
        let (mut row, mut at) = match self.find(key) {
            // At the end of the row before rather than the beginning of this one, whose first key
            // would change.
            (row, 0) if row > 0 => (row - 1, self.rows[row - 1].len()),
            found => found,
        };
        self.length += 1;
        if self.rows.is_empty() {
            self.rows.push(self.spare.take().unwrap_or_else(Row::new));
            self.firsts.push(key);
        }
        let own = &mut self.rows[row];
        debug_assert!(own.keys.get(at).is_none_or(|next| *next > key), "{key} is there already");
        if own.len() == ROW {
            let rest =
                Row { keys: own.keys.split_off(ROW / 2), things: own.things.split_off(ROW / 2) };
            self.firsts.insert(row + 1, rest.keys[0]);
            self.rows.insert(row + 1, rest);
            if at > ROW / 2 {
                (row, at) = (row + 1, at - ROW / 2);
            }
        }
        let own = &mut self.rows[row];
        own.keys.insert(at, key);
        own.things.insert(at, thing);
        self.firsts[row] = own.keys[0];
    }

    /// Removes the value under `key`, and returns it.
    pub(super) fn remove(&mut self, key: u64) -> Option<T> {
        let (row, at) = self.find(key);
        let own = self.rows.get_mut(row)?;
        if own.keys.get(at) != Some(&key) {
            return None;
        }
        own.keys.remove(at);
        let thing = own.things.remove(at);
        self.length -= 1;
        let Some(&first) = own.keys.first() else {
            self.firsts.remove(row);
            self.spare = Some(self.rows.remove(row));
            return Some(thing);
        };
        self.firsts[row] = first;
        if own.len() < ROW / 4 {
            self.join(row);
        }
        Some(thing)
    }

    /// Joins a short row with a neighbour if both are short: otherwise there might be as many rows
    /// as entries.
    fn join(&mut self, row: usize) {
        let fits = |row: usize| {
            self.rows.get(row..row + 2).is_some_and(|two| two[0].len() + two[1].len() <= ROW / 2)
        };
        let Some(first) =
            [Some(row), row.checked_sub(1)].into_iter().flatten().find(|&row| fits(row))
        else {
            return;
        };
        self.firsts.remove(first + 1);
        let second = self.rows.remove(first + 1);
        self.rows[first].keys.extend(second.keys);
        self.rows[first].things.extend(second.things);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::collections::BTreeMap;

    /// Every question has the answer of the standard library's map.
    fn agree(sorted: &Sorted<u64>, map: &BTreeMap<u64, u64>, key: u64) {
        let own = |found: Option<(&u64, &u64)>| found.map(|(key, thing)| (*key, *thing));
        let other = |found: Option<(u64, &u64)>| found.map(|(key, thing)| (key, *thing));
        assert_eq!((sorted.len(), sorted.get(key)), (map.len(), map.get(&key)));
        assert_eq!(other(sorted.first_from(key)), own(map.range(key..).next()));
        assert_eq!(other(sorted.last_before(key)), own(map.range(..key).next_back()));
    }

    fn walks_agree(sorted: &Sorted<u64>, map: &BTreeMap<u64, u64>, key: u64) {
        assert!(sorted.from(key).eq(map.range(key..).map(|(key, thing)| (*key, thing))));
        let (before, from) = sorted.around(key);
        assert!(from.flat_map(|(keys, things)| keys.iter().zip(things)).eq(map.range(key..)));
        assert!(
            before
                .flat_map(|(keys, things)| keys.iter().zip(things).rev())
                .eq(map.range(..key).rev())
        );
    }

    #[test]
    fn it_answers_as_a_tree_does_while_it_grows_and_shrinks() {
        let (mut sorted, mut map, mut random) = (Sorted::new(), BTreeMap::new(), Random::new(7));
        // Up to some rows, down to few, and up again.
        for (steps, more) in [(4000, 70), (4000, 20), (2000, 60)] {
            for step in 0..steps {
                let key = random.below(2000);
                if random.below(100) < more {
                    match sorted.get_mut(key) {
                        Some(thing) => *thing = step,
                        None => sorted.insert(key, step),
                    }
                    map.insert(key, step);
                } else {
                    assert_eq!(sorted.remove(key), map.remove(&key));
                }
                agree(&sorted, &map, random.below(2001));
                if step % 64 == 0 {
                    walks_agree(&sorted, &map, random.below(2001));
                }
            }
            // Of two neighbours one has a quarter of a row at least.
            assert!(
                sorted.rows.len() <= 2 + 2 * sorted.len() / (ROW / 4),
                "{} rows of {}",
                sorted.rows.len(),
                sorted.len()
            );
        }
        let left: Vec<u64> = map.keys().copied().collect();
        for key in left {
            assert_eq!(sorted.remove(key), map.remove(&key));
            agree(&sorted, &map, key);
        }
        assert!(sorted.rows.is_empty() && sorted.firsts.is_empty());
        walks_agree(&sorted, &map, 5);
    }
}

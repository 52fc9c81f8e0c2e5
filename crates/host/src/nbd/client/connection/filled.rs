//! The received bytes of a read.

use std::collections::BTreeMap;

/// Ranges of bytes, without overlaps.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Ends of ranges by their starts; no two touch.
    runs: BTreeMap<usize, usize>,
}

impl Filled {
    /// Adds `start..end`. [`None`], without an effect, if it is empty or any byte of it was there.
    pub(super) fn add(&mut self, start: usize, end: usize) -> Option<()> {
        let before = self.runs.range(..=start).next_back().map(|(&from, &to)| (from, to));
        let after = self.runs.range(start..).next().map(|(&from, &to)| (from, to));
        if start >= end
            || before.is_some_and(|(_, to)| to > start)
            || after.is_some_and(|(from, _)| from < end)
        {
            return None;
        }
        let from = before.filter(|&(_, to)| to == start).map_or(start, |(from, _)| from);
        let to = after.filter(|&(from, _)| from == end).map_or(end, |(next, to)| {
            self.runs.remove(&next);
            to
        });
        self.runs.insert(from, to);
        Some(())
    }

    /// True if all of `length` bytes were received.
    pub(super) fn is_all_of(&self, length: usize) -> bool {
        length == 0 || self.runs.get(&0) == Some(&length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_once() {
        const LENGTH: usize = 6;
        // Every order of three chunks, each of them anything in six bytes, against bytes that are
        // counted one by one.
        let ranges: Vec<(usize, usize)> =
            (0..=LENGTH).flat_map(|start| (0..=LENGTH).map(move |end| (start, end))).collect();
        for one in &ranges {
            for two in &ranges {
                for three in &ranges {
                    let (mut filled, mut model) = (Filled::default(), [false; LENGTH]);
                    for &&(start, end) in &[one, two, three] {
                        let fits = start < end && !model[start..end].contains(&true);
                        assert_eq!(
                            filled.add(start, end).is_some(),
                            fits,
                            "{one:?} {two:?} {three:?}"
                        );
                        if fits {
                            model[start..end].fill(true);
                        }
                    }
                    assert_eq!(
                        filled.is_all_of(LENGTH),
                        model == [true; LENGTH],
                        "{one:?} {two:?} {three:?}"
                    );
                }
            }
        }
    }
}

//! Which bytes of a read have come.

use std::collections::BTreeMap;

/// Ranges of bytes, none of them twice.
#[derive(Debug, Default)]
pub(super) struct Filled {
    /// Start → end; none touches another.
    runs: BTreeMap<usize, usize>,
}

impl Filled {
    /// `start..end` has come; [`None`], and nothing is different, if it is nothing, or a byte of it had come before.
    pub(super) fn add(&mut self, start: usize, end: usize) -> Option<()> {
        let before = self.runs.range(..=start).next_back().map(|(&from, &to)| (from, to));
        let after = self.runs.range(start..).next().map(|(&from, &to)| (from, to));
        if start >= end || before.is_some_and(|(_, to)| to > start) || after.is_some_and(|(from, _)| from < end) {
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

    /// Whether all of `length` bytes have come.
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
        // Every order of three chunks, each of them anything in six bytes, against bytes that are counted one by one.
        let ranges: Vec<(usize, usize)> = (0..=LENGTH).flat_map(|start| (0..=LENGTH).map(move |end| (start, end))).collect();
        for one in &ranges {
            for two in &ranges {
                for three in &ranges {
                    let (mut filled, mut model) = (Filled::default(), [false; LENGTH]);
                    for &&(start, end) in &[one, two, three] {
                        let fits = start < end && !model[start..end].contains(&true);
                        assert_eq!(filled.add(start, end).is_some(), fits, "{one:?} {two:?} {three:?}");
                        if fits {
                            model[start..end].fill(true);
                        }
                    }
                    assert_eq!(filled.is_all_of(LENGTH), model == [true; LENGTH], "{one:?} {two:?} {three:?}");
                }
            }
        }
    }
}

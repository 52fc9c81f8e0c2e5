//! Ranges of an object that are here.

use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes by their offset; no two overlap.
#[derive(Default)]
pub(crate) struct Known {
    runs: BTreeMap<u64, Vec<u8>>,
    bytes: u64,
}

impl Known {
    /// Bytes of all ranges.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The parts of a range that are not here, in order.
    pub(crate) fn missing(&self, wanted: Range<u64>) -> Vec<Range<u64>> {
        let (mut missing, mut at) = (Vec::new(), wanted.start);
        // The run that begins before it may reach into it.
        let before = self.runs.range(..wanted.start).next_back();
        for (&start, run) in before.into_iter().chain(self.runs.range(wanted.clone())) {
            let end = start + run.len() as u64;
            if start > at {
                missing.push(at..start);
            }
            at = at.max(end);
        }
        if at < wanted.end {
            missing.push(at..wanted.end);
        }
        missing
    }

    /// Adds what is not here of `bytes`, which stand at `offset`.
    pub(crate) fn put(&mut self, offset: u64, bytes: &[u8]) {
        for part in self.missing(offset..offset + bytes.len() as u64) {
            let of = |at: u64| usize::try_from(at - offset).unwrap_or(usize::MAX);
            if let Some(part_bytes) = bytes.get(of(part.start)..of(part.end)) {
                self.bytes += part_bytes.len() as u64;
                self.runs.insert(part.start, part_bytes.to_vec());
            }
        }
    }

    /// Fills `buffer` from `offset`, if all of that is here.
    pub(crate) fn copy(&self, buffer: &mut [u8], offset: u64) -> bool {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let run = self.runs.range(..=at).next_back();
            let Some(rest) = run.and_then(|(&start, run)| {
                let from = usize::try_from(at - start).ok()?;
                run.get(from..).filter(|rest| !rest.is_empty())
            }) else {
                return false;
            };
            let count = rest.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts and reads in any order are those of an array of which some bytes are known.
    #[test]
    fn it_is_an_array_with_gaps() {
        let byte = |at: u64| u8::try_from(at * 7 % 251).unwrap();
        let (mut known, mut model) = (Known::default(), [false; 300]);
        let mut seed = 1_u64;
        let mut next = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for _ in 0..400 {
            let (at, length) = (next(280), next(20));
            let bytes: Vec<u8> = (at..at + length).map(byte).collect();
            let is_put = next(4) == 0;
            if is_put {
                known.put(at, &bytes);
                (at..at + length).for_each(|at| model[usize::try_from(at).unwrap()] = true);
            }
            let range = usize::try_from(at).unwrap()..usize::try_from(at + length).unwrap();
            let mut buffer = vec![0; range.len()];
            assert_eq!(known.copy(&mut buffer, at), model[range.clone()].iter().all(|&is| is));
            assert!(!model[range.clone()].iter().all(|&is| is) || buffer == bytes);
            let missing: u64 =
                known.missing(at..at + length).iter().map(|part| part.end - part.start).sum();
            assert_eq!(missing, model[range].iter().filter(|&&is| !is).count() as u64);
        }
        assert_eq!(known.bytes(), model.iter().filter(|&&is| is).count() as u64);
    }
}

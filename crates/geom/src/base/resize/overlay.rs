//! Bytes that take the place of others, in parts that a medium writes whole.

use super::Write;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a part.
const ATOM: usize = 512;

/// Parts of a disk with their new bytes. What is put later lies over what was put before.
#[derive(Clone, Debug, Default)]
pub struct Overlay(BTreeMap<u64, Vec<u8>>);

impl Overlay {
    /// Zeros over a range of whole parts.
    pub fn zero(&mut self, range: Range<u64>) {
        for at in range.step_by(ATOM) {
            self.0.insert(at, vec![0; ATOM]);
        }
    }

    /// Puts `bytes` at byte `at`; a last part that is not whole is filled with zeros.
    pub fn put(&mut self, at: u64, bytes: &[u8]) {
        for (part, at) in bytes.chunks(ATOM).zip((at..).step_by(ATOM)) {
            let mut part = part.to_vec();
            part.resize(ATOM, 0);
            self.0.insert(at, part);
        }
    }

    /// The writes that put all of it in its place, one for each run.
    pub fn writes(self, what: &'static str) -> Vec<Write> {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        for (at, part) in self.0 {
            match runs.last_mut() {
                Some((first, bytes)) if first.saturating_add(bytes.len() as u64) == at => {
                    bytes.extend(part);
                }
                _ => runs.push((at, part)),
            }
        }
        runs.into_iter().map(|(at, bytes)| Write::new(at, bytes, what)).collect()
    }
}

//! Requests of a guest as they reach the file, and what may be found of them after any of its
//! writes.

use super::guest::{Asked, Random, all, open};
use super::tape::{Change, File};

const SECTOR: usize = 512;

/// A run of a guest: its requests, each with the number of changes of the file after it.
pub(crate) struct Recording {
    pub(crate) base: Vec<u8>,
    pub(crate) changes: Vec<Change>,
    asked: Vec<(usize, Asked)>,
    first: Vec<u8>,
}

/// Records `count` requests in whole sectors to the image `base`, over a backing file of `parent`
/// bytes; each is of at most `most` bytes.
pub(crate) fn record(
    base: Vec<u8>,
    parent: usize,
    count: usize,
    most: usize,
    random: &mut Random,
) -> Recording {
    let file = File::new(base.clone(), usize::MAX);
    let store = open(&file, parent).unwrap();
    let first = all(&store);
    let mut asked = Vec::new();
    for _ in 0..count {
        let next = Asked::random(random, first.len(), SECTOR, most.min(first.len()));
        next.run(&store);
        asked.push((file.tape().changes.len(), next));
    }
    let changes = std::mem::take(&mut file.tape().changes);
    Recording { base, changes, asked, first }
}

impl Recording {
    /// Asserts that a disk has, in each sector, what was durable after the first `count` changes,
    /// or what was written there since.
    pub(crate) fn check(&self, found: &[u8], count: usize) {
        let done = self.asked.iter().filter(|(end, _)| *end <= count).count();
        let durable = self.asked[..done].iter().rposition(|(_, asked)| asked.is_durable());
        let durable = durable.map_or(0, |last| last + 1);
        let mut model = self.first.clone();
        for (_, asked) in &self.asked[..durable] {
            if let Some((at, length, byte)) = asked.change() {
                model[at..at + length].fill(byte);
            }
        }
        // The request that was under way may have been done in part.
        let since = &self.asked[durable..(done + 1).min(self.asked.len())];
        for (at, sector) in found.chunks(SECTOR).enumerate() {
            let at = at * SECTOR;
            let mut may_be = vec![&model[at..at + sector.len()]];
            let filled: Vec<Vec<u8>> = since
                .iter()
                .filter_map(|(_, asked)| asked.change())
                .filter(|(from, length, _)| (*from..from + length).contains(&at))
                .map(|(.., byte)| vec![byte; sector.len()])
                .collect();
            may_be.extend(filled.iter().map(Vec::as_slice));
            assert!(may_be.contains(&sector), "sector at {at} after {count} changes");
        }
    }
}

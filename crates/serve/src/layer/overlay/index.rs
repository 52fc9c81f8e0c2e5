//! The states of the blocks of one disk: base, written, or zero. Two bits for each, in pages that
//! exist where a state was changed.
//!
//! # Limits
//! 256 KiB for a TiB of the disk for the table of pages, and 4 KiB for every 64 MiB with a change:
//! at most 64 MiB for a TiB.

use super::BLOCK;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// On the base: never written.
    Base = 0,
    /// In the overlay, at its own offset.
    Written = 1,
    /// Zeros, which are stored nowhere.
    Zero = 2,
}

/// Blocks in a word, words in a page, bytes in a page.
const PER_WORD: u64 = 32;
const WORDS: usize = 512;
pub(super) const PAGE: usize = WORDS * 8;
/// Blocks in a page.
const PER_PAGE: u64 = PER_WORD * WORDS as u64;
/// The most words that are searched for the end of a run.
const LOOK: u64 = 1 << 15;

/// The lower bit of every block of a word.
const LOW: u64 = 0x5555_5555_5555_5555;

/// A page of states.
struct Page {
    words: [AtomicU64; WORDS],
    /// Set when a state changes; cleared when the page is taken to be written to the file.
    dirty: AtomicBool,
}

impl Page {
    fn new() -> Box<Page> {
        Box::new(Page {
            words: [const { AtomicU64::new(0) }; WORDS],
            dirty: AtomicBool::new(false),
        })
    }
}

/// The states of all blocks of a disk.
pub(super) struct Index {
    blocks: u64,
    pages: Box<[OnceLock<Box<Page>>]>,
}

/// The number of pages for a disk of `length` bytes.
pub(super) fn pages(length: u64) -> u64 {
    length.div_ceil(BLOCK).div_ceil(PER_PAGE)
}

impl Index {
    /// The index of a disk of `length` bytes, all of it on the base.
    pub(super) fn new(length: u64) -> Index {
        Index {
            blocks: length.div_ceil(BLOCK),
            pages: (0..pages(length)).map(|_| OnceLock::new()).collect(),
        }
    }

    /// The number of pages, whether they exist or not.
    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    fn word(&self, block: u64) -> Option<&AtomicU64> {
        let page = self.pages.get(usize::try_from(block / PER_PAGE).ok()?)?.get()?;
        page.words.get(usize::try_from(block % PER_PAGE / PER_WORD).ok()?)
    }

    /// The state of a block.
    pub(super) fn state(&self, block: u64) -> State {
        let word = self.word(block).map_or(0, |word| word.load(Ordering::SeqCst));
        state_of(word >> (block % PER_WORD * 2))
    }

    /// The state of block `blocks.start`, and the end of its run within `blocks`, which is not
    /// empty; of a long run, part.
    pub(super) fn run(&self, blocks: Range<u64>) -> (State, u64) {
        let state = self.state(blocks.start);
        let mut at = blocks.start;
        for _ in 0..LOOK {
            // To the end of the word, or of the page where there is none.
            let (word, step) = match self.word(at) {
                Some(word) => (word.load(Ordering::SeqCst), PER_WORD),
                None => (0, PER_PAGE),
            };
            let next = (at / step + 1) * step;
            let differing = (word ^ (LOW * state as u64)) >> (at % PER_WORD * 2);
            let same = if step == PER_PAGE {
                if state == State::Base { next - at } else { 0 }
            } else {
                u64::from(differing.trailing_zeros() / 2)
            };
            if at + same < next {
                return (state, (at + same).min(blocks.end));
            }
            at = next;
            if at >= blocks.end {
                break;
            }
        }
        (state, at.min(blocks.end))
    }

    /// Sets the state of `blocks`.
    pub(super) fn set(&self, blocks: Range<u64>, state: State) {
        let mut at = blocks.start;
        while at < blocks.end.min(self.blocks) {
            let end = blocks.end.min(self.blocks).min((at / PER_WORD + 1) * PER_WORD);
            let count = end - at;
            let ones = if count == PER_WORD {
                u64::MAX
            } else {
                ((1 << (count * 2)) - 1) << (at % PER_WORD * 2)
            };
            let page = usize::try_from(at / PER_PAGE).ok().and_then(|page| self.pages.get(page));
            let Some(page) = page.map(|page| page.get_or_init(Page::new)) else { return };
            let Some(word) = usize::try_from(at % PER_PAGE / PER_WORD)
                .ok()
                .and_then(|word| page.words.get(word))
            else {
                return;
            };
            let pattern = LOW * state as u64;
            let new = |word: u64| (word & !ones) | (pattern & ones);
            let before = word
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |word| Some(new(word)))
                .unwrap_or(0);
            if new(before) != before {
                page.dirty.store(true, Ordering::SeqCst);
            }
            at = end;
        }
    }

    /// Takes at most `most` pages changed since they were last taken, as (number, bytes in the
    /// file's form).
    pub(super) fn take_changed(&self, most: usize) -> Vec<(usize, Box<[u8]>)> {
        let pages =
            self.pages.iter().enumerate().filter_map(|(number, page)| Some((number, page.get()?)));
        let changed = pages.filter(|(_, page)| page.dirty.swap(false, Ordering::SeqCst));
        let bytes = |page: &Page| {
            page.words.iter().flat_map(|word| word.load(Ordering::SeqCst).to_le_bytes()).collect()
        };
        changed.take(most).map(|(number, page)| (number, bytes(page))).collect()
    }

    /// Marks a page changed again, because it could not be written to the file.
    pub(super) fn is_changed(&self, number: usize) {
        if let Some(page) = self.pages.get(number).and_then(OnceLock::get) {
            page.dirty.store(true, Ordering::SeqCst);
        }
    }

    /// Loads a page from the file's form. False if it is not valid.
    pub(super) fn load(&self, number: usize, bytes: &[u8]) -> bool {
        let Some(page) = self.pages.get(number).map(|page| page.get_or_init(Page::new)) else {
            return false;
        };
        let kept = bytes
            .chunks_exact(8)
            .map(|word| word.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        let first = u64::try_from(number).unwrap_or(u64::MAX).saturating_mul(PER_PAGE);
        for ((nth, word), kept) in (0..).zip(&page.words).zip(kept) {
            let left =
                self.blocks.saturating_sub(first.saturating_add(nth * PER_WORD)).min(PER_WORD);
            let outside = if left == PER_WORD { 0 } else { u64::MAX << (left * 2) };
            // Both bits set are no state.
            if kept & kept >> 1 & LOW != 0 || kept & outside != 0 {
                return false;
            }
            word.store(kept, Ordering::SeqCst);
        }
        true
    }

    /// The number of written blocks, and of zero blocks.
    pub(super) fn counts(&self) -> (u64, u64) {
        let words = self
            .pages
            .iter()
            .filter_map(OnceLock::get)
            .flat_map(|page| &page.words)
            .map(|word| word.load(Ordering::SeqCst));
        words.fold((0, 0), |(written, zero), word| {
            let ones = |bits: u64| u64::from(bits.count_ones());
            (written + ones(word & LOW), zero + ones(word >> 1 & LOW))
        })
    }
}

/// The state in the lowest two bits.
fn state_of(bits: u64) -> State {
    match bits & 3 {
        0 => State::Base,
        1 => State::Written,
        _ => State::Zero,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every edge of a block, a word and a page, against one state a byte.
    #[test]
    fn runs_are_those_of_a_model() {
        let blocks = 3 * PER_PAGE + 40;
        let index = Index::new(blocks * BLOCK - 5);
        let mut model = vec![State::Base; usize::try_from(blocks).unwrap()];
        let edges = [
            0,
            1,
            31,
            32,
            33,
            64,
            PER_PAGE - 1,
            PER_PAGE,
            PER_PAGE + 32,
            2 * PER_PAGE,
            3 * PER_PAGE + 1,
            blocks - 1,
            blocks,
        ];
        let mut states =
            [State::Written, State::Zero, State::Written, State::Zero].into_iter().cycle();
        let mut seed = 7_u64;
        for _ in 0..60 {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                usize::try_from(seed >> 33).unwrap()
            };
            let (from, to) = (edges[next() % edges.len()], edges[next() % edges.len()]);
            let (range, state) = (from.min(to)..from.max(to), states.next().unwrap());
            model[usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap()]
                .fill(state);
            index.set(range, state);
            let (mut at, mut found) = (0, Vec::new());
            while at < blocks {
                let (state, end) = index.run(at..blocks);
                assert!(end > at && end <= blocks);
                found.extend(std::iter::repeat_n(state, usize::try_from(end - at).unwrap()));
                at = end;
            }
            assert!(found == model);
        }
        let written = model.iter().filter(|&&state| state == State::Written).count() as u64;
        assert_eq!(index.counts().0, written);
        // What is kept is what was.
        let kept = index.take_changed(usize::MAX);
        assert!(index.take_changed(usize::MAX).is_empty());
        let again = Index::new(blocks * BLOCK - 5);
        assert!(kept.iter().all(|(number, bytes)| again.load(*number, bytes)));
        assert!((0..blocks).all(|block| again.state(block) == index.state(block)));
    }

    #[test]
    fn what_is_no_state_is_refused() {
        let index = Index::new(33 * BLOCK);
        let page = |at: usize, byte| {
            let mut page = [0; PAGE];
            page[at] = byte;
            page
        };
        assert!(index.load(0, &page(8, 0b10)));
        for (at, byte) in [(0, 3), (7, 0xc0), (8, 0b100), (16, 1), (PAGE - 1, 0x40)] {
            assert!(!index.load(0, &page(at, byte)), "{at} {byte}");
        }
        assert!(!index.load(1, &page(0, 1)));
    }
}

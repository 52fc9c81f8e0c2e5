//! Choice of what one round fetches of an object, by what it took before and what it may take.

use crate::ranges;
use std::ops::Range;

/// Bytes up to which requests are saved by fetching what lies between them.
pub(crate) const MOST_BYTES: u64 = 248 << 10;
/// The same from the third round on: only what has tables of its places takes more than two.
const MOST_BYTES_LATER: u64 = 480 << 10;
/// Requests of an object, by the rounds that it took, down to which gaps are fetched: a second
/// round leaves what the third one needs.
const ENOUGH: [u64; 4] = [0, 9, 12, 16];
/// Least bytes that are read of a container's table at once.
const PAGE: u64 = 4 << 10;
/// Longest lone range that is a step of a chain: a page of a table leads to the next place.
const STEP: u64 = 8 << 10;
/// Bytes that are fetched from there on: tools write the table, what it leads to and the first data
/// one behind the other.
const CHAIN: u64 = 192 << 10;

/// Requests that an object took, or may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests for ranges of it.
    pub requests: u64,
    /// Bytes of their replies.
    pub bytes: u64,
    /// Times at which requests were waited for.
    pub rounds: u64,
}

/// Bounds of an object that is a disk.
pub const DISK: Counts = Counts { requests: 12, bytes: 256 << 10, rounds: 3 };
/// Bounds of an object that holds a disk, and tables of where its parts are.
pub const CONTAINER: Counts = Counts { requests: 16, bytes: 512 << 10, rounds: 5 };

impl Counts {
    /// Rest of these bounds behind `counts`.
    pub(crate) fn less(self, counts: Counts) -> Counts {
        Counts {
            requests: self.requests.saturating_sub(counts.requests),
            bytes: self.bytes.saturating_sub(counts.bytes),
            rounds: self.rounds.saturating_sub(counts.rounds),
        }
    }
}

/// The ranges to fetch for `missing` of an object of `length` bytes that took `counts` so far, as
/// far as `left` allows.
pub(crate) fn chosen(
    missing: Vec<Range<u64>>,
    counts: Counts,
    left: Option<Counts>,
    length: u64,
) -> Vec<Range<u64>> {
    let is_table = missing.iter().all(|range| range.end - range.start >= PAGE);
    let most = if counts.rounds > 2 { MOST_BYTES_LATER } else { MOST_BYTES };
    let round = usize::try_from(counts.rounds).unwrap_or(usize::MAX).min(ENOUGH.len() - 1);
    let enough = ENOUGH[round].saturating_sub(counts.requests);
    let enough = left.map_or(enough, |left| enough.min(left.requests));
    let mut ranges = ranges::requests(missing, most.saturating_sub(counts.bytes), enough);
    if let [lone] = ranges.as_mut_slice()
        && (is_table || counts.rounds > 3)
        && lone.end - lone.start <= STEP
        && counts.bytes < MOST_BYTES
    {
        let chain = left.map_or(CHAIN, |left| CHAIN.min(left.bytes));
        lone.end = lone.end.max(lone.start.saturating_add(chain).min(length));
    }
    match left {
        Some(Counts { requests, bytes, rounds: 1.. }) => ranges::within(ranges, requests, bytes),
        Some(_) => Vec::new(),
        None => ranges,
    }
}

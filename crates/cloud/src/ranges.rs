//! Requests for what is missing: few, and not much more than that.

use std::ops::Range;

/// Bytes between two ranges that are always fetched with them.
const GAP: u64 = 4 << 10;
/// Requests of one round beyond which the closest are joined.
const MOST: usize = 10;
/// Largest gap that is fetched to save a request.
const MOST_GAP: u64 = 128 << 10;
/// Bytes of gaps that are fetched where there is nothing to spare.
const MOST_GAPS: u64 = 128 << 10;

/// The ranges to fetch for `wanted`, in order. While there are more than `enough`, the two that are
/// closest are one as long as what lies between them is at most `spare` bytes in all, or, up to
/// [`MOST_GAPS`], while there are more than [`MOST`].
pub(crate) fn requests(
    mut wanted: Vec<Range<u64>>,
    mut spare: u64,
    enough: u64,
) -> Vec<Range<u64>> {
    wanted.sort_unstable_by_key(|range| range.start);
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in wanted.into_iter().filter(|range| range.start < range.end) {
        match all.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP) => {
                last.end = last.end.max(range.end);
            }
            _ => all.push(range),
        }
    }
    spare = spare.saturating_sub(all.iter().map(|range| range.end - range.start).sum());
    let mut gaps = MOST_GAPS;
    loop {
        let gap = |at: usize| all[at].start - all[at - 1].end;
        let Some(closest) = (1..all.len()).min_by_key(|&at| gap(at)) else { return all };
        let bytes = gap(closest);
        let is_spare = bytes <= spare;
        if all.len() as u64 <= enough
            || bytes > MOST_GAP
            || !is_spare && (all.len() <= MOST || bytes > gaps)
        {
            return all;
        }
        match is_spare {
            true => spare -= bytes,
            false => gaps -= bytes,
        }
        all[closest - 1].end = all[closest].end;
        all.remove(closest);
    }
}

/// As many of `ranges` as `requests` and `bytes` are enough for, in order: the shortest ones, since
/// a short one leads further and a long one looks for what is rare.
pub(crate) fn within(
    mut ranges: Vec<Range<u64>>,
    mut requests: u64,
    mut bytes: u64,
) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.end - range.start);
    ranges.retain(|range| {
        let length = range.end - range.start;
        let fits = requests > 0 && length <= bytes;
        if fits {
            (requests, bytes) = (requests - 1, bytes - length);
        }
        fits
    });
    ranges.sort_by_key(|range| range.start);
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    const K: u64 = 1 << 10;

    #[test]
    fn what_is_near_is_fetched_at_once() {
        assert_eq!(requests(vec![], 9, 0), []);
        assert_eq!(requests(vec![5..5, 9..9], 9, 0), []);
        let near = vec![100 * K..101 * K, 0..K, 5 * K..6 * K, 0..512];
        assert_eq!(requests(near, 0, 0), [0..6 * K, 100 * K..101 * K]);
        assert_eq!(requests(vec![0..K, GAP + K..GAP + 2 * K], 0, 0).len(), 1);
        assert_eq!(requests(vec![0..K, GAP + K + 1..GAP + 2 * K], 0, 0).len(), 2);
    }

    #[test]
    fn requests_are_saved_with_bytes_to_spare() {
        let apart = |gap: u64, count: u64| -> Vec<Range<u64>> {
            (0..count).map(|n| n * (gap + K)..n * (gap + K) + K).collect()
        };
        // Four of them, and what is between two.
        assert_eq!(requests(apart(30 * K, 4), 4 * K + 30 * K, 0).len(), 3);
        assert_eq!(requests(apart(30 * K, 4), 4 * K + 30 * K - 1, 0).len(), 4);
        assert_eq!(requests(apart(30 * K, 4), u64::MAX, 0).len(), 1);
        assert_eq!(requests(apart(MOST_GAP + 1, 4), u64::MAX, 0).len(), 4);
        assert_eq!(requests(apart(30 * K, 4), u64::MAX, 3).len(), 3);
        // Many are joined, as far as that takes no more than a bound.
        assert_eq!(requests(apart(30 * K, 12), 0, 0).len(), MOST);
        assert_eq!(requests(apart(30 * K, 40), 0, 0).len(), 36);
        assert_eq!(requests(apart(MOST_GAP, 12), 0, 0).len(), 11);
        assert_eq!(requests(apart(MOST_GAP + 1, 20), 0, 0).len(), 20);
    }

    #[test]
    fn what_fits_is_the_shortest_in_order() {
        let all = || vec![0..8 * K, 20 * K..21 * K, 40 * K..60 * K, 80 * K..82 * K];
        assert_eq!(within(all(), 4, 100 * K), all());
        assert_eq!(within(all(), 2, 100 * K), [20 * K..21 * K, 80 * K..82 * K]);
        assert_eq!(within(all(), 4, 11 * K), [0..8 * K, 20 * K..21 * K, 80 * K..82 * K]);
        assert_eq!(within(all(), 4, 1000), []);
    }
}

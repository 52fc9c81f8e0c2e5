//! Remains of a destroyed GPT: its headers are gone, its arrays stay, as gpart(8) and others leave
//! it. No reader looks at them again, so they are no contents that a new table would destroy.

use crate::base::topology::round_down;
use crate::probe::Probe;
use std::ops::Range;

/// Bytes of an entry; arrays of larger ones are not recognised.
const ENTRY: usize = 128;
/// Bytes of the largest array that is recognised: 1024 entries.
const MOST: u64 = 128 << 10;

/// The ranges behind the primary header and before the backup header that look like arrays of
/// entries.
pub fn left(probe: &Probe<'_>) -> Vec<Range<u64>> {
    let sector = probe.sector();
    let last = round_down(probe.length(), sector).saturating_sub(sector);
    let front = sector.saturating_mul(2).min(last);
    let length = round_down(MOST.min(last - front), ENTRY as u64);
    let read = |at: u64| {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        probe.look(at, &mut bytes).ok().map(|()| bytes)
    };
    let entry = |slot: &&[u8]| is_entry(slot, last / sector);
    let first = read(front).map_or(0, |bytes| bytes.chunks_exact(ENTRY).take_while(entry).count());
    let second =
        read(last - length).map_or(0, |bytes| bytes.rchunks_exact(ENTRY).take_while(entry).count());
    vec![front..front + (first * ENTRY) as u64, last - (second * ENTRY) as u64..last]
}

/// True if an entry is unused, or has a type, a UUID and a place before sector `last`.
fn is_entry(slot: &[u8], last: u64) -> bool {
    let number =
        |at: usize| slot[at..at + 8].iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    let has = |range: Range<usize>| slot[range].iter().any(|&byte| byte != 0);
    let (start, end) = (number(32), number(40));
    !has(0..ENTRY) || has(0..16) && has(16..32) && 1 < start && start <= end && end < last
}

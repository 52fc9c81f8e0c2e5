//! What must hold of free space, whatever a file system says; and file systems that say anything.

use crate::btrfs;
use crate::repair::repair;
use std::ops::Range;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::format::FormatKind;
use trueline_geom::format::free_space::Unsure;
use trueline_geom::registry::FORMATS;

/// Bytes that may be read of a disk: a FAT of the largest size, and its copies.
const BYTES: u64 = 4 << 30;
/// Ranges that are kept; those behind them are joined to the last.
const RANGES: usize = 10_000;
/// Bytes of a change: the node, two of the place, and eight that are put there.
const CHANGE: usize = 11;

/// The free ranges of a disk by one kind, in order and inside; `None` if none are known of it.
pub fn free(kind: FormatKind, disk: &Sparse) -> Option<Result<Vec<Range<u64>>, Unsure>> {
    let (length, mut bytes, mut found) = (disk.length(), 0, Vec::<Range<u64>>::new());
    let mut read = |at: u64, out: &mut [u8]| {
        bytes += out.len() as u64;
        assert!(bytes <= BYTES, "{kind}: too much is read");
        disk.read_at(out, at)
    };
    let mut add = |range: Range<u64>| {
        let end = found.last().map_or(0, |last| last.end);
        assert!(range.start < range.end && range.start >= end, "{kind}: {range:?} behind {end}");
        assert!(range.end <= length, "{kind}: {range:?} of {length}");
        let is_full = found.len() >= RANGES;
        match found.last_mut().filter(|last| last.end == range.start || is_full) {
            Some(last) => last.end = range.end,
            None => found.push(range),
        }
    };
    let came = kind.format.free(kind, length, &mut read, &mut add)?;
    Some(came.map(|()| found))
}

/// Asks every kind for the free ranges of a disk; how many knew them, and how many were in doubt.
pub fn hold(disk: &Sparse) -> (u64, u64) {
    let kinds = FORMATS.iter().flat_map(|format| format.kinds());
    kinds.filter_map(|kind| free(kind, disk)).fold((0, 0), |(sound, doubted), came| match came {
        Ok(_) => (sound + 1, doubted),
        Err(_) => (sound, doubted + 1),
    })
}

/// The Btrfs that `data` describes: a right one first, then a few bytes of its superblock or of
/// some of its nodes changed, with every checksum right.
pub fn disk(data: &[u8]) -> Sparse {
    let mut disk = btrfs::disk(data.first().is_some_and(|flags| flags & 1 != 0));
    let nodes = [
        btrfs::CHUNK,
        btrfs::ROOT,
        btrfs::EXTENT,
        btrfs::LEAVES[0],
        btrfs::LEAVES[1],
        btrfs::DEV,
        btrfs::GROUP,
    ];
    for change in data.get(1..).unwrap_or_default().chunks_exact(CHANGE) {
        let place = u64::from(u16::from_le_bytes([change[1], change[2]])) % (btrfs::NODE - 8);
        match nodes.get(usize::from(change[0] & 7)) {
            Some(node) => btrfs::put(&mut disk, node + place, &change[3..]),
            None => disk.put(65536 + place, &change[3..]),
        }
    }
    repair(&mut disk, 512);
    disk
}

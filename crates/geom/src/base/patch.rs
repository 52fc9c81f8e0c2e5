//! Ordered writes: the form in which an edit reaches the disk.
//!
//! A scheme orders its patches so that after every prefix of them a reader finds either the old
//! table or the new one. A disk's write-back cache ignores that order, so a patch states if earlier
//! patches must have reached the medium.

use crate::base::error::Errno;
use crate::base::topology::round_down;

/// One write to a provider, of whole sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// First byte on the provider, a multiple of its sector.
    pub offset: u64,
    /// Contents to write, in whole sectors.
    pub bytes: Vec<u8>,
    /// Name of the structure written, for people: "backup header".
    pub what: &'static str,
    /// True if every patch before this one must be on the medium first.
    pub after_flush: bool,
}

impl Patch {
    /// A write that may be reordered with those before it.
    pub fn new(offset: u64, bytes: Vec<u8>, what: &'static str) -> Patch {
        Patch { offset, bytes, what, after_flush: false }
    }

    /// This write, ordered after a flush of all writes before it.
    #[must_use]
    pub fn after_flush(self) -> Patch {
        Patch { after_flush: true, ..self }
    }

    /// Offset of the byte after the last one written.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes.len() as u64)
    }

    /// The `length` bytes that it writes at `offset`; `None` unless it writes all of them.
    pub fn part(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        self.bytes.get(from..from.checked_add(length)?)
    }
}

/// A reader that fills a buffer from the given byte of the provider.
pub type Read<'a> = dyn FnMut(u64, &mut [u8]) -> Result<(), Errno> + 'a;

/// The patches that put back what `patches` overwrite, in the order in which they must be undone.
/// `read` fills a buffer from the provider as it is before the first of them.
pub fn undo(patches: &[Patch], read: &mut Read<'_>) -> Result<Vec<Patch>, Errno> {
    let before = |patch: &Patch| {
        let mut bytes = vec![0; patch.bytes.len()];
        read(patch.offset, &mut bytes).map(|()| Patch { bytes, ..patch.clone() })
    };
    let mut back: Vec<Patch> = patches.iter().map(before).collect::<Result<_, _>>()?;
    back.reverse();
    // A flush between two patches on the way there is a flush between the same two on the way back.
    let flushes: Vec<bool> = patches.iter().map(|p| p.after_flush).collect();
    for (patch, after) in back.iter_mut().skip(1).zip(flushes.iter().skip(1).rev()) {
        patch.after_flush = *after;
    }
    if let Some(first) = back.first_mut() {
        first.after_flush = false;
    }
    Ok(back)
}

/// Those of `patches` that change anything, given the bytes on the disk and the writes of earlier
/// patches. A patch that changes nothing is dropped and passes its flush on to the next.
pub fn changes(patches: Vec<Patch>, read: &mut Read<'_>) -> Result<Vec<Patch>, Errno> {
    let (mut kept, mut flush): (Vec<Patch>, bool) = (Vec::new(), false);
    for mut patch in patches {
        let mut now = vec![0; patch.bytes.len()];
        read(patch.offset, &mut now)?;
        lay_over(&kept, patch.offset, &mut now);
        flush |= patch.after_flush;
        if now != patch.bytes {
            patch.after_flush = std::mem::take(&mut flush) && !kept.is_empty();
            kept.push(patch);
        }
    }
    Ok(kept)
}

/// The parts of `patches` outside everything that `others` write: an old table is removed around
/// the new one.
pub fn outside(patches: Vec<Patch>, others: &[Patch]) -> Vec<Patch> {
    let mut left = patches;
    for other in others {
        let cut = |p: Patch| {
            let length = p.bytes.len();
            let index = |byte: u64| {
                usize::try_from(byte.saturating_sub(p.offset)).unwrap_or(usize::MAX).min(length)
            };
            let (from, to) = (index(other.offset), index(other.end()));
            let front = Patch { bytes: p.bytes[..from].to_vec(), ..p.clone() };
            let back = Patch { offset: p.offset + to as u64, bytes: p.bytes[to..].to_vec(), ..p };
            if from < to {
                [Some(front), Some(back)]
            } else {
                [Some(Patch { bytes: [front.bytes, back.bytes].concat(), ..front }), None]
            }
        };
        left = left.into_iter().flat_map(cut).flatten().filter(|p| !p.bytes.is_empty()).collect();
    }
    left
}

/// `new`, then those parts of `old` that lie around it. A reader in between finds the old contents
/// or the new ones.
pub fn instead(new: Vec<Patch>, old: Vec<Patch>) -> Vec<Patch> {
    let mut rest = outside(old, &new);
    rest.iter_mut().take(1).for_each(|patch| patch.after_flush = true);
    new.into_iter().chain(rest).collect()
}

/// Bytes at either end of a provider in which every format keeps its signature, or a copy of it.
const KNOWN_BY: u64 = 1 << 20;

/// The two ends of a provider of `length` bytes, in pieces of (first byte, bytes). Every signature
/// lies in them.
pub fn ends(length: u64) -> impl Iterator<Item = (u64, usize)> {
    const PIECE: usize = 64 << 10;
    let (front, back) =
        (KNOWN_BY.min(length), round_down(length.saturating_sub(KNOWN_BY), PIECE as u64));
    let starts = (0..front).step_by(PIECE).chain((back.max(front)..length).step_by(PIECE));
    starts.map(move |at| (at, usize::try_from(length - at).unwrap_or(PIECE).min(PIECE)))
}

/// Zeroes over the [`ends`] of a provider of `length` bytes, and over sectors of `sector` bytes
/// between them at the offsets in `magic`. [`changes`] drops those that are zero already.
pub fn blank(length: u64, magic: &[u64], sector: u64) -> Vec<Patch> {
    let nothing = |(at, bytes)| Patch::new(at, vec![0; bytes], "nothing, over what was there");
    let between = KNOWN_BY..length.saturating_sub(KNOWN_BY);
    let sectors = magic.iter().filter(|&at| between.contains(at)).map(|&at| round_down(at, sector));
    ends(length)
        .chain(sectors.filter_map(|at| Some((at, usize::try_from(sector).ok()?))))
        .map(nothing)
        .collect()
}

/// Turns `bytes`, read at `offset` before `patches`, into the contents after them.
pub fn lay_over(patches: &[Patch], offset: u64, bytes: &mut [u8]) {
    let end = offset.saturating_add(bytes.len() as u64);
    for patch in patches {
        let (from, to) = (patch.offset.max(offset), patch.end().min(end));
        let index = |at: u64, base: u64| usize::try_from(at.checked_sub(base)?).ok();
        let into =
            index(from, offset).zip(index(to, offset)).and_then(|(a, b)| bytes.get_mut(a..b));
        let out = index(from, patch.offset)
            .zip(index(to, patch.offset))
            .and_then(|(a, b)| patch.bytes.get(a..b));
        if let (Some(into), Some(out)) = (into, out) {
            into.copy_from_slice(out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(disk: &mut [u8], patches: &[Patch]) {
        for p in patches {
            let at = usize::try_from(p.offset).unwrap();
            disk[at..at + p.bytes.len()].copy_from_slice(&p.bytes);
        }
    }

    #[test]
    fn what_is_written_twice_is_compared_with_what_was_written_first() {
        // Erased and made anew: the second write equals the bytes that stand there before the
        // first.
        let patches = vec![
            Patch::new(0, vec![0; 8], "erased"),
            Patch::new(4, vec![5; 8], "anew"),
            Patch::new(4, vec![5; 4], "again"),
        ];
        let mut read = |_: u64, out: &mut [u8]| {
            out.fill(5);
            Ok(())
        };
        let kept: Vec<&str> = changes(patches, &mut read).unwrap().iter().map(|p| p.what).collect();
        assert_eq!(kept, ["erased", "anew"]);
    }

    #[test]
    fn undone_is_as_before_and_what_changes_nothing_is_left_out() {
        let first: Vec<u8> = (0..64).collect();
        let patches = vec![
            Patch::new(0, vec![9; 8], "a"),
            Patch::new(8, (8..16).collect(), "the same").after_flush(),
            Patch::new(4, vec![7; 8], "over a"),
            Patch::new(56, vec![1; 8], "b").after_flush(),
        ];
        let mut read = |at: u64, out: &mut [u8]| {
            let at = usize::try_from(at).unwrap();
            out.copy_from_slice(&first[at..at + out.len()]);
            Ok(())
        };
        let back = undo(&patches, &mut read).unwrap();
        let kept = changes(patches.clone(), &mut read).unwrap();
        let mut disk = first.clone();
        write(&mut disk, &patches);
        let mut less = first.clone();
        write(&mut less, &kept);
        assert_eq!(disk, less);
        assert_eq!(
            kept.iter().map(|p| (p.what, p.after_flush)).collect::<Vec<_>>(),
            [("a", false), ("over a", true), ("b", true)]
        );
        assert_eq!(
            back.iter().map(|p| (p.what, p.after_flush)).collect::<Vec<_>>()[..2],
            [("b", false), ("over a", true)]
        );
        write(&mut disk, &back);
        assert_eq!(disk, first);
    }

    #[test]
    fn what_is_known_by_its_ends_is_blanked_there() {
        for length in
            [1, 511, 4096, (1 << 20) + 512, (2 << 20) - 512, 64 << 20, (64 << 20) + 7 * 512]
        {
            let mut at = 0;
            for p in blank(length, &[], 512) {
                let skipped = at..p.offset;
                assert!(
                    p.offset >= at
                        && (skipped.is_empty()
                            || skipped.start >= 1 << 20 && skipped.end + (1 << 20) <= length)
                );
                assert!(!p.bytes.is_empty() && p.bytes.iter().all(|b| *b == 0));
                at = p.end();
            }
            assert_eq!(at, length);
        }
        let new = || vec![Patch::new(512, vec![1; 512], "new")];
        let all = instead(new(), blank(4096, &[], 512));
        assert_eq!(
            all.iter().map(|p| (p.offset, p.end(), p.after_flush)).collect::<Vec<_>>(),
            [(512, 1024, false), (0, 512, true), (1024, 4096, false)]
        );
    }

    #[test]
    fn outside_of_another_nothing_is_lost_and_nothing_shared() {
        let others = [Patch::new(10, vec![1; 10], "new"), Patch::new(30, vec![1; 5], "new")];
        for (offset, length) in
            [(0, 5), (0, 10), (0, 50), (5, 10), (12, 4), (15, 20), (20, 10), (35, 5)]
        {
            let bytes: Vec<u8> = (offset..offset + length).collect();
            let left = outside(vec![Patch::new(u64::from(offset), bytes, "old")], &others);
            let mut found: Vec<u64> = Vec::new();
            for p in &left {
                let places = p.offset..p.end();
                assert!(
                    places.clone().map(|x| u8::try_from(x).unwrap()).eq(p.bytes.iter().copied())
                );
                found.extend(places);
            }
            let want = (u64::from(offset)..u64::from(offset + length))
                .filter(|x| !(10..20).contains(x) && !(30..35).contains(x));
            assert!(found.iter().copied().eq(want), "{offset} {length}");
        }
    }
}

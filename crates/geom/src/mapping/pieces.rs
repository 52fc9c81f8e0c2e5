//! Disk that a file lists piece by piece: an archive, or an image that is unpacked before it runs.
//!
//! Pieces have any length and lie anywhere, so that nothing in such a file is off or need be.

use super::geom::{Extent, Geom, Op, Packed, ReadConsumer, Slot};
use crate::base::error::Errno;
use crate::base::topology::{Topology, Translation};
use std::sync::Arc;

/// Largest length of a disk in bytes.
pub const MOST: u64 = 1 << 60;

/// Place of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    /// First byte of it in the file.
    At(u64),
    /// None in the file: these bytes, as they were unpacked.
    Here(Arc<[u8]>),
    /// Four bytes, over and over.
    Fill([u8; 4]),
    /// A compressed block, which has all of it.
    Packed(Packed),
    /// None: the rest of a list, or of a stream, that is longer than is read.
    Unread,
}

/// Pieces of a disk, one after another, in a file.
#[derive(Debug)]
pub struct Pieces {
    /// First byte on the disk of each, ascending from 0, and its place.
    list: Vec<(u64, Stored)>,
    length: u64,
    file: u64,
    translation: Translation,
}

impl Pieces {
    /// An empty disk in a file of `file` bytes, which keeps it in blocks of `block` bytes.
    pub fn new(file: u64, block: u64) -> Pieces {
        Pieces { list: Vec::new(), length: 0, file, translation: Translation::transport(block) }
    }

    /// The disk with `length` bytes more, which lie at `place`; `None` if it would be longer than
    /// [`MOST`].
    pub fn push(&mut self, length: u64, place: Stored) -> Option<()> {
        let end = self.length.checked_add(length).filter(|&end| end <= MOST)?;
        let goes_on = match (self.list.last(), &place) {
            (Some((first, Stored::At(at))), Stored::At(next)) => {
                at.checked_add(self.length - first) == Some(*next)
            }
            (Some((first, Stored::Fill(last))), Stored::Fill(next)) => {
                last == next && (self.length - first).is_multiple_of(4)
            }
            _ => false,
        };
        if length > 0 && !goes_on {
            self.list.push((self.length, place));
        }
        self.length = end;
        Some(())
    }

    /// Length of the disk in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The first byte, the end and the place of the piece that has the byte at `offset`.
    fn piece(&self, offset: u64) -> Option<(u64, u64, &Stored)> {
        let next = self.list.partition_point(|(first, _)| *first <= offset);
        let (first, place) = self.list.get(next.checked_sub(1)?)?;
        let end = self.list.get(next).map_or(self.length, |(first, _)| *first);
        (offset < end).then_some((*first, end, place))
    }
}

impl Geom for Pieces {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        let file = below.first().map(|file| file.translated(&self.translation, self.length));
        file.unwrap_or_else(|| Topology::new(512, self.length))
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        if op == Op::Write {
            return Extent::ReadOnly { length };
        }
        let Some((first, end, place)) = self.piece(offset) else { return Extent::Fail { length } };
        let length = length.min(end.saturating_sub(offset));
        match place {
            Stored::At(at) => {
                let here = at.checked_add(offset - first);
                match here.and_then(|at| Some((at, self.file.checked_sub(at)?))) {
                    // A file that was cut: what is left of the piece is there.
                    Some((offset, left @ 1..)) => {
                        Extent::At { consumer: 0, offset, length: length.min(left) }
                    }
                    _ => Extent::Fail { length },
                }
            }
            Stored::Packed(block) => {
                Extent::Packed { consumer: 0, block: *block, within: offset - first, length }
            }
            Stored::Fill([0, 0, 0, 0]) => Extent::Zero { length },
            Stored::Here(_) | Stored::Fill(_) | Stored::Unread => Extent::Rebuilt { length },
        }
    }

    fn rebuild(
        &self,
        _slot: usize,
        offset: u64,
        buffer: &mut [u8],
        _read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        let (first, end, place) = self.piece(offset).ok_or(Errno::Range)?;
        if end.saturating_sub(offset) < buffer.len() as u64 {
            return Err(Errno::Range);
        }
        match place {
            Stored::Here(bytes) => {
                let rest = usize::try_from(offset - first).ok().and_then(|at| bytes.get(at..));
                let found = rest.and_then(|rest| rest.get(..buffer.len()));
                buffer.copy_from_slice(found.ok_or(Errno::Packed)?);
                Ok(())
            }
            Stored::Fill(word) => {
                let within = (offset - first) % 4;
                let turned = word.iter().cycle().skip(usize::try_from(within).unwrap_or_default());
                buffer.iter_mut().zip(turned).for_each(|(byte, &filled)| *byte = filled);
                Ok(())
            }
            Stored::At(_) | Stored::Packed(_) | Stored::Unread => Err(Errno::Packed),
        }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        Some("it is packed: unpack it, and write to what comes out")
    }

    fn over(&self, _lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        None
    }

    fn translation(&self) -> Option<&Translation> {
        Some(&self.translation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &Pieces, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut buffer = vec![0xee; length];
        pieces.rebuild(0, offset, &mut buffer, &mut |_, _, _| Err(Errno::Io)).map(|()| buffer)
    }

    #[test]
    fn a_byte_is_where_its_piece_says() {
        let mut pieces = Pieces::new(1000, 4);
        for (length, place) in [
            (100, Stored::At(40)),
            (0, Stored::At(7)),
            (60, Stored::At(140)),
            (6, Stored::Fill(*b"abcd")),
            (8, Stored::Fill(*b"abcd")),
            (40, Stored::Fill([0; 4])),
            (100, Stored::At(950)),
            (4, Stored::Here((*b"here").into())),
            (6, Stored::Unread),
        ] {
            pieces.push(length, place).expect("a length");
        }
        assert_eq!(pieces.length(), 324);
        let map = |offset, length| pieces.map(0, offset, length, Op::Read);
        // Two that follow each other are one run.
        assert_eq!(map(0, 400), Extent::At { consumer: 0, offset: 40, length: 160 });
        assert_eq!(map(159, 9), Extent::At { consumer: 0, offset: 199, length: 1 });
        assert_eq!(map(160, 99), Extent::Rebuilt { length: 6 });
        assert_eq!(read(&pieces, 161, 5), Ok(b"bcdab".to_vec()));
        // The next piece begins its words anew.
        assert_eq!(read(&pieces, 166, 8), Ok(b"abcdabcd".to_vec()));
        assert_eq!(read(&pieces, 161, 6), Err(Errno::Range));
        assert_eq!(map(174, 99), Extent::Zero { length: 40 });
        // The file ends in the middle of one.
        assert_eq!(map(214, 100), Extent::At { consumer: 0, offset: 950, length: 50 });
        assert_eq!(map(264, 10), Extent::Fail { length: 10 });
        assert_eq!(map(314, 99), Extent::Rebuilt { length: 4 });
        assert_eq!(read(&pieces, 315, 3), Ok(b"ere".to_vec()));
        assert_eq!(map(318, 99), Extent::Rebuilt { length: 6 });
        assert_eq!(read(&pieces, 318, 6), Err(Errno::Packed));
        assert_eq!(map(324, 1), Extent::Fail { length: 1 });
        assert_eq!(pieces.map(0, 0, 4, Op::Write), Extent::ReadOnly { length: 4 });
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        let mut pieces = Pieces::new(1000, 4);
        assert_eq!(pieces.push(MOST, Stored::At(u64::MAX - 4)), Some(()));
        assert_eq!(pieces.push(1, Stored::Unread), None);
        assert_eq!(pieces.push(u64::MAX, Stored::Unread), None);
        for offset in [3, MOST - 1] {
            assert_eq!(pieces.map(0, offset, 1, Op::Read), Extent::Fail { length: 1 });
        }
    }
}

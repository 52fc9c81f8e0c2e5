//! Writes of a conversion: bytes that are known, or copies of others on the same disk.

use crate::base::error::Errno;
use crate::base::patch::Read;
use std::ops::Range;

/// One write to a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// First byte that is written.
    pub at: u64,
    /// Contents that it writes there.
    pub origin: Origin,
    /// Name of what is written, for people: "FAT".
    pub what: &'static str,
}

/// Contents of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Bytes that are known.
    Bytes(Vec<u8>),
    /// Ranges of the disk one after the other, as they were before the first write, and zeros
    /// behind them up to that length.
    Copied(Vec<Range<u64>>, u64),
}

impl Write {
    /// A write of known bytes.
    pub fn new(at: u64, bytes: Vec<u8>, what: &'static str) -> Write {
        Write { at, origin: Origin::Bytes(bytes), what }
    }

    /// Number of bytes that are written.
    pub fn length(&self) -> u64 {
        match &self.origin {
            Origin::Bytes(bytes) => bytes.len() as u64,
            Origin::Copied(_, length) => *length,
        }
    }

    /// Offset of the byte after the last one written.
    pub fn end(&self) -> u64 {
        self.at.saturating_add(self.length())
    }

    /// This write of a provider that begins at byte `base`, in addresses of the disk.
    #[must_use]
    pub fn shift(self, base: u64) -> Write {
        let origin = match self.origin {
            Origin::Copied(from, length) => Origin::Copied(
                from.into_iter()
                    .map(|range| range.start.saturating_add(base)..range.end.saturating_add(base))
                    .collect(),
                length,
            ),
            bytes @ Origin::Bytes(_) => bytes,
        };
        Write { at: self.at.saturating_add(base), origin, ..self }
    }

    /// Fills `out` with what is written from `offset` on, counted from its first byte. `read` reads
    /// the disk as it was.
    pub fn fill(&self, offset: u64, out: &mut [u8], read: &mut Read<'_>) -> Result<(), Errno> {
        match &self.origin {
            Origin::Bytes(bytes) => {
                let from = usize::try_from(offset).map_err(|_| Errno::Range)?;
                let part = from.checked_add(out.len()).and_then(|end| bytes.get(from..end));
                out.copy_from_slice(part.ok_or(Errno::Range)?);
            }
            Origin::Copied(ranges, _) => {
                let mut at = 0_u64;
                let end = offset.saturating_add(out.len() as u64);
                let mut filled = 0;
                for range in ranges {
                    let length = range.end.saturating_sub(range.start);
                    let (from, to) = (at.max(offset), at.saturating_add(length).min(end));
                    if from < to {
                        let place =
                            |byte: u64| usize::try_from(byte - offset).unwrap_or(usize::MAX);
                        let part = out.get_mut(place(from)..place(to)).ok_or(Errno::Range)?;
                        read(range.start.saturating_add(from - at), part)?;
                        filled = place(to);
                    }
                    at = at.saturating_add(length);
                }
                out.get_mut(filled..).into_iter().for_each(|rest| rest.fill(0));
            }
        }
        Ok(())
    }
}

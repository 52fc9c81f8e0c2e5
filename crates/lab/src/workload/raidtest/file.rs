//! The file of benchmarks/raidtest: records of 16 bytes, offset u64, length u32, type u8 (0 reads,
//! 1 writes), 3 bytes of uninitialised padding; little-endian as on the machines it ran on.
//!
//! # Limits
//! The program transfers from a buffer of 128 KiB; no request is longer.

use crate::error::Error;
use crate::rig::Op;
use std::fmt;
use trueline_geom::base::topology::is_whole;
use trueline_sim::random::Random;

/// The size of a record in bytes.
pub const RECORD: u64 = 16;
/// The longest request in bytes.
pub const LONGEST: u64 = 128 << 10;
/// The most records that are read or made: all are kept in memory.
pub const MOST: u64 = 1 << 22;

/// One request of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u32,
    /// The operation, read or write.
    pub op: Op,
}

/// A record that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The byte of the file at which the record begins.
    pub byte: u64,
    /// The fault of the record.
    pub fault: RecordFault,
}

/// A fault of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// The file ends after so many bytes of it.
    Cut(usize),
    /// The length of its request in bytes is 0, or exceeds [`LONGEST`].
    Length(u32),
    /// The type of its request neither reads nor writes.
    Type(u8),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.byte)?;
        match self.fault {
            RecordFault::Cut(bytes) => {
                write!(f, "a record of {bytes} bytes, cut short: all have {RECORD}")
            }
            RecordFault::Length(length) => {
                write!(f, "a request of {length} bytes: from 1 to {LONGEST}")
            }
            RecordFault::Type(kind) => {
                write!(f, "a request of type {kind}: 0 reads, 1 writes")
            }
        }
    }
}

impl std::error::Error for RecordError {}

/// Reads the records of a file.
pub fn parse(bytes: &[u8]) -> Result<Vec<Record>, RecordError> {
    let (records, rest) = bytes.as_chunks::<16>();
    let byte = |nth: usize| (nth as u64).saturating_mul(RECORD);
    if !rest.is_empty() {
        let fault = RecordFault::Cut(rest.len());
        return Err(RecordError { byte: byte(records.len()), fault });
    }
    let read = records.iter().enumerate().map(|(nth, record)| {
        let refused = |fault| RecordError { byte: byte(nth), fault };
        let &[o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3, kind, ..] = record;
        let offset = u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        let length = u32::from_le_bytes([l0, l1, l2, l3]);
        if length == 0 || u64::from(length) > LONGEST {
            return Err(refused(RecordFault::Length(length)));
        }
        let op = match kind {
            0 => Op::Read,
            1 => Op::Write,
            other => return Err(refused(RecordFault::Type(other))),
        };
        Ok(Record { offset, length, op })
    });
    read.collect()
}

/// The bytes of a file; what its author left as it was is 0.
pub fn render(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(records.len() * 16);
    for Record { offset, length, op } in records {
        bytes.extend(offset.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend([u8::from(*op == Op::Write), 0, 0, 0]);
    }
    bytes
}

/// The parameters of the requests to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenfileParameters {
    /// The size of the medium in bytes.
    pub medium: u64,
    /// The size of a sector in bytes.
    pub sector: u64,
    /// The length of every request in bytes; `None`: random, from a sector to 128 KiB.
    pub fixed: Option<u64>,
    /// The operation of every request; `None`: random.
    pub op: Option<Op>,
}

/// Makes requests as genfile does, from random numbers of our own: a length from a sector to 128
/// KiB, all alike likely, at any sector of the first 2^32 at which it fits. Of a fixed length, as
/// mav's patch had it, they lie at multiples of the length.
pub fn generate(count: u64, shape: GenfileParameters, seed: u64) -> Result<Vec<Record>, Error> {
    let GenfileParameters { medium, sector, fixed, op } = shape;
    if !(1..=LONGEST).contains(&sector) {
        return Err(Error::new(format!("sectors of {sector} bytes: from 1 to {LONGEST}")));
    }
    if let Some(fixed) =
        fixed.filter(|&fixed| fixed == 0 || fixed > LONGEST || !is_whole(fixed, sector))
    {
        return Err(Error::new(format!(
            "requests of {fixed} bytes: whole sectors of {sector} bytes, at most {LONGEST}"
        )));
    }
    if medium < fixed.unwrap_or(LONGEST) {
        return Err(Error::new(format!(
            "a medium of {medium} bytes: requests have up to {} bytes",
            fixed.unwrap_or(LONGEST)
        )));
    }
    if !(1..=MOST).contains(&count) {
        return Err(Error::new(format!("{count} requests: from 1 to {MOST}")));
    }
    let mut random = Random::new(seed);
    let mut records = Vec::new();
    for _ in 0..count {
        let (length, offset) = match fixed {
            Some(length) => (length, length * random.below((medium / length).min(1 << 32))),
            None => {
                let length = sector * (random.below(LONGEST / sector) + 1);
                // One more place than genfile has where it fits exactly: there it divides by 0.
                let places = (medium / sector - length / sector).max(1);
                (length, sector * random.below(places.min(1 << 32)))
            }
        };
        let drawn = if random.below(2) == 0 { Op::Read } else { Op::Write };
        let length =
            u32::try_from(length).map_err(|_| Error::new(format!("requests of {length} bytes")))?;
        records.push(Record { offset, length, op: op.unwrap_or(drawn) });
    }
    Ok(records)
}

#[cfg(test)]
mod tests;

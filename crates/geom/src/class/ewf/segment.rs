//! One file of evidence, of either version: its part of a disk, and what the files behind it have.

use crate::base::ondisk::Guid;
use crate::base::topology::{Topology, Translation};
use crate::class::Taste;
use crate::class::container::{BlockTable, Contents, Home, NotFollowed, Parent};
use crate::format::{FormatKind, Inside, Reference, Sign};
use crate::mapping::geom::{Extent, Geom, Op, Slot};
use crate::mapping::tables::Tables;
use crate::probe::Probe;
use std::sync::Arc;

pub(in crate::class) const CUT_OFF: NotFollowed = NotFollowed("it is cut off");
pub(in crate::class) const DAMAGED: NotFollowed = NotFollowed("a section of it is damaged");
pub(in crate::class) const EMPTY: NotFollowed = NotFollowed("it has no chunks");
pub(in crate::class) const FEWER: NotFollowed =
    NotFollowed("its tables have fewer chunks than its disk");
pub(in crate::class) const OTHER: NotFollowed =
    NotFollowed("its tables have other chunks than its disk");
pub(in crate::class) const LOGICAL: NotFollowed =
    NotFollowed("it is logical evidence: files, and no disk");
/// Reason for which a file that is not the first is no disk.
const FURTHER: &str = "it is a further segment of a disk, which begins in another file";
/// Bytes of the largest chunk that is unpacked.
const MOST_CHUNK: u64 = 16 << 20;
/// Sizes of a sector in bytes.
const SECTORS: std::ops::RangeInclusive<u64> = 512..=4096;

/// Adler-32 as RFC 1950 has it, which every structure here ends with.
pub(in crate::class) fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1_u32, 0), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65521;
        (low, (high + low) % 65521)
    });
    high << 16 | low
}

/// `N` bytes at `at`, of which the last four are the Adler-32 of the others.
///
/// Errors: a file that ends before, and another checksum.
pub(in crate::class) fn checked<const N: usize>(
    probe: &Probe<'_>,
    at: u64,
) -> Result<[u8; N], NotFollowed> {
    let mut bytes = [0; N];
    probe.map(at, &mut bytes).map_err(|_| CUT_OFF)?;
    let (body, sum) = bytes.split_at(N.saturating_sub(4));
    if sum != adler32(body).to_le_bytes() {
        return Err(DAMAGED);
    }
    Ok(bytes)
}

/// Sizes of a disk as evidence of it says them, in bytes.
#[derive(Clone, Copy)]
pub(in crate::class) struct DiskSizes {
    /// Length of the whole disk.
    pub(in crate::class) length: u64,
    /// Size of a sector.
    pub(in crate::class) sector: u64,
    /// Size of a chunk.
    pub(in crate::class) chunk: u64,
}

impl DiskSizes {
    /// Those of so many sectors, of `sector` bytes and so many to a chunk.
    ///
    /// Errors: what no disk has, and chunks that are larger than are unpacked.
    pub(in crate::class) fn new(
        sectors: u64,
        sector: u64,
        of_chunk: u64,
    ) -> Result<DiskSizes, NotFollowed> {
        let length = sectors.checked_mul(sector).filter(|&length| length > 0);
        let length = length.ok_or(NotFollowed("its size cannot be true"))?;
        if !sector.is_power_of_two() || !SECTORS.contains(&sector) {
            return Err(NotFollowed("its sectors are of a size that disks do not have"));
        }
        let chunk = of_chunk.checked_mul(sector);
        match chunk.filter(|chunk| (1..=MOST_CHUNK).contains(chunk)) {
            Some(chunk) => Ok(DiskSizes { length, sector, chunk }),
            None => Err(NotFollowed("its chunks are empty, or larger than are unpacked")),
        }
    }
}

/// The ending of the file `number`: `.E99` is followed by `.EAA`, and `.EZZ` by `.FAA`. `None`
/// behind the last.
pub(in crate::class) fn ending(prefix: &str, number: u32) -> Option<String> {
    let Some(more) = number.checked_sub(100) else { return Some(format!("{prefix}{number:02}")) };
    let letter = |nth: u32| Some(char::from(b'A' + u8::try_from(nth % 26).ok()?));
    let first = u32::from(prefix.chars().last()?).checked_add(more / 676).and_then(char::from_u32);
    let first = first.filter(char::is_ascii_alphabetic)?;
    let before = prefix.get(..prefix.len().checked_sub(1)?)?;
    Some(format!("{before}{first}{}{}", letter(more / 26)?, letter(more)?))
}

/// A file of evidence: a disk, or a part of one.
#[derive(Clone)]
pub(in crate::class) struct Segment<T> {
    /// Number of the file, from 1.
    number: u32,
    /// True if another file goes on.
    goes_on: bool,
    /// Identity of the set of files, nil where the format has none.
    set: Guid,
    /// Length of the whole disk in bytes.
    length: u64,
    own: Contents<T>,
    /// Bytes of the files behind it, which are consumer 1; `None` while they are not here.
    rest: Option<u64>,
}

/// File of evidence, or the reason for which no disk is looked for in it.
pub(in crate::class) type Looked<T> = Result<Segment<T>, NotFollowed>;

/// Command that makes a disk of such files.
pub(in crate::class) const UNPACK: &str = "unpack it with ewfexport -f raw";

/// The sign of a file with a magic of `kind`; endings of those behind it begin with `prefix`.
pub(in crate::class) fn sign<T: BlockTable>(
    found: Looked<T>,
    kind: FormatKind,
    prefix: &str,
) -> Sign {
    let sign = Sign::new(kind, 0);
    match found {
        Ok(segment) => segment.describe(sign, prefix),
        Err(NotFollowed(reason)) => Sign { inside: Inside::Unknown(reason), ..sign },
    }
}

/// The disk in a file, if it has one that is looked into.
pub(in crate::class) fn taste<T: BlockTable>(found: Option<Looked<T>>, probe: &Probe<'_>) -> Taste {
    match found {
        Some(Ok(segment)) => Taste::Geom(segment.contents(probe.length()), Vec::new()),
        _ => Taste::No,
    }
}

/// The part that has chunk `nth`, and the number of the chunk in it. `chunks` gives the number of
/// the first chunk of a part and how many it has; parts are in the order of their chunks.
pub(in crate::class) fn part_of<P>(
    parts: &[P],
    nth: u64,
    chunks: impl Fn(&P) -> (u64, u64),
) -> Option<(&P, u64)> {
    let next = parts.partition_point(|part| chunks(part).0 <= nth);
    let part = parts.get(next.checked_sub(1)?)?;
    let (first, count) = chunks(part);
    let within = nth.checked_sub(first)?;
    (within < count).then_some((part, within))
}

impl<T: BlockTable> Segment<T> {
    /// The file `number` of a set, with chunks of `chunk` bytes and `own` bytes of the disk in all.
    pub(in crate::class) fn new(
        (number, goes_on): (u32, bool),
        set: Guid,
        disk: &DiskSizes,
        (chunk, own): (u64, u64),
        table: T,
    ) -> Segment<T> {
        let own = Contents {
            table,
            length: own,
            home: Home::Missing,
            parent: Parent::None,
            sector: Some(disk.sector),
            translation: Translation::transport(chunk),
        };
        Segment { number, goes_on, set, length: disk.length, own, rest: None }
    }

    /// Identity of the file `number` of this set.
    fn identity(&self, number: u32) -> String {
        format!("{}/{number}", self.set)
    }

    /// The file that goes on, if there is one, with an ending that begins with `prefix`.
    fn next(&self, sign: &Sign, prefix: &str) -> Option<Reference> {
        let number = self.number.checked_add(1).filter(|_| self.goes_on)?;
        Some(Reference {
            role: "next segment",
            name: format!("*.{}", ending(prefix, number)?),
            format: Some(sign.kind.name.into()),
            identity: Some(self.identity(number)),
        })
    }

    /// `sign` with what is known of the file.
    fn describe(&self, mut sign: Sign, prefix: &str) -> Sign {
        sign.inside = match self.number {
            1 => Inside::Container,
            _ => Inside::Unknown(FURTHER),
        };
        sign.identity = Some(self.identity(self.number));
        sign.references.extend(self.next(&sign, prefix));
        sign.details.push(("virtual size", self.length.to_string()));
        sign.details.push(("cluster size", self.own.table.block().to_string()));
        sign.details.push(("segment", self.number.to_string()));
        sign
    }

    /// The disk, or the part of one that the file, of `file` bytes, and those behind it have.
    fn contents(mut self, file: u64) -> Arc<dyn Geom> {
        self.own.home = Home::File(file);
        if !self.goes_on {
            return Arc::new(self.own);
        }
        if self.number > 1 {
            self.length = self.own.length;
        }
        Arc::new(self)
    }
}

impl<T: BlockTable> Geom for Segment<T> {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, slot: usize, below: &[Topology]) -> Topology {
        Topology { length: self.length, ..self.own.topology(slot, below) }
    }

    fn map(&self, slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        self.map_by(slot, offset, length, op, &Tables::NONE)
    }

    fn map_by(&self, slot: usize, offset: u64, length: u64, op: Op, tables: &Tables<'_>) -> Extent {
        let own = self.own.length;
        match (own.checked_sub(offset), offset.checked_sub(own)) {
            (Some(here @ 1..), _) => self.own.map_by(slot, offset, length.min(here), op, tables),
            (_, Some(offset)) if op == Op::Read => {
                match self.rest.and_then(|rest| rest.checked_sub(offset)) {
                    Some(left @ 1..) => {
                        Extent::At { consumer: 1, offset, length: length.min(left) }
                    }
                    _ => Extent::Fail { length },
                }
            }
            _ => Extent::ReadOnly { length },
        }
    }

    fn read_only(&self, slot: usize) -> Option<&'static str> {
        self.own.read_only(slot)
    }

    fn over(&self, lengths: &[u64]) -> Option<Arc<dyn Geom>> {
        let rest = *lengths.first()?;
        let length = match self.number {
            1 => self.length,
            _ => self.own.length.checked_add(rest)?,
        };
        Some(Arc::new(Segment { rest: Some(rest), length, ..self.clone() }))
    }

    fn translation(&self) -> Option<&Translation> {
        self.own.translation()
    }
}

#[cfg(test)]
mod tests {
    use super::ending;

    #[test]
    fn segments_have_names_by_their_numbers() {
        for (prefix, number, name) in [
            ("E", 2, "E02"),
            ("E", 99, "E99"),
            ("E", 100, "EAA"),
            ("E", 101, "EAB"),
            ("E", 126, "EBA"),
            ("E", 100 + 675, "EZZ"),
            ("E", 100 + 676, "FAA"),
            ("Ex", 2, "Ex02"),
            ("Ex", 100, "ExAA"),
            ("Ex", 100 + 676, "EyAA"),
            ("Ex", 99 + 3 * 676, "EzZZ"),
        ] {
            assert_eq!(ending(prefix, number).as_deref(), Some(name), "{number}");
        }
        assert_eq!(ending("Ex", 100 + 3 * 676), None);
        assert_eq!(ending("E", u32::MAX), None);
    }
}

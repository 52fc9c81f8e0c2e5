//! The file that keeps an overlay.
//!
//! # On disk
//! | from byte | what |
//! |---|---|
//! | 0 | `trueline overlay`, then little-endian 32-bit numbers: version 1, bytes of a block, disks |
//! | 32 | a record of 32 bytes for each disk: its length, when its file was last written in ns since 1970 or 0, the MD5 of samples of it |
//! | 4080 | the MD5 of what stands before |
//! | 4096 | the index of each disk: two bits a block (0 of the base, 1 written, 2 zero), in pages of 4096 bytes |
//! | the next MiB | each disk's blocks at their own offset, each disk from a MiB on. A sparse file |
//!
//! # Order
//! Written bytes go to their place at once, and their state to memory. A flush takes the states
//! that have changed, brings the bytes to the medium, then writes those states and brings them
//! there: a state never comes before its bytes. A block that was flushed and is written again is
//! written in place, as on any disk. So after a loss of power, each block is as it was at the last
//! flush, or as a later write left it.
//!
//! # Limits
//! Samples are a MiB at the beginning, 64 KiB at the end and 64 blocks between; they distinguish
//! other disks, but not every change. A change of a file shows in its modification time.

use super::index::{self, Index, PAGE};
use super::{BLOCK, Base};
use std::fmt;
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::{Arc, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Store};
use trueline_geom::base::topology::round_up;
use trueline_host::disk::file::{self, Access, Medium};
use trueline_host::error::Error;
use trueline_host::lock::lock;

const MAGIC: &[u8; 16] = b"trueline overlay";
const VERSION: u32 = 1;
/// The size of the header in bytes, of its checksum at its end, and of the part before the disks.
const HEADER: usize = 4096;
const SUM: usize = 16;
const FIRST: usize = 32;
/// The size of a disk's record in bytes.
const RECORD: usize = 32;
/// The alignment of a disk's blocks in bytes.
const ALIGN: u64 = 1 << 20;
/// The most pages of the index written at once.
const PAGES: usize = 4096;

/// Samples of a disk: bytes at its beginning and its end, and blocks between.
const HEAD: u64 = 1 << 20;
const TAIL: u64 = 64 << 10;
const BETWEEN: u64 = 64;

/// The file of an overlay, with its indexes.
pub(super) struct Kept {
    medium: Arc<Medium>,
    /// The index of each disk, and its offset in the file.
    indexes: Vec<(Arc<Index>, u64)>,
    flushing: Mutex<()>,
}

/// An index, and the offset in the file of its disk's blocks.
type Part = (Arc<Index>, u64);

/// The identity of a disk, to recognise it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Identity {
    length: u64,
    /// The modification time in ns since 1970; 0 if it is not a regular file.
    changed: u64,
    samples: [u8; 16],
}

/// Opens the file, or makes it.
pub(super) fn open(
    path: &Path,
    bases: &[Base],
    writes: bool,
) -> Result<(Arc<Kept>, Vec<Part>), Error> {
    let not = |found: String, advice| {
        Error::not("keep an overlay in", &path.display().to_string(), found, advice)
    };
    if bases.len() > (HEADER - SUM - FIRST) / RECORD {
        return Err(not(format!("{} disks are too many", bases.len()), "serve fewer"));
    }
    if writes {
        make(path)?;
    }
    let opened = file::open_for(path, if writes { Access::Write } else { Access::ReadLocked })?;
    if opened.block {
        return Err(not("it is a device".into(), "name a file"));
    }
    let medium = opened.store;
    let own = bases.iter().map(identity).collect::<Result<Vec<_>, _>>()?;
    let asked = |e: Errno| not(e.to_string(), "");
    if medium.length() == 0 && writes {
        medium.grow(HEADER as u64).map_err(asked)?;
        medium.write_through(&header(&own), 0).map_err(asked)?;
    }
    let mut head = [0; HEADER];
    let read = medium.read_at(&mut head, 0).is_ok();
    let kept = if read { identities(&head) } else { None };
    let kept = kept.ok_or_else(|| {
        not("it is there and no overlay of this version".into(), "name a new file")
    })?;
    same(&own, &kept, bases).map_err(|found| {
        not(found.to_string(), "name a new file, or the disks that it was made over")
    })?;
    let (places, length) =
        places(&own).ok_or_else(|| not("the disks are too long".into(), "serve fewer"))?;
    if writes && medium.length() < length {
        medium.grow(length).map_err(asked)?;
    }
    let parts: Vec<(Part, u64)> = own
        .iter()
        .zip(places)
        .map(|(own, (at, data))| ((Arc::new(Index::new(own.length)), data), at))
        .collect();
    for ((index, _), at) in &parts {
        let good = load(&medium, index, *at).map_err(asked)?;
        good.then_some(()).ok_or_else(|| not("its index is damaged".into(), "name a new file"))?;
    }
    let indexes = parts.iter().map(|((index, _), at)| (index.clone(), *at)).collect();
    let kept = Kept { medium: Arc::new(medium), indexes, flushing: Mutex::default() };
    Ok((Arc::new(kept), parts.into_iter().map(|(part, _)| part).collect()))
}

/// Makes an empty file if there is none, such that it survives a loss of power.
fn make(path: &Path) -> Result<(), Error> {
    let failed = |e| Error::os("keep an overlay in", path, e);
    if std::fs::symlink_metadata(path).is_ok() {
        return Ok(());
    }
    OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)
}

/// The identity of `base` at this moment.
fn identity(base: &Base) -> Result<Identity, Error> {
    let (store, length) = (&base.store, base.store.length());
    let step = (length / (BETWEEN + 1)).next_multiple_of(BLOCK);
    let between =
        (1..=BETWEEN).map(|nth| (nth * step, BLOCK)).filter(|(at, size)| at + size <= length);
    let ends = [(0, HEAD.min(length)), (length.saturating_sub(TAIL), TAIL.min(length))];
    let mut sum = md5::Context::new();
    for (at, size) in ends.into_iter().chain(between) {
        let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
        store.read_at(&mut bytes, at).map_err(|e| {
            Error::not("read", &base.name, format!("{size} bytes at {at}: {e}"), "")
        })?;
        sum.consume(&bytes);
    }
    Ok(Identity { length, changed: base.changed.unwrap_or(0), samples: sum.finalize().0 })
}

/// Refuses disks that the overlay was not made over; the error says what differs.
fn same(own: &[Identity], kept: &[Identity], bases: &[Base]) -> Result<(), Mismatch> {
    if own.len() != kept.len() {
        return Err(Mismatch::Disks { kept: kept.len(), own: own.len() });
    }
    for ((own, kept), Base { name, .. }) in own.iter().zip(kept).zip(bases) {
        let name = name.clone();
        if own.length != kept.length {
            return Err(Mismatch::Length { name, kept: kept.length, own: own.length });
        }
        if own.samples != kept.samples {
            return Err(Mismatch::Content { name });
        }
        if own.changed != kept.changed {
            return Err(Mismatch::Time { name, kept: kept.changed });
        }
    }
    Ok(())
}

/// The difference between a disk and the one that an overlay was made over.
enum Mismatch {
    /// Another number of disks.
    Disks { kept: usize, own: usize },
    /// Another length in bytes.
    Length { name: String, kept: u64, own: u64 },
    /// Other bytes at the places that are sampled.
    Content { name: String },
    /// A later change, in nanoseconds since 1970.
    Time { name: String, kept: u64 },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Disks { kept, own } => {
                write!(f, "it was made over {kept} disks, and the target has {own}")
            }
            Mismatch::Length { name, kept, own } => {
                write!(f, "it was made over {kept} bytes, and {name} has {own}")
            }
            Mismatch::Content { name } => {
                write!(f, "it was made over other content than {name} has now")
            }
            Mismatch::Time { name, kept } => {
                let time = format!("{}.{:09}", kept / 1_000_000_000, kept % 1_000_000_000);
                write!(
                    f,
                    "{name} was written after the overlay was made, so the two no longer fit \
                     together (if only its time changed: touch -d @{time} {name})"
                )
            }
        }
    }
}

/// The header of an overlay over disks.
fn header(disks: &[Identity]) -> [u8; HEADER] {
    let mut bytes = MAGIC.to_vec();
    for number in
        [VERSION, u32::try_from(BLOCK).unwrap_or(0), u32::try_from(disks.len()).unwrap_or(0), 0]
    {
        bytes.extend(number.to_le_bytes());
    }
    for Identity { length, changed, samples } in disks {
        bytes.extend(length.to_le_bytes().into_iter().chain(changed.to_le_bytes()).chain(*samples));
    }
    bytes.resize(HEADER - SUM, 0);
    bytes.extend(md5::compute(&bytes).0);
    let mut header = [0; HEADER];
    header.copy_from_slice(&bytes);
    header
}

/// The disks of a header; [`None`] if it is none of this version.
fn identities(header: &[u8; HEADER]) -> Option<Vec<Identity>> {
    let (bytes, sum) = header.split_at(HEADER - SUM);
    let number = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let good = bytes.starts_with(MAGIC) && md5::compute(bytes).0 == sum;
    let known = good && number(16)? == VERSION && u64::from(number(20)?) == BLOCK;
    let records = bytes[FIRST..].chunks_exact(RECORD);
    let count =
        usize::try_from(number(24)?).ok().filter(|&count| known && count <= records.len())?;
    let long = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    let record = |r: &[u8]| {
        Some(Identity {
            length: long(&r[..8])?,
            changed: long(&r[8..16])?,
            samples: r[16..].try_into().ok()?,
        })
    };
    records.take(count).map(record).collect()
}

/// The offsets of each disk's index and blocks, and the length of the file; [`None`] if no file can
/// be so long.
fn places(disks: &[Identity]) -> Option<(Vec<(u64, u64)>, u64)> {
    let mut at = HEADER as u64;
    let mut indexes = Vec::new();
    for disk in disks {
        indexes.push(at);
        at = at.checked_add(index::pages(disk.length).checked_mul(PAGE as u64)?)?;
    }
    let mut places = Vec::new();
    for (disk, index) in disks.iter().zip(indexes) {
        at = round_up(at, ALIGN)?;
        places.push((index, at));
        at = at.checked_add(disk.length)?;
    }
    (at <= i64::MAX.unsigned_abs()).then_some((places, at))
}

/// Reads an index from the file. False if it is damaged.
fn load(medium: &Medium, index: &Index, at: u64) -> Result<bool, Errno> {
    let mut bytes = [0; PAGE];
    let (mut number, pages) = (0, index.pages());
    while number < pages {
        let place = at + number * PAGE as u64;
        if place >= medium.length() {
            // The file was made, and never served for writing.
            break;
        }
        let run = medium.extent(place, (pages - number) * PAGE as u64);
        if let Ok(run) = run
            && run.content == Content::Hole
            && run.length >= PAGE as u64
        {
            number += run.length / PAGE as u64;
            continue;
        }
        medium.read_at(&mut bytes, place)?;
        if bytes.iter().any(|&byte| byte != 0)
            && !index.load(usize::try_from(number).unwrap_or(usize::MAX), &bytes)
        {
            return Ok(false);
        }
        number += 1;
    }
    Ok(true)
}

impl Kept {
    /// The file that blocks are written to.
    pub(super) fn medium(&self) -> Arc<Medium> {
        self.medium.clone()
    }

    /// Flushes all disks: first their blocks, then the changed states.
    pub(super) fn flush(&self) -> Result<(), Errno> {
        let _one = lock(&self.flushing);
        loop {
            let mut pages = Vec::new();
            for (nth, (index, _)) in self.indexes.iter().enumerate() {
                let taken = index.take_changed(PAGES - pages.len());
                pages.extend(taken.into_iter().map(|(number, bytes)| (nth, number, bytes)));
            }
            let kept = self.keep(&pages);
            if kept.is_err() {
                pages.iter().for_each(|&(nth, number, _)| self.indexes[nth].0.is_changed(number));
            }
            if kept.is_err() || pages.len() < PAGES {
                return kept;
            }
        }
    }

    /// Flushes the blocks, and then writes and flushes these pages.
    fn keep(&self, pages: &[(usize, usize, Box<[u8]>)]) -> Result<(), Errno> {
        self.medium.flush()?;
        for (nth, number, bytes) in pages {
            let place = self.indexes[*nth].1 + u64::try_from(*number).unwrap_or(0) * PAGE as u64;
            self.medium.write_at(bytes, place)?;
        }
        if pages.is_empty() { Ok(()) } else { self.medium.flush() }
    }
}

//! Free clusters of NTFS.
//!
//! # On disk
//! File record 6 of the master file table, `$Bitmap`, has a bit a cluster, which is clear if the
//! cluster is free. Records and their attributes say where the data of a file are by runs: a byte
//! with two lengths, the clusters of the run, the distance from the run before. The last two bytes
//! of every 512 of a record are kept in its head, and a number stands in their place.
//!
//! # Limits
//! A volume whose `$Volume` is marked dirty or whose `$LogFile` was not closed is refused, and one
//! whose `$Bitmap` has its runs in several records. That Windows sleeps and has parts of the volume
//! in its memory (fast startup) is only known by a file, which is not looked for.
//!
//! # Sources
//! Linux `fs/ntfs3/ntfs.h`; ntfs-3g `include/ntfs-3g/{layout,logfile}.h`, `libntfs-3g/logfile.c`
//! (`ntfs_is_logfile_clean`), `libntfs-3g/runlist.c`.

use super::Boot;
use crate::base::patch::Read;
use crate::format::free_space::{Found, Unsure, clear_bits, damaged};
use std::ops::Range;
use zerocopy::FromBytes;

/// Numbers of the records that are read.
const MFT: u64 = 0;
const LOG_FILE: u64 = 2;
const VOLUME: u64 = 3;
const BITMAP: u64 = 6;
/// Types of attributes, and the one behind the last.
const DATA: u32 = 0x80;
const VOLUME_INFORMATION: u32 = 0x70;
const END: u32 = 0xffff_ffff;
/// Flags of `$Volume`: dirty, and checked at this moment.
const DIRTY: u16 = 0x4001;
/// Value of a restart area without clients, and its flag of a closed volume.
const NO_CLIENT: u16 = 0xffff;
const IS_CLEAN: u16 = 2;
/// Bytes that one number of a record's head protects.
const STRIDE: usize = 512;
/// Bytes of the bitmap that are read at once.
const PIECE: u64 = 256 << 10;

/// Finds the free clusters of an NTFS on a provider of `length` bytes.
pub(super) fn free(length: u64, read: &mut Read<'_>, found: &mut Found<'_>) -> Result<(), Unsure> {
    let mut volume = Volume::read(length, read)?;
    let (_, table) = volume.data(MFT, read)?;
    let Data::Runs(table) = table else { return damaged("its master file table has no runs") };
    volume.table = table;
    volume.require_unmounted(read)?;
    volume.require_closed(read)?;
    let (size, bitmap) = volume.data(BITMAP, read)?;
    if size < volume.clusters.div_ceil(8) {
        return damaged("its bitmap is too short");
    }
    let Volume { cluster, clusters, .. } = volume;
    // What describes the rest is in use.
    let mut own = volume.table.clone();
    if let Data::Runs(runs) = &bitmap {
        own.extend(runs.iter().cloned());
    }
    let (mut at, bytes) = (0, clusters.div_ceil(8));
    while at < bytes {
        let part = match &bitmap {
            Data::Bytes(all) => all.clone(),
            Data::Runs(runs) => {
                let mut part = vec![0; to_index((bytes - at).min(PIECE))];
                volume.read_at(runs, at, &mut part, read)?;
                part
            }
        };
        let (first, count) = (at * 8, (clusters - at * 8).min(part.len() as u64 * 8));
        let mut claimed = false;
        let clear = clear_bits(&part, count, &mut |run| {
            let free = first + run.start..first + run.end;
            claimed |= own.iter().any(|own| own.start < free.end && free.start < own.end);
            found(free.start * cluster..free.end * cluster);
        });
        if claimed || clear.is_none() {
            return damaged("its bitmap calls itself or the master file table free");
        }
        at += part.len() as u64;
    }
    Ok(())
}

/// Numbers of a volume, checked.
struct Volume {
    cluster: u64,
    clusters: u64,
    /// Bytes of a file record.
    record: usize,
    /// Clusters of the master file table, as far as they are known.
    table: Vec<Range<u64>>,
}

/// Data of an attribute.
enum Data {
    /// Bytes in the record itself.
    Bytes(Vec<u8>),
    /// Runs of clusters, from its first byte on.
    Runs(Vec<Range<u64>>),
}

impl Volume {
    fn read(length: u64, read: &mut Read<'_>) -> Result<Volume, Unsure> {
        let mut bytes = [0; 512];
        read(0, &mut bytes).map_err(|errno| Unsure::Failed(0, errno))?;
        let Ok((boot, _)) = Boot::read_from_prefix(&bytes) else { return damaged("boot sector") };
        let sector = u64::from(boot.bytes_per_sector.get());
        let per_cluster = match boot.sectors_per_clusters {
            count @ 0..=0x80 => u64::from(count),
            // An exponent, negated.
            count @ 0xf4.. => 1 << (256 - u32::from(count)),
            _ => 0,
        };
        let cluster = sector * per_cluster;
        let record = match boot.record_size {
            exponent @ -16..=-9 => 1 << exponent.unsigned_abs(),
            count => u64::try_from(count).unwrap_or_default() * cluster,
        };
        let clusters = boot.sectors_per_volume.get().checked_div(per_cluster).unwrap_or_default();
        let first = boot.mft_clst.get();
        let is_sound = sector.is_power_of_two()
            && (256..=4096).contains(&sector)
            && cluster.is_power_of_two()
            && (256..=2 << 20).contains(&cluster)
            && record.is_power_of_two()
            && (512..=65536).contains(&record)
            && clusters.checked_mul(cluster).is_some_and(|bytes| bytes <= length)
            && first < clusters;
        if !is_sound {
            return damaged("the numbers of its boot sector");
        }
        // Its own first record says where the table goes on.
        let own = first..first + record.div_ceil(cluster);
        let table = vec![own];
        Ok(Volume { cluster, clusters, record: to_index(record), table })
    }

    /// Fills `out` from byte `at` of what lies in `runs`.
    fn read_at(
        &self,
        runs: &[Range<u64>],
        at: u64,
        out: &mut [u8],
        read: &mut Read<'_>,
    ) -> Result<(), Unsure> {
        let (mut before, mut rest, mut at) = (0, out, at);
        for run in runs {
            let bytes = (run.end - run.start) * self.cluster;
            let end = bytes.saturating_add(before);
            if at < end && !rest.is_empty() {
                let count = to_index(end - at).min(rest.len());
                let place = run.start * self.cluster + (at - before);
                let (now, later) = rest.split_at_mut(count);
                read(place, now).map_err(|errno| Unsure::Failed(place, errno))?;
                (rest, at) = (later, at + count as u64);
            }
            before = end;
        }
        match rest.is_empty() {
            true => Ok(()),
            false => Err(Unsure::Unknown("runs in several records".into())),
        }
    }

    /// The file record of that number.
    fn record(&self, number: u64, read: &mut Read<'_>) -> Result<Vec<u8>, Unsure> {
        let mut bytes = vec![0; self.record];
        self.read_at(&self.table, number * self.record as u64, &mut bytes, read)?;
        match is_whole(&mut bytes) && bytes.starts_with(b"FILE") && word(&bytes, 22) & 1 == 1 {
            true => Ok(bytes),
            false => damaged(format!("file record {number}")),
        }
    }

    /// Size and place of the unnamed data of a file.
    fn data(&self, number: u64, read: &mut Read<'_>) -> Result<(u64, Data), Unsure> {
        let record = self.record(number, read)?;
        let wrong = || Unsure::Damaged(format!("the data of file record {number}"));
        let attribute = attribute(&record, DATA).ok_or_else(wrong)?;
        if attribute.get(8) == Some(&0) {
            let bytes = resident(attribute).ok_or_else(wrong)?.to_vec();
            return Ok((bytes.len() as u64, Data::Bytes(bytes)));
        }
        let (first, size) = (long(attribute, 16), long(attribute, 48));
        let runs = attribute.get(usize::from(word(attribute, 32))..).ok_or_else(wrong)?;
        let runs = self.runs(runs).filter(|_| first == 0).ok_or_else(wrong)?;
        // What is not initialised reads as zeros, which would be free.
        if long(attribute, 56) < size {
            return Err(Unsure::Unknown(format!("file record {number} has no data yet")));
        }
        Ok((size, Data::Runs(runs)))
    }

    /// The runs that `bytes` list; `None` if one is not in the volume.
    fn runs(&self, bytes: &[u8]) -> Option<Vec<Range<u64>>> {
        let (mut runs, mut rest, mut start) = (Vec::new(), bytes, 0_i64);
        loop {
            let (&head, behind) = rest.split_first()?;
            if head == 0 {
                return Some(runs);
            }
            let (count, offset) = (usize::from(head & 15), usize::from(head >> 4));
            let (length, behind) = behind.split_at_checked(count)?;
            let (distance, behind) = behind.split_at_checked(offset)?;
            // A run without a place is a hole.
            let length = u64::try_from(number(length)?).ok().filter(|_| offset > 0)?;
            start = start.checked_add(number(distance)?)?;
            let first = u64::try_from(start).ok()?;
            let end = first.checked_add(length).filter(|&end| end <= self.clusters)?;
            runs.push(first..end);
            rest = behind;
        }
    }

    fn require_unmounted(&self, read: &mut Read<'_>) -> Result<(), Unsure> {
        let record = self.record(VOLUME, read)?;
        let value = attribute(&record, VOLUME_INFORMATION).and_then(resident);
        match value.filter(|value| value.len() >= 12) {
            None => damaged("$Volume"),
            Some(value) if word(value, 10) & DIRTY != 0 => Err(Unsure::Unclean("it is dirty")),
            Some(_) => Ok(()),
        }
    }

    /// Refuses a volume whose `$LogFile` has a client that has not ended.
    fn require_closed(&self, read: &mut Read<'_>) -> Result<(), Unsure> {
        let (size, Data::Runs(runs)) = self.data(LOG_FILE, read)? else {
            return damaged("$LogFile");
        };
        let mut newest: Option<(u64, bool)> = None;
        let (mut at, mut page) = (0, vec![0; 4096]);
        for _ in 0..2 {
            if at + page.len() as u64 > size {
                break;
            }
            self.read_at(&runs, at, &mut page, read)?;
            if page[..4] == [0xff; 4] {
                break;
            }
            let area = usize::from(word(&page, 24));
            if page.starts_with(b"RSTR") && wide(&page, 16) != 4096 {
                return Err(Unsure::Unknown("pages of its $LogFile".into()));
            }
            if !page.starts_with(b"RSTR") || !is_whole(&mut page) || area + 16 > page.len() {
                return Err(Unsure::Unclean("its $LogFile has to be replayed"));
            }
            let area = &page[area..];
            let is_closed = word(area, 12) == NO_CLIENT || word(area, 14) & IS_CLEAN != 0;
            newest = newest.max(Some((long(area, 0), is_closed)));
            at = page.len() as u64;
        }
        match newest {
            Some((_, false)) => Err(Unsure::Unclean("its $LogFile has to be replayed")),
            // An empty one is full of ones.
            Some((_, true)) | None => Ok(()),
        }
    }
}

/// Puts back the bytes for which numbers stand in a record; false if a number is wrong.
fn is_whole(record: &mut [u8]) -> bool {
    let (offset, count) = (usize::from(word(record, 4)), usize::from(word(record, 6)));
    if count != record.len() / STRIDE + 1 {
        return false;
    }
    let Some(kept) = record.get(offset..offset + 2 * count).map(<[u8]>::to_vec) else {
        return false;
    };
    let mut pairs = kept.chunks_exact(2);
    let Some(mark) = pairs.next() else { return false };
    pairs.zip(record.chunks_exact_mut(STRIDE)).all(|(bytes, part)| {
        let last = &mut part[STRIDE - 2..];
        let is_marked = last == mark;
        last.copy_from_slice(bytes);
        is_marked
    })
}

/// The first attribute of `record` of that type without a name.
fn attribute(record: &[u8], kind: u32) -> Option<&[u8]> {
    let mut rest = record.get(usize::from(word(record, 20))..)?;
    loop {
        let (own, size) = (wide(rest, 0), usize::try_from(wide(rest, 4)).ok()?);
        let whole = rest.get(..size).filter(|_| own != END && size >= 24)?;
        if own == kind && whole[9] == 0 {
            return Some(whole);
        }
        rest = &rest[size..];
    }
}

/// The value of an attribute that is in its record.
fn resident(attribute: &[u8]) -> Option<&[u8]> {
    let (length, at) = (usize::try_from(wide(attribute, 16)).ok()?, word(attribute, 20));
    let value = attribute.get(usize::from(at)..)?.get(..length);
    value.filter(|_| attribute.get(8) == Some(&0))
}

/// The number with a sign in `bytes`; `None` if it has more than 64 bits.
fn number(bytes: &[u8]) -> Option<i64> {
    let sign = bytes.last().map_or(0, |last| if last & 0x80 == 0 { 0 } else { 0xff });
    let mut whole = [sign; 8];
    whole.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(i64::from_le_bytes(whole))
}

fn word(bytes: &[u8], at: usize) -> u16 {
    part(bytes, at).map_or(0, u16::from_le_bytes)
}

fn wide(bytes: &[u8], at: usize) -> u32 {
    part(bytes, at).map_or(0, u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    part(bytes, at).map_or(0, u64::from_le_bytes)
}

fn part<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// An index into bytes that are in memory, so it fits.
fn to_index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

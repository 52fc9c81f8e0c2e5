//! Files and directories of an exFAT, as far as they claim clusters.
//!
//! # On disk
//! A directory has entries of 32 bytes; one of type 0 ends it, and of a type below 128 it is not in
//! use. A primary entry says how many secondary ones follow. Those that allow an allocation have
//! its first cluster and its length: the stream of a file, and extensions of vendors. The clusters
//! follow each other, or as the FAT leads. A sum over a set is in its first entry.
//!
//! # Limits
//! All clusters that are claimed are no more than there are, so a loop ends. [`BYTES`] of
//! directories and [`DIRECTORIES`] that wait to be read.
//!
//! # Sources
//! Microsoft "exFAT file system specification", sections 6.2 "Generic DirectoryEntry Template", 6.3
//! "Generic Primary DirectoryEntry Template", 6.4 "Generic Secondary DirectoryEntry Template", 7.4
//! "File Directory Entry" and 7.6 "Stream Extension Directory Entry".

use super::ENTRY;
use super::free::{DIRECTORY, Volume, to_index};
use crate::base::ondisk::on_disk;
use crate::base::patch::Read;
use crate::base::topology::is_whole;
use crate::format::free_space::{Unsure, damaged};
use std::ops::Range;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

on_disk! {
    /// A primary directory entry with secondary ones behind it, as a file has it.
    struct Primary of 32 bytes {
         0 => entry_type: u8,
         1 => secondary_count: u8,
         2 => set_checksum: U16,
         4 => flags: U16,
         6 => skip: [u8; 14],
        20 => first_cluster: U32,
        24 => data_length: U64,
    }
    /// A secondary directory entry.
    struct Secondary of 32 bytes {
         0 => entry_type: u8,
         1 => general_secondary_flags: u8,
         2 => skip: [u8; 18],
        20 => first_cluster: U32,
        24 => data_length: U64,
    }
}

/// Bits of the type of an entry: it is in use, it is secondary, and it may be passed over.
const IN_USE: u8 = 0x80;
const SECONDARY: u8 = 0x40;
const BENIGN: u8 = 0x20;
/// Types of a file, of its stream, and of entries of the root directory without others behind them.
const FILE: u8 = 0x85;
const STREAM: u8 = 0xc0;
const ALONE: [u8; 4] = [0x81, 0x82, 0x83, 0xa1];
/// Attribute of a directory.
const IS_DIRECTORY: u16 = 0x10;
/// Flags of an allocation: there may be one, and its clusters follow each other.
const ALLOCATED: u8 = 1;
const CONTIGUOUS: u8 = 2;
/// Largest number of bytes in all directories, and of directories that wait to be read.
const BYTES: u64 = 1 << 30;
const DIRECTORIES: usize = 1 << 20;

/// Clusters in a chain.
pub(super) fn count(chain: &[Range<u64>]) -> u64 {
    chain.iter().map(|run| run.end - run.start).sum()
}

/// Allocation that an entry has.
#[derive(Clone, Copy)]
struct Stream {
    first: u32,
    length: u64,
    is_contiguous: bool,
}

/// Set of entries that is being read.
struct Set {
    wanted: u16,
    sum: u16,
    /// Secondary entries that are still to come.
    left: u8,
    is_directory: bool,
}

/// Walk through all directories, which holds claims to the allocation bitmap.
pub(super) struct Tree<'a> {
    pub(super) volume: &'a mut Volume,
    /// The allocation bitmap, a bit a cluster.
    bits: &'a [u8],
    /// Clusters that may still be claimed.
    left: u64,
    /// Bytes of directories that were read.
    bytes: u64,
    waiting: Vec<Stream>,
}

impl<'a> Tree<'a> {
    pub(super) fn new(volume: &'a mut Volume, bits: &'a [u8]) -> Tree<'a> {
        let left = volume.clusters;
        Tree { volume, bits, left, bytes: 0, waiting: Vec::new() }
    }

    /// Claims clusters, which have to be used; false if one of them is free.
    pub(super) fn claim(&mut self, chain: &[Range<u64>]) -> Result<bool, Unsure> {
        let Some(left) = self.left.checked_sub(count(chain)) else {
            return damaged("its files have more clusters than there are");
        };
        self.left = left;
        Ok(chain.iter().all(|run| is_set(self.bits, run)))
    }

    /// Walks through all directories from the root on, whose clusters are claimed.
    pub(super) fn walk(&mut self, root: &[Range<u64>], read: &mut Read<'_>) -> Result<(), Unsure> {
        self.directory(root, read)?;
        while let Some(stream) = self.waiting.pop() {
            let is_sound =
                stream.length <= DIRECTORY && is_whole(stream.length, self.volume.cluster);
            if !is_sound {
                return damaged("the length of a directory");
            }
            let mut chain: Vec<Range<u64>> = Vec::new();
            self.take(stream, read, &mut |run| chain.push(run))?;
            self.directory(&chain, read)?;
        }
        Ok(())
    }

    /// Claims the clusters of an allocation, which have to be used, and calls `each` with them.
    /// Those of a file may lie in so many runs that these are not kept.
    fn take(
        &mut self,
        Stream { first, length, is_contiguous }: Stream,
        read: &mut Read<'_>,
        each: &mut dyn FnMut(Range<u64>),
    ) -> Result<(), Unsure> {
        let clusters = length.div_ceil(self.volume.cluster);
        if clusters == 0 {
            return Ok(());
        }
        self.left = match self.left.checked_sub(clusters) {
            Some(left) => left,
            None => return damaged("its files have more clusters than there are"),
        };
        let (bits, mut is_used) = (self.bits, true);
        let mut claim = |run: Range<u64>| {
            is_used &= is_set(bits, &run);
            each(run);
        };
        if is_contiguous {
            let start = u64::from(first).checked_sub(2);
            let run = start.map(|start| start..start.saturating_add(clusters));
            match run.filter(|run| run.end <= self.volume.clusters) {
                Some(run) => claim(run),
                None => return damaged(format!("a file of {length} bytes at cluster {first}")),
            }
        } else if self.volume.visit(first, length, read, &mut |at| claim(at..at + 1))? != clusters {
            return damaged(format!("the chain of its FAT from cluster {first} is too short"));
        }
        match is_used {
            true => Ok(()),
            false => damaged(format!(
                "its allocation bitmap calls a cluster of the file at cluster {first} free"
            )),
        }
    }

    /// Reads the entries of a directory with these clusters.
    fn directory(&mut self, chain: &[Range<u64>], read: &mut Read<'_>) -> Result<(), Unsure> {
        let (mut piece, mut set): (_, Option<Set>) = (Vec::new(), None);
        for part in self.volume.parts(chain).collect::<Vec<_>>() {
            self.bytes += part.end - part.start;
            if self.bytes > BYTES {
                return Err(Unsure::Unknown(format!(
                    "it has more than {BYTES} bytes of directories"
                )));
            }
            piece.resize(to_index(part.end - part.start), 0);
            read(part.start, &mut piece).map_err(|errno| Unsure::Failed(part.start, errno))?;
            for entry in piece.chunks_exact(to_index(ENTRY)) {
                if entry[0] == 0 && set.is_none() {
                    return Ok(());
                }
                set = self.entry(entry, set, read)?;
            }
        }
        match set {
            None => Ok(()),
            Some(_) => damaged("a directory ends within a set of entries"),
        }
    }

    /// Takes an entry behind those of `set`; returns what of a set is still to come.
    fn entry(
        &mut self,
        entry: &[u8],
        set: Option<Set>,
        read: &mut Read<'_>,
    ) -> Result<Option<Set>, Unsure> {
        let kind = entry[0];
        let Some(mut set) = set else { return self.primary(entry, read) };
        if kind & (IN_USE | SECONDARY) != IN_USE | SECONDARY {
            return damaged("a set of entries of a directory is not whole");
        }
        set.sum = entry.iter().fold(set.sum, |sum, &byte| add(sum, byte));
        set.left -= 1;
        if let Ok(own) = Secondary::read_from_bytes(entry)
            && own.general_secondary_flags & ALLOCATED != 0
        {
            let stream = Stream {
                first: own.first_cluster.get(),
                length: own.data_length.get(),
                is_contiguous: own.general_secondary_flags & CONTIGUOUS != 0,
            };
            self.stream(stream, set.is_directory && kind == STREAM, read)?;
        }
        match set.left {
            0 if set.sum != set.wanted => damaged("the checksum of a set of entries"),
            0 => Ok(None),
            _ => Ok(Some(set)),
        }
    }

    /// Takes an entry that begins a set, or stands alone.
    fn primary(&mut self, entry: &[u8], read: &mut Read<'_>) -> Result<Option<Set>, Unsure> {
        let Ok(own) = Primary::read_from_bytes(entry) else { return Ok(None) };
        let kind = own.entry_type;
        if kind & IN_USE == 0 || ALONE.contains(&kind) {
            return Ok(None);
        }
        if kind & SECONDARY != 0 {
            return damaged("an entry of a directory belongs to none before it");
        }
        if kind != FILE && kind & BENIGN == 0 {
            return Err(Unsure::Unknown(format!("it has a directory entry of type {kind:#x}")));
        }
        if kind != FILE && own.flags.get() & u16::from(ALLOCATED) != 0 {
            let stream = Stream {
                first: own.first_cluster.get(),
                length: own.data_length.get(),
                is_contiguous: own.flags.get() & u16::from(CONTIGUOUS) != 0,
            };
            self.stream(stream, false, read)?;
        }
        let counted = entry.iter().enumerate().filter(|(at, _)| !matches!(at, 2 | 3));
        let sum = counted.fold(0, |sum, (_, &byte)| add(sum, byte));
        let is_directory = kind == FILE && own.flags.get() & IS_DIRECTORY != 0;
        let set =
            Set { wanted: own.set_checksum.get(), sum, left: own.secondary_count, is_directory };
        if kind == FILE && set.left == 0 {
            return damaged("a file without a stream");
        }
        Ok(Some(set).filter(|set| set.left > 0))
    }

    /// Takes an allocation: one of a directory is read later.
    fn stream(
        &mut self,
        stream: Stream,
        is_directory: bool,
        read: &mut Read<'_>,
    ) -> Result<(), Unsure> {
        if !is_directory {
            return self.take(stream, read, &mut |_| {});
        }
        if self.waiting.len() >= DIRECTORIES {
            return Err(Unsure::Unknown(format!("more than {DIRECTORIES} directories in one")));
        }
        self.waiting.push(stream);
        Ok(())
    }
}

/// The sum of a set with one byte more.
fn add(sum: u16, byte: u8) -> u16 {
    sum.rotate_right(1).wrapping_add(byte.into())
}

/// True if the bits of `run` are set.
fn is_set(bits: &[u8], run: &Range<u64>) -> bool {
    let byte = |nth: u64| bits.get(to_index(nth)).copied().unwrap_or(0);
    let mut at = run.start;
    while at < run.end {
        let is_byte = at.is_multiple_of(8) && run.end - at >= 8;
        if is_byte && byte(at / 8) == 0xff {
            at += 8;
        } else if byte(at / 8) >> (at % 8) & 1 == 1 {
            at += 1;
        } else {
            return false;
        }
    }
    true
}

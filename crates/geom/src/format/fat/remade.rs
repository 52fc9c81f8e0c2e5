//! FATs whose files are copied into a new layout, since their clusters or tables are not whole in
//! the new sectors.
//!
//! Directories are copied entry by entry as they are: names of every kind, times, attributes. Only
//! the number of the first cluster in each changes. Files become contiguous. Entries of deleted
//! files lose their cluster; clusters that belong to no file are not copied.
//!
//! # Limits
//! [`LARGEST`] bytes of a FAT, and as many of all directories. A volume that was not unmounted,
//! clusters in two chains, and chains that are shorter than their files are refused.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03, "FAT Data Structure", "FAT Directory
//! Structure", "FAT Long Directory Entries".

use super::convert::{HEAD, info, require_free, reserved, unreadable};
use super::layout::{Layout, Width};
use super::{
    ATTR_DIRECTORY, ATTR_LONG_NAME, ATTR_MASK, ATTR_VOLUME_ID, BootSector, ENTRY, FAT12_MAX,
    FAT16_MAX,
};
use crate::base::patch::Read;
use crate::base::resize::{Origin, Resized, Write};
use crate::base::topology::{round_down, round_up};
use crate::table::Refusal;
use std::ops::Range;
use zerocopy::{FromBytes, IntoBytes};

/// Most bytes of a FAT, and of all directories together, that are held in memory.
const LARGEST: u64 = 16 << 20;
/// Sectors before the first FAT that `mkfs.fat` leaves on a FAT32, in sectors of any size.
const RESERVED: u64 = 8;
/// Entries of the root directory that `mkfs.fat` makes on FAT16, and the most that its field holds
/// in whole sectors.
const ROOT: u64 = 512;
const MOST: u64 = 65408;
/// Most copies of a FAT; tools make one or two, and four at most.
const MOST_COPIES: u64 = 4;
/// Bytes of an entry.
const SLOT: usize = 32;

/// The writes that make the volume anew with all its files.
pub(super) fn convert(
    boot: &BootSector,
    old: &Layout,
    on: Resized,
    read: &mut Read<'_>,
) -> Result<Vec<Write>, Refusal> {
    require_plain(boot, old)?;
    let chains = Chains::read(old, boot, read)?;
    let mut tree =
        Tree { chains: &chains, old, directories: Vec::new(), files: Vec::new(), bytes: 0 };
    let mut seen = vec![false; chains.next.len()];
    tree.walk(u64::from(boot.root_clus.get()), &mut seen, read)?;
    let Tree { mut directories, files, .. } = tree;
    let root = directories.first().map_or(0, |root| root.bytes.len() as u64 / ENTRY);
    let new = layout(old, on, root).ok_or_else(|| {
        Refusal::new("it has no room for clusters that are whole sectors", "make it anew")
    })?;
    let mut room = Room { layout: &new, next: 2, table: vec![0; 2] };
    let is_wide = new.width == Width::ThirtyTwo;
    let was_wide = old.width == Width::ThirtyTwo;
    for (n, directory) in directories.iter_mut().enumerate() {
        if n > 0 || is_wide {
            directory.place = room.take(directory.bytes.len() as u64, true)?;
        }
    }
    let mut writes = Vec::new();
    for file in &files {
        let first = room.take(file.length, false)?;
        number(&mut directories[file.directory].bytes, file.at, first, was_wide);
        if first != 0 {
            let length = round_up(file.length, new.cluster).unwrap_or(file.length);
            let origin = Origin::Copied(file.ranges.clone(), length);
            writes.push(Write { at: new.at(first), origin, what: "file of a FAT" });
        }
    }
    for n in 1..directories.len() {
        let (own, parent) = (directories[n].place, directories[n].parent);
        // The root has the number 0 there, also where it has clusters.
        let above = if parent.0 == 0 { 0 } else { directories[parent.0].place };
        number(&mut directories[parent.0].bytes, parent.1, own, was_wide);
        for (at, to) in [(0, own), (SLOT, above)] {
            if directories[n].bytes.get(at) == Some(&b'.') {
                number(&mut directories[n].bytes, at, to, was_wide);
            }
        }
    }
    for (n, directory) in directories.into_iter().enumerate() {
        let (at, length) = match (n, is_wide) {
            (0, false) => (new.directory(), new.root),
            _ => (
                new.at(directory.place),
                round_up(directory.bytes.len() as u64, new.cluster).unwrap_or(0),
            ),
        };
        let mut bytes = directory.bytes;
        if bytes.len() as u64 > length.max(new.cluster) && n == 0 && !is_wide {
            return Err(Refusal::new("its root directory has no room", ""));
        }
        bytes.resize(usize::try_from(length.max(new.sector)).unwrap_or(0), 0);
        writes.push(Write::new(at, bytes, "directory of a FAT"));
    }
    let used = room.next - 2;
    let table = room.table(chains.reserved, boot.media);
    for copy in 0..new.copies {
        let at = new.reserved + copy * new.fat;
        writes.push(Write::new(at, table.clone(), "FAT"));
    }
    let mut info = info(boot, old, read)?;
    if let Some(counts) = info.get_mut(488..496) {
        // Free clusters, and where to look for the next.
        let free = u32::try_from(new.clusters - used).unwrap_or(u32::MAX);
        let next = u32::try_from(used + 2).unwrap_or(u32::MAX);
        counts[..4].copy_from_slice(&free.to_le_bytes());
        counts[4..].copy_from_slice(&next.to_le_bytes());
    }
    let given = boot;
    let mut boot = boot.clone();
    if is_wide {
        boot.root_clus = 2.into();
    } else if was_wide {
        boot = narrow(&boot);
    }
    if let Some(name) = boot.skip2.get_mut(2..10).filter(|name| name.starts_with(b"FAT1")) {
        name[4] = if new.width == Width::Twelve { b'2' } else { b'6' };
    }
    writes.extend(reserved(boot.clone(), old, &new, on, info)?);
    require_free(given, old, &writes, read)?;
    Ok(writes)
}

/// Refuses a volume that Linux has not unmounted, or with more copies of its FAT than any tool
/// makes.
fn require_plain(boot: &BootSector, old: &Layout) -> Result<(), Refusal> {
    // Byte 37 of FAT12 and FAT16, 65 of FAT32, bit 0.
    let state = match old.width {
        Width::ThirtyTwo => boot.skip2[13],
        _ => boot.fat_sz32.get().to_le_bytes()[1],
    };
    if state & 1 != 0 {
        return Err(Refusal::new("it was not unmounted", "fsck.fat -a"));
    }
    if old.copies > MOST_COPIES {
        return Err(Refusal::new(format!("it has {} FATs", old.copies), "copy its files"));
    }
    Ok(())
}

/// The layout in new sectors: clusters no smaller than one, their area on whole clusters. A FAT32
/// of so few clusters that readers would not agree on what it is becomes a FAT16, with room for
/// `entries` in its root directory.
fn layout(old: &Layout, on: Resized, entries: u64) -> Option<Layout> {
    if old.width == Width::ThirtyTwo {
        let wide = sized(old, on, Width::ThirtyTwo, 0)?;
        let narrow =
            || sized(old, on, Width::Sixteen, entries.max(ROOT)).filter(|_| entries <= MOST);
        let is_plain = wide.clusters > FAT16_MAX;
        return if is_plain { Some(wide) } else { narrow().or(Some(wide)) };
    }
    sized(old, on, old.width, old.root_entries)
}

/// The layout of that width, with so many entries in the root directory.
fn sized(old: &Layout, on: Resized, width: Width, entries: u64) -> Option<Layout> {
    let cluster = old.cluster.clamp(on.to, on.to * 128);
    let total = round_down(old.total, on.to);
    let root = round_up(entries * ENTRY, on.to)?;
    let is_wide = width == Width::ThirtyTwo;
    let least = if is_wide { RESERVED * on.to } else { on.to };
    let most = total.checked_sub(least + root)? / cluster;
    // FAT12's entries are shorter, which a few bytes more do not harm.
    let fat = round_up((most + 2) * if is_wide { 4 } else { 2 }, on.to)?;
    let data = round_up(least + old.copies * fat + root, cluster)?;
    let reserved = data - root - old.copies * fat;
    let clusters = total.checked_sub(data)? / cluster;
    let width = match width {
        Width::ThirtyTwo => Width::ThirtyTwo,
        _ if clusters <= FAT12_MAX => Width::Twelve,
        _ if clusters <= FAT16_MAX => Width::Sixteen,
        _ => return None,
    };
    let sector = on.to;
    let root_entries = root / ENTRY;
    (clusters > 0 && fat <= LARGEST).then_some(Layout {
        sector,
        cluster,
        reserved,
        fat,
        root_entries,
        root,
        total,
        clusters,
        width,
        ..*old
    })
}

/// The boot sector of a FAT32 with the fields of a FAT16: those from the drive's number on lie
/// further in front. The jump stays, and so does the code that it leads to.
fn narrow(boot: &BootSector) -> BootSector {
    let mut bytes = [0; HEAD];
    bytes.copy_from_slice(boot.as_bytes());
    bytes.copy_within(64..90, 36);
    bytes[62..90].fill(0);
    bytes[54..62].copy_from_slice(b"FAT16   ");
    BootSector::read_from_bytes(&bytes).unwrap_or_else(|_| boot.clone())
}

/// Writes the number of a first cluster into the entry at byte `at`.
fn number(bytes: &mut [u8], at: usize, cluster: u64, is_wide: bool) {
    let cluster = u32::try_from(cluster).unwrap_or(0).to_le_bytes();
    let Some(entry) = bytes.get_mut(at..at.saturating_add(SLOT)) else { return };
    entry[26..28].copy_from_slice(&cluster[..2]);
    // FAT12 and FAT16 keep other things there.
    if is_wide {
        entry[20..22].copy_from_slice(&cluster[2..]);
    }
}

/// Entries of a FAT.
struct Chains {
    next: Vec<u32>,
    /// The first two entries, which are no clusters'.
    reserved: [u32; 2],
    /// Numbers from which on an entry ends a chain.
    end: u32,
}

impl Chains {
    fn read(old: &Layout, boot: &BootSector, read: &mut Read<'_>) -> Result<Chains, Refusal> {
        if old.fat > LARGEST {
            return Err(Refusal::new("its FAT is too large to make it anew", "copy its files"));
        }
        let is_wide = old.width == Width::ThirtyTwo;
        if is_wide && boot.skip1[0] & 0x80 != 0 {
            return Err(Refusal::new("one of its FATs alone is in use", "fsck.fat"));
        }
        let mut bytes = vec![0; usize::try_from(old.fat).unwrap_or(0)];
        read(old.reserved, &mut bytes).map_err(unreadable)?;
        let count = usize::try_from(old.clusters + 2).unwrap_or(0);
        let next: Vec<u32> = match old.width {
            Width::ThirtyTwo => bytes
                .chunks_exact(4)
                .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) & 0x0fff_ffff)
                .take(count)
                .collect(),
            Width::Sixteen => {
                let entry = |b: &[u8]| u32::from(u16::from_le_bytes([b[0], b[1]]));
                bytes.chunks_exact(2).map(entry).take(count).collect()
            }
            Width::Twelve => bytes
                .chunks(3)
                .flat_map(|b| {
                    let byte = |n: usize| u32::from(b.get(n).copied().unwrap_or(0));
                    [byte(0) | (byte(1) & 15) << 8, byte(1) >> 4 | byte(2) << 4]
                })
                .take(count)
                .collect(),
        };
        let reserved = [0, 1].map(|n| next.get(n).copied().unwrap_or(0));
        let (end, clean) = match old.width {
            Width::ThirtyTwo => (0x0fff_fff8, 0x0c00_0000),
            Width::Sixteen => (0xfff8, 0xc000),
            Width::Twelve => (0xff8, 0),
        };
        // The dirty flags: clear while the volume is mounted, or after an error.
        if reserved[1] & clean != clean {
            return Err(Refusal::new("it was not unmounted", "fsck.fat -a"));
        }
        // Marks of bad clusters say where in the old layout nothing is to be put.
        if next.iter().skip(2).any(|&next| next == end - 1) {
            return Err(Refusal::new("some of its clusters are marked bad", "copy its files"));
        }
        Ok(Chains { next, reserved, end })
    }

    /// Clusters of the chain from `first` on, each seen for the first time.
    fn follow(&self, first: u64, seen: &mut [bool]) -> Result<Vec<u64>, Refusal> {
        let damaged = || Refusal::new("a chain of its clusters is damaged", "fsck.fat");
        let (mut chain, mut at) = (Vec::new(), first);
        loop {
            let n = usize::try_from(at).map_err(|_| damaged())?;
            let (Some(&next), Some(seen), true) = (self.next.get(n), seen.get_mut(n), n >= 2)
            else {
                return Err(damaged());
            };
            if std::mem::replace(seen, true) {
                return Err(damaged());
            }
            chain.push(at);
            if next >= self.end {
                return Ok(chain);
            }
            at = next.into();
        }
    }
}

/// Directory with its entries as they are.
struct Directory {
    bytes: Vec<u8>,
    /// The directory it is in, and the byte of its entry there.
    parent: (usize, usize),
    /// First cluster in the new layout.
    place: u64,
}

/// File, by its entry.
struct FileOf {
    directory: usize,
    /// Byte of its entry there.
    at: usize,
    length: u64,
    ranges: Vec<Range<u64>>,
}

/// Files and directories of a volume.
struct Tree<'a> {
    chains: &'a Chains,
    old: &'a Layout,
    directories: Vec<Directory>,
    files: Vec<FileOf>,
    /// Bytes of all directories.
    bytes: u64,
}

impl Tree<'_> {
    /// Reads all directories from the root on.
    fn walk(&mut self, root: u64, seen: &mut [bool], read: &mut Read<'_>) -> Result<(), Refusal> {
        let old = self.old;
        let ranges = match old.width {
            Width::ThirtyTwo => self.ranges(root, u64::MAX, seen)?,
            _ => {
                let start = old.directory();
                std::iter::once(start..start + old.root_entries * ENTRY).collect()
            }
        };
        self.enter(&ranges, (0, 0), read)?;
        let mut next = 0;
        while next < self.directories.len() {
            for at in (0..self.directories[next].bytes.len()).step_by(SLOT) {
                let entry = &mut self.directories[next].bytes[at..at + SLOT];
                let attributes = entry[11] & ATTR_MASK;
                let word = |n: usize| u64::from(u16::from_le_bytes([entry[n], entry[n + 1]]));
                let high = if old.width == Width::ThirtyTwo { word(20) } else { 0 };
                let (first, length) = (high << 16 | word(26), word(30) << 16 | word(28));
                let is_label = attributes & (ATTR_VOLUME_ID | ATTR_DIRECTORY) == ATTR_VOLUME_ID;
                if entry[0] == 0xe5 {
                    entry[26..28].fill(0);
                    if old.width == Width::ThirtyTwo {
                        entry[20..22].fill(0);
                    }
                } else if attributes == ATTR_LONG_NAME || is_label || entry[0] == b'.' {
                } else if attributes & ATTR_DIRECTORY != 0 {
                    let ranges = self.ranges(first, u64::MAX, seen)?;
                    self.enter(&ranges, (next, at), read)?;
                } else {
                    let ranges = match length {
                        0 => Vec::new(),
                        _ => self.ranges(first, length, seen)?,
                    };
                    self.files.push(FileOf { directory: next, at, length, ranges });
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// The bytes of a chain, as far as `length`.
    fn ranges(
        &self,
        first: u64,
        length: u64,
        seen: &mut [bool],
    ) -> Result<Vec<Range<u64>>, Refusal> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let mut left = length;
        for cluster in self.chains.follow(first, seen)? {
            let at = self.old.at(cluster);
            let end = at + self.old.cluster.min(left);
            left -= end - at;
            match ranges.last_mut() {
                Some(last) if last.end == at => last.end = end,
                _ if end > at => ranges.push(at..end),
                _ => {}
            }
        }
        match left > 0 && length < u64::MAX {
            true => Err(Refusal::new("a file is longer than its chain", "fsck.fat")),
            false => Ok(ranges),
        }
    }

    /// Adds a directory, up to its last entry that is in use.
    fn enter(
        &mut self,
        ranges: &[Range<u64>],
        parent: (usize, usize),
        read: &mut Read<'_>,
    ) -> Result<(), Refusal> {
        let mut bytes = Vec::new();
        for range in ranges {
            let length = range.end - range.start;
            self.bytes = self.bytes.saturating_add(length);
            if self.bytes > LARGEST {
                return Err(Refusal::new("its directories are too large", "copy its files"));
            }
            let from = bytes.len();
            bytes.resize(from + usize::try_from(length).unwrap_or(0), 0);
            read(range.start, &mut bytes[from..]).map_err(unreadable)?;
        }
        // The first entry with a name that begins with 0 ends it.
        let end = bytes.chunks_exact(SLOT).position(|entry| entry[0] == 0);
        bytes.truncate(end.map_or(bytes.len() / SLOT, |end| end) * SLOT);
        let is_root = self.directories.is_empty();
        let has_links = bytes.first() == Some(&b'.') && bytes.get(SLOT) == Some(&b'.');
        if !is_root && !has_links {
            return Err(Refusal::new("a directory of it does not begin as one", "fsck.fat"));
        }
        self.directories.push(Directory { bytes, parent, place: 0 });
        Ok(())
    }
}

/// Clusters of the new layout, handed out in order.
struct Room<'a> {
    layout: &'a Layout,
    /// The next cluster that is free.
    next: u64,
    /// Entries up to there; 0 ends a chain.
    table: Vec<u32>,
}

impl Room<'_> {
    /// The first of the clusters for `length` bytes; 0 for none of them, unless there must be one.
    fn take(&mut self, length: u64, is_directory: bool) -> Result<u64, Refusal> {
        let count = length.div_ceil(self.layout.cluster).max(is_directory.into());
        let first = self.next;
        self.next = first.saturating_add(count);
        if self.next > self.layout.clusters + 2 {
            let found = format!(
                "its files do not fit: clusters of {} bytes take more room",
                self.layout.cluster
            );
            return Err(Refusal::new(found, "make it smaller by some files, or larger"));
        }
        let numbers = (first + 1..self.next).map(|next| u32::try_from(next).unwrap_or(0));
        self.table.extend(numbers);
        self.table.extend((count > 0).then_some(0));
        Ok(if count == 0 { 0 } else { first })
    }

    /// The bytes of the FAT.
    fn table(self, reserved: [u32; 2], media: u8) -> Vec<u8> {
        let width = self.layout.width;
        let all = match width {
            Width::Twelve => 0xfff,
            Width::Sixteen => 0xffff,
            Width::ThirtyTwo => 0x0fff_ffff,
        };
        let firsts = [all & !0xff | u32::from(media), all];
        let mut entries = self.table;
        entries.iter_mut().skip(2).filter(|next| **next == 0).for_each(|next| *next = all);
        entries[..2].copy_from_slice(&firsts);
        // An entry of a volume that had errors keeps them.
        if width == Width::ThirtyTwo && reserved[1] != 0 {
            entries[1] = reserved[1] | 0x0c00_0000;
        }
        let mut bytes: Vec<u8> = match width {
            Width::ThirtyTwo => entries.iter().flat_map(|entry| entry.to_le_bytes()).collect(),
            Width::Sixteen => entries
                .iter()
                .flat_map(|&entry| u16::try_from(entry).unwrap_or(u16::MAX).to_le_bytes())
                .collect(),
            Width::Twelve => entries
                .chunks(2)
                .flat_map(|pair| {
                    let both = pair[0] | pair.get(1).copied().unwrap_or(0) << 12;
                    let [low, middle, high, _] = both.to_le_bytes();
                    [low, middle, high]
                })
                .collect(),
        };
        bytes.resize(usize::try_from(self.layout.fat).unwrap_or(0), 0);
        bytes
    }
}

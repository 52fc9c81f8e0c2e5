//! Formats of the contents that do I/O from a provider: file systems, members of other systems'
//! sets, encrypted volumes, swap.
//!
//! A recognised format is one file in `format/`, a `mod` line, a line in
//! [`crate::registry::FORMATS`], and a golden disk in `tests/disks/`. A format answers with a
//! [`Sign`]: its kind, and what decides alignment inside it. Whatever else is known of it is asked
//! of the [`Format`] behind the kind; no other file compares kinds by their names.

use crate::base::error::Errno;
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::base::topology::is_whole;
use crate::format::free_space::{Found, Unsure};
use crate::format::maker::Maker;
use crate::probe::Probe;
use crate::table::Refusal;
use std::fmt;

pub mod apfs;
pub mod bcache;
pub mod bcachefs;
pub mod bitlocker;
mod boot_fields;
pub mod btrfs;
pub mod by_magic;
pub mod ddf;
pub mod drbd;
pub mod erofs;
pub mod exfat;
pub mod ext;
pub mod f2fs;
pub mod fat;
pub mod free_space;
pub mod hfs;
pub mod hfsplus;
pub mod imsm;
pub mod integrity;
pub mod iso9660;
pub mod jfs;
pub mod luks;
pub mod lvm2;
pub mod maker;
pub mod md;
pub mod minix;
pub mod moving;
pub mod nilfs2;
pub mod ntfs;
pub mod reiserfs;
mod sign;
pub mod squashfs;
pub mod swap;
pub mod udf;
pub mod ufs;
pub mod vdo;
pub mod xfs;
pub mod zfs;

pub use boot_fields::{Moved, Rebased, extlinux, grub, unmoved};
pub use sign::{Data, Inside, Piece, Reference, Sign};

/// A file system, a member of a set or a container: how it is recognised, and what is known of it.
pub trait Format: Sync {
    /// Every kind that it answers with: `ext2`, `ext3`, `ext4`, `jbd`.
    fn kinds(&self) -> Vec<FormatKind>;

    /// The sign of this format on a provider; `None` if it is not there. Reads stay within the
    /// probe's budget, and no number that was read is trusted.
    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign>;

    /// The sign of this format in another place, asked where the one that [`Format::recognise`]
    /// found turns out to be a slice's ([`Sign::tail`]).
    fn recognise_elsewhere(&self, probe: &Probe<'_>) -> Option<Sign> {
        let _ = probe;
        None
    }

    /// Its inside as far as a name tells, and the size of its blocks in bytes, which a kernel, udev
    /// or lsblk reports; `None`: such a name is not passed on.
    fn by_name(&self, kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        let _ = (kind, block);
        None
    }

    /// True if a medium that holds it holds `other` as well, by design.
    fn includes(&self, other: FormatKind) -> bool {
        let _ = other;
        false
    }

    /// True if whole pages of a file are written however small its clusters are: those only part
    /// files from each other.
    fn keeps_pages_whole(&self) -> bool {
        false
    }

    /// The command that checks it, where its own free space is looked at.
    fn checker(&self) -> Option<&'static str> {
        None
    }

    /// The system's own tool that makes it.
    fn maker(&self) -> Option<&'static Maker> {
        None
    }

    /// True if Trueline makes it, on `length` bytes, so that nothing in it is smaller than a page
    /// and its data begin where they should.
    fn is_made_here(&self, kind: FormatKind, length: u64) -> bool {
        let _ = (kind, length);
        false
    }

    /// True if what makes it can put its data on a boundary that the format itself does not begin
    /// on.
    fn reaches_any_boundary(&self) -> bool {
        false
    }

    /// The fix for `piece`, which is smaller than a device's unit of `unit` bytes.
    fn enlarge(&self, sign: &Sign, piece: Piece, unit: u64) -> Option<String> {
        let _ = (sign, piece, unit);
        None
    }

    /// The fix that lays it out for a set of this chunk and full stripe, in bytes; `None` for a
    /// kind that takes no notice of sets.
    fn fit_set(&self, sign: &Sign, chunk: u64, stripe: u64) -> Option<String> {
        let _ = (sign, chunk, stripe);
        None
    }

    /// The fix for a data area that begins off a boundary.
    fn shift_data(&self, area: &StrayData<'_>) -> String {
        format!("make the {} anew with its data area {} bytes further in", area.kind, area.lacking)
    }

    /// The fix for a container whose blocks are off a boundary.
    fn remake(&self) -> &'static str {
        "copy it into a container whose blocks are on the boundary: qemu-img convert -O qcow2"
    }

    /// The words for unpacking a disk that is only carried in it; `None` for a container that
    /// `qemu-img` converts.
    fn unpack(&self) -> Option<&'static str> {
        None
    }

    /// The shell commands that make it `length` bytes long, in the file that `file` names; `None`
    /// for what cannot get shorter.
    fn shorten(&self, kind: FormatKind, file: &str, length: u64) -> Option<String> {
        let _ = (kind, file, length);
        None
    }

    /// True if all of it is within the size that it records, and nothing has its place by the end
    /// of the provider.
    fn keeps_to_its_size(&self) -> bool {
        false
    }

    /// True if it has no pieces of its own: what is in its data area decides on which sectors it
    /// can be.
    fn only_carries(&self) -> bool {
        false
    }

    /// The writes after which it is right on sectors of another size; none where it stays as it is.
    /// Refused where its own pieces are smaller than a sector, with what would have to be made
    /// anew.
    fn convert(
        &self,
        sign: &Sign,
        on: Resized,
        read: &mut Read<'_>,
    ) -> Result<Vec<Write>, Refusal> {
        let _ = read;
        let pieces = sign.pieces().filter(|piece| piece.is_data());
        let sector = sign.sector.map(|size| Piece { size, name: "sector" });
        match pieces.chain(sector).min_by_key(|piece| piece.size) {
            _ if on.to <= on.from => Ok(Vec::new()),
            Some(piece) if piece.size >= on.to => Ok(Vec::new()),
            Some(piece) => {
                let found = format!("it writes a {} of {} bytes", piece.name, piece.size);
                let anew = self.enlarge(sign, piece, on.to);
                Err(Refusal::new(found, anew.unwrap_or_else(|| "copy its files".into())))
            }
            None if self.only_carries() => match sign.data.as_ref().map(|data| data.offset) {
                Some(at) if !is_whole(at, on.to) => {
                    let found = format!("its data begin at byte {at}, off whole sectors");
                    Err(Refusal::new(found, "make it anew"))
                }
                _ => Ok(Vec::new()),
            },
            None => Err(Refusal::new("the sectors that it needs are not known", "copy its files")),
        }
    }

    /// The writes that make it true again what it says of where it begins, once it was moved.
    fn rebase(&self, moved: Moved, read: &mut Read<'_>) -> Result<Rebased, Errno> {
        let _ = (moved, read);
        Ok(Rebased::default())
    }

    /// Finds the ranges that it does not use of a provider of `length` bytes, by its own bitmap.
    /// `None` for a format whose free space is not known here.
    fn free(
        &self,
        kind: FormatKind,
        length: u64,
        read: &mut Read<'_>,
        found: &mut Found<'_>,
    ) -> Option<Result<(), Unsure>> {
        let _ = (kind, length, read, found);
        None
    }
}

/// A data area that begins off a boundary beneath it.
#[derive(Clone, Copy, Debug)]
pub struct StrayData<'a> {
    /// The kind of the format that it belongs to.
    pub kind: FormatKind,
    /// That format, as far as it was recognised.
    pub sign: Option<&'a Sign>,
    /// The logical sector beneath it, in bytes.
    pub sector: u64,
    /// The size of the boundary, in bytes.
    pub unit: u64,
    /// Bytes from where it begins to the next boundary.
    pub lacking: u64,
}

/// A kind of contents, and the format that knows it. No two kinds have one name.
#[derive(Clone, Copy)]
pub struct FormatKind {
    /// blkid's TYPE: `ext4`, `xfs`, `LVM2_member`, `linux_raid_member`, `crypto_LUKS`, `vfat`, ...
    pub name: &'static str,
    /// The format that answers with it.
    pub format: &'static dyn Format,
}

impl FormatKind {
    /// The kind that `format` calls `name`.
    pub const fn new(name: &'static str, format: &'static dyn Format) -> FormatKind {
        FormatKind { name, format }
    }
}

impl PartialEq for FormatKind {
    fn eq(&self, other: &FormatKind) -> bool {
        self.name == other.name
    }
}

impl Eq for FormatKind {}

impl fmt::Debug for FormatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

impl fmt::Display for FormatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// Formats of which only a name was reported.
struct NameOnly;

impl Format for NameOnly {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![OTHER]
    }

    fn recognise(&self, _probe: &Probe<'_>) -> Option<Sign> {
        None
    }
}

/// The kind of a format that nothing here knows.
const OTHER: FormatKind = FormatKind::new("other", &NameOnly);

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::audit::{self, Verdict, profile};
    use crate::base::finding;
    use crate::base::store::{Sparse, Store};
    use crate::base::topology::Topology;
    use crate::graph::{Disk, Graph};
    use crate::mapping::route::Route;
    use crate::probe::{Budget, Limits};
    use crate::registry::FORMATS;

    /// The signs that all formats together find on a disk of `length` bytes with `parts` on it.
    pub(crate) fn everything(length: u64, parts: &[(u64, &[u8])]) -> Vec<Sign> {
        FORMATS.iter().filter_map(|format| recognised(*format, disk(length, parts))).collect()
    }

    /// Numbers as large and as small as they can be behind every magic: nothing may overflow, shift
    /// too far or read on.
    #[test]
    fn hostile_numbers_are_survived() {
        let magics: [(u64, &[u8]); 26] = [
            (0, b"XFSB"),
            (0, b"hsqs"),
            (0, b"\xfe\xed\xba\xbe"),
            (3, b"NTFS    "),
            (3, b"EXFAT   "),
            (32, b"NXSB"),
            (54, b"FAT16   "),
            (82, b"FAT32   "),
            (1024, b"\x10\x20\xf5\xf2"),
            (1024, b"\xe2\xe1\xf5\xe0"),
            (1024, b"H+\0\x04"),
            (1024, b"BD"),
            (1030, b"44"),
            (1040, b"\x8f\x13"),
            (1048, b"\x5a\x4d"),
            (1080, b"\x53\xef"),
            (1148, b"H+"),
            (4086, b"SWAPSPACE2"),
            (9564, b"\x54\x19\x01\0"),
            (32768, b"JFS1"),
            (32768, b"\x01CD001"),
            (32769, b"NSR03"),
            (65588, b"ReIsEr2Fs\0"),
            (65600, b"_BHRfS_M"),
            (66908, b"\x19\x01\x54\x19"),
            (66908, b"\x19\x54\x01\x19"),
        ];
        for fill in [0, 1, 2, 9, 12, 0x7f, 0x80, 0xff] {
            let noise = vec![fill; 128 << 10];
            everything(128 << 10, &[(0, &noise)]);
            for magic in magics {
                everything(128 << 10, &[(0, &noise), magic]);
            }
        }
    }

    /// A disk of zeros but for these runs.
    pub(crate) fn disk(length: u64, runs: &[(u64, &[u8])]) -> Sparse {
        let mut disk = Sparse::new(length);
        for (at, bytes) in runs {
            disk.put(*at, bytes);
        }
        disk
    }

    /// The sign of `format` on a disk; `None` if it is not there.
    pub(crate) fn recognised(format: &dyn Format, disk: Sparse) -> Option<Sign> {
        let route = Route::store(0, disk.length());
        let stores: Vec<Box<dyn Store>> = vec![Box::new(disk)];
        let budget = Budget::new(Limits::default());
        format.recognise(&Probe::new(&route, &stores, &budget, 512, Some(0), None))
    }

    /// An exFAT volume whose cluster heap its boot sector puts into sector `heap`.
    fn exfat(heap: u32) -> [u8; 512] {
        let mut boot = [0; 512];
        boot[..11].copy_from_slice(b"\xeb\x76\x90EXFAT   ");
        boot[72] = 64;
        boot[88..92].copy_from_slice(&heap.to_le_bytes());
        boot[92] = 8;
        boot[108..110].copy_from_slice(&[9, 3]);
        boot[510..].copy_from_slice(&[0x55, 0xaa]);
        boot
    }

    /// There is nothing to judge then, which is not the same as nothing wrong.
    #[test]
    fn data_past_the_end_or_over_the_signature_are_unknown() {
        for (heap, verdict) in [
            (64, Verdict::Aligned),
            (65, Verdict::Misaligned),
            (2048, Verdict::Unknown),
            (u32::MAX, Verdict::Unknown),
            (0, Verdict::Unknown),
        ] {
            let store = disk(1 << 20, &[(0, &exfat(heap))]);
            let mut topology = Topology::new(512, store.length());
            topology.facts = profile::assumed();
            let graph =
                Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default());
            assert_eq!(graph.providers[0].signs[0].kind, exfat::KIND);
            assert_eq!(audit::audit(&graph).verdicts[0], verdict, "{heap}");
        }
    }

    /// A backing device of bcache in a backing device, and so on to the end of the disk.
    #[test]
    fn data_areas_inside_each_other_end() {
        let mut sb = [0u8; 512];
        sb[8] = 8;
        sb[16] = 1;
        sb[24..40]
            .copy_from_slice(b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81");
        let runs: Vec<(u64, &[u8])> = (0..128).map(|n| (n * 8192 + 4096, &sb[..])).collect();
        let store = disk(1 << 20, &runs);
        let topology = Topology::new(512, store.length());
        let disks = vec![Disk::new("", Box::new(store), topology)];
        let graph = Graph::taste(disks, Limits::default());
        assert_eq!(graph.providers.len(), Limits::default().depth + 1);
        let last = graph.providers.last().unwrap();
        assert_eq!(last.start, Some(16 * 8192));
        assert!(last.findings.iter().any(|f| *f.rule == finding::BLIND));
    }
}

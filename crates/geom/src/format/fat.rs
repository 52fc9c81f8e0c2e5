//! FAT12, FAT16, FAT32, all of them `vfat` to blkid.
//!
//! # On disk
//! The BIOS parameter block is in sector 0: reserved sectors, then the FATs, then (FAT12, FAT16)
//! the root directory, then the clusters. Nothing rounds the sum, so the first cluster is aligned
//! only if the tool that made the file system arranged it: `mkfs.fat` does so to the cluster's
//! size, no further. An MBR, NTFS or exFAT has the same last two bytes and sometimes the same jump,
//! so every field of the block is checked.
//!
//! # Limits
//! The label is looked for in the first 16 KiB of the root directory, and on FAT32 in its first
//! cluster; the one in the boot sector does not count, for blkid either. Its code page is not
//! recorded: what is not UTF-8 is replaced.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03, "Boot Sector and BPB", "FAT Type
//! Determination", "FAT Directory Structure" (its names in snake case, without the prefix);
//! libblkid `superblocks/vfat.c`.

use super::boot_fields::{Field, HIDDEN, rebase, word};
use super::free_space::{Found, Unsure};
use super::maker::Maker;
use super::{Format, FormatKind, Inside, Moved, Piece, Rebased, Sign, StrayData, bitlocker};
use crate::base::error::Errno;
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::base::topology::is_whole;
use crate::probe::Probe;
use crate::table::Refusal;
use layout::{Layout, Width};
use std::fmt;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32};

mod convert;
mod free;
mod layout;
mod remade;

/// The format, for the registry.
pub struct Fat;

/// The kind that blkid calls `vfat`.
pub const KIND: FormatKind = FormatKind::new("vfat", &Fat);

static MAKER: Maker = Maker {
    file: &["-I"],
    device: &["-I"],
    sectors_before: Some(|sectors| vec![("-h", sectors.to_string())]),
    // Reserved sectors were counted for tables of just that length.
    gives_way: |option, words| {
        if matches!(option, "-R" | "-a") { words.have_any("RSsfra") } else { words.have(option) }
    },
    clusters_follow: true,
    ..Maker::new("mkfs.vfat", "dosfstools")
};

impl Format for Fat {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn maker(&self) -> Option<&'static Maker> {
        Some(&MAKER)
    }

    fn keeps_pages_whole(&self) -> bool {
        true
    }

    /// A FAT on a floppy has no room for as many reserved sectors as a unit takes.
    fn is_made_here(&self, _kind: FormatKind, length: u64) -> bool {
        length >= SMALLEST
    }

    fn reaches_any_boundary(&self) -> bool {
        true
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, unit: u64) -> Option<String> {
        Some(format!(
            "make it with larger clusters: mkfs.fat -s {} (512-byte sectors a cluster)",
            unit / 512
        ))
    }

    fn shift_data(&self, area: &StrayData<'_>) -> String {
        let unit = area.unit;
        let large = format!(
            "make it anew on a partition that begins on the unit, with clusters of at least {unit} bytes (mkfs.fat -s) and without -a"
        );
        let with = |more| format!("with {more} reserved sectors more (mkfs.fat -a -R)");
        match (unit <= LARGEST_CLUSTER, reserved(area)) {
            (true, Ok(more)) => format!("{large}; or {}", with(more)),
            (true, Err(why)) => format!("{large}; {why}"),
            (false, Ok(more)) => format!("make it anew {}", with(more)),
            (false, Err(why)) => why.to_string(),
        }
    }

    fn convert(&self, _: &Sign, on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
        convert::convert(on, read)
    }

    fn rebase(&self, moved: Moved, read: &mut Read<'_>) -> Result<Rebased, Errno> {
        rebase(moved, read, |boot| {
            // FAT32 alone has no size of a FAT at byte 22, and says where the copy is.
            let copies = if word(boot, 22) == 0 { vec![0, word(boot, 50)] } else { vec![0] };
            Field { sector: word(boot, 11), place: HIDDEN, copies, sectors: 1, seal: |_| {} }
        })
    }

    fn checker(&self) -> Option<&'static str> {
        Some("fsck.vfat")
    }

    fn free(
        &self,
        _kind: FormatKind,
        length: u64,
        read: &mut Read<'_>,
        found: &mut Found<'_>,
    ) -> Option<Result<(), Unsure>> {
        Some(free::free(length, read, found))
    }
}

on_disk! {
    /// The boot sector as FAT32 has it; FAT12 and FAT16 differ from byte 36.
    #[derive(Clone, IntoBytes)]
    struct BootSector of 512 bytes {
          0 => jmp_boot: [u8; 3],
          3 => oem_name: [u8; 8],
         11 => byts_per_sec: U16,
         13 => sec_per_clus: u8,
         14 => rsvd_sec_cnt: U16,
         16 => num_fats: u8,
         17 => root_ent_cnt: U16,
         19 => tot_sec16: U16,
         21 => media: u8,
         22 => fat_sz16: U16,
         24 => skip0: [u8; 4],
         28 => hidd_sec: U32,
         32 => tot_sec32: U32,
         36 => fat_sz32: U32,
         40 => skip1: [u8; 4],
         44 => root_clus: U32,
         48 => fs_info: U16,
         50 => bk_boot_sec: U16,
         52 => skip2: [u8; 458],
        510 => signature: [u8; 2],
    }
}

on_disk! {
    /// On-disk entry of a directory.
    struct DirectoryEntry of 32 bytes {
         0 => name: [u8; 11],
        11 => attr: u8,
        12 => skip0: [u8; 8],
        20 => fst_clus_hi: U16,
        22 => skip1: [u8; 4],
        26 => fst_clus_lo: U16,
        28 => file_size: U32,
    }
}

const ENTRY: u64 = 32;
const ATTR_VOLUME_ID: u8 = 0x08;
const ATTR_DIRECTORY: u8 = 0x10;
const ATTR_MASK: u8 = 0x3f;
const ATTR_LONG_NAME: u8 = 0x0f;
/// The most of a root directory that is read for a label.
const DIRECTORY: u64 = 16384;
/// Volumes with fewer clusters are FAT12, with fewer than the next FAT16. blkid's limits, which are
/// the kernel's.
const FAT12_MAX: u64 = 0xff4;
const FAT16_MAX: u64 = 0xfff4;
const FAT32_MAX: u64 = 0x0fff_fff6;
/// The smallest provider on which mkfs.vfat puts the clusters where it is told.
const SMALLEST: u64 = 8 << 20;
/// Reserved sectors of a FAT: a number of 16 bits.
const MOST_RESERVED: u64 = 65535;
/// The largest cluster that every system reads on a FAT.
const LARGEST_CLUSTER: u64 = 32 << 10;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let boot: BootSector = probe.read(0)?;
    let magic = magic(probe, &boot)?;
    // BitLocker To Go keeps a FAT boot sector, for systems that do not know it.
    if !(boot.media >= 0xf8 || boot.media == 0xf0) || bitlocker::is_bitlocker(probe) {
        return None;
    }
    let layout = Layout::read(&boot).ok()?;
    let Layout { sector, cluster, clusters, total, width, .. } = layout;
    let data = layout.data();
    let (serial, directory) = if width == Width::ThirtyTwo {
        // Cluster numbers begin at 2.
        let nth = u64::from(boot.root_clus.get());
        let is_inside = (2..clusters + 2).contains(&nth);
        (67, is_inside.then(|| (layout.at(nth), cluster)))
    } else {
        (39, Some((layout.directory(), layout.root)))
    };
    let mut sign = Sign::new(KIND, magic);
    sign.version = Some(width.to_string());
    sign.label = directory.and_then(|(at, length)| label(probe, at, length.min(DIRECTORY)));
    sign.uuid = probe
        .read::<U32>(serial)
        .map(U32::get)
        .filter(|&n| n != 0)
        .map(|n| format!("{:04X}-{:04X}", n >> 16, n & 0xffff));
    sign.size = Some(total);
    sign.sector = Some(sector);
    sign.block = Some(cluster);
    sign.data_at(probe, Some(data), Some(clusters * cluster), false);
    Some(sign)
}

/// Where the mark is by which blkid calls it FAT: a type name, or on old volumes only the boot
/// signature.
fn magic(probe: &Probe<'_>, boot: &BootSector) -> Option<u64> {
    let names: [(u64, &[u8]); 6] = [
        (82, b"MSWIN"),
        (82, b"FAT32   "),
        (54, b"MSDOS"),
        (54, b"FAT16   "),
        (54, b"FAT12   "),
        (54, b"FAT     "),
    ];
    let named = names.into_iter().find(|(at, name)| probe.has(*at, name)).map(|(at, _)| at);
    // OS/2 puts a parameter block before file systems that are not FAT.
    let other = probe.has(54, b"JFS     ") || probe.has(54, b"HPFS    ");
    named.or((boot.signature == [0x55, 0xaa] && !other).then_some(510))
}

/// The name of the volume's own entry in the directory at `at`.
fn label(probe: &Probe<'_>, at: u64, length: u64) -> Option<String> {
    for n in 0..length / ENTRY {
        let entry: DirectoryEntry = probe.read(at.checked_add(n * ENTRY)?)?;
        let free =
            entry.name[0] == 0xe5 || entry.fst_clus_hi.get() != 0 || entry.fst_clus_lo.get() != 0;
        match entry.attr & ATTR_MASK {
            _ if entry.name[0] == 0 => return None,
            ATTR_LONG_NAME => {}
            attr if !free && attr & (ATTR_VOLUME_ID | ATTR_DIRECTORY) == ATTR_VOLUME_ID => {
                let mut name = entry.name;
                // A first character of E5, which would mean a free entry, is kept as 05.
                if name[0] == 5 {
                    name[0] = 0xe5;
                }
                return ondisk::text(&name);
            }
            _ => {}
        }
    }
    None
}

/// Reason for which no number of reserved sectors puts the clusters on the boundary.
enum OutOfReach {
    /// Bytes that are lacking, no multiple of a sector of so many.
    Uneven(u64, u64),
    /// Sectors that are lacking, more than a FAT has.
    Many(u64),
}

impl fmt::Display for OutOfReach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no number of reserved sectors brings its clusters there: ")?;
        match self {
            OutOfReach::Uneven(lacking, sector) => {
                write!(f, "they are {sector} bytes each, and {lacking} are lacking")
            }
            OutOfReach::Many(more) => {
                write!(f, "{more} are lacking, and a FAT has {MOST_RESERVED} at most")
            }
        }
    }
}

/// The number of further reserved sectors that puts the clusters on the boundary, counted in the
/// FAT's own sectors.
fn reserved(area: &StrayData<'_>) -> Result<u64, OutOfReach> {
    let (lacking, sector) =
        (area.lacking, area.sign.and_then(|sign| sign.sector).unwrap_or(area.sector).max(1));
    let more = lacking / sector;
    if !is_whole(lacking, sector) {
        return Err(OutOfReach::Uneven(lacking, sector));
    }
    if more > MOST_RESERVED { Err(OutOfReach::Many(more)) } else { Ok(more) }
}

#[cfg(test)]
mod tests {
    use crate::format::tests::everything;

    /// A FAT16 volume of 32 MiB whose first cluster is at sector 289.
    fn fat16() -> Vec<u8> {
        let mut disk = vec![0; 512];
        disk[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
        disk[11..25].copy_from_slice(&[0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8, 128, 0, 0]);
        disk[32..36].copy_from_slice(&65536u32.to_le_bytes());
        disk[510..].copy_from_slice(&[0x55, 0xaa]);
        disk
    }

    #[test]
    fn the_first_cluster_follows_the_root_directory() {
        let sign = everything(32 << 20, &[(0, &fat16())]).remove(0);
        assert_eq!(
            (sign.kind.name, sign.magic, sign.version.as_deref()),
            ("vfat", 510, Some("FAT16"))
        );
        assert_eq!((sign.data.unwrap().offset, sign.block), (289 * 512, Some(2048)));
    }

    #[test]
    fn what_only_ends_as_a_boot_sector_is_not_fat() {
        // Each a field that must not be 0, beginning with all of them: an MBR with boot code.
        for (at, length) in
            [(11, 14), (11, 2), (13, 1), (14, 2), (16, 1), (21, 1), (22, 2), (32, 4)]
        {
            let mut disk = fat16();
            disk[at..at + length].fill(0);
            assert_eq!(everything(32 << 20, &[(0, &disk)]), [], "{at}");
        }
        // A code byte where a power of two must be, more FAT than volume, and everything as large
        // as can be.
        for (at, with) in [(12, &[3][..]), (13, &[3]), (22, &[0xff, 0xff]), (11, &[0xff; 14])] {
            let mut disk = fat16();
            disk[at..at + with.len()].copy_from_slice(with);
            assert_eq!(everything(32 << 20, &[(0, &disk)]), [], "{at}");
        }
    }

    #[test]
    fn the_number_of_clusters_decides_the_kind() {
        for (clusters, version) in [(0xff4_u32, "FAT12"), (0xff5, "FAT16"), (0xfff4, "FAT16")] {
            let mut disk = fat16();
            disk[32..36].copy_from_slice(&(289 + 4 * clusters).to_le_bytes());
            disk[39..43].copy_from_slice(&[0x34, 0x12, 0xcd, 0xab]);
            let sign = everything(256 << 20, &[(0, &disk)]).remove(0);
            assert_eq!(
                (sign.version.as_deref(), sign.uuid.as_deref()),
                (Some(version), Some("ABCD-1234"))
            );
            assert_eq!(sign.data.unwrap().length, Some(u64::from(clusters) * 2048));
        }
        // The root directory takes whole sectors.
        let mut disk = fat16();
        disk[17..19].copy_from_slice(&[17, 0]);
        assert_eq!(everything(32 << 20, &[(0, &disk)])[0].data.unwrap().offset, (257 + 2) * 512);
        // OS/2's parameter block stands before its own file systems too.
        let mut disk = fat16();
        disk[54..62].copy_from_slice(b"HPFS    ");
        assert_eq!(everything(32 << 20, &[(0, &disk)]), []);
    }
}

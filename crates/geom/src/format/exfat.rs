//! exFAT, the file system of SDXC cards.
//!
//! # On disk
//! The main boot sector is sector 0. Clusters begin at `ClusterHeapOffset`, in sectors: SD cards
//! are shipped with it on their allocation unit, and a volume formatted anew may lose that.
//!
//! # Limits
//! To recognise it, the boot checksum is not computed. The label is looked for in the first 16 KiB
//! of the root directory's first cluster.
//!
//! # Sources
//! Microsoft "exFAT file system specification", sections 3.1 "Main and Backup Boot Sector
//! Sub-regions" and 7.3 "Volume Label Directory Entry" (its names in snake case).

use super::boot_fields::{Field, rebase};
use super::free_space::{Found, Unsure};
use super::maker::Maker;
use super::{Format, FormatKind, Inside, Moved, Piece, Rebased, Sign, StrayData};
use crate::base::error::Errno;
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::probe::Probe;
use crate::table::Refusal;
use std::ops::Range;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U16, U32, U64};

mod chains;
mod convert;
mod free;
mod tree;

/// The format, for the registry.
pub struct Exfat;

/// The kind that blkid calls `exfat`.
pub const KIND: FormatKind = FormatKind::new("exfat", &Exfat);

static MAKER: Maker = Maker {
    clusters_follow: true,
    sector_is_the_devices: true,
    ..Maker::new("mkfs.exfat", "exfatprogs")
};

impl Format for Exfat {
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

    fn is_made_here(&self, _kind: FormatKind, _length: u64) -> bool {
        true
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, unit: u64) -> Option<String> {
        Some(format!("make it with larger clusters: mkfs.exfat -c {unit}"))
    }

    fn shift_data(&self, area: &StrayData<'_>) -> String {
        format!(
            "make it anew with its boundary on the unit: mkfs.exfat --boundary-align={}",
            area.unit.max(1 << 20)
        )
    }

    fn convert(&self, _: &Sign, on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
        convert::convert(on, read)
    }

    fn rebase(&self, moved: Moved, read: &mut Read<'_>) -> Result<Rebased, Errno> {
        rebase(moved, read, |boot| Field {
            sector: 1_u64.checked_shl(boot[108].into()).unwrap_or(0),
            place: PARTITION_OFFSET,
            copies: vec![0, REGION as u64],
            sectors: REGION as u64,
            seal,
        })
    }

    fn checker(&self) -> Option<&'static str> {
        Some("fsck.exfat")
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
    /// The main boot sector.
    #[derive(IntoBytes)]
    struct BootSector of 512 bytes {
          0 => jump_boot: [u8; 3],
          3 => file_system_name: [u8; 8],
         11 => must_be_zero: [u8; 53],
         64 => partition_offset: U64,
         72 => volume_length: U64,
         80 => fat_offset: U32,
         84 => fat_length: U32,
         88 => cluster_heap_offset: U32,
         92 => cluster_count: U32,
         96 => first_cluster_of_root_directory: U32,
        100 => volume_serial_number: U32,
        104 => file_system_revision: [u8; 2],
        106 => volume_flags: U16,
        108 => bytes_per_sector_shift: u8,
        109 => sectors_per_cluster_shift: u8,
        110 => number_of_fats: u8,
        111 => skip: [u8; 399],
        510 => boot_signature: [u8; 2],
    }
}

on_disk! {
    /// The volume label directory entry.
    struct VolumeLabel of 32 bytes {
         0 => entry_type: u8,
         1 => character_count: u8,
         2 => volume_label: [u8; 22],
        24 => skip: [u8; 8],
    }
}

/// The place of `PartitionOffset` in a boot sector.
const PARTITION_OFFSET: Range<usize> = 64..72;
/// Sectors of a boot region, of which the last holds the sum of the others.
const REGION: usize = 12;
const LABEL_ENTRY: u8 = 0x83;
const ENTRY: u64 = 32;
/// The most of a root directory that is read for a label.
const DIRECTORY: u64 = 16384;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let boot: BootSector = probe.read(0)?;
    let (sector_shift, cluster_shift) =
        (boot.bytes_per_sector_shift, boot.sectors_per_cluster_shift);
    let valid = boot.file_system_name == *b"EXFAT   "
        && boot.jump_boot == [0xeb, 0x76, 0x90]
        && boot.must_be_zero == [0; 53]
        && boot.boot_signature == [0x55, 0xaa]
        && (9..=12).contains(&sector_shift)
        // A cluster is at most 32 MiB.
        && cluster_shift <= 25 - sector_shift;
    if !valid {
        return None;
    }
    let sector = 1u64 << sector_shift;
    let cluster = sector << cluster_shift;
    let heap = u64::from(boot.cluster_heap_offset.get()) * sector;
    let clusters = u64::from(boot.cluster_count.get());
    let (serial, [minor, major]) = (boot.volume_serial_number.get(), boot.file_system_revision);
    // Cluster numbers begin at 2.
    let root = u64::from(boot.first_cluster_of_root_directory.get())
        .checked_sub(2)
        .filter(|&n| n < clusters);
    let mut sign = Sign::new(KIND, 3);
    sign.version = Some(format!("{major}.{minor}"));
    sign.label = root.and_then(|n| label(probe, heap + n * cluster, cluster.min(DIRECTORY)));
    sign.uuid = (serial != 0).then(|| format!("{:04X}-{:04X}", serial >> 16, serial & 0xffff));
    sign.size = boot.volume_length.get().checked_mul(sector);
    sign.sector = Some(sector);
    sign.block = Some(cluster);
    sign.data_at(probe, Some(heap), Some(clusters * cluster), false);
    if boot.partition_offset.get() > 0 {
        // What the maker believed; a volume that was copied elsewhere keeps it.
        sign.details.push(("partition offset", boot.partition_offset.get().to_string()));
    }
    Some(sign)
}

/// Writes the sum of a boot region into its last sector.
fn seal(region: &mut [u8]) {
    let (summed, sums) = region.split_at_mut(region.len() / REGION * (REGION - 1));
    let sum = checksum(summed).to_le_bytes();
    sums.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&sum));
}

/// exFAT's sum of its boot region: `VolumeFlags` and `PercentInUse`, which change in use, are left
/// out.
fn checksum(bytes: &[u8]) -> u32 {
    let counted = bytes.iter().enumerate().filter(|(at, _)| !matches!(at, 106 | 107 | 112));
    counted.fold(0, |sum: u32, (_, &byte)| sum.rotate_right(1).wrapping_add(byte.into()))
}

/// The label in the directory at `at`; entry type 0 ends it.
fn label(probe: &Probe<'_>, at: u64, length: u64) -> Option<String> {
    for n in 0..length / ENTRY {
        let entry: VolumeLabel = probe.read(at + n * ENTRY)?;
        match entry.entry_type {
            0 => return None,
            LABEL_ENTRY => {
                let length = entry.volume_label.len().min(2 * usize::from(entry.character_count));
                return ondisk::text_utf16(&entry.volume_label[..length]);
            }
            _ => {}
        }
    }
    None
}

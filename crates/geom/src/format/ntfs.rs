//! NTFS, the file system of Windows.
//!
//! # On disk
//! A BIOS parameter block in sector 0, with everything that FAT has set to 0. Cluster `n` is at `n`
//! × cluster size from byte 0. The volume's name is an attribute of file record 3 of the master
//! file table.
//!
//! # Limits
//! The name is read if file record 3 follows record 0 directly, as it does on every volume in use,
//! within its first KiB.
//!
//! # Sources
//! Linux `fs/ntfs3/ntfs.h` (`struct NTFS_BOOT`, `MFT_REC`, `ATTRIB`); libblkid `superblocks/ntfs.c`
//! for the refusals.

use super::boot_fields::{Field, HIDDEN, rebase, word};
use super::free_space::{Found, Unsure};
use super::maker::Maker;
use super::{Format, FormatKind, Inside, Moved, Piece, Rebased, Sign};
use crate::base::error::Errno;
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::probe::Probe;
use crate::table::Refusal;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U16, U32, U64};

mod convert;
mod free;

/// The format, for the registry.
pub struct Ntfs;

/// The kind that blkid calls `ntfs`.
pub const KIND: FormatKind = FormatKind::new("ntfs", &Ntfs);

/// The heads and sectors of a track that BIOSes and Windows agree on.
const HEADS: &str = "255";
const TRACK: &str = "63";

static MAKER: Maker = Maker {
    freebsd: Some("fusefs-ntfs"),
    file: &["-F"],
    device: &["-F"],
    // Otherwise it fills the volume with zeros first, and looks for bad sectors.
    always: &["-Q"],
    sectors_before: Some(|sectors| {
        vec![("-p", sectors.to_string()), ("-H", HEADS.to_owned()), ("-S", TRACK.to_owned())]
    }),
    ..Maker::new("mkntfs", "ntfs-3g")
};

impl Format for Ntfs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(Inside::from_zero(block))
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn maker(&self) -> Option<&'static Maker> {
        Some(&MAKER)
    }

    fn enlarge(&self, _sign: &Sign, _piece: Piece, unit: u64) -> Option<String> {
        Some(format!("make it with larger clusters: mkntfs -c {unit}"))
    }

    fn convert(&self, _: &Sign, on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
        convert::convert(on, read)
    }

    fn rebase(&self, moved: Moved, read: &mut Read<'_>) -> Result<Rebased, Errno> {
        rebase(moved, read, |boot| {
            // `sectors_per_volume` leaves the copy out, which is in the last sector.
            let last = u64::from_le_bytes(*boot[40..].first_chunk().unwrap_or(&[0; 8]));
            Field {
                sector: word(boot, 11),
                place: HIDDEN,
                copies: vec![0, last],
                sectors: 1,
                seal: |_| {},
            }
        })
    }

    fn checker(&self) -> Option<&'static str> {
        Some("chkdsk")
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
    /// `struct NTFS_BOOT`, as far as it is read.
    struct Boot of 80 bytes {
         0 => jump_code: [u8; 3],
         3 => system_id: [u8; 8],
        11 => bytes_per_sector: U16,
        13 => sectors_per_clusters: u8,
        /// Reserved sectors, FATs, root entries and sectors in FAT; 0 here.
        14 => unused0: [u8; 7],
        21 => media_type: u8,
        /// FAT's length in FAT; 0 here.
        22 => unused1: [u8; 2],
        24 => skip0: [u8; 8],
        /// FAT's number of sectors; 0 here.
        32 => unused2: [u8; 4],
        36 => skip1: [u8; 4],
        40 => sectors_per_volume: U64,
        48 => mft_clst: U64,
        56 => mft2_clst: U64,
        64 => record_size: i8,
        65 => skip2: [u8; 3],
        68 => index_size: i8,
        69 => skip3: [u8; 3],
        72 => serial_num: U64,
    }
}

on_disk! {
    /// The head of `struct MFT_REC`.
    struct Record of 22 bytes {
         0 => sign: [u8; 4],
         4 => skip: [u8; 16],
        20 => attr_off: U16,
    }
}

on_disk! {
    /// The head of a resident `struct ATTRIB`.
    struct Attribute of 22 bytes {
         0 => kind: U32,
         4 => size: U32,
         8 => non_res: u8,
         9 => skip: [u8; 7],
        16 => data_size: U32,
        20 => data_off: U16,
    }
}

/// The largest cluster Windows makes.
const MAX_CLUSTER: u64 = 2 << 20;
const VOLUME_RECORD: u64 = 3;
const ATTR_NAME: u32 = 0x60;
/// Windows allows 32 characters.
const MAX_NAME: usize = 256;
/// Bytes that are read of the volume's file record; none is smaller.
const RECORD: usize = 1024;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let boot: Boot = probe.read(0)?;
    let sector = u64::from(boot.bytes_per_sector.get());
    // Above 128 it is a negative power of two.
    let per_cluster = match boot.sectors_per_clusters {
        n @ 1..=128 => u64::from(n),
        n @ 244..=255 => 1 << (256 - u16::from(n)),
        _ => return None,
    };
    let cluster = sector * per_cluster;
    let clusters = boot.sectors_per_volume.get() / per_cluster;
    let valid = boot.system_id == *b"NTFS    "
        && sector.is_power_of_two()
        && (256..=4096).contains(&sector)
        && per_cluster.is_power_of_two()
        && cluster <= MAX_CLUSTER
        && (boot.unused0, boot.unused1, boot.unused2) == ([0; 7], [0; 2], [0; 4])
        && boot.mft_clst.get() <= clusters
        && boot.mft2_clst.get() <= clusters;
    if !valid {
        return None;
    }
    let record = match boot.record_size {
        n @ 1..=64 => u64::from(n.unsigned_abs()) * cluster,
        n @ -31..=-9 => 1 << n.unsigned_abs(),
        _ => return None,
    };
    let serial = boot.serial_num.get();
    let mut sign = Sign::new(KIND, 3);
    sign.label = boot.mft_clst.get().checked_mul(cluster).and_then(|mft| name(probe, mft, record));
    sign.uuid = (serial != 0).then(|| format!("{serial:016X}"));
    sign.size = boot.sectors_per_volume.get().checked_mul(sector);
    sign.sector = Some(sector);
    sign.block = Some(cluster);
    sign.details.push(("file record", record.to_string()));
    Some(sign)
}

/// The volume's name: a resident attribute of file record 3.
fn name(probe: &Probe<'_>, mft: u64, record: u64) -> Option<String> {
    let bytes = probe.bytes(mft.checked_add(VOLUME_RECORD.checked_mul(record)?)?, RECORD)?;
    let (head, _) = Record::read_from_prefix(&bytes).ok()?;
    if head.sign != *b"FILE" {
        return None;
    }
    let mut at = usize::from(head.attr_off.get());
    loop {
        let (attribute, _) = Attribute::read_from_prefix(bytes.get(at..)?).ok()?;
        let size = usize::try_from(attribute.size.get()).ok()?;
        if attribute.kind.get() == ATTR_NAME && attribute.non_res == 0 {
            let from = at + usize::from(attribute.data_off.get());
            let length = usize::try_from(attribute.data_size.get()).ok()?.min(MAX_NAME);
            return ondisk::text_utf16(bytes.get(from..from + length)?);
        }
        // Each attribute is larger than its head, so this ends within the record.
        at = at.checked_add(size).filter(|_| size >= size_of::<Attribute>())?;
    }
}

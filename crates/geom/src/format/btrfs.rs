//! btrfs, a copy-on-write file system of Linux.
//!
//! # On disk
//! The first superblock is at 64 KiB. Data are written in sectors (`sectorsize`, 4 KiB or the page
//! of the machine that made it), metadata in nodes; chunks, which hold both, begin at multiples of
//! 64 KiB from the device's byte 0.
//!
//! # Limits
//! To recognise it, the checksum is not computed, and the copies at 64 MiB and 256 GiB are not
//! looked for. On a zoned device the superblock moves and is not found.
//!
//! # Sources
//! btrfs documentation, "On-disk Format", sections "Superblock" and "DEV_ITEM"; Linux
//! `include/uapi/linux/btrfs_tree.h` (`struct btrfs_super_block`).

use super::free_space::{Found, Unsure};
use super::maker::Maker;
use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::base::patch::Read;
use crate::probe::Probe;
use zerocopy::little_endian::{U32, U64};

mod chunks;
mod free;
mod nodes;
mod superblock;

/// The format, for the registry.
pub struct Btrfs;

/// The kind that blkid calls `btrfs`.
pub const KIND: FormatKind = FormatKind::new("btrfs", &Btrfs);

static MAKER: Maker =
    Maker { file: &["-f"], device: &["-f"], ..Maker::new("mkfs.btrfs", "btrfs-progs") };

impl Format for Btrfs {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        Some(Inside::from_zero(block))
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

    fn checker(&self) -> Option<&'static str> {
        Some("btrfs check")
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
    /// `struct btrfs_super_block` and in it `struct btrfs_dev_item`, as far as they are read.
    struct Super of 555 bytes {
          0 => csum: [u8; 32],
         32 => fsid: [u8; 16],
         48 => bytenr: U64,
         56 => flags: U64,
         64 => magic: [u8; 8],
         72 => skip0: [u8; 64],
        136 => num_devices: U64,
        144 => sectorsize: U32,
        148 => nodesize: U32,
        152 => skip1: [u8; 49],
        201 => dev_item_devid: U64,
        209 => dev_item_total_bytes: U64,
        217 => dev_item_bytes_used: U64,
        225 => dev_item_io_align: U32,
        229 => dev_item_io_width: U32,
        233 => dev_item_sector_size: U32,
        237 => skip2: [u8; 62],
        299 => label: [u8; 256],
    }
}

const AT: u64 = 65536;
const MAGIC_AT: u64 = AT + 64;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.reaches(AT).then(|| probe.read(AT)).flatten()?;
    let (sector, node) = (u64::from(sb.sectorsize.get()), u64::from(sb.nodesize.get()));
    let sane = |size: u64| size.is_power_of_two() && (512..=65536).contains(&size);
    // A superblock that says it is elsewhere is a copy, seen through something that begins in the
    // middle.
    if sb.magic != *b"_BHRfS_M" || sb.bytenr.get() != AT || !sane(sector) || !sane(node) {
        return None;
    }
    let mut sign = Sign::new(KIND, MAGIC_AT);
    sign.label = ondisk::text(&sb.label);
    sign.uuid = ondisk::uuid(&sb.fsid);
    sign.size = Some(sb.dev_item_total_bytes.get());
    sign.sector = Some(u64::from(sb.dev_item_sector_size.get())).filter(|&size| sane(size));
    sign.block = Some(sector);
    sign.details.push(("nodesize", node.to_string()));
    if sb.num_devices.get() > 1 {
        sign.details.push(("devices", sb.num_devices.get().to_string()));
        sign.details.push(("device", sb.dev_item_devid.get().to_string()));
    }
    Some(sign)
}

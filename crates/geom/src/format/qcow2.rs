//! qcow2, and its first version qcow: a disk image of QEMU.
//!
//! # On disk
//! Big-endian header at byte 0: `QFI\xfb` and a version. The virtual disk is cut into clusters that
//! lie anywhere in the file.
//!
//! # Sources
//! QEMU `docs/interop/qcow2.rst`, Header; `block/qcow.c` (`QCowHeader`).

use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::big_endian::{U32, U64};

/// The format, for the registry.
pub struct Qcow2;

/// The kind that blkid calls `qcow`.
pub const QCOW: FormatKind = FormatKind::new("qcow", &Qcow2);
/// The kind that blkid calls `qcow2`.
pub const QCOW2: FormatKind = FormatKind::new("qcow2", &Qcow2);

impl Format for Qcow2 {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![QCOW, QCOW2]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

on_disk! {
    /// `QCowHeader`, as far as versions 1 to 3 agree and are read.
    struct Header of 36 bytes {
         0 => magic: [u8; 4],
         4 => version: U32,
         8 => backing_file_offset: U64,
        16 => backing_file_size: U32,
        /// In version 1 a time stamp.
        20 => cluster_bits: U32,
        24 => size: U64,
        /// The first byte is version 1's `cluster_bits`.
        32 => crypt_method: [u8; 4],
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let header: Header = probe.read(0)?;
    let version = header.version.get();
    let (kind, bits) = match version {
        1 => (QCOW, u32::from(header.crypt_method[0])),
        2 | 3 => (QCOW2, header.cluster_bits.get()),
        _ => return None,
    };
    // 2 MiB is the largest cluster.
    if header.magic != *b"QFI\xfb" || !(9..=21).contains(&bits) {
        return None;
    }
    let mut sign = Sign::new(kind, 0);
    sign.version = Some(version.to_string());
    sign.inside = Inside::CONTAINER;
    sign.details.push(("virtual size", header.size.get().to_string()));
    sign.details.push(("cluster size", (1u64 << bits).to_string()));
    Some(sign)
}

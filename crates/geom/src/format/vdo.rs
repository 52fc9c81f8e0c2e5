//! VDO: a deduplicating, compressing volume's storage.
//!
//! # On disk
//! A geometry block at byte 0 begins with `dmvdo001`; everything lies in blocks of 4096 bytes from
//! byte 0.
//!
//! # Sources
//! Linux `drivers/md/dm-vdo/encodings.c` (`struct volume_geometry`), `constants.h`
//! (`VDO_BLOCK_SIZE`).

use super::{Format, FormatKind, Sign};
use crate::base::ondisk;
use crate::probe::Probe;

/// The format, for the registry.
pub struct Vdo;

/// The kind that blkid calls `vdo`.
pub const KIND: FormatKind = FormatKind::new("vdo", &Vdo);

impl Format for Vdo {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

/// Magic, header, release number and nonce come before the UUID.
const UUID_AT: u64 = 40;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    if !probe.has(0, b"dmvdo001") {
        return None;
    }
    let mut sign = Sign::new(KIND, 0);
    sign.uuid = probe.read::<[u8; 16]>(UUID_AT).and_then(|uuid| ondisk::uuid(&uuid));
    sign.block = Some(4096);
    Some(sign)
}

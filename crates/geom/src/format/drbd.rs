//! DRBD with internal metadata: one side of a replicated device.
//!
//! # On disk
//! Big-endian metadata in the last 4 KiB; activity log and bitmap are before it. The content is at
//! byte 0 as it is.
//!
//! # Limits
//! External metadata are on another device, and nothing is recognised here then. At the end of a
//! disk's last partition metadata are the partition's.
//!
//! # Sources
//! DRBD `drbd-headers/drbd_meta_data.h`; drbd-utils `user/shared/drbdmeta.c` (`struct
//! md_on_disk_08`, `struct meta_data_on_disk_9`).

use super::{Format, FormatKind, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::Probe;
use zerocopy::big_endian::{U32, U64};

/// The format, for the registry.
pub struct Drbd;

/// The kind that blkid calls `drbd`.
pub const KIND: FormatKind = FormatKind::new("drbd", &Drbd);

impl Format for Drbd {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn only_carries(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const DRBD_MAGIC: u32 = 0x8374_0267;
const SIZE: u64 = 4096;

on_disk! {
    /// On-disk fields that `struct md_on_disk_08` and `struct meta_data_on_disk_9` have in common.
    /// The identity is the fifth number before version 9, then the sixth.
    struct Metadata of 68 bytes {
         0 => effective_size: U64,
         8 => uuids: [U64; 4],
        40 => device_uuid_08: U64,
        48 => device_uuid_09: U64,
        56 => flags: U32,
        60 => magic: U32,
        64 => md_size_sect: U32,
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let end = probe.length();
    let at = probe.from_end(SIZE)?;
    let md: Metadata = probe.read(at)?;
    // 4: version 8; 5: the same, not shut down cleanly; 6: version 9.
    let (version, uuid) = match md.magic.get().wrapping_sub(DRBD_MAGIC) {
        4 | 5 => ("v08", md.device_uuid_08.get()),
        6 => ("v09", md.device_uuid_09.get()),
        _ => return None,
    };
    let bytes = |sectors: u64| sectors.checked_mul(512);
    let metadata = bytes(u64::from(md.md_size_sect.get())).filter(|&size| size >= SIZE)?;
    let start = end.checked_sub(metadata)?;
    let mut sign = Sign { tail: Some(start..end), ..Sign::new(KIND, at + 60) };
    sign.version = Some(version.to_string());
    sign.uuid = (uuid != 0).then(|| format!("{uuid:x}"));
    // The size both sides agreed on; before they ever met, all that is left of the metadata.
    let agreed = bytes(md.effective_size.get()).filter(|&size| size > 0 && size <= start);
    sign.data_at(probe, Some(0), Some(agreed.unwrap_or(start)), true);
    Some(sign)
}

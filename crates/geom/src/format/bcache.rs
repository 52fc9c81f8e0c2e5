//! bcache: a backing device or a cache device.
//!
//! # On disk
//! A superblock at byte 4096, little-endian; `version` tells a backing device from a cache. Sectors
//! are of 512 bytes.
//!
//! # Topology
//! A backing device shows its content as it is from `data_offset` (8 KiB by default). A cache is
//! cut into buckets from its byte 0; inside a bucket it writes in blocks.
//!
//! While the cache holds newer data, the device's own contents are old: they are not looked at.
//!
//! # Limits
//! The checksum (a CRC-64) is not verified. Where the buckets of very large size keep the high half
//! of their size is not read, their I/O is then not known.
//!
//! # Sources
//! Linux `drivers/md/bcache/bcache_ondisk.h`, `struct cache_sb_disk`;
//! `Documentation/admin-guide/bcache.rst`.

use super::{Format, FormatKind, Inside, Piece, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U64};

/// The format, for the registry.
pub struct Bcache;

/// The kind that blkid calls `bcache`.
pub const KIND: FormatKind = FormatKind::new("bcache", &Bcache);

impl Format for Bcache {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }
}

const AT: u64 = 4096;
const SECTOR: u64 = 512;
const MAGIC: &[u8; 16] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const BDEV_DATA_START_DEFAULT: u64 = 16;
/// `BDEV_STATE` of a device all of whose data are its own, and of one whose cache is gone.
const CLEAN: u64 = 1;
const STALE: u64 = 3;
/// The bucket size has a high half in another place.
const INCOMPAT_LARGE_BUCKET: u64 = 0x1 | 0x2;

on_disk! {
    /// `struct cache_sb_disk`, up to the journal. `nbuckets` is `data_offset` on a backing device.
    struct Super of 196 bytes {
          0 => csum: U64,
          8 => offset: U64,
         16 => version: U64,
         24 => magic: [u8; 16],
         40 => uuid: [u8; 16],
         56 => set_uuid: [u8; 16],
         72 => label: [u8; 32],
        104 => flags: U64,
        112 => seq: U64,
        120 => feature_compat: U64,
        128 => feature_incompat: U64,
        136 => feature_ro_compat: U64,
        144 => pad: [U64; 5],
        184 => nbuckets: U64,
        192 => block_size: U16,
        194 => bucket_size: U16,
    }
}

/// Mode and state of a backing device, which its flags hold.
struct State {
    mode: u64,
    state: u64,
}

impl State {
    fn new(flags: u64) -> State {
        State { mode: flags & 0xf, state: flags >> 61 & 3 }
    }

    /// True if the device itself has everything that was written.
    fn is_current(&self) -> bool {
        self.state <= CLEAN
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        const MODES: [&str; 4] = ["writethrough", "writeback", "writearound", "none"];
        const STATES: [&str; 4] = ["no cache", "clean", "dirty", "inconsistent"];
        let name = |names: [&str; 4], at: u64| {
            let found = usize::try_from(at).ok().and_then(|at| names.get(at).copied());
            found.map(str::to_owned)
        };
        let mode = name(MODES, self.mode).map(|mode| ("cache mode", mode));
        let state = name(STATES, self.state).map(|state| ("state", state));
        mode.into_iter().chain(state).collect()
    }
}

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let sb: Super = probe.read(AT)?;
    if sb.magic != *MAGIC || sb.offset.get().checked_mul(SECTOR) != Some(AT) {
        return None;
    }
    let mut sign = Sign::new(KIND, AT + 24);
    sign.uuid = ondisk::uuid(&sb.uuid);
    sign.label = ondisk::text(&sb.label);
    let block = u64::from(sb.block_size.get()) * SECTOR;
    let bucket = u64::from(sb.bucket_size.get()) * SECTOR;
    let version = sb.version.get();
    match version {
        1 | 4 | 6 => {
            let sectors = if version == 1 { BDEV_DATA_START_DEFAULT } else { sb.nbuckets.get() };
            let state = State::new(sb.flags.get());
            sign.data_at(probe, sectors.checked_mul(SECTOR), None, state.is_current());
            sign.details.push(("role", "backing device".to_string()));
            sign.details.extend(state.details());
            if sign.data.is_some() && !state.is_current() {
                sign.inside = Inside::Unknown(match state.state {
                    STALE => "its cache was lost while it held newer data: its own are not whole",
                    _ => "its cache holds newer data than it has itself",
                });
            }
        }
        0 | 3 | 5 => {
            let large = version == 5 && sb.feature_incompat.get() & INCOMPAT_LARGE_BUCKET != 0;
            if large || bucket == 0 {
                sign.inside = Inside::Unknown("the size of its buckets is not known");
            } else {
                sign.block = Some(bucket);
                sign.piece = (block > 0 && block < bucket)
                    .then_some(Piece { size: block, name: "journal block" });
                sign.size = sb.nbuckets.get().checked_mul(bucket);
            }
            sign.details.push(("role", "cache device".to_string()));
        }
        _ => sign.inside = Inside::Unknown("a version of bcache that is not known"),
    }
    Some(sign)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    #[test]
    fn what_the_cache_holds_is_not_looked_for_on_the_device() {
        let sign = |flags: u64| {
            let mut sb = vec![0; size_of::<Super>()];
            sb[8..16].copy_from_slice(&8_u64.to_le_bytes());
            sb[16] = 1;
            sb[24..40].copy_from_slice(MAGIC);
            sb[104..112].copy_from_slice(&flags.to_le_bytes());
            recognised(&Bcache, disk(1 << 20, &[(AT, &sb)])).unwrap()
        };
        let states = ["no cache", "clean", "dirty", "inconsistent"];
        for (state, name) in (0_u64..).zip(states) {
            let sign = sign(state << 61 | 1);
            let current = state < 2;
            assert_eq!(sign.data.unwrap().plain, current, "{name}");
            assert_eq!(sign.inside == Inside::Understood, current, "{name}");
            let said = [("cache mode", "writeback"), ("state", name)];
            assert!(said.iter().all(|&(key, value)| sign.details.contains(&(key, value.into()))));
        }
    }
}

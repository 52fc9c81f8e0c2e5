//! exFAT volumes for sectors of another size.
//!
//! # On disk
//! Boot regions, twice twelve sectors, are before the FAT; `FatOffset`, `FatLength` and
//! `ClusterHeapOffset` count sectors, files and the FAT count clusters. So clusters stay at their
//! bytes where these are whole in the new sectors, and the boot regions are written anew. For
//! sectors of 4096 bytes they take 96 KiB. A FAT that begins there is copied behind them, where
//! the clusters leave room for it: `FatOffset` may be any sector from the 24th on.
//!
//! Code in the extended boot sectors has the same sectors as before, at the start of each.
//!
//! # Limits
//! Clusters are not moved: where they begin too early or off whole sectors, it is refused.
//!
//! # Sources
//! Microsoft "exFAT file system specification", sections 2, 3.1 to 3.4.

use super::{BootSector, REGION, seal};
use crate::base::patch::Read;
use crate::base::resize::{Origin, Resized, Write};
use crate::base::topology::{is_whole, round_up};
use crate::table::Refusal;
use std::iter;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a signature, which are the last of an extended boot sector.
const SIGNATURE: usize = 4;
/// Extended boot sectors of a region, behind the first.
const EXTENDED: std::ops::RangeInclusive<usize> = 1..=8;
/// Largest number of sectors of a cluster, as a power of two, beside the sector's own.
const LARGEST_CLUSTER: u8 = 25;
/// Bytes of an entry of a FAT. The first two are of no cluster.
const ENTRY: u64 = 4;

/// The writes of both boot regions, and of the FAT where that has to move.
pub(super) fn convert(on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
    let mut bytes = [0; 512];
    read(0, &mut bytes).map_err(unreadable)?;
    let Ok(mut boot) = BootSector::read_from_bytes(&bytes) else { return Ok(Vec::new()) };
    let old = 1_u64 << boot.bytes_per_sector_shift;
    if old == on.to {
        return Ok(Vec::new());
    }
    let shift = u8::try_from(on.to.ilog2()).unwrap_or(0);
    let both = boot.bytes_per_sector_shift + boot.sectors_per_cluster_shift;
    let Some(cluster) =
        both.checked_sub(shift).filter(|&cluster| cluster <= LARGEST_CLUSTER - shift)
    else {
        let found = format!("its clusters of {} bytes are smaller than a sector", 1_u64 << both);
        return Err(Refusal::new(found, anew(on)));
    };
    let fats = Fats::placed(&boot, old, on)?;
    let number = |value: u64| {
        u32::try_from(value).map_err(|_| Refusal::new("its numbers do not fit", anew(on)))
    };
    if let Some(start) = on.start(boot.partition_offset.get(), old) {
        boot.partition_offset = (start / on.to).into();
    }
    boot.volume_length = (boot.volume_length.get().saturating_mul(old) / on.to).into();
    boot.fat_offset = number(fats.start / on.to)?.into();
    boot.fat_length = number(fats.length / on.to)?.into();
    boot.cluster_heap_offset = number(fats.heap / on.to)?.into();
    boot.bytes_per_sector_shift = shift;
    boot.sectors_per_cluster_shift = cluster;
    let region = region(&boot, old, on, read)?;
    let both = [region.as_slice(), &region].concat();
    let mut writes = vec![Write::new(0, both, "exFAT's boot regions")];
    writes.extend(fats.writes());
    Ok(writes)
}

fn unreadable(errno: crate::base::error::Errno) -> Refusal {
    Refusal::new(format!("it cannot be read: {errno}"), "")
}

fn anew(on: Resized) -> String {
    format!("make it anew on sectors of {} bytes: mkfs.exfat", on.to)
}

/// The twelve sectors of a boot region.
fn region(
    boot: &BootSector,
    old: u64,
    on: Resized,
    read: &mut Read<'_>,
) -> Result<Vec<u8>, Refusal> {
    let [from, to] = [old, on.to].map(|size| usize::try_from(size).unwrap_or(512));
    let mut before = vec![0; REGION * from];
    read(0, &mut before).map_err(unreadable)?;
    let mut region = vec![0; REGION * to];
    region[..512].copy_from_slice(boot.as_bytes());
    for n in EXTENDED {
        let (code, signature) = before[n * from..(n + 1) * from].split_at(from - SIGNATURE);
        let kept = code.len().min(to - SIGNATURE);
        if code[kept..].iter().any(|&byte| byte != 0) {
            let found = format!("its boot sector {n} has more code than {} bytes", to - SIGNATURE);
            return Err(Refusal::new(found, anew(on)));
        }
        let sector = &mut region[n * to..(n + 1) * to];
        sector[..kept].copy_from_slice(&code[..kept]);
        sector[to - SIGNATURE..].copy_from_slice(signature);
    }
    // Parameters of the maker: ten of 48 bytes each, in sectors of any size.
    region[9 * to..9 * to + 480].copy_from_slice(&before[9 * from..9 * from + 480]);
    seal(&mut region);
    Ok(region)
}

/// FATs before and after, in bytes of the volume.
struct Fats {
    /// First byte before, and length of each.
    before: (u64, u64),
    /// First byte of the first after.
    start: u64,
    /// Length of each after.
    length: u64,
    copies: u64,
    /// First byte of the clusters.
    heap: u64,
}

impl Fats {
    /// The place of the FATs in the new sectors: as before, or behind the boot regions.
    fn placed(boot: &BootSector, old: u64, on: Resized) -> Result<Fats, Refusal> {
        let bytes = |sectors: u32| u64::from(sectors) * old;
        let (fat, heap) = (bytes(boot.fat_offset.get()), bytes(boot.cluster_heap_offset.get()));
        let (size, copies) = (bytes(boot.fat_length.get()), u64::from(boot.number_of_fats));
        let regions = 2 * REGION as u64 * on.to;
        if !is_whole(heap, on.to) {
            let found = format!("its clusters begin at byte {heap}, off whole sectors");
            return Err(Refusal::new(found, anew(on)));
        }
        let up = |bytes: u64| {
            round_up(bytes, on.to).ok_or_else(|| Refusal::new("its numbers do not fit", anew(on)))
        };
        let start = up(fat.max(regions))?;
        let needed = up((u64::from(boot.cluster_count.get()) + 2) * ENTRY)?;
        let room = heap.saturating_sub(start) / copies.max(1) / on.to * on.to;
        if room < needed || needed > up(size)? {
            let found = format!(
                "its FAT would begin at byte {start} and take {}, and its clusters begin at byte \
                 {heap}",
                needed.saturating_mul(copies.max(1))
            );
            return Err(Refusal::new(found, anew(on)));
        }
        Ok(Fats { before: (fat, size), start, length: up(size)?.min(room), copies, heap })
    }

    /// Copies of those that begin elsewhere than before.
    fn writes(&self) -> Vec<Write> {
        let place = |n: u64| {
            let (fat, size) = self.before;
            let from = fat.saturating_add(n.saturating_mul(size));
            (from, self.start.saturating_add(n.saturating_mul(self.length)))
        };
        let moved = (0..self.copies).map(place).filter(|(from, to)| from != to);
        let copy = |(from, at): (u64, u64)| {
            let long = self.before.1.min(self.length);
            let range = from..from.saturating_add(long);
            let origin = Origin::Copied(iter::once(range).collect(), self.length);
            Write { at, origin, what: "exFAT's FAT" }
        };
        moved.map(copy).collect()
    }
}

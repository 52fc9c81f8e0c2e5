//! exFAT volumes for sectors of another size.
//!
//! # On disk
//! Boot regions, twice twelve sectors, are before the FAT; `FatOffset`, `FatLength` and
//! `ClusterHeapOffset` count sectors, files and the FAT count clusters. So FAT and clusters stay at
//! their bytes where these are whole in the new sectors, and the boot regions are written anew.
//!
//! # Sources
//! Microsoft "exFAT file system specification", sections 2, 3.1 to 3.4.

use super::{BootSector, REGION, seal};
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::base::topology::is_whole;
use crate::table::Refusal;
use zerocopy::{FromBytes, IntoBytes};

/// Signature of an extended boot sector, in its last four bytes.
const EXTENDED: [u8; 4] = [0, 0, 0x55, 0xaa];
/// Extended boot sectors of a region, behind the first.
const EXTENDED_SECTORS: std::ops::RangeInclusive<usize> = 1..=8;
/// Largest number of sectors of a cluster, as a power of two, beside the sector's own.
const LARGEST_CLUSTER: u8 = 25;

/// The writes of both boot regions.
pub(super) fn convert(on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
    let unreadable = |errno| Refusal::new(format!("it cannot be read: {errno}"), "");
    let mut bytes = [0; 512];
    read(0, &mut bytes).map_err(unreadable)?;
    let Ok(mut boot) = BootSector::read_from_bytes(&bytes) else { return Ok(Vec::new()) };
    let old = 1_u64 << boot.bytes_per_sector_shift;
    if old == on.to {
        return Ok(Vec::new());
    }
    let anew = || format!("make it anew on sectors of {} bytes: mkfs.exfat", on.to);
    let shift = u8::try_from(on.to.ilog2()).unwrap_or(0);
    let both = boot.bytes_per_sector_shift + boot.sectors_per_cluster_shift;
    let Some(cluster) =
        both.checked_sub(shift).filter(|&cluster| cluster <= LARGEST_CLUSTER - shift)
    else {
        let found = format!("its clusters of {} bytes are smaller than a sector", 1_u64 << both);
        return Err(Refusal::new(found, anew()));
    };
    let bytes = |sectors: u32| u64::from(sectors) * old;
    let (fat, heap) = (bytes(boot.fat_offset.get()), bytes(boot.cluster_heap_offset.get()));
    let regions = 2 * REGION as u64 * on.to;
    if fat < regions || !is_whole(fat, on.to) || !is_whole(heap, on.to) {
        let found = format!("its FAT or its clusters begin off {regions} bytes or whole sectors");
        return Err(Refusal::new(found, anew()));
    }
    let fat_length = bytes(boot.fat_length.get()).div_ceil(on.to);
    let copies = u64::from(boot.number_of_fats);
    if copies > 1 && !is_whole(bytes(boot.fat_length.get()), on.to)
        || fat.saturating_add(fat_length * on.to * copies) > heap
    {
        return Err(Refusal::new("its FATs are not in whole sectors", anew()));
    }
    let number = |value: u64| {
        u32::try_from(value).map_err(|_| Refusal::new("its numbers do not fit", anew()))
    };
    if let Some(start) = on.start(boot.partition_offset.get(), old) {
        boot.partition_offset = (start / on.to).into();
    }
    boot.volume_length = (boot.volume_length.get().saturating_mul(old) / on.to).into();
    boot.fat_offset = number(fat / on.to)?.into();
    boot.fat_length = number(fat_length)?.into();
    boot.cluster_heap_offset = number(heap / on.to)?.into();
    boot.bytes_per_sector_shift = shift;
    boot.sectors_per_cluster_shift = cluster;
    let sector = usize::try_from(on.to).unwrap_or(512);
    let mut region = vec![0; REGION * sector];
    region[..512].copy_from_slice(boot.as_bytes());
    for n in EXTENDED_SECTORS {
        region[(n + 1) * sector - EXTENDED.len()..(n + 1) * sector].copy_from_slice(&EXTENDED);
    }
    // Parameters of the maker: ten of 48 bytes each, in sectors of any size.
    let mut parameters = [0; 480];
    read(9 * old, &mut parameters).map_err(unreadable)?;
    region[9 * sector..9 * sector + parameters.len()].copy_from_slice(&parameters);
    seal(&mut region);
    let both = [region.as_slice(), &region].concat();
    Ok(vec![Write::new(0, both, "exFAT's boot regions")])
}

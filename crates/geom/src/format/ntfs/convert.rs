//! NTFS volumes for smaller sectors.
//!
//! # On disk
//! Sectors are counted in the boot sector alone, of which a copy is behind the last of them; all
//! else counts clusters, or file records, which no sector may be larger than.
//!
//! # Sources
//! Linux `fs/ntfs3/super.c` (`ntfs_init_from_boot`); ntfs-3g `bootsect.c`.

use super::Boot;
use crate::base::patch::Read;
use crate::base::resize::{Resized, Write};
use crate::table::Refusal;
use zerocopy::FromBytes;

/// The writes of the boot sector and of its copy.
pub(super) fn convert(on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
    let unreadable = |errno| Refusal::new(format!("it cannot be read: {errno}"), "");
    let mut bytes = vec![0; 512];
    read(0, &mut bytes).map_err(unreadable)?;
    let Ok((boot, _)) = Boot::read_from_prefix(&bytes) else { return Ok(Vec::new()) };
    let old = u64::from(boot.bytes_per_sector.get());
    if old == on.to {
        return Ok(Vec::new());
    }
    let anew = || format!("make it anew: mkntfs -s {}", on.to);
    if on.to > old {
        let found = format!("its file records were made for sectors of {old} bytes");
        return Err(Refusal::new(found, anew()));
    }
    let ratio = old / on.to;
    // Clusters beyond 128 sectors are written as a power of two, negative.
    let clusters = u64::from(boot.sectors_per_clusters).checked_mul(ratio).filter(|&n| n <= 128);
    let sectors = boot.sectors_per_volume.get().checked_mul(ratio);
    let Some((clusters, sectors)) = clusters.zip(sectors) else {
        return Err(Refusal::new("its clusters are too large", anew()));
    };
    let copy = sectors
        .checked_mul(on.to)
        .filter(|copy| *copy > 0 && copy.checked_add(old).is_some_and(|end| end <= on.length));
    let Some(copy) = copy else {
        return Err(Refusal::new("it is longer than its partition", "chkdsk"));
    };
    let mut other = vec![0; 512];
    read(copy, &mut other).map_err(unreadable)?;
    if other[..84] != bytes[..84] {
        return Err(Refusal::new(
            "the copy of its boot sector is not where it should be",
            "chkdsk",
        ));
    }
    bytes[11..13].copy_from_slice(&u16::try_from(on.to).unwrap_or(512).to_le_bytes());
    bytes[13] = u8::try_from(clusters).unwrap_or(1);
    bytes[40..48].copy_from_slice(&sectors.to_le_bytes());
    let hidden = u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]);
    if let Some(start) = on.start(hidden.into(), on.from) {
        let before = u32::try_from(start / on.to).unwrap_or(0);
        bytes[28..32].copy_from_slice(&before.to_le_bytes());
    }
    let name = "NTFS boot sector";
    Ok(vec![Write::new(0, bytes.clone(), name), Write::new(copy, bytes, name)])
}

//! FATs for sectors of another size.
//!
//! # On disk
//! Every length of the boot sector counts sectors. Where all of them are whole in the new ones, and
//! a cluster is no smaller than a sector, FATs and clusters stay at their bytes, and the reserved
//! sectors alone are written anew: FAT32's FSInfo is in the second of them, its copies where
//! `BPB_BkBootSec` says. Otherwise the files are copied into a new layout.
//!
//! # Sources
//! Microsoft "FAT: General Overview of On-Disk Format" 1.03, "Boot Sector and BPB", "FAT32 FSInfo
//! Sector Structure and Backup Boot Sector".

use super::layout::{Layout, Width};
use super::{BootSector, remade};
use crate::base::patch::Read;
use crate::base::resize::{Overlay, Resized, Write};
use crate::base::topology::{is_whole, round_down};
use crate::table::Refusal;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of the boot sector and of FSInfo, in sectors of any size.
pub(super) const HEAD: usize = 512;
/// Sector of the copy of FAT32's boot sector, which Microsoft recommends.
const BACKUP: u64 = 6;
/// Largest number of bytes that are read of the reserved sectors.
const RESERVED: u64 = 64 << 10;

/// The writes after which a FAT is right on the new sectors.
pub(super) fn convert(on: Resized, read: &mut Read<'_>) -> Result<Vec<Write>, Refusal> {
    let mut bytes = [0; HEAD];
    read(0, &mut bytes).map_err(unreadable)?;
    let contradicts = |found: String| {
        Refusal::new(format!("its boot sector contradicts itself{found}"), "fsck.fat")
    };
    let boot = BootSector::read_from_bytes(&bytes).map_err(|_| contradicts(String::new()))?;
    let old = Layout::whole(&boot).map_err(|flaw| contradicts(format!(": {flaw}")))?;
    if old.sector == on.to {
        return Ok(Vec::new());
    }
    if old.total > on.length {
        return Err(Refusal::new("it is longer than its partition", "fsck.fat"));
    }
    if !is_whole(old.root_entries * super::ENTRY, old.sector) {
        return Err(Refusal::new("its root directory is not in whole sectors", "copy its files"));
    }
    let new = Layout { sector: on.to, total: round_down(old.total, on.to), ..old };
    let lengths = [old.reserved, old.fat, old.root, old.cluster];
    let stays = lengths.iter().all(|&bytes| is_whole(bytes, on.to))
        && (new.total - new.data()) / new.cluster == old.clusters
        && old.cluster / on.to <= 128;
    if !stays {
        return remade::convert(&boot, &old, on, read);
    }
    let info = info(&boot, &old, read)?;
    let writes = reserved(boot.clone(), &old, &new, on, info)?;
    require_free(&boot, &old, &writes, read)?;
    Ok(writes)
}

/// Sectors before the FATs whose contents are known: the boot sector, FSInfo, the sector of further
/// boot code, and the copies of these.
fn known(boot: &BootSector, old: &Layout) -> Vec<u64> {
    let mut known = vec![0];
    if old.width == Width::ThirtyTwo {
        let (info, copy) = (u64::from(boot.fs_info.get()), u64::from(boot.bk_boot_sec.get()));
        known.push(info);
        known.extend((copy > 0).then_some([copy, copy + 1, copy + 2]).into_iter().flatten());
    }
    known.iter().map(|n| n * old.sector).filter(|&at| at < old.reserved).collect()
}

/// Refuses to write over what is before the FATs and is not known: code of boot loaders.
pub(super) fn require_free(
    boot: &BootSector,
    old: &Layout,
    writes: &[Write],
    read: &mut Read<'_>,
) -> Result<(), Refusal> {
    let known = known(boot, old);
    let end = old.reserved.min(RESERVED);
    for at in (0..end).step_by(HEAD) {
        let is_written = writes.iter().any(|write| write.at <= at && at < write.end());
        if !is_written || known.contains(&round_down(at, old.sector)) {
            continue;
        }
        let mut part = [0; HEAD];
        read(at, &mut part).map_err(unreadable)?;
        if part.iter().any(|&byte| byte != 0) {
            let found = format!("before its FATs, at byte {at}, there is code that would be lost");
            return Err(Refusal::new(found, "clear it, or copy its files into a FAT made anew"));
        }
    }
    Ok(())
}

/// FSInfo of a FAT32, or zeros.
pub(super) fn info(
    boot: &BootSector,
    old: &Layout,
    read: &mut Read<'_>,
) -> Result<Vec<u8>, Refusal> {
    let mut info = vec![0; HEAD];
    let at = u64::from(boot.fs_info.get()) * old.sector;
    if old.width == Width::ThirtyTwo && at > 0 && at < old.reserved {
        read(at, &mut info).map_err(unreadable)?;
    }
    Ok(info)
}

/// The reserved sectors for the layout `new`, over those of `old`.
pub(super) fn reserved(
    mut boot: BootSector,
    old: &Layout,
    new: &Layout,
    on: Resized,
    info: Vec<u8>,
) -> Result<Vec<Write>, Refusal> {
    new.write(&mut boot, on)?;
    let mut all = Overlay::default();
    // What a reader of other sectors would not look for any more.
    for at in known(&boot, old) {
        all.zero(at..at.saturating_add(HEAD as u64).min(new.reserved));
    }
    let sectors = new.reserved / new.sector;
    let mut copies = vec![0];
    if new.width == Width::ThirtyTwo {
        let has_copy = u64::from(boot.bk_boot_sec.get()) * old.sector < old.reserved;
        let copy = [BACKUP, 2].into_iter().find(|copy| copy + 2 <= sectors);
        let copy = copy.filter(|_| has_copy && boot.bk_boot_sec.get() != 0);
        let has_info = info.starts_with(b"RRaA") && sectors > 1;
        boot.fs_info = u16::from(has_info).into();
        boot.bk_boot_sec = u16::try_from(copy.unwrap_or(0)).unwrap_or(0).into();
        copies.extend(copy);
        if has_info {
            copies.iter().for_each(|&copy| all.put((copy + 1) * new.sector, &info));
        }
    }
    copies.iter().for_each(|&copy| all.put(copy * new.sector, boot.as_bytes()));
    Ok(all.writes("FAT's reserved sectors"))
}

/// The refusal of a volume that cannot be read.
pub(super) fn unreadable(errno: crate::base::error::Errno) -> Refusal {
    Refusal::new(format!("it cannot be read: {errno}"), "")
}

//! The width of a FAT beside the type that an MBR gives its partition: Windows and cameras go by
//! the type.
//!
//! # Sources
//! Microsoft, FAT specification 1.03 and "Partition types": 01 FAT12; 04, 06, 0E FAT16 (below 32
//! MiB, any, by LBA); 0B, 0C FAT32 (any, by LBA).

use crate::placed::{Placed, extended};
use crate::words::escape::shell;
use crate::write_target::WriteTarget;
use trueline_geom::graph::Provider;
use trueline_geom::mapping::slices::PartitionType;

/// Sectors from which a FAT16 has type 06 and no longer 04.
const LARGE: u64 = 65536;

/// The bits of a FAT's entries that a type stands for; `None` if it is no FAT's.
fn bits_of(kind: u8) -> Option<u64> {
    match kind {
        0x01 => Some(12),
        0x04 | 0x06 | 0x0e => Some(16),
        0x0b | 0x0c => Some(32),
        _ => None,
    }
}

/// The bits that the type of a partition says; `None` for one that is no FAT's, or in no MBR.
pub(super) fn said_by(p: &Provider) -> Option<u64> {
    match p.kind {
        Some(PartitionType::Mbr(kind)) => bits_of(kind),
        _ => None,
    }
}

/// Name of the type for a FAT of `bits`, by LBA if the partition's type was.
fn name_of(bits: u64, by_lba: bool, sectors: u64) -> Option<&'static str> {
    match bits {
        12 => Some("fat12"),
        16 if by_lba => Some("fat16lba"),
        16 if sectors < LARGE => Some("fat16-small"),
        16 => Some("fat16"),
        32 if by_lba => Some("fat32lba"),
        32 => Some("fat32"),
        _ => None,
    }
}

/// The warning that a FAT of `bits` is made in a partition whose type stands for another width,
/// with the command that mends the type; `options` are those that describe the disk.
pub(super) fn warning(target: &WriteTarget, bits: u64, options: &[String]) -> Option<String> {
    let p = &target.graph.providers[target.id];
    let Some(PartitionType::Mbr(kind)) = p.kind else { return None };
    let says = said_by(p).filter(|&says| says != bits)?;
    let name =
        name_of(bits, matches!(kind, 0x0c | 0x0e), p.topology.length / p.topology.sector.max(1))?;
    let (on, index) = match Placed::find(&target.graph, target.id) {
        Ok(placed) => (placed.on, placed.entry.partition.index),
        // A logical partition: its number ends its name, and its table is that of the extended one.
        Err(_) => (extended(&target.graph, target.id)?, p.name.rsplit('s').next()?.parse().ok()?),
    };
    let (disks, on) = (target.typed.known_disks()?, &target.graph.providers[on].name);
    let table = if on.is_empty() { disks } else { format!("{disks}#{on}") };
    let options: String = options.iter().map(|word| format!(" {}", shell(word))).collect();
    let mend = format!("trueline part modify -i {index} -t {name}{options} {}", shell(&table));
    Some(format!(
        "{}: the partition's type is {kind:02x}, for FAT{says}, and this is a FAT{bits}: Windows and cameras go by the type: {mend}",
        target.typed
    ))
}

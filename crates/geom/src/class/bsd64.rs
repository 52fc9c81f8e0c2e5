//! `bsd64`: DragonFly's 64-bit disklabel.
//!
//! # On disk
//! At byte 0 of the slice, behind 512 bytes for a boot sector: magic, CRC-32 from the magic through
//! the last partition with its own field zero, 16 partitions of 64 bytes. All offsets are bytes
//! from the start of the slice.
//!
//! # Topology
//! Slices.
//!
//! # Limits
//! A label with a wrong CRC is not read: neither DragonFly nor FreeBSD does.
//!
//! # Sources
//! DragonFly `sys/sys/disklabel64.h` (names); FreeBSD `sys/geom/part/g_part_bsd64.c`.

use super::{Class, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{Guid, on_disk};
use crate::mapping::partition::Partition;
use crate::mapping::slices::{
    Dialect, PartitionType, Slice, Slices, bounded, out_of_range, overlaps,
};
use crate::probe::Probe;
use std::sync::Arc;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

/// The class `bsd64`, for DragonFly's labels.
pub struct Bsd64;

on_disk! {
    /// On-disk label, `struct disklabel64`, without its partitions.
    struct Disklabel64 of 712 bytes {
          0 => d_reserved0: [u8; 512],
        512 => d_magic: U32,
        516 => d_crc: U32,
        520 => d_align: U32,
        524 => d_npartitions: U32,
        528 => d_stor_uuid: Guid,
        544 => d_total_size: U64,
        552 => d_bbase: U64,
        560 => d_pbase: U64,
        568 => d_pstop: U64,
        576 => d_abase: U64,
        584 => d_packname: [u8; 64],
        648 => d_reserved: [u8; 64],
    }
}

on_disk! {
    /// On-disk partition, `struct partition64`.
    struct Partition64 of 64 bytes {
         0 => p_boffset: U64,
         8 => p_bsize: U64,
        16 => p_fstype: u8,
        17 => p_unused: [u8; 15],
        32 => p_type_uuid: Guid,
        48 => p_stor_uuid: Guid,
    }
}

const MAGIC: u32 = 0xc446_4c59;
const MAGIC_AT: usize = 512;
const HEAD: usize = size_of::<Disklabel64>();
/// Largest number of partitions, `MAXPARTITIONS64`.
const MOST: usize = 16;

impl Class for Bsd64 {
    fn name(&self) -> &'static str {
        "bsd64"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let nested = matches!(probe.kind(), Some(PartitionType::Bsd(..)));
        let Some(label) =
            probe.read::<Disklabel64>(0).filter(|d| !nested && d.d_magic.get() == MAGIC)
        else {
            return Taste::No;
        };
        let refuse = |what: String| {
            let finding = Finding::new(
                &finding::LABEL,
                Severity::Error,
                MAGIC_AT as u64,
                format!("DragonFly disklabel {what}"),
            );
            Taste::Refused(vec![finding.fix("write it anew from a saved copy: disklabel64 -R")])
        };
        let count = usize::try_from(label.d_npartitions.get()).unwrap_or(usize::MAX);
        if count > MOST {
            return refuse(format!("has {count} partitions, more than {MOST}"));
        }
        let Some(raw) = probe.bytes(0, HEAD + count * size_of::<Partition64>()) else {
            return Taste::No;
        };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&raw[MAGIC_AT..MAGIC_AT + 4]);
        crc.update(&[0; 4]);
        crc.update(&raw[MAGIC_AT + 8..]);
        let (stored, computed) = (label.d_crc.get(), crc.finalize());
        if stored != computed {
            return refuse(format!("CRC is {stored:08x}, computed {computed:08x}"));
        }
        slices(probe, &label, &raw[HEAD..])
    }
}

fn slices(probe: &Probe<'_>, label: &Disklabel64, table: &[u8]) -> Taste {
    let (sector, length) = (probe.sector(), probe.length());
    let (mut entries, mut findings, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
    for ((index, letter), raw) in
        (1..).zip('a'..='p').zip(table.chunks_exact(size_of::<Partition64>()))
    {
        let Ok(p) = Partition64::read_from_bytes(raw) else { continue };
        let (start, size) = (p.p_boffset.get(), p.p_bsize.get());
        if size == 0 {
            continue;
        }
        let suffix = letter.to_string();
        let Some(end) = start.checked_add(size).filter(|&end| end <= length) else {
            findings.push(out_of_range(&suffix, start, length, sector, "left out"));
            continue;
        };
        ranges.push((suffix.clone(), start..end));
        let guid = (!p.p_stor_uuid.is_nil()).then_some(p.p_stor_uuid);
        entries.push(Slice {
            suffix,
            partition: Partition {
                index,
                start,
                length: size,
                kind: PartitionType::Bsd(Dialect::DragonFly, p.p_fstype),
                label: None,
                guid,
            },
        });
    }
    findings.extend(overlaps(&ranges, sector));
    let end = label.d_pstop.get().min(length);
    let usable = label.d_pbase.get().min(end)..end;
    Taste::Geom(Arc::new(Slices::new(usable, entries)), bounded(findings))
}

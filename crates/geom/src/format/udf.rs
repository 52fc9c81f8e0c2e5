//! UDF, alone or beside ISO 9660.
//!
//! # On disk
//! The volume recognition sequence begins at byte 32768 and holds `NSR02` or `NSR03`. The anchor is
//! in block 256 and leads to a sequence of descriptors; of these the partition descriptor says
//! where the blocks are counted from. The size of a block is nowhere said before the anchor, so
//! each is tried.
//!
//! # Limits
//! The anchors at the end, of media that end early, are not looked for. Of a sequence 32
//! descriptors are read, and the first of each kind counts. A virtual partition or one with a
//! sparing table moves blocks within the partition.
//!
//! # Sources
//! ECMA-167, 2/9 and 3/10; OSTA UDF 2.60, 2.2; libblkid `superblocks/udf.c` for what serves as UUID
//! and version.

use super::{Format, FormatKind, Inside, Sign, iso9660};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::{U16, U32};

/// The format, for the registry.
pub struct Udf;

/// The kind that blkid calls `udf`.
pub const KIND: FormatKind = FormatKind::new("udf", &Udf);

impl Format for Udf {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    /// A bridge disc is ISO 9660 as well.
    fn includes(&self, other: FormatKind) -> bool {
        other == iso9660::KIND
    }
}

on_disk! {
    /// A descriptor's tag (`tag`, ECMA-167 3/7.2).
    struct Tag of 16 bytes {
         0 => tag_identifier: U16,
         2 => descriptor_version: U16,
         4 => tag_checksum: u8,
         5 => skip: [u8; 7],
        12 => tag_location: U32,
    }
}

on_disk! {
    /// ECMA-167 3/7.1, `extent_ad`: bytes, and the block it begins in.
    #[derive(Clone, Copy)]
    struct Extent of 8 bytes {
        0 => length: U32,
        4 => location: U32,
    }
}

on_disk! {
    /// 3/10.1, the primary volume descriptor.
    struct Primary of 200 bytes {
         0 => skip: [u8; 72],
        72 => volume_set_identifier: [u8; 128],
    }
}

on_disk! {
    /// 3/10.5, the partition descriptor.
    struct Partition of 196 bytes {
          0 => skip: [u8; 184],
        184 => access_type: U32,
        188 => partition_starting_location: U32,
        192 => partition_length: U32,
    }
}

on_disk! {
    /// 3/10.6, the logical volume descriptor.
    struct Logical of 440 bytes {
          0 => skip0: [u8; 84],
         84 => logical_volume_identifier: [u8; 128],
        212 => logical_block_size: U32,
        216 => skip1: [u8; 24],
        /// The first word of the domain identifier's suffix.
        240 => udf_revision: U16,
        242 => skip2: [u8; 190],
        432 => integrity_sequence_extent: Extent,
    }
}

const RECOGNITION: u64 = 32768;
const DESCRIPTORS: u64 = 32;
const ANCHOR_BLOCK: u32 = 256;
const BLOCKS: [u64; 4] = [512, 1024, 2048, 4096];
/// Values of `TagIdentifier` (ECMA-167 3/7.2.1).
const TAG_PRIMARY: u16 = 1;
const TAG_ANCHOR: u16 = 2;
const TAG_PARTITION: u16 = 5;
const TAG_LOGICAL: u16 = 6;
const TAG_TERMINATING: u16 = 8;
const TAG_INTEGRITY: u16 = 9;
/// The value of `AccessType` for read-only media (ECMA-167 3/10.5.7).
const ACCESS_READ_ONLY: u32 = 1;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let magic = probe.reaches(RECOGNITION).then(|| recognition(probe)).flatten()?;
    let (block, anchor) = BLOCKS.into_iter().find_map(|block| {
        let at = u64::from(ANCHOR_BLOCK) * block;
        let found = tag(probe, block, ANCHOR_BLOCK)? == TAG_ANCHOR;
        probe.read::<Extent>(at + 16).filter(|_| found).map(|extent| (block, extent))
    })?;
    let mut sign = Sign::new(KIND, magic);
    sign.block = Some(block);
    sign.inside = Inside::Unknown("no partition descriptor was found");
    let mut revision = 0;
    for n in 0..DESCRIPTORS.min(u64::from(anchor.length.get()) / block) {
        let Some(number) = u32::try_from(n).ok().and_then(|n| anchor.location.get().checked_add(n))
        else {
            break;
        };
        let at = u64::from(number) * block;
        match tag(probe, block, number) {
            Some(TAG_PRIMARY) if sign.uuid.is_none() => {
                sign.uuid = probe
                    .read::<Primary>(at)
                    .and_then(|primary| set_uuid(&primary.volume_set_identifier));
            }
            Some(TAG_PARTITION) if sign.data.is_none() => {
                let partition: Partition = probe.read(at)?;
                let (start, blocks) =
                    (partition.partition_starting_location.get(), partition.partition_length.get());
                let (offset, length) = (u64::from(start) * block, u64::from(blocks) * block);
                let read_only = partition.access_type.get() == ACCESS_READ_ONLY;
                sign.inside = if read_only { Inside::ReadOnly } else { Inside::Understood };
                sign.data_at(probe, Some(offset), Some(length), false);
                sign.size = Some(offset + length);
            }
            Some(TAG_LOGICAL) if revision == 0 => {
                let logical: Logical = probe.read(at)?;
                sign.label = dstring(&logical.logical_volume_identifier)
                    .and_then(|units| ondisk::text_units(units.into_iter()));
                let extent = logical.integrity_sequence_extent;
                revision = integrity(probe, block, extent).unwrap_or(logical.udf_revision.get());
            }
            None | Some(TAG_TERMINATING) => break,
            _ => {}
        }
    }
    sign.version = (revision != 0).then(|| format!("{}.{:02}", revision >> 8, revision & 0xff));
    Some(sign)
}

/// Where the volume recognition sequence names ECMA-167: descriptors of 2 KiB, or of a block if
/// that is larger.
fn recognition(probe: &Probe<'_>) -> Option<u64> {
    [2048, 4096].into_iter().find_map(|step| {
        let places = (0..DESCRIPTORS).map(|n| RECOGNITION + n * step + 1);
        let named = places.map_while(|at| Some((at, probe.bytes(at, 5)?)));
        let mut sequence = named.take_while(|(_, id)| {
            matches!(
                id.as_slice(),
                b"BEA01" | b"BOOT2" | b"CD001" | b"CDW02" | b"TEA01" | b"NSR02" | b"NSR03"
            )
        });
        sequence.find(|(_, id)| id.starts_with(b"NSR")).map(|(at, _)| at)
    })
}

/// The identifier of the descriptor in block `number`; `None` if the checksum of its tag is wrong.
fn tag(probe: &Probe<'_>, block: u64, number: u32) -> Option<u16> {
    let at = u64::from(number) * block;
    let tag: Tag = probe.read(at)?;
    let sum = probe
        .bytes(at, 16)?
        .iter()
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte))
        .wrapping_sub(tag.tag_checksum);
    (tag.tag_location.get() == number && sum == tag.tag_checksum).then(|| tag.tag_identifier.get())
}

/// The least revision that can read it, from the first integrity descriptor's implementation use.
fn integrity(probe: &Probe<'_>, block: u64, extent: Extent) -> Option<u16> {
    let number = extent.location.get();
    let at = u64::from(number) * block;
    if extent.length.get() == 0 || tag(probe, block, number)? != TAG_INTEGRITY {
        return None;
    }
    // 3/10.10: two tables of a word for each partition come first; UDF 2.2.6.4: then an identifier
    // and two counts.
    let partitions = u64::from(probe.read::<U32>(at + 72)?.get());
    probe.read::<U16>(at + 80 + 8 * partitions + 40).map(U16::get).filter(|&revision| revision != 0)
}

/// UDF 2.1.3: in the first byte the bits of a character, in the last how many bytes are used.
fn dstring(field: &[u8; 128]) -> Option<Vec<u16>> {
    let [bits, rest @ .., used] = field;
    let used = rest.get(..usize::from(*used).checked_sub(1)?)?;
    match bits {
        8 => Some(used.iter().map(|&byte| u16::from(byte)).collect()),
        16 => {
            Some(used.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect())
        }
        _ => None,
    }
}

/// blkid's UUID: the set's first 16 bytes as UTF-8 if they are hexadecimal digits; what is not,
/// from byte 8 or from byte 0, is printed as the hexadecimal digits of its bytes.
fn set_uuid(field: &[u8; 128]) -> Option<String> {
    let mut bytes = String::from_utf16_lossy(&dstring(field)?).into_bytes();
    if bytes.len() < 8 {
        return None;
    }
    bytes.resize(bytes.len().max(16), 0);
    let digits = bytes.iter().take(16).take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (plain, coded) = match digits {
        16 => (16, 16),
        8..16 => (8, 12),
        _ => (0, 8),
    };
    let plain_text = String::from_utf8_lossy(&bytes[..plain]).to_lowercase();
    Some(
        plain_text
            + &bytes[plain..coded].iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
    )
}

//! Checksums made right again, so that a mutant is not refused before its numbers are looked at.

use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::format::lvm2::label;

/// Identity of a Btrfs that is made by hand: its nodes have no magic.
pub const FSID: [u8; 16] = *b"trueline's btrfs";
/// The largest table that is summed again.
const TABLE: u64 = 1 << 20;

/// Gives every GPT header, disklabel, gmirror label, md superblock, firmware's metadata, label and
/// text of LVM and block of a thin pool's metadata on the disk the checksum it should have.
pub fn repair(disk: &mut Sparse, sector: u64) {
    let first = |at: u64| at.checked_next_multiple_of(512).unwrap_or(u64::MAX);
    let sectors: Vec<u64> = disk
        .runs()
        .flat_map(|(at, bytes)| (first(at)..at + bytes.len() as u64).step_by(512))
        .collect();
    for at in sectors {
        let Some(head) = read(disk, at, 512) else { continue };
        if head.starts_with(b"EFI PART") {
            gpt(disk, sector, at, head);
        } else if number(&head, 0, 4) == 0x8256_4557 && number(&head, 132, 4) == 0x8256_4557 {
            disklabel(disk, at);
        } else if head.starts_with(b"GEOM::MIRROR") {
            disk.put(at + 119, &*md5::compute(&head[..119]));
        } else if number(&head, 0, 4) == 0xa92b_4efc {
            md(disk, at);
        } else if head.starts_with(b"Intel Raid ISM Cfg Sig. ") {
            firmware(disk, at, &head);
        } else if head.starts_with(b"LABELONE") {
            disk.put(at + 16, &label::crc(&head[20..]).to_le_bytes());
        } else if head[4..].starts_with(b" LVM2 x[5A%r0N*>") {
            lvm(disk, at, head);
        } else if head[32..].starts_with(&FSID) || head[64..].starts_with(b"_BHRfS_M") {
            btrfs(disk, at);
        } else if number(&head, 32, 8) == 27_022_010 {
            block(disk, at, 160_774);
        } else if is_node(&head) {
            block(disk, at, 121_107);
        }
    }
}

/// The checksum of a group's text at 56 of the header of its area, then the header's own at 0.
/// Nothing else is put: what is zero on a disk is not part of an input.
fn lvm(disk: &mut Sparse, at: u64, mut header: Vec<u8>) {
    let start = at.checked_add(number(&header, 40, 8));
    let length = Some(number(&header, 48, 8)).filter(|length| (1..=TABLE).contains(length));
    let text = start.zip(length).and_then(|(start, length)| read(disk, start, length));
    if let Some(text) = text {
        header[56..60].copy_from_slice(&label::crc(&text).to_le_bytes());
        disk.put(at + 56, &header[56..60]);
    }
    disk.put(at, &label::crc(&header[4..]).to_le_bytes());
}

/// True for what may be a node of a B-tree of dm's: it has no magic.
fn is_node(head: &[u8]) -> bool {
    let flags = number(head, 4, 4);
    let (most, size) = (number(head, 20, 4), number(head, 24, 4));
    matches!(flags, 1 | 2) && (1..=252).contains(&most) && (1..=64).contains(&size)
}

/// The checksum of a block of 4096 bytes of dm's metadata, which differs by `xor`.
fn block(disk: &mut Sparse, at: u64, xor: u32) {
    let Some(raw) = read(disk, at, 4096) else { return };
    let sum = !crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&raw[4..]);
    disk.put(at, &(sum ^ xor).to_le_bytes());
}

/// The checksum of a superblock or a node of 4096 bytes of Btrfs.
fn btrfs(disk: &mut Sparse, at: u64) {
    let Some(raw) = read(disk, at, 4096) else { return };
    let sum = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI).checksum(&raw[32..]);
    disk.put(at, &sum.to_le_bytes());
}

/// The sum of all 32-bit words, its carries added once: of 4096 bytes at 152 (version 0.90), or of
/// the superblock and its roles at 216 (version 1).
fn md(disk: &mut Sparse, at: u64) {
    let Some(head) = read(disk, at, 256) else { return };
    let first = number(&head, 4, 4) == 0;
    let (place, length) =
        if first { (152, 4096) } else { (216, 256 + number(&head, 220, 4).min(1920) * 2) };
    let Some(mut all) = read(disk, at, length) else { return };
    all[place..place + 4].fill(0);
    let sum = all.chunks(4).fold(0, |sum, word| sum + number(word, 0, word.len()));
    let folded = (sum & 0xffff_ffff) + (sum >> 32);
    disk.put(at + place as u64, &folded.to_le_bytes()[..4]);
}

/// The sum of all 32-bit words of a firmware's metadata but its own, at 32. The second sector and
/// those behind it stand before the first.
fn firmware(disk: &mut Sparse, at: u64, head: &[u8]) {
    let size = number(head, 36, 4).min(TABLE);
    let sector = if disk.length().checked_sub(at) == Some(1024) { 512 } else { 4096 };
    let rest = size.div_ceil(sector).saturating_sub(1) * sector;
    let first = read(disk, at, sector);
    let more = at.checked_sub(rest).and_then(|start| read(disk, start, rest));
    // Nothing is put where there is nothing to sum: what is zero on a disk is not part of an input.
    let (Some(mut all), Some(more), 36..) = (first, more, size) else { return };
    all.extend(more);
    all.truncate(usize::try_from(size).unwrap_or(0));
    all.get_mut(32..36).into_iter().for_each(|sum| sum.fill(0));
    let sum = all.chunks_exact(4).fold(0, |sum, word| sum + number(word, 0, 4));
    disk.put(at + 32, &sum.to_le_bytes()[..4]);
}

/// The table's checksum at 88, then the header's at 16 (UEFI 2.10, 5.3.2). The header says where it
/// stands, and so where the disk begins on which it counts.
fn gpt(disk: &mut Sparse, sector: u64, at: u64, mut header: Vec<u8>) {
    let base =
        number(&header, 24, 8).checked_mul(sector).and_then(|own| at.checked_sub(own)).unwrap_or(0);
    let table =
        number(&header, 72, 8).checked_mul(sector).and_then(|table| table.checked_add(base));
    let length = number(&header, 80, 4)
        .checked_mul(number(&header, 84, 4))
        .filter(|&length| length <= TABLE);
    if let Some(table) = table.zip(length).and_then(|(table, length)| read(disk, table, length)) {
        header[88..92].copy_from_slice(&crc32fast::hash(&table).to_le_bytes());
    }
    header[16..20].fill(0);
    let size = usize::try_from(number(&header, 12, 4)).unwrap_or(0).clamp(92, 512);
    let sum = crc32fast::hash(&header[..size]);
    header[16..20].copy_from_slice(&sum.to_le_bytes());
    disk.put(at, &header[..92]);
}

/// The exclusive or of all 16-bit words up to the last partition is 0; the checksum stands at 136.
fn disklabel(disk: &mut Sparse, at: u64) {
    let Some(count) = read(disk, at + 138, 2).map(|count| number(&count, 0, 2)) else { return };
    let Some(mut label) = read(disk, at, 148 + 16 * count) else { return };
    label[136..138].fill(0);
    let sum = label.chunks_exact(2).fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
    disk.put(at + 136, &sum);
}

fn read(disk: &Sparse, at: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    disk.read_at(&mut bytes, at).ok().map(|()| bytes)
}

/// The little-endian number of `width` bytes at `at`.
fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    bytes[at..at + width].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

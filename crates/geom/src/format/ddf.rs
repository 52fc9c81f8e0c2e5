//! DDF: a member of a RAID by SNIA's Common RAID Disk Data Format, which controllers of LSI,
//! Adaptec and Dell and Linux's mdadm write.
//!
//! # On disk
//! An anchor in the last sector, or 256 sectors before, gives the first sector of the primary
//! header, and of a secondary one. From that header sections are counted in sectors: records of the
//! virtual disks, each with a name, and configurations, each with members, chunk and level. Numbers
//! are big-endian; some controllers write them the other way round.
//!
//! # Topology
//! What is on a member belongs to its volumes, whose places are not followed: `unknown`.
//!
//! # Limits
//! Sixteen configurations of the first 4096 are named. Headers whose checksum is wrong are passed
//! over; those of records are not looked at. Whole disks alone are members, as for the firmware.
//!
//! # Sources
//! SNIA "Common RAID Disk Data Format Specification" 2.0, 5.5 DDF Header, 5.8 Virtual Disk Records,
//! 5.9 Configuration Records; mdadm 4.2 `--examine`, which is the oracle.

use super::{Data, Format, FormatKind, Inside, Sign};
use crate::base::ondisk::on_disk;
use crate::probe::{Blind, Probe};
use zerocopy::byteorder::{BigEndian, ByteOrder, LittleEndian, U16, U32, U64};

/// The format, for the registry.
pub struct Ddf;

/// The kind that blkid calls `ddf_raid_member`.
pub const KIND: FormatKind = FormatKind::new("ddf_raid_member", &Ddf);

const SECTOR: u64 = 512;
/// Bytes below which libblkid looks for no such member.
const SMALLEST: u64 = 0x30000;
/// Sectors before the end in which an anchor may stand.
const ANCHORS: [u64; 2] = [1, 257];
/// Records that are looked at, and volumes that are named.
const MOST_RECORDS: u64 = 4096;
const MOST_VOLUMES: usize = 16;

on_disk! {
    /// "DDF Header", of an anchor and of both copies, as far as it is read.
    struct Header<O: ByteOrder> of 224 bytes {
          0 => signature: U32<O>,
          4 => crc: U32<O>,
          8 => guid: [u8; 24],
         32 => revision: [u8; 8],
         40 => sequence_number: U32<O>,
         44 => reserved: [u8; 52],
         96 => primary_header_lba: U64<O>,
        104 => secondary_header_lba: U64<O>,
        112 => reserved2: [u8; 22],
        134 => configuration_record_length: U16<O>,
        136 => reserved3: [u8; 72],
        208 => virtual_disk_records: U32<O>,
        212 => virtual_disk_records_length: U32<O>,
        216 => configuration_records: U32<O>,
        220 => configuration_records_length: U32<O>,
    }
}

on_disk! {
    /// "Virtual Disk Configuration Record", as far as it is read.
    struct Configuration<O: ByteOrder> of 88 bytes {
         0 => signature: U32<O>,
         4 => crc: U32<O>,
         8 => guid: [u8; 24],
        32 => reserved: [u8; 32],
        64 => primary_element_count: U16<O>,
        66 => strip_size: u8,
        67 => primary_raid_level: u8,
        68 => raid_level_qualifier: u8,
        69 => secondary_element_count: u8,
        70 => secondary_element_number: u8,
        71 => secondary_raid_level: u8,
        72 => block_count: U64<O>,
        80 => size: U64<O>,
    }
}

on_disk! {
    /// "Virtual Disk Entry", of which the name is read.
    struct VirtualDisk of 64 bytes {
         0 => guid: [u8; 24],
        24 => reserved: [u8; 24],
        48 => name: [u8; 16],
    }
}

const HEADER: u32 = 0xde11_de11;
const CONFIGURATION: u32 = 0xeeee_eeee;

impl Format for Ddf {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(INSIDE)
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        if probe.kind().is_some() || probe.length() < SMALLEST {
            return None;
        }
        let places = ANCHORS
            .iter()
            .filter_map(|&sectors| Some((probe.length() / SECTOR).checked_sub(sectors)? * SECTOR));
        let places = places.filter(|&at| probe.reaches(at));
        let (at, volumes) = places.into_iter().find_map(|at| {
            let volumes =
                volumes::<BigEndian>(probe, at).or_else(|| volumes::<LittleEndian>(probe, at))?;
            Some((at, volumes))
        })?;
        // Its front, up to the metadata, is the set's.
        let data = Data { offset: 0, length: Some(at), plain: false };
        let mut sign = Sign { inside: INSIDE, data: Some(data), ..Sign::new(KIND, at) };
        sign.details.extend(volumes.into_iter().map(|volume| ("volume", volume)));
        Some(sign)
    }
}

const INSIDE: Inside = Inside::Unknown(
    "a member of a firmware RAID: what is on it is the set's, which is named and not followed",
);

/// Configuration records that are asked for at once.
const AHEAD: u64 = 16;

/// The volumes of which the disk with an anchor at `at` is a member, in words; `None` without an
/// anchor.
fn volumes<O: ByteOrder>(probe: &Probe<'_>, at: u64) -> Option<Vec<String>> {
    let anchor: Header<O> = probe.read(at).filter(|h: &Header<O>| h.signature.get() == HEADER)?;
    if !anchor.revision.iter().all(|b| b.is_ascii_digit() || *b == b'.') {
        return None;
    }
    let copies = [anchor.primary_header_lba.get(), anchor.secondary_header_lba.get()];
    let header = copies.into_iter().find_map(|lba| {
        let at = lba.checked_mul(SECTOR)?;
        let header: Header<O> = probe.read(at)?;
        let is_one = header.signature.get() == HEADER && header.guid == anchor.guid;
        (is_one && sums(probe, at, header.crc.get())?).then_some((at, header))
    });
    // A member whose headers are damaged is one all the same.
    Some(header.map_or(Vec::new(), |(at, header)| named(probe, at, &header)))
}

/// True if the header at `at` has the checksum `crc`: CRC-32 of it with that field all ones.
fn sums(probe: &Probe<'_>, at: u64, crc: u32) -> Option<bool> {
    let mut bytes = probe.bytes(at, 512)?;
    bytes[4..8].fill(0xff);
    // mdadm's sum begins with 0 and is not inverted; zlib's is taken too.
    Some(crc == sum(&bytes) || crc == crc32fast::hash(&bytes))
}

/// CRC-32 as mdadm has it: without both inversions.
fn sum(bytes: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new_with_initial(u32::MAX);
    sum.update(bytes);
    !sum.finalize()
}

/// The volumes that the header at `at` leads to, each with its name, level, members and chunk.
fn named<O: ByteOrder>(probe: &Probe<'_>, at: u64, header: &Header<O>) -> Vec<String> {
    let section = |sectors: u32| at.checked_add(u64::from(sectors) * SECTOR);
    let step = u64::from(header.configuration_record_length.get().max(1));
    let count = u64::from(header.configuration_records_length.get()) / step;
    let record = |nth: u64| {
        let at = section(header.configuration_records.get())?.checked_add(nth * step * SECTOR)?;
        probe.read(at).filter(|c: &Configuration<O>| c.signature.get() == CONFIGURATION)
    };
    let records = (0..count.min(MOST_RECORDS)).map_while(|nth| {
        // The first place that cannot be read is the last; of those that are fetched some more are
        // asked for with it.
        let goes_on = |blind: Blind| blind.is_awaited() && nth % AHEAD != AHEAD - 1;
        Some(record(nth)).filter(|found| found.is_some() || probe.blind().is_none_or(goes_on))
    });
    let words = |c: Configuration<O>| {
        let (nth, name) = section(header.virtual_disk_records.get())
            .and_then(|at| name(probe, at, header.virtual_disk_records_length.get(), &c.guid))
            .unwrap_or((u64::MAX, None));
        // A mirror has a number in this field too, and no chunks.
        let has_chunk = c.strip_size < 32 && c.primary_raid_level != 1;
        let chunk = has_chunk.then(|| SECTOR << c.strip_size);
        let chunk = chunk.map_or(String::new(), |chunk| format!(", chunks of {chunk} bytes"));
        let words = format!(
            "{}{} of {} members{chunk}",
            name.map_or(String::new(), |name| format!("{name}: ")),
            level(&c),
            c.primary_element_count.get(),
        );
        (nth, words)
    };
    // In the order of the virtual disks, as mdadm counts them.
    let mut volumes: Vec<(u64, String)> = records.flatten().take(MOST_VOLUMES).map(words).collect();
    volumes.sort_by_key(|(nth, _)| *nth);
    volumes.into_iter().map(|(_, words)| words).collect()
}

/// The number of the volume `guid` in the records of virtual disks, which begin at `at`, and its
/// name.
fn name(
    probe: &Probe<'_>,
    at: u64,
    sectors: u32,
    guid: &[u8; 24],
) -> Option<(u64, Option<String>)> {
    const ENTRY: u64 = 64;
    let count = (u64::from(sectors) * SECTOR / ENTRY).min(MOST_RECORDS);
    // The section's own head is as long as an entry.
    (1..count).find_map(|nth| {
        let entry: VirtualDisk = probe.read(at.checked_add(nth * ENTRY)?)?;
        (entry.guid == *guid).then(|| (nth, crate::base::ondisk::text(&entry.name)))
    })
}

/// The level in md's words, where it has some.
fn level<O: ByteOrder>(c: &Configuration<O>) -> String {
    let primary = match c.primary_raid_level {
        0 => "raid0".into(),
        1 => "raid1".into(),
        3 => "raid3".into(),
        4 => "raid4".into(),
        5 => "raid5".into(),
        6 => "raid6".into(),
        0x0f => "jbod".into(),
        0x11 => "raid1e".into(),
        0x1f => "concatenation".into(),
        other => format!("level {other:#04x}"),
    };
    if c.secondary_element_count <= 1 {
        return primary;
    }
    let how = match c.secondary_raid_level {
        0 => "striped".into(),
        1 => "mirrored".into(),
        2 => "one after another".into(),
        3 => "spanned".into(),
        other => format!("in a way {other:#04x}"),
    };
    format!("{} of {} {primary}, {how},", c.secondary_element_number, c.secondary_element_count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::store::Sparse;
    use crate::format::tests::recognised;

    const LENGTH: u64 = 1 << 20;

    /// A header with its checksum.
    fn header(kind: u8) -> Vec<u8> {
        let mut header = vec![0xff; 512];
        header[..4].copy_from_slice(&HEADER.to_be_bytes());
        header[8..32].copy_from_slice(b"Linux-MD................");
        header[32..40].copy_from_slice(b"01.02.00");
        header[96..104].copy_from_slice(&1024_u64.to_be_bytes());
        header[104..112].copy_from_slice(&1280_u64.to_be_bytes());
        header[112] = kind;
        header[134..136].copy_from_slice(&2_u16.to_be_bytes());
        header[208..212].copy_from_slice(&4_u32.to_be_bytes());
        header[212..216].copy_from_slice(&1_u32.to_be_bytes());
        header[216..220].copy_from_slice(&8_u32.to_be_bytes());
        header[220..224].copy_from_slice(&8_u32.to_be_bytes());
        let crc = sum(&header);
        header[4..8].copy_from_slice(&crc.to_be_bytes());
        header
    }

    fn disk(parts: &[(u64, &[u8])]) -> Sparse {
        let mut disk = Sparse::new(LENGTH);
        disk.put(LENGTH - 512, &header(0));
        parts.iter().for_each(|(at, bytes)| disk.put(*at, bytes));
        disk
    }

    fn volumes_of(disk: Sparse) -> Option<Vec<String>> {
        let sign = recognised(&Ddf, disk)?;
        Some(sign.details.into_iter().map(|(_, value)| value).collect())
    }

    fn configuration(level: u8) -> Vec<u8> {
        let mut record = vec![0xff; 512];
        record[..4].copy_from_slice(&CONFIGURATION.to_be_bytes());
        record[8..32].copy_from_slice(&[7; 24]);
        record[64..66].copy_from_slice(&3_u16.to_be_bytes());
        (record[66], record[67], record[69]) = (7, level, 1);
        record
    }

    #[test]
    fn a_volume_is_named_with_its_level_its_members_and_its_chunk() {
        let mut names = vec![0xff; 512];
        names[64..88].copy_from_slice(&[7; 24]);
        names[112..128].copy_from_slice(b"data\0\0\0\0\0\0\0\0\0\0\0\0");
        let (first, second) = (header(1), header(2));
        let (five, odd) = (configuration(5), configuration(0x25));
        let at = |sector: u64| sector * SECTOR;
        let records = [(at(1024 + 4), &names[..]), (at(1024 + 10), &five), (at(1024 + 12), &odd)];
        let said = [
            "data: raid5 of 3 members, chunks of 65536 bytes".to_string(),
            "data: level 0x25 of 3 members, chunks of 65536 bytes".to_string(),
        ];
        let whole = [&[(at(1024), &first[..])][..], &records].concat();
        assert_eq!(volumes_of(disk(&whole)), Some(said.to_vec()));
        // Without headers it is a member all the same; without the anchor it is none.
        assert_eq!(volumes_of(disk(&[])), Some(Vec::new()));
        let mut damaged = first.clone();
        damaged[200] ^= 1;
        let other = [&[(at(1024), &damaged[..]), (at(1280), &second)][..], &records].concat();
        assert_eq!(volumes_of(disk(&other)), Some(Vec::new()));
        assert_eq!(volumes_of(Sparse::new(LENGTH)), None);
    }

    /// The sum by its definition, bit by bit, and not by the library.
    #[test]
    fn the_sum_is_the_one_of_mdadm() {
        assert_eq!(sum(b"123456789"), 0x2dfd2d88);
        assert_ne!(sum(b"123456789"), crc32fast::hash(b"123456789"));
    }

    /// Numbers that lead out of the disk, or to more records than there are bytes.
    #[test]
    fn hostile_numbers_are_survived() {
        for at in (96..240).step_by(4) {
            for number in [0_u32, 1, 0x7fff_ffff, u32::MAX] {
                let mut hostile = header(1);
                hostile[at..at + 4].copy_from_slice(&number.to_be_bytes());
                hostile[4..8].fill(0xff);
                let crc = crc32fast::hash(&hostile);
                hostile[4..8].copy_from_slice(&crc.to_be_bytes());
                let filled = vec![0xee; 4096];
                volumes_of(disk(&[
                    (1024 * SECTOR, &hostile),
                    (1032 * SECTOR, &filled),
                    (LENGTH - 512, &hostile),
                ]));
            }
        }
    }
}

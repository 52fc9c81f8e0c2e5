//! Disks made by hand that are converted: tables, tables in partitions, a FAT.

use super::sets::set;
use super::{BOTH, TO_LARGE, graph};
use crate::medium::Random;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::lay_over;
use trueline_geom::base::resize::Aim;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::mapping::slices::{Dialect, PartitionType};
use trueline_geom::registry;
use trueline_geom::table::scheme::{New, TableSite};
use trueline_geom::table::{Request, Rules, Wanted};

/// A GPT with partitions at these sectors, of which the first holds `inside`.
pub(super) fn gpt(parts: &[(u64, u64)], length: u64, inside: &Sparse) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(length).unwrap()];
    let scheme = registry::scheme_named("gpt").unwrap();
    let empty = graph(Sparse::new(length), 512);
    let topology = Topology::new(512, length);
    let site = TableSite { topology: &topology, base: 0, kind: None };
    let new = New { random: *b"one disk of many", ..New::default() };
    let before = scheme.create(&empty.probe(0), &site, &new).unwrap();
    let mut after = before.clone();
    for &(start, sectors) in parts {
        let place = Request { start: Some(start * 512), size: Some(sectors * 512), align: None };
        let kind = scheme.kind("linux-data").unwrap();
        let uuid = Some(Guid([u8::try_from(start % 251).unwrap(); 16]));
        let wanted = Wanted { kind, place, index: None, label: None, uuid, attributes: 0 };
        after.add(&site, wanted, Rules::Gpart).unwrap();
    }
    lay_over(&scheme.render(&before, &after), 0, &mut disk);
    let mut random = Random(9);
    for &(start, sectors) in &parts[1..] {
        let from = usize::try_from(start * 512).unwrap();
        // What ends within a larger sector has zeros at its end, so that nothing counts from there.
        let full = if sectors % 8 == 0 { sectors } else { sectors - 140 };
        for byte in &mut disk[from..from + usize::try_from(full * 512).unwrap()] {
            *byte = u8::try_from(random.next(256)).unwrap();
        }
    }
    let first = usize::try_from(parts[0].0 * 512).unwrap();
    for (at, bytes) in inside.runs() {
        let at = first + usize::try_from(at).unwrap();
        disk[at..at + bytes.len()].copy_from_slice(bytes);
    }
    disk
}

/// A FAT12 of clusters that are one sector, with a directory, a long file in two parts, and others.
pub(super) fn fat() -> Sparse {
    let mut disk = Sparse::new(512 << 10);
    let mut boot = vec![0; 512];
    boot[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    boot[3..11].copy_from_slice(b"trueline");
    // 512 bytes a sector and a cluster, 1 reserved, 2 FATs of 3, 64 entries, 1024 sectors.
    boot[11..24].copy_from_slice(&[0, 2, 1, 1, 0, 2, 64, 0, 0, 4, 0xf8, 3, 0]);
    boot[38] = 0x29;
    boot[54..62].copy_from_slice(b"FAT12   ");
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(0, &boot);
    // Clusters: 2 is the directory, 3 to 12 and 20 to 29 a file, 13 another, in that.
    let mut next = [0_u16; 1016];
    (next[0], next[1], next[2]) = (0xff8, 0xfff, 0xfff);
    for n in (3..12).chain(20..29) {
        next[usize::from(n)] = n + 1;
    }
    (next[12], next[29], next[13]) = (20, 0xfff, 0xfff);
    let mut table = Vec::new();
    for pair in next.chunks(2) {
        let both = u32::from(pair[0]) | u32::from(pair[1]) << 12;
        table.extend(&both.to_le_bytes()[..3]);
    }
    table.resize(3 * 512, 0);
    disk.put(512, &table);
    disk.put(4 * 512, &table);
    let entry = |name: &[u8; 11], attributes: u8, first: u16, length: u32| {
        let mut entry = [0; 32];
        entry[..11].copy_from_slice(name);
        entry[11] = attributes;
        entry[22..26].copy_from_slice(&[1, 2, 3, 4]);
        entry[26..28].copy_from_slice(&first.to_le_bytes());
        entry[28..].copy_from_slice(&length.to_le_bytes());
        entry
    };
    let root = [
        entry(b"LABEL      ", 8, 0, 0),
        entry(b"FOLDER     ", 16, 2, 0),
        entry(b"LONG    BIN", 0x20, 3, 10_000),
        entry(b"EMPTY      ", 0x20, 0, 0),
    ];
    disk.put(7 * 512, &root.concat());
    let data = 11 * 512;
    let folder = [
        entry(b".          ", 16, 2, 0),
        entry(b"..         ", 16, 0, 0),
        entry(b"IN      TXT", 0x21, 13, 5),
    ];
    disk.put(data, &folder.concat());
    for cluster in (3..13_u64).chain(20..30) {
        let byte = u8::try_from(cluster).unwrap();
        disk.put(data + (cluster - 2) * 512, &[byte; 512]);
    }
    disk.put(data + 11 * 512, b"words and more");
    disk
}

/// An MBR with a primary partition and two logical ones, and numbers in all of them; the last has
/// `inside` at its start.
pub(super) fn mbr(inside: &[u8]) -> Vec<u8> {
    let mut disk = vec![0; 1 << 20];
    let mut table = |at: usize, entries: &[(u8, u32, u32)]| {
        for (n, &(kind, start, sectors)) in entries.iter().enumerate() {
            let slot = &mut disk[at * 512 + 446 + 16 * n..][..16];
            slot[4] = kind;
            slot[8..12].copy_from_slice(&start.to_le_bytes());
            slot[12..].copy_from_slice(&sectors.to_le_bytes());
        }
        disk[at * 512 + 510..][..2].copy_from_slice(&[0x55, 0xaa]);
    };
    // Links count from the extended partition, data from their own EBR.
    table(0, &[(0x83, 64, 64), (0x0f, 256, 768)]);
    table(256, &[(0x83, 64, 128), (0x05, 256, 512)]);
    table(512, &[(0x83, 64, 448)]);
    let mut random = Random(11);
    for (from, sectors) in [(64, 64), (320, 128), (576, 448)] {
        for byte in &mut disk[from * 512..(from + sectors) * 512] {
            *byte = u8::try_from(random.next(256)).unwrap();
        }
    }
    disk[576 * 512..][..inside.len()].copy_from_slice(inside);
    disk
}

/// Length of a guest's disk in bytes, which ends off the larger sector.
pub(super) const GUEST: u64 = (1 << 20) + 3 * 512;

/// A GPT of three partitions in [`GUEST`] bytes, of which the first has the FAT. Its field of
/// the sectors before it has the number `hidden`.
pub(super) fn guest(hidden: u32) -> Vec<u8> {
    let mut volume = fat();
    volume.put(28, &hidden.to_le_bytes());
    gpt(&[(48, 1024), (1200, 104), (1304, 200)], GUEST, &volume)
}

/// An MBR whose last logical partition is a disk of 224 KiB with a GPT.
fn mbr_of_gpt() -> Vec<u8> {
    mbr(&gpt(&[(64, 64), (128, 104)], 448 * 512, &Sparse::new(512)))
}

/// An MBR with a slice of that type from sector 64 on, and a label in it: `a` from the start of the
/// slice, or behind the boot area in a system that wants it there, `b` and `e` of random bytes.
pub(super) fn bsd(kind: u8) -> Vec<u8> {
    let mut disk = vec![0; 1 << 20];
    let slice = &mut disk[446..][..16];
    slice[4] = kind;
    slice[8..12].copy_from_slice(&64_u32.to_le_bytes());
    slice[12..].copy_from_slice(&1923_u32.to_le_bytes());
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    let empty = graph(sparse(&disk), 512);
    let id = empty.find("s1").unwrap();
    let p = &empty.providers[id];
    let site = TableSite { topology: &p.topology, base: p.base(), kind: p.kind };
    let scheme = registry::scheme_named("bsd").unwrap();
    let new = New { random: [3; 16], medium: Some(1 << 20), ..New::default() };
    let before = scheme.create(&empty.probe(id), &site, &new).unwrap();
    let mut after = before.clone();
    let dialect = before.dialect.unwrap();
    let first = if dialect == Dialect::FreeBsd { 0 } else { 16 };
    for (index, start, sectors, fstype) in [(1, first, 400, 7), (2, 416, 267, 1), (5, 688, 800, 7)]
    {
        let place = Request { start: Some(start * 512), size: Some(sectors * 512), align: None };
        let kind = PartitionType::Bsd(dialect, fstype);
        let wanted =
            Wanted { kind, place, index: Some(index), label: None, uuid: None, attributes: 0 };
        after.add(&site, wanted, Rules::Gpart).unwrap();
    }
    lay_over(&scheme.render(&before, &after), 0, &mut disk[64 * 512..]);
    let mut random = Random(13);
    for (start, sectors) in [(first + 16, 300), (416, 40), (688, 800)] {
        let from = usize::try_from((64 + start) * 512).unwrap();
        for byte in &mut disk[from..from + usize::try_from(sectors * 512).unwrap()] {
            *byte = u8::try_from(random.next(256)).unwrap();
        }
    }
    disk
}

/// Disks with their graphs' sectors and an aim.
pub(super) fn cases() -> Vec<(&'static str, Vec<u8>, Aim)> {
    let small = gpt(&[(48, 1024), (1200, 104), (1304, 200)], 1 << 20, &fat());
    // The last partition ends where a backup table of larger sectors begins.
    let full = gpt(&[(64, 1024), (1088, 930)], (1 << 20) + 512 * 7, &fat());
    let universal = gpt(&[(80, 1024), (1200, 104)], 1 << 20, &fat());
    // Partitions that hold disks, and end off the larger sector in part.
    let host = [(128, GUEST / 512), (2184, 1024)];
    let roomy = gpt(&[(80, 1024), (1200, 104)], GUEST, &fat());
    let mut bare = vec![0; 512 << 10];
    fat().runs().for_each(|(at, bytes)| {
        let at = usize::try_from(at).unwrap();
        bare[at..at + bytes.len()].copy_from_slice(bytes);
    });
    vec![
        ("GPT", small, TO_LARGE),
        ("a full GPT", full, TO_LARGE),
        ("both", universal, BOTH),
        ("a bare FAT", bare, TO_LARGE),
        ("a chain", mbr(&[]), TO_LARGE),
        ("a GPT in a GPT", gpt(&host, 2 << 20, &sparse(&guest(48))), TO_LARGE),
        ("both in both", gpt(&host, 2 << 20, &sparse(&roomy)), BOTH),
        ("a label of FreeBSD", bsd(0xa5), TO_LARGE),
        ("a label of OpenBSD", bsd(0xa6), TO_LARGE),
        ("a label of NetBSD", bsd(0xa9), TO_LARGE),
        ("a mirror", set("mirror", [512, 512]), TO_LARGE),
        ("a stripe", set("stripe", [515, 520]), TO_LARGE),
        ("a concatenation", set("concat", [513, 512]), TO_LARGE),
        ("a GPT in an MBR in a GPT", gpt(&host, 2 << 20, &sparse(&mbr_of_gpt())), TO_LARGE),
    ]
}

pub(super) fn sparse(disk: &[u8]) -> Sparse {
    let mut sparse = Sparse::new(disk.len() as u64);
    sparse.put(0, disk);
    sparse
}

pub(super) fn bytes(disk: &Sparse) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(disk.length()).unwrap()];
    disk.read_at(&mut bytes, 0).unwrap();
    bytes
}

//! GPT: each edit, with power failing anywhere in it.

use crate::crash::{Cut, every_state};
use crate::disk::{add, bytes, create, found, read, wanted, written};
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::is_whole;
use trueline_geom::class::gpt::Gpt;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::table::scheme::{Id, New, Scheme};
use trueline_geom::table::{Entry, Rules, Table};

mod damaged;

const MIB: u64 = 1 << 20;
const SECTORS: [u64; 2] = [512, 4096];

fn new() -> New {
    New { id: Some(Id::Guid(Guid([0xd1; 16]))), ..New::default() }
}

/// What turns the one table into the other; checks that reading it back gives `after`.
fn edit(disk: &Sparse, before: &Table, after: &Table) -> Vec<Patch> {
    let patches = Gpt.render(before, after);
    let again = read(&Gpt, &written(disk, &patches), before.sector).unwrap();
    same(&again, after);
    assert!(patches.iter().all(
        |p| is_whole(p.offset, before.sector) && is_whole(p.bytes.len() as u64, before.sector)
    ));
    patches
}

fn same(read: &Table, wanted: &Table) {
    assert!(read.damage.is_empty(), "{:?}", read.damage);
    let entries: Vec<_> = read.entries.iter().map(|e| Entry { from: None, ..e.clone() }).collect();
    let expected: Vec<_> =
        wanted.entries.iter().map(|e| Entry { from: None, ..e.clone() }).collect();
    assert_eq!(entries, expected);
    assert_eq!(
        (read.id, &read.usable, read.attributes),
        (wanted.id, &wanted.usable, wanted.attributes)
    );
}

/// 64 MiB with three partitions.
fn three(sector: u64, new: &New) -> Sparse {
    let blank = Sparse::new(64 * MIB);
    let before = create(&Gpt, &blank, sector, new).unwrap();
    let mut after = before.clone();
    let parts = [("efi", 1, 1), ("freebsd", 2, 10), ("linux", 20, 4)];
    add(
        &mut after,
        (1..)
            .zip(parts)
            .map(|(n, (kind, start, size))| wanted(&Gpt, kind, start * MIB, size * MIB, n)),
    );
    written(&blank, &edit(&blank, &before, &after))
}

#[test]
fn a_new_table_is_whole_or_nothing() {
    for sector in SECTORS {
        let disk = Sparse::new(64 * MIB);
        let before = create(&Gpt, &disk, sector, &new()).unwrap();
        let mut after = before.clone();
        add(
            &mut after,
            [wanted(&Gpt, "efi", MIB, MIB, 1), wanted(&Gpt, "freebsd", 2 * MIB, MIB, 2)],
        );
        let patches = edit(&disk, &before, &after);
        assert_eq!(found(&written(&disk, &patches), sector).len(), 2);
        // A protective MBR without its table is found by others: it comes last.
        let order = [
            ("primary GPT", false),
            ("backup GPT", false),
            ("primary GPT", true),
            ("protective MBR", true),
        ];
        assert_eq!(patches.iter().map(|p| (p.what, p.after_flush)).collect::<Vec<_>>(), order);
        assert!(every_state(&disk, &patches, sector, Cut::Sector) > 4);
        every_state(&disk, &patches, sector, Cut::Byte);
    }
}

#[test]
fn an_edit_is_made_or_not() {
    for sector in SECTORS {
        let disk = three(sector, &new());
        let before = read(&Gpt, &disk, sector).unwrap();
        let mut after = before.clone();
        after.delete(2).unwrap();
        add(&mut after, [wanted(&Gpt, "swap", 30 * MIB, MIB, 9)]);
        after.modify(3, None, Some("Daten äöü".into())).unwrap();
        after.attributes = 3;
        let patches = edit(&disk, &before, &after);
        assert_eq!(patches.iter().filter(|p| p.after_flush).count(), 1);
        assert!(every_state(&disk, &patches, sector, Cut::Sector) > 4);
        every_state(&disk, &patches, sector, Cut::Byte);
    }
}

/// Makes the checksums of the copy whose header is in `lba` right again.
fn reseal(disk: &mut Sparse, sector: u64, lba: u64) {
    let mut header = bytes(disk, lba * sector, sector);
    let number = |at: usize, size: usize| {
        header[at..at + size].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte))
    };
    let (array, length, size) = (
        number(72, 8) * sector,
        number(80, 4) * number(84, 4),
        usize::try_from(number(12, 4)).unwrap(),
    );
    let crc = crc32fast::hash(&bytes(disk, array, length));
    header[88..92].copy_from_slice(&crc.to_le_bytes());
    header[16..20].fill(0);
    let crc = crc32fast::hash(&header[..size]);
    header[16..20].copy_from_slice(&crc.to_le_bytes());
    disk.put(lba * sector, &header);
}

/// The same bytes on a disk of another length.
fn resized(disk: &Sparse, length: u64) -> Sparse {
    let mut other = Sparse::new(length);
    disk.runs().for_each(|(at, bytes)| other.put(at, bytes));
    other
}

#[test]
fn the_published_checksums_come_out() {
    // FORMATS of FreeBSD 9 and 12: an empty table without a GUID on the disk of seed 004.
    let disk = Sparse::new(488_397_168 * 512);
    let crcs = |rules: Rules| {
        let new = New { id: Some(Id::Guid(Guid::default())), rules, ..New::default() };
        let table = create(&Gpt, &disk, 512, &new).unwrap();
        let made = written(&disk, &Gpt.render(&table, &table));
        let crc = |lba: u64, at: u64| {
            u32::from_le_bytes(bytes(&made, lba * 512 + at, 4).try_into().unwrap())
        };
        let protective = bytes(&made, 446, 16);
        assert_eq!(
            protective,
            [0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0x6f, 0x59, 0x1c, 0x1d]
        );
        (
            table.usable.start / 512,
            table.usable.end / 512 - 1,
            crc(1, 88),
            crc(1, 16),
            crc(488_397_167, 16),
        )
    };
    assert_eq!(crcs(Rules::Gpart), (40, 488_397_127, 0xab54_d286, 0x4b9e_555f, 0x94b3_a71f));
    let (first, last, array, primary, _) = crcs(Rules::Gpart9);
    assert_eq!((first, last, array, primary), (34, 488_397_134, 0xab54_d286, 0xc09a_bc9c));
    assert_eq!(crcs(Rules::Aligned), crcs(Rules::Gpart9));
}

#[test]
fn a_new_table_takes_the_place_of_an_mbr_at_once() {
    for sector in SECTORS {
        let mut disk = Sparse::new(64 * MIB);
        let mut boot = vec![0x90; 446];
        boot.extend([0x80, 0, 2, 0, 0x83, 0, 0, 0, 64, 0, 0, 0, 0, 8, 0, 0]);
        boot.extend([0, 0, 0, 0, 7, 0, 0, 0, 0, 10, 0, 0, 0, 8, 0, 0]);
        boot.resize(510, 0);
        boot.extend([0x55, 0xaa]);
        disk.put(0, &boot);
        assert_eq!(found(&disk, sector).len(), 2);
        let before = create(&Gpt, &disk, sector, &new()).unwrap();
        let mut after = before.clone();
        add(&mut after, [wanted(&Gpt, "efi", MIB, MIB, 1)]);
        let patches = edit(&disk, &before, &after);
        assert_eq!(patches.last().map(|p| (p.what, p.after_flush)), Some(("protective MBR", true)));
        every_state(&disk, &patches, sector, Cut::Sector);
        let made = written(&disk, &patches);
        assert_eq!(bytes(&made, 0, 440), &boot[..440], "boot code");
        assert_eq!(bytes(&made, 440, 6), [0; 6], "an MBR's signature belongs to nothing now");
    }
}

#[test]
fn a_file_system_that_was_the_whole_disk_is_not_kept() {
    let mut disk = Sparse::new(64 * MIB);
    let mut boot = vec![0; 512];
    boot[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    boot[11..14].copy_from_slice(&[0, 2, 4]);
    boot[54..59].copy_from_slice(b"FAT16");
    boot[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.put(0, &boot);
    let table = create(&Gpt, &disk, 512, &new()).unwrap();
    assert_eq!(bytes(&written(&disk, &Gpt.render(&table, &table)), 0, 446), [0; 446]);
}

/// A table with something in every place that is not read: boot code, a hybrid MBR, header and
/// entries longer than usual, its primary table at LBA 40.
fn vendor(sector: u64) -> Sparse {
    let mut disk =
        three(sector, &New { usable: Some((MIB, 60 * MIB)), entries: Some(64), ..new() });
    let last = disk.length() / sector - 1;
    let entries = bytes(&disk, 2 * sector, 64 * 128);
    let mut wide = vec![0xa5; 64 * 256];
    for (to, from) in wide.chunks_exact_mut(256).zip(entries.chunks_exact(128)) {
        // Also in entries not in use; only their type is zero.
        let used = from[..16] != [0; 16];
        to[..16].copy_from_slice(&from[..16]);
        if used {
            to[..128].copy_from_slice(from);
            to[120..128].copy_from_slice(&[0xa6; 8]);
        }
    }
    for (lba, array) in [(1, 40), (last, last - 64 * 256 / sector - 3)] {
        let mut header = bytes(&disk, lba * sector, sector);
        header[92..].fill(0xa7);
        header[8..16].copy_from_slice(&[1, 0, 1, 0, 104, 0, 0, 0]);
        header[72..80].copy_from_slice(&array.to_le_bytes());
        header[84] = 0;
        header[85] = 1;
        disk.put(lba * sector, &header);
        disk.put(array * sector, &wide);
        reseal(&mut disk, sector, lba);
    }
    let mut boot = vec![0xa8; 462];
    boot[446..].copy_from_slice(&bytes(&disk, 446, 16));
    // The last slot mirrors the second partition.
    boot.extend([0xa9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    boot.extend([0; 16]);
    let (start, size) =
        (u32::try_from(2 * MIB / sector).unwrap(), u32::try_from(10 * MIB / sector).unwrap());
    boot.extend([0x80, 0xfe, 0xff, 0xff, 0xa5, 0xfe, 0xff, 0xff]);
    boot.extend([start.to_le_bytes(), size.to_le_bytes()].concat());
    boot[462] = 0;
    disk.put(0, &boot);
    disk
}

#[test]
fn what_is_never_read_stays_byte_for_byte() {
    for sector in SECTORS {
        let disk = vendor(sector);
        let before = read(&Gpt, &disk, sector).unwrap();
        assert_eq!(
            (before.damage.len(), before.capacity, before.entries.len()),
            (0, 64, 3),
            "{:?}",
            before.damage
        );
        let mut after = before.clone();
        after.modify(1, Gpt.kind("freebsd-zfs"), Some("new name".into())).unwrap();
        after
            .mark(Some(3), Gpt.attributes().iter().find(|a| a.name == "bootonce").unwrap(), true)
            .unwrap();
        after.delete(2).unwrap();
        add(&mut after, [wanted(&Gpt, "swap", 40 * MIB, MIB, 9)]);
        let patches = edit(&disk, &before, &after);
        every_state(&disk, &patches, sector, Cut::Byte);
        let made = written(&disk, &patches);
        let last = disk.length() / sector - 1;
        let mut may = Vec::new();
        for (lba, array) in [(1, 40), (last, last - 64 * 256 / sector - 3)] {
            let entry = |n: u64| array * sector + 256 * (n - 1);
            // Both CRCs; type and name; the whole of a slot that was given away; attributes.
            may.extend([
                lba * sector + 16..lba * sector + 20,
                lba * sector + 88..lba * sector + 92,
            ]);
            may.extend([
                entry(1)..entry(1) + 16,
                entry(1) + 56..entry(1) + 128,
                entry(2)..entry(3),
                entry(3) + 48..entry(3) + 56,
            ]);
        }
        for at in (0..MIB).chain(disk.length() - MIB..disk.length()) {
            if may.iter().all(|range| !range.contains(&at)) {
                assert_eq!(
                    bytes(&made, at, 1),
                    bytes(&disk, at, 1),
                    "byte {at} of {sector}-byte sectors"
                );
            }
        }
    }
}

#[test]
fn attributes_of_the_table_are_the_protective_entrys() {
    for disk in [three(512, &new()), vendor(512)] {
        let mut before = read(&Gpt, &disk, 512).unwrap();
        let mut now = disk.clone();
        for (name, on) in
            [("active", true), ("lenovofix", true), ("active", false), ("lenovofix", false)]
        {
            let attribute = Gpt.attributes().iter().find(|a| a.name == name).unwrap();
            let mut after = before.clone();
            after.mark(None, attribute, on).unwrap();
            let patches = edit(&now, &before, &after);
            every_state(&now, &patches, 512, Cut::Sector);
            now = written(&now, &patches);
            let (slot, flag) = (u64::from(after.attributes & 2 != 0), after.attributes & 1 != 0);
            assert_eq!(
                bytes(&now, 446 + 16 * slot, 5),
                [if flag { 0x80 } else { 0 }, 0, 2, 0, 0xee],
                "{name} {on}"
            );
            before = read(&Gpt, &now, 512).unwrap();
        }
        assert_eq!(bytes(&now, 0, 512), bytes(&disk, 0, 512));
    }
}

#[test]
fn what_a_gpt_cannot_hold_is_refused() {
    let disk = three(512, &new());
    let table = read(&Gpt, &disk, 512).unwrap();
    let refused = |change: &dyn Fn(&mut Entry)| {
        let mut entry = table.entries[0].clone();
        change(&mut entry);
        Gpt.accept(&table, &entry).map_err(|refusal| refusal.found)
    };
    assert_eq!(refused(&|e| e.partition.label = Some("ä".repeat(36))), Ok(()));
    assert_eq!(refused(&|e| e.partition.label = Some("\u{1f600}".repeat(18))), Ok(()));
    assert!(
        refused(&|e| e.partition.label = Some("\u{1f600}".repeat(18) + "x"))
            .unwrap_err()
            .contains("37")
    );
    assert!(refused(&|e| e.partition.label = Some("a\tb".into())).is_err());
    assert!(refused(&|e| e.partition.kind = PartitionType::Mbr(0x83)).is_err());
    assert!(refused(&|e| e.partition.kind = PartitionType::Gpt(Guid::default())).is_err());
    assert!(refused(&|e| e.partition.length += 1).is_err());
    assert!(
        refused(&|e| e.partition.guid = table.entries[1].partition.guid)
            .unwrap_err()
            .contains("index 2")
    );
    assert!(refused(&|e| (e.from, e.partition.guid) = (None, None)).is_err());
}

#[test]
fn types_go_by_every_name() {
    let linux = Gpt.kind("linux-data");
    assert!(linux.is_some());
    for name in [
        "L",
        "linux",
        "Linux-Data",
        "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
        "!0fc63daf-8483-4772-8e79-3d69d8477de4",
    ] {
        assert_eq!(Gpt.kind(name), linux, "{name}");
    }
    for name in ["ntfs", "!165", "165", "", "!", "ext4"] {
        assert_eq!(Gpt.kind(name), None, "{name}");
    }
    let table = read(&Gpt, &three(512, &new()), 512).unwrap();
    assert_eq!(table.entries.iter().map(|e| Gpt.suffix(e)).collect::<Vec<_>>(), ["p1", "s2", "p3"]);
}

#[test]
fn a_table_is_as_large_as_asked_for_or_refused() {
    let disk = Sparse::new(64 * MIB);
    let usable = |sector, new: New| {
        create(&Gpt, &disk, sector, &new).map(|t| (t.usable.start / sector, t.usable.end / sector))
    };
    // As sfdisk's table-length and sgdisk's --resize-table.
    assert_eq!(usable(512, New { entries: Some(4), ..new() }).unwrap(), (3, 131_070));
    assert_eq!(usable(512, New { entries: Some(200), ..new() }).unwrap(), (52, 131_021));
    assert_eq!(usable(4096, new()).unwrap(), (6, 16_379));
    assert_eq!(usable(512, New { usable: Some((MIB, 2 * MIB)), ..new() }).unwrap(), (2048, 4096));
    for new in [
        New { entries: Some(3), ..new() },
        New { entries: Some(4097), ..new() },
        New { usable: Some((512, MIB)), ..new() },
        New { usable: Some((MIB, 64 * MIB)), ..new() },
        New { usable: Some((MIB + 1, 2 * MIB)), ..new() },
        New { usable: Some((2 * MIB, MIB)), ..new() },
        New { id: Some(Id::Signature(1)), ..new() },
    ] {
        assert!(usable(512, new).is_err(), "{new:?}");
    }
    for sectors in 0..100 {
        let small = Sparse::new(sectors * 512);
        match create(&Gpt, &small, 512, &new()) {
            Err(refusal) => assert!(sectors < 68, "{sectors}: {refusal}"),
            Ok(table) => {
                let made = written(&small, &Gpt.render(&table, &table));
                assert!(
                    sectors >= 68 && read(&Gpt, &made, 512).unwrap().damage.is_empty(),
                    "{sectors}"
                );
            }
        }
    }
    let random = New { id: None, random: [0xff; 16], ..new() };
    let Some(Id::Guid(guid)) = create(&Gpt, &disk, 512, &random).unwrap().id else { panic!() };
    assert_eq!(guid.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
}

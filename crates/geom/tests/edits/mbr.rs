//! MBR: each edit of the four entries, with power failing anywhere in it.

use crate::crash::{Cut, every_state};
use crate::disk::{add, create, found, read, wanted, written};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::class::mbr::Mbr;
use trueline_geom::mapping::partition::Partition;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::table::scheme::{Geometry, Id, New, Scheme, TableSite};
use trueline_geom::table::{Entry, Refusal, Request, Rules, Table, Wanted};

const MIB: u64 = 1 << 20;
const SECTORS: [u64; 2] = [512, 4096];

pub(crate) fn new() -> New {
    New { id: Some(Id::Signature(0x1234_5678)), ..New::default() }
}

pub(crate) fn part(kind: &str, start: u64, size: u64) -> Wanted {
    Wanted { uuid: None, ..wanted(&Mbr, kind, start, size, 0) }
}

/// Entries without where they were read from.
pub(crate) fn bare(table: &Table) -> Vec<Entry> {
    table.entries.iter().map(|e| Entry { from: None, ..e.clone() }).collect()
}

pub(crate) fn bytes(disk: &Sparse, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    disk.read_at(&mut bytes, at).unwrap();
    bytes
}

/// What turns the one table into the other; checks that reading it back gives `after`, and every
/// state on the way.
fn edit(disk: &Sparse, before: &Table, after: &Table) -> Vec<Patch> {
    let patches = Mbr.render(before, after);
    let again = read(&Mbr, &written(disk, &patches), before.sector).unwrap();
    assert_eq!(
        (bare(&again), again.id, &again.usable, &again.damage),
        (bare(after), after.id, &after.usable, &Vec::new())
    );
    assert!(Mbr.render(&again, &again).is_empty(), "what is as it should be is not written");
    every_state(disk, &patches, before.sector, Cut::Sector);
    patches
}

/// `length` bytes with those partitions.
pub(crate) fn disk(length: u64, sector: u64, parts: impl IntoIterator<Item = Wanted>) -> Sparse {
    let blank = Sparse::new(length);
    let before = create(&Mbr, &blank, sector, &new()).unwrap();
    let mut after = before.clone();
    add(&mut after, parts);
    written(&blank, &edit(&blank, &before, &after))
}

#[test]
fn an_edit_is_one_sector_and_keeps_what_it_does_not_know() {
    for sector in SECTORS {
        let mut disk = disk(
            64 * MIB,
            sector,
            [
                part("fat32lba", MIB, MIB),
                part("83", 2 * MIB, 10 * MIB),
                part("swap", 20 * MIB, 4 * MIB),
            ],
        );
        // Boot code, the two bytes without an owner, CHS fields counted otherwise, an unused
        // entry with something in it, the rest of a large sector.
        disk.put(0, &[0xeb; 440]);
        disk.put(444, &[7, 7, 0]);
        disk.put(447, &[1, 1, 1]);
        disk.put(446 + 48 + 1, &[9; 3]);
        if sector > 512 {
            disk.put(3000, b"rest");
        }
        let before = read(&Mbr, &disk, sector).unwrap();
        let mut after = before.clone();
        after.delete(2).unwrap();
        after.mark(Some(3), &Mbr.attributes()[0], true).unwrap();
        after.modify(1, PartitionType::Mbr(0x0b).into(), None).unwrap();
        let patches = edit(&disk, &before, &after);
        assert_eq!(
            patches.iter().map(|p| (p.offset, p.bytes.len() as u64)).collect::<Vec<_>>(),
            [(0, sector)]
        );
        let mut wanted = bytes(&disk, 0, usize::try_from(sector).unwrap());
        wanted[446 + 4] = 0x0b;
        wanted[446 + 16..446 + 32].fill(0);
        wanted[446 + 32] = 0x80;
        assert_eq!(patches[0].bytes, wanted);
    }
}

#[test]
fn one_entry_is_active_and_one_extended() {
    let disk = disk(64 * MIB, 512, [part("ebr", MIB, MIB), part("83", 2 * MIB, MIB)]);
    let mut table = read(&Mbr, &disk, 512).unwrap();
    for index in [1, 2] {
        table.mark(Some(index), &Mbr.attributes()[0], true).unwrap();
    }
    assert_eq!(table.entries.iter().map(|e| e.attributes).collect::<Vec<_>>(), [0, 0x80]);
    for kind in ["extended", "extended-lba", "X"] {
        let refused = try_add(&mut table.clone(), part(kind, 9 * MIB, MIB), Rules::Aligned);
        assert_eq!(refused.unwrap_err().found, "s1 is an extended partition already");
    }
    assert_eq!(
        table.modify(2, Some(PartitionType::Mbr(5)), None).unwrap_err().found,
        "s2 would become an extended partition"
    );
    assert_eq!(
        table.modify(1, Some(PartitionType::Mbr(0x83)), None).unwrap_err().found,
        "s1 would no longer be an extended partition"
    );
    table.modify(1, Some(PartitionType::Mbr(0x0f)), None).unwrap();
    for byte in [0, 0xee] {
        assert!(table.modify(2, Some(PartitionType::Mbr(byte)), None).is_err());
    }
}

pub(crate) fn try_add(table: &mut Table, wanted: Wanted, rules: Rules) -> Result<u32, Refusal> {
    let topology = Topology::new(table.sector, table.length);
    table.add(&TableSite { topology: &topology, base: 0, kind: None }, wanted, rules)
}

#[test]
fn an_extended_partition_begins_with_an_empty_ebr() {
    // Where it goes there is what looks like a chain.
    for sector in SECTORS {
        let mut disk = disk(64 * MIB, sector, [part("83", MIB, 20 * MIB)]);
        let stale = [0x83, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0, 0];
        for at in [4 * MIB, 30 * MIB] {
            disk.put(at + 450, &stale);
            disk.put(at + 510, &[0x55, 0xaa]);
        }
        let before = read(&Mbr, &disk, sector).unwrap();
        let mut after = before.clone();
        add(&mut after, [part("ebr", 30 * MIB, 4 * MIB)]);
        let patches = edit(&disk, &before, &after);
        assert_eq!(
            patches.iter().map(|p| (p.offset, p.after_flush)).collect::<Vec<_>>(),
            [(30 * MIB, false), (0, true)]
        );
        assert_eq!(found(&written(&disk, &patches), sector).len(), 2);
        // In the place of another partition: that one goes first, and is whole until then.
        let mut after = before.clone();
        after.delete(1).unwrap();
        add(&mut after, [part("ebr", 4 * MIB, 4 * MIB)]);
        let patches = Mbr.render(&before, &after);
        assert_eq!(
            patches.iter().map(|p| (p.offset, p.after_flush)).collect::<Vec<_>>(),
            [(0, false), (4 * MIB, true), (0, true)]
        );
        assert_eq!(found(&written(&disk, &patches), sector).len(), 1);
        assert_eq!(found(&written(&disk, &patches[..1]), sector), Vec::<String>::new());
    }
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    for sector in SECTORS {
        let most = u64::from(u32::MAX);
        let disk = Sparse::new((most + 100_000) * sector);
        let mut table = create(&Mbr, &disk, sector, &new()).unwrap();
        assert_eq!(table.usable, 63 * sector..most * sector, "partitions end where 32 bits do");
        let whole = Wanted { place: Request::default(), ..part("83", 0, 0) };
        try_add(&mut table, whole, Rules::Aligned).unwrap();
        let one = &table.entries[0];
        assert!(
            one.partition.start == MIB
                && one.partition.end() <= most * sector
                && one.partition.end() > most * sector - MIB,
            "{one:?}"
        );
        assert!(
            try_add(&mut table.clone(), part("83", most * sector, sector), Rules::Aligned).is_err()
        );
        edit(&disk, &create(&Mbr, &disk, sector, &new()).unwrap(), &table);
        // What came past `apart` would still be refused: 2^32 sectors, and 2^32 + 8, which would
        // wrap to 8.
        for (start, length) in [
            (MIB, (most + 1) * sector),
            ((most + 9) * sector, 8 * sector),
            (MIB, (most + 9) * sector),
        ] {
            let entry = Entry {
                partition: Partition { start, length, index: 2, ..one.partition.clone() },
                from: None,
                ..one.clone()
            };
            assert!(Mbr.accept(&table, &entry).is_err(), "{start} {length}");
        }
    }
}

#[test]
fn what_is_left_of_other_formats_goes_and_boot_code_stays() {
    let code = |bytes: &[(u64, &[u8])]| {
        let mut disk = Sparse::new(64 * MIB);
        bytes.iter().for_each(|(at, b)| disk.put(*at, b));
        let table = create(&Mbr, &disk, 512, &new()).unwrap();
        bytes_of_code(&written(&disk, &Mbr.render(&table, &table)))
    };
    let signed: (u64, &[u8]) = (510, &[0x55, 0xaa]);
    assert_eq!(code(&[(0, &[0xfa, 0x31, 0xc0]), signed])[..3], [0xfa, 0x31, 0xc0], "a boot loader");
    assert_eq!(
        code(&[(0, &[0xfa, 0x31, 0xc0])]),
        [0; 440],
        "no firmware boots from a sector without 55 AA"
    );
    assert_eq!(code(&[(0, b"LUKS\xba\xbe")]), [0; 440]);
    assert_eq!(
        code(&[(0, &[0xeb, 0x3c, 0x90]), (54, b"FAT16   "), signed]),
        [0; 440],
        "a FAT would be found again"
    );
}

fn bytes_of_code(disk: &Sparse) -> Vec<u8> {
    bytes(disk, 0, 440)
}

#[test]
fn a_new_table_replaces_the_entries_that_are_there() {
    let mut old = disk(64 * MIB, 512, [part("83", MIB, 20 * MIB), part("ebr", 30 * MIB, MIB)]);
    old.put(446 + 48, &[0, 9, 9, 9]);
    let table =
        create(&Mbr, &old, 512, &New { id: None, random: [0; 16], ..New::default() }).unwrap();
    assert_eq!(table.id, Some(Id::Signature(1)), "never 0, which means none");
    let disk = written(&old, &Mbr.render(&table, &table));
    assert_eq!(bytes(&disk, 444, 66), [0; 66]);
    assert_eq!(found(&disk, 512), Vec::<String>::new());
    assert!(read(&Mbr, &written(&disk, &Mbr.erase(&table)), 512).is_none());
}

#[test]
fn media_that_shrank_are_said_so_and_cut_only_when_asked() {
    let disk = disk(64 * MIB, 512, [part("83", MIB, 20 * MIB), part("82", 30 * MIB, 4 * MIB)]);
    let short = |length| {
        let mut short = Sparse::new(length);
        short.put(0, &bytes(&disk, 0, 512));
        short
    };
    let shrunk = short(32 * MIB);
    let mut table = read(&Mbr, &shrunk, 512).unwrap();
    assert_eq!(
        table.damage,
        ["s2 ends at byte 35651584 (LBA 69632), past the end of 33554432 bytes"]
    );
    assert!(table.delete(2).is_err());
    let whole = crate::disk::on(&shrunk, 512, |g| Mbr.recover(&table, g)).unwrap();
    let patches = Mbr.render(&table, &whole);
    let again = read(&Mbr, &written(&shrunk, &patches), 512).unwrap();
    assert_eq!((bare(&again), again.damage.len()), (bare(&whole), 0));
    assert_eq!(again.entries[1].partition.end(), 32 * MIB);
    let gone = short(25 * MIB);
    let table = read(&Mbr, &gone, 512).unwrap();
    assert!(crate::disk::on(&gone, 512, |g| Mbr.recover(&table, g)).is_err());
}

#[test]
fn by_gparts_rules_unread_fields_are_gparts() {
    let length = 488_397_168 * 512;
    let disk = Sparse::new(length);
    let chs = |rules| {
        let new = New { rules, ..new() };
        let mut table = create(&Mbr, &disk, 512, &new).unwrap();
        let before = table.clone();
        let place =
            Request { start: Some(63 * 512), size: Some(63 * 2_000_000 * 512), align: None };
        try_add(&mut table, Wanted { place, ..part("freebsd", 0, 0) }, rules).unwrap();
        (table.geometry, bytes(&written(&disk, &Mbr.render(&before, &table)), 446, 8))
    };
    assert_eq!(chs(Rules::Aligned), (None, vec![0, 1, 1, 0, 0xa5, 0xfe, 0xff, 0xff]));
    assert_eq!(chs(Rules::Gpart), (Some(Geometry::LBA), vec![0, 1, 1, 0, 0xa5, 0xff, 0xff, 0xff]));
}

#[test]
fn types_are_called_as_gpart_and_sfdisk_call_them() {
    let named = |name: &str| Mbr.kind(name);
    for (names, byte) in [
        (
            &[
                "linux-data",
                "83",
                "0x83",
                "0X83",
                "!131",
                "!0x83",
                "!0203",
                "L",
                "linux",
                "Linux-Data",
            ][..],
            0x83,
        ),
        (&["ebr", "extended", "E", "5", "05", "0x5", "!5"], 0x05),
        (&["e", "0e", "fat16lba"], 0x0e),
        (&["c", "0c", "fat32lba"], 0x0c),
        (&["S", "swap", "linux-swap"], 0x82),
        (&["X", "85"], 0x85),
        (&["U", "efi", "ef", "uefi"], 0xef),
        (&["R", "fd"], 0xfd),
        (&["V", "8e", "lvm"], 0x8e),
        (&["!165", "freebsd", "a5"], 0xa5),
    ] {
        for name in names {
            assert_eq!(named(name), Some(PartitionType::Mbr(byte)), "{name}");
        }
    }
    for none in [
        "",
        "!",
        "!0",
        "0",
        "0x",
        "0x100",
        "!256",
        "!-1",
        "+5",
        "!+5",
        "freebsd-ufs",
        "H",
        "home",
        "zz",
        "!zz",
        "100",
    ] {
        assert_eq!(named(none), None, "{none}");
    }
}

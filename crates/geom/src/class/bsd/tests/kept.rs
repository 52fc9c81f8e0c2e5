//! Bytes that an edit leaves alone, and edits that are refused.

use super::{DIALECTS, MIB, Slice, same};
use crate::base::store::{Sparse, Store};
use crate::base::topology::Topology;
use crate::class::bsd::Bsd;
use crate::graph::{Disk, Graph};
use crate::mapping::slices::{Dialect, PartitionType};
use crate::probe::Limits;
use crate::table::scheme::{Geometry, Id, New, Scheme};
use crate::table::{Request, Rules, Table, Wanted};

/// The golden disk of that name.
fn golden(name: &str) -> Graph {
    let path = format!("{}/../../tests/disks/{name}.hex", env!("CARGO_MANIFEST_DIR"));
    let disk = Sparse::from_hexdump(&std::fs::read_to_string(path).unwrap()).unwrap();
    let topology = Topology::new(512, disk.length());
    Graph::taste(vec![Disk::new("", Box::new(disk), topology)], Limits::default())
}

/// A golden disk's label, as a provider of its own.
fn golden_slice(name: &str) -> Slice {
    let graph = golden(name);
    let id = graph
        .providers
        .iter()
        .position(|p| p.table.as_ref().is_some_and(|(class, _)| *class == "bsd"))
        .unwrap();
    let (p, mut head) = (&graph.providers[id], vec![0; 16384]);
    graph.read_at(id, &mut head, 0).unwrap();
    let mut slice = Slice::new(p.topology.length, 512, p.start.unwrap(), p.kind);
    slice.disk.put(0, &head);
    slice
}

#[test]
fn goldens_are_left_as_they_are_and_an_edit_can_be_undone_by_hand() {
    let goldens = [
        ("bsd-freebsd", "abd", 0),
        ("bsd-freebsd-absolute", "abe", 63 * 512),
        ("bsd-openbsd", "ab", 64 * 512),
        ("bsd-netbsd", "abe", 63 * 512),
        ("bsd-in-gpt", "ab", 0),
        ("bsd-big-endian", "abd", 0),
        ("bsd-parted", "ab", 0),
        ("bsd-bad-checksum", "a", 0),
    ];
    for (name, letters, origin) in goldens {
        let mut slice = golden_slice(name);
        let (first, table) = (slice.head(), slice.read().unwrap());
        assert_eq!(
            table.entries.iter().map(|e| Bsd.suffix(e)).collect::<String>(),
            letters,
            "{name}"
        );
        assert_eq!((table.origin, table.damage.len()), (origin, 0), "{name}");
        let wrong_sum = matches!(name, "bsd-bad-checksum" | "bsd-parted");
        assert_eq!(slice.apply(Bsd.render(&table, &table)).len(), usize::from(wrong_sum), "{name}");
        let whole = slice.head();

        let mut edited = table.clone();
        if name == "bsd-openbsd" {
            // The d that reaches past the slice has the rest of it, and e is elsewhere on the disk.
            assert_eq!((&table.kept, table.free().len()), (&vec![3, 4, 5], 0));
            edited.delete(2).unwrap();
            let back = slice.apply(Bsd.render(&table, &edited));
            let entries = 512 + 148;
            assert!((0..16384).all(|i| (entries + 16..entries + 32).contains(&i)
                || (648..650).contains(&i)
                || slice.head()[i] == first[i]));
            slice.apply(back);
            assert_eq!(slice.head(), first);
            continue;
        }
        if name == "bsd-parted" {
            // It says that it has three entries.
            assert!(
                slice
                    .add(&mut edited, "swap", None, None)
                    .unwrap_err()
                    .to_string()
                    .contains("all 3 entries")
            );
            edited.delete(2).unwrap();
            let back = slice.apply(Bsd.render(&table, &edited));
            same(&slice.read().unwrap(), &Table { kept: vec![3], ..edited });
            slice.apply(back);
            assert_eq!(slice.head(), whole);
            continue;
        }
        let free = table.free_index().unwrap();
        assert!(!table.kept.contains(&free) && edited.entry(free).is_none());
        let added = slice
            .add(&mut edited, "swap", None, Some(64 * 512))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let back = slice.apply(Bsd.render(&table, &edited));
        assert_eq!(
            (added, back.iter().map(|p| p.offset).collect::<Vec<_>>()),
            (free, vec![512]),
            "{name}"
        );
        let read = slice.read().unwrap();
        same(&read, &edited);
        let mut deleted = read.clone();
        deleted.delete(added).unwrap();
        slice.apply(Bsd.render(&read, &deleted));
        assert_eq!(slice.head(), whole, "{name}");
        if !wrong_sum {
            assert_eq!(whole, first, "{name}");
        }
    }
}

/// A label in the other byte order: every word of it turned round.
fn turned(label: &[u8]) -> Vec<u8> {
    let mut out = label.to_vec();
    let mut turn = |at: usize, size: usize| out[at..at + size].reverse();
    [0, 40, 44, 48, 52, 56, 60, 68, 88, 132, 140, 144].into_iter().for_each(|at| turn(at, 4));
    [4, 6, 72, 74, 136, 138].into_iter().for_each(|at| turn(at, 2));
    for entry in (148..500).step_by(16) {
        [0, 4, 8].into_iter().for_each(|at| turn(entry + at, 4));
        turn(entry + 14, 2);
    }
    sum(&mut out);
    out
}

/// Makes the checksum of a label of eight entries right.
fn sum(label: &mut [u8]) {
    label[136..138].fill(0);
    let sum = label[..148 + 16 * 8].chunks(2).fold([0, 0], |a, w| [a[0] ^ w[0], a[1] ^ w[1]]);
    label[136..138].copy_from_slice(&sum);
}

#[test]
fn byte_order_origin_and_what_else_an_entry_says_survive() {
    for origin in [0, 63, 2048] {
        for (sector, big) in [(512, false), (512, true), (4096, false), (4096, true)] {
            let at = usize::try_from(sector).unwrap();
            let mut slice = Slice::new(100 * MIB, sector, MIB, Some(PartitionType::Mbr(0xa5)));
            let mut table = slice.create(&New::default());
            slice.add(&mut table, "4.2BSD", Some(0), Some(10 * MIB)).unwrap();
            slice.add(&mut table, "swap", None, Some(10 * MIB)).unwrap();
            let created = slice.create(&New::default());
            slice.apply(Bsd.render(&created, &table));
            // As an older system left it: offsets from the start of the disk, sizes of fragments, a
            // name.
            let mut label = slice.bytes(sector, 512);
            for entry in [148, 164, 180] {
                let offset =
                    u32::from_le_bytes(label[entry + 4..entry + 8].try_into().unwrap()) + origin;
                label[entry + 4..entry + 8].copy_from_slice(&offset.to_le_bytes());
            }
            label[148 + 8..148 + 12].copy_from_slice(&2048_u32.to_le_bytes());
            (label[148 + 13], label[148 + 14]) = (8, 64);
            label[24..30].copy_from_slice(b"a disk");
            sum(&mut label);
            slice.disk.put(sector, &if big { turned(&label) } else { label.clone() });

            let old = slice.read().unwrap();
            assert_eq!(
                (old.origin, old.entries.len(), old.damage.len()),
                (u64::from(origin) * sector, 2, 0)
            );
            assert!(slice.apply(Bsd.render(&old, &old)).is_empty());
            let mut new = old.clone();
            new.delete(2).unwrap();
            new.modify(1, Bsd.kind_in(&new, "ZFS"), None).unwrap();
            slice.add(&mut new, "4.4LFS", Some(50 * MIB), Some(MIB)).unwrap();
            slice.apply(Bsd.render(&old, &new));
            same(&slice.read().unwrap(), &new);
            let got = slice.bytes(sector, 512);
            let got = if big { turned(&got) } else { got };
            let words = |n: u64| u32::try_from(n).unwrap().to_le_bytes();
            label[148 + 12] = 27;
            label[164..168].copy_from_slice(&words(MIB / sector));
            label[168..172].copy_from_slice(&words(50 * MIB / sector + u64::from(origin)));
            label[164 + 12] = 9;
            (0..512)
                .filter(|i| !(136..138).contains(i))
                .for_each(|i| assert_eq!(got[i], label[i], "{at} {big} byte {i}"));
            sum(&mut label);
            assert_eq!(got[136..138], label[136..138]);
        }
    }
}

#[test]
fn what_cannot_be_said_is_refused() {
    for dialect in DIALECTS {
        // A NetBSD label lies in a slice of its own type.
        let above = (dialect == Dialect::NetBsd).then_some(PartitionType::Mbr(0xa9));
        let slice = Slice::new(3 << 40, 512, MIB, above);
        let refused = |table: &Table, kind: &str, start, size| {
            slice.add(&mut table.clone(), kind, Some(start), Some(size)).unwrap_err().to_string()
        };
        let table = slice.create(&New { dialect: Some(dialect), ..New::default() });
        let wide = dialect == Dialect::OpenBsd;
        let end = if wide { 3 << 40 } else { u64::from(u32::MAX) * 512 - table.origin };
        assert_eq!(table.usable, 0..end, "{dialect:?}");
        assert_eq!(
            slice.add(&mut table.clone(), "4.2BSD", Some(1 << 40), Some(3 << 39)).is_ok(),
            wide,
            "{dialect:?}"
        );
        // What begins with its own data would be written over the label.
        for kind in ["MSDOS", "ext2fs", "NTFS", "unknown"] {
            assert!(
                refused(&table, kind, 0, MIB).contains("overwrite the label"),
                "{dialect:?} {kind}"
            );
            slice.add(&mut table.clone(), kind, Some(8192), Some(MIB)).unwrap();
        }
        slice.add(&mut table.clone(), "swap", Some(0), Some(MIB)).unwrap();
        let mut other = table.clone();
        slice.add(&mut other, "4.2BSD", Some(0), Some(MIB)).unwrap();
        let said = |r: Result<(), crate::table::Refusal>| r.unwrap_err().to_string();
        assert!(
            said(other.modify(1, Bsd.kind_in(&other, "MSDOS"), None))
                .contains("overwrite the label")
        );
        assert!(
            said(other.modify(1, None, Some("root".into())))
                .contains("labels are not supported by BSD")
        );
        assert!(
            said(other.modify(1, Some(PartitionType::Mbr(0xa5)), None))
                .contains("no type of a BSD label")
        );
        assert!(
            said(other.modify(1, Some(PartitionType::Bsd(dialect, 0)), None))
                .contains("delete it instead")
        );
        let own = dialect == Dialect::FreeBsd;
        assert_eq!(
            other.modify(1, Some(PartitionType::Bsd(Dialect::FreeBsd, 27)), None).is_ok(),
            own,
            "{dialect:?}"
        );
        for index in [3, if dialect == Dialect::NetBsd { 4 } else { 3 }, 17] {
            let wanted = Wanted {
                kind: PartitionType::Bsd(dialect, 7),
                place: Request::default(),
                index: Some(index),
                label: None,
                uuid: None,
                attributes: 0,
            };
            assert!(
                slice.site(|g| table.clone().add(g, wanted, Rules::Aligned)).is_err(),
                "{dialect:?} {index}"
            );
        }
    }
    let slice = Slice::new(1 << 40, 512, MIB, None);
    let create = |slice: &Slice, new: &New| {
        slice
            .site(|g| slice.probe(|p| Bsd.create(p, g, new)))
            .map(|_| ())
            .map_err(|r| r.to_string())
    };
    for (dialect, few, many) in
        [(Dialect::FreeBsd, 7, 21), (Dialect::OpenBsd, 7, 23), (Dialect::NetBsd, 7, 17)]
    {
        for entries in [few, few + 1, many - 1, many, 0, u32::MAX] {
            let good = create(
                &slice,
                &New { dialect: Some(dialect), entries: Some(entries), ..New::default() },
            )
            .is_ok();
            assert_eq!(good, entries > few && entries < many, "{dialect:?} {entries}");
        }
    }
    let openbsd = Slice { kind: Some(PartitionType::Mbr(0xa6)), ..slice.clone() };
    assert!(
        create(&openbsd, &New { dialect: Some(Dialect::FreeBsd), ..New::default() })
            .unwrap_err()
            .contains("another type first")
    );
    let large = Slice::new(3 << 40, 512, 0, None);
    // Its unused `d` at 0 tells what it is, though it ends before so large a disk does.
    assert!(create(&large, &New { dialect: Some(Dialect::NetBsd), ..New::default() }).is_ok());
    assert!(create(&slice, &New { id: Some(Id::Signature(1)), ..New::default() }).is_err());
    assert!(
        create(
            &Slice { base: 512, ..Slice::new(MIB, 4096, 0, None) },
            &New { dialect: Some(Dialect::NetBsd), ..New::default() }
        )
        .is_err()
    );
    assert!(create(&Slice::new(4096, 512, 0, None), &New::default()).is_err());
    assert!(create(&Slice::new(MIB, 16384, 0, None), &New::default()).is_err());
    let inside = Slice { kind: Some(PartitionType::Bsd(Dialect::FreeBsd, 7)), ..slice };
    assert!(create(&inside, &New::default()).is_err());
}

#[test]
fn a_damaged_label_is_recovered_or_removed_and_nothing_else() {
    for dialect in DIALECTS {
        let (byte, sector) = (if dialect == Dialect::OpenBsd { 0xa6 } else { 0xa9 }, 512);
        let kind = if dialect == Dialect::FreeBsd {
            PartitionType::Mbr(0xa5)
        } else {
            PartitionType::Mbr(byte)
        };
        let mut slice = Slice::new(100 * MIB, sector, MIB, Some(kind));
        let created = slice.create(&New { random: [3; 16], ..New::default() });
        let mut table = created.clone();
        slice.add(&mut table, "4.2BSD", None, Some(10 * MIB)).unwrap();
        slice.apply(Bsd.render(&created, &table));
        let whole = slice.head();

        // A wrong checksum is damage where the kernel looks at it; FreeBSD's does not.
        slice.disk.put(512 + 136, &[0x5a, 0xa5]);
        let bad = slice.read().unwrap();
        assert_eq!(bad.damage.len(), usize::from(dialect != Dialect::FreeBsd), "{dialect:?}");
        let free = bad.clone().delete(1).is_ok();
        assert_eq!(free, dialect == Dialect::FreeBsd);
        let good = slice.site(|g| Bsd.recover(&bad, g)).unwrap();
        slice.apply(Bsd.render(&bad, &good));
        assert_eq!(slice.head(), whole, "{dialect:?}");

        // A geometry that FreeBSD refuses.
        slice.disk.put(512 + 44, &[0; 4]);
        let bad = slice.read().unwrap();
        let good = slice.site(|g| Bsd.recover(&bad, g)).unwrap();
        slice.apply(Bsd.render(&bad, &good));
        if dialect == Dialect::FreeBsd {
            assert_eq!((bad.damage.len(), slice.head() == whole), (1, true));
        }

        // Numbers that cannot be: shown, and removed.
        slice.disk.put(512 + 40, &[1; 4]);
        let bad = slice.read().unwrap();
        assert_eq!((bad.damage.len(), bad.entries.len(), Bsd.render(&bad, &bad)), (1, 0, vec![]));
        assert!(slice.site(|g| Bsd.recover(&bad, g)).is_err());
        let back = slice.apply(Bsd.erase(&bad));
        assert!(slice.read().is_none());
        slice.apply(back);

        // A new one over it, with an older one elsewhere that would be found instead.
        let mut slice = Slice { sector: 4096, ..slice };
        let old = slice.bytes(512, 512);
        slice.disk.put(4096, &old);
        slice.disk.put(64, &old[..276]);
        let made = slice.create(&New { random: [3; 16], ..New::default() });
        let patches = Bsd.render(&made, &made);
        slice.apply(patches);
        same(&slice.read().unwrap(), &made);
        slice.apply(Bsd.erase(&slice.read().unwrap()));
        assert!(slice.read().is_none(), "{dialect:?}");
    }
}

#[test]
fn a_label_grows_with_its_slice_when_asked() {
    for dialect in DIALECTS {
        // In a longer slice, an unnamed label's d is not the disk any more: nothing then says
        // NetBSD.
        let kind = (dialect == Dialect::NetBsd).then_some(PartitionType::Mbr(0xa9));
        let mut slice = Slice::new(100 * MIB, 512, MIB, kind);
        let created = slice.create(&New {
            dialect: Some(dialect),
            geometry: Some(Geometry::ATA),
            ..New::default()
        });
        slice.apply(Bsd.render(&created, &created));
        let mut larger = Slice { disk: Sparse::new(150 * MIB), ..slice.clone() };
        larger.disk.put(0, &slice.head());
        let before = larger.read().unwrap();
        let grown = larger.site(|g| Bsd.recover(&before, g)).unwrap();
        assert_eq!(larger.apply(Bsd.render(&before, &grown)).len(), 1);
        let after = larger.read().unwrap();
        assert_eq!((after.dialect, &after.usable), (Some(dialect), &(0..150 * MIB)), "{dialect:?}");
        assert!(larger.apply(Bsd.render(&after, &after)).is_empty());
        let new = larger.create(&New {
            dialect: Some(dialect),
            geometry: Some(Geometry::ATA),
            ..New::default()
        });
        let head = larger.head();
        larger.apply(Bsd.render(&new, &new));
        assert!(larger.head() == head, "{dialect:?}: not as if made at this size");
    }
}

#[test]
fn a_slice_longer_than_a_label_can_say_is_still_where_it_begins() {
    for base in [0, 63 * 512] {
        let mut slice = Slice::new(1 << 62, 512, base, None);
        let new = New { dialect: Some(Dialect::OpenBsd), ..New::default() };
        let made = slice.create(&new);
        let patches = Bsd.render(&made, &made);
        slice.apply(patches);
        let mut table = slice.read().unwrap();
        assert_eq!((table.origin, table.damage.len()), (made.origin, 0), "{base}");

        // The largest partition that the label can say, from byte 0 of the slice.
        let before = table.clone();
        let reach = ((1 << 48) - 1) * 512 - base;
        slice.add(&mut table, "4.2BSD", Some(0), Some(reach)).unwrap();
        slice.apply(Bsd.render(&before, &table));
        let again = slice.read().unwrap();
        let placed = |t: &Table| {
            t.entries.iter().map(|e| (e.partition.start, e.partition.length)).collect::<Vec<_>>()
        };
        assert_eq!(placed(&again), placed(&table), "{base}");
    }
}

/// A `d` that other entries lie outside of is no mark of NetBSD's, whatever their types: else a
/// label whose last file system is removed would read as that dialect's.
#[test]
fn a_label_keeps_its_dialect_when_a_partition_goes() {
    let mut slice = Slice::new(64 * MIB, 512, 0, None);
    let made = slice.create(&New { dialect: Some(Dialect::FreeBsd), ..New::default() });
    slice.apply(Bsd.render(&made, &made));
    let mut label = slice.bytes(512, 512);
    // `a` has a file system, `d` is short and at 0, `e` lies behind it; both are unused.
    for (nth, start, length, fstype) in
        [(0, 4096_u32, 4096_u32, 7), (3, 0, 2, 0), (4, 65536, 1024, 0)]
    {
        let at = 148 + nth * 16;
        label[at..at + 4].copy_from_slice(&length.to_le_bytes());
        label[at + 4..at + 8].copy_from_slice(&start.to_le_bytes());
        label[at + 12] = fstype;
    }
    label[138] = 8;
    sum(&mut label);
    slice.disk.put(512, &label);
    let before = slice.read().unwrap();
    assert_eq!(before.dialect, Some(Dialect::FreeBsd));
    let mut after = before.clone();
    after.entries.retain(|entry| entry.partition.index != 1);
    slice.apply(Bsd.render(&before, &after));
    let again = slice.read().unwrap();
    let indices =
        |table: &Table| table.entries.iter().map(|entry| entry.partition.index).collect::<Vec<_>>();
    assert_eq!((again.dialect, indices(&again)), (Some(Dialect::FreeBsd), indices(&after)));
}

#[test]
fn nothing_lies_past_the_end_of_the_whole_disk_of_netbsd() {
    let mut slice = Slice::new(64 * MIB, 512, 0, None);
    let made = slice.create(&New { dialect: Some(Dialect::NetBsd), ..New::default() });
    slice.apply(Bsd.render(&made, &made));
    // The disk was half as long when its label was written.
    let mut label = slice.bytes(512, 512);
    label[148 + 3 * 16..][..4].copy_from_slice(&(32_u32 << 11).to_le_bytes());
    sum(&mut label);
    slice.disk.put(512, &label);
    let mut table = slice.read().unwrap();
    assert_eq!((table.dialect, table.usable.end), (Some(Dialect::NetBsd), 32 * MIB));
    assert!(slice.add(&mut table, "4.2BSD", Some(40 * MIB), Some(MIB)).is_err());
    slice.add(&mut table, "4.2BSD", Some(20 * MIB), None).unwrap();
    let before = slice.read().unwrap();
    slice.apply(Bsd.render(&before, &table));
    same(&slice.read().unwrap(), &table);
}

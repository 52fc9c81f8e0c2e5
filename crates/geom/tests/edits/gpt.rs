//! GPT: each edit, with power failing anywhere in it.

use crate::crash::{Cut, every_state};
use crate::disk::{add, create, found, read, wanted, written};
use trueline_geom::class::gpt::Gpt;
use trueline_geom::ondisk::Guid;
use trueline_geom::patch::Patch;
use trueline_geom::scheme::{Id, New, Scheme};
use trueline_geom::store::Sparse;
use trueline_geom::table::Table;

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
    assert!(patches.iter().all(|p| p.offset % before.sector == 0 && p.bytes.len() as u64 % before.sector == 0));
    patches
}

fn same(read: &Table, wanted: &Table) {
    assert!(read.damage.is_empty(), "{:?}", read.damage);
    let entries: Vec<_> = read.entries.iter().map(|e| trueline_geom::table::Entry { from: None, ..e.clone() }).collect();
    let expected: Vec<_> = wanted.entries.iter().map(|e| trueline_geom::table::Entry { from: None, ..e.clone() }).collect();
    assert_eq!(entries, expected);
    assert_eq!((read.id, &read.usable, read.attributes), (wanted.id, &wanted.usable, wanted.attributes));
}

/// 64 MiB with three partitions.
fn three(sector: u64, new: &New) -> Sparse {
    let blank = Sparse::new(64 * MIB);
    let before = create(&Gpt, &blank, sector, new).unwrap();
    let mut after = before.clone();
    let parts = [("efi", 1, 1), ("freebsd", 2, 10), ("linux", 20, 4)];
    add(&Gpt, &mut after, (1..).zip(parts).map(|(n, (kind, start, size))| wanted(&Gpt, kind, start * MIB, size * MIB, n)));
    written(&blank, &edit(&blank, &before, &after))
}

#[test]
fn a_new_table_is_whole_or_nothing() {
    for sector in SECTORS {
        let disk = Sparse::new(64 * MIB);
        let before = create(&Gpt, &disk, sector, &new()).unwrap();
        let mut after = before.clone();
        add(&Gpt, &mut after, [wanted(&Gpt, "efi", MIB, MIB, 1), wanted(&Gpt, "freebsd", 2 * MIB, MIB, 2)]);
        let patches = edit(&disk, &before, &after);
        assert_eq!(found(&written(&disk, &patches), sector).len(), 2);
        // One write at each end, and nothing to wait for in between.
        assert_eq!(patches.iter().map(|p| (p.what, p.after_flush)).collect::<Vec<_>>(), [("primary GPT", false), ("backup GPT", false)]);
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
        add(&Gpt, &mut after, [wanted(&Gpt, "swap", 30 * MIB, MIB, 9)]);
        after.modify(&Gpt, 3, None, Some("Daten äöü".into())).unwrap();
        after.attributes = 3;
        let patches = edit(&disk, &before, &after);
        assert_eq!(patches.iter().filter(|p| p.after_flush).count(), 1);
        assert!(every_state(&disk, &patches, sector, Cut::Sector) > 4);
        every_state(&disk, &patches, sector, Cut::Byte);
    }
}

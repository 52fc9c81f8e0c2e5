use super::*;
use crate::command::part::tables::{Bench, SECTOR};
use crate::render::samples::{golden, text};
use trueline_geom::mapping::partition::Partition;
use trueline_geom::table::{Request, Rules};

fn at(start: u64, size: u64) -> Request {
    Request { start: Some(start * SECTOR), size: Some(size * SECTOR), align: None }
}

fn drawn(bench: &Bench, width: usize, ascii: bool) -> String {
    text(|out| write(bench.shown(), &bench.site(), out, Style { width: Some(width), ascii }))
}

/// Seed 004's disk, its label off the grain and the file system back on it.
fn seed() -> (Bench, Bench) {
    let mut disk = Bench::disk("ada1", 488_397_168, 4096, (40, 488_397_127));
    disk.add("freebsd", Request { align: Some(574 * SECTOR), ..Request::default() }, Rules::Gpart);
    let mut label = disk.label(1);
    label.add("freebsd-ufs", Request { size: Some(90 << 30), ..Request::default() }, Rules::Gpart);
    label.add("freebsd-swap", at(188_743_683, 1_000_000), Rules::Gpart);
    (disk, label)
}

/// A disk with one partition off the grain, because its neighbour ends off it.
fn mixed() -> Bench {
    let mut disk = Bench::disk("nvd0", 1 << 27, 16384, (40, (1 << 27) - 41));
    disk.add("efi", at(2048, 1 << 20), Rules::Gpart);
    disk.add("freebsd-swap", at((1 << 20) + 2048, 1_000_001), Rules::Gpart);
    disk.add("freebsd-zfs", at((1 << 20) + 2048 + 1_000_001, 1 << 26), Rules::Gpart);
    disk.add("freebsd-ufs", at(100_000_000 / 2048 * 2048, 1 << 24), Rules::Gpart);
    disk.add("freebsd-vinum", at(120_000_000 / 2048 * 2048, 1 << 22), Rules::Gpart);
    disk
}

#[test]
fn misses_are_seen() {
    let (disk, label) = seed();
    let all = [
        drawn(&disk, 78, false),
        drawn(&label, 78, false),
        drawn(&mixed(), 100, false),
        drawn(&mixed(), 60, true),
    ];
    golden("part_picture.txt", &all.join("\n"));
}

#[test]
fn at_any_width_and_in_ascii() {
    let (disk, label) = seed();
    let mut crowd = Bench::disk("da0", 1 << 20, 4096, (40, (1 << 20) - 41));
    (0..120).for_each(|n| _ = crowd.add("freebsd-ufs", at(64 + n * 1001, 900), Rules::Gpart));
    let empty = Bench::disk("da1", 1 << 20, 4096, (40, (1 << 20) - 41));
    for bench in [&disk, &label, &mixed(), &crowd, &empty] {
        for width in 60..=200 {
            let text = drawn(bench, width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
        }
        assert!(drawn(bench, 80, true).is_ascii());
    }
}

#[test]
fn hostile_tables_are_drawn() {
    let mut disk = Bench::disk("x\x1b[31m", 1 << 20, 4096, (40, (1 << 20) - 41));
    disk.add("freebsd-ufs", at(40, 1), Rules::Gpart);
    for (index, start, length) in
        [(2, 0, u64::MAX), (3, u64::MAX, 1), (4, 20480, 0), (5, u64::MAX - 1, u64::MAX), (6, 1, 3)]
    {
        let entry = Entry {
            partition: Partition {
                index,
                start,
                length,
                ..disk.table.entries[0].partition.clone()
            },
            ..disk.table.entries[0].clone()
        };
        disk.table.entries.push(entry);
    }
    disk.table.usable.end = u64::MAX;
    disk.table.damage = vec!["past the end".into()];
    let text = drawn(&disk, 80, false);
    assert!(
        !text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    disk.table.length = 0;
    assert!(drawn(&disk, 60, true).is_ascii());
    (disk.table.usable.start, disk.table.usable.end) = (5, 3);
    drawn(&disk, 60, true);
}

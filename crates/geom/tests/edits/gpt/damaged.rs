//! Damaged GPTs, recovered and erased, with power failing anywhere in it.

use super::{MIB, SECTORS, edit, new, reseal, resized, three};
use crate::crash::{Cut, every_state};
use crate::disk::{bytes, found, on, read, written};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::class::gpt::Gpt;
use trueline_geom::table::Rules;
use trueline_geom::table::scheme::{New, Scheme};

/// Ways in which a table comes to need a recovery: a name, the damage, whether the disk grew.
type Damage = (&'static str, fn(&mut Sparse, u64), u64);
const DAMAGES: [Damage; 11] = [
    ("primary header gone", |d, s| d.put(s, &[0; 512]), 0),
    ("primary header bad", |d, s| d.put(s + 40, &[7]), 0),
    ("primary table bad", |d, s| d.put(2 * s + 60, &[7]), 0),
    ("backup header gone", |d, s| d.put(d.length() - s, &[0; 512]), 0),
    ("backup table bad", |d, s| d.put(d.length() - s - 16384 + 3, &[7]), 0),
    ("protection gone", |d, _| d.put(0, &[0; 512]), 0),
    (
        "protection and primary gone",
        |d, s| {
            d.put(0, &[0; 512]);
            d.put(s, &[0; 512])
        },
        0,
    ),
    ("protection begins elsewhere", |d, _| d.put(454, &[63]), 0),
    ("grown", |_, _| {}, 8 * MIB + 4096),
    ("grown, primary gone", |d, s| d.put(s, &[0; 512]), 8 * MIB),
    (
        "copies differ",
        |d, s| {
            let last = d.length() / s - 1;
            d.put(last * s + 56, &[0xd2]);
            reseal(d, s, last)
        },
        0,
    ),
];

#[test]
fn a_recovery_loses_nothing_at_any_time() {
    for sector in SECTORS {
        let whole = three(sector, &new());
        let table = read(&Gpt, &whole, sector).unwrap();
        for (name, damage, more) in DAMAGES {
            let mut disk = whole.clone();
            damage(&mut disk, sector);
            let disk = resized(&disk, disk.length() + more);
            let damaged = read(&Gpt, &disk, sector).unwrap_or_else(|| panic!("{name}"));
            assert!(!damaged.damage.is_empty(), "{name}");
            assert_eq!(damaged.entries, table.entries, "{name}");
            assert!(
                damaged.clone().delete(1).unwrap_err().advice.to_string().contains("recover"),
                "{name}"
            );
            let recovered = on(&disk, sector, |ground| Gpt.recover(&damaged, ground)).unwrap();
            assert_eq!(
                recovered.usable.end,
                disk.length() / sector * sector - 16384 - sector,
                "{name}"
            );
            let patches = edit(&disk, &damaged, &recovered);
            every_state(&disk, &patches, sector, Cut::Byte);
            let again = read(&Gpt, &written(&disk, &patches), sector).unwrap();
            assert_eq!(
                on(&disk, sector, |ground| Gpt.recover(&again, ground)).unwrap().entries,
                table.entries
            );
        }
    }
}

#[test]
fn copies_that_share_a_table_are_parted() {
    for sector in SECTORS {
        let mut disk = three(sector, &new());
        let last = disk.length() / sector - 1;
        disk.put(last * sector + 72, &2_u64.to_le_bytes());
        reseal(&mut disk, sector, last);
        let damaged = read(&Gpt, &disk, sector).unwrap();
        assert_eq!((damaged.entries.len(), damaged.damage.len()), (3, 1), "{:?}", damaged.damage);
        let recovered = on(&disk, sector, |ground| Gpt.recover(&damaged, ground)).unwrap();
        every_state(&disk, &edit(&disk, &damaged, &recovered), sector, Cut::Byte);
    }
}

#[test]
fn what_cannot_be_recovered_says_what_to_do() {
    let whole = three(512, &new());
    let recover = |disk: &Sparse| {
        let table = read(&Gpt, disk, 512).unwrap();
        on(disk, 512, |ground| Gpt.recover(&table, ground))
    };
    // Partitions end at 24 MiB.
    assert!(
        recover(&resized(&whole, 24 * MIB)).unwrap_err().advice.to_string().contains("full length")
    );
    let cut = resized(&whole, 25 * MIB);
    let table = recover(&cut).unwrap();
    every_state(&cut, &edit(&cut, &read(&Gpt, &cut, 512).unwrap(), &table), 512, Cut::Byte);
    let mut lost = whole.clone();
    lost.put(512, &[0; 512]);
    lost.put(lost.length() - 512, &[0; 512]);
    assert!(recover(&lost).unwrap_err().found.contains("neither copy"));
    assert!(read(&Gpt, &Sparse::new(64 * MIB), 512).is_none());
}

#[test]
fn a_range_on_pages_stays_on_pages() {
    let new = New { rules: Rules::Gpart, ..new() };
    let disk = resized(&three(512, &new), 100_000_000);
    let damaged = read(&Gpt, &disk, 512).unwrap();
    let recovered = on(&disk, 512, |ground| Gpt.recover(&damaged, ground)).unwrap();
    assert_eq!((recovered.usable.start, recovered.usable.end % 4096), (40 * 512, 0));
    assert!(disk.length() - recovered.usable.end < 33 * 512 + 4096 + 512);
}

#[test]
fn after_an_erasure_nothing_is_found() {
    for sector in SECTORS {
        for (name, damage, more) in
            DAMAGES.into_iter().chain([("whole", (|_, _| {}) as fn(&mut Sparse, u64), 0)])
        {
            let mut disk = three(sector, &new());
            damage(&mut disk, sector);
            let disk = resized(&disk, disk.length() + more);
            let patches = Gpt.erase(&read(&Gpt, &disk, sector).unwrap());
            every_state(&disk, &patches, sector, Cut::Byte);
            let erased = written(&disk, &patches);
            assert!(
                read(&Gpt, &erased, sector).is_none() && found(&erased, sector).is_empty(),
                "{name}"
            );
            let left = erased.runs().any(|(_, bytes)| bytes.windows(8).any(|w| w == b"EFI PART"));
            assert!(!left, "{name}: a header is left");
            assert_eq!(bytes(&erased, 0, 512), [0; 512], "{name}");
        }
    }
}

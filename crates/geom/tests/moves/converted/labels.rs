//! Labels of BSD on sectors of another size: their fields, their place, and what is in the way.

use super::made::{bsd, bytes, sparse};
use super::{TO_LARGE, TO_SMALL, converted, golden, graph, shown};
use trueline_geom::base::store::Sparse;
use trueline_geom::convert::plan;

/// First byte of the slice.
const SLICE: usize = 64 * 512;

/// The number of 32 bits at a byte of the label at `at` of the slice.
fn number(disk: &[u8], at: usize, field: usize) -> u32 {
    u32::from_le_bytes(*disk[SLICE + at + field..].first_chunk().unwrap())
}

/// Offset and size of an entry.
fn entry(disk: &[u8], at: usize, index: usize) -> (u32, u32) {
    let field = 148 + 16 * index;
    (number(disk, at, field + 4), number(disk, at, field))
}

/// XOR of the words of a label of `count` entries.
fn sum(disk: &[u8], at: usize) -> u16 {
    let label = &disk[SLICE + at..][..512];
    let count = usize::from(u16::from_le_bytes([label[138], label[139]]));
    label[..148 + 16 * count]
        .chunks(2)
        .fold(0, |sum, pair| sum ^ u16::from_le_bytes([pair[0], pair[1]]))
}

fn there(disk: &[u8]) -> Sparse {
    let first = graph(sparse(disk), 512);
    let conversion = plan(&first, first.disk(0), TO_LARGE, true).unwrap();
    converted(&sparse(disk), &conversion)
}

fn refused(disk: &[u8]) -> String {
    let first = graph(sparse(disk), 512);
    let found = plan(&first, first.disk(0), TO_LARGE, true).unwrap_err();
    found.iter().map(|o| o.refusal.found.as_str()).collect::<Vec<_>>().join("; ")
}

/// Sectors of 4096 bytes: the slice has 1923 of 512, which become 241.
#[test]
fn labels_count_the_new_sectors() {
    // The label's place after; offset of `a`; `c`; sectors of the whole, of what `d_secperunit` is.
    for (kind, at, a, c, total) in [
        (0xa5, 4096, (0, 50), (0, 241), 241),
        (0xa6, 512, (8 + 2, 50), (0, 256), 256),
        (0xa9, 4096, (8 + 2, 50), (8, 241), 256),
    ] {
        let disk = bsd(kind);
        let large = there(&disk);
        let after = bytes(&large);
        assert_eq!(number(&after, at, 0), 0x8256_4557, "{kind:x}");
        assert_eq!(number(&after, at, 40), 4096, "{kind:x}");
        assert_eq!(number(&after, at, 60), total, "{kind:x}");
        assert_eq!((entry(&after, at, 0), entry(&after, at, 2)), (a, c), "{kind:x}");
        // 267 sectors of 512 bytes are no whole number, so `b` ends with the next one.
        assert_eq!(entry(&after, at, 1).1, 34, "{kind:x}");
        assert_eq!(sum(&after, at), 0, "{kind:x}");
        if kind == 0xa6 {
            let bounds = (number(&after, at, 80), number(&after, at, 84));
            assert_eq!(bounds, (8, 8 + 241));
        } else {
            assert!(after[SLICE + 512..][..512].iter().all(|&byte| byte == 0), "{kind:x}");
        }
        // And back: all bytes but the tables', which say that `b` is longer, are the first ones.
        let second = graph(large.clone(), 4096);
        let conversion = plan(&second, second.disk(0), TO_SMALL, true).unwrap();
        let third = converted(&large, &conversion);
        assert_eq!(shown(&graph(sparse(&disk), 512)), shown(&graph(third.clone(), 512)));
        let third = bytes(&third);
        assert!(disk[512..SLICE + 512] == third[512..SLICE + 512], "{kind:x}");
        assert!(disk[SLICE + 1024..] == third[SLICE + 1024..], "{kind:x}");
        assert_eq!(number(&third, 512, 40), 512);
        assert_eq!(entry(&third, 512, 4), entry(&disk, 512, 4));
        assert_eq!(sum(&third, 512), 0);
    }
}

/// Boot code, which OpenBSD's label leaves alone, and a partition that cannot have it.
#[test]
fn what_is_where_a_label_would_be_is_not_lost() {
    for (kind, is_refused) in [(0xa5, true), (0xa6, false), (0xa9, true)] {
        let mut disk = bsd(kind);
        disk[SLICE + 4096 + 511] = 1;
        if is_refused {
            let found = refused(&disk);
            assert!(found.contains("at its byte 4096, where the label would be"), "{found}");
        } else {
            assert_eq!(bytes(&there(&disk))[SLICE + 4096 + 511], 1);
        }
    }
    // A FAT at the start of the slice has no room for it.
    let mut disk = bsd(0xa5);
    disk[SLICE + 512 + 148 + 12] = 8;
    let found = refused(&disk);
    assert!(found.contains("its a is where the label would be, at byte 4096"), "{found}");
}

/// Numbers of 32 bits, and an entry elsewhere on the disk that is off the grid.
#[test]
fn numbers_that_do_not_fit_are_refused() {
    let mut disk = bsd(0xa6);
    // `i`, of another slice.
    let entry = SLICE + 512 + 148 + 16 * 8;
    disk[entry..entry + 4].copy_from_slice(&9_u32.to_le_bytes());
    disk[entry + 4..entry + 8].copy_from_slice(&1999_u32.to_le_bytes());
    disk[entry + 12] = 8;
    let count = usize::from(disk[SLICE + 512 + 138]);
    assert_eq!(count, 16);
    let reseal = |disk: &mut [u8]| {
        let wrong = sum(disk, 512);
        let field = SLICE + 512 + 136;
        let now = u16::from_le_bytes([disk[field], disk[field + 1]]) ^ wrong;
        disk[field..field + 2].copy_from_slice(&now.to_le_bytes());
    };
    reseal(&mut disk);
    let found = refused(&disk);
    assert!(found.contains("i begins at byte 1023488 in its label's count, off 4096"), "{found}");
    disk[entry + 4..entry + 8].copy_from_slice(&2000_u32.to_le_bytes());
    reseal(&mut disk);
    let after = bytes(&there(&disk));
    assert_eq!(self::entry(&after, 512, 8), (250, 2));
}

/// The frozen disks have labels of all three systems; those that begin on the grid are converted.
#[test]
fn frozen_labels_are_converted() {
    let mut converted = Vec::new();
    for (name, disk) in golden().into_iter().filter(|(name, _)| name.starts_with("bsd-")) {
        let first = graph(disk, 512);
        if plan(&first, first.disk(0), TO_LARGE, true).is_ok() {
            converted.push(name);
        }
    }
    let wanted = ["bsd-bad-checksum", "bsd-big-endian", "bsd-netbsd-bare", "bsd-parted"];
    assert_eq!(converted, wanted);
}

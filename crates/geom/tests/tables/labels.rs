//! Labels of BSD systems.

use super::*;

/// A label in the given byte order; entries are (letter, fstype, size, offset).
fn label(
    big: bool,
    version: u16,
    count: u16,
    sector: u32,
    entries: &[(u8, u8, u64, u64)],
) -> Vec<u8> {
    let mut words = vec![0u16; 256];
    let mut put = |at: usize, value: u32| {
        let (high, low) =
            (u16::try_from(value >> 16).unwrap(), u16::try_from(value & 0xffff).unwrap());
        let (first, second) = if big { (high, low) } else { (low, high) };
        (words[at / 2], words[at / 2 + 1]) = (first, second);
    };
    for (at, value) in [(0, 0x8256_4557), (40, sector), (44, 63), (48, 16), (132, 0x8256_4557)] {
        put(at, value);
    }
    let low = |n: u64| u32::try_from(n & 0xffff_ffff).unwrap();
    for (letter, _, size, offset) in entries {
        let at = 148 + 16 * usize::from(letter - b'a');
        put(at, low(*size));
        put(at + 4, low(*offset));
    }
    let high = |n: u64| u16::try_from(n >> 32).unwrap();
    for (letter, _, size, offset) in entries {
        let at = 148 + 16 * usize::from(letter - b'a');
        (words[at / 2 + 4], words[at / 2 + 5]) = (high(*offset), high(*size));
    }
    (words[114 / 2], words[138 / 2]) = (version, count);
    let mut bytes: Vec<u8> =
        words.iter().flat_map(|w| if big { w.to_be_bytes() } else { w.to_le_bytes() }).collect();
    for (letter, fstype, ..) in entries {
        bytes[148 + 16 * usize::from(letter - b'a') + 12] = *fstype;
    }
    let sum = bytes[..148 + 16 * usize::from(count)]
        .chunks(2)
        .fold([0, 0], |s, w| [s[0] ^ w[0], s[1] ^ w[1]]);
    bytes[136..138].copy_from_slice(&sum);
    bytes
}

/// Seed 004's ada1s1: the label that gpart wrote, checksum and all.
#[test]
fn the_published_label_is_whole() {
    let mut raw = [0; 512];
    let fields: [(usize, &[u8]); 13] = [
        (0, b"WEV\x82"),
        (40, b"\0\x02"),
        (44, b"\x3f"),
        (48, b"\x10"),
        (52, b"\xa8\x64\x07"),
        (56, b"\xf0\x03"),
        (60, b"\x20\x59\x1c\x1d"),
        (72, b"\x10\x0e"),
        (132, b"WEV\x82\x2f\x40\x08\0\0\x20"),
        (148, b"\0\0\x40\x0b"),
        (160, b"\x07"),
        (180, b"\x20\x59\x1c\x1d"),
        (511, b"\0"),
    ];
    fields.iter().for_each(|(at, bytes)| raw[*at..at + bytes.len()].copy_from_slice(bytes));
    let mut d = disk(488_397_088);
    d.put(512, &raw);
    let g = taste(&d);
    assert_eq!((tree(&g), findings(&g).len()), (vec!["a bsd 0 188743680".to_string()], 0));
    assert_eq!(g.providers[1].kind, Some(PartitionType::Bsd(Dialect::FreeBsd, 7)));
    d.put(512 + 72, b"\x11");
    let g = taste(&d);
    assert_eq!((tree(&g).len(), rules(&g)), (1, vec![("TL0022", Severity::Warning)]));
    assert!(
        findings(&g)[0].message.contains("checksum is 402f, computed 402e"),
        "{:?}",
        findings(&g)
    );
}

/// A label in an MBR slice of `kind` at sector 64.
fn in_slice(kind: u8, label: &[u8]) -> Graph {
    let mut d = disk(100_000);
    mbr(&mut d, 0, &[(kind, 64, 50_000)]);
    d.put(65 * 512, label);
    taste(&d)
}

#[test]
fn offsets_count_from_where_the_dialect_says() {
    // FreeBSD: from `c`, be that 0 or the slice's start.
    for base in [0, 64] {
        let g = in_slice(
            0xa5,
            &label(false, 0, 8, 512, &[(b'a', 7, 1000, base + 16), (b'c', 0, 50_000, base)]),
        );
        assert_eq!((tree(&g)[1].as_str(), findings(&g).len()), ("s1a bsd 80 1000", 0));
    }
    // OpenBSD: from the start of the disk; what is elsewhere on it is not this slice's.
    let open = [(b'a', 7, 1000, 80), (b'c', 0, 100_000, 0), (b'i', 8, 500, 60_000)];
    let g = in_slice(0xa6, &label(false, 1, 16, 512, &open));
    assert_eq!(
        (tree(&g)[1..].to_vec(), rules(&g)),
        (vec!["s1a bsd 80 1000".to_string()], vec![("TL0009", Severity::Note)])
    );
    // NetBSD: the same, with `c` for the slice and `d` for the disk; and an old label of the other
    // byte order.
    let net =
        [(b'a', 7, 1000, 80), (b'c', 0, 50_000, 64), (b'd', 0, 100_000, 0), (b'e', 7, 100, 49_900)];
    for big in [false, true] {
        let g = in_slice(0xa9, &label(big, 0, 16, 512, &net));
        assert_eq!(
            (tree(&g)[1..].to_vec(), findings(&g).len()),
            (vec!["s1a bsd 80 1000".to_string(), "s1e bsd 49900 100".into()], 0)
        );
    }
}

#[test]
fn an_image_of_the_slice_alone_is_read_by_its_own_bounds() {
    let net = [(b'a', 7, 1000, 80), (b'c', 0, 50_000, 64), (b'd', 0, 100_000, 0)];
    let mut d = disk(50_000);
    d.put(512, &label(false, 0, 16, 512, &net));
    assert_eq!(tree(&taste(&d)), ["a bsd 16 1000"]);
    assert_eq!(tree(&taste_as(&d, 512, None)), ["a bsd 16 1000"]);
}

/// FreeBSD's `a` may be all of the disk: what stands at the disk's front is then told once, not
/// again for `a`.
#[test]
fn an_empty_table_is_not_told_of_twice() {
    let mut d = disk(50_000);
    mbr(&mut d, 0, &[]);
    d.put(512, &label(false, 0, 8, 512, &[(b'a', 7, 50_000, 0), (b'c', 0, 50_000, 0)]));
    d.put(1024 + 56, b"\x53\xef");
    let g = taste(&d);
    assert_eq!(
        (tree(&g), rules(&g)),
        (vec!["a bsd 0 50000".to_string()], vec![("TL0013", Severity::Warning)])
    );
}

#[test]
fn openbsd_counts_in_48_bits() {
    let mut d = disk(1 << 34);
    d.put(
        512,
        &label(false, 1, 16, 512, &[(b'a', 7, 1 << 33, (1 << 33) - 64), (b'c', 0, 1 << 34, 0)]),
    );
    let g = taste(&d);
    assert_eq!(tree(&g), [format!("a bsd {} {}", (1u64 << 33) - 64, 1u64 << 33)]);
    // It names no bounds of its own.
    assert_eq!(g.providers[0].slices().unwrap().usable, 0..1 << 43);
}

#[test]
fn labels_that_cannot_be_read() {
    let entries = [(b'a', 7, 1000, 16), (b'c', 0, 50_000, 0)];
    let mut d = disk(50_000);
    d.put(4096, &label(false, 0, 8, 4096, &entries));
    assert_eq!((tree(&taste(&d)).len(), rules(&taste(&d))), (0, vec![("TL0007", Severity::Error)]));
    // In LBA 2 it belongs to nothing.
    let mut d = disk(50_000);
    d.put(1024, &label(false, 0, 8, 512, &entries));
    assert_eq!((tree(&taste(&d)).len(), rules(&taste(&d)).len()), (0, 0));
    let mut d = disk(50_000);
    d.put(512, &label(false, 0, 8, 512, &entries));
    assert_eq!(rules(&taste_as(&d, 4096, Some(0))), [("TL0007", Severity::Error)]);
    d.put(512, &label(false, 0, 22, 77, &entries));
    assert_eq!(rules(&taste(&d)), [("TL0022", Severity::Error)]);
    d.put(
        512,
        &label(
            false,
            0,
            8,
            512,
            &[(b'a', 7, 1000, 16), (b'b', 7, 1000, 49_500), (b'd', 7, 10, 1010)],
        ),
    );
    let g = taste(&d);
    assert_eq!(
        (tree(&g).len(), rules(&g)),
        (2, vec![("TL0009", Severity::Error), ("TL0010", Severity::Error)])
    );
}

#[test]
fn dragonfly_counts_in_bytes() {
    let mut raw = vec![0; 712 + 64 * 16];
    for (at, value) in [
        (512, 0xc446_4c59_u64),
        (524, 16),
        (560, 1 << 20),
        (568, 40_000 * 512),
        (712 + 64, 1 << 20),
        (712 + 72, 1 << 21),
    ] {
        raw[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
    raw[712 + 64 + 16] = 22;
    let crc = crc32fast::hash(&raw[512..]);
    raw[516..520].copy_from_slice(&crc.to_le_bytes());
    let mut d = disk(50_000);
    d.put(0, &raw);
    let g = taste(&d);
    assert_eq!((tree(&g), findings(&g).len()), (vec!["b bsd64 2048 4096".to_string()], 0));
    assert_eq!(g.providers[0].slices().unwrap().usable, 1 << 20..40_000 * 512);
    d.put(700, b"X");
    assert_eq!((tree(&taste(&d)).len(), rules(&taste(&d))), (0, vec![("TL0022", Severity::Error)]));
}

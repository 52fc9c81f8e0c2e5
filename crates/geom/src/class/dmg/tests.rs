//! Tests of images made by hand; those that QEMU reads too are in
//! `crates/cli/tests/disks/containers/dmg.rs`.

use super::super::container::tests::{findings, opened, read, reason, survives};
use crate::base::error::Errno;
use crate::base::store::Sparse;
use crate::format::tests::disk;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

fn file(bytes: &[u8]) -> Sparse {
    disk(bytes.len() as u64, &[(0, bytes)])
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=three.len()].copy_from_slice(three);
        let group = u32::from_be_bytes(group);
        for nth in 0..4 {
            let digit = usize::try_from(group >> (18 - 6 * nth) & 63).expect("a digit");
            text.push(if nth > three.len() { '=' } else { DIGITS[digit].into() });
        }
    }
    text
}

/// A chunk: type, first sector, sectors, place, bytes stored.
type Entry = (u32, u64, u64, u64, u64);

/// A table that begins at sector `first`.
fn table(first: u64, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = b"mish".to_vec();
    bytes.extend(1_u32.to_be_bytes());
    bytes.extend(first.to_be_bytes());
    bytes.resize(200, 0);
    bytes.extend(u32::try_from(entries.len()).expect("few").to_be_bytes());
    for &(kind, sector, count, at, stored) in entries {
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0; 4]);
        for number in [sector, count, at, stored] {
            bytes.extend(number.to_be_bytes());
        }
    }
    bytes
}

/// A file with this data fork, behind `before` bytes of another thing, and these tables.
fn image(before: usize, fork: &[u8], tables: &[Vec<u8>], sectors: u64) -> Vec<u8> {
    let mut bytes = vec![b'x'; before];
    bytes.extend_from_slice(fork);
    let list: String = tables
        .iter()
        .map(|table| format!("<dict><key>Data</key><data>{}</data></dict>\n", base64(table)))
        .collect();
    let xml = format!(
        "<plist><dict><key>resource-fork</key><dict><key>blkx</key>\n<array>{list}</array></dict></dict></plist>"
    );
    let at = bytes.len() as u64;
    bytes.extend_from_slice(xml.as_bytes());
    let mut trailer = vec![0; 512];
    trailer[..4].copy_from_slice(b"koly");
    for (at, number) in [(4, 4_u32), (8, 512), (12, 1), (56, 1), (60, 1)] {
        trailer[at..at + 4].copy_from_slice(&number.to_be_bytes());
    }
    let fork = (24, before as u64);
    for (at, number) in [fork, (216, at), (224, xml.len() as u64), (492, sectors)] {
        trailer[at..at + 8].copy_from_slice(&number.to_be_bytes());
    }
    bytes.extend(trailer);
    bytes
}

const ZLIB: u32 = 0x8000_0005;
/// A way of packing that nothing knows.
const OTHER: u32 = 0x8000_0009;
const END: (u32, u64, u64, u64, u64) = (0xffff_ffff, 0, 0, 0, 0);

/// Eight sectors: two packed, one plain, one of zeros, two that are ignored, two packed in another
/// way; in two tables, the later one first.
fn whole() -> Vec<u8> {
    let packed = zlib(&[b'a'; 1024]);
    let stored = packed.len() as u64;
    let fork = [packed.as_slice(), &[b'b'; 512], &[b'?'; 40]].concat();
    let first = [
        (ZLIB, 0, 2, 0, stored),
        (0x7fff_fffe, 2, 0, 0, 0),
        (1, 2, 1, stored, 512),
        (0, 3, 1, 0, 0),
        END,
        (77, 0, 9, 0, 0),
    ];
    let second = [(OTHER, 2, 2, stored + 512, 40), (2, 0, 2, 0, 0), END];
    image(7, &fork, &[table(4, &second), table(0, &first)], 8)
}

#[test]
fn chunks_are_the_disk() {
    let it = opened(file(&whole()));
    let expected = [&[b'a'; 1024][..], &[b'b'; 512], &[0; 1536]].concat();
    assert_eq!(read(&it, 0, 3072), Ok(expected));
    assert_eq!(read(&it, 1000, 100), Ok([[b'a'; 24].as_slice(), &[b'b'; 76]].concat()));
    // What is packed in a way that is not read was not looked at, and is no damage.
    assert_eq!(read(&it, 3072, 512), Err(Errno::Packed));
    assert_eq!(findings(&it), ["TL0019"]);
    let message = &it.0.providers[0].findings[0].message;
    assert!(
        message.contains("of its 5 chunks") && message.contains("1 by an unknown way"),
        "{message}"
    );
}

/// Sectors that no table has are not taken for zeros.
#[test]
fn gaps_are_not_looked_at() {
    let it = opened(file(&image(0, &[], &[table(1, &[(0, 1, 1, 0, 0)])], 4)));
    assert_eq!(read(&it, 0, 512), Err(Errno::Packed));
    assert_eq!(read(&it, 1024, 512), Ok(vec![0; 512]));
    assert_eq!(read(&it, 1536, 512), Err(Errno::Packed));
}

#[test]
fn what_cannot_be_true_is_unknown() {
    let trailer = whole().len() - 512;
    for (at, number, part) in [
        (4, 3_u64, "version"),
        (60, 2, "segments"),
        (224, 0, "resource fork"),
        (224, (8 << 20) + 1, "larger"),
        (216, u64::MAX, "cut off"),
        (216, 1 << 40, "cut off"),
        (216, 0, "property list"),
        (24, u64::MAX, "size that it says"),
        (492, 0, "size that it says"),
        (492, 7, "size that it says"),
        (492, u64::MAX, "size that it says"),
    ] {
        let mut bad = whole();
        let at = trailer + at;
        let bytes = number.to_be_bytes();
        let field = if part == "version" || part == "segments" { &bytes[4..] } else { &bytes };
        bad[at..at + field.len()].copy_from_slice(field);
        let why = reason(file(&bad));
        assert!(why.is_some_and(|why| why.contains(part)), "{part}: {why:?}");
    }
    let cut = table(0, &[(0, 0, 4, 0, 0), END]);
    let most = u64::MAX;
    for (tables, part) in [
        (vec![cut[..200].to_vec()], "table of its chunks"),
        (vec![cut[..cut.len() - 1].to_vec()], "table of its chunks"),
        (vec![[b"mash", &cut[4..]].concat()], "table of its chunks"),
        (vec![table(0, &[(0, 0, 3, 0, 0), (0, 2, 2, 0, 0)])], "size that it says"),
        (vec![table(most, &[(0, 1, 1, 0, 0)])], "size that it says"),
        (vec![table(0, &[(0, most, 1, 0, 0)])], "size that it says"),
        (vec![table(0, &[(0, 0, most, 0, 0)])], "size that it says"),
        (vec![table(0, &[(0, 0, 5, 0, 0)])], "size that it says"),
        (vec![table(0, &[(1, 0, 1, 0, 511)])], "size that it says"),
        (vec![table(0, &[(ZLIB, 0, 1, most, 1)]); 2], "size that it says"),
    ] {
        let why = reason(file(&image(7, &[], &tables, 4)));
        assert!(why.is_some_and(|why| why.contains(part)), "{part}: {why:?}");
    }
    survives(&whole(), trailer..trailer + 512);
}

/// A chunk that is larger than is unpacked, and one whose stream is none.
#[test]
fn chunks_that_cannot_be_unpacked_are_not_read() {
    let sectors = (16 << 20) / 512 + 1;
    let large = table(0, &[(ZLIB, 0, sectors, 0, 40)]);
    let it = opened(file(&image(0, &[0; 40], &[large], sectors)));
    assert_eq!(read(&it, 0, 512), Err(Errno::Packed));
    assert_eq!(findings(&it), ["TL0019"]);
    for stored in [40, 0, 33 << 20] {
        let bad = table(0, &[(ZLIB, 0, 2, 0, stored)]);
        let it = opened(file(&image(0, &[b'x'; 40], &[bad], 2)));
        assert!(read(&it, 0, 512).is_err(), "{stored}");
    }
    // Behind the end of the file.
    for kind in [1, ZLIB] {
        let it = opened(file(&image(0, &[], &[table(0, &[(kind, 0, 1, 1 << 40, 512)])], 1)));
        assert_eq!(read(&it, 0, 512), Err(Errno::Io), "{kind}");
    }
}

#[test]
fn many_chunks_fit_the_bounds() {
    let entries: Vec<Entry> = (0..100_000).map(|nth| (ZLIB, nth, 1, nth, 1)).collect();
    let many = image(0, &[0; 512], &[table(0, &entries)], 100_000);
    let (graph, contents) = opened(file(&many));
    assert_eq!(graph.providers[contents.expect("a disk")].topology.length, 51_200_000);
}

//! Tests of VHDs made by hand: places, refusals, the two footers, hostile numbers.

use super::super::container::tests::{findings, opened, opened_on, read, reason};
use super::*;
use crate::base::error::Errno;
use crate::base::store::Sparse;
use crate::format::tests::{disk, recognised};
use crate::graph::Graph;
use zerocopy::FromBytes;

/// Bytes of a block, and of what stands before the first one.
const BLOCK: usize = 4096;
const HEAD: usize = 2048;

/// A footer of a disk of `size` bytes.
fn footer_of(kind: u32, size: u64, creator: &[u8; 4]) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..8].copy_from_slice(b"conectix");
    bytes[12..16].copy_from_slice(&0x0001_0000_u32.to_be_bytes());
    bytes[16..24].copy_from_slice(&512_u64.to_be_bytes());
    bytes[28..32].copy_from_slice(creator);
    bytes[48..56].copy_from_slice(&size.to_be_bytes());
    bytes[60..64].copy_from_slice(&kind.to_be_bytes());
    seal(&mut bytes, 64);
    bytes
}

fn seal(bytes: &mut [u8], at: usize) {
    bytes[at..at + 4].fill(0);
    let checksum = sum(bytes, 0);
    bytes[at..at + 4].copy_from_slice(&checksum.to_be_bytes());
}

/// A disk of four blocks of which number 1 is in the file: its sectors 0 and 2 are, by the bitmap.
/// Sector `n` of a block is full of `n + 1`.
fn image(kind: u32) -> Vec<u8> {
    let mut bytes = footer_of(kind, 4 * BLOCK as u64, b"win ");
    let mut header = vec![0; 1024];
    header[..8].copy_from_slice(b"cxsparse");
    header[16..24].copy_from_slice(&1536_u64.to_be_bytes());
    header[28..32].copy_from_slice(&4_u32.to_be_bytes());
    header[32..36].copy_from_slice(&4096_u32.to_be_bytes());
    header[64..68].copy_from_slice(&[0, b'a', 0, b'b']);
    seal(&mut header, 36);
    bytes.extend(header);
    bytes.resize(HEAD, 0xff);
    bytes[1540..1544].copy_from_slice(&4_u32.to_be_bytes());
    let mut bitmap = [0; 512];
    bitmap[0] = 0b1010_0000;
    bytes.extend(bitmap);
    (1..=8).for_each(|n| bytes.extend([n; 512]));
    bytes.extend_from_within(..512);
    bytes
}

fn file(bytes: &[u8]) -> Sparse {
    disk(bytes.len() as u64, &[(0, bytes)])
}

fn rules(graph: &Graph) -> Vec<&'static str> {
    graph.providers[0].findings.iter().map(|finding| finding.rule.id).collect()
}

fn detail(bytes: &[u8], name: &str) -> Option<String> {
    let sign = recognised(&Vhd, file(bytes))?;
    sign.details.into_iter().find(|(own, _)| *own == name).map(|(_, value)| value)
}

#[test]
fn sectors_that_the_bitmap_has_not_are_zeros_or_the_parents() {
    let dynamic = opened(file(&image(DYNAMIC)));
    let expected = [[0; 512], [1; 512], [0; 512], [3; 512], [0; 512]].concat();
    assert_eq!(read(&dynamic, 4096 - 512, 5 * 512), Ok(expected));
    assert_eq!(read(&dynamic, 3 * 4096, 4096), Ok(vec![0; 4096]));
    assert!(rules(&dynamic.0).is_empty());

    let mut base = image(DYNAMIC);
    // Sector 1 of its block, and no more.
    base[HEAD] = 0b0100_0000;
    (base[68], base[HEAD + 512 + BLOCK + 68]) = (9, 9);
    for at in [0, HEAD + 512 + BLOCK] {
        seal(&mut base[at..at + 512], 64);
    }
    let mut child = image(DIFFERENCING);
    child[512 + 40] = 9;
    seal(&mut child[512..1536], 36);
    let both = opened_on(file(&child), "ab", file(&base));
    let expected = [[0; 512], [1; 512], [2; 512], [3; 512], [0; 512]].concat();
    assert_eq!(read(&both, 4096 - 512, 5 * 512), Ok(expected));
    assert_eq!(findings(&both), [] as [&str; 0]);
    base[68] = 8;
    let end = HEAD + 512 + BLOCK;
    base[end + 68] = 8;
    for at in [0, end] {
        seal(&mut base[at..at + 512], 64);
    }
    assert_eq!(findings(&opened_on(file(&child), "ab", file(&base))), ["TL0019"]);

    // A bare disk of that name is none that a child was made on.
    let bare = opened_on(file(&child), "ab", file(&[7; 4 * BLOCK]));
    assert_eq!(findings(&bare), ["TL0019"]);

    let differencing = opened(file(&image(DIFFERENCING)));
    assert_eq!(read(&differencing, 4096, 512), Ok(vec![1; 512]));
    assert_eq!(read(&differencing, 4096 + 1024, 512), Ok(vec![3; 512]));
    for absent in [0, 4096 + 512, 4096 + 3 * 512, 3 * 4096] {
        assert_eq!(read(&differencing, absent, 512), Err(Errno::Io), "{absent}");
    }
    assert_eq!(findings(&differencing), ["TL0019"]);
    assert_eq!(detail(&image(DIFFERENCING), "parent").as_deref(), Some("ab"));
}

#[test]
fn either_footer_is_enough() {
    let whole = image(DYNAMIC);
    for (at, what) in [(100, "copy of its footer at byte 0"), (whole.len() - 100, "at the end")] {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        let found = opened(file(&damaged));
        assert_eq!(read(&found, 4096, 512), Ok(vec![1; 512]));
        assert_eq!(rules(&found.0), ["TL0022"]);
        assert!(found.0.providers[0].findings[0].message.contains(what));
    }
    let mut neither = whole;
    let end = neither.len() - 100;
    (neither[100], neither[end]) = (1, 1);
    assert!(recognised(&Vhd, file(&neither)).is_none());
}

/// A file without its end has its copy of the footer, and lacks the end of a block.
#[test]
fn a_file_that_was_cut_has_a_finding_and_reads_up_to_there() {
    let mut cut = image(DYNAMIC);
    cut.truncate(HEAD + 512 + 1536);
    let found = opened(file(&cut));
    assert_eq!(rules(&found.0), ["TL0022", "TL0015"]);
    assert_eq!(read(&found, 4096, 512), Ok(vec![1; 512]));
    cut.truncate(HEAD + 512 + 1024);
    assert_eq!(read(&opened(file(&cut)), 4096 + 1024, 512), Err(Errno::Io));
}

#[test]
fn what_cannot_be_true_is_refused() {
    let with = |at: usize, bytes: &[u8]| {
        let mut image = image(DYNAMIC);
        image[512 + at..512 + at + bytes.len()].copy_from_slice(bytes);
        seal(&mut image[512..1536], 36);
        reason(file(&image))
    };
    assert_eq!(with(0, b"c"), None);
    let cases: [(usize, &[u8], &str); 8] = [
        (0, b"x", "damaged"),
        (16, &[0xff; 8], "past the end"),
        (16, &8000_u64.to_be_bytes(), "past the end"),
        (28, &3_u32.to_be_bytes(), "too small"),
        (28, &u32::MAX.to_be_bytes(), "past the end"),
        (32, &256_u32.to_be_bytes(), "size of its blocks"),
        (32, &4097_u32.to_be_bytes(), "size of its blocks"),
        (32, &0_u32.to_be_bytes(), "size of its blocks"),
    ];
    for (at, bytes, expected) in cases {
        let reason = with(at, bytes).unwrap_or_default();
        assert!(reason.contains(expected), "{at}: {reason}");
    }
    let mut image = image(DYNAMIC);
    image[512 + 100] ^= 1;
    assert_eq!(reason(file(&image)), Some("its header is damaged"));
    // The format says why; a refusal of the class would need a finding of its own.
    assert_eq!(crate::class::tests::read(&Vhd, file(&image), None), None);
    for (kind, size) in [(DYNAMIC, 0), (DYNAMIC, u64::MAX), (9, 4096)] {
        let footer = footer_of(kind, size, b"win ");
        let end = image.len() - 512;
        image[..512].copy_from_slice(&footer);
        image[end..].copy_from_slice(&footer);
        assert!(reason(file(&image)).is_some(), "{kind} {size}");
    }
}

/// Entries that lead to the footer, or past the end of the file.
#[test]
fn blocks_at_impossible_places_are_not_read() {
    for entry in [0, 1 << 20, u32::MAX - 1] {
        let mut image = image(DYNAMIC);
        image[1540..1544].copy_from_slice(&u32::to_be_bytes(entry));
        assert_eq!(read(&opened(file(&image)), 4096, 512), Err(Errno::Io), "{entry}");
    }
}

#[test]
fn the_creator_decides_what_says_the_size() {
    let footer = |creator: &[u8; 4], geometry: [u8; 4]| {
        let mut bytes = footer_of(FIXED, 1 << 20, creator);
        bytes[56..60].copy_from_slice(&geometry);
        let footer = Footer::read_from_bytes(&bytes).expect("512 bytes");
        (footer.size(), footer.creator())
    };
    let by_geometry = 10 * 4 * 17 * 512;
    for (creator, name, is_by_size) in [
        (b"qemu", "QEMU", false),
        (b"vpc ", "Virtual PC", false),
        (b"abcd", "abcd", false),
        (b"qem2", "QEMU", true),
        (b"win ", "Windows", true),
        (b"vbox", "VirtualBox", true),
        (b"d2v\0", "Disk2vhd", true),
        (b"wa\0\0", "Azure", true),
    ] {
        let (size, found) = footer(creator, [0, 10, 4, 17]);
        assert_eq!(
            (size, found.as_deref()),
            (if is_by_size { 1 << 20 } else { by_geometry }, Some(name))
        );
        assert_eq!(footer(creator, LARGEST_GEOMETRY).0, 1 << 20);
        assert_eq!(footer(creator, [0; 4]).0, 1 << 20);
    }
}

/// `Alignment` of `Get-VHD`: every block and the length of the file on 4096 bytes.
#[test]
fn alignment_is_that_of_windows() {
    // Blocks begin at 2048 + 512.
    assert_eq!(detail(&image(DYNAMIC), "alignment").as_deref(), Some("0"));
    let mut moved = image(DYNAMIC);
    let (block, end) = (moved.split_off(HEAD), 8192 - 512);
    moved.resize(4096 - 512, 0);
    moved.extend(&block[..512 + BLOCK]);
    moved[1540..1544].copy_from_slice(&7_u32.to_be_bytes());
    let footer = moved[..512].to_vec();
    assert_eq!(moved.len(), end + 512);
    let unaligned = [moved.clone(), footer.clone()].concat();
    assert_eq!(detail(&unaligned, "alignment").as_deref(), Some("0"));
    moved.resize(8192 + 4096 - 512, 0);
    let aligned = [moved, footer].concat();
    assert_eq!(detail(&aligned, "alignment").as_deref(), Some("1"));
    assert_eq!(read(&opened(file(&aligned)), 4096, 512), Ok(vec![1; 512]));
}

#[test]
fn a_fixed_disk_is_the_file_before_its_footer() {
    let mut bytes = vec![7; 8192];
    bytes.extend(footer_of(FIXED, 8192, b"win "));
    let found = opened(file(&bytes));
    let contents = &found.0.providers[found.1.expect("a disk in it")];
    assert_eq!((contents.start, contents.topology.length), (Some(0), 8192));
    assert_eq!(contents.route().medium(), Some(0));
    assert_eq!(read(&found, 8000, 192), Ok(vec![7; 192]));
    // One that is larger than what is left of it.
    bytes.drain(..4096);
    let found = opened(file(&bytes));
    assert_eq!(found.0.providers[found.1.expect("a disk in it")].topology.length, 4096);
    assert_eq!(recognised(&Vhd, file(&bytes)).and_then(|sign| sign.size), Some(8192 + 512));
    assert_eq!(
        reason(file(&footer_of(FIXED, 0, b"win "))),
        Some("it has no content before its footer")
    );
}

#[test]
fn hostile_numbers_are_survived() {
    let whole = image(DIFFERENCING);
    for at in (0..HEAD).step_by(4) {
        for number in [0, 1, 0x0101_0101, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
            let mut hostile = whole.clone();
            hostile[at..at + 4].copy_from_slice(&u32::to_be_bytes(number));
            seal(&mut hostile[..512], 64);
            seal(&mut hostile[512..1536], 36);
            let end = hostile.len() - 512;
            hostile.copy_within(..512, end);
            for length in [whole.len(), whole.len() - 512, at + 4] {
                let found = opened(disk(length as u64, &[(0, &hostile)]));
                let Some(id) = found.1 else { continue };
                let size = found.0.providers[id].topology.length;
                for offset in [0, size / 2, size.saturating_sub(512)] {
                    let _ = found.0.read_at(id, &mut [0; 512], offset);
                }
            }
        }
    }
}

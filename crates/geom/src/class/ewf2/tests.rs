//! Tests of files made by hand; those that libewf's `ewfacquire` makes are in
//! `crates/cli/tests/disks/containers/ewf.rs`.

use super::super::container::tests::{findings, opened, opened_on, read, reason, survives};
use super::super::ewf::segment::adler32;
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

fn padded(bytes: &mut Vec<u8>) -> u32 {
    let padding = bytes.len().next_multiple_of(16) - bytes.len();
    bytes.resize(bytes.len() + padding, 0);
    u32::try_from(padding).expect("less than 16")
}

/// A file of which sections are added, each with its descriptor behind it.
struct Made {
    bytes: Vec<u8>,
    /// Place of the last descriptor.
    last: u64,
    /// Flags of data of the sections that follow.
    flags: u32,
}

impl Made {
    fn new(number: u32, method: u16) -> Made {
        let mut bytes = b"EVF2\x0d\x0a\x81\0\x02\x01".to_vec();
        bytes.extend(method.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.extend([0x5e; 16]);
        Made { bytes, last: 0, flags: 0 }
    }

    fn section(&mut self, kind: u32, data: &[u8]) {
        let mut data = data.to_vec();
        let padding = padded(&mut data);
        let size = data.len() as u64;
        self.bytes.extend(data);
        let mut descriptor = kind.to_le_bytes().to_vec();
        descriptor.extend(self.flags.to_le_bytes());
        descriptor.extend(self.last.to_le_bytes());
        descriptor.extend(size.to_le_bytes());
        descriptor.extend(64_u32.to_le_bytes());
        descriptor.extend(padding.to_le_bytes());
        descriptor.resize(60, 0);
        descriptor.extend(adler32(&descriptor).to_le_bytes());
        self.last = self.bytes.len() as u64;
        self.bytes.extend(descriptor);
    }

    fn text(&mut self, kind: u32, tags: &str, values: &str) {
        let text = format!("\u{feff}1\nmain\n{tags}\n{values}\n\n");
        let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        self.section(kind, &zlib(&text));
    }

    /// A disk of so many sectors of 512 bytes, so many to a chunk.
    fn sizes(&mut self, sectors: &str, of_chunk: &str) {
        self.text(1, "sn\tts\tdt\tbp\tph", &format!("x\t{sectors}\tf\t512\t1"));
        self.text(2, "nm\ttb\tsb\tgr", &format!("name\t3\t{of_chunk}\t64"));
    }

    fn table(&mut self, first: u64, entries: &[(u64, u32, u32)]) {
        let mut table = first.to_le_bytes().to_vec();
        table.extend(u32::try_from(entries.len()).expect("few").to_le_bytes());
        table.extend([0; 4]);
        table.extend(adler32(&table).to_le_bytes());
        table.resize(32, 0);
        let mut all = Vec::new();
        for (place, size, flags) in entries {
            all.extend(place.to_le_bytes());
            all.extend(size.to_le_bytes());
            all.extend(flags.to_le_bytes());
        }
        let sum = adler32(&all);
        table.extend(all);
        table.extend(sum.to_le_bytes());
        self.section(4, &table);
    }

    fn done(mut self) -> Vec<u8> {
        self.section(15, b"");
        self.bytes
    }
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).expect("a small chunk")
}

/// An image of nine sectors in chunks of two: packed, plain, zeros, a pattern, and a shorter one,
/// by two tables.
fn image(of_chunk: &str, sectors: &str) -> Made {
    let mut made = Made::new(1, 1);
    made.sizes(sectors, of_chunk);
    let (at, first) = (made.bytes.len() as u64, zlib(&[b'a'; 1024]));
    let mut data = first.clone();
    padded(&mut data);
    let second = at + data.len() as u64;
    data.extend([b'b'; 1024]);
    data.extend(adler32(&[b'b'; 1024]).to_le_bytes());
    made.section(3, &data);
    let pattern = u64::from_le_bytes(*b"pattern!");
    made.table(0, &[(at, length(&first), 1), (second, 1028, 2), (0, 8, 5), (pattern, 0, 5)]);
    let (at, last) = (made.bytes.len() as u64, zlib(&[b'c'; 512]));
    made.section(3, &last);
    made.table(4, &[(at, length(&last), 1)]);
    made
}

#[test]
fn chunks_are_the_disk() {
    let it = opened(file(&image("2", "9").done()));
    let pattern = b"pattern!".repeat(128);
    let expected = [&[b'a'; 1024][..], &[b'b'; 1024], &[0; 1024], &pattern, &[b'c'; 512]].concat();
    assert_eq!(read(&it, 0, 4608), Ok(expected));
    assert_eq!(read(&it, 1023, 2), Ok(b"ab".to_vec()));
    assert_eq!(read(&it, 3071, 5), Ok(b"\0patt".to_vec()));
    assert_eq!(read(&it, 4095, 2), Ok(b"!c".to_vec()));
    assert_eq!(findings(&it), [] as [&str; 0]);
    assert_eq!(it.0.providers[it.1.expect("a disk")].topology.length, 4608);
}

/// The tags `ts`, `bp` and `sb` of a disk of one sector, in UTF-16BE, as bzip2 packs them.
const TEXT: &[u8] = b"\
    BZh91AY&SY}\xc7\x83_\0\0\x19I\x80\xc002\x000#L\0\0\x01\xa0\0\x22\x04\xc8\xc4\xf4\x9a\
    \x14\xc0\x014f\x01e\x04\x14e>\xaeTr\xeb\xce\xde2#L\xf8\xbb\x92)\xc2\x84\x83\xee<\x1a\
    \xf8";

/// A sector of `z` as bzip2 packs it, without the begin and the end of its stream: EnCase's.
const LETTERS: &[u8] = b"\
    1AY&SYW\xd5\x97\xc0\0\0\x01\x80\x80\x80\x10\0\x08 \x000\x80I\xea\x06\xae";

#[test]
fn bzip2_packs_too() {
    let mut made = Made::new(1, 2);
    for kind in [1, 2] {
        made.section(kind, TEXT);
    }
    let at = made.bytes.len() as u64;
    made.section(3, LETTERS);
    made.table(0, &[(at, length(LETTERS), 1)]);
    let it = opened(file(&made.done()));
    assert_eq!(read(&it, 0, 512), Ok(vec![b'z'; 512]));
}

#[test]
fn what_cannot_be_true_is_unknown() {
    let whole = image("2", "9").done();
    for (bad, part) in [
        (image("0", "9").done(), "empty"),
        (image("x", "9").done(), "how large"),
        (image("65536", "9").done(), "larger"),
        (image("18446744073709551615", "9").done(), "larger"),
        (image("2", "0").done(), "size"),
        (image("2", "18446744073709551615").done(), "size"),
        (image("2", "").done(), "how large"),
        (image("2", "11").done(), "fewer"),
    ] {
        let why = reason(file(&bad));
        assert!(why.is_some_and(|why| why.contains(part)), "{part}: {why:?}");
    }
    let ended = |change: &dyn Fn(&mut Made)| {
        let mut made = image("2", "9");
        change(&mut made);
        reason(file(&made.done())).unwrap_or("it is a disk")
    };
    assert_eq!(ended(&|_| {}), "it is a disk");
    assert_eq!(ended(&|made| made.table(6, &[(0, 0, 5)])), "its tables have gaps, or chunks twice");
    assert_eq!(ended(&|made| made.table(4, &[(0, 0, 5)])), "its tables have gaps, or chunks twice");
    assert_eq!(ended(&|made| made.section(4, b"short")), "a section of it is damaged");
    assert_eq!(ended(&|made| made.section(11, b"keys")), "it is encrypted");
    assert_eq!(ended(&|made| made.flags = 2), "it is encrypted");
    assert_eq!(ended(&|made| made.last = 1 << 40), "a section of it is damaged");
    assert_eq!(ended(&|made| made.last += 1), "a section of it is damaged");
    assert_eq!(ended(&|made| made.bytes[10] = 3), "it is packed by a method that is not known");
    assert_eq!(ended(&|made| made.bytes[12] = 0), "a section of it is damaged");
    assert_eq!(ended(&|made| made.bytes[12] = 2), "its tables have other chunks than its disk");
    for (kind, why) in [(13, "its tables have other chunks than its disk"), (3, "it is cut off")] {
        let mut made = image("2", "9");
        made.section(kind, b"");
        assert_eq!(reason(file(&made.bytes)), Some(why), "{kind}");
    }
    for end in [10, 64, 200, whole.len() - 1, whole.len() - 64] {
        assert_eq!(reason(file(&whole[..end])), Some("it is cut off"), "{end}");
    }
    let mut empty = Made::new(1, 1);
    empty.sizes("9", "2");
    assert_eq!(reason(file(&empty.done())), Some("it has no chunks"));
    let logical = disk(4096, &[(0, b"LEF2\x0d\x0a\x81\0")]);
    assert_eq!(reason(logical), Some("it is logical evidence: files, and no disk"));
}

/// Sections that lead to each other, or to themselves, end.
#[test]
fn a_chain_of_sections_goes_backwards() {
    let mut made = image("2", "9");
    made.last = made.bytes.len() as u64;
    assert_eq!(reason(file(&made.done())), Some("a section of it is damaged"));
    // 40,000 of them are more than are looked at.
    let mut made = Made::new(1, 1);
    (0..40_000).for_each(|_| made.section(3, b""));
    assert_eq!(reason(file(&made.done())), Some("it has more sections than are looked at"));
}

/// A text that unpacks to more than one is, is none.
#[test]
fn a_text_is_bounded() {
    let mut made = Made::new(1, 1);
    made.section(1, &zlib(&vec![b' '; 1 << 24]));
    assert_eq!(reason(file(&made.done())), Some("a section of it is damaged"));
}

/// Entries are not summed here: one that leads elsewhere is an error when it is read.
#[test]
fn chunks_that_lead_nowhere_are_errors() {
    for entry in [(u64::MAX, 512, 0), (32, 100, 2), (u64::MAX, 9, 1), (0, 9, 1), (32, 0, 1)] {
        let mut made = Made::new(1, 1);
        made.sizes("1", "1");
        made.table(0, &[entry]);
        assert_eq!(read(&opened(file(&made.done())), 0, 512), Err(Errno::Io), "{entry:?}");
    }
    let mut made = Made::new(1, 1);
    made.sizes("1", "1");
    made.section(3, &[b'q'; 600]);
    made.table(0, &[(8, u32::MAX, 0)]);
    let bytes = made.bytes[8..520].to_vec();
    assert_eq!(read(&opened(file(&made.done())), 0, 512), Ok(bytes));
}

/// File `number` of a set, with chunks of one sector each of a disk of three.
fn segment(number: u32, first: u64, count: u8, last: u32) -> Vec<u8> {
    let mut made = Made::new(number, 1);
    made.sizes("3", "1");
    let patterns = (0..count).map(|nth| u64::from_le_bytes([b'a' + nth; 8]) + (number - 1) as u64);
    made.table(first, &patterns.map(|pattern| (pattern, 8, 5)).collect::<Vec<_>>());
    made.section(last, b"");
    made.bytes
}

#[test]
fn segments_are_joined_in_their_order() {
    let first = segment(1, 0, 2, 13);
    let on = |second: &[u8]| opened_on(file(&first), "*.Ex02", file(second));
    let it = on(&segment(2, 2, 1, 15));
    let third = u64::from_le_bytes([b'a'; 8]) + 1;
    let expected = [[b'a'; 512], [b'b'; 512]].concat();
    let expected = [expected, third.to_le_bytes().repeat(64)].concat();
    assert_eq!(read(&it, 0, 1536), Ok(expected));
    assert_eq!(findings(&it), [] as [&str; 0]);
    assert_eq!(findings(&opened(file(&first))), ["TL0019"]);
    let mut other = segment(2, 2, 1, 15);
    other[20] ^= 1;
    assert_eq!(findings(&on(&other)), ["TL0019"]);
    assert_eq!(findings(&on(&segment(3, 2, 1, 15))), ["TL0019"]);
    let further = reason(file(&segment(2, 2, 1, 15)));
    assert!(further.is_some_and(|why| why.contains("further segment")), "{further:?}");
}

#[test]
fn hostile_images_are_survived() {
    let image = image("2", "9").done();
    survives(&image, 8..image.len() & !3);
}

//! Tests of files made by hand; those that `ewfacquire` makes are in
//! `crates/cli/tests/disks/containers/ewf.rs`.

use super::super::container::tests::{findings, opened, opened_on, read, reason, survives};
use super::segment::adler32;
use crate::base::error::Errno;
use crate::base::store::Sparse;
use crate::format::tests::disk;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

fn file(bytes: &[u8]) -> Sparse {
    disk(bytes.len() as u64, &[(0, bytes)])
}

fn summed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(adler32(&bytes).to_le_bytes());
    bytes
}

/// Appends a section of `size` bytes with this body; one of `None` ends the file.
fn section(file: &mut Vec<u8>, name: &str, size: Option<u64>, body: &[u8]) {
    let at = file.len() as u64;
    let mut head = vec![0; 72];
    head[..name.len()].copy_from_slice(name.as_bytes());
    let next = size.map_or(at, |size| at + size);
    head[16..24].copy_from_slice(&next.to_le_bytes());
    head[24..32].copy_from_slice(&size.unwrap_or_default().to_le_bytes());
    file.extend(summed(head));
    file.extend_from_slice(body);
}

fn volume(chunks: u32, sectors_per_chunk: u32, sector: u32, sectors: u64) -> Vec<u8> {
    let mut body = 1_u32.to_le_bytes().to_vec();
    for number in [chunks, sectors_per_chunk, sector] {
        body.extend(number.to_le_bytes());
    }
    body.extend(sectors.to_le_bytes());
    body.resize(1048, 0);
    summed(body)
}

fn table(base: u64, entries: &[u32]) -> Vec<u8> {
    let mut body = u32::try_from(entries.len()).expect("few").to_le_bytes().to_vec();
    body.extend([0; 4]);
    body.extend(base.to_le_bytes());
    body.extend([0; 4]);
    let mut body = summed(body);
    body.extend(summed(entries.iter().flat_map(|entry| entry.to_le_bytes()).collect()));
    body
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    packed.write_all(bytes).expect("memory");
    packed.finish().expect("memory")
}

const HEAD: &[u8] = b"EVF\x09\x0d\x0a\xff\0\x01\x01\0\0\0";

/// An image of five sectors in chunks of two: packed, plain, packed and shorter, by two tables.
fn image() -> Vec<u8> {
    let mut file = HEAD.to_vec();
    section(&mut file, "header", Some(80), b"1234");
    section(&mut file, "volume", Some(76 + 1052), &volume(3, 2, 512, 5));
    let base = file.len() as u64;
    let first = zlib(&[b'a'; 1024]);
    let chunks = [first.as_slice(), &[b'b'; 1024], b"sum!"].concat();
    section(&mut file, "sectors", Some(76 + chunks.len() as u64), &chunks);
    let second = 76 + u32::try_from(first.len()).expect("a small chunk");
    let body = table(base, &[76 | 1 << 31, second]);
    section(&mut file, "table", Some(76 + body.len() as u64), &body);
    section(&mut file, "table2", Some(76 + body.len() as u64), &body);
    let at = u32::try_from(file.len()).expect("a small file") + 76;
    let chunk = zlib(&[b'c'; 512]);
    section(&mut file, "sectors", Some(76 + chunk.len() as u64), &chunk);
    let body = table(0, &[at | 1 << 31]);
    section(&mut file, "table", Some(76 + body.len() as u64), &body);
    section(&mut file, "done", None, b"");
    file
}

#[test]
fn chunks_are_the_disk() {
    let it = opened(file(&image()));
    let expected = [&[b'a'; 1024][..], &[b'b'; 1024], &[b'c'; 512]].concat();
    assert_eq!(read(&it, 0, 2560), Ok(expected));
    assert_eq!(read(&it, 1023, 2), Ok(b"ab".to_vec()));
    assert_eq!(read(&it, 2047, 2), Ok(b"bc".to_vec()));
    assert_eq!(findings(&it), [] as [&str; 0]);
    assert_eq!(it.0.providers[it.1.expect("a disk")].topology.length, 2560);
}

/// The byte at which the section `name` begins, its `nth`.
fn place(file: &[u8], name: &[u8], nth: usize) -> usize {
    let all = file.windows(name.len() + 1).enumerate();
    let mut at = all.filter(|(_, part)| part.strip_suffix(&[0]) == Some(name));
    at.nth(nth).expect("a section").0
}

/// The image with `bytes` at `at`, and the checksum of the `length` bytes from `from` on made
/// right.
fn edited(at: usize, bytes: &[u8], from: usize, length: usize) -> Vec<u8> {
    let mut file = image();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    let sum = adler32(&file[from..from + length]);
    file[from + length..from + length + 4].copy_from_slice(&sum.to_le_bytes());
    file
}

#[test]
fn what_cannot_be_true_is_unknown() {
    let whole = image();
    let volume = place(&whole, b"volume", 0);
    let table = place(&whole, b"table", 0);
    let last = place(&whole, b"table", 1);
    let done = place(&whole, b"done", 0);
    let of_volume =
        |at: usize, number: u32| edited(volume + 76 + at, &number.to_le_bytes(), volume + 76, 1048);
    let of_table = |at: usize, bytes: &[u8]| edited(table + 76 + at, bytes, table + 76, 20);
    let of_section = |from: usize, at: usize, bytes: &[u8]| edited(from + at, bytes, from, 72);
    for (bad, part) in [
        (of_volume(8, 0), "empty"),
        (of_volume(8, 1 << 16), "larger"),
        (of_volume(12, 0), "size"),
        (of_volume(12, 513), "sectors are"),
        (of_volume(12, 8192), "sectors are"),
        (of_volume(16, 0), "size"),
        (of_volume(20, u32::MAX), "size"),
        (of_volume(16, 7), "fewer"),
        (of_table(0, &[1]), "fewer"),
        (of_table(0, &[200]), "damaged"),
        (of_table(3, &[255]), "damaged"),
        (of_section(table, 24, &[80]), "damaged"),
        (of_section(table, 24, &[255; 8]), "damaged"),
        (of_section(table, 16, &[1, 0]), "damaged"),
        (of_section(table, 23, &[1]), "cut off"),
        (of_section(volume, 0, b"other\0"), "how large"),
        (of_section(last, 0, b"other\0"), "fewer"),
        (of_section(done, 0, b"next\0"), "other chunks"),
    ] {
        let why = reason(file(&bad));
        assert!(why.is_some_and(|why| why.contains(part)), "{part}: {why:?}");
    }
    // Checksums that are not those of what stands there.
    for at in [volume + 16, volume + 76, volume + 1000, table + 76, done + 40] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        assert_eq!(reason(file(&bad)), Some("a section of it is damaged"), "{at}");
    }
    for end in [13, 90, done, done + 75] {
        assert_eq!(reason(file(&whole[..end])), Some("it is cut off"), "{end}");
    }
    for (magic, part) in [
        (&b"LVF\x09\x0d\x0a\xff\0"[..], "logical"),
        (b"LEF2\x0d\x0a\x81\0", "logical"),
        (b"EVF2\x0d\x0a\x81\0", "cut off"),
    ] {
        let why = reason(disk(4096, &[(0, magic)]));
        assert!(why.is_some_and(|why| why.contains(part)), "{why:?}");
    }
}

/// File `number` of a set: these chunks, one sector of 512 bytes each, of a disk of three.
fn segment(number: u8, chunks: &[u8], last: &str) -> Vec<u8> {
    let mut file = HEAD.to_vec();
    file[9] = number;
    let name = if number == 1 { "volume" } else { "data" };
    section(&mut file, name, Some(76 + 1052), &volume(3, 1, 512, 3));
    let base = file.len() as u64;
    let bytes: Vec<u8> = chunks.iter().flat_map(|&byte| [byte; 516]).collect();
    section(&mut file, "sectors", Some(76 + bytes.len() as u64), &bytes);
    let entries: Vec<u32> = (0..).zip(chunks).map(|(nth, _)| 76 + nth * 516).collect();
    let body = table(base, &entries);
    section(&mut file, "table", Some(76 + body.len() as u64), &body);
    section(&mut file, last, None, b"");
    file
}

#[test]
fn segments_are_joined_in_their_order() {
    let (first, second) = (segment(1, b"ab", "next"), segment(2, b"c", "done"));
    let on = |second: &[u8]| opened_on(file(&first), "*.E02", file(second));
    let expected = [[b'a'; 512], [b'b'; 512], [b'c'; 512]].concat();
    let it = on(&second);
    assert_eq!(read(&it, 0, 1536), Ok(expected));
    assert_eq!(findings(&it), [] as [&str; 0]);
    // One that is not here, one out of its order, one of another set, and one that is cut off.
    assert_eq!(findings(&opened(file(&first))), ["TL0019"]);
    assert_eq!(findings(&on(&segment(3, b"c", "done"))), ["TL0019"]);
    let mut other = second.clone();
    other[13 + 76 + 64] = 1;
    let sum = adler32(&other[89..89 + 1048]);
    other[89 + 1048..89 + 1052].copy_from_slice(&sum.to_le_bytes());
    assert_eq!(findings(&on(&other)), ["TL0019"]);
    assert_eq!(findings(&on(&second[..200])), ["TL0019"]);
    // Itself a disk of nothing, or of more than there is.
    for (number, chunks, last, part) in [
        (1, &b"abc"[..], "next", "other chunks"),
        (2, b"", "done", "other chunks"),
        (2, b"abcd", "done", "other chunks"),
        (2, b"", "next", "other chunks"),
        (0, b"a", "next", "damaged"),
        (2, b"c", "done", "further segment"),
    ] {
        let why = reason(file(&segment(number, chunks, last)));
        assert!(why.is_some_and(|why| why.contains(part)), "{number} {part}: {why:?}");
    }
}

/// File `number` of a set of SMART: its chunks lie in its table's section. The first has the sizes
/// of a disk of `sectors`, with two to a chunk.
fn smart(number: u8, sectors: u32, chunks: &[(&[u8], bool)], last: &str) -> Vec<u8> {
    let mut file = HEAD.to_vec();
    file[9] = number;
    if number == 1 {
        let mut body = volume(9, 2, 512, sectors.into());
        body.truncate(90);
        section(&mut file, "volume", Some(76 + 94), &summed(body));
    }
    let mut at = u32::try_from(file.len() + 76 + 24 + 4 * chunks.len() + 4).expect("a small file");
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for &(bytes, is_packed) in chunks {
        let stored = if is_packed { zlib(bytes) } else { [bytes, b"sum!"].concat() };
        entries.push(at | if is_packed { 1 << 31 } else { 0 });
        at += u32::try_from(stored.len()).expect("a small chunk");
        data.extend(stored);
    }
    let body = [table(0, &entries), data].concat();
    section(&mut file, "table", Some(76 + body.len() as u64), &body);
    section(&mut file, last, None, b"");
    file
}

/// SMART's further files say no sizes: a chunk is as large as the first one is.
#[test]
fn segments_of_smart_are_measured() {
    let (a, b, c) = ([b'a'; 1024], [b'b'; 1024], [b'c'; 512]);
    let first = smart(1, 7, &[(&a, true), (&b, false)], "next");
    let on = |second: &[u8]| opened_on(file(&first), "*.E02", file(second));
    for (packed, end) in [(true, true), (true, false), (false, true), (false, false)] {
        let it = on(&smart(2, 0, &[(&b, packed), (&c, end)], "done"));
        assert_eq!(read(&it, 0, 3584), Ok([&a[..], &b, &b, &c].concat()), "{packed} {end}");
        assert_eq!(findings(&it), [] as [&str; 0]);
    }
    assert_eq!(findings(&opened(file(&first))), ["TL0019"]);
    assert_eq!(findings(&on(&smart(3, 0, &[(&b, true)], "done"))), ["TL0019"]);
    let large = vec![0; (1 << 20) + 1];
    for (chunks, part) in [
        (&[(&c[..], true), (&a[..], true)][..], "other chunks"),
        (&[], "no chunks"),
        (&[(&large, true)], "damaged"),
        (&[(b"", false)], "other chunks"),
    ] {
        let why = reason(file(&smart(2, 0, chunks, "done")));
        assert!(why.is_some_and(|why| why.contains(part)), "{part}: {why:?}");
    }
    let mut bad = smart(2, 0, &[(&b, true)], "done");
    let place = 13 + 76 + 24 + 8;
    bad[place..place + 4].fill(0xff);
    assert_eq!(reason(file(&bad)), Some("a section of it is damaged"));
}

#[test]
fn a_table_for_more_than_2_gib_has_numbers_of_32_bits_in_the_end() {
    let lead = |file: &mut [u8], at: usize, next: u64| {
        file[at + 16..at + 24].copy_from_slice(&next.to_le_bytes());
        let sum = adler32(&file[at..at + 72]);
        file[at + 72..at + 76].copy_from_slice(&sum.to_le_bytes());
    };
    let mut front = HEAD.to_vec();
    section(&mut front, "volume", Some(76 + 1052), &volume(2, 2, 512, 4));
    let base = front.len();
    section(&mut front, "sectors", Some(76), &zlib(&[b'a'; 1024]));
    // The table is behind a hole, in which the second chunk lies.
    let (hole, far) = (1_u64 << 31, 0x8000_0010_u32);
    let next = base as u64 + hole + 4096;
    lead(&mut front, base, next);
    let mut back = Vec::new();
    let body = table(base as u64, &[76 | 1 << 31, far]);
    section(&mut back, "table", Some(76 + body.len() as u64), &body);
    let done = next + back.len() as u64;
    lead(&mut back, 0, done);
    section(&mut back, "done", None, b"");
    let chunk = (base as u64 + u64::from(far), &[b'w'; 1024][..]);
    let length = next + back.len() as u64;
    let it = opened(disk(length, &[(0, &front), chunk, (next, &back)]));
    assert_eq!(read(&it, 0, 1024), Ok(vec![b'a'; 1024]));
    assert_eq!(read(&it, 1024, 1024), Ok(vec![b'w'; 1024]));
}

/// Entries are not summed here: one that leads elsewhere is an error when it is read.
#[test]
fn chunks_that_lead_nowhere_are_errors() {
    let whole = image();
    let entries = place(&whole, b"table", 0) + 76 + 24;
    for (entry, error) in [(0x7fff_ffff_u32, Errno::Io), (u32::MAX, Errno::Io)] {
        let mut bad = whole.clone();
        bad[entries..entries + 4].copy_from_slice(&entry.to_le_bytes());
        let it = opened(file(&bad));
        assert_eq!(read(&it, 0, 512), Err(error));
        assert_eq!(read(&it, 2048, 512), Ok(vec![b'c'; 512]));
    }
    // One that leads to no stream.
    let mut bad = whole.clone();
    bad[entries..entries + 4].copy_from_slice(&(1 << 31 | 20_u32).to_le_bytes());
    assert_eq!(read(&opened(file(&bad)), 0, 512), Err(Errno::Io));
    survives(&whole, 0..96);
    survives(&whole, entries..entries + 8);
}

#[test]
fn a_list_of_sections_ends() {
    let mut file = HEAD.to_vec();
    for _ in 0..8200 {
        section(&mut file, "header", Some(76), b"");
    }
    let length = file.len() as u64;
    let why = reason(disk(length, &[(0, &file)]));
    assert!(why.is_some_and(|why| why.contains("more sections")), "{why:?}");
}

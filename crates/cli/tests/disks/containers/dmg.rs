//! UDIF images, which no tool here writes, written by hand, and read by QEMU as well.

use super::{compare_bytes, opened, raw_disk, sh};
use crate::recipe::Scratch;
use std::fs;

const SECTOR: u64 = 512;
/// Bytes of a chunk, as hdiutil makes them today.
const CHUNK: usize = 1 << 20;

/// A zlib stream of `plain`: what gzip makes of it, with another head and sum.
fn zlib(here: &Scratch, plain: &[u8]) -> Vec<u8> {
    fs::write(here.path().join("plain"), plain).expect("a scratch file");
    sh(here, "gzip -nc plain >packed");
    let packed = fs::read(here.path().join("packed")).expect("a file that was made");
    let (low, high) = plain.iter().fold((1_u32, 0_u32), |(low, high), &byte| {
        let low = (low + u32::from(byte)) % 65521;
        (low, (high + low) % 65521)
    });
    let sum = (high << 16 | low).to_be_bytes();
    [b"\x78\x9c", &packed[10..packed.len() - 8], &sum].concat()
}

/// A table of chunks from sector `first` on.
fn table(first: u64, chunks: &[(u32, u64, u64, u64, u64)]) -> Vec<u8> {
    let mut bytes = b"mish\0\0\0\x01".to_vec();
    let sectors = chunks.iter().map(|(_, _, sectors, ..)| sectors).sum::<u64>();
    bytes.extend([first.to_be_bytes(), sectors.to_be_bytes()].concat());
    bytes.resize(200, 0);
    bytes.extend(u32::try_from(chunks.len() + 1).expect("few chunks").to_be_bytes());
    for (kind, sector, count, at, stored) in
        chunks.iter().copied().chain([(0xffff_ffff, sectors, 0, 0, 0)])
    {
        bytes.extend([kind.to_be_bytes(), [0; 4]].concat());
        bytes.extend([sector, count, at, stored].map(u64::to_be_bytes).concat());
    }
    bytes
}

#[test]
fn a_dmg_is_the_disk_that_qemu_has_of_it() {
    let Some(here) = raw_disk("dmg") else { return };
    let raw = fs::read(here.path().join("raw")).expect("the raw disk");
    let mut file = Vec::new();
    let mut tables = Vec::new();
    // The table of partitions, and behind it the rest, as macOS has them apart. Of the rest every
    // fourth chunk is plain.
    for (first, bytes) in [(0, &raw[..40 * 512]), (40, &raw[40 * 512..])] {
        let mut chunks = Vec::new();
        for (nth, chunk) in bytes.chunks(CHUNK).enumerate() {
            let sector = (nth * CHUNK) as u64 / SECTOR;
            let (count, at) = (chunk.len() as u64 / SECTOR, file.len() as u64);
            let (kind, stored) = match nth % 4 {
                _ if chunk.iter().all(|&byte| byte == 0) => (u32::from(nth % 2 == 0) * 2, vec![]),
                3 => (1, chunk.to_vec()),
                _ => (0x8000_0005, zlib(&here, chunk)),
            };
            chunks.push((kind, sector, count, at, stored.len() as u64));
            file.extend(stored);
        }
        assert!(first == 0 || (0..3).all(|kind| chunks.iter().any(|chunk| chunk.0 == kind)));
        tables.push(table(first, &chunks));
    }
    let mut list = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n\
         <key>resource-fork</key>\n<dict>\n<key>blkx</key>\n<array>\n",
    );
    for table in &tables {
        fs::write(here.path().join("table"), table).expect("a scratch file");
        let data = sh(&here, "base64 -w 52 table");
        list += &format!(
            "<dict>\n<key>Attributes</key>\n<string>0x0050</string>\n<key>Data</key>\n\
             <data>\n{data}</data>\n<key>Name</key>\n<string>a &amp; b</string>\n</dict>\n"
        );
    }
    list += "</array>\n</dict>\n</dict>\n</plist>\n";
    let (at, sectors) = (file.len() as u64, raw.len() as u64 / SECTOR);
    file.extend_from_slice(list.as_bytes());
    let mut trailer = vec![0; 512];
    let mut put = |at: usize, bytes: &[u8]| trailer[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"koly\0\0\0\x04\0\0\x02\0\0\0\0\x01");
    put(32, &at.to_be_bytes());
    put(56, b"\0\0\0\x01\0\0\0\x01");
    put(216, &[at.to_be_bytes(), (list.len() as u64).to_be_bytes()].concat());
    put(488, &[&[0, 0, 0, 1][..], &sectors.to_be_bytes()].concat());
    file.extend(trailer);
    fs::write(here.path().join("made.dmg"), file).expect("a scratch file");
    sh(&here, "qemu-img convert -f dmg -O raw made.dmg back; cmp raw back");
    let (graph, audit) = opened(&here, "made.dmg");
    let is_of_file = |rule| ["TL0001", "TL0019", "TL0030"].contains(&rule);
    assert!(!audit.findings.iter().any(|(_, f)| is_of_file(f.rule.id)), "{:?}", audit.findings);
    compare_bytes(&here, &graph);
}

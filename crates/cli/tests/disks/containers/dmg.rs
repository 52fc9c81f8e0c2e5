//! UDIF images, which no tool here writes, written by hand, and read by QEMU as well.

use super::{compare_bytes, opened, raw_disk, sh};
use crate::oracle::missing_of;
use crate::recipe::Scratch;
use crate::skip::skip;
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

/// A file of chunks of the raw disk: of its table of partitions, and behind it of the rest, as
/// macOS has them apart. `pack` makes a chunk of bytes, by its number: its type, and its bytes in
/// the file.
fn image(here: &Scratch, raw: &[u8], pack: impl Fn(usize, &[u8]) -> (u32, Vec<u8>)) -> Vec<u8> {
    let mut file = Vec::new();
    let mut tables = Vec::new();
    for (first, bytes) in [(0, &raw[..40 * 512]), (40, &raw[40 * 512..])] {
        let mut chunks = Vec::new();
        for (nth, chunk) in bytes.chunks(CHUNK).enumerate() {
            let sector = (nth * CHUNK) as u64 / SECTOR;
            let (count, at) = (chunk.len() as u64 / SECTOR, file.len() as u64);
            let (kind, stored) = pack(nth, chunk);
            chunks.push((kind, sector, count, at, stored.len() as u64));
            file.extend(stored);
        }
        tables.push(table(first, &chunks));
    }
    let mut list = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<plist version=\"1.0\">\n<dict>\n\
         <key>resource-fork</key>\n<dict>\n<key>blkx</key>\n<array>\n",
    );
    for table in &tables {
        fs::write(here.path().join("table"), table).expect("a scratch file");
        let data = sh(here, "base64 -w 52 table");
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
    file
}

#[test]
fn a_dmg_is_the_disk_that_qemu_has_of_it() {
    let Some(here) = raw_disk("dmg") else { return };
    let raw = fs::read(here.path().join("raw")).expect("the raw disk");
    // Every fourth chunk is plain.
    let file = image(&here, &raw, |nth, chunk| match nth % 4 {
        _ if chunk.iter().all(|&byte| byte == 0) => (u32::from(nth % 2 == 0) * 2, vec![]),
        3 => (1, chunk.to_vec()),
        _ => (0x8000_0005, zlib(&here, chunk)),
    });
    fs::write(here.path().join("made.dmg"), file).expect("a scratch file");
    sh(&here, "qemu-img convert -f dmg -O raw made.dmg back; cmp raw back");
    let (graph, audit) = opened(&here, "made.dmg");
    let is_of_file = |rule| ["TL0001", "TL0019", "TL0030"].contains(&rule);
    assert!(!audit.findings.iter().any(|(_, f)| is_of_file(f.rule.id)), "{:?}", audit.findings);
    compare_bytes(&here, &graph);
}

/// Apple Data Compression of `plain`: runs of one byte as copies, the rest as it is.
fn adc(plain: &[u8]) -> Vec<u8> {
    let (mut packed, mut at, mut kept) = (Vec::new(), 0, 0);
    let keep = |packed: &mut Vec<u8>, bytes: &[u8]| {
        for part in bytes.chunks(128) {
            packed.push(0x80 | u8::try_from(part.len() - 1).expect("at most 127"));
            packed.extend(part);
        }
    };
    while at < plain.len() {
        let back = |back: usize| {
            let same = (at..plain.len().min(at + 67)).take_while(|&n| plain[n] == plain[n - back]);
            same.count()
        };
        let far = if at >= 300 { back(300) } else { 0 };
        let near = if at > 0 { back(1) } else { 0 };
        let (back, length) = if far > near { (300, far) } else { (1, near) };
        if length < 4 {
            at += 1;
            continue;
        }
        keep(&mut packed, &plain[kept..at]);
        let [high, low] = u16::to_be_bytes(back - 1);
        match u8::try_from(length).expect("at most 67") {
            short @ ..=18 => packed.extend([(short - 3) << 2 | high, low]),
            long => packed.extend([0x40 | (long - 4), high, low]),
        }
        at += length;
        kept = at;
    }
    keep(&mut packed, &plain[kept..]);
    packed
}

/// Chunks by every way that macOS packs them, or packed them once. 7-Zip knows them all.
#[test]
fn a_dmg_is_the_disk_that_7zip_has_of_it() {
    let Some(here) = raw_disk("dmg-packed") else { return };
    if let Some(missing) = missing_of(["7zz", "bzip2", "xz"]) {
        return skip(&format!("no {missing} here"));
    }
    let raw = fs::read(here.path().join("raw")).expect("the raw disk");
    let by = |command: &str, plain: &[u8]| {
        fs::write(here.path().join("plain"), plain).expect("a scratch file");
        sh(&here, &format!("{command} -c plain >packed"));
        fs::read(here.path().join("packed")).expect("a file that was made")
    };
    let made = image(&here, &raw, |nth, chunk| match nth % 6 {
        0 => (0x8000_0004, adc(chunk)),
        1 => (0x8000_0006, by("bzip2", chunk)),
        2 => {
            let mut packed = Vec::new();
            lzfse_rust::encode_bytes(chunk, &mut packed).expect("an LZFSE stream");
            (0x8000_0007, packed)
        }
        3 => (0x8000_0008, by("xz", chunk)),
        4 => (0x8000_0008, by("xz --block-size=100000 --check=sha256", chunk)),
        _ => (0x8000_0005, zlib(&here, chunk)),
    });
    fs::write(here.path().join("made.dmg"), made).expect("a scratch file");
    sh(
        &here,
        "mkdir out; 7zz x -y -oout made.dmg >/dev/null
        test $(ls out | wc -l) = 2; cat out/* >back; cmp raw back",
    );
    let (graph, audit) = opened(&here, "made.dmg");
    assert!(!audit.findings.iter().any(|(_, f)| f.rule.id == "TL0019"), "{:?}", audit.findings);
    compare_bytes(&here, &graph);
}

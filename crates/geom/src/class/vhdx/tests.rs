//! Tests of VHDXs made by hand: states of blocks, headers, logs, hostile numbers.

use super::super::container::tests::{findings, opened, opened_on, read, reason};
use super::*;
use crate::base::error::Errno;
use crate::base::ondisk::Guid;
use crate::base::store::Sparse;
use crate::format::tests::{disk, recognised};
use std::ops::Range;

const LOG: u64 = MIB;
const BAT: u64 = 2 * MIB;
const METADATA: u64 = 3 * MIB;
const DATA: u64 = 4 * MIB;
const GUID: [u8; 16] = [7; 16];

/// Parts of a file that a test may change before they are sealed.
struct Image {
    header: Vec<u8>,
    regions: Vec<u8>,
    metadata: Vec<u8>,
    bat: Vec<u8>,
    log: Vec<u8>,
    bitmap: Vec<u8>,
}

/// A change to a part of a file, and the choice of a part.
type Change = fn(&mut Image);
type Part = fn(&mut Image) -> &mut Vec<u8>;

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

/// Storage form of a GUID.
fn id(text: &str) -> [u8; 16] {
    text.parse::<Guid>().expect("a GUID").0
}

/// A disk of 8 MiB in blocks of 1 MiB; `parameters` are the flags of the file. Block 0 is at
/// [`DATA`], in part if there is a parent; blocks 1 to 3 are in other states.
fn image(flags: u32) -> Image {
    let mut header = vec![0; 4096];
    put(&mut header, 0, b"head");
    put(&mut header, 8, &5_u64.to_le_bytes());
    put(&mut header, 66, &[1, 0]);
    put(&mut header, 68, &(1_u32 << 20).to_le_bytes());
    put(&mut header, 72, &LOG.to_le_bytes());
    let mut regions = vec![0; 64 << 10];
    put(&mut regions, 0, b"regi");
    put(&mut regions, 8, &[2]);
    let bat = id("2dc27766-f623-4200-9d64-115e9bfd4a08");
    let metadata = id("8b7ca206-4790-4b9a-b8fe-575f050f886e");
    for (nth, (guid, at)) in [(bat, BAT), (metadata, METADATA)].into_iter().enumerate() {
        let entry = 16 + nth * 32;
        put(&mut regions, entry, &guid);
        put(&mut regions, entry + 16, &at.to_le_bytes());
        put(&mut regions, entry + 24, &(1_u32 << 20).to_le_bytes());
        put(&mut regions, entry + 28, &[1]);
    }
    let mut metadata = vec![0; 68 << 10];
    put(&mut metadata, 0, b"metadata");
    let parameters = u64::from(flags) << 32 | MIB;
    let items: [(&str, Vec<u8>); 5] = [
        ("caa16737-fa36-4d43-b3b6-33f0aa44e76b", parameters.to_le_bytes().into()),
        ("2fa54224-cd1b-4876-b211-5dbed83bf4b8", (8 * MIB).to_le_bytes().into()),
        ("8141bf1d-a96f-4709-ba47-f233a8faab5f", 512_u32.to_le_bytes().into()),
        ("cda348c7-445d-4471-9cc9-e9885251c556", 4096_u32.to_le_bytes().into()),
        ("a8d35f2d-b30b-454d-abf7-d3d84834ab0c", locator()),
    ];
    metadata[10] = 5;
    for (nth, (guid, value)) in items.into_iter().enumerate() {
        let (entry, at) = (32 + nth * 32, (64 << 10) + nth * 512);
        put(&mut metadata, entry, &id(guid));
        put(&mut metadata, entry + 16, &u32::try_from(at).unwrap_or_default().to_le_bytes());
        put(
            &mut metadata,
            entry + 20,
            &u32::try_from(value.len()).unwrap_or_default().to_le_bytes(),
        );
        put(&mut metadata, entry + 24, &[4]);
        put(&mut metadata, at, &value);
    }
    let mut bat = vec![0; 8 * 8193];
    let first = if flags & 2 == 0 { state::FULLY_PRESENT } else { state::PARTIALLY_PRESENT };
    for (nth, state) in [DATA | first, state::ZERO, state::UNMAPPED, 4].into_iter().enumerate() {
        put(&mut bat, nth * 8, &state.to_le_bytes());
    }
    put(&mut bat, 8 * 4096, &((DATA + MIB) | state::FULLY_PRESENT).to_le_bytes());
    // Sectors 0 and 9 of block 0.
    Image { header, regions, metadata, bat, log: Vec::new(), bitmap: vec![1, 2] }
}

/// A parent locator with a path and an identity.
fn locator() -> Vec<u8> {
    let pairs =
        [("relative_path", ".\\p"), ("parent_linkage", "{00000009-0000-0000-0000-000000000000}")];
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let number = |length: usize| u32::try_from(length).unwrap_or_default();
    let (mut bytes, mut words) = (vec![0; 20], Vec::new());
    bytes[18] = 2;
    for (key, value) in pairs.map(|(key, value)| (utf16(key), utf16(value))) {
        let at = 20 + 2 * 12 + words.len();
        bytes.extend(number(at).to_le_bytes());
        bytes.extend(number(at + key.len()).to_le_bytes());
        bytes.extend(
            [key.len(), value.len()]
                .map(|n| u16::try_from(n).unwrap_or_default())
                .map(u16::to_le_bytes)
                .concat(),
        );
        words.extend([key, value].concat());
    }
    [bytes, words].concat()
}

fn seal(bytes: &mut [u8]) {
    bytes[4..8].fill(0);
    let sum = CRC32C.checksum(bytes);
    put(bytes, 4, &sum.to_le_bytes());
}

impl Image {
    /// The file: sector `n` of the first block is full of `n + 1`.
    fn file(mut self) -> Sparse {
        seal(&mut self.header);
        seal(&mut self.regions);
        let data: Vec<u8> = (1..=16_u8).flat_map(|n| [n; 512]).collect();
        let runs: [(u64, &[u8]); 10] = [
            (0, b"vhdxfileT\0"),
            (64 << 10, &self.header),
            (128 << 10, &self.header),
            (192 << 10, &self.regions),
            (256 << 10, &self.regions),
            (LOG, &self.log),
            (BAT, &self.bat),
            (METADATA, &self.metadata),
            (DATA, &data),
            (DATA + MIB, &self.bitmap),
        ];
        disk(6 * MIB, &runs)
    }
}

/// An entry of a log, as long as its two sectors, that writes `page` to `at`.
fn entry(sequence: u64, tail: u32, at: u64, page: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 8192];
    put(&mut bytes, 0, b"loge");
    put(&mut bytes, 8, &8192_u32.to_le_bytes());
    put(&mut bytes, 12, &tail.to_le_bytes());
    put(&mut bytes, 16, &sequence.to_le_bytes());
    put(&mut bytes, 24, &[1]);
    put(&mut bytes, 32, &GUID);
    put(&mut bytes, 64, b"desc");
    put(&mut bytes, 68, &page[4092..]);
    put(&mut bytes, 72, &page[..8]);
    put(&mut bytes, 80, &at.to_le_bytes());
    put(&mut bytes, 88, &sequence.to_le_bytes());
    bytes[4096..].copy_from_slice(page);
    let number = sequence.to_le_bytes();
    put(&mut bytes, 4096, b"data");
    put(&mut bytes, 4100, &number[4..]);
    put(&mut bytes, 8188, &number[..4]);
    seal(&mut bytes);
    bytes
}

/// A page of the table in which block 0 has this entry.
fn page(entry: u64) -> Vec<u8> {
    let mut page = vec![0; 4096];
    put(&mut page, 0, &entry.to_le_bytes());
    page
}

#[test]
fn the_state_of_a_block_says_what_it_has() {
    let found = opened(image(0).file());
    assert_eq!(read(&found, 512, 1024), Ok([[2; 512], [3; 512]].concat()));
    for zero in [1, 2, 4] {
        assert_eq!(read(&found, zero * MIB, 512), Ok(vec![0; 512]), "{zero}");
    }
    assert_eq!(read(&found, 3 * MIB, 512), Err(Errno::Io));
    let sign = recognised(&Vhdx, image(0).file()).expect("a sign");
    assert_eq!(sign.details[0], ("creator", "T".to_string()));
    assert!(sign.details.contains(&("physical sector size", "4096".to_string())));
}

/// Sectors that the bitmap has not, and blocks that are not present, are the parent's.
#[test]
fn a_differencing_disk_has_what_its_bitmap_says() {
    let found = opened(image(2).file());
    assert_eq!(read(&found, 0, 512), Ok(vec![1; 512]));
    assert_eq!(read(&found, 9 * 512, 512), Ok(vec![10; 512]));
    for absent in [512, 8 * 512, 10 * 512, 4 * MIB] {
        assert_eq!(read(&found, absent, 512), Err(Errno::Io), "{absent}");
    }
    assert_eq!(read(&found, MIB, 512), Ok(vec![0; 512]));
    assert_eq!(findings(&found), ["TL0019"]);
    let sign = recognised(&Vhdx, image(2).file()).expect("a sign");
    assert!(sign.details.contains(&("parent", "p".to_string())));
    // Its parent has the same sectors, another block at 4 MiB, and the identity by the locator.
    let base = |identity| {
        let mut base = image(0);
        put(&mut base.header, 32, &[identity]);
        put(&mut base.bat, 4 * 8, &(DATA | state::FULLY_PRESENT).to_le_bytes());
        base.file()
    };
    let both = opened_on(image(2).file(), "p", base(9));
    for (at, fill) in [(0, 1), (512, 2), (8 * 512, 9), (9 * 512, 10), (4 * MIB, 1), (MIB, 0)] {
        assert_eq!(read(&both, at, 512), Ok(vec![fill; 512]), "{at}");
    }
    assert_eq!(findings(&both), [] as [&str; 0]);
    assert_eq!(findings(&opened_on(image(2).file(), "p", base(8))), ["TL0019"]);
    let mut without = image(2);
    without.bat[8 * 4096] = 0;
    assert_eq!(read(&opened(without.file()), 0, 512), Err(Errno::Io));
}

#[test]
fn a_log_is_laid_over_what_is_read() {
    let dirty = |log: Vec<Vec<u8>>| {
        let mut image = image(0);
        put(&mut image.header, 48, &GUID);
        put(&mut image.bat, 0, &[0; 8]);
        image.log = log.concat();
        image.file()
    };
    let there = page(DATA | state::FULLY_PRESENT);
    // Two entries: the second makes true what the first does not.
    let run = || vec![entry(8, 0, BAT, &page(0)), entry(9, 0, BAT, &there)];
    let found = opened(dirty(run()));
    assert_eq!(read(&found, 512, 512), Ok(vec![2; 512]));
    let sign = recognised(&Vhdx, dirty(run())).expect("a sign");
    assert!(sign.details.contains(&("log entries to be replayed", "2".to_string())));
    // What the log says of the rest of the page counts too.
    assert_eq!(read(&found, 3 * MIB, 512), Ok(vec![0; 512]));

    let why = |log| reason(dirty(log)).unwrap_or_default();
    assert!(why(Vec::new()).contains("no run"));
    // Its tail is not there; it skips a number; it is damaged.
    assert!(why(vec![entry(9, 4096, BAT, &there)]).contains("no run"));
    assert!(why(vec![entry(7, 0, BAT, &there), entry(9, 0, BAT, &there)]).is_empty());
    let mut torn = entry(9, 0, BAT, &there);
    torn[5000] ^= 1;
    assert!(why(vec![torn]).contains("no run"));
    // Headers are not for the log; neither is data.
    assert!(why(vec![entry(9, 0, 64 << 10, &there)]).contains("damaged"));
    let over_data = vec![entry(8, 0, BAT, &there), entry(9, 0, DATA, &there)];
    assert_eq!(read(&opened(dirty(over_data)), 512, 512), Err(Errno::Io));
    let mut cut = entry(9, 0, BAT, &there);
    put(&mut cut, 48, &(7 * MIB).to_le_bytes());
    seal(&mut cut);
    assert!(why(vec![cut]).contains("cut"));
}

#[test]
fn a_log_that_zeroes_does_so() {
    let mut zeroes = entry(9, 0, BAT, &page(0));
    put(&mut zeroes, 64, b"zero");
    put(&mut zeroes, 72, &4096_u64.to_le_bytes());
    seal(&mut zeroes);
    let mut image = image(0);
    put(&mut image.header, 48, &GUID);
    image.log = zeroes;
    assert_eq!(read(&opened(image.file()), 0, 512), Ok(vec![0; 512]));
}

/// Entries whose lengths sum up to many times the log are not summed.
#[test]
fn entries_over_each_other_are_refused() {
    let mut image = image(0);
    put(&mut image.header, 48, &GUID);
    let mut one = entry(9, 0, BAT, &page(0));
    put(&mut one, 8, &(1_u32 << 20).to_le_bytes());
    image.log = one[..4096].repeat(256);
    assert!(reason(image.file()).unwrap_or_default().contains("over each other"));
}

#[test]
fn of_two_copies_the_whole_one_counts() {
    let with = |runs: &[(u64, &[u8])]| {
        let mut file = image(0).file();
        runs.iter().for_each(|(at, bytes)| file.put(*at, bytes));
        let found = opened(file);
        let rules: Vec<_> =
            found.0.providers[0].findings.iter().map(|finding| finding.rule.id).collect();
        (read(&found, 512, 512), rules)
    };
    let whole = Ok(vec![2; 512]);
    assert_eq!(with(&[]), (whole.clone(), vec![]));
    for damaged in [64 << 10, 128 << 10, 192 << 10, 256 << 10] {
        assert_eq!(with(&[(damaged + 12, &[9])]), (whole.clone(), vec!["TL0022"]), "{damaged}");
    }
    let both = |at: u64| {
        let mut file = image(0).file();
        file.put(at, &[9]);
        file.put(at + (64 << 10), &[9]);
        reason(file).unwrap_or_default()
    };
    assert!(both((64 << 10) + 12).contains("headers"));
    assert!(both((192 << 10) + 12).contains("region tables"));
    // A header of a higher number counts, and of the same number none.
    let mut newer = image(0).header;
    put(&mut newer, 8, &6_u64.to_le_bytes());
    put(&mut newer, 66, &[2, 0]);
    seal(&mut newer);
    let mut file = image(0).file();
    file.put(128 << 10, &newer);
    assert_eq!(reason(file), Some("its version is not known here"));
    put(&mut newer, 8, &5_u64.to_le_bytes());
    seal(&mut newer);
    let mut file = image(0).file();
    file.put(128 << 10, &newer);
    assert!(reason(file).unwrap_or_default().contains("differ"));
}

#[test]
fn what_cannot_be_true_is_refused() {
    let cases: [(&str, Change); 12] = [
        ("needs a region", |i| put(&mut i.regions, 16, &[1])),
        ("is missing", |i| {
            put(&mut i.regions, 16, &[1]);
            put(&mut i.regions, 44, &[0]);
        }),
        ("not where they can be", |i| put(&mut i.regions, 32, &METADATA.to_le_bytes())),
        ("not where they can be", |i| put(&mut i.regions, 32, &(6 * MIB).to_le_bytes())),
        ("not where they can be", |i| put(&mut i.regions, 32, &[1])),
        ("counts more", |i| put(&mut i.regions, 8, &[0xff; 4])),
        ("metadata are damaged", |i| put(&mut i.metadata, 0, b"x")),
        ("needs metadata", |i| put(&mut i.metadata, 32, &[1])),
        ("are missing", |i| put(&mut i.metadata, 48, &[0; 4])),
        ("size of its blocks", |i| put(&mut i.metadata, 64 << 10, &[1])),
        ("size is not one", |i| put(&mut i.metadata, (64 << 10) + 512, &[1])),
        ("table is too small", |i| put(&mut i.metadata, (64 << 10) + 512, &[0, 0, 0, 0, 0, 1])),
    ];
    for (expected, change) in cases {
        let mut image = image(0);
        change(&mut image);
        let reason = reason(image.file()).unwrap_or_default();
        assert!(reason.contains(expected), "{expected}: {reason}");
    }
    let mut sectors = image(0);
    put(&mut sectors.metadata, (64 << 10) + 1024, &[1]);
    assert!(reason(sectors.file()).unwrap_or_default().contains("sectors"));
}

#[test]
fn hostile_numbers_are_survived() {
    let numbers = [0_u32, 1, 0x0101_0101, 0x7fff_ffff, 0x8000_0000, u32::MAX];
    let parts: [(Part, Range<usize>); 6] = [
        (|image| &mut image.header, 8..80),
        (|image| &mut image.regions, 8..80),
        (|image| &mut image.metadata, 8..192),
        (|image| &mut image.metadata, 64 << 10..(64 << 10) + 2560),
        (|image| &mut image.bat, 0..32),
        (|image| &mut image.log, 8..96),
    ];
    for (part, range) in parts {
        for (at, number) in range.step_by(4).flat_map(|at| numbers.map(|number| (at, number))) {
            let mut image = image(2);
            put(&mut image.header, 48, &GUID);
            image.log = entry(9, 0, BAT, &image.bat[..4096]);
            put(part(&mut image), at, &number.to_le_bytes());
            seal(&mut image.log[..8192]);
            let (graph, contents) = opened(image.file());
            let Some(id) = contents else { continue };
            let size = graph.providers[id].topology.length;
            for offset in [0, size / 2, size.saturating_sub(512)] {
                let _ = graph.read_at(id, &mut [0; 512], offset);
            }
        }
    }
}

//! Resumes a move: a disk and a journal in the middle of one, changed as the input says, with sums
//! that are right again.
#![no_main]

use crc::{CRC_32_ISCSI, CRC_32_ISO_HDLC, Crc};
use libfuzzer_sys::fuzz_target;
use trueline_fuzz::input;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::Store;
use trueline_geom::relocate::gaps::{Gap, GapKind, Gaps};
use trueline_geom::relocate::{Journal, Move, Sizes, Standing, Start, carry, ends};
use trueline_host::disk::memory::Memory;

/// Sums of heads and pieces, and of notes.
const SUM: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
const CRC: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);
const SECTOR: u64 = 512;
const DISK: u64 = 80 * SECTOR;
/// Small, so that a move of some kilobytes has everything that one of a disk has.
const SIZES: Sizes = Sizes { end: 4 * SECTOR, piece: 4 * SECTOR, near: 2 * SECTOR, far: 3 * SECTOR };
/// Bytes of a head before what its sum is of; notes lie on multiples of `APART`, `NOTE` bytes
/// before their sum.
const HEAD: usize = 20;
const APART: usize = 2048;
const NOTE: usize = 32;
/// Room for the journal that is made, and for one that says that it is longer.
const ROOM: u64 = 1 << 16;

fuzz_target!(|data: &[u8]| {
    let (script, changes) = data.split_at(data.len().min(4));
    let mut number = input::numbers(script);
    let mut plan =
        plan(4 * SECTOR, [5, 3, 8, 1][usize::try_from(number(4)).unwrap_or(0)] * SECTOR);
    // The ends have four sectors each.
    let free = (4 + number(8)) * SECTOR..(14 + number(12)) * SECTOR;
    if number(2) > 0 {
        plan.gaps = Gaps::new(vec![Gap { range: free.clone(), kind: GapKind::Free }]);
    }
    let (disk, paper) = (memory(DISK, |at| numbers(at)), memory(ROOM, |_| 0));
    let journal = Journal::create(&paper, &plan, "words").expect("there is room");
    let mut left = number(40);
    let stop = &mut |_| {
        let goes_on = left > 0;
        left = left.saturating_sub(1);
        goes_on
    };
    let done = carry(&plan, &disk, Some(&journal), Start::default(), stop).is_ok();
    let repaired = number(4) > 0;
    for change in changes.chunks_exact(4) {
        let (store, length) = if change[0] & 1 == 0 { (&paper, ROOM) } else { (&disk, DISK) };
        let at = u64::from(u16::from_le_bytes([change[1], change[2]])) % length;
        store.write_at(&change[3..], at).expect("it is inside");
    }
    if repaired {
        repair(&paper);
    }
    let unchanged = changes.len() < 4;
    let Ok((journal, plan, _)) = Journal::open(&paper) else {
        assert!(!unchanged, "a journal is not read as it was written");
        return;
    };
    plan.check().expect("what is opened can be carried out");
    assert!(
        plan.steps() > 0
            && plan.step(plan.steps()).is_none()
            && plan.step(plan.steps() - 1).is_some()
    );
    if let Ok(Standing::Half(start)) = plan.standing(&journal, &disk) {
        let resumed = carry(&plan, &disk, Some(&journal), start, &mut |_| true);
        assert!(!unchanged || resumed.is_ok());
    }
    if unchanged && (done || plan.standing(&journal, &disk) == Ok(Standing::Done)) {
        let length = usize::try_from(plan.length).unwrap_or(0);
        let mut moved = vec![0; length];
        disk.read_at(&mut moved, plan.to).expect("it is inside");
        assert!(
            moved.iter().zip(plan.from..).all(|(&byte, at)| {
                let is_free = !plan.gaps.list().is_empty() && free.contains(&(at - plan.from));
                is_free || byte == numbers(at)
            }),
            "something was lost"
        );
    }
});

/// The byte of the disk at `at` before the move.
fn numbers(at: u64) -> u8 {
    u8::try_from((at / SECTOR * 7 + at * 13 + at / 3) % 251).unwrap_or(0)
}

fn memory(length: u64, byte: impl Fn(u64) -> u8) -> Memory {
    let memory = Memory::new(length).expect("memory");
    let bytes: Vec<u8> = (0..length).map(byte).collect();
    memory.write_at(&bytes, 0).expect("it is inside");
    memory
}

/// The move of 30 sectors; its table is the first sector.
fn plan(from: u64, to: u64) -> Move {
    let length = 30 * SECTOR;
    let part = |at: u64, count: u64| (at..at + count).map(numbers).collect::<Vec<u8>>();
    let (front, back) = ends(length, SIZES.end);
    let was = vec![Patch::new(0, part(0, SECTOR), "table")];
    let table = vec![Patch::new(0, vec![7; 512], "table")];
    let (front, back) = (part(from, front), part(from + length - back, back));
    Move {
        id: *b"one move of many",
        medium: DISK,
        sector: SECTOR,
        from,
        to,
        length,
        sizes: SIZES,
        front,
        back,
        rebased: Vec::new(),
        table,
        was,
        gaps: Gaps::default(),
        unreadable: Vec::new(),
    }
}

/// Makes the sums of the head and of every note right.
fn repair(paper: &Memory) {
    let mut bytes = vec![0; usize::try_from(ROOM).unwrap_or(0)];
    paper.read_at(&mut bytes, 0).expect("it is inside");
    let end = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
    if let Some(body) = usize::try_from(end).ok().and_then(|end| bytes.get(HEAD..end)) {
        let sum = SUM.checksum(body);
        bytes[16..HEAD].copy_from_slice(&sum.to_le_bytes());
    }
    for note in bytes.chunks_exact_mut(APART).filter(|note| note.starts_with(b"TLMN")) {
        let sum = CRC.checksum(&note[..NOTE]);
        note[NOTE..NOTE + 4].copy_from_slice(&sum.to_le_bytes());
    }
    paper.write_at(&bytes, 0).expect("it is inside");
}

//! Both engines on files and on loop devices: every transfer is answered once, and the bytes are
//! where they should be.

use crate::skip::skip;
use crate::{Loop, Scratch};
use rustix::io;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::path::Path;
use trueline_geom::base::error::Errno;
use trueline_host::disk::buffers::Buffers;
use trueline_host::disk::file::{self, Access};
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_host::engine::ring::Ring;
use trueline_host::engine::{Choice, Engine, Finished, Op, Transfer};

const BLOCK: usize = 4096;
const DEPTH: usize = 32;
/// Blocks of an image: more than are in flight.
const BLOCKS: usize = 256;

/// An engine over one file, opened exclusively to be written.
fn engine(path: &Path, access: Access, cache: Cache, choice: Choice) -> Engine<u64> {
    let opened = file::open_for(path, access).unwrap();
    let file = OpenFile::new(&opened.store, cache, path).unwrap();
    Engine::new(choice, vec![file], Buffers::new(DEPTH, BLOCK as u64).unwrap()).unwrap()
}

/// Every way to move bytes that can be had for files in the scratch directory.
fn ways(path: &Path) -> Vec<(Cache, Choice)> {
    let all = [Cache::Around, Cache::Through]
        .into_iter()
        .flat_map(|cache| [Choice::Ring, Choice::Sync].map(|choice| (cache, choice)));
    all.filter(|&(cache, choice)| {
        let opened = file::open(path).unwrap();
        let Ok(file) = OpenFile::new(&opened.store, cache, path) else {
            skip("no direct I/O on the files here");
            return false;
        };
        let made = Engine::<u64>::new(choice, vec![file], Buffers::new(1, 1).unwrap());
        if made.is_err() {
            skip("no io_uring here");
        }
        made.is_ok()
    })
    .collect()
}

fn read(tag: u64, offset: usize, length: usize) -> Transfer<u64> {
    let (offset, length) = (offset as u64, u32::try_from(length).unwrap());
    Transfer { tag, op: Op::Read, file: 0, offset, length, fua: false }
}

fn write(tag: u64, offset: usize, length: usize) -> Transfer<u64> {
    Transfer { op: Op::Write, ..read(tag, offset, length) }
}

/// Pushes `transfers`, waits where the engine is full, and returns all answers.
fn all(
    engine: &mut Engine<u64>,
    transfers: impl IntoIterator<Item = Transfer<u64>>,
) -> Vec<Finished<u64>> {
    let mut done = Vec::new();
    for transfer in transfers {
        while engine.is_full() {
            engine.wait(1).unwrap();
            engine.take(|finished| done.push(finished));
        }
        engine.push(transfer).unwrap();
    }
    done.append(&mut answers(engine));
    done
}

/// All answers that are still to come.
fn answers(engine: &mut Engine<u64>) -> Vec<Finished<u64>> {
    let mut done = Vec::new();
    loop {
        let before = done.len();
        engine.wait(usize::MAX).unwrap();
        engine.take(|finished| done.push(finished));
        // Those of which a rest was asked for are answered later.
        if done.len() == before && engine.memory(0).is_some() {
            return done;
        }
    }
}

/// Tag and error.
fn told(done: &[Finished<u64>]) -> Vec<(u64, Option<Errno>)> {
    done.iter().map(|finished| (finished.tag, finished.error)).collect()
}

/// Blocks in an order that is none, the same every time.
fn shuffled() -> impl Iterator<Item = usize> {
    (0..BLOCKS).map(|k| k * 101 % BLOCKS)
}

#[test]
fn what_is_written_is_read() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        fs::write(&path, vec![0; BLOCKS * BLOCK]).unwrap();
        let mut engine = engine(&path, Access::Write, cache, choice);
        let batch = engine.depth();
        let blocks: Vec<usize> = shuffled().collect();
        // What each block was written from.
        let mut written = BTreeMap::new();
        for (turn, batch) in blocks.chunks(batch).enumerate() {
            for place in 0..batch.len() {
                let memory = engine.memory(place).unwrap();
                assert_ne!(memory[8..16], [0; 8], "buffers are filled");
                memory[..8].copy_from_slice(&((turn * DEPTH + place) as u64 + 1).to_le_bytes());
            }
            let asked = batch.iter().map(|&block| Transfer {
                fua: block % 2 == 0,
                ..write(block as u64, block * BLOCK, BLOCK)
            });
            for Finished { tag, place, error } in all(&mut engine, asked) {
                assert_eq!(error, None);
                let memory = engine.memory(place).unwrap().to_vec();
                assert_eq!(written.insert(tag, memory), None, "{tag} is answered twice");
            }
        }
        assert_eq!(
            told(&all(&mut engine, [Transfer { op: Op::Flush, ..read(7777, 0, 0) }])),
            [(7777, None)]
        );
        assert_eq!(written.len(), BLOCKS);
        let distinct: BTreeSet<&[u8]> = written.values().map(|memory| &memory[..8]).collect();
        assert_eq!(distinct.len(), BLOCKS, "no two in flight share a place");
        let on_disk = fs::read(&path).unwrap();
        for (block, bytes) in (0..).zip(on_disk.chunks(BLOCK)) {
            assert!(bytes == written[&block], "block {block}, {cache:?}, {choice:?}");
        }
        for batch in blocks.chunks(batch) {
            (0..batch.len()).for_each(|place| engine.memory(place).unwrap().fill(0));
            let done = all(
                &mut engine,
                batch.iter().map(|&block| read(block as u64, block * BLOCK, BLOCK)),
            );
            assert_eq!(done.iter().map(|f| f.tag).collect::<BTreeSet<_>>().len(), batch.len());
            for Finished { tag, place, .. } in done {
                assert!(engine.memory(place).unwrap() == written[&tag], "block {tag}");
            }
        }
        assert_eq!(answers(&mut engine), []);
        assert_eq!(engine.memory(DEPTH), None);
    }
}

/// More than are in flight at a time.
#[test]
fn what_is_pushed_is_answered_once() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        let mut engine = engine(&path, Access::Read, cache, choice);
        let done =
            all(&mut engine, shuffled().map(|block| read(block as u64, block * BLOCK, BLOCK)));
        assert!(done.iter().all(|f| f.error.is_none()));
        assert_eq!(
            done.iter().map(|f| f.tag).collect::<BTreeSet<_>>(),
            (0..BLOCKS as u64).collect()
        );
        assert_eq!(done.len(), BLOCKS);
        // A push into a full engine is refused, and the others are answered.
        let pushed = (0..=DEPTH)
            .filter(|&block| engine.push(read(block as u64, block * BLOCK, BLOCK)).is_ok())
            .count();
        assert_eq!(
            (pushed, engine.is_full(), engine.memory(0).is_none()),
            (engine.depth(), true, true)
        );
        assert_eq!(answers(&mut engine).len(), pushed);
    }
}

#[test]
fn what_lies_wrong_is_refused_before_it_is_sent() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        let mut engine = engine(&path, Access::Read, cache, choice);
        let direct = if cache == Cache::Around { Err(Errno::Unaligned) } else { Ok(()) };
        for (tag, offset, length) in [(1, 1, BLOCK), (2, 0, 100)] {
            assert_eq!(engine.push(read(tag, offset, length)), direct);
            assert_eq!(answers(&mut engine).len(), usize::from(direct.is_ok()));
        }
        // Outside the file, longer than a place, and no such file; and it was opened to be read.
        assert_eq!(engine.push(read(4, BLOCKS * BLOCK, BLOCK)), Err(Errno::Range));
        assert_eq!(
            engine.push(Transfer { offset: u64::MAX - 511, ..read(4, 0, BLOCK) }),
            Err(Errno::Range)
        );
        assert_eq!(engine.push(read(5, 0, 2 * BLOCK)), Err(Errno::Range));
        assert_eq!(engine.push(Transfer { file: 1, ..read(6, 0, BLOCK) }), Err(Errno::NoDevice));
        assert_eq!(engine.push(write(7, 0, BLOCK)), Err(Errno::ReadOnly));
        assert_eq!(answers(&mut engine), []);
    }
    assert_eq!(Errno::Unaligned.to_string(), "not in whole sectors of the device");
}

#[test]
fn a_file_that_is_cut_short_fails_request_by_request() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        fs::write(&path, vec![0; BLOCKS * BLOCK]).unwrap();
        let mut engine = engine(&path, Access::Read, cache, choice);
        // The last block that is left is half of one, and not in whole sectors.
        let left = BLOCKS / 2;
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len((left * BLOCK + 1000) as u64)
            .unwrap();
        let done =
            all(&mut engine, shuffled().map(|block| read(block as u64, block * BLOCK, BLOCK)));
        assert_eq!(done.len(), BLOCKS);
        for Finished { tag, error, .. } in done {
            assert_eq!(
                error,
                (tag >= left as u64).then_some(Errno::Range),
                "block {tag}, {cache:?}, {choice:?}"
            );
        }
        assert_eq!(told(&all(&mut engine, [read(0, 0, BLOCK)])), [(0, None)]);
    }
}

/// What is dropped with requests in flight neither hangs nor is written to afterwards.
#[test]
fn an_engine_ends_with_requests_in_flight() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        let mut engine = engine(&path, Access::Write, cache, choice);
        for block in 0..engine.depth() {
            engine.push(write(block as u64, block * BLOCK, BLOCK)).unwrap();
        }
        drop(engine);
    }
}

#[test]
fn without_io_uring_it_is_system_calls() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![5; BLOCKS * BLOCK]);
    let parts = || {
        let opened = file::open(&path).unwrap();
        (
            vec![OpenFile::new(&opened.store, Cache::Through, &path).unwrap()],
            Buffers::new(1, BLOCK as u64).unwrap(),
        )
    };
    for errno in [io::Errno::NOSYS, io::Errno::PERM, io::Errno::ACCESS, io::Errno::NOMEM] {
        let refuse = |files, buffers| Err::<Ring<u64>, _>((errno, files, buffers));
        let (files, buffers) = parts();
        let mut engine = Engine::with_ring(Choice::Best, files, buffers, refuse).unwrap();
        assert_eq!((engine.name(), engine.depth()), ("sync", 1));
        assert_eq!(told(&all(&mut engine, [read(1, BLOCK, BLOCK)])), [(1, None)]);
        assert_eq!(engine.memory(0).unwrap(), [5; BLOCK]);
        let (files, buffers) = parts();
        assert_eq!(Engine::with_ring(Choice::Ring, files, buffers, refuse).err(), Some(errno));
    }
    // Anything else is not for want of io_uring, and is not passed over.
    let (files, buffers) = parts();
    let broken = Engine::<u64>::with_ring(Choice::Best, files, buffers, |files, buffers| {
        Err((io::Errno::IO, files, buffers))
    });
    assert_eq!(broken.err(), Some(io::Errno::IO));
}

/// A disk of 4096-byte sectors: what the kernel asks of direct I/O is known before anything is
/// sent.
#[test]
fn a_4kn_disk_takes_whole_sectors() {
    let dir = Scratch::new();
    // A device for each: a process that another test makes has a copy of the first engine's
    // descriptor until it runs its program, and the device is in use that long.
    for choice in [Choice::Best, Choice::Sync] {
        let path = dir.put(&format!("image-{choice:?}"), vec![0; BLOCKS * BLOCK]);
        let Some(device) = Loop::new(&path, &["--sector-size", "4096", "--direct-io=on"]) else {
            return;
        };
        let mut engine = engine(device.path(), Access::Write, Cache::Around, choice);
        assert_eq!(engine.files()[0].grain(), 4096);
        assert_eq!(engine.push(read(1, 512, BLOCK)), Err(Errno::Unaligned));
        assert_eq!(engine.push(read(2, 0, 512)), Err(Errno::Unaligned));
        assert_eq!(told(&all(&mut engine, [read(3, BLOCK, BLOCK)])), [(3, None)]);
    }
}

#[test]
fn a_disk_that_fails_or_shrinks_away_answers_with_errors() {
    let dir = Scratch::new();
    for choice in [Choice::Best, Choice::Sync] {
        let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
        let Some(device) = Loop::new(&path, &[]) else { return };
        let mut engine = engine(device.path(), Access::Read, Cache::Around, choice);
        let failures = |engine: &mut Engine<u64>| {
            let done =
                all(engine, shuffled().map(|block| read(block as u64, block * BLOCK, BLOCK)));
            assert_eq!(done.len(), BLOCKS);
            done.into_iter().filter_map(|f| Some((f.tag, f.error?))).collect::<Vec<_>>()
        };
        assert!(failures(&mut engine).is_empty());
        // The medium is gone under half of it.
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len((BLOCKS / 2 * BLOCK) as u64)
            .unwrap();
        let failed = failures(&mut engine);
        assert!(failed.len() >= BLOCKS / 4, "{failed:?}");
        assert!(
            failed.iter().all(|&(tag, error)| tag >= BLOCKS as u64 / 2 && error == Errno::Io),
            "{failed:?}"
        );
        // The device itself has become nothing.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        device.resize();
        assert_eq!(failures(&mut engine).len(), BLOCKS);
    }
}

#[test]
fn what_is_in_use_is_not_written() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    let Some(device) = Loop::new(&path, &[]) else { return };
    let refused = |path: &Path| {
        file::open_for(path, Access::Write).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert!(refused(&path).contains("is a loop device over it"), "{}", refused(&path));
    // A second writer.
    let first = file::open_for(device.path(), Access::Write).unwrap();
    assert!(refused(device.path()).contains("in use"), "{}", refused(device.path()));
    // A file of what is held is a second handle, not a second holder.
    assert!(OpenFile::new(&first.store, Cache::Around, device.path()).is_ok());
}

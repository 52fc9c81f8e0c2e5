//! Both engines on files and on loop devices: every transfer is answered once, and the bytes are where they should be.

use crate::{Loop, Scratch};
use rustix::io;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;
use trueline_geom::error::Errno;
use trueline_host::buffers::Buffers;
use trueline_host::engine::{Choice, Engine, Finished, Op, Transfer};
use trueline_host::file::{self, Access};
use trueline_host::lane::{Cache, Lane};
use trueline_host::ring::Ring;

const BLOCK: usize = 4096;
const DEPTH: usize = 32;
/// Blocks of an image: more than are in flight.
const BLOCKS: usize = 256;

/// An engine over one file, opened exclusively to be written.
fn engine(path: &Path, access: Access, cache: Cache, choice: Choice) -> Engine {
    let opened = file::open_for(path, access).unwrap();
    let lane = Lane::new(&opened.store, cache, path).unwrap();
    Engine::new(choice, vec![lane], Buffers::new(DEPTH, BLOCK as u64).unwrap(), 32).unwrap()
}

/// Every way to move bytes that can be had for files in the scratch directory.
fn ways(path: &Path) -> Vec<(Cache, Choice)> {
    let all = [Cache::Around, Cache::Through].into_iter().flat_map(|cache| [Choice::Ring, Choice::Sync].map(|choice| (cache, choice)));
    all.filter(|&(cache, choice)| {
        let opened = file::open(path).unwrap();
        let Ok(lane) = Lane::new(&opened.store, cache, path) else {
            println!("skipped: no direct I/O on the files here");
            return false;
        };
        let made = Engine::new(choice, vec![lane], Buffers::new(1, 1).unwrap(), 1);
        if made.is_err() {
            println!("skipped: no io_uring here");
        }
        made.is_ok()
    })
    .collect()
}

fn read(tag: u64, offset: usize, place: usize, length: usize) -> Transfer {
    let (offset, length) = (offset as u64, u32::try_from(length).unwrap());
    Transfer { tag, op: Op::Read, lane: 0, offset, place, length, fua: false }
}

fn write(tag: u64, offset: usize, place: usize, length: usize) -> Transfer {
    Transfer { op: Op::Write, ..read(tag, offset, place, length) }
}

/// All answers that are still to come.
fn answers(engine: &mut Engine, count: usize) -> Vec<Finished> {
    let mut done = Vec::new();
    engine.wait(count, &mut done).unwrap();
    done
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
        let batch = engine.depth().min(DEPTH);
        let blocks: Vec<usize> = shuffled().collect();
        let mut seen = BTreeSet::new();
        for batch in blocks.chunks(batch) {
            for (place, &block) in batch.iter().enumerate() {
                let number = (block as u64 + 1).to_le_bytes();
                engine.memory(place * BLOCK, 8).unwrap().copy_from_slice(&number);
                assert_ne!(engine.memory(place * BLOCK + 8, 8).unwrap(), [0; 8], "buffers are filled");
            }
            for (place, &block) in batch.iter().enumerate() {
                let fua = block % 2 == 0;
                engine.push(Transfer { fua, ..write(block as u64, block * BLOCK, place * BLOCK, BLOCK) }).unwrap();
            }
            for Finished { tag, error } in answers(&mut engine, batch.len()) {
                assert_eq!(error, None);
                assert!(seen.insert(tag), "{tag} is answered twice");
            }
        }
        engine.push(Transfer { op: Op::Flush, length: 0, ..read(7777, 0, 0, 0) }).unwrap();
        assert_eq!(answers(&mut engine, 1), [Finished { tag: 7777, error: None }]);
        assert_eq!(seen.len(), BLOCKS);
        let on_disk = fs::read(&path).unwrap();
        for (block, bytes) in on_disk.chunks(BLOCK).enumerate() {
            assert_eq!(bytes[..8], (block as u64 + 1).to_le_bytes(), "block {block}, {cache:?}, {choice:?}");
        }
        for batch in blocks.chunks(batch) {
            for (place, &block) in batch.iter().enumerate() {
                engine.push(read(block as u64, block * BLOCK, place * BLOCK, BLOCK)).unwrap();
            }
            let done = answers(&mut engine, batch.len());
            assert_eq!(done.iter().map(|f| f.tag).collect::<BTreeSet<_>>().len(), batch.len());
            for (place, &block) in batch.iter().enumerate() {
                assert!(engine.memory(place * BLOCK, BLOCK).unwrap() == &on_disk[block * BLOCK..][..BLOCK], "block {block}");
            }
        }
        assert_eq!(answers(&mut engine, 1), []);
    }
}

/// More than the ring has room for, before anything is waited for.
#[test]
fn what_is_pushed_at_once_is_answered_once() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        let mut engine = engine(&path, Access::Read, cache, choice);
        for block in shuffled() {
            engine.push(read(block as u64, block * BLOCK, block % DEPTH * BLOCK, BLOCK)).unwrap();
        }
        let done = answers(&mut engine, usize::MAX);
        assert!(done.iter().all(|f| f.error.is_none()));
        assert_eq!(done.iter().map(|f| f.tag).collect::<BTreeSet<_>>(), (0..BLOCKS as u64).collect());
        assert_eq!(done.len(), BLOCKS);
    }
}

#[test]
fn what_lies_wrong_is_refused_before_it_is_sent() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        let mut engine = engine(&path, Access::Read, cache, choice);
        let direct = if cache == Cache::Around { Err(Errno::Unaligned) } else { Ok(()) };
        assert_eq!(engine.push(read(1, 1, 0, BLOCK)), direct);
        assert_eq!(engine.push(read(2, 0, 0, 100)), direct);
        assert_eq!(engine.push(read(3, 0, 1, 512)), direct);
        assert_eq!(answers(&mut engine, usize::MAX).len(), if direct.is_ok() { 3 } else { 0 });
        // Outside the file, the memory and the files; and it was opened to be read.
        assert_eq!(engine.push(read(4, BLOCKS * BLOCK, 0, BLOCK)), Err(Errno::Range));
        assert_eq!(engine.push(Transfer { offset: u64::MAX - 511, ..read(4, 0, 0, BLOCK) }), Err(Errno::Range));
        assert_eq!(engine.push(read(5, 0, DEPTH * BLOCK, BLOCK)), Err(Errno::Range));
        assert_eq!(engine.push(read(5, 0, usize::MAX - 4095, BLOCK)), Err(Errno::Range));
        assert_eq!(engine.push(Transfer { lane: 1, ..read(6, 0, 0, BLOCK) }), Err(Errno::NoDevice));
        assert_eq!(engine.push(write(7, 0, 0, BLOCK)), Err(Errno::ReadOnly));
        assert_eq!(answers(&mut engine, usize::MAX), []);
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
        OpenOptions::new().write(true).open(&path).unwrap().set_len((left * BLOCK + 1000) as u64).unwrap();
        for block in shuffled() {
            engine.push(read(block as u64, block * BLOCK, block % DEPTH * BLOCK, BLOCK)).unwrap();
        }
        let done = answers(&mut engine, usize::MAX);
        assert_eq!(done.len(), BLOCKS);
        for Finished { tag, error } in done {
            assert_eq!(error, (tag >= left as u64).then_some(Errno::Range), "block {tag}, {cache:?}, {choice:?}");
        }
        engine.push(read(0, 0, 0, BLOCK)).unwrap();
        assert_eq!(answers(&mut engine, 1), [Finished { tag: 0, error: None }]);
    }
}

/// What is dropped with requests in flight neither hangs nor is written to afterwards.
#[test]
fn an_engine_ends_with_requests_in_flight() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    for (cache, choice) in ways(&path) {
        let mut engine = engine(&path, Access::Write, cache, choice);
        for block in 0..DEPTH {
            engine.push(write(block as u64, block * BLOCK, block * BLOCK, BLOCK)).unwrap();
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
        (vec![Lane::new(&opened.store, Cache::Through, &path).unwrap()], Buffers::new(1, BLOCK as u64).unwrap())
    };
    for errno in [io::Errno::NOSYS, io::Errno::PERM, io::Errno::ACCESS, io::Errno::NOMEM] {
        let refuse = |lanes, buffers| Err::<Ring, _>((errno, lanes, buffers));
        let (lanes, buffers) = parts();
        let mut engine = Engine::with(Choice::Best, lanes, buffers, refuse).unwrap();
        assert_eq!((engine.name(), engine.depth()), ("sync", 1));
        engine.push(read(1, BLOCK, 0, BLOCK)).unwrap();
        assert_eq!(answers(&mut engine, 1), [Finished { tag: 1, error: None }]);
        assert_eq!(engine.memory(0, BLOCK).unwrap(), [5; BLOCK]);
        let (lanes, buffers) = parts();
        assert_eq!(Engine::with(Choice::Ring, lanes, buffers, refuse).err(), Some(errno));
    }
    // Anything else is not for want of io_uring, and is not passed over.
    let (lanes, buffers) = parts();
    let broken = Engine::with(Choice::Best, lanes, buffers, |lanes, buffers| Err((io::Errno::IO, lanes, buffers)));
    assert_eq!(broken.err(), Some(io::Errno::IO));
}

/// A disk of 4096-byte sectors: what the kernel asks of direct I/O is known before anything is sent.
#[test]
fn a_4kn_disk_takes_whole_sectors() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    let Some(device) = Loop::new(&path, &["--sector-size", "4096", "--direct-io=on"]) else { return };
    for choice in [Choice::Best, Choice::Sync] {
        let mut engine = engine(device.path(), Access::Write, Cache::Around, choice);
        assert_eq!(engine.lanes()[0].grain(), 4096);
        assert_eq!(engine.push(read(1, 512, 0, BLOCK)), Err(Errno::Unaligned));
        assert_eq!(engine.push(read(2, 0, 0, 512)), Err(Errno::Unaligned));
        engine.push(read(3, BLOCK, 0, BLOCK)).unwrap();
        assert_eq!(answers(&mut engine, 1), [Finished { tag: 3, error: None }]);
    }
}

#[test]
fn a_disk_that_fails_or_shrinks_away_answers_with_errors() {
    let dir = Scratch::new();
    for choice in [Choice::Best, Choice::Sync] {
        let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
        let Some(device) = Loop::new(&path, &[]) else { return };
        let mut engine = engine(device.path(), Access::Read, Cache::Around, choice);
        let all = |engine: &mut Engine| {
            for block in shuffled() {
                engine.push(read(block as u64, block * BLOCK, block % DEPTH * BLOCK, BLOCK)).unwrap();
            }
            let done = answers(engine, usize::MAX);
            assert_eq!(done.len(), BLOCKS);
            done.into_iter().filter_map(|f| Some((f.tag, f.error?))).collect::<Vec<_>>()
        };
        assert!(all(&mut engine).is_empty());
        // The medium is gone under half of it.
        OpenOptions::new().write(true).open(&path).unwrap().set_len((BLOCKS / 2 * BLOCK) as u64).unwrap();
        let failed = all(&mut engine);
        assert!(failed.len() >= BLOCKS / 4, "{failed:?}");
        assert!(failed.iter().all(|&(tag, error)| tag >= BLOCKS as u64 / 2 && error == Errno::Io), "{failed:?}");
        // The device itself has become nothing.
        OpenOptions::new().write(true).open(&path).unwrap().set_len(0).unwrap();
        device.resize();
        assert_eq!(all(&mut engine).len(), BLOCKS);
    }
}

#[test]
fn what_is_in_use_is_not_written() {
    let dir = Scratch::new();
    let path = dir.put("image", vec![0; BLOCKS * BLOCK]);
    let Some(device) = Loop::new(&path, &[]) else { return };
    let refused = |path: &Path| file::open_for(path, Access::Write).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(refused(&path).contains("shows it as a device"), "{}", refused(&path));
    // A second writer.
    let first = file::open_for(device.path(), Access::Write).unwrap();
    assert!(refused(device.path()).contains("in use"), "{}", refused(device.path()));
    // A lane of what is held is a second handle, not a second holder.
    assert!(Lane::new(&first.store, Cache::Around, device.path()).is_ok());
}

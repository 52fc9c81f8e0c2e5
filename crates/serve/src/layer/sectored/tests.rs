use super::*;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, RwLock};
use trueline_host::disk::file::{self, Access};
use trueline_host::engine::direct::Direct;

/// Memory that takes whole units alone, and lets other threads in between a read and a write.
struct Strict {
    unit: u64,
    bytes: RwLock<Vec<u8>>,
    reads: AtomicUsize,
    /// True if the store can zero ranges without a transfer.
    zeroes: bool,
}

impl Strict {
    fn new(unit: u64, length: usize) -> Arc<Strict> {
        Arc::new(Strict {
            unit,
            bytes: RwLock::new((0..length).map(|i| u8::try_from(i % 251).unwrap()).collect()),
            reads: AtomicUsize::new(0),
            zeroes: true,
        })
    }

    fn range(&self, offset: u64, length: usize) -> Result<std::ops::Range<usize>, Errno> {
        if !is_whole(offset, self.unit) || !is_whole(length as u64, self.unit) {
            return Err(Errno::Unaligned);
        }
        let start = usize::try_from(offset).unwrap();
        Ok(start..start + length)
    }
}

impl Store for Strict {
    fn length(&self) -> u64 {
        self.bytes.read().unwrap().len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        buffer.copy_from_slice(&self.bytes.read().unwrap()[self.range(offset, buffer.len())?]);
        std::thread::yield_now();
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        std::thread::yield_now();
        let range = self.range(offset, bytes.len())?;
        self.bytes.write().unwrap()[range].copy_from_slice(bytes);
        Ok(())
    }

    fn try_zero(&self, offset: u64, length: u64, _keep: bool) -> Result<(), Errno> {
        if !self.zeroes {
            return Err(Errno::Unsupported);
        }
        self.write_at(&vec![0; usize::try_from(length).unwrap()], offset)
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.range(offset, usize::try_from(length).unwrap())?;
        // Every second unit is a hole.
        let content = if is_whole(offset, 2 * self.unit) { Content::Data } else { Content::Hole };
        Ok(Run { content, length: self.unit.min(length) })
    }

    fn properties(&self) -> Properties {
        Properties { unit: self.unit, depth: 77, ..Properties::default() }
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

#[test]
fn it_is_as_deep_as_what_is_below() {
    assert_eq!(Sectored::new(Strict::new(8, 64), 2).unwrap().properties().depth, 77);
}

/// Every request of up to three units in a disk of four, against the same on a plain array.
#[test]
fn it_is_the_disk_that_it_looks_like() {
    for (unit, sector) in [(4, 1), (4, 2), (4, 4), (8, 2)] {
        let length = 4 * unit;
        for offset in (0..length).step_by(sector) {
            for count in (0..=(3 * unit).min(length - offset)).step_by(sector) {
                let below = Strict::new(unit as u64, length);
                let view = Sectored::new(below.clone(), sector as u64).unwrap();
                let mut model: Vec<u8> = below.bytes.read().unwrap().clone();
                let mut read = vec![0; count];
                view.read_at(&mut read, offset as u64).unwrap();
                assert_eq!(read, model[offset..offset + count]);
                view.write_at(&vec![255; count], offset as u64).unwrap();
                model[offset..offset + count].fill(255);
                assert_eq!(
                    *below.bytes.read().unwrap(),
                    model,
                    "unit {unit} sector {sector}: {count} at {offset}"
                );
                view.try_zero(offset as u64, count as u64, false).unwrap();
                model[offset..offset + count].fill(0);
                assert_eq!(
                    *below.bytes.read().unwrap(),
                    model,
                    "unit {unit} sector {sector}: zeros, {count} at {offset}"
                );
            }
        }
    }
}

#[test]
fn what_is_whole_is_not_read_first() {
    let below = Strict::new(4096, 8 * 4096);
    let view = Sectored::new(below.clone(), 512).unwrap();
    view.write_at(&[1; 8192], 4096).unwrap();
    assert_eq!(below.reads.load(Ordering::Relaxed), 0);
    view.write_at(&[1; 512], 512).unwrap();
    assert_eq!(below.reads.load(Ordering::Relaxed), 1, "one unit, read once");
    view.write_at(&[1; 4096], 512).unwrap();
    assert_eq!(below.reads.load(Ordering::Relaxed), 3, "the first and the last");
    view.write_at(&[1; 4096 + 512], 4096).unwrap();
    assert_eq!(below.reads.load(Ordering::Relaxed), 4, "the last alone");
}

#[test]
fn the_reverse_view_takes_whole_sectors_of_its_own() {
    let view = Sectored::new(Strict::new(512, 9 * 512), 4096).unwrap();
    assert_eq!((view.length(), view.properties().unit), (4096, 4096));
    assert_eq!(view.write_at(&[0; 512], 0), Err(Errno::Unaligned));
    assert_eq!(view.read_at(&mut [0; 4096], 512), Err(Errno::Unaligned));
    assert_eq!(view.read_at(&mut [0; 4096], 4096), Err(Errno::Range));
    assert_eq!(view.write_at(&[7; 4096], 0), Ok(()));
}

#[test]
fn nothing_is_zeroed_where_it_cannot_be() {
    let below =
        Arc::new(Strict { zeroes: false, ..Arc::into_inner(Strict::new(4096, 3 * 4096)).unwrap() });
    let before = below.bytes.read().unwrap().clone();
    let view = Sectored::new(below.clone(), 512).unwrap();
    assert_eq!(view.try_zero(512, 2 * 4096, false), Err(Errno::Unsupported));
    assert_eq!(*below.bytes.read().unwrap(), before);
}

#[test]
fn runs_are_told_to_the_sector() {
    let view = Sectored::new(Strict::new(4096, 4 * 4096), 512).unwrap();
    assert_eq!(view.extent(512, 4 * 4096 - 512), Ok(Run { content: Content::Data, length: 3584 }));
    assert_eq!(view.extent(4096, 512), Ok(Run { content: Content::Hole, length: 512 }));
    assert_eq!(view.extent(7680, 1024), Ok(Run { content: Content::Hole, length: 512 }));
}

/// 1000 bytes of hole, then data, and so on; any bytes will do.
struct Ragged;

impl Store for Ragged {
    fn length(&self) -> u64 {
        8192
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Errno> {
        Err(Errno::Io)
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let content = if (offset / 1000).is_multiple_of(2) { Content::Hole } else { Content::Data };
        Ok(Run { content, length: length.min(1000 - offset % 1000) })
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

/// A sector in which a hole ends counts as data: reported as a hole, it would not be read. And the
/// next query is of a whole sector.
#[test]
fn a_sector_that_is_a_hole_in_part_is_data() {
    let view = Sectored::new(Arc::new(Ragged), 512).unwrap();
    assert_eq!(view.extent(0, 8192), Ok(Run { content: Content::Hole, length: 512 }));
    assert_eq!(view.extent(512, 7680), Ok(Run { content: Content::Data, length: 512 }));
    let large = Sectored::new(Arc::new(Ragged), 4096).unwrap();
    assert_eq!(large.extent(0, 8192), Ok(Run { content: Content::Data, length: 4096 }));
}

#[test]
fn units_that_do_not_go_into_each_other_are_refused() {
    assert!(Sectored::new(Strict::new(3, 9), 2).is_none());
    assert!(Sectored::new(Strict::new(4096, 4096), 0).is_none());
}

/// Every sector of a few units has a writer of its own, which counts upwards in it; others write
/// whole units of theirs in between. No writer may ever find its sector as it was before.
#[test]
fn no_update_is_lost() {
    const SECTORS: u64 = 16;
    const ROUNDS: u8 = 200;
    let below = Strict::new(64, 16 * 8 + 64);
    let view = Sectored::new(below.clone(), 8).unwrap();
    let together = Barrier::new(usize::try_from(SECTORS).unwrap());
    std::thread::scope(|scope| {
        for sector in 0..SECTORS {
            let (view, together) = (&view, &together);
            scope.spawn(move || {
                together.wait();
                for round in 1..=ROUNDS {
                    view.write_at(&[round; 8], sector * 8).unwrap();
                    let mut own = [0; 8];
                    view.read_at(&mut own, sector * 8).unwrap();
                    assert_eq!(own, [round; 8], "sector {sector}");
                    if sector == 0 {
                        view.write_at(&[round; 64], SECTORS * 8).unwrap();
                    }
                }
            });
        }
    });
    assert!(below.bytes.read().unwrap()[..128].iter().all(|&byte| byte == ROUNDS));
}

/// A whole write that overlaps a read-modify-write waits for it; two whole writes do not wait for
/// each other.
#[test]
fn a_write_back_holds_its_units() {
    let view = Sectored::new(Strict::new(64, 256), 8).unwrap();
    let units = |start, end| Units { start, end, before: 0, length: 64 };
    let first = view.hold(units(0, 64), true);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| view.write_at(&[9; 64], 0));
        while view.ranges.count() < 2 && !waiting.is_finished() {
            std::thread::yield_now();
        }
        view.write_at(&[8; 64], 64).unwrap();
        view.write_at(&[8; 8], 128).unwrap();
        assert!(!waiting.is_finished());
        drop(first);
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
    let _one = view.hold(units(0, 64), false);
    view.write_at(&[7; 64], 0).unwrap();
    assert_eq!(view.ranges.count(), 1);
}

/// Under `target`: what is in /tmp may be memory, which has no direct I/O everywhere.
#[test]
fn any_bytes_of_a_file_go_around_the_page_cache() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../target/direct-{}.img", std::process::id()));
    std::fs::write(&path, vec![7; 8 * 4096]).unwrap();
    let direct = Direct::new(file::open_for(&path, Access::Write).unwrap().store, &path);
    let Ok(direct) = direct else {
        std::fs::remove_file(&path).unwrap();
        return println!("skipped: no direct I/O in target");
    };
    let unit = direct.properties().unit;
    assert_eq!(direct.write_at(&[0; 1], 0), Err(Errno::Unaligned));
    let view = Sectored::new(Arc::new(direct), 1).unwrap();
    view.write_at(&[1, 2, 3], unit - 1).unwrap();
    view.write_at(&[9; 4096], 3 * 4096).unwrap();
    view.flush().unwrap();
    let mut read = [0; 5];
    view.read_at(&mut read, unit - 2).unwrap();
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let at = usize::try_from(unit).unwrap();
    assert_eq!((read, &file[at - 2..at + 3]), ([7, 1, 2, 3, 7], &[7, 1, 2, 3, 7][..]));
    assert!(file[3 * 4096..4 * 4096].iter().all(|&byte| byte == 9) && file[4 * 4096] == 7);
}

use super::*;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

const LENGTH: usize = 64 * 4096 + 1234;

/// A base of which every byte says where it is. A write to it is an error: no test may find one.
struct Bytes(Vec<u8>);

impl Store for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let at = usize::try_from(offset).unwrap();
        buffer.copy_from_slice(self.0.get(at..at + buffer.len()).ok_or(Errno::Range)?);
        Ok(())
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        // Every other 64 KiB says that it is a hole, though it is none: what is written must not be
        // taken for one.
        let next = (offset / 65536 + 1) * 65536;
        let content =
            if (offset / 65536).is_multiple_of(2) { Content::Data } else { Content::Hole };
        Ok(Run { content, length: length.min(next - offset) })
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

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from(at / 512 % 251).unwrap() | 1).collect()
}

fn base(length: usize) -> Base {
    Base {
        name: "disk.img".into(),
        store: Box::new(Bytes(bytes(length))),
        changed: Some(5_000_000_007),
    }
}

/// A place for a file of an overlay, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Place(
            std::env::temp_dir().join(format!("trueline-overlay-{}-{number}", std::process::id())),
        )
    }

    /// An overlay here over one disk.
    fn open(&self) -> Overlay {
        in_file(&self.0, vec![base(LENGTH)], true).unwrap().remove(0)
    }

    fn refused(&self, bases: Vec<Base>, writes: bool) -> String {
        in_file(&self.0, bases, writes).err().expect("it is refused").to_string()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Numbers that look random, the same ones every time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    /// A range that begins and ends on blocks, beside them, or anywhere.
    fn range(&mut self) -> (usize, usize) {
        let mut place = |most: usize| match self.below(3) {
            0 => self.below(most / 4096 + 1) * 4096,
            1 => self.below(most / 512 + 1) * 512,
            _ => self.below(most + 1),
        };
        let (a, b) = (place(LENGTH), place(LENGTH));
        let short = self.below(2) == 0;
        let (from, to) = (a.min(b), a.max(b));
        (from, if short { to.min(from + 9000) } else { to })
    }
}

/// Values that every byte may have: the one at the last flush, and those since.
struct Model {
    now: Vec<u8>,
    since: Vec<Vec<u8>>,
}

impl Model {
    fn new() -> Model {
        Model { now: bytes(LENGTH), since: vec![Vec::new(); LENGTH] }
    }

    fn put(&mut self, from: usize, to: usize, value: u8) {
        self.now[from..to].fill(value);
        self.since[from..to].iter_mut().for_each(|values| values.push(value));
    }

    fn flushed(&mut self) {
        self.since.iter_mut().for_each(Vec::clear);
    }

    /// Does one random operation on both. True if it flushed.
    fn step(&mut self, overlay: &Overlay, numbers: &mut Numbers) -> bool {
        let (from, to) = numbers.range();
        let (offset, length) = (from as u64, (to - from) as u64);
        match numbers.below(8) {
            0 => {
                overlay.try_zero(offset, length, numbers.below(2) == 0).unwrap();
                self.put(from, to, 0);
            }
            1 => {
                overlay.discard(offset, length).unwrap();
                // Whole blocks of it are zero, and no other byte is touched.
                let (first, last) =
                    (from.next_multiple_of(4096), if to == LENGTH { to } else { to / 4096 * 4096 });
                if first < last {
                    self.put(first, last, 0);
                }
            }
            2 => {
                overlay.flush().unwrap();
                self.flushed();
                return true;
            }
            3 => {
                let value = u8::try_from(numbers.below(255) + 1).unwrap();
                overlay.write_through(&vec![value; to - from], offset).unwrap();
                self.put(from, to, value);
                self.flushed();
                return true;
            }
            _ => {
                let value = u8::try_from(numbers.below(255) + 1).unwrap();
                overlay.write_at(&vec![value; to - from], offset).unwrap();
                self.put(from, to, value);
            }
        }
        false
    }

    #[track_caller]
    fn check(&self, overlay: &Overlay, numbers: &mut Numbers) {
        let mut all = vec![9; LENGTH];
        overlay.read_at(&mut all, 0).unwrap();
        let differs = all.iter().zip(&self.now).position(|(one, other)| one != other);
        assert_eq!(differs, None);
        let (from, to) = numbers.range();
        let mut part = vec![9; to - from];
        overlay.read_at(&mut part, from as u64).unwrap();
        assert!(part == self.now[from..to]);
        // What is told to be a hole of the overlay's reads as zeros, and runs reach the end.
        let (mut at, own) = (0, overlay.written());
        while at < LENGTH {
            let run = overlay.extent(at as u64, (LENGTH - at) as u64).unwrap();
            let whose = own.extent(at as u64, run.length).unwrap();
            assert!(whose.length == run.length && run.length > 0);
            let end = at + usize::try_from(run.length).unwrap();
            if whose.content == Content::Zero {
                assert!(
                    run.content == Content::Hole && self.now[at..end].iter().all(|&byte| byte == 0)
                );
            }
            assert!(whose.content != Content::Data || run.content == Content::Data);
            at = end;
        }
    }
}

#[test]
fn it_holds_what_a_shadow_of_it_holds() {
    for seed in 0..4 {
        let (overlay, mut model, mut numbers) =
            (in_memory(vec![base(LENGTH)]).unwrap().remove(0), Model::new(), Numbers(seed));
        for _ in 0..150 {
            model.step(&overlay, &mut numbers);
            model.check(&overlay, &mut numbers);
        }
    }
}

#[test]
fn what_is_flushed_is_there_when_it_is_opened_again() {
    for seed in 0..4 {
        let (place, mut model, mut numbers) = (Place::new(), Model::new(), Numbers(seed));
        let mut overlay = place.open();
        for nth in 0..120 {
            model.step(&overlay, &mut numbers);
            model.check(&overlay, &mut numbers);
            if nth % 20 == 19 {
                overlay.flush().unwrap();
                model.flushed();
                drop(overlay);
                overlay = place.open();
                model.check(&overlay, &mut numbers);
            }
        }
    }
}

/// A server that is killed leaves the file as it is at that moment: every byte is as at the last
/// flush, or as something written since.
#[test]
fn whatever_a_kill_leaves_no_byte_is_a_strangers() {
    let copy = Place::new();
    for seed in 0..4 {
        let (place, mut model, mut numbers) = (Place::new(), Model::new(), Numbers(seed));
        let mut flushed = bytes(LENGTH);
        let overlay = place.open();
        for _ in 0..40 {
            if model.step(&overlay, &mut numbers) {
                flushed.clone_from(&model.now);
            }
            std::fs::copy(&place.0, &copy.0).unwrap();
            let left = copy.open();
            let mut all = vec![0; LENGTH];
            left.read_at(&mut all, 0).unwrap();
            let may = |at: usize| all[at] == flushed[at] || model.since[at].contains(&all[at]);
            assert_eq!((0..LENGTH).find(|&at| !may(at)), None);
        }
    }
}

#[test]
fn threads_that_write_parts_of_one_block_lose_nothing() {
    let overlay = in_memory(vec![base(LENGTH)]).unwrap().remove(0);
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let overlay = overlay.clone();
            scope.spawn(move || {
                for sector in (0..u64::try_from(LENGTH / 512).unwrap())
                    .filter(|sector| sector % 8 == u64::from(thread))
                {
                    overlay.write_at(&[100 + thread; 512], sector * 512).unwrap();
                }
            });
        }
    });
    let mut all = vec![0; LENGTH / 512 * 512];
    overlay.read_at(&mut all, 0).unwrap();
    assert!(
        all.chunks(512)
            .zip((100..108).cycle())
            .all(|(sector, value)| sector.iter().all(|&byte| byte == value))
    );
}

#[test]
fn it_is_of_the_disks_that_it_was_made_over() {
    let place = Place::new();
    assert!(place.refused(vec![base(LENGTH)], false).contains("no such file"));
    let two = || vec![base(LENGTH), base(1 << 20)];
    let overlays = in_file(&place.0, two(), true).unwrap();
    overlays[1].write_at(&[1; 3], 5).unwrap();
    overlays[1].flush().unwrap();
    // Another server has it, and then none.
    assert!(place.refused(two(), true).contains("has locked it"));
    drop(overlays);
    let refused = |bases| place.refused(bases, true);
    assert!(
        refused(vec![base(LENGTH)])
            .contains("it was made over 2 disks, and the target has 1: name a new file")
    );
    assert!(refused(vec![base(1 << 20), base(LENGTH)]).contains("and disk.img has 1048576"));
    let mut other = two();
    let mut there = bytes(1 << 20);
    there[1024] ^= 1;
    other[1].store = Box::new(Bytes(there));
    assert!(refused(other).contains("over other content than disk.img has now"));
    let mut later = two();
    later[0].changed = Some(5_000_000_008);
    assert!(refused(later).contains("touch -d @5.000000007 disk.img"));
    // To look at, what is written is there and nothing can be added.
    let overlays = in_file(&place.0, two(), false).unwrap();
    let mut read = [0; 5];
    overlays[1].read_at(&mut read, 4).unwrap();
    assert_eq!(
        (read, overlays[1].write_at(&[0; 4096], 0)),
        ([1, 1, 1, 1, 1], Err(Errno::ReadOnly))
    );
    drop(overlays);
    let files: [&[u8]; 4] = [
        b"x",
        &[0; 8192],
        b"trueline overlay\x01\0\0\0",
        &std::fs::read(&place.0).unwrap()[..4095],
    ];
    for bytes in files {
        std::fs::write(&place.0, bytes).unwrap();
        assert!(place.refused(two(), true).contains("it is there and no overlay"));
    }
}

/// Bits of every byte of the header, and states that none is: refused, and no byte is read from
/// where it does not belong.
#[test]
fn a_damaged_file_is_refused() {
    let place = Place::new();
    let overlay = place.open();
    overlay.write_at(&[1; 4096], 0).unwrap();
    overlay.flush().unwrap();
    drop(overlay);
    let whole = std::fs::read(&place.0).unwrap();
    for bit in (0..96 * 8).chain(4080 * 8..4096 * 8).step_by(7) {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&place.0, damaged).unwrap();
        assert!(place.refused(vec![base(LENGTH)], true).contains("no overlay"), "{bit}");
    }
    for (at, byte) in [(4096, 3), (4096 + 17, 0x40), (8191, 1)] {
        let mut damaged = whole.clone();
        damaged[at] = byte;
        std::fs::write(&place.0, damaged).unwrap();
        assert!(place.refused(vec![base(LENGTH)], true).contains("its index is damaged"), "{at}");
    }
}

#[test]
fn what_is_too_long_is_refused() {
    struct Long;
    impl Store for Long {
        fn length(&self) -> u64 {
            LONGEST + 1
        }
        fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Errno> {
            Ok(())
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
    let long = || vec![Base { name: "zero:".into(), store: Box::new(Long), changed: None }];
    assert!(
        in_memory(long())
            .err()
            .expect("it is refused")
            .to_string()
            .contains("an overlay 281474976710656 at most")
    );
    assert!(in_file(Path::new("/nonexistent/x"), long(), true).is_err());
}

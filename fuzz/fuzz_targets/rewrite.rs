//! Goes on with a conversion in place, to either end: the disk and the journal are in the middle of
//! it, changed as the input says, with sums that are right again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use trueline_fuzz::input;
use trueline_fuzz::paper::{Failing, SECTOR, bytes, change, memory, numbers, repair};
use trueline_geom::base::resize::{Aim, Write};
use trueline_geom::base::store::Store;
use trueline_geom::convert::Conversion;
use trueline_geom::convert::rewrite::{Rewrite, Standing, Toward};

const DISK: u64 = 64 * SECTOR;

fuzz_target!(|data: &[u8]| {
    let (script, changes) = data.split_at(data.len().min(6));
    let mut number = input::numbers(script);
    let conversion = conversion(number(2) > 0);
    let mut rewrite = Rewrite::new(*b"another size of ", &conversion, "words");
    let size = rewrite.size().expect("it is short").next_multiple_of(2048);
    let (disk, paper) = (memory(DISK, numbers), memory(size, |_| 0));
    rewrite.record(&paper, &disk, &conversion.writes, &mut |_| {}).expect("there is room");
    let [mut old, mut new] = [bytes(&disk), bytes(&disk)];
    for write in &conversion.writes {
        let at = usize::try_from(write.at).unwrap_or(0);
        let length = usize::try_from(write.length()).unwrap_or(0);
        let read = &mut |at: u64, out: &mut [u8]| disk.read_at(out, at);
        write.fill(0, &mut new[at..at + length], read).expect("it is inside");
    }
    let end = |number: u64| if number == 0 { Toward::Old } else { Toward::New };
    for _ in 0..=number(2) {
        let _ =
            rewrite.run(&paper, &Failing::after(&disk, number(24)), end(number(3)), &mut |_| {});
    }
    let (last, repaired) = (end(number(2)), number(4) > 0);
    change(&paper, &disk, changes);
    if repaired {
        repair(&paper);
    }
    let unchanged = changes.len() < 4;
    let Ok(rewrite) = Rewrite::open(&paper) else {
        assert!(!unchanged, "a journal is not read as it was written");
        return;
    };
    let standing = rewrite.standing(&paper, &disk);
    let goes_on = matches!(standing, Ok(Standing::Old | Standing::New | Standing::Between));
    assert!(!unchanged || goes_on, "{standing:?}");
    if goes_on {
        let done = rewrite.run(&paper, &disk, last, &mut |_| {});
        assert!(!unchanged || done.is_ok());
    }
    if unchanged {
        let wanted = if last == Toward::New { &mut new } else { &mut old };
        assert!(bytes(&disk) == *wanted, "something was lost");
    }
});

/// Sectors that change: the first ones or not, some next to each other, some of copied bytes.
fn conversion(first: bool) -> Conversion {
    let mut writes = vec![
        Write::new(8 * SECTOR, vec![3; 3 * 512], "table"),
        Write::new(11 * SECTOR, vec![5; 512], "table"),
        Write::new(40 * SECTOR, vec![7; 9 * 512], "table"),
        Write::new(63 * SECTOR, vec![9; 512], "table"),
    ];
    if first {
        writes.insert(0, Write::new(0, vec![1; 2 * 512], "table"));
    }
    Conversion {
        aim: Aim { from: 512, to: 4096, universal: false },
        before: DISK,
        after: DISK,
        partitions: Vec::new(),
        rewritten: Vec::new(),
        writes,
        notes: Vec::new(),
    }
}

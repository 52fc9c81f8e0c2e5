//! Random requests against a vector of bytes.

use super::blank::{Shape, first, image};
use super::guest::{Asked, Random, all, open};
use super::tape::File;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;

/// Runs `count` requests, with parts read back between them; after them the image is opened again,
/// which counts all refcounts anew.
fn run(shape: Shape, base: usize, most: usize, count: usize, seed: u64) {
    let mut random = Random(seed | 1);
    let file = File::new(image(shape), most);
    let mut model = first(shape, base);
    let span = (3 * shape.cluster()).min(shape.size);
    for round in 0..3 {
        let store = open(&file, base).unwrap_or_else(|why| panic!("{shape:?} {round}: {why}"));
        assert!(store.is_checked());
        assert!(all(&store) == model, "{shape:?} {base} {round}");
        for _ in 0..count {
            let asked = Asked::random(&mut random, shape.size, 1, span);
            asked.run(&store);
            if let Some((at, length, byte)) = asked.change() {
                model[at..at + length].fill(byte);
            }
            let at = random.below(shape.size);
            let mut part = vec![9; random.below(span).min(shape.size - at)];
            store.read_at(&mut part, at as u64).unwrap();
            assert!(part == model[at..at + part.len()], "{shape:?} {base} {asked:?} {at}");
            let mut same = vec![9; part.len()];
            if store.try_read(&mut same, at as u64).unwrap() {
                assert!(same == part, "{shape:?} {base} {asked:?} {at}");
            }
        }
        assert!(all(&store) == model, "{shape:?} {base} {round}");
        store.flush().unwrap();
    }
}

#[test]
fn what_is_written_is_read_back() {
    for version in [2, 3] {
        for (bits, size) in [(9, 300 << 10), (10, 70_000), (12, 1 << 20), (16, 3 << 20)] {
            for base in [0, size / 4 * 3 + 100, size + 5000] {
                let shape = Shape { backed: base > 0, ..Shape::new(version, bits, size) };
                run(shape, base, usize::MAX, 60, u64::from(bits) * 7 + base as u64);
            }
        }
    }
    run(Shape::new(3, 21, 9 << 20), 0, usize::MAX, 15, 77);
    run(Shape { backed: true, ..Shape::new(2, 21, 5 << 20) }, 3 << 20, usize::MAX, 15, 78);
}

#[test]
fn compressed_clusters_give_way() {
    for bits in [12, 16] {
        for base in [0, 200_000] {
            let shape = Shape { packed: 30, backed: base > 0, ..Shape::new(3, bits, 40 << bits) };
            run(shape, base, usize::MAX, 60, 5 + base as u64);
        }
    }
}

#[test]
fn refcounts_of_any_width_are_kept() {
    for order in 0..=6 {
        run(Shape { order, ..Shape::new(3, 12, 1 << 20) }, 0, usize::MAX, 60, 11);
    }
}

/// Tables of small clusters have room for 2 MiB of a file with refcounts of 64 bits; longer ones
/// are made, twice.
#[test]
fn a_refcount_table_is_made_longer() {
    let shape = Shape { order: 6, ..Shape::new(3, 9, 9 << 20) };
    let file = File::new(image(shape), usize::MAX);
    let mut model = first(shape, 0);
    for round in 0..2 {
        let store = open(&file, 0).unwrap();
        for nth in 0..90 {
            let (at, byte) = (nth * 100_000 + round * 9000, u8::try_from(nth).unwrap() + 1);
            store.write_at(&[byte; 70_000], at as u64).unwrap();
            model[at..at + 70_000].fill(byte);
        }
        assert!(all(&store) == model, "{round}");
        store.flush().unwrap();
    }
    assert!(all(&open(&file, 0).unwrap()) == model);
    assert!(file.tape().bytes[59] > 2, "clusters of the table");
}

/// A device has what it has, and what lies behind the image there is anything.
#[test]
fn a_device_is_written_up_to_its_end() {
    let shape = Shape::new(3, 12, 1 << 20);
    let mut bytes = image(shape);
    bytes.resize(bytes.len() + (2 << 20), 0xee);
    let file = File::new(bytes, 0);
    let mut model = first(shape, 0);
    let mut random = Random(3);
    for _ in 0..3 {
        let store = open(&file, 0).unwrap();
        for _ in 0..80 {
            let asked = Asked::random(&mut random, shape.size, 1, 9000);
            asked.run(&store);
            if let Some((at, length, byte)) = asked.change() {
                model[at..at + length].fill(byte);
            }
        }
        assert!(all(&store) == model);
        store.flush().unwrap();
    }
}

/// Where the file cannot grow any more a write fails, and nothing else does.
#[test]
fn a_full_file_loses_nothing() {
    let shape = Shape::new(3, 12, 1 << 20);
    let file = File::new(image(shape), 300 << 10);
    let store = open(&file, 0).unwrap();
    let mut model = first(shape, 0);
    let mut random = Random(9);
    let mut refused = 0;
    for _ in 0..300 {
        let at = random.below(250) * 4096;
        let byte = u8::try_from(random.below(255)).unwrap() + 1;
        match store.write_at(&[byte; 4096], at as u64) {
            Ok(()) => model[at..at + 4096].fill(byte),
            Err(Errno::NoSpace) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 100 && all(&store) == model);
    store.flush().unwrap();
    let again = open(&file, 0).unwrap();
    assert!(all(&again) == model);
}

/// Writes of the file that fail, each in turn: the request fails, and those before it stay.
#[test]
fn a_failed_write_leaves_what_was_there() {
    for fails in 0..60 {
        let shape = Shape { backed: true, ..Shape::new(3, 12, 1 << 20) };
        let file = File::new(image(shape), usize::MAX);
        let store = open(&file, 600_000).unwrap();
        let mut model = first(shape, 600_000);
        file.tape().fails_after = Some(fails);
        for nth in 0..20 {
            let (at, byte) = (nth * 50_000 + 700, u8::try_from(nth).unwrap() + 1);
            match store.write_at(&[byte; 3000], at as u64) {
                Ok(()) => model[at..at + 3000].fill(byte),
                Err(errno) => assert_eq!(errno, Errno::NoSpace),
            }
            if nth % 5 == 4 {
                let _ = store.flush();
            }
        }
        file.tape().fails_after = None;
        store.flush().unwrap();
        assert!(all(&store) == model, "{fails}");
        let again = open(&file, 600_000).unwrap_or_else(|why| panic!("{fails}: {why}"));
        assert!(all(&again) == model, "{fails}");
    }
}

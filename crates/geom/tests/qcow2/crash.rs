//! States that a loss of power or a kill may leave, at any write.

use super::blank::{Shape, image};
use super::guest::{Asked, Random, all, open};
use super::recording::record;
use super::tape::{Change, File, left_of};
use trueline_geom::base::store::Store;

/// Shapes whose states are looked at, with the length of the backing file.
fn shapes() -> Vec<(Shape, usize)> {
    let mut shapes = Vec::new();
    for version in [2, 3] {
        for (bits, size) in [(9, 200 << 10), (12, 600 << 10), (16, 1 << 20)] {
            for base in [0, size / 2] {
                let shape = Shape { backed: base > 0, ..Shape::new(version, bits, size) };
                shapes.push((shape, base));
            }
        }
    }
    shapes.push((Shape { packed: 20, ..Shape::new(3, 12, 200 << 10) }, 0));
    shapes.push((Shape { packed: 20, backed: true, ..Shape::new(2, 12, 200 << 10) }, 150 << 10));
    shapes
}

#[test]
fn after_a_loss_of_power_nothing_flushed_is_lost() {
    let mut random = Random(0x5eed);
    let mut states = 0;
    for (shape, parent) in shapes() {
        for _ in 0..2 {
            let recording = record(image(shape), parent, 40, 3 * shape.cluster(), &mut random);
            for count in 1..=recording.changes.len() {
                for kill in [true, false] {
                    let bytes =
                        left_of(&recording.base, &recording.changes, count, kill, &mut random);
                    let file = File::new(bytes, usize::MAX);
                    // Opening counts the refcounts anew.
                    let store = open(&file, parent)
                        .unwrap_or_else(|why| panic!("{shape:?} after {count}: {why}"));
                    recording.check(&all(&store), count);
                    states += 1;
                }
            }
        }
    }
    assert!(states > 2000, "{states}");
}

/// A refcount table is made longer on the way.
#[test]
fn a_loss_of_power_while_the_refcount_table_grows() {
    let mut random = Random(0x7ab1e);
    let shape = Shape { order: 6, ..Shape::new(3, 9, 4 << 20) };
    let recording = record(image(shape), 0, 60, 250_000, &mut random);
    let is_header = |change: &Change| matches!(change, Change::Write(48, _));
    let changes = &recording.changes;
    let grown: Vec<usize> = (0..changes.len()).filter(|&nth| is_header(&changes[nth])).collect();
    assert!(!grown.is_empty());
    let around = grown.iter().flat_map(|&nth| nth - 30..nth + 30);
    for count in around.chain((0..changes.len()).step_by(97)).filter(|&nth| nth < changes.len()) {
        for kill in [true, false] {
            let bytes = left_of(&recording.base, changes, count, kill, &mut random);
            let file = File::new(bytes, usize::MAX);
            let store = open(&file, 0).unwrap_or_else(|why| panic!("after {count}: {why}"));
            recording.check(&all(&store), count);
        }
    }
}

/// The disk goes on from any state, and is right again.
#[test]
fn writing_goes_on_after_a_loss_of_power() {
    let mut random = Random(0xfeed);
    for (shape, parent) in shapes() {
        let recording = record(image(shape), parent, 30, 3 * shape.cluster(), &mut random);
        for _ in 0..8 {
            let count = random.below(recording.changes.len()) + 1;
            let bytes = left_of(&recording.base, &recording.changes, count, false, &mut random);
            let file = File::new(bytes, usize::MAX);
            let store = open(&file, parent).unwrap();
            let mut model = all(&store);
            for _ in 0..20 {
                let asked = Asked::random(&mut random, shape.size, 1, 2 * shape.cluster());
                asked.run(&store);
                if let Some((at, length, byte)) = asked.change() {
                    model[at..at + length].fill(byte);
                }
            }
            store.flush().unwrap();
            assert!(all(&open(&file, parent).unwrap()) == model, "{shape:?}");
        }
    }
}

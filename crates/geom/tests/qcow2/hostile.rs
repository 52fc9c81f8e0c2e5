//! Images in which anything may be wrong, written to: an input is the shape of an image, what is
//! changed in it, and the requests of a guest.
//!
//! ```text
//! 0     version and backing file      3  compressed clusters
//! 1     bits of a cluster             4  requests
//! 2     width of a refcount           5  seed of the requests, and the size of the disk
//! then for every change: a place in the file (u24, modulo its length), a byte
//! ```

use super::blank::{Shape, image};
use super::guest::{Asked, Random, disks};
use super::tape::File;
use trueline_geom::base::store::Store;
use trueline_geom::class::qcow2::writing::NotWritable;
use trueline_geom::graph::Graph;
use trueline_geom::graph::image_store::ImageStore;
use trueline_geom::probe::Limits;

/// Bytes of the disk that requests lie in: the first ones.
const NEAR: usize = 1 << 20;
/// Bytes that the file may grow to.
const MOST: usize = 8 << 20;
/// Bytes of the input before the changes.
const SCRIPT: usize = 6;

/// The image that is written, `None` where the disk in it was not found.
fn open(file: &File, base: usize) -> Option<Result<ImageStore, NotWritable>> {
    let graph = Graph::taste(disks(file, base), Limits::default());
    graph.find(".disk").map(|contents| ImageStore::open(&graph, contents))
}

/// Does what an input says. An image that is taken for writing, whole as it then is, has what is
/// written, and is taken again afterwards.
pub fn run(data: &[u8]) {
    let (script, changes) = data.split_at(data.len().min(SCRIPT));
    let byte = |nth: usize| script.get(nth).copied().map_or(0, usize::from);
    let bits = [9, 10, 12, 16][byte(1) % 4];
    let packed = u8::try_from(byte(3) % 4).unwrap();
    // Several compressed clusters may lie in one, which is counted for each.
    let least = if packed > 0 { 2 } else { 0 };
    let shape = Shape {
        order: if byte(0) % 2 == 0 { 4 } else { u32::try_from(byte(2) % 7).unwrap().max(least) },
        backed: byte(0) & 2 != 0,
        packed,
        ..Shape::new(2 + u32::from(byte(0) % 2 == 1), bits, (300 << 10) + byte(5) * 1000)
    };
    let base = if shape.backed { shape.size / 2 + 100 } else { 0 };
    let mut bytes = image(shape);
    for change in changes.chunks_exact(4) {
        let at = u32::from_le_bytes([change[0], change[1], change[2], 0]);
        let at = usize::try_from(at).unwrap() % bytes.len();
        bytes[at] = change[3];
    }
    let unchanged = changes.len() < 4;
    let file = File::new(bytes, MOST);
    let store = match open(&file, base) {
        Some(Ok(store)) => store,
        Some(Err(why)) if unchanged => panic!("nothing is wrong with it: {why}: {shape:?}"),
        found => return assert!(found.is_some() || !unchanged),
    };
    let near = usize::try_from(store.length()).unwrap_or(NEAR).min(NEAR);
    let mut model = vec![0; near];
    // A compressed cluster may be none.
    if near == 0 || store.read_at(&mut model, 0).is_err() {
        assert!(!unchanged);
        return;
    }
    let mut random = Random(byte(5) as u64 | 1);
    for _ in 0..byte(4) % 40 {
        let asked = Asked::random(&mut random, near, 1, 3 << bits);
        if asked.try_run(&store).is_err() {
            assert!(!unchanged, "{asked:?}");
            break;
        }
        if let Some((at, length, byte)) = asked.change() {
            model[at..at + length].fill(byte);
        }
        let at = random.below(near);
        let mut part = vec![9; random.below(2 << bits).min(near - at)];
        store.read_at(&mut part, at as u64).expect("it was read before");
        assert!(part == model[at..at + part.len()], "{asked:?} {at}");
    }
    let flushed = store.flush();
    assert!(flushed.is_ok() || !unchanged);
    if flushed.is_err() || !store.is_checked() {
        return;
    }
    drop(store);
    let again = open(&file, base).expect("a disk in it");
    let again = again.unwrap_or_else(|why| panic!("it is not taken again: {why}"));
    assert!(again.is_checked());
}

#[test]
fn hostile_images_end_and_lose_nothing() {
    for seed in 0..200 {
        let mut random = Random(seed * 2 + 1);
        let mut data: Vec<u8> =
            (0..SCRIPT).map(|_| u8::try_from(random.below(256)).unwrap()).collect();
        // Of every image the one without a change too; changes mostly lie in what is not data.
        for _ in 0..random.below(4) {
            let far = [120, 2 << 10, 64 << 10, 1 << 24][random.below(4)];
            let at = u32::try_from(random.below(far)).unwrap().to_le_bytes();
            let byte = [0, 1, 0x80, 0xff, u8::try_from(random.below(256)).unwrap()];
            data.extend([at[0], at[1], at[2], byte[random.below(5)]]);
        }
        run(&data);
    }
}

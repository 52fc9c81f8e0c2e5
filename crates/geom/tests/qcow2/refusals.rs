//! Images that are not written, each with its reason.

use super::blank::{Shape, image};
use super::guest::open;
use super::tape::File;

/// The reason for which an image is not written after `change`; `None` if it is.
fn reason(shape: Shape, change: impl Fn(&mut Vec<u8>)) -> Option<String> {
    let mut bytes = image(shape);
    change(&mut bytes);
    open(&File::new(bytes, usize::MAX), 0).err().map(|why| why.to_string())
}

#[test]
fn what_is_not_understood_whole_is_not_written() {
    let shape = Shape { packed: 3, ..Shape::new(3, 12, 1 << 20) };
    let said = |at: usize, byte: u8| reason(shape, |bytes| bytes[at] = byte);
    assert_eq!(reason(shape, |_| ()), None);
    // Lazy refcounts are allowed, and not needed.
    assert_eq!(said(87, 1), None);
    for (at, byte, part) in [
        (79, 1, "not closed"),
        (63, 1, "snapshots"),
        (95, 1, "bitmaps"),
        (99, 7, "wider"),
        (54, 1, "refcount table is not"),
        (59, 0, "refcount table is not"),
        // Refcounts of the header, of a table, of a compressed cluster.
        (2 * 4096 + 1, 0, "refcounts are wrong"),
        (2 * 4096 + 3, 2, "refcounts are wrong"),
        (2 * 4096 + 11, 2, "refcounts are wrong"),
        // Entries of L1, of L2, of the refcount table.
        (3 * 4096, 0, "cannot be true"),
        (4 * 4096, 0xc0, "cannot be true"),
        (4 * 4096 + 31, 2, "cannot be true"),
        (4096 + 7, 1, "cannot be true"),
        (3 * 4096 + 4, 0x70, "past the end"),
    ] {
        let found = said(at, byte);
        assert!(
            found.as_ref().is_some_and(|why| why.contains(part)),
            "{at} {byte} {part}: {found:?}"
        );
    }
    // A cluster that nothing leads to is lost, not wrong.
    assert_eq!(said(2 * 4096 + 2 * 9 + 1, 1), None);
}

#[test]
fn a_file_that_cannot_grow_is_not_written() {
    let file = File::new(image(Shape::new(3, 12, 1 << 20)), 0);
    let why = open(&file, 0).err().map(|why| why.to_string());
    assert_eq!(why.as_deref(), Some("its file cannot grow"));
}

/// Any byte of the header and tables, changed in any way: an answer, and no panic; what is opened
/// can be read and written without a panic too.
#[test]
fn hostile_tables_are_answered() {
    use super::guest::Random;
    use trueline_geom::base::store::Store;
    let mut random = Random(1);
    let shape = Shape { packed: 3, ..Shape::new(3, 9, 60_000) };
    let good = image(shape);
    for _ in 0..4000 {
        let mut bytes = good.clone();
        for _ in 0..random.below(3) + 1 {
            let at = random.below(bytes.len());
            // The header is hit as often as everything behind it.
            let at = if random.below(2) == 0 { at % 112 } else { at };
            bytes[at] = match random.below(3) {
                0 => bytes[at] ^ 1 << random.below(8),
                1 => 0xff,
                _ => u8::try_from(random.below(256)).unwrap(),
            };
        }
        let file = File::new(bytes, 4 << 20);
        let disks = vec![trueline_geom::graph::Disk::new(
            "",
            Box::new(file.clone()),
            trueline_geom::base::topology::Topology::new(512, file.length()),
        )];
        let graph =
            trueline_geom::graph::Graph::taste(disks, trueline_geom::probe::Limits::default());
        let Some(contents) = graph.find(".disk") else { continue };
        let opened = trueline_geom::graph::image_store::ImageStore::open(&graph, contents);
        let Ok(store) = opened else { continue };
        let end = store.length().min(1 << 20);
        for at in (0..end).step_by(5000) {
            let _ = store.read_at(&mut [0; 700], at);
            let _ = store.write_at(&[1; 700], at);
            let _ = store.zero(at, 600);
        }
        let _ = store.flush();
    }
}

use super::*;
use crate::layer::{FLUSH, ask};

const BACKING: u64 = 1 << 40;
const DISK: u64 = 64 << 20;

/// Requests that a new image of 64 MiB makes for each of `asks`, through the page cache.
fn planned(keys: Keys, asks: &[Ask]) -> (Vec<Vec<Ask>>, Zeroed) {
    let mut layer = Qcow2::new(Keys { size: Some(DISK), alignment: Some(1), ..keys }).unwrap();
    layer.attach(2 * BACKING, 1).unwrap();
    let plan = |ask: &Ask| {
        let mut steps = Steps::default();
        layer.plan(*ask, &mut steps).unwrap();
        steps.asks().collect()
    };
    (asks.iter().map(plan).collect(), layer.zeroed())
}

/// The requests that give an image its first L2 table.
fn first_table() -> Vec<Ask> {
    vec![
        ask(Op::Read, 131_072, 65536),
        ask(Op::Write, 131_072, 65536),
        FLUSH,
        ask(Op::Write, 262_144, 65536),
        FLUSH,
        ask(Op::Write, 196_608, 8),
        FLUSH,
    ]
}

/// The requests of a flush after something was made.
fn flushed() -> Vec<Ask> {
    [131_072, 262_144].iter().flat_map(|&at| [ask(Op::Write, at, 65536), FLUSH]).collect()
}

#[test]
fn copies_are_those_that_qemu_was_seen_to_make() {
    let keys = Keys { backing: Some(BACKING), ..Keys::default() };
    let asks = [
        ask(Op::Write, 1000, 512),
        ask(Op::Write, 2000, 512),
        ask(Op::Write, 100_000, 100_000),
        ask(Op::Write, 655_360, 4096),
        ask(Op::Read, 0, 300_000),
        FLUSH,
    ];
    let made = [
        // Head and tail are read at once, for at most 16 KiB lie between them.
        [first_table(), vec![ask(Op::Read, BACKING, 65536), ask(Op::Write, 327_680, 65536)]]
            .concat(),
        vec![ask(Op::Write, 329_680, 512)],
        vec![
            ask(Op::Read, BACKING + 65536, 34464),
            ask(Op::Read, BACKING + 200_000, 62144),
            ask(Op::Write, 393_216, 196_608),
        ],
        vec![ask(Op::Read, BACKING + 659_456, 61440), ask(Op::Write, 589_824, 65536)],
        vec![ask(Op::Read, 327_680, 262_144), ask(Op::Read, BACKING + 262_144, 37856)],
        flushed(),
    ];
    assert_eq!(planned(keys, &asks), (made.to_vec(), Zeroed::default()));
}

#[test]
fn without_a_backing_file_the_rest_of_a_cluster_is_made_zero() {
    let asks = [
        ask(Op::Write, 1000, 512),
        ask(Op::Write, 131_072, 65536),
        ask(Op::Write, 100_000, 200_000),
        FLUSH,
        FLUSH,
        Ask { fua: true, ..ask(Op::Write, 5000, 10) },
    ];
    let made = [
        [first_table(), vec![ask(Op::Write, 328_680, 512)]].concat(),
        vec![ask(Op::Write, 393_216, 65536)],
        // Three ranges of the file, in flight together.
        vec![
            ask(Op::Write, 493_216, 31072),
            ask(Op::Write, 393_216, 65536),
            ask(Op::Write, 524_288, 103_392),
        ],
        flushed(),
        vec![],
        vec![ask(Op::Write, 332_680, 10), FLUSH],
    ];
    let zeroed = Zeroed { ranges: 3, bytes: 2 * 65536 + 131_072 };
    assert_eq!(planned(Keys::default(), &asks), (made.to_vec(), zeroed));
}

#[test]
fn an_image_ends_where_its_space_does() {
    let keys = Keys { size: Some(DISK), ..Keys::default() };
    let mut layer = Qcow2::new(keys).unwrap();
    layer.attach(8 * 65536, 512).unwrap();
    let mut steps = Steps::default();
    assert_eq!(layer.plan(ask(Op::Write, 0, 3 * 65536), &mut steps), Ok(()));
    assert_eq!(layer.plan(ask(Op::Write, 1 << 20, 512), &mut steps), Err(Errno::NoSpace));
    let mut steps = Steps::default();
    assert_eq!(layer.plan(ask(Op::Write, 0, 512), &mut steps), Ok(()));
    assert_eq!(steps.asks().collect::<Vec<_>>(), [ask(Op::Write, 327_680, 512)]);
}

#[test]
fn what_the_format_has_not_is_refused() {
    let refused = |keys: Keys, length: u64| {
        let made = Qcow2::new(keys).and_then(|mut layer| layer.attach(length, 512));
        made.unwrap_err().to_string()
    };
    let plain = Keys::default();
    let cases = [
        (Keys { cluster: 3072, ..plain }, "clusters of 3072"),
        (Keys { cluster: 4 << 20, ..plain }, "clusters of 4194304"),
        (Keys { cluster: 8192, subclusters: true, ..plain }, "subclusters of clusters of 8192"),
        (Keys { backing: Some(1 << 20), preallocated: true, ..plain }, "preallocated over"),
        (Keys { backing: Some(2 << 30), ..plain }, "a backing file at 2147483648"),
        (Keys { backing: Some(1 << 29), size: Some(1 << 30), ..plain }, "a disk of 1073741824"),
        (Keys { alignment: Some(131_072), ..plain }, "alignment 131072"),
        (Keys { alignment: Some(256), ..plain }, "alignment 256"),
        (Keys { size: Some(1000), ..plain }, "a disk of 1000"),
        (Keys { cluster: 512, size: Some(1 << 40), ..plain }, "more than 4194304 L2 tables"),
    ];
    for (keys, words) in cases {
        let said = refused(keys, 1 << 30);
        assert!(said.contains(words), "{said}");
    }
    assert!(refused(plain, 65536).starts_with("a file of 65536 bytes: too small"));
}

#[test]
fn the_largest_disk_can_be_filled() {
    // The refcount table of clusters of 512 bytes grows at 8 MiB, that of 1 KiB at 64 MiB.
    for (cluster, beneath) in [(512, 41 << 20), (1024, 100 << 20)] {
        let keys = Keys { cluster, ..Keys::default() };
        let mut layer = Qcow2::new(keys).unwrap();
        layer.attach(beneath, 512).unwrap();
        let size = layer.length(beneath);
        assert!(size > beneath / 100 * 95, "{cluster}: {size} of {beneath}");
        let mut at = 0;
        while at < size {
            let length = (1 << 20).min(size - at);
            let planned = layer.plan(ask(Op::Write, at, length), &mut Steps::default());
            assert_eq!(planned, Ok(()), "{cluster}: at {at} of {size}");
            at += length;
        }
    }
}

#[test]
fn an_image_that_cannot_be_preallocated_in_time_is_refused() {
    let refused = |keys: Keys| Qcow2::new(keys).unwrap().attach(1 << 50, 512).unwrap_err().message;
    let message = refused(Keys { preallocated: true, ..Keys::default() });
    assert!(message.contains("more than 4194304 clusters of 65536"), "{message}");
    let message = refused(Keys { size: Some(0), ..Keys::default() });
    assert_eq!(message, "size = 0: a disk has at least a sector");
}

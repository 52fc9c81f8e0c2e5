//! Descriptors of snapshots, whose extents lack what was not written since, and extents that are
//! too short.

use super::super::super::container::tests::{findings, opened_among, opened_on, read};
use super::{descriptor, disk, esx, hosted, se_sparse, whole};
use crate::base::error::Errno;
use crate::base::store::Sparse;
use crate::graph::{Graph, Id};

const PARENT: &str = "parentFileNameHint=\"/vmfs/volumes/1/vm/base.vmdk\"\n";

/// The disk of a snapshot with `lines`, of which both extents are `delta`, over a bare parent whose
/// sector `n` is filled with `n`, of so many sectors.
fn snapshot(lines: &str, delta: Sparse, sectors: u8) -> (Graph, Option<Id>) {
    let bytes: Vec<u8> = (0..sectors).flat_map(|nth| [nth; 512]).collect();
    let child = descriptor("cafe0001", &format!("{PARENT}{lines}"));
    let parent = descriptor("ffffffff", &format!("RW {sectors} FLAT \"base-flat.vmdk\" 0\n"));
    opened_among(vec![
        ("", child, vec![("delta", 1), ("base.vmdk", 2)]),
        ("delta", delta, vec![]),
        ("base", parent, vec![("base-flat.vmdk", 3)]),
        ("base-flat", whole(&bytes), vec![]),
    ])
}

/// Grains that an extent lacks are in its part of the parent: of the second, behind the first.
#[test]
fn an_absent_grain_is_the_parents_at_the_place_of_the_extent() {
    let lines = "RW 8 VMFSSPARSE \"delta\"\nRW 16 VMFSSPARSE \"delta\"\nRW 1 ZERO\n";
    let it = snapshot(lines, whole(&esx()), 20);
    let expected = |sectors: &[u8]| sectors.iter().flat_map(|&n| [n; 512]).collect::<Vec<u8>>();
    assert_eq!(read(&it, 0, 4096), Ok(expected(&[b'd', 1, b'c', 3, 4, 5, 6, 7])));
    let second = [b'd', 9, b'c', 11, 12, 13, 14, 15, 16, 17, 18, 19, 0, 0, 0, 0, 0];
    assert_eq!(read(&it, 4096, 17 * 512), Ok(expected(&second)));
    assert_eq!(findings(&it), Vec::<&str>::new());
    assert!(it.0.providers[1].findings.is_empty(), "{:?}", it.0.providers[1].findings);
}

#[test]
fn grains_of_se_sparse_and_of_workstation_are_the_parents_too() {
    let mut runs = se_sparse();
    // The second one is absent, where it was unmapped, which is zero.
    runs[1].1[8..16].fill(0);
    let runs: Vec<(u64, &[u8])> = runs.iter().map(|(at, bytes)| (*at, &bytes[..])).collect();
    let it = snapshot("RW 32 SESPARSE \"delta\"\n", disk(64 << 20, &runs), 40);
    assert_eq!(read(&it, 0, 512), Ok(vec![b's'; 512]));
    assert_eq!(read(&it, 9 * 512, 512), Ok(vec![9; 512]));
    assert_eq!(read(&it, 16 * 512, 512), Ok(vec![0; 512]));
    let it = snapshot("RW 64 SPARSE \"delta\"\n", whole(&hosted(7)), 40);
    assert_eq!(read(&it, 0, 512), Ok(vec![b'b'; 512]));
    assert_eq!(read(&it, 17 * 512, 512), Ok(vec![17; 512]));
    assert_eq!(read(&it, 33 * 512, 512), Ok(vec![0; 512]));
}

/// Extents do not say that there is no parent, and the descriptor does.
#[test]
fn without_a_parent_an_absent_grain_is_zero() {
    let text = descriptor("ffffffff", "RW 4096 VMFSSPARSE \"d\"\n");
    let it = opened_on(text, "d", whole(&esx()));
    assert_eq!(read(&it, 0, 1024), Ok([[b'd'; 512], [0; 512]].concat()));
    assert!(it.0.providers[1].findings.is_empty(), "{:?}", it.0.providers[1].findings);
}

/// Memory for pages of tables is taken by each of them.
#[test]
fn so_many_sparse_extents_are_not_joined() {
    for (count, is_disk) in [(256, true), (257, false)] {
        let text = descriptor("ffffffff", &"RW 8 SPARSE \"d\"\n".repeat(count));
        assert_eq!(opened_on(text, "d", whole(&hosted(7))).1.is_some(), is_disk, "{count}");
    }
}

#[test]
fn another_parent_is_not_read_through() {
    let lines = "RW 8 VMFSSPARSE \"delta\"\n";
    let child = descriptor("12345678", &format!("{PARENT}{lines}"));
    let it = opened_among(vec![
        ("", child, vec![("delta", 1), ("base.vmdk", 2)]),
        ("delta", whole(&esx()), vec![]),
        ("base", descriptor("ffffffff", "RW 8 ZERO\n"), vec![]),
    ]);
    assert_eq!(findings(&it), ["TL0019"]);
    assert!(!it.0.providers[it.1.expect("a disk")].seen);
}

/// A file that is shorter than its line says is said to be when it is tasted.
#[test]
fn an_extent_that_is_too_short_is_found() {
    let bare = || disk(8 * 512, &[(0, &[b'x'; 4096])]);
    for (line, is_short) in [
        ("RW 8 FLAT \"d\" 0\n", false),
        ("RW 8 FLAT \"d\" 1\n", true),
        ("RW 9 FLAT \"d\" 0\n", true),
    ] {
        let it = opened_on(descriptor("ffffffff", line), "d", bare());
        let expected: &[&str] = if is_short { &["TL0020"] } else { &[] };
        assert_eq!(findings(&it), expected, "{line}");
        let last = it.0.providers[it.1.expect("a disk")].topology.length - 512;
        let expected = if is_short { Err(Errno::Io) } else { Ok(vec![b'x'; 512]) };
        assert_eq!(read(&it, last, 512), expected, "{line}");
    }
    // Of an extent with tables its own size counts, and not that of its file.
    let text = descriptor("ffffffff", "RW 65 SPARSE \"d\"\n");
    let it = opened_on(text, "d", whole(&hosted(7)));
    let found = &it.0.providers[0].findings;
    assert!(found[0].message.contains("'d' has 32768 bytes, and is to have 33280"), "{found:?}");
    let lines = "RW 9 FLAT \"d\" 0\n".repeat(6);
    let it = opened_on(descriptor("ffffffff", &lines), "d", bare());
    assert_eq!(findings(&it).len(), 4);
    assert!(it.0.providers[0].findings[3].message.contains("2 more"));
}

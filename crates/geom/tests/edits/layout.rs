//! Layouts of nested tables, with power failing anywhere in them: what is found is the old, the
//! new, or what is said of the way.

use crate::crash::{Cut, every_state_or};
use crate::disk::{found, on, probe, written};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::layout::{Layout, May, Part, Planned, Size, in_order, plan};
use trueline_geom::registry;

const M: u64 = 1 << 20;

fn part(kind: &str, size: Size) -> Part {
    Part {
        index: None,
        start: None,
        size,
        kind: kind.into(),
        label: None,
        uuid: None,
        attributes: None,
        inside: None,
    }
}

fn holding(kind: &str, size: Size, inside: Layout) -> Part {
    Part { inside: Some(inside), ..part(kind, size) }
}

fn table(name: &str, parts: Vec<Part>) -> Layout {
    let scheme = registry::scheme_named(name).unwrap();
    Layout {
        scheme,
        id: None,
        entries: None,
        usable: None,
        align: None,
        dialect: None,
        from_above: false,
        parts,
    }
}

/// A label of a swap partition and a file system.
fn label() -> Layout {
    table("BSD", vec![part("freebsd-swap", Size::Bytes(M)), part("freebsd-ufs", Size::Rest)])
}

/// An extended partition of `size` with logical ones of `sizes`.
fn extended(size: Size, sizes: &[u64]) -> Part {
    holding(
        "extended",
        size,
        table("EBR", sizes.iter().map(|&size| part("linux-data", Size::Bytes(size))).collect()),
    )
}

fn planned(disk: &Sparse, layout: &Layout, may: May) -> Planned {
    let mut seed = 0;
    let mut random = || {
        seed += 1;
        [seed; 16]
    };
    let made = on(disk, 512, |ground| {
        probe(disk, 512, None, |probe| plan(layout, probe, ground, disk.length(), may, &mut random))
    });
    made.unwrap_or_else(|refused| panic!("{refused:?}"))
}

/// The disk with that layout.
fn with(disk: &Sparse, layout: &Layout) -> Sparse {
    written(disk, &in_order(&planned(disk, layout, May::default()).stages))
}

/// Applies `layout` in every interrupted way; gives what is said of the states between.
fn interrupted(disk: &Sparse, layout: &Layout, may: May) -> Vec<String> {
    let planned = planned(disk, layout, may);
    let (mut so_far, mut between, mut said): (Vec<Patch>, Vec<Vec<String>>, Vec<String>) =
        Default::default();
    for stage in &planned.stages {
        so_far.extend(stage.patches.iter().cloned());
        if let Some(leaves) = &stage.leaves {
            between.push(found(&written(disk, &so_far), 512));
            said.push(leaves.clone());
        }
    }
    let patches = in_order(&planned.stages);
    assert!(!patches.is_empty() && !found(&written(disk, &patches), 512).is_empty());
    assert!(every_state_or(disk, &patches, 512, Cut::Sector, &between) >= 2);
    said
}

const REPLACE: May = May { delete: true, replace: true };

#[test]
fn tables_inside_new_partitions_appear_with_them() {
    let blank = Sparse::new(64 * M);
    let deep = holding(
        "extended",
        Size::Bytes(30 * M),
        table("EBR", vec![holding("freebsd", Size::Bytes(9 * M), label())]),
    );
    let inner = table(
        "MBR",
        vec![part("linux-data", Size::Bytes(4 * M)), extended(Size::Rest, &[M, 2 * M])],
    );
    for layout in [
        table(
            "MBR",
            vec![
                part("efi", Size::Bytes(4 * M)),
                deep,
                holding("freebsd", Size::Bytes(20 * M), label()),
            ],
        ),
        table(
            "GPT",
            vec![part("efi", Size::Bytes(4 * M)), holding("freebsd", Size::Rest, label())],
        ),
        table("GPT", vec![holding("linux-data", Size::Rest, inner)]),
    ] {
        assert!(interrupted(&blank, &layout, May::default()).is_empty());
    }
    // Beside a partition that stays, in space that is free.
    for (scheme, kind) in [("GPT", "freebsd"), ("MBR", "freebsd")] {
        let first = || part("linux-data", Size::Bytes(8 * M));
        let disk = with(&blank, &table(scheme, vec![first()]));
        let layout = table(scheme, vec![first(), holding(kind, Size::Rest, label())]);
        assert!(interrupted(&disk, &layout, May::default()).is_empty(), "{scheme}");
    }
    // A label in a slice that is there already is one table.
    let slice = with(&blank, &table("MBR", vec![part("freebsd", Size::Rest)]));
    assert!(
        interrupted(
            &slice,
            &table("MBR", vec![holding("freebsd", Size::Rest, label())]),
            May::default()
        )
        .is_empty()
    );
}

#[test]
fn in_the_place_of_another_the_partition_comes_last_and_that_is_said() {
    let blank = Sparse::new(64 * M);
    let first = || part("linux-data", Size::Bytes(4 * M));
    let old =
        with(&blank, &table("MBR", vec![first(), extended(Size::Bytes(40 * M), &[8 * M, 8 * M])]));
    let new = table("MBR", vec![first(), extended(Size::Bytes(50 * M), &[3 * M, 4 * M, 5 * M])]);
    assert_eq!(
        interrupted(&old, &new, REPLACE),
        ["the disk: the MBR as the layout says, but without s2"]
    );
    // Of a table over the whole disk nothing is left, so that a label in its place is in no
    // partition until the end.
    let whole = with(&blank, &table("GPT", vec![part("linux-data", Size::Rest)]));
    let slices = table("MBR", vec![first(), holding("freebsd", Size::Rest, label())]);
    assert_eq!(
        interrupted(&whole, &slices, REPLACE),
        ["the disk: the MBR as the layout says, but without s2"]
    );
    let gpt = table("GPT", vec![first(), holding("freebsd", Size::Rest, label())]);
    assert_eq!(
        interrupted(&old, &gpt, REPLACE),
        ["the disk: the GPT as the layout says, but without s2"]
    );
}

#[test]
fn tables_in_partitions_that_stay_change_one_after_another() {
    let blank = Sparse::new(64 * M);
    let slices = |parts: [Part; 2]| table("MBR", parts.into());
    let plain =
        slices([part("freebsd", Size::Bytes(20 * M)), part("freebsd", Size::Bytes(20 * M))]);
    let labelled = slices([
        holding("freebsd", Size::Bytes(20 * M), label()),
        holding("freebsd", Size::Bytes(20 * M), label()),
    ]);
    assert_eq!(
        interrupted(&with(&blank, &plain), &labelled, May::default()),
        ["s1: as the layout says"]
    );
    // The outer table changes too.
    let mut grown = labelled.clone();
    grown.parts.push(part("linux-data", Size::Rest));
    let said = interrupted(&with(&blank, &plain), &grown, May::default());
    assert_eq!(
        said,
        [
            "the disk: the MBR as the layout says, a table inside it not yet",
            "s1: as the layout says"
        ]
    );
}

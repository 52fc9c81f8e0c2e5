//! Sets of Linux's md as cases of the laws.

use super::{Case, grain, index};
use std::collections::HashSet;
use trueline_geom::base::topology::Grain;
use trueline_geom::mapping::raid::layout::{Copies, Layout, Parity, Zones};
use trueline_geom::mapping::raid::set::{Half, Part, Set};

impl Case {
    /// A set of md, of members that are all here and begin at their data.
    fn md(what: &str, layout: Layout, lengths: &[u64], grains: &[Grain]) -> Case {
        let half = |consumer| Half {
            consumer,
            offset: 0,
            new_offset: 0,
            recovered: u64::MAX,
            bad: Vec::new(),
        };
        let parity = match &layout {
            Layout::Parity(_) => Some(layout.run(0)),
            _ => None,
        };
        let length = layout.length();
        let set = Set {
            name: "md/r".into(),
            length,
            parts: vec![Part { end: length, layout, moved: false }],
            roles: (0..lengths.len()).map(|member| vec![half(member)]).collect(),
            arrangement: None,
            read_only: None,
        };
        let case = Case::new("md", set, lengths, grains);
        Case { what: format!("{what} as {}", case.what), parity, ..case }
    }
}

/// RAID5 and RAID6 in every layout, RAID10 with near, far and offset copies, RAID0 in zones.
pub(super) fn cases(cases: &mut Vec<Case>) {
    // Members are bought alike: those of one set are off by the same, if they are off.
    let alike = |members: usize, sizes: &[u64]| -> Vec<Vec<Grain>> {
        let all = sizes.iter().flat_map(|&s| (0..s).map(move |p| grain(s, p)));
        let mixed = [[1, 2, 4], [4, 2, 1], [2, 1, 1], [1, 1, 4]];
        let mixed = mixed.map(|sizes| sizes.iter().map(|&size| grain(size, 0)).collect());
        let resized = mixed.into_iter().map(|mut set: Vec<Grain>| {
            set.resize(members, grain(1, 0));
            set
        });
        all.map(|g| vec![g; members]).chain(resized).collect()
    };
    let fives = (0..=5).map(|layout| (5, layout, 3, 4));
    let sixes = (0..=5).chain(8..=10).chain(16..=20).map(|layout| (6, layout, 4, 4));
    let others = [(5, 2, 2, 4), (5, 2, 4, 6), (6, 2, 5, 6), (6, 10, 5, 4)];
    for (level, layout, disks, chunk) in fives.chain(sixes).chain(others) {
        let lengths = vec![6 * chunk; index(disks)];
        for grains in alike(index(disks), &[1, 2, 3, 4, 6, 8, 12]) {
            if chunk == 6 && grains.iter().any(|g| *g != grains[0]) {
                continue;
            }
            let set = Parity::new(level, layout, disks, chunk, lengths[0]).unwrap();
            let what = format!("level {level}, layout {layout}, chunk {chunk}");
            cases.push(Case::md(&what, Layout::Parity(set), &lengths, &grains));
        }
    }
    let tens: [(u32, u64); 13] = [
        (0x102, 2),
        (0x102, 3),
        (0x102, 4),
        (0x103, 4),
        (0x201, 2),
        (0x201, 3),
        (0x202, 4),
        (0x202, 5),
        (0x1_0201, 2),
        (0x1_0201, 3),
        (0x1_0202, 4),
        (0x2_0201, 4),
        (0x4_0201, 5),
    ];
    for (layout, disks) in tens {
        let lengths = vec![24; index(disks)];
        for grains in alike(index(disks), &[1, 2, 3, 4, 6, 8]) {
            let set = Copies::new(layout, disks, 4, 24).unwrap();
            let what = format!("copies {layout:#x}");
            cases.push(Case::md(&what, Layout::Copies(set), &lengths, &grains));
        }
    }
    for layout in [1, 2] {
        for lengths in [[16, 28, 20], [24, 8, 24]] {
            for grains in alike(3, &[1, 2, 4]) {
                let set = Zones::new(&lengths, 4, layout).unwrap();
                let what = format!("zones, layout {layout}");
                cases.push(Case::md(&what, Layout::Zones(set), &lengths, &grains));
            }
        }
    }
}

/// Adds to the places of every byte those of its parity: the same byte of the chunks in its row
/// that hold no data.
pub(super) fn with_parity(bytes: &mut [Vec<(usize, u64)>], chunk: u64, members: usize) {
    let data: HashSet<(usize, u64)> =
        bytes.iter().flatten().map(|&(member, offset)| (member, offset / chunk)).collect();
    for byte in bytes {
        let offset = byte[0].1;
        let parity = (0..members).filter(|&member| !data.contains(&(member, offset / chunk)));
        byte.extend(parity.map(|member| (member, offset)));
    }
}

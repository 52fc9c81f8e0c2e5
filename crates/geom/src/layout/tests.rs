use super::planning::called;
use super::*;
use crate::base::patch::Patch;
use crate::base::store::{Sparse, Store};
use crate::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use crate::mapping::route::Route;
use crate::probe::{Budget, Limits};
use crate::registry;
use crate::table::Entry;

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

fn holding(kind: &str, size: Size, inside: Layout) -> Part {
    Part { inside: Some(inside), ..part(kind, size) }
}

/// A disk of 64 MiB whose boundaries of `unit` bytes begin at `phase`.
struct Disk {
    bytes: Sparse,
    topology: Topology,
}

impl Disk {
    fn new(sector: u64, unit: u64, phase: u64) -> Disk {
        let grain = Grain::new(unit, phase).unwrap();
        let fact = Fact { grain, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
        Disk { bytes: Sparse::new(64 * M), topology: Topology::new(sector, 64 * M).with(fact) }
    }

    fn plan(&self, layout: &Layout, may: May) -> Result<Planned, Refused> {
        let stores: [Box<dyn Store>; 1] = [Box::new(self.bytes.clone())];
        let (route, budget) = (Route::store(0, 64 * M), Budget::new(Limits::default()));
        let probe = Probe::new(&route, &stores, &budget, self.topology.sector, Some(0), None);
        let site = TableSite { topology: &self.topology, base: 0, kind: None };
        let mut seed = 0;
        let mut random = || {
            seed += 1;
            [seed; 16]
        };
        plan(layout, &probe, &site, 64 * M, may, &mut random)
    }

    fn write<'a>(&mut self, patches: impl IntoIterator<Item = &'a Patch>) {
        patches.into_iter().for_each(|p| self.bytes.put(p.offset, &p.bytes));
    }

    /// Applies the layout; returns the places on the medium that every table gave.
    fn apply(&mut self, layout: &Layout, may: May) -> Vec<(String, u64, u64)> {
        let planned = self.plan(layout, may).unwrap_or_else(|r| panic!("{r:?}"));
        self.write(&in_order(&planned.stages));
        places(&planned.steps)
    }
}

fn places(steps: &[Step]) -> Vec<(String, u64, u64)> {
    let of = |step: &Step| {
        let entry = |e: &Entry| {
            (
                called(&step.table, &step.provider, e),
                step.offset + e.partition.start,
                e.partition.length,
            )
        };
        step.table.entries.iter().map(entry).collect::<Vec<_>>()
    };
    steps.iter().flat_map(of).collect()
}

/// Layouts that hold each other, three deep.
fn nested() -> Vec<(&'static str, Layout)> {
    let label = || {
        let half = Size::Percent(50 * PERCENT);
        table(
            "BSD",
            vec![
                part("freebsd-swap", Size::Bytes(3 * M + 1)),
                part("freebsd-ufs", half),
                part("freebsd-ufs", Size::Rest),
            ],
        )
    };
    let logicals = || {
        table(
            "EBR",
            vec![
                part("linux-data", Size::Rest),
                holding("freebsd", Size::Bytes(9 * M), label()),
                part("linux-swap", Size::Rest),
            ],
        )
    };
    let mbr = || {
        table(
            "MBR",
            vec![
                part("efi", Size::Bytes(4 * M)),
                holding("extended", Size::Rest, logicals()),
                holding("freebsd", Size::Bytes(20 * M), label()),
            ],
        )
    };
    vec![
        (
            "gpt",
            table(
                "GPT",
                vec![
                    part("efi", Size::Bytes(4 * M)),
                    part("linux-data", Size::Rest),
                    part("linux-swap", Size::Bytes(8 * M)),
                ],
            ),
        ),
        (
            "gpt bsd",
            table(
                "GPT",
                vec![part("efi", Size::Bytes(4 * M)), holding("freebsd", Size::Rest, label())],
            ),
        ),
        ("mbr ebr bsd", mbr()),
        (
            "gpt mbr",
            table(
                "GPT",
                vec![holding(
                    "linux-data",
                    Size::Rest,
                    table("MBR", vec![part("linux-data", Size::Rest)]),
                )],
            ),
        ),
    ]
}

#[test]
fn partitions_lie_where_the_layout_says_they_may() {
    for scheme in ["GPT", "MBR", "BSD"] {
        let usable = |range| Layout {
            usable: Some(range),
            ..table(
                scheme,
                vec![part(if scheme == "BSD" { "freebsd-ufs" } else { "linux-data" }, Size::Rest)],
            )
        };
        for (first, end) in [
            (8 * M, 8 * M),
            (9 * M, 8 * M),
            (M, 65 * M),
            (M + 1, 8 * M),
            (M, 8 * M - 1),
            (0, u64::MAX),
        ] {
            let refused = Disk::new(512, 4096, 0)
                .plan(&usable((first, end)), May::default())
                .err()
                .unwrap_or_else(|| panic!("{scheme} {first} {end}"));
            assert!(refused.why.found.starts_with("a usable range from "), "{refused:?}");
        }
        let (mut disk, wanted) = (Disk::new(512, 4096, 0), usable((4 * M, 8 * M)));
        let places = disk.apply(&wanted, May::default());
        assert_eq!(
            places.iter().map(|(_, start, size)| (*start, *size)).collect::<Vec<_>>(),
            [(4 * M, 4 * M)],
            "{scheme}"
        );
        assert!(
            disk.plan(&wanted, May::default()).is_ok_and(|planned| planned.stages.is_empty()),
            "{scheme} again"
        );
    }
}

#[test]
fn every_depth_is_on_the_grain_and_a_second_run_changes_nothing() {
    for (sector, unit, phase) in
        [(512, 4096, 0), (512, 4096, 3584), (4096, 16384, 0), (512, 49152, 512 * 5)]
    {
        for (name, layout) in nested() {
            let mut disk = Disk::new(sector, unit, phase);
            let grain = Grain::new(unit, phase).unwrap();
            let made = disk.apply(&layout, May::default());
            assert!(
                made.iter().all(|(_, start, _)| grain.contains(*start)),
                "{name} {sector} {unit}+{phase}: {made:?}"
            );
            let again = disk
                .plan(&layout, May::default())
                .unwrap_or_else(|r| panic!("{name} {sector} {unit}+{phase}: {r:?}"));
            assert!(
                again.steps.iter().all(|s| s.edits.is_empty()) && again.stages.is_empty(),
                "{name}: {:?}",
                again.steps.iter().map(|s| &s.edits).collect::<Vec<_>>()
            );
            assert_eq!(places(&again.steps), made, "{name}");
        }
    }
}

#[test]
fn what_was_interrupted_anywhere_is_completed_by_the_next_run() {
    for (name, layout) in nested() {
        let mut whole = Disk::new(512, 4096, 0);
        let want = whole.apply(&layout, May::default());
        let patches = in_order(
            &Disk::new(512, 4096, 0).plan(&layout, May::default()).unwrap_or_default().stages,
        );
        for done in 0..=patches.len() {
            let mut disk = Disk::new(512, 4096, 0);
            disk.write(&patches[..done]);
            assert_eq!(
                disk.apply(&layout, May::default()),
                want,
                "{name}: {done} of {} writes",
                patches.len()
            );
            let again =
                disk.plan(&layout, May::default()).unwrap_or_else(|r| panic!("{name}: {r:?}"));
            assert!(again.stages.is_empty(), "{name}: {done}");
        }
    }
}

#[test]
fn what_contradicts_is_refused_and_what_may_change_is_changed() {
    let mut disk = Disk::new(512, 4096, 0);
    let first =
        table("GPT", vec![part("efi", Size::Bytes(4 * M)), part("linux-data", Size::Bytes(8 * M))]);
    disk.apply(&first, May::default());
    let with = |change: &dyn Fn(&mut Vec<Part>)| {
        let mut layout = first.clone();
        change(&mut layout.parts);
        layout
    };
    let none = May::default();
    let refusals = [
        (
            with(&|p| p[0].size = Size::Bytes(5 * M)),
            "partition 1 has 4194304 bytes, the layout says 5242880",
        ),
        (
            with(&|p| p[1].size = Size::Percent(50 * PERCENT)),
            "partition 2 has 8388608 bytes, the layout says ",
        ),
        (
            with(&|p| p[1].start = Some(6 * M)),
            "partition 2 begins at byte 5242880 (LBA 10240), the layout says byte 6291456",
        ),
        (with(&|p| p.truncate(1)), "the layout does not name partitions that are there: index 2"),
        (
            with(&|p| p.push(part("efi", Size::Bytes(60 * M)))),
            "no room for partition 3 of 62914560 bytes",
        ),
        (
            with(&|p| p.push(Part { start: Some(4 * M), ..part("efi", Size::Bytes(M)) })),
            "partition 3: 1048576 bytes at byte 4194304",
        ),
        (
            with(&|p| p.push(Part { start: Some(20 * M + 1), ..part("efi", Size::Bytes(M)) })),
            "partition 3: start of 20971521 bytes",
        ),
        (with(&|p| p.push(part("nonsense", Size::Rest))), "type 'nonsense' is unknown to GPT"),
        (
            with(&|p| p[1].index = Some(0)),
            "the layout does not name partitions that are there: index 2",
        ),
        (
            with(&|p| p.iter_mut().for_each(|p| p.index = Some(1))),
            "the layout has two partitions of index 1",
        ),
        (table("MBR", vec![]), "there is a table of another scheme, GPT, with 2 partitions"),
        (
            Layout { entries: Some(256), ..first.clone() },
            "the GPT has room for 128 entries, the layout says 256",
        ),
        (Layout { usable: Some((M, 8 * M)), ..first.clone() }, "partitions lie from "),
    ];
    for (layout, want) in refusals {
        let refused = disk.plan(&layout, none).err().unwrap_or_else(|| panic!("done: {want}"));
        assert!(refused.why.found.starts_with(want), "{refused:?}\n{want}");
    }
    let label = with(&|p| (p[0].label, p[1].kind) = (Some("esp".into()), "linux-swap".into()));
    let steps = disk.plan(&label, none).unwrap_or_default().steps;
    assert_eq!(
        steps[0].edits,
        ["modify 1: label to esp", "modify 2: type linux-data to linux-swap"]
    );
    let was = places(&disk.plan(&first, none).unwrap_or_default().steps);
    assert_eq!(disk.apply(&label, none), was);
    assert_eq!(disk.apply(&with(&|p| p.truncate(1)), May { delete: true, ..none }).len(), 1);
    let replaced = table("MBR", vec![part("linux-data", Size::Rest)]);
    assert_eq!(disk.apply(&replaced, May { replace: true, ..none }), [("s1".into(), M, 63 * M)]);
    assert!(disk.plan(&replaced, none).is_ok_and(|planned| planned.stages.is_empty()));
}

#[test]
fn a_layout_that_fails_inside_plans_no_write_outside() {
    let disk = Disk::new(512, 4096, 0);
    let inside = table("BSD", vec![part("freebsd-ufs", Size::Bytes(60 * M))]);
    let layout = table("GPT", vec![holding("freebsd", Size::Bytes(20 * M), inside)]);
    let refused = disk.plan(&layout, May::default()).err().unwrap();
    assert_eq!(
        (refused.provider.as_str(), refused.why.found.as_str()),
        ("s1", "no room for partition 1 of 62914560 bytes")
    );
}

#[test]
fn a_file_system_is_not_written_over() {
    let mut disk = Disk::new(512, 4096, 0);
    // A swap area: version 1, its last page, the magic at the end of the first.
    disk.bytes.put(1024, &[1_u32.to_le_bytes(), 16383_u32.to_le_bytes()].concat());
    disk.bytes.put(4086, b"SWAPSPACE2");
    let layout = table("GPT", vec![part("efi", Size::Rest)]);
    let refused = disk.plan(&layout, May::default()).err().unwrap();
    assert_eq!(refused.why.found, "there is swap on it");
    assert_eq!(disk.apply(&layout, May { replace: true, ..May::default() }).len(), 1);
}

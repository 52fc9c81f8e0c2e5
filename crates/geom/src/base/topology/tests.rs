use super::cost::ratio;
use super::*;

fn grain(size: u64, phase: u64) -> Grain {
    Grain::new(size, phase).unwrap()
}

/// `cost` by counting every position, for comparison with the closed form.
fn counted(block: u64, unit: u64, remainder: u64, rmw: bool) -> Cost {
    let ops = |r: u64| {
        let (mut ops, mut straddling) = (0, 0);
        for k in 0..unit {
            let (a, b) = (r + k * block, r + (k + 1) * block);
            let touched = b.div_ceil(unit) - a / unit;
            let whole = (b / unit).saturating_sub(a.div_ceil(unit));
            straddling += u64::from(touched > block.div_ceil(unit));
            ops += touched + if rmw { touched - whole } else { 0 };
        }
        (ops, straddling)
    };
    let ((off, straddling), (on, _)) = (ops(remainder), ops(0));
    Cost { straddle: ratio(straddling, unit), rmw_factor: ratio(off, on) }
}

/// Powers of two are told without a division.
#[test]
fn whole_units_are_those_that_division_leaves_nothing_of() {
    let numbers =
        || (0..=70).chain([4095, 4096, 4097, 1 << 63, (1 << 63) + 1, u64::MAX - 1, u64::MAX]);
    for (value, unit) in numbers().flat_map(|value| numbers().map(move |unit| (value, unit))) {
        assert_eq!(is_whole(value, unit), value.checked_rem(unit) == Some(0), "{value} in {unit}");
    }
}

#[test]
fn cost_equals_counting() {
    for unit in 1..=24 {
        for block in 1..=40 {
            for remainder in 0..unit {
                for rmw in [false, true] {
                    let (a, b) = (
                        cost(block, unit, remainder, rmw).unwrap(),
                        counted(block, unit, remainder, rmw),
                    );
                    assert!(
                        (a.straddle - b.straddle).abs() < 1e-12,
                        "{block} {unit} {remainder} {rmw}: {a:?} {b:?}"
                    );
                    assert!(
                        (a.rmw_factor - b.rmw_factor).abs() < 1e-12,
                        "{block} {unit} {remainder} {rmw}: {a:?} {b:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn known_costs() {
    // 4 KiB blocks one sector off 4 KiB sectors: two units read and two written for every one.
    assert_eq!(cost(4096, 4096, 512, true), Some(Cost { straddle: 1.0, rmw_factor: 4.0 }));
    // Seed 003: 16 KiB blocks on a 16 KiB stripe; every read uses both disks.
    assert_eq!(cost(16384, 16384, 7680, false), Some(Cost { straddle: 1.0, rmw_factor: 2.0 }));
    // 16 KiB blocks off a 128 KiB chunk: one in eight.
    assert_eq!(cost(16384, 131_072, 512, false).unwrap().straddle, 0.125);
    // Seed 000: 2 KiB fragments are read-modify-write even when aligned.
    assert_eq!(in_place_cost(2048, 4096), Some(Cost { straddle: 0.0, rmw_factor: 2.0 }));
}

#[test]
fn intersection_equals_brute_force() {
    for (s1, s2) in [(1, 1), (2, 3), (4, 6), (8, 8), (6, 10), (9, 12), (5, 7)] {
        for p1 in 0..s1 {
            for p2 in 0..s2 {
                let (a, b) = (grain(s1, p1), grain(s2, p2));
                let both: Vec<u64> = (0..300).filter(|&x| a.contains(x) && b.contains(x)).collect();
                match a.intersect(b) {
                    Some(g) => {
                        assert_eq!(both, (0..300).filter(|&x| g.contains(x)).collect::<Vec<_>>())
                    }
                    None => assert!(both.is_empty(), "{a:?} {b:?}"),
                }
            }
        }
    }
    assert_eq!(grain(1 << 63, 0).intersect(grain(3, 0)), None);
    assert_eq!(grain(u64::MAX, 5).intersect(grain(u64::MAX, 5)), Some(grain(u64::MAX, 5)));
    assert_eq!(grain(u64::MAX, 0).intersect(grain(u64::MAX - 1, u64::MAX / 2)), None);
}

#[test]
fn a_shift_is_the_same_boundaries() {
    let g = grain(4096, 3584); // the XP jumper
    assert_eq!(g.shift(63 * 512).phase(), 0);
    assert_eq!(g.shift(64 * 512).remainder(0), 512);
    assert_eq!(grain(4096, 0).shift(574 * 512).remainder(0), 3072);
    assert_eq!(grain(16384, 0).shift(79 * 512).remainder(0), 7680);
    assert_eq!((g.next(1), g.previous(3583)), (Some(3584), None));
    assert_eq!(grain(u64::MAX, 1).next(2), None);
}

fn fact(size: u64, why: Why, trust: Trust) -> Fact {
    Fact { grain: grain(size, 0), why, source: Source::Label, trust }
}

#[test]
fn a_start_counts_as_off_only_by_what_is_believed() {
    let counts = |size, why, trust| fact(size, why, trust).counts();
    assert_eq!(
        [Trust::Untrusted, Trust::Assumed, Trust::Claimed].map(|t| counts(4096, Why::Physical, t)),
        [false, true, true]
    );
    // What a device alone calls optimal is a hint.
    assert_eq!(
        [Trust::Assumed, Trust::Claimed, Trust::Trusted].map(|t| counts(4096, Why::Optimal, t)),
        [false, false, true]
    );
    assert!(!counts(1, Why::Physical, Trust::Trusted) && !counts(4096, Why::Row, Trust::Trusted));
}

#[test]
fn a_set_believes_no_more_than_its_members() {
    let member = |size, trust| Topology::new(512, 1 << 20).with(fact(size, Why::Physical, trust));
    let set = Topology::mirror(
        &[
            member(4096, Trust::Trusted),
            member(4096, Trust::Assumed),
            member(4095, Trust::Untrusted),
        ],
        1 << 20,
    );
    assert_eq!((set.facts, set.clashes), (vec![fact(4096, Why::Physical, Trust::Assumed)], vec![]));
    // What clashed below is known above, once.
    let clashed = Topology::mirror(
        &[member(4096, Trust::Trusted), member(4096, Trust::Trusted).shift(512, 1 << 19)],
        1 << 19,
    );
    let clash = Clash { why: Why::Physical, unit: 4096, member: 1, remainder: 3584 };
    assert_eq!(clashed.clashes, [clash]);
    assert_eq!(Topology::mirror(&[clashed.clone(), clashed], 1 << 19).clashes, [clash]);
}

#[test]
fn the_nearest_starts_are_on_the_device() {
    let disk = Topology::new(512, 8192).with(fact(4096, Why::Physical, Trust::Trusted));
    assert_eq!(
        (disk.nearest(512), disk.nearest(4096)),
        ((Some(0), Some(4096)), (Some(4096), Some(4096)))
    );
    assert_eq!(disk.nearest(4097), (Some(4096), None));
}

#[test]
fn a_value_is_rounded_to_whole_units() {
    assert_eq!(
        [0, 1, 4095, 4096, 4097].map(|x| (round_down(x, 4096), round_up(x, 4096))),
        [(0, Some(0)), (0, Some(4096)), (0, Some(4096)), (4096, Some(4096)), (4096, Some(8192))]
    );
    assert_eq!((round_down(5, 0), round_up(5, 0)), (5, Some(5)));
    assert_eq!((round_up(u64::MAX, 4096), round_up(u64::MAX - 1, 3)), (None, Some(u64::MAX)));
}

#[test]
fn units_are_those_in_which_a_byte_lies() {
    for unit in 1..=5 {
        for start in 0..12 {
            for end in start + 1..14 {
                let touched = || (start..end).map(|byte| byte / unit);
                assert_eq!(
                    Some(units(start, end, unit)),
                    touched().min().zip(touched().max().map(|last| last + 1)),
                    "{start}..{end} of {unit}"
                );
            }
        }
    }
    assert_eq!(
        (units(4096, 4096, 4096), units(u64::MAX, u64::MAX, 4096)),
        ((1, 1), (u64::MAX / 4096, 1 << 52))
    );
    assert_eq!(units(5, 7, 0), (5, 7));
}

#[test]
fn amplification_equals_counting() {
    // Published for a 16 KiB indirection unit: 4, 1, 2 (off by 4 KiB), 1.75 and 1.1875 (anywhere on
    // a 4 KiB grid).
    let on_16k = [
        (4096, 4096, 0),
        (16384, 16384, 0),
        (16384, 16384, 4096),
        (16384, 4096, 0),
        (65536, 4096, 0),
    ];
    let want = [4.0, 1.0, 2.0, 1.75, 1.1875];
    assert_eq!(
        on_16k.map(|(write, grid, remainder)| amplification(write, grid, 16384, remainder)),
        want.map(Some)
    );
    for unit in 1..=12_u64 {
        for (write, grid) in (1..=13).flat_map(|write| (1..=13).map(move |grid| (write, grid))) {
            for remainder in 0..unit {
                let starts = (0..unit).map(|k| remainder + k * grid);
                let touched: u64 = starts.map(|x| (x + write - 1) / unit - x / unit + 1).sum();
                let counted = touched as f64 / write as f64;
                let closed = amplification(write, grid, unit, remainder).unwrap();
                assert!(
                    (closed - counted).abs() < 1e-9,
                    "{write} on {grid}+{remainder} on {unit}: {closed}, counted {counted}"
                );
            }
        }
    }
    assert_eq!(
        [amplification(0, 1, 1, 0), amplification(1, 0, 1, 0), amplification(1, 1, u64::MAX, 0)],
        [None; 3]
    );
}

#[test]
fn touched_by_counting() {
    for (size, phase) in [(4, 0), (4, 3), (1, 0), (7, 2)] {
        let at = grain(size, phase);
        for start in 0..20 {
            for length in 0..20 {
                let units: std::collections::BTreeSet<u64> =
                    (start..start + length).map(|x| x + size - at.remainder(x)).collect();
                assert_eq!(
                    at.touched(start, length),
                    u64::try_from(units.len()).unwrap(),
                    "{at:?} {start} {length}"
                );
            }
        }
    }
    assert_eq!(grain(1, 0).touched(u64::MAX, u64::MAX), u64::MAX);
    assert_eq!(grain(4096, 0).touched(u64::MAX, u64::MAX), (1 << 52) + 1);
}

#[test]
fn a_chosen_start_is_a_whole_sector() {
    let at = |sector, align, base| {
        let grain = Topology::new(sector, 1 << 30).sectors_on(align, base).unwrap();
        (grain.size(), grain.phase())
    };
    assert_eq!(at(512, 4096, 0), (4096, 0));
    assert_eq!(at(512, 4096, 512), (4096, 3584));
    assert_eq!(at(4096, 1 << 20, 4096), (1 << 20, (1 << 20) - 4096));
    // The multiples of 1 MiB are 3584 bytes before a sector each.
    assert_eq!(at(4096, 1 << 20, 3584), (1 << 20, 0));
    assert_eq!(at(4096, 512, 512), (4096, 0));
    assert_eq!(Topology::new(512, 1 << 30).sectors_on(0, 0), None);
}

#[test]
fn a_stripe_of_stripes_has_its_own_chunk() {
    let disk = Topology::new(512, 1 << 30);
    let stripe = |below: &Topology, chunk| {
        Topology::stripe(&[below.clone(), below.clone()], chunk, 1 << 31, Source::Label)
    };
    let inner = stripe(&disk, 128 << 10);
    assert_eq!(inner.stripesize_and_offset(), (128 << 10, 0));
    let outer = stripe(&inner, 512 << 10);
    assert_eq!(outer.stripesize_and_offset(), (512 << 10, 0));
    assert_eq!(outer.shift(63 * 512, 1 << 30).stripesize_and_offset(), (512 << 10, 63 * 512));
}

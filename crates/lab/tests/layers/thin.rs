//! The model of a thin volume against recordings of Linux's.

use crate::recorded::{Device, Line, devices, refused, sorted};
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;

const RECORDINGS: [&str; 2] = [
    include_str!("../../../../tests/kernel/layers/thin-6.1.txt"),
    include_str!("../../../../tests/kernel/layers/thin-6.12.txt"),
];

#[test]
fn a_thin_volume_makes_the_requests_that_linux_makes() {
    let (mut compared, mut unequal) = (0, 0);
    for mut device in RECORDINGS.iter().flat_map(|recording| devices("thin", recording)) {
        assert_eq!(device.layer.length(device.beneath.0), device.shown.0, "{}", device.title);
        assert_eq!(device.layer.sector(device.beneath.1), device.shown.1, "{}", device.title);
        for line in std::mem::take(&mut device.lines) {
            compared += line.came();
            unequal += usize::from(!equals(&mut device, &line));
        }
    }
    assert_eq!((compared, unequal), (3240, 25), "what the manual says was compared");
}

/// Compares a line. False if the number of its flushes is the kernel's alone: commits of several
/// chunks by one write with FUA, which meet or do not.
fn equals(device: &mut Device, line: &Line) -> bool {
    let made = device.plan(&line.asked);
    let what = format!("{}: {}\nmodel: {made:?}", device.title, line.text);
    let data = |asks: &[Ask]| sorted(asks.iter().copied().filter(|ask| ask.op != Op::Flush));
    assert_eq!(data(&made), data(&line.made), "{what}");
    let flushes = |asks: &[Ask]| asks.iter().filter(|ask| ask.op == Op::Flush).count();
    let (ours, theirs) = (flushes(&made), flushes(&line.made));
    let pieces = made.iter().filter(|ask| ask.fua).count();
    if pieces < 2 {
        assert_eq!(ours, theirs, "{what}");
    }
    assert!(theirs.abs_diff(ours) < pieces.max(1), "{what}");
    ours == theirs
}

#[test]
fn a_volume_that_cannot_be_is_refused() {
    for (keys, why) in [
        ("chunk = 98304", "chunk = 98304: a multiple of 65536"),
        ("chunk = 0", "chunk = 0: a multiple of 65536"),
        ("chunk = 2147483648", "at most 1073741824"),
        ("max-request = 0", "max-request = 0: a multiple of 4096 bytes, from 4096"),
        ("length = 0", "length = 0: a volume has at least a sector"),
        ("origin = 0", "a data device of 0 bytes: a chunk has 65536"),
        ("length = 1048577", "whole sectors of 512"),
        ("length = 1048576\nshared = true", "in the 8 chunks of 65536 bytes"),
        ("length = 1114112", "in the 16 chunks of 65536 bytes"),
        ("origin = 1048577", "origin = 1048577: an address in whole sectors of 512"),
        ("origin = 2097152", "beneath 1113600"),
    ] {
        let said = refused("thin", keys, (17 << 16) - 512, 512);
        assert!(said.contains(why), "{keys}: {said}");
    }
}

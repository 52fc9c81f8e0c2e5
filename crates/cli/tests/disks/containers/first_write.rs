//! First writes to clusters, beside the writes that QEMU makes, which strace sees.

use super::{Scratch, contents, opened, raw_disk, sh};
use crate::oracle::missing_of;
use crate::skip::skip;
use std::fs;
use trueline_geom::base::topology::{FirstWrite, GUEST_WRITE, Topology};

/// A container, and what QEMU does besides at a first write to it.
struct Made {
    /// Format and options, as qemu-img takes them.
    format: &'static str,
    /// Format of the backing file, of an image with one.
    base: Option<&'static str>,
    /// Byte of the guest that is written first there, by a table that is there already.
    at: &'static str,
    /// Writes that hold none of the ranges that are counted.
    others: usize,
}

const fn alone(format: &'static str, at: &'static str, others: usize) -> Made {
    Made { format, base: None, at, others }
}

const fn overlay(format: &'static str, base: &'static str) -> Made {
    Made { format, base: Some(base), at: "16M", others: 0 }
}

const MADE: [Made; 16] = [
    alone("qcow2", "16M", 0),
    alone("qcow2 -o compat=0.10", "16M", 0),
    alone("qcow2 -o cluster_size=4k,refcount_bits=64", "1M", 0),
    alone("qcow2 -o extended_l2=on", "16M", 0),
    alone("qcow", "1M", 0),
    alone("qed", "16M", 0),
    alone("vdi", "16M", 0),
    alone("vmdk", "16M", 0),
    alone("vpc", "16M", 0),
    // Both headers before and behind the entry of the log.
    alone("vhdx", "16M", 4),
    alone("parallels", "16M", 0),
    overlay("qcow2", "raw"),
    overlay("qcow2 -o cluster_size=2M", "raw"),
    overlay("qcow2 -o extended_l2=on,cluster_size=2M", "raw"),
    overlay("qed", "raw"),
    overlay("vmdk", "vmdk"),
];

/// First byte in a file and length of a read or write.
type Range = (u64, u64);

/// Reads and writes of one file in a trace of strace, whose lines end as in
/// `pwrite64(4</dir/made>, ""..., 512, 0) = 512`.
fn ranges(trace: &str, file: &str, call: &str) -> Vec<Range> {
    let of_file = format!("/{file}>");
    let lines = trace.lines().filter(|line| line.contains(call) && line.contains(&of_file));
    let range = |line: &str| {
        let (call, length) = line.rsplit_once(") = ")?;
        let (_, at) = call.rsplit_once(' ')?;
        Some((at.parse().ok()?, length.trim().parse().ok()?))
    };
    lines.map(|line| range(line).expect(line)).collect()
}

/// Those of `all` that are not in `some`, in their order.
fn without(all: Vec<Range>, mut some: Vec<Range>) -> Vec<Range> {
    let mut left = all;
    left.retain(|range| match some.iter().position(|other| other == range) {
        Some(at) => {
            some.swap_remove(at);
            false
        }
        None => true,
    });
    left
}

/// The ranges with those made one that follow each other and touch.
fn joined(ranges: &[Range]) -> Vec<Range> {
    let mut all: Vec<Range> = Vec::new();
    for &(at, length) in ranges {
        match all.last_mut() {
            Some(last) if last.0 + last.1 == at => last.1 += length,
            Some(last) if at + length == last.0 => *last = (at, length + last.1),
            _ => all.push((at, length)),
        }
    }
    all
}

/// A traced run of qemu-io on a copy of the new image.
fn traced(here: &Scratch, format: &str, commands: &str) -> String {
    sh(
        here,
        &format!(
            "cp new made
            strace -f -y -s 0 -o trace -e trace=pread64,preadv,preadv2,pwrite64,pwritev,pwritev2 \
                qemu-io -f {format} {commands} made >/dev/null"
        ),
    );
    fs::read_to_string(here.path().join("trace")).expect("a trace")
}

/// True if `length` bytes that begin in a class of addresses may lie in one of these ranges.
fn holds(ranges: &[Range], first: &trueline_geom::base::topology::TouchedRange) -> bool {
    ranges.iter().any(|&(at, length)| {
        first.starts.next(at).is_some_and(|start| start + first.length <= at + length)
    })
}

#[test]
fn a_first_write_touches_what_qemu_writes() {
    if let Some(missing) = missing_of(["strace"]) {
        skip(&format!("no {missing} here"));
        return;
    }
    let Some(here) = raw_disk("first-write") else { return };
    sh(
        &here,
        "qemu-img create -q -f raw base.raw 64M
        qemu-io -f raw -c 'write -P 7 0 64M' base.raw >/dev/null
        qemu-img convert -O vmdk base.raw base.vmdk
        strace -o trace true 2>/dev/null || touch cannot",
    );
    if here.path().join("cannot").exists() {
        skip("strace may not trace here");
        return;
    }
    for made in &MADE {
        let format = made.format.split(' ').next().expect("a name");
        let base = made.base.map_or(String::new(), |base| format!("-b base.{base} -F {base}"));
        sh(&here, &format!("rm -f new; qemu-img create -q -f {} {base} new 64M", made.format));
        let warm = "-c 'write 0 4k' -c flush";
        let then = format!("{warm} -c 'write {} 4k' -c flush", made.at);
        let both = traced(&here, format, &then);
        let once = traced(&here, format, warm);
        // The image as it is before the write that is looked at.
        let (graph, _) = opened(&here, "made");
        let geom = graph.providers[contents(&graph)].route().set().expect("a container").geom;
        let first = geom.translation().and_then(|known| known.first_write()).expect("a price");
        let of =
            |call: &str, file: &str| without(ranges(&both, file, call), ranges(&once, file, call));
        compare(made, first, &of("pwrite", "made"));
        let reads = made.base.map(|base| of("pread", &format!("base.{base}"))).unwrap_or_default();
        for range in first.ranges().iter().filter(|range| range.is_read) {
            let is_same = |&(_, length): &Range| length == range.length;
            assert!(reads.iter().any(is_same), "{}: {range:?} in {reads:?}", made.format);
        }
        assert_eq!(
            first.ranges().iter().any(|range| range.is_read),
            !reads.is_empty(),
            "{}: {reads:?}",
            made.format
        );
    }
}

/// Compares the ranges that are counted with the writes that QEMU made.
fn compare(made: &Made, first: &FirstWrite, writes: &[Range]) {
    let runs = joined(writes);
    let what = format!("{}: {:?} in {writes:?}", made.format, first.ranges());
    let counted = || first.ranges().iter().filter(|range| !range.is_read);
    // Each is written, the data as they are and no more.
    assert!(counted().all(|range| holds(&runs, range)), "{what}");
    let data = counted().next().expect("data");
    assert!(data.length >= GUEST_WRITE, "{what}");
    let is_data = |&(at, length): &Range| length == data.length && data.starts.contains(at);
    assert!(runs.iter().any(is_data), "{what}");
    // QEMU writes nothing else but what is known.
    let is_other = |run: &&Range| !counted().any(|range| holds(&[**run], range));
    assert_eq!(runs.iter().filter(is_other).count(), made.others, "{what}");
    // On a drive with units of 4 KiB it writes as many units, or more.
    let drive = Topology::new(4096, 1 << 30);
    let unit = drive.judged_unit();
    let least: u64 = counted().map(|range| range.operations(&drive).writes).sum();
    let real: u64 = writes.iter().map(|&(at, length)| unit.touched(at, length)).sum();
    assert!(least <= real, "{least} of {real}: {what}");
    eprintln!("{} {:?}: {least} units of 4096, QEMU {real}", made.format, made.base);
}

use super::*;
use crate::base::topology::{Fact, Source, Topology, Trust, Why};
use crate::mapping::partition::Partition;
use crate::mapping::slices::PartitionType;
use crate::registry;
use crate::table::scheme::Geometry;

/// The disk of FORMATS' worked example: 488397168 sectors of 512 bytes.
const DISK: u64 = 488_397_168;

fn table(scheme: &'static str, first: u64, last: u64, entries: &[(u64, u64)]) -> Table {
    let entry = |(n, &(start, size)): (u32, &(u64, u64))| Entry {
        partition: Partition::new(n + 1, start * 512, size * 512, PartitionType::Mbr(0xa5)),
        attributes: 0,
        from: None,
    };
    let usable = first * 512..(last + 1) * 512;
    Table {
        usable,
        capacity: 128,
        entries: (0..).zip(entries).map(entry).collect(),
        ..Table::new(registry::scheme_named(scheme).unwrap(), 512, DISK * 512)
    }
}

/// A provider whose byte 0 lies `base` sectors past a boundary of `unit` bytes; of 0: of nothing
/// known.
fn topology(unit: u64, base: u64) -> Topology {
    let topology = Topology::new(512, DISK * 512);
    match Grain::new(unit, 0) {
        None => topology,
        Some(grain) => topology.with(Fact {
            grain: grain.shift(base * 512),
            why: Why::Physical,
            source: Source::User,
            trust: Trust::Trusted,
        }),
    }
}

fn request(b: Option<u64>, s: Option<u64>, a: Option<u64>) -> Request {
    let bytes = |n: Option<u64>| n.map(|n| n * 512);
    Request { start: bytes(b), size: bytes(s), align: bytes(a) }
}

/// The start and size of a partition, in sectors.
fn added(
    table: &Table,
    (unit, base): (u64, u64),
    request: Request,
    rules: Rules,
) -> Result<(u64, u64), String> {
    let topology = topology(unit, base);
    let site = TableSite { topology: &topology, base: base * 512, kind: None };
    let range = place(table, &site, &request, rules).map_err(|r| r.found)?;
    Ok((range.start / 512, (range.end - range.start) / 512))
}

const NEW: Rules = Rules::Gpart;
const OLD: Rules = Rules::Gpart9;
const NONE: Option<u64> = None;

#[test]
fn the_published_commands() {
    let old = table("GPT", 34, 488_397_134, &[]);
    let new = table("GPT", 40, 488_397_127, &[]);
    let (disk, slice) = ((4096, 0), (4096, 574));
    assert_eq!(added(&old, disk, request(NONE, NONE, Some(574)), OLD), Ok((574, 488_396_510)));
    assert_eq!(added(&new, disk, request(NONE, NONE, Some(574)), NEW), Ok((574, 488_396_510)));
    assert_eq!(added(&old, disk, request(NONE, NONE, Some(8)), OLD), Ok((40, 488_397_088)));
    assert_eq!(added(&new, disk, request(NONE, NONE, Some(8)), NEW), Ok((40, 488_397_088)));
    // Nested in a slice off the grain gpart comes out on it: LBA 574 + 2.
    let inner = table("BSD", 0, 488_396_509, &[]);
    for rules in [OLD, NEW] {
        assert_eq!(
            added(&inner, slice, request(NONE, Some(188_743_680), NONE), rules),
            Ok((2, 188_743_680))
        );
        // Where the drive says nothing, it does not.
        assert_eq!(
            added(&inner, (0, 574), request(NONE, Some(188_743_680), NONE), rules),
            Ok((0, 188_743_680))
        );
        assert_eq!(
            added(&inner, (0, 574), request(NONE, Some(188_743_680), Some(8)), rules),
            Ok((2, 188_743_680))
        );
    }
}

#[test]
fn what_is_said_is_taken_or_rounded_as_gpart_does() {
    let t = table("GPT", 40, 99_999, &[(1000, 1000)]);
    let add = |b, s, a| added(&t, (4096, 0), request(b, s, a), NEW);
    // Start and size: as said. A start alone is moved up; a size of more than a unit is cut, one
    // below it is not.
    assert_eq!(add(Some(41), Some(3), NONE), Ok((41, 3)));
    assert_eq!(add(Some(41), NONE, NONE), Ok((48, 952)));
    assert_eq!(add(NONE, Some(15), NONE), Ok((40, 8)));
    assert_eq!(add(NONE, Some(7), NONE), Ok((40, 7)));
    // Tightest fit, largest hole.
    assert_eq!(add(NONE, Some(800), NONE), Ok((40, 800)));
    assert_eq!(add(NONE, Some(968), NONE), Ok((2000, 968)));
    assert_eq!(add(NONE, NONE, NONE), Ok((2000, 98_000)));
    // Start, size and unit: the tightest fit from there on, not the place itself.
    assert_eq!(add(Some(500), Some(16), Some(8)), Ok((504, 16)));
    assert_eq!(added(&t, (4096, 0), request(Some(500), Some(16), Some(8)), OLD), Ok((40, 16)));
}

#[test]
fn what_is_odd_stays_odd() {
    // The last sector is taken for the one after it: release 9 leaves all but one sector of a last
    // unit free.
    let t = table("GPT", 40, 99_999, &[]);
    let add = |rules| added(&t, (4096, 0), request(NONE, NONE, NONE), rules);
    assert_eq!((add(NEW), add(OLD)), (Ok((40, 99_960)), Ok((40, 99_952))));
    // A start with a size and a unit is where release 12 begins to look; release 9 does not care.
    let t = table("GPT", 40, 99_999, &[(48, 8)]);
    let add = |rules| added(&t, (4096, 0), request(Some(1000), Some(16), Some(8)), rules);
    assert_eq!((add(NEW), add(OLD)), (Ok((1000, 16)), Ok((56, 16))));
    // Nothing but less than a unit at the end: nothing.
    let t = table("BSD", 0, 1006, &[(0, 1000)]);
    assert_eq!(
        added(&t, (4096, 0), request(NONE, NONE, NONE), NEW),
        Err("autofill: No space left on device".into())
    );
}

#[test]
fn the_kernel_checks() {
    let t = table("GPT", 40, 99_999, &[(1000, 1000)]);
    let add = |b, s| added(&t, (4096, 0), request(Some(b), Some(s), NONE), NEW).unwrap_err();
    assert_eq!(add(34, 10), "start '34': Invalid argument");
    assert_eq!(add(100_000, 10), "start '100000': Invalid argument");
    assert_eq!(add(99_999, 2), "size '2': Invalid argument");
    assert_eq!(add(1999, 1), "start '1999': No space left on device");
    assert_eq!(add(999, 2), "end '1000': No space left on device");
    assert_eq!(add(999, 2000), "size '2000': No space left on device");
}

#[test]
fn tracks() {
    let mut t = table("MBR", 63, DISK - 1, &[]);
    t.geometry = Some(Geometry::ATA);
    let add = |t: &Table, b, s, rules| added(t, (4096, 0), request(b, s, NONE), rules);
    assert_eq!(add(&t, NONE, Some(1000), NEW), Ok((64, 1000)));
    assert_eq!(add(&t, NONE, Some(1000), OLD), Ok((126, 882)));
    assert_eq!(add(&t, Some(64), Some(100), OLD), Err("size '100': Invalid argument".into()));
    // An EBR's data begin a track behind it, at any time.
    t = table("EBR", 0, 99_999, &[]);
    t.geometry = Some(Geometry::ATA);
    for rules in [OLD, NEW] {
        assert_eq!(add(&t, NONE, Some(1000), rules), Ok((63, 882)));
        assert_eq!(add(&t, NONE, Some(100), rules), Err("size '96': Invalid argument".into()));
    }
}

#[test]
fn resizing() {
    let t = table("GPT", 40, 100_003, &[(41, 100), (1001, 1000)]);
    let resized = |index: u32, s: Option<u64>, a: Option<u64>| {
        let topology = topology(4096, 0);
        let site = TableSite { topology: &topology, base: 0, kind: None };
        let size = resize(&t, &site, t.entry(index).unwrap(), &request(NONE, s, a), NEW);
        size.map(|size| size / 512).map_err(|r| r.found)
    };
    assert_eq!(resized(1, Some(99), NONE), Ok(99));
    // With a unit the end is put on it.
    assert_eq!(resized(1, Some(99), Some(8)), Ok(95));
    assert_eq!(resized(2, Some(1500), Some(8)), Ok(1495));
    // Growing towards a neighbour goes all the way, whatever size is said.
    assert_eq!(resized(1, Some(200), Some(8)), Ok(959));
    assert_eq!(resized(1, NONE, NONE), Ok(959));
    assert_eq!(resized(2, NONE, NONE), Ok(98_999));
    assert_eq!(resized(1, Some(2000), NONE), Err("size '2000': No space left on device".into()));
}

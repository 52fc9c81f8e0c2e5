use super::*;
use crate::base::store::Sparse;
use crate::base::topology::{Source, Topology, Trust, Why};
use crate::graph::Disk;
use crate::probe::Limits;

const MIB: u64 = 1 << 20;

fn physical(size: u64, phase: u64) -> Fact {
    Fact {
        grain: Grain::new(size, phase).unwrap(),
        why: Why::Physical,
        source: Source::User,
        trust: Trust::Trusted,
    }
}

/// A boot sector with these primary partitions: first sector, sectors.
fn mbr(partitions: &[(u32, u32)]) -> Vec<u8> {
    let mut sector = vec![0; 512];
    for (nth, (start, sectors)) in partitions.iter().enumerate() {
        let entry = &mut sector[446 + 16 * nth..][..16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&sectors.to_le_bytes());
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

fn disk(name: &str, length: u64, fact: Option<Fact>, front: &[u8]) -> Disk {
    let mut store = Sparse::new(length);
    store.put(0, front);
    let topology = fact.into_iter().fold(Topology::new(512, length), Topology::with);
    Disk::new(name, Box::new(store), topology)
}

/// Results of one request: the layer's name, the disk, the verdict, and the blamed provider.
fn seen(
    graph: &Graph,
    watch: &IoAudit,
    kind: IoKind,
    offset: u64,
    length: u64,
) -> Vec<(String, usize, Placement, Option<String>)> {
    let name = |id: Id| graph.providers[id].name.clone();
    let mut all = Vec::new();
    watch.judge(kind, offset, length, &mut |cell, seen| {
        let Some(mark) = seen.piece else { return };
        let (layer, medium) = watch.cell(cell);
        let layer = &watch.layers()[layer];
        let blamed = layer.blamed[medium].filter(|_| mark.blamed).map(name);
        all.push((name(layer.provider), watch.media()[medium].store, mark.fit, blamed));
    });
    all
}

fn verdict_on(
    layer: &str,
    fit: Placement,
    blamed: Option<&str>,
) -> Vec<(String, usize, Placement, Option<String>)> {
    vec![(layer.into(), 0, fit, blamed.map(Into::into))]
}

#[test]
fn a_request_belongs_to_the_partition_that_it_begins_in_and_its_start_is_blamed() {
    let graph = Graph::taste(
        vec![disk("", 8 * MIB, Some(physical(4096, 0)), &mbr(&[(63, 4001), (4096, 2048)]))],
        Limits::default(),
    );
    let whole = IoAudit::new(&graph, 0);
    let see = |offset, length| seen(&graph, &whole, IoKind::Write, offset, length);
    let start = 63 * 512;
    assert_eq!(see(0, 4096), verdict_on("", Placement::Aligned, None));
    assert_eq!(see(0, 512), verdict_on("", Placement::Partial, None));
    // Off by itself: the disk begins on the grain.
    assert_eq!(see(512, 4096), verdict_on("", Placement::Misaligned, None));
    // Would fit if the partition began on the grain.
    assert_eq!(see(start, 4096), verdict_on("s1", Placement::Misaligned, Some("s1")));
    assert_eq!(see(start + 8192, 65536), verdict_on("s1", Placement::Misaligned, Some("s1")));
    // Would not.
    assert_eq!(see(start + 1024, 4096), verdict_on("s1", Placement::Misaligned, None));
    assert_eq!(see(start, 4096 + 512), verdict_on("s1", Placement::Misaligned, None));
    assert_eq!(see(start + 512, 4096), verdict_on("s1", Placement::Aligned, None));
    assert_eq!(see(start, 2048), verdict_on("s1", Placement::Partial, None));
    assert_eq!(see(2 * MIB, 4096), verdict_on("s2", Placement::Aligned, None));
    assert_eq!(see(2 * MIB + 512, 4096), verdict_on("s2", Placement::Misaligned, None));
    // Behind the last partition is the disk again; behind the disk nothing.
    assert_eq!(see(7 * MIB, 4096), verdict_on("", Placement::Aligned, None));
    assert_eq!(
        (see(8 * MIB, 4096), see(u64::MAX, 4096), see(8 * MIB - 512, 4096)),
        (vec![], vec![], vec![])
    );
    // The partition alone says the same in its own bytes.
    let alone = IoAudit::new(&graph, graph.find("s1").unwrap());
    assert_eq!(
        seen(&graph, &alone, IoKind::Read, 0, 4096),
        verdict_on("s1", Placement::Misaligned, Some("s1"))
    );
    assert_eq!(
        seen(&graph, &alone, IoKind::Read, 512, 4096),
        verdict_on("s1", Placement::Aligned, None)
    );
}

/// The disk of a golden file, with units of 4096 bytes.
fn golden(text: &str) -> Graph {
    let store = Sparse::from_hexdump(text).unwrap();
    let topology =
        Topology::new(512, crate::base::store::Store::length(&store)).with(physical(4096, 0));
    Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default())
}

#[test]
fn a_logical_partition_hides_the_extended_one_that_it_is_in() {
    let mut front = mbr(&[(63, 4001)]);
    front[446 + 4] = 0x05;
    front.resize(63 * 512, 0);
    front.extend(mbr(&[(1, 100)]));
    let graph =
        Graph::taste(vec![disk("", 8 * MIB, Some(physical(4096, 0)), &front)], Limits::default());
    let whole = IoAudit::new(&graph, 0);
    let see = |offset| seen(&graph, &whole, IoKind::Write, offset, 4096);
    assert_eq!(see(64 * 512), verdict_on("s5", Placement::Aligned, None));
    assert_eq!(see(65 * 512), verdict_on("s5", Placement::Misaligned, None));
    assert_eq!(see(63 * 512), verdict_on("s1", Placement::Misaligned, Some("s1")));
}

#[test]
fn of_layers_off_the_grain_the_lowest_is_blamed_unless_one_above_is_on_it_again() {
    let blamed = |text| {
        let graph = golden(text);
        let name = |id: Id| graph.providers[id].name.clone();
        let watch = IoAudit::new(&graph, 0);
        let mut said: Vec<_> =
            watch.layers().iter().map(|l| (name(l.provider), l.blamed[0].map(name))).collect();
        said.sort();
        said.into_iter()
            .map(|(layer, blamed)| format!("{layer}: {}", blamed.unwrap_or_default()))
            .collect::<Vec<_>>()
    };
    // A slice at sector 63; in it `a` and `b` are off, `e` is on again.
    let netbsd = blamed(include_str!("../../../../../tests/disks/bsd-netbsd.hex"));
    assert_eq!(netbsd, [": ", "s1: s1", "s1a: s1", "s1b: s1", "s1e: "]);
    // A slice on the grain; in it `b` is off.
    let in_gpt = blamed(include_str!("../../../../../tests/disks/bsd-in-gpt.hex"));
    assert_eq!(in_gpt, [": ", "s1: ", "s1a: ", "s1b: s1b"]);
}

#[test]
fn a_disk_off_its_own_grain_is_to_blame_and_one_of_which_nothing_is_known_is_unknown() {
    let graph = Graph::taste(
        vec![disk("", 8 * MIB, Some(physical(4096, 3584)), &mbr(&[(63, 4001)]))],
        Limits::default(),
    );
    let whole = IoAudit::new(&graph, 0);
    assert_eq!(
        seen(&graph, &whole, IoKind::Write, 4 * MIB, 4096),
        verdict_on("", Placement::Misaligned, Some(""))
    );
    assert_eq!(
        seen(&graph, &whole, IoKind::Write, 63 * 512, 4096),
        verdict_on("s1", Placement::Aligned, None)
    );
    // A partition could begin on its grain.
    let graph = Graph::taste(
        vec![disk("", 8 * MIB, Some(physical(4096, 3584)), &mbr(&[(64, 4001)]))],
        Limits::default(),
    );
    assert_eq!(
        seen(&graph, &IoAudit::new(&graph, 0), IoKind::Write, 64 * 512, 4096),
        verdict_on("s1", Placement::Misaligned, Some("s1"))
    );
    let graph = Graph::taste(vec![disk("", 8 * MIB, None, &[])], Limits::default());
    assert_eq!(
        seen(&graph, &IoAudit::new(&graph, 0), IoKind::Write, 512, 4096),
        verdict_on("", Placement::Unknown, None)
    );
}

/// A label of gstripe for member `number` of two, chunks of 16 KiB.
fn stripe(number: u16) -> Vec<u8> {
    let mut label = b"GEOM::STRIPE\0\0\0\0".to_vec();
    label.extend(3u32.to_le_bytes());
    label.extend(b"data\0\0\0\0\0\0\0\0\0\0\0\0");
    label.extend(7u32.to_le_bytes());
    label.extend([number, 2].map(u16::to_le_bytes).concat());
    label.extend(16384u32.to_le_bytes());
    label.extend([0; 16]);
    label.extend(MIB.to_le_bytes());
    label
}

#[test]
fn pieces_of_a_set_are_judged_on_their_members() {
    let member = |number: u16, fact| {
        let mut store = Sparse::new(MIB);
        store.put(MIB - 512, &stripe(number));
        Disk::new(format!("disk{number}"), Box::new(store), Topology::new(512, MIB).with(fact))
    };
    let graph = Graph::taste(
        vec![member(0, physical(4096, 0)), member(1, physical(8192, 0))],
        Limits::default(),
    );
    let set = graph.find("stripe/data").unwrap();
    let watch = IoAudit::new(&graph, set);
    assert_eq!((watch.layers().len(), watch.media().len(), watch.cells()), (1, 2, 2));
    let see = |offset, length| {
        seen(&graph, &watch, IoKind::Write, offset, length)
            .into_iter()
            .map(|(_, store, fit, _)| (store, fit))
    };
    assert_eq!(see(0, 4096).collect::<Vec<_>>(), [(0, Placement::Aligned)]);
    assert_eq!(see(16384, 4096).collect::<Vec<_>>(), [(1, Placement::Partial)]);
    // A request of a unit, cut into smaller pieces, is not too small.
    assert_eq!(
        see(13312, 4096).collect::<Vec<_>>(),
        [(0, Placement::Misaligned), (1, Placement::Partial)]
    );
    assert_eq!(
        see(13312, 8192).collect::<Vec<_>>(),
        [(0, Placement::Misaligned), (1, Placement::Misaligned)]
    );
    assert_eq!(
        see(0, 32768).collect::<Vec<_>>(),
        [(0, Placement::Aligned), (1, Placement::Aligned)]
    );
    assert_eq!(
        see(12288, 16384).collect::<Vec<_>>(),
        [(0, Placement::Aligned), (1, Placement::Misaligned)]
    );
    // A member on which the set clashes is off for the set.
    let graph = Graph::taste(
        vec![member(0, physical(4096, 0)), member(1, physical(4096, 512))],
        Limits::default(),
    );
    let watch = IoAudit::new(&graph, graph.find("stripe/data").unwrap());
    let blamed: Vec<_> = watch.layers()[0]
        .blamed
        .iter()
        .map(|id| id.map(|id| graph.providers[id].name.clone()))
        .collect();
    assert_eq!(blamed, [Some("stripe/data".to_owned()), Some("disk1".to_owned())]);
}

#[test]
fn a_tally_holds_what_was_marked() {
    let graph = Graph::taste(
        vec![disk("", 8 * MIB, Some(physical(4096, 0)), &mbr(&[(63, 4001)]))],
        Limits::default(),
    );
    let watch = IoAudit::new(&graph, graph.find("s1").unwrap());
    let mut tally = Tally::default();
    let mut add =
        |kind, offset, length| watch.judge(kind, offset, length, &mut |_, seen| tally.add(seen));
    (0..10).for_each(|i| add(IoKind::Write, i * 4096, 4096));
    add(IoKind::Write, 512, 8192);
    add(IoKind::Read, 0, 512);
    add(IoKind::Trim, 0, 65536);
    add(IoKind::Zero, 512, 4096);
    let counts = IoKind::ALL.map(|kind| Placement::ALL.map(|fit| tally.count(kind, fit)));
    assert_eq!(counts, [[0, 0, 1, 0], [1, 10, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]]);
    assert_eq!(IoKind::ALL.map(|kind| tally.bytes(kind)), [512, 10 * 4096 + 8192, 65536, 4096]);
    assert_eq!(IoKind::ALL.map(|kind| tally.blamed(kind)), [0, 10, 1, 0]);
    assert_eq!(tally.work(IoKind::Write), DeviceOps { done: 42, needed: 12 });
    // On one disk without a set a request is one piece.
    assert_eq!(IoKind::ALL.map(|kind| Placement::ALL.map(|fit| tally.requests(kind, fit))), counts);
    assert_eq!(IoKind::ALL.map(|kind| tally.requests_blamed(kind)), [0, 10, 1, 0]);
    let all: Vec<_> = tally
        .histogram()
        .map(|b| (b.kind, b.fit, class_start(b.size), class_start(b.alignment), b.count))
        .collect();
    // Sector 63 is divided by 512 alone; the ninth block, 9 × 4096 - 512 on, as well.
    let want = [
        (IoKind::Read, Placement::Partial, 512, 512, 1),
        (IoKind::Write, Placement::Aligned, 8192, 32768, 1),
        (IoKind::Write, Placement::Misaligned, 4096, 512, 10),
    ];
    assert_eq!(all, want);
    let mut twice = tally.clone();
    twice.merge(&tally);
    assert_eq!((twice.pieces(IoKind::Write), twice.bytes(IoKind::Read)), (22, 1024));
}

#[test]
fn classes_are_powers_of_two() {
    let of =
        |bytes: &[u64]| bytes.iter().map(|&bytes| class_start(class_of(bytes))).collect::<Vec<_>>();
    assert_eq!(
        of(&[0, 1, 511, 512, 1023, 1024, 4096, 6144]),
        [0, 0, 0, 512, 512, 1024, 4096, 4096]
    );
    assert_eq!(of(&[MIB - 1, MIB, MIB + 1, u64::MAX]), [MIB / 2, MIB, MIB, MIB]);
    let alignment = |bytes: &[u64]| {
        bytes.iter().map(|&byte| class_start(alignment_of(byte))).collect::<Vec<_>>()
    };
    assert_eq!(
        alignment(&[0, 1, 512, 63 * 512, 12288, 3 * MIB, 1 << 40]),
        [MIB, 0, 512, 512, 4096, MIB, MIB]
    );
}

//! What is counted of requests, against a model that follows single bytes and knows nothing of
//! routes, grains and watches.
//!
//! A stack is described twice: as bytes on disks, which are tasted, and as a [`Model`]. Ten
//! thousand requests to every stack, through all of its exports, must come to the same pieces,
//! verdicts, operations and blame.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use std::collections::BTreeMap;
use trueline_geom::audit::io::{IoAudit, IoKind, Tally};
use trueline_geom::base::store::Sparse;
use trueline_geom::base::topology::{Fact, Grain, Placement, Source, Topology, Trust, Why};
use trueline_geom::class::metadata::{Component, Label, Labelled};
use trueline_geom::class::{concat, mirror, stripe};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

/// Bytes that are followed together: every size and boundary here is a multiple of them.
const STEP: u64 = 256;
const KIB: u64 = 1024;
/// Length of a member's data; its label is in the sector behind it.
const SHARE: u64 = 512 * KIB;
/// Requests to a stack, at least.
const REQUESTS: u64 = 10_000;

/// Where bytes are, as a person would say it.
#[derive(Clone)]
enum Model {
    Disk(usize),
    Slice { start: u64, of: Box<Model> },
    Stripe { chunk: u64, of: Vec<Model> },
    Mirror(Vec<Model>),
    Concat { lengths: Vec<u64>, of: Vec<Model> },
}

/// A byte on a disk, and the numbers of the chunks and members that it was reached through: another
/// one is another piece.
type Spot = (usize, u64, Vec<u64>);

impl Model {
    fn slice(&self, start: u64) -> Model {
        Model::Slice { start, of: Box::new(self.clone()) }
    }

    /// Every copy of a byte; a read takes the first.
    fn spots(&self, byte: u64, write: bool) -> Vec<Spot> {
        let through = |of: &Model, number: u64, byte: u64| {
            let mut spots = of.spots(byte, write);
            spots.iter_mut().for_each(|spot| spot.2.push(number));
            spots
        };
        match self {
            Model::Disk(store) => vec![(*store, byte, vec![])],
            Model::Slice { start, of } => of.spots(start + byte, write),
            Model::Stripe { chunk, of } => {
                let (number, members) = (byte / chunk, of.len() as u64);
                let member = &of[usize::try_from(number % members).unwrap()];
                through(member, number, number / members * chunk + byte % chunk)
            }
            Model::Mirror(of) => {
                let copies = if write { of.len() } else { 1 };
                (0..)
                    .zip(&of[..copies])
                    .flat_map(|(number, copy)| through(copy, number, byte))
                    .collect()
            }
            Model::Concat { lengths, of } => {
                let (mut byte, mut member) = (byte, 0);
                while byte >= lengths[member] {
                    (byte, member) = (byte - lengths[member], member + 1);
                }
                through(&of[member], member as u64, byte)
            }
        }
    }
}

fn steps(start: u64, length: u64) -> impl Iterator<Item = u64> {
    (start..start + length).step_by(usize::try_from(STEP).unwrap())
}

/// What a piece comes to: disk, first byte, length, verdict, operations done, needed, and whether
/// the stack is to blame.
type Want = (usize, u64, u64, Placement, u64, u64, bool);

/// A way in: the provider's name, what it is made of, and the layers in it: first byte, length, the
/// deepest last.
struct Export {
    name: String,
    model: Model,
    length: u64,
    layers: Vec<(String, u64, u64)>,
}

struct Stack {
    what: &'static str,
    graph: Graph,
    /// Size and first boundary of the unit of every disk.
    units: Vec<(u64, u64)>,
    exports: Vec<Export>,
}

impl Stack {
    /// The first byte of the deepest layer at a byte, and its name.
    fn layer(export: &Export, byte: u64) -> (String, u64) {
        let here = export
            .layers
            .iter()
            .rev()
            .find(|(_, start, length)| (*start..start + length).contains(&byte));
        here.map_or((export.name.clone(), 0), |(name, start, _)| (name.clone(), *start))
    }

    fn want(&self, export: &Export, kind: IoKind, offset: u64, length: u64) -> Vec<Want> {
        // Runs of steps, of one copy each: disk, first byte, bytes, through what, bytes of the
        // request before it.
        let mut runs: Vec<(Spot, u64, u64)> = Vec::new();
        for byte in steps(offset, length) {
            for spot in export.model.spots(byte, kind != IoKind::Read) {
                let next = runs.iter_mut().rev().find(|((store, start, by), bytes, _)| {
                    (*store, *start + *bytes, by) == (spot.0, spot.1, &spot.2)
                });
                match next {
                    Some((_, bytes, _)) => *bytes += STEP,
                    None => runs.push((spot, STEP, byte - offset)),
                }
            }
        }
        let (_, layer) = Stack::layer(export, offset);
        let piece = |((store, start, _), bytes, before): (Spot, u64, u64)| {
            let (unit, phase) = self.units[store];
            let mut units = BTreeMap::new();
            (start..start + bytes)
                .step_by(usize::try_from(STEP).unwrap())
                .for_each(|at| *units.entry((at + unit - phase) / unit).or_insert(0) += STEP);
            let parts = units.values().filter(|&&filled| filled < unit).count() as u64;
            let fit = if parts == 0 {
                Placement::Aligned
            } else if length < unit {
                Placement::Partial
            } else {
                Placement::Misaligned
            };
            let (mut done, mut needed) = (
                units.len() as u64,
                steps(before, bytes).filter(|at| at.is_multiple_of(unit)).count() as u64,
            );
            if kind == IoKind::Write {
                done += parts;
            }
            if !matches!(kind, IoKind::Read | IoKind::Write) {
                (done, needed) = (0, 0);
            }
            let well_asked = (offset - layer).is_multiple_of(unit) && length.is_multiple_of(unit);
            (store, start, bytes, fit, done, needed, fit == Placement::Misaligned && well_asked)
        };
        let mut all: Vec<Want> = runs.into_iter().map(piece).collect();
        all.sort_unstable();
        all
    }

    /// Compares so many requests; how many there were.
    fn compare(&self) -> u64 {
        let sizes: Vec<u64> =
            [1, 2, 3, 4, 8, 9, 14, 16, 17, 18, 24, 32, 48, 64, 66, 128, 256, 258, 512, 800]
                .map(|steps| steps * STEP)
                .into();
        let each = REQUESTS.div_ceil(self.exports.len() as u64 * sizes.len() as u64 * 4);
        let mut compared = 0;
        for export in &self.exports {
            let id = self
                .graph
                .find(&export.name)
                .unwrap_or_else(|| panic!("{}: no {}", self.what, export.name));
            assert_eq!(
                self.graph.providers[id].topology.length, export.length,
                "{}: {}",
                self.what, export.name
            );
            let watch = IoAudit::new(&self.graph, id);
            let mut tally = Tally::default();
            let mut expected: BTreeMap<(IoKind, Placement), u64> = BTreeMap::new();
            for (nth, &length) in
                (0..each).flat_map(|nth| sizes.iter().map(move |size| (nth, size)))
            {
                let room = export.length - length;
                // Ends of the export, of its layers and of chunks, and what lies between them, on a
                // stride that meets every residue.
                let edges = [0, room, 63 * 512, 2048 * 512, 16 * KIB, SHARE];
                let edge = edges[usize::try_from(nth).unwrap() % edges.len()];
                let odd = nth * 2654 * STEP + length / STEP % 7 * STEP;
                for (kind, at) in IoKind::ALL.into_iter().zip([
                    odd,
                    edge,
                    edge + odd % (64 * KIB),
                    (odd * 3).saturating_sub(length),
                ]) {
                    let offset = at % (room + STEP) / STEP * STEP;
                    let fit = self.one(export, &watch, (kind, offset, length), &mut tally);
                    *expected.entry((kind, fit)).or_insert(0) += 1;
                    compared += 1;
                }
            }
            let counted = IoKind::ALL.into_iter().flat_map(|kind| {
                Placement::ALL.map(|fit| ((kind, fit), tally.requests(kind, fit)))
            });
            assert_eq!(
                counted.filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>(),
                expected,
                "{}: {}",
                self.what,
                export.name
            );
        }
        compared
    }

    /// Compares one request; its verdict.
    fn one(
        &self,
        export: &Export,
        watch: &IoAudit,
        (kind, offset, length): (IoKind, u64, u64),
        tally: &mut Tally,
    ) -> Placement {
        let place =
            format!("{}: {kind:?} of {length} bytes at {offset} of {}", self.what, export.name);
        let (mut pieces, mut requests) = (Vec::new(), Vec::new());
        watch.judge(kind, offset, length, &mut |cell, seen| {
            tally.add(seen);
            let (layer, medium) = watch.cell(cell);
            let layer = &watch.layers()[layer];
            assert_eq!(
                self.graph.providers[layer.provider].name,
                Stack::layer(export, offset).0,
                "{place}"
            );
            if let Some(mark) = seen.piece {
                assert_eq!(watch.media()[medium].store, mark.store, "{place}");
                pieces.push((
                    mark.store,
                    mark.offset,
                    mark.length,
                    mark.fit,
                    mark.work.done,
                    mark.work.needed,
                    mark.blamed,
                ));
            }
            requests.extend(seen.request);
        });
        pieces.sort_unstable();
        let want = self.want(export, kind, offset, length);
        assert_eq!(pieces, want, "{place}");
        let [request] = requests[..] else { panic!("{place}: {requests:?}") };
        let any = |fit| want.iter().any(|piece| piece.3 == fit);
        let worst = [Placement::Misaligned, Placement::Partial]
            .into_iter()
            .find(|&fit| any(fit))
            .unwrap_or(Placement::Aligned);
        assert_eq!(
            (request.kind, request.fit, request.blamed),
            (kind, worst, want.iter().any(|piece| piece.6)),
            "{place}"
        );
        worst
    }
}

fn disk(number: usize, length: u64, unit: (u64, u64), writes: &[(u64, Vec<u8>)]) -> Disk {
    let mut store = Sparse::new(length);
    writes.iter().for_each(|(at, bytes)| store.put(*at, bytes));
    let grain = Grain::new(unit.0, unit.1).unwrap();
    let fact = Fact { grain, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
    Disk::new(format!("disk{number}"), Box::new(store), Topology::new(512, length).with(fact))
}

/// A boot sector with partitions of so many sectors at such.
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

/// Two partitions: one as of old at sector 63, and one that begins on 256 KiB.
const TABLE: [(u32, u32); 2] = [(63, 400), (512, 510)];

fn taste(disks: Vec<Disk>) -> Graph {
    Graph::taste(disks, Limits::default())
}

/// Exports of a provider with [`TABLE`]: itself and its partitions.
fn with_table(name: &str, model: &Model, length: u64) -> Vec<Export> {
    let part = |nth: usize| format!("{name}s{}", nth + 1);
    let ranges = TABLE.map(|(start, sectors)| (u64::from(start) * 512, u64::from(sectors) * 512));
    let layers = ranges
        .iter()
        .enumerate()
        .map(|(nth, &(start, length))| (part(nth), start, length))
        .collect();
    let whole = Export { name: name.into(), model: model.clone(), length, layers };
    let slices = ranges.iter().enumerate().map(|(nth, &(start, length))| Export {
        name: part(nth),
        model: model.slice(start),
        length,
        layers: vec![],
    });
    std::iter::once(whole).chain(slices).collect()
}

fn lone(what: &'static str, unit: (u64, u64)) -> Stack {
    let graph = taste(vec![disk(0, SHARE, unit, &[(0, mbr(&TABLE))])]);
    Stack { what, graph, units: vec![unit], exports: with_table("disk0", &Model::Disk(0), SHARE) }
}

/// A set of whole disks with these units, whose first bytes are the boot sector of [`TABLE`]; and
/// the disks, which are exports too.
fn set(
    what: &'static str,
    name: &str,
    units: &[(u64, u64)],
    labels: Vec<Labelled>,
    lengths: &[u64],
    model: Model,
    length: u64,
) -> Stack {
    let disks =
        units.iter().zip(labels).zip(lengths).enumerate().map(|(nth, ((unit, label), &length))| {
            let front =
                if nth == 0 || matches!(model, Model::Mirror(_)) { mbr(&TABLE) } else { vec![] };
            disk(nth, length, *unit, &[(0, front), (length - 512, label.sector)])
        });
    let graph = taste(disks.collect());
    let mut exports = with_table(name, &model, length);
    exports.extend((0..units.len()).map(|nth| Export {
        name: format!("disk{nth}"),
        model: Model::Disk(nth),
        length: lengths[nth],
        layers: vec![],
    }));
    Stack { what, graph, units: units.to_vec(), exports }
}

fn components(lengths: &[u64]) -> Vec<Component> {
    lengths.iter().map(|&length| Component { length, sector: 512, hardcoded: None }).collect()
}

fn label<'a>(name: &'a str, components: &'a [Component]) -> Label<'a> {
    Label { name, id: 7, components }
}

fn disks(count: usize) -> Vec<Model> {
    (0..count).map(Model::Disk).collect()
}

fn striped(what: &'static str, chunk: u64, units: &[(u64, u64)]) -> Stack {
    let lengths = vec![SHARE + 512; units.len()];
    let labels = stripe::label(&label("data", &components(&lengths)), chunk).unwrap();
    let model = Model::Stripe { chunk, of: disks(units.len()) };
    set(what, "stripe/data", units, labels, &lengths, model, SHARE * units.len() as u64)
}

fn mirrored(what: &'static str, units: &[(u64, u64)]) -> Stack {
    let lengths = vec![SHARE + 512; units.len()];
    let ids = [1, 2, 3, 4];
    let options = mirror::Options {
        balance: "load",
        slice: 4096,
        no_autosync: false,
        no_failsync: false,
        ids: &ids[..=units.len()],
    };
    let labels = mirror::label(&label("data", &components(&lengths)), &options).unwrap();
    set(what, "mirror/data", units, labels, &lengths, Model::Mirror(disks(units.len())), SHARE)
}

fn joined(what: &'static str, data: &[u64], units: &[(u64, u64)]) -> Stack {
    let lengths: Vec<u64> = data.iter().map(|data| data + 512).collect();
    let labels = concat::label(&label("data", &components(&lengths))).unwrap();
    let model = Model::Concat { lengths: data.to_vec(), of: disks(units.len()) };
    set(what, "concat/data", units, labels, &lengths, model, data.iter().sum())
}

/// A stripe whose members are partitions at sector 63 of their disks.
fn on_partitions(what: &'static str, chunk: u64, unit: u64) -> Stack {
    let start = 63 * 512;
    let lengths = vec![SHARE + 512; 2];
    let labels = stripe::label(&label("data", &components(&lengths)), chunk).unwrap();
    let sectors = u32::try_from((SHARE + 512) / 512).unwrap();
    let one = |(nth, label): (usize, Labelled)| {
        disk(
            nth,
            SHARE + 128 * KIB,
            (unit, 0),
            &[(0, mbr(&[(63, sectors)])), (start + SHARE, label.sector)],
        )
    };
    let graph = taste(labels.into_iter().enumerate().map(one).collect());
    let members = disks(2).iter().map(|disk| disk.slice(start)).collect();
    let model = Model::Stripe { chunk, of: members };
    let exports =
        vec![Export { name: "stripe/data".into(), model, length: 2 * SHARE, layers: vec![] }];
    Stack { what, graph, units: vec![(unit, 0); 2], exports }
}

/// A mirror of two partitions of one disk: a write is two pieces there, and one request.
fn mirrored_on_one_disk(what: &'static str, unit: u64) -> Stack {
    let share = SHARE + 512;
    let sectors = u32::try_from(share / 512).unwrap();
    let starts = [64, 64 + sectors + 63];
    let options = mirror::Options {
        balance: "load",
        slice: 4096,
        no_autosync: false,
        no_failsync: false,
        ids: &[1, 2, 3],
    };
    let labels = mirror::label(&label("data", &components(&[share; 2])), &options).unwrap();
    let at = |start: u32| u64::from(start) * 512;
    let mut writes = vec![(0, mbr(&starts.map(|start| (start, sectors))))];
    writes
        .extend(starts.iter().zip(labels).map(|(&start, label)| (at(start) + SHARE, label.sector)));
    let graph = taste(vec![disk(0, 4 * SHARE, (unit, 0), &writes)]);
    let model = Model::Mirror(starts.map(|start| Model::Disk(0).slice(at(start))).to_vec());
    let exports = vec![Export { name: "mirror/data".into(), model, length: SHARE, layers: vec![] }];
    Stack { what, graph, units: vec![(unit, 0)], exports }
}

#[test]
fn every_request_is_counted_as_its_bytes_say() {
    let stacks = [
        lone("a disk", (4096, 0)),
        lone("a disk whose units begin at sector 7", (4096, 3584)),
        lone("a disk of large units", (16384, 0)),
        striped("a stripe of four", 16384, &[(4096, 0); 4]),
        striped("a stripe of units of two sizes", 16384, &[(4096, 0), (8192, 0)]),
        striped("a stripe of units at different places", 16384, &[(4096, 0), (4096, 512)]),
        striped("a stripe of units at one odd place", 16384, &[(4096, 512); 2]),
        striped("a stripe of chunks smaller than a unit", 2048, &[(4096, 0); 2]),
        striped("a stripe of chunks of a unit", 4096, &[(4096, 0); 3]),
        mirrored("a mirror", &[(4096, 0); 2]),
        mirrored("a mirror of units of two sizes", &[(4096, 0), (8192, 0)]),
        mirrored("a mirror of units at different places", &[(4096, 0), (4096, 1024)]),
        mirrored_on_one_disk("a mirror of two partitions of one disk", 4096),
        joined("a concatenation", &[SHARE, SHARE], &[(4096, 0); 2]),
        joined(
            "a concatenation that leaves the grain at its seam",
            &[SHARE + 512, SHARE],
            &[(4096, 0); 2],
        ),
        on_partitions("a stripe of partitions at sector 63", 16384, 4096),
        on_partitions("a stripe of partitions at sector 63, of chunks of half a unit", 2048, 4096),
    ];
    for stack in &stacks {
        let compared = stack.compare();
        assert!(compared >= REQUESTS, "{}: {compared}", stack.what);
    }
}

/// The stripe of which half the pieces were blamed on a client that wrote whole blocks of its
/// partition one after another.
#[test]
fn a_stripe_does_not_make_requests_small() {
    let stack = striped("", 16384, &[(4096, 0); 4]);
    let watch = IoAudit::new(&stack.graph, stack.graph.find("stripe/datas1").unwrap());
    let mut tally = Tally::default();
    (0..48).for_each(|nth| {
        watch.judge(IoKind::Write, nth * 4096, 4096, &mut |_, seen| tally.add(seen))
    });
    assert_eq!(
        (
            tally.pieces(IoKind::Write),
            tally.count(IoKind::Write, Placement::Misaligned),
            tally.blamed(IoKind::Write)
        ),
        (60, 60, 60)
    );
    assert_eq!(
        (
            tally.requests(IoKind::Write, Placement::Misaligned),
            tally.requests_blamed(IoKind::Write)
        ),
        (48, 48)
    );
    assert_eq!((tally.work(IoKind::Write).done, tally.work(IoKind::Write).needed), (4 * 48, 48));
}

//! What must hold whatever the disks say.
//!
//! The mutation test beside this file and the fuzz targets in `fuzz/` call the same functions, so
//! that a crash found by one is a failure of the other. A violated invariant is a panic.

use crate::conversions;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use trueline_geom::audit::{self, profile};
use trueline_geom::base::error::Errno;
use trueline_geom::base::finding::{Finding, Fix};
use trueline_geom::base::store::filter::{Filter, Request};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::class::{Class, Member, Taste};
use trueline_geom::format::Sign;
use trueline_geom::graph::{Disk, Graph, Id, Provider};
use trueline_geom::mapping::geom::{Geom, Op};
use trueline_geom::mapping::route::{Piece, Route};
use trueline_geom::probe::read_set::ReadSet;
use trueline_geom::probe::unlock::Unlock;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry::{CLASSES, FORMATS};

/// A disk to look at, and what is known of it.
#[derive(Clone)]
pub struct Subject {
    /// Its bytes.
    pub disk: Sparse,
    /// Its logical sector.
    pub sector: u64,
    /// Its read-modify-write unit; `None`: what is assumed of an unnamed drive.
    pub physical: Option<Grain>,
}

impl Subject {
    /// A disk in sectors of `sector` bytes of which nothing else is known.
    pub fn new(disk: Sparse, sector: u64) -> Subject {
        Subject { disk, sector, physical: None }
    }

    fn topology(&self) -> Topology {
        let mut topology = Topology::new(self.sector, self.disk.length());
        topology.facts = profile::assumed();
        if let Some(grain) = self.physical {
            topology.facts = vec![Fact {
                grain,
                why: Why::Physical,
                source: Source::User,
                trust: Trust::Trusted,
            }];
        }
        topology
    }
}

/// Limits for disks that are made by the thousand: a table in itself fills the usual ones, which
/// takes its time in a build for debugging.
pub const SHORT: Limits = Limits { bytes: 512 << 10, maps: 512 << 10, providers: 128, depth: 16 };

/// Findings one provider may have: a few for every entry of the largest table, never one for every
/// pair of entries.
const FINDINGS: usize = 8 * 4096;
/// Pieces of one request that are followed. A write to a mirror of mirrors has more copies
/// than are worth a visit.
const PIECES: usize = 1024;
/// Bytes looked at from each end of a provider.
const WINDOW: u64 = 64 << 10;

/// Bytes and reads that reached the stores of one graph.
#[derive(Default)]
struct Meter {
    bytes: AtomicU64,
    reads: AtomicU64,
}

/// A disk whose reads are counted.
struct Metered {
    disk: Sparse,
    meter: Arc<Meter>,
}

impl Filter for Metered {
    fn inner(&self) -> &dyn Store {
        &self.disk
    }

    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.meter.bytes.fetch_add(request.length, Ordering::Relaxed);
        self.meter.reads.fetch_add(1, Ordering::Relaxed);
        run()
    }
}

/// Tastes the disks together, audits what was found, and checks every invariant.
pub fn graph_holds(subjects: &[Subject], limits: Limits) {
    graph_with_keys_holds(subjects, limits, None);
}

/// The graph of the disks with `keys`, of which every invariant was checked.
pub fn graph_with_keys_holds(
    subjects: &[Subject],
    limits: Limits,
    keys: Option<Arc<dyn Unlock>>,
) -> Graph {
    let meter = Arc::new(Meter::default());
    let disks = subjects.iter().enumerate().map(|(nth, subject)| {
        let name = if subjects.len() == 1 { String::new() } else { format!("disk{nth}") };
        Disk::new(
            name,
            Box::new(Metered { disk: subject.disk.clone(), meter: meter.clone() }),
            subject.topology(),
        )
    });
    let graph = Graph::taste_with(disks.collect(), limits, keys);
    // The bytes are for each disk.
    let limits = Limits { bytes: limits.bytes * subjects.len() as u64, ..limits };
    meter_holds(&meter, limits);
    assert!(graph.bytes_read() <= limits.bytes, "more was read than the budget");
    let most = limits.providers.max(subjects.len());
    assert!(
        graph.providers.len() <= most,
        "{} providers, at most {most} allowed",
        graph.providers.len()
    );
    for id in 0..graph.providers.len() {
        provider_holds(&graph, id, limits);
    }
    audit_holds(&graph);
    conversions::hold(&graph);
    graph
}

/// A disk that has something else wherever tasting has not looked.
struct Elsewhere {
    disk: Sparse,
    number: usize,
    looked: ReadSet,
}

impl Filter for Elsewhere {
    fn inner(&self) -> &dyn Store {
        &self.disk
    }

    fn pass(&self, _: &Request, run: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        run()
    }

    fn pass_read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.disk.read_at(buffer, offset)?;
        for (byte, at) in buffer.iter_mut().zip(offset..) {
            if !self.looked.is_at(self.number, at, 1) {
                *byte = 0xa5;
            }
        }
        Ok(())
    }
}

/// Tasting again finds the same, and so it does whatever is written where it has not looked.
pub fn again_holds(subjects: &[Subject]) {
    let taste = |store: &dyn Fn(usize, Sparse) -> Box<dyn Store>| {
        let disk = |(nth, subject): (usize, &Subject)| {
            Disk::new(format!("disk{nth}"), store(nth, subject.disk.clone()), subject.topology())
        };
        Graph::taste(subjects.iter().enumerate().map(disk).collect(), Limits::default())
    };
    let found = |graph: &Graph| {
        let of = |p: &Provider| {
            let signs: Vec<String> = p
                .signs
                .iter()
                .map(|sign| format!("{} {:?} {:?}", sign.kind, sign.label, sign.uuid))
                .collect();
            (
                p.name.clone(),
                p.base(),
                p.topology.clone(),
                p.parents.clone(),
                p.table.as_ref().map(|(class, _)| *class),
                signs,
            )
        };
        (graph.providers.iter().map(of).collect::<Vec<_>>(), graph.read_set())
    };
    let graph = taste(&|_, disk| Box::new(disk));
    let want = found(&graph);
    assert!(found(&graph.again()) == want, "again it is something else");
    let elsewhere =
        taste(&|number, disk| Box::new(Elsewhere { disk, number, looked: want.1.clone() }));
    assert!(found(&elsewhere) == want, "something was looked at that is not kept in mind");
}

/// Reads are what tasting spends its time on; none is free, or a loop of them would never end.
fn meter_holds(meter: &Meter, limits: Limits) {
    let (bytes, reads) = (meter.bytes.load(Ordering::Relaxed), meter.reads.load(Ordering::Relaxed));
    // The last read may take more of tables and compressed blocks than is left: a block of a qcow2
    // is stored in 4 MiB at most.
    let allowed = limits.bytes + limits.maps + (4 << 20);
    assert!(bytes <= allowed, "{bytes} bytes were read, at most {allowed} allowed");
    // A read is of a sector at least, save at the end of a provider or across the chunks of a set.
    let most = allowed / 128 + 64 * limits.providers as u64;
    assert!(reads <= most, "{reads} reads for {bytes} bytes");
}

fn provider_holds(graph: &Graph, id: Id, limits: Limits) {
    let p = &graph.providers[id];
    let (route, topology) = (p.route(), &p.topology);
    assert!(
        p.parents.iter().all(|&parent| parent < id),
        "{} comes before what it stands on",
        p.name
    );
    assert_eq!(route.length(), topology.length, "{} has two lengths", p.name);
    assert!(p.base().checked_add(route.length()).is_some(), "{} ends past 2^64", p.name);
    assert!(p.findings.len() <= FINDINGS, "{} findings on {}", p.findings.len(), p.name);
    assert!(topology.sector > 0 && p.depth <= limits.providers);
    printable(&p.name);
    for text in p.label.iter().chain(&p.uuid) {
        printable(text);
    }
    inside_parents(graph, id);
    topology_holds(topology, p.base());
    route_holds(route, graph.stores());
    if let Some(table) = p.slices() {
        for range in table.free() {
            assert!(
                range.start < range.end
                    && table.usable.start <= range.start
                    && range.end <= table.usable.end,
                "{range:?}"
            );
        }
    }
    p.signs.iter().for_each(sign_holds);
}

/// A slice lies inside what it is a slice of; a set touches only its members.
fn inside_parents(graph: &Graph, id: Id) {
    let p = &graph.providers[id];
    let parents: Vec<_> = p.parents.iter().map(|&parent| &graph.providers[parent]).collect();
    // A volume of LVM is one even on a volume that is there to be used: a thin one may be longer.
    let is_set = p.is_set
        || parents
            .iter()
            .any(|parent| parent.member.as_ref().is_some_and(|(class, _)| *class == p.class));
    if let ([parent], false) = (parents.as_slice(), is_set) {
        let (inner, outer) = (p.route(), parent.route());
        assert!(inner.base() >= outer.base(), "{} begins before {}", p.name, parent.name);
        assert!(
            inner.base() + inner.length() <= outer.base() + outer.length(),
            "{} ends after {}",
            p.name,
            parent.name
        );
        let start = parent.start.map(|start| start + (inner.base() - outer.base()));
        assert_eq!(p.start, start, "{} is not where its route leads", p.name);
    }
    let places: Option<Vec<_>> = parents
        .iter()
        .map(|parent| parent.route().medium().map(|store| (store, parent.route())))
        .collect();
    let Some(places) = places.filter(|places| !places.is_empty()) else { return };
    for (offset, length) in ends(p.route().length()) {
        for piece in pieces(p.route(), offset, length, Op::Read) {
            let Piece::Store { store, offset, length } = piece else { continue };
            let holds = |(at, route): &(usize, &Route)| {
                *at == store
                    && offset >= route.base()
                    && offset + length <= route.base() + route.length()
            };
            assert!(
                places.iter().any(holds),
                "{} leaves what it stands on at byte {offset} of disk {store}",
                p.name
            );
        }
    }
}

/// Every question that a topology answers, asked.
fn topology_holds(topology: &Topology, base: u64) {
    for fact in &topology.facts {
        assert!(fact.grain.phase() < fact.grain.size());
    }
    let (size, offset) = topology.stripesize_and_offset();
    assert!(offset < size || size == 0);
    let (below, above) = topology.nearest(base);
    assert!(below.is_none_or(|b| b <= base) && above.is_none_or(|a| a >= base));
    topology.missed(4096);
    assert!(topology.clashes.len() <= 64 * Why::ALL.len(), "{} clashes", topology.clashes.len());
}

/// Both ends of a provider of `length` bytes: an offset and a length each.
fn ends(length: u64) -> [(u64, u64); 3] {
    let window = length.min(WINDOW);
    [(0, window), (length - window, window), (length / 2, 0)]
}

/// The first [`PIECES`] pieces of a request.
fn pieces(route: &Route, offset: u64, length: u64, op: Op) -> Vec<Piece> {
    let mut found = Vec::new();
    let ended = route.extents(offset, length, op, &mut |_, piece| {
        found.push(piece);
        if found.len() < PIECES { Ok(()) } else { Err(Errno::Io) }
    });
    // What a set with parity, or one that lacks members, does not give or take, it says. A thin
    // volume takes some writes and no others.
    let said = match (op, ended) {
        (Op::Read, Err(Errno::Io)) => route.read_only().is_some(),
        (Op::Write, Err(Errno::ReadOnly)) => route.read_only_in_part().is_some(),
        _ => false,
    };
    if found.len() < PIECES && !said {
        assert_eq!(ended, Ok(()), "a request inside a provider failed");
    }
    found
}

/// What lies at the ends of a provider is on the stores, and a read is answered whole.
fn route_holds(route: &Route, stores: &[Box<dyn Store>]) {
    for (offset, length) in ends(route.length()) {
        for op in [Op::Read, Op::Write] {
            let found = pieces(route, offset, length, op);
            let mut answered = 0;
            for piece in &found {
                answered += match *piece {
                    Piece::Zero { length } | Piece::Rebuilt { length } => length,
                    Piece::Table { .. } => 0,
                    Piece::Store { store, offset, length } => {
                        let end = offset.checked_add(length);
                        assert!(
                            end.is_some_and(|end| end <= stores[store].length()),
                            "{piece:?} is past the end of its disk"
                        );
                        length
                    }
                };
            }
            assert!(
                op == Op::Write
                    || found.len() == PIECES
                    || route.read_only().is_some()
                    || answered == length,
                "{answered} bytes for {length}"
            );
        }
    }
    assert!(
        route.extents(route.length(), 1, Op::Read, &mut |_, _| Ok(())).is_err(),
        "a provider is longer than it says"
    );
    assert!(route.extents(u64::MAX, u64::MAX, Op::Read, &mut |_, _| Ok(())).is_err());
}

/// A sign says nothing that cannot be: a unit of no bytes, a text that a terminal would obey.
fn sign_holds(sign: &Sign) {
    let piece = sign.piece.map(|piece| piece.size);
    for size in [sign.block, piece, sign.sector, sign.chunk, sign.stripe] {
        assert_ne!(size, Some(0), "{} has a unit of 0 bytes", sign.kind);
    }
    let details = sign.details.iter().map(|(_, text)| text);
    for text in sign.version.iter().chain(&sign.label).chain(&sign.uuid).chain(details) {
        printable(text);
    }
}

fn audit_holds(graph: &Graph) {
    let answer = audit::audit(graph);
    assert_eq!(
        (answer.verdicts.len(), answer.roles.len()),
        (graph.providers.len(), graph.providers.len())
    );
    assert!(answer.findings.len() <= FINDINGS * graph.providers.len());
    for (id, finding) in &answer.findings {
        assert!(*id < graph.providers.len());
        finding_holds(finding);
    }
}

fn finding_holds(finding: &Finding) {
    printable(&finding.message);
    finding.fix.iter().filter_map(Fix::words).for_each(printable);
    assert!(finding.remainder <= finding.unit || finding.unit == 0, "{finding:?}");
    if let Some(cost) = finding.cost {
        assert!(
            (0.0..=1.0).contains(&cost.straddle)
                && cost.rmw_factor.is_finite()
                && cost.rmw_factor > 0.0,
            "{finding:?}"
        );
    }
}

/// What came from a disk goes to a terminal: it is one line that commands nothing.
fn printable(text: &str) {
    assert!(!text.chars().any(char::is_control), "{text:?}");
}

/// Parsers there are: every class that tastes, and every format.
pub fn parsers() -> usize {
    CLASSES.len() + FORMATS.len()
}

/// Shows a disk to one parser alone and checks its answer; says whether it recognised anything.
pub fn parser_holds(which: usize, subject: &Subject) -> bool {
    let limits = Limits::default();
    let meter = Arc::new(Meter::default());
    let stores: Vec<Box<dyn Store>> =
        vec![Box::new(Metered { disk: subject.disk.clone(), meter: meter.clone() })];
    let (route, budget, below) =
        (Route::store(0, subject.disk.length()), Budget::new(limits), subject.topology());
    let probe = Probe::new(&route, &stores, &budget, subject.sector, Some(0), None);
    let recognised = match CLASSES.get(which) {
        Some(class) => class_holds(*class, &probe, &route, &stores, &below),
        None => {
            let sign =
                FORMATS.get(which - CLASSES.len()).and_then(|format| format.recognise(&probe));
            sign.iter().for_each(sign_holds);
            sign.is_some()
        }
    };
    meter_holds(&meter, limits);
    recognised
}

fn class_holds(
    class: &dyn Class,
    probe: &Probe<'_>,
    route: &Route,
    stores: &[Box<dyn Store>],
    below: &Topology,
) -> bool {
    match class.taste(probe) {
        Taste::No => return false,
        Taste::Refused(findings) => {
            assert!(!findings.is_empty() && findings.len() <= FINDINGS);
            findings.iter().for_each(finding_holds);
        }
        Taste::Geom(geom, findings) => {
            assert!(findings.len() <= FINDINGS);
            findings.iter().for_each(finding_holds);
            geom_holds(&geom, std::slice::from_ref(route), stores, std::slice::from_ref(below));
        }
        Taste::Member(member) => {
            assert!(
                member.length <= probe.length()
                    && member.enough >= 1
                    && member.enough <= member.count,
                "{member:?}"
            );
            assert!(member.number.is_none_or(|number| number < member.count), "{member:?}");
            printable(&member.provider);
            let copies = member.enough.min(16);
            let members: Vec<Member> = (0..copies)
                .map(|n| Member { number: member.number.map(|_| n), ..member.clone() })
                .collect();
            if let Some(geom) = class.assemble(&members) {
                geom_holds(
                    &geom,
                    &vec![route.clone(); copies],
                    stores,
                    &vec![below.clone(); copies],
                );
            }
        }
    }
    true
}

/// Every provider that a geom offers, save those outside what it stands on, which the graph leaves
/// out.
fn geom_holds(
    geom: &Arc<dyn Geom>,
    routes: &[Route],
    stores: &[Box<dyn Store>],
    below: &[Topology],
) {
    let slots = geom.providers();
    assert!(slots.len() <= 4096, "{} providers from one table", slots.len());
    for (slot, offered) in slots.iter().enumerate() {
        printable(&offered.name);
        let inside = |start: u64| {
            start.checked_add(offered.length).is_some_and(|end| end <= routes[0].length())
        };
        if geom.shift(slot).is_some_and(|start| !inside(start)) {
            continue;
        }
        let (topology, route) =
            (geom.topology(slot, below), Route::new(geom, slot, offered.length, routes));
        assert_eq!(topology.length, offered.length, "{} has two lengths", offered.name);
        topology_holds(&topology, route.base());
        route_holds(&route, stores);
    }
}

//! The laws of every class, by brute force on tiny providers: no law knows any class.
//!
//! 1. `map` loses no byte and shares none.
//! 2. `topology` is sound: if both ends of an I/O lie on a promised grain, it touches whole units
//!    of it on every member.
//! 3. `topology` is tight: with any prime factor taken out of a promised size, the promise is no
//!    longer sound.
//! 4. A clash is real: no class of addresses that is finer than a row, and so begins and ends I/O
//!    on every member, is sound.
//! 5. A route is its maps, and slices fold.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::class::concat::Linear;
use trueline_geom::class::integrity::Areas;
use trueline_geom::class::mirror::Raid1;
use trueline_geom::class::nop::Nop;
use trueline_geom::class::stripe::Raid0;
use trueline_geom::class::zero::Zero;
use trueline_geom::format::integrity::Layout;
use trueline_geom::format::integrity::journal::Journal;
use trueline_geom::mapping::geom::{Extent, Geom, Op};
use trueline_geom::mapping::partition::Partition;
use trueline_geom::mapping::route::{Piece, Route};
use trueline_geom::mapping::slices::{PartitionType, Slice, Slices};
use trueline_geom::registry::CLASSES;

#[path = "laws/containers.rs"]
mod containers;
#[path = "laws/lvm.rs"]
mod lvm;
#[path = "laws/md.rs"]
mod md;
#[path = "laws/stacks.rs"]
mod stacks;

/// The boundary that members have; the laws are the same for all.
const WHY: Why = Why::Physical;
/// Prime factors of every grain that is tried.
const PRIMES: [u64; 6] = [2, 3, 5, 7, 11, 13];

fn grain(size: u64, phase: u64) -> Grain {
    Grain::new(size, phase).unwrap()
}

fn fact(grain: Grain) -> Fact {
    Fact { grain, why: WHY, source: Source::User, trust: Trust::Trusted }
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap()
}

/// One instance of a class over members of these lengths, each with its grain.
struct Case {
    class: &'static str,
    what: String,
    geom: Arc<dyn Geom>,
    lengths: Vec<u64>,
    grains: Vec<Grain>,
    /// The chunk of a set whose writes change parity as well.
    parity: Option<u64>,
}

impl Case {
    fn new(
        class: &'static str,
        geom: impl Geom + 'static,
        lengths: &[u64],
        grains: &[Grain],
    ) -> Case {
        let what = format!("{class} over {lengths:?} with {grains:?}");
        Case {
            class,
            what,
            geom: Arc::new(geom),
            lengths: lengths.to_vec(),
            grains: grains.to_vec(),
            parity: None,
        }
    }

    fn below(&self) -> Vec<Topology> {
        let members = self.lengths.iter().zip(&self.grains);
        members.map(|(&length, &grain)| Topology::new(1, length).with(fact(grain))).collect()
    }
}

/// Every combination of one grain for each of `members`, out of `sizes` with all their phases.
fn combinations(members: usize, sizes: &[u64]) -> Vec<Vec<Grain>> {
    let all: Vec<Grain> = sizes.iter().flat_map(|&s| (0..s).map(move |p| grain(s, p))).collect();
    let mut sets = vec![Vec::new()];
    for _ in 0..members {
        sets = sets
            .iter()
            .flat_map(|set| all.iter().map(|&g| [set.as_slice(), &[g]].concat()))
            .collect();
    }
    sets
}

/// Classes that make one provider of several.
const SETS: [&str; 6] = ["stripe", "mirror", "concat", "lvm", "md", "integrity"];

/// Classes that make several providers of one, in their order.
fn tables() -> impl Iterator<Item = &'static str> {
    let tables = CLASSES.iter().filter(|class| !class.shows_a_disk()).map(|class| class.name());
    tables.filter(|name| !SETS.contains(name))
}

/// Classes of files that are unpacked before a guest runs: the disk in one is judged without them.
const PACKED: [&str; 8] = ["android_sparse", "dmg", "ewf", "ewf2", "gzip", "tar", "xz", "zstd"];

/// Classes whose geom is the contents of a container.
fn shown() -> impl Iterator<Item = &'static str> {
    let shown = CLASSES.iter().filter(|class| class.shows_a_disk()).map(|class| class.name());
    shown.filter(|name| !PACKED.contains(name))
}

fn table(ranges: &[(u64, u64)]) -> Slices {
    let slice = |&(start, length): &(u64, u64)| Slice {
        suffix: format!("@{start}"),
        partition: Partition::new(1, start, length, PartitionType::Mbr(0)),
    };
    Slices::new(0..100, ranges.iter().map(slice).collect())
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // Every table class makes `Slices`: its own tests see to that.
    for class in tables() {
        for grains in combinations(1, &[1, 2, 3, 4, 6, 7, 8, 9, 12]) {
            cases.push(Case::new(class, table(&[(1, 40), (41, 24), (70, 30)]), &[100], &grains));
        }
    }
    for grains in combinations(1, &[1, 4, 6, 9]) {
        cases.push(Case::new("nop", Nop::new(50, Some(4), Vec::new()), &[50], &grains));
        // What the user says is what counts from there on.
        let said = grain(6, 5);
        cases.push(Case {
            grains: vec![said],
            ..Case::new("nop", Nop::new(50, None, vec![fact(said)]), &[50], &grains)
        });
    }
    for grains in combinations(1, &[1, 2, 3, 4, 6, 8, 12]) {
        for (first, area, run, length) in [(7, 8, 4, 160), (12, 16, 12, 160), (6, 8, 6, 8)] {
            let (block, tag, journal, state) = (1, 1, Journal::default(), None);
            let layout = Layout { first, area, run, length, block, tag, journal, state };
            cases.push(Case::new("integrity", Areas::new(layout), &[300], &grains));
        }
    }
    cases.push(Case::new("zero", Zero { length: 30 }, &[], &[]));
    let sizes: [&[u64]; 3] = [&[1, 2, 3, 4, 6, 9, 12], &[1, 2, 3, 4], &[1, 2, 3]];
    for (members, sizes) in (2..).zip(sizes) {
        for grains in combinations(members, sizes) {
            cases.push(Case::new(
                "mirror",
                Raid1::new("m".into(), 60, members).unwrap(),
                &vec![60; members],
                &grains,
            ));
        }
        for chunk in 1..=(10 - members as u64) {
            let share = 120 / members as u64 / chunk * chunk;
            for grains in
                combinations(members, if members == 2 { &[1, 2, 3, 4, 6, 8] } else { sizes })
            {
                let set = Raid0::new("s".into(), chunk, members, share).unwrap();
                cases.push(Case::new("stripe", set, &vec![share; members], &grains));
            }
        }
    }
    for (lengths, sizes) in [
        (&[60, 60][..], &[1, 2, 3, 4, 5, 6][..]),
        (&[61, 52], &[1, 2, 3, 4, 6]),
        (&[26, 37, 30], &[1, 2, 3, 4]),
        (&[25, 24, 26, 27], &[1, 2, 3]),
    ] {
        for grains in combinations(lengths.len(), sizes) {
            let set = Linear::new("c".into(), lengths.iter().copied()).unwrap();
            cases.push(Case::new("concat", set, lengths, &grains));
        }
    }
    containers::cases(&mut cases);
    lvm::cases(&mut cases);
    md::cases(&mut cases);
    cases
}

/// The run at byte `x`, for a write; for a read where it cannot be written.
fn mapped(geom: &dyn Geom, slot: usize, x: u64, length: u64) -> Extent {
    match geom.map(slot, x, length, Op::Write) {
        Extent::ReadOnly { .. } => geom.map(slot, x, length, Op::Read),
        extent => extent,
    }
}

/// Where byte `x` lives: (member, byte) for every copy.
fn places(geom: &dyn Geom, slot: usize, x: u64) -> Vec<(usize, u64)> {
    match mapped(geom, slot, x, 1) {
        Extent::At { consumer, offset, .. } => vec![(consumer, offset)],
        Extent::Copies { count, .. } => (0..count).map(|nth| geom.copy(slot, x, nth)).collect(),
        _ => Vec::new(),
    }
}

/// For every I/O `[x, y)` of one provider: whether what it touches on every member is whole units
/// of that member's grain.
struct Whole {
    length: usize,
    whole: Vec<bool>,
}

impl Whole {
    fn new(case: &Case, slot: usize, length: u64) -> Whole {
        let mut bytes: Vec<_> = (0..length).map(|x| places(&*case.geom, slot, x)).collect();
        if let Some(chunk) = case.parity {
            md::with_parity(&mut bytes, chunk, case.lengths.len());
        }
        let length = bytes.len();
        let mut whole = vec![true; (length + 1) * (length + 1)];
        for x in 0..length {
            // Bytes touched so far in each unit of each member; a unit cut by the member's edge
            // never fills.
            let mut units: Vec<Vec<u64>> =
                case.lengths.iter().map(|&l| vec![0; index(l) + 2]).collect();
            let (mut partial, mut written) = (0usize, HashSet::new());
            for (y, byte) in bytes.iter().enumerate().skip(x) {
                for &(member, offset) in byte {
                    // Parity is that of several bytes, and written once.
                    if case.parity.is_some() && !written.insert((member, offset)) {
                        continue;
                    }
                    let g = case.grains[member];
                    let count =
                        &mut units[member][index((offset + g.size() - g.phase()) / g.size())];
                    *count += 1;
                    partial += usize::from(*count == 1);
                    partial -= usize::from(*count == g.size());
                }
                whole[x * (length + 1) + y + 1] = partial == 0;
            }
        }
        Whole { length, whole }
    }

    /// Whether every I/O with both ends in `class` is whole.
    fn sound(&self, class: Grain) -> bool {
        let ends: Vec<usize> =
            (0..=self.length as u64).filter(|&x| class.contains(x)).map(index).collect();
        ends.iter()
            .enumerate()
            .all(|(i, &x)| ends[i + 1..].iter().all(|&y| self.whole[x * (self.length + 1) + y]))
    }
}

#[test]
fn every_class_has_cases() {
    let here: BTreeSet<&str> = cases().iter().map(|c| c.class).collect();
    let all: BTreeSet<&str> = CLASSES.iter().map(|c| c.name()).chain(["nop", "zero"]).collect();
    assert_eq!(here.union(&PACKED.into()).copied().collect::<BTreeSet<_>>(), all);
}

#[test]
fn map_loses_and_shares_no_byte() {
    for case in cases() {
        let mut taken = HashSet::new();
        for (slot, provider) in case.geom.providers().into_iter().enumerate() {
            let bytes: Vec<_> =
                (0..provider.length).map(|x| places(&*case.geom, slot, x)).collect();
            for (x, byte) in bytes.iter().enumerate() {
                assert_eq!(
                    byte.is_empty(),
                    case.lengths.is_empty(),
                    "{}: byte {x} is lost",
                    case.what
                );
                for &(member, offset) in byte {
                    assert!(
                        offset < case.lengths[member],
                        "{}: byte {x} is outside member {member}",
                        case.what
                    );
                    assert!(
                        taken.insert((member, offset)),
                        "{}: byte {x} shares member {member}'s {offset}",
                        case.what
                    );
                }
            }
            runs_are_their_bytes(&case, slot, provider.length, &bytes);
        }
    }
}

/// A run of any length is the run of its bytes, one after another.
fn runs_are_their_bytes(case: &Case, slot: usize, length: u64, bytes: &[Vec<(usize, u64)>]) {
    for x in 0..length {
        for asked in [1, 2, 5, length - x].into_iter().filter(|&l| l <= length - x) {
            let extent = mapped(&*case.geom, slot, x, asked);
            assert!(
                (1..=asked).contains(&extent.length()),
                "{}: {extent:?} for {asked} bytes",
                case.what
            );
            let first = &bytes[index(x)];
            for i in 0..extent.length() {
                let moved: Vec<_> = first.iter().map(|&(m, o)| (m, o + i)).collect();
                assert_eq!(bytes[index(x + i)], moved, "{}: {extent:?} at {x}", case.what);
            }
        }
    }
}

#[test]
fn promises_are_sound_and_tight_and_clashes_real() {
    let (mut promised, mut tight, mut clashed) = (BTreeSet::new(), 0, BTreeSet::new());
    for case in cases() {
        let below = case.below();
        for (slot, provider) in case.geom.providers().into_iter().enumerate() {
            let top = case.geom.topology(slot, &below);
            assert_eq!(top.length, provider.length, "{}", case.what);
            let whole = Whole::new(&case, slot, provider.length);
            let facts: Vec<Grain> =
                top.facts.iter().filter(|f| f.why == WHY).map(|f| f.grain).collect();
            let clashes = top.clashes.iter().filter(|c| c.why == WHY).count();
            assert_eq!(
                facts.len() + clashes,
                usize::from(!case.lengths.is_empty()),
                "{}: {top:?}",
                case.what
            );
            for promise in facts {
                assert!(whole.sound(promise), "{}: {promise:?} is not sound", case.what);
                promised.insert(case.class);
                // In a provider too short to hold two such units nothing can show that the promise
                // is tight.
                let room = promise.phase() + 2 * promise.size() <= provider.length;
                for q in PRIMES.into_iter().filter(|q| room && promise.size().is_multiple_of(*q)) {
                    let coarser = grain(promise.size() / q, promise.phase());
                    assert!(
                        !whole.sound(coarser),
                        "{}: {promise:?} is not tight, {coarser:?} would do",
                        case.what
                    );
                    tight += 1;
                }
            }
            if clashes > 0 {
                clashed.insert(case.class);
                let row = top
                    .facts
                    .iter()
                    .find(|f| matches!(f.why, Why::Row | Why::FullStripe))
                    .map_or(u64::MAX, |f| f.grain.size());
                let shortest = case.lengths.iter().copied().min().unwrap().min(provider.length);
                for size in 1..row.min(shortest / 2 + 1) {
                    for class in (0..size).map(|phase| grain(size, phase)) {
                        assert!(
                            !whole.sound(class),
                            "{}: clash, yet {class:?} is sound",
                            case.what
                        );
                    }
                }
            }
        }
    }
    assert_eq!(clashed, SETS.into_iter().chain(shown()).collect());
    assert_eq!(promised, SETS.into_iter().chain(tables()).chain(shown()).chain(["nop"]).collect());
    assert!(tight > 1000, "only {tight} promises could be shown to be tight");
}

/// A provider as it is written down: a disk, or a slot of a geom over others.
enum Node {
    Disk(usize, u64),
    Geom(Arc<dyn Geom>, usize, Vec<Node>),
}

impl Node {
    fn over(geom: impl Geom + 'static, slot: usize, below: Vec<Node>) -> Node {
        Node::Geom(Arc::new(geom), slot, below)
    }

    fn length(&self) -> u64 {
        match self {
            Node::Disk(_, length) => *length,
            Node::Geom(geom, slot, _) => geom.providers()[*slot].length,
        }
    }

    fn route(&self) -> Route {
        match self {
            Node::Disk(store, length) => Route::store(*store, *length),
            Node::Geom(geom, slot, below) => {
                let below: Vec<Route> = below.iter().map(Node::route).collect();
                Route::new(geom, *slot, self.length(), &below)
            }
        }
    }

    /// Where byte `x` lives, one map after another: (store, byte), or `None` for a zero, for every
    /// copy.
    fn byte(&self, x: u64, op: Op) -> Vec<Option<(usize, u64)>> {
        let Node::Geom(geom, slot, below) = self else {
            let Node::Disk(store, _) = self else { unreachable!() };
            return vec![Some((*store, x))];
        };
        match geom.map(*slot, x, 1, op) {
            Extent::At { consumer, offset, .. } => below[consumer].byte(offset, op),
            Extent::Copies { count, .. } => {
                let copies =
                    (0..if op == Op::Read { 1 } else { count }).map(|nth| geom.copy(*slot, x, nth));
                copies.flat_map(|(consumer, offset)| below[consumer].byte(offset, op)).collect()
            }
            Extent::Zero { .. } => vec![None],
            _ => unreachable!(),
        }
    }
}

/// What a route visits, byte by byte.
fn visited(route: &Route, offset: u64, length: u64, op: Op) -> Vec<Option<(usize, u64)>> {
    let mut all = Vec::new();
    route
        .extents(offset, length, op, &mut |_, piece| {
            match piece {
                Piece::Store { store, offset, length } => {
                    all.extend((offset..offset + length).map(|x| Some((store, x))))
                }
                Piece::Zero { length } | Piece::Rebuilt { length } => {
                    all.extend((0..length).map(|_| None))
                }
                Piece::Table { .. } => {}
            }
            Ok(())
        })
        .unwrap();
    all
}

fn slice(start: u64, length: u64, below: Node) -> Node {
    Node::over(table(&[(start, length)]), 0, vec![below])
}

#[test]
fn a_route_is_its_maps() {
    for (nth, stack) in stacks::stacks().iter().enumerate() {
        let (route, length) = (stack.route(), stack.length());
        assert_eq!(route.length(), length);
        for op in [Op::Read, Op::Write] {
            for offset in 0..=length {
                for count in 0..=length - offset {
                    let mut naive: Vec<_> =
                        (offset..offset + count).flat_map(|x| stack.byte(x, op)).collect();
                    let mut ours = visited(&route, offset, count, op);
                    if op == Op::Write {
                        // Copies come piece by piece, not byte by byte.
                        naive.sort_unstable();
                        ours.sort_unstable();
                    }
                    assert_eq!(ours, naive, "stack {nth}: {op:?} of {count} at {offset}");
                }
            }
            for (offset, count) in [(length, 1), (0, length + 1), (u64::MAX, 1), (1, u64::MAX)] {
                assert_eq!(route.extents(offset, count, op, &mut |_, _| Ok(())), Err(Errno::Range));
            }
        }
    }
}

#[test]
fn slices_fold() {
    let mut node = Node::Disk(7, 1000);
    for depth in 1..=8 {
        node = slice(10, 1000 - 20 * depth, node);
        let route = node.route();
        assert_eq!((route.base(), route.medium()), (10 * depth, Some(7)));
        let mut pieces = Vec::new();
        route
            .extents(5, 50, Op::Read, &mut |_, p| {
                pieces.push(p);
                Ok(())
            })
            .unwrap();
        assert_eq!(pieces, [Piece::Store { store: 7, offset: 10 * depth + 5, length: 50 }]);
    }
    // Above a set they fold too, down to the set.
    let set = Node::over(
        Raid0::new("s".into(), 4, 2, 40).unwrap(),
        0,
        vec![Node::Disk(0, 40), Node::Disk(1, 40)],
    );
    let route = slice(3, 20, slice(9, 60, set)).route();
    assert_eq!((route.base(), route.medium()), (12, None));
}

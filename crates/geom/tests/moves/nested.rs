//! Tables in partitions, whose contents are off the grain by different distances: labels of BSD in
//! slices, an MBR or a GPT in a partition, and tables in those. One plan moves the outer partitions
//! and the inner ones; it is interrupted, gone on with and taken back, anywhere.

use crate::medium::{Medium, Random};
use crate::trial::Trial;
use crate::whole::{SECTOR, SIZES, fill, graph, part};
use trueline_geom::base::error::Errno;
use trueline_geom::base::patch::{Patch, lay_over};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::registry;
use trueline_geom::relocate::Mark;
use trueline_geom::relocate::sequence::{Adapted, Goal, Movement, Sequence};
use trueline_geom::relocate::whole::{Answers, Obstacle, Whole, plan};
use trueline_geom::table::scheme::{New, TableSite};
use trueline_geom::table::{Request, Rules, Wanted};

/// Bytes of boot code and label, which the first partition of a label may lie over.
const BOOT: u64 = 8192;

/// Partition to be made: its type, its first sector and its sectors, and the table in it.
pub(crate) struct Made {
    kind: &'static str,
    start: u64,
    sectors: u64,
    inside: Option<(&'static str, Vec<Made>)>,
}

pub(crate) fn plain(kind: &'static str, start: u64, sectors: u64) -> Made {
    Made { kind, start, sectors, inside: None }
}

fn with(made: Made, scheme: &'static str, inside: Vec<Made>) -> Made {
    Made { inside: Some((scheme, inside)), ..made }
}

/// Writes a table onto the provider that begins at byte `base` and has `length` bytes, and what is
/// in its partitions.
fn make(
    disk: &mut [u8],
    (base, length): (u64, u64),
    (scheme, parts): &(&'static str, Vec<Made>),
    random: &mut Random,
) {
    let seen = graph(disk);
    let is_it = |id: &Id| {
        let p = &seen.providers[*id];
        (p.base(), p.topology.length) == (base, length)
    };
    let on = (0..seen.providers.len()).find(is_it).expect("a provider");
    let p = &seen.providers[on];
    let site = TableSite { topology: &p.topology, base, kind: p.kind };
    let scheme = registry::scheme_named(scheme).unwrap();
    let id = u8::try_from(base / SECTOR % 251).unwrap();
    let new = New { random: [id; 16], medium: Some(disk.len() as u64), ..New::default() };
    let before = scheme.create(&seen.probe(on), &site, &new).unwrap();
    let mut after = before.clone();
    for made in parts {
        let (start, size) = (Some(made.start * SECTOR), Some(made.sectors * SECTOR));
        let kind = scheme.kind_in(&after, made.kind).unwrap();
        let uuid = scheme.has_guids().then(|| {
            let byte = |n: u64| u8::try_from(n % 251).unwrap();
            let mut guid = [byte(made.start); 16];
            guid[..2].copy_from_slice(&[id, byte(base / SECTOR / 251)]);
            trueline_geom::base::ondisk::Guid(guid)
        });
        let place = Request { start, size, align: None };
        let wanted = Wanted { kind, place, index: None, label: None, uuid, attributes: 0 };
        after.add(&site, wanted, Rules::Aligned).unwrap();
    }
    lay_over(&scheme.render(&before, &after), 0, &mut disk[usize::try_from(base).unwrap()..]);
    for made in parts {
        let start = base / SECTOR + made.start;
        // A label and boot code lie in the first sectors of a partition that begins there.
        let skipped = if made.start == 0 { BOOT / SECTOR } else { 0 };
        match &made.inside {
            Some(inside) => {
                make(disk, (start * SECTOR, made.sectors * SECTOR), inside, random);
            }
            None => fill(disk, start + skipped, made.sectors - skipped, random),
        }
        if made.inside.is_none() {
            let end = usize::try_from((start + made.sectors) * SECTOR).unwrap();
            disk[end - 8..end].copy_from_slice(&(start * SECTOR).to_le_bytes());
        }
    }
}

/// Partition without a table, with its places and the ranges of those that it is in.
struct Leaf {
    now: u64,
    to: u64,
    length: u64,
    /// Bytes at its start that are not its own.
    skipped: u64,
    /// Number of bytes of each partition around it.
    around: Vec<u64>,
}

pub(crate) struct Case {
    name: &'static str,
    before: Vec<u8>,
    leaves: Vec<Leaf>,
    pub(crate) whole: Whole,
    sequence: Sequence,
}

fn leaves(graph: &Graph, id: Id) -> impl Iterator<Item = Id> {
    (id..graph.providers.len()).filter(move |&inner| {
        let p = &graph.providers[inner];
        p.slices().is_none() && !p.is_extended() && graph.is_within(id, inner)
    })
}

/// What a program adapts of partition `id`: each leaf's note of its place, and labels that count
/// from the disk.
fn rebased(graph: &Graph, id: Id, from: u64, to: u64) -> Vec<Patch> {
    let mut patches = Vec::new();
    for inner in leaves(graph, id) {
        let p = &graph.providers[inner];
        let place = (p.base() - from + to).to_le_bytes().to_vec();
        patches.push(Patch::new(p.base() - from + p.topology.length - 8, place, "where"));
    }
    for inner in (id..graph.providers.len()).filter(|&inner| graph.is_within(id, inner)) {
        let table = graph.providers[inner].tasted().table(&graph.probe(inner));
        let at = graph.providers[inner].base() - from;
        if let Some(table) = table.filter(|table| table.origin != 0) {
            let along = table.scheme.follow(&table, at + to).expect("a label that follows");
            patches.extend(along.into_iter().map(|p| Patch { offset: p.offset + at, ..p }));
        }
    }
    patches
}

fn contents(disk: &[u8], moved: Movement) -> Result<Adapted, Errno> {
    let graph = graph(disk);
    let id = graph.partition_at(0, moved.from, moved.length).ok_or(Errno::Io)?;
    Ok(Adapted { rebased: rebased(&graph, id, moved.from, moved.to), ..Adapted::default() })
}

/// The plan for all that is on `disk`.
pub(crate) fn planned(disk: &[u8]) -> Result<Whole, Obstacle> {
    let graph = graph(disk);
    let table = graph.providers[0].tasted().table(&graph.probe(0)).expect("a table");
    let topology = graph.providers[0].topology.clone();
    let site = TableSite { topology: &topology, base: 0, kind: None };
    let answers = Answers {
        fixed: &|_| None,
        closed: &|_| None,
        adapted: &|id, from, to| Ok(rebased(&graph, id, from, to)),
    };
    plan(&graph, 0, &table, site, answers)
}

/// A slice of OpenBSD with partitions in it.
pub(crate) fn open(start: u64, sectors: u64, inside: Vec<Made>) -> Made {
    with(plain("openbsd", start, sectors), "bsd", inside)
}

/// A disk with a table of that scheme, and all that is in its partitions.
pub(crate) fn made(
    scheme: &'static str,
    sectors: u64,
    parts: Vec<Made>,
    random: &mut Random,
) -> Vec<u8> {
    let mut disk = vec![0; usize::try_from(sectors * SECTOR).unwrap()];
    make(&mut disk, (0, sectors * SECTOR), &(scheme, parts), random);
    disk
}

fn case(name: &'static str, scheme: &'static str, sectors: u64, parts: Vec<Made>) -> Case {
    case_on(name, made(scheme, sectors, parts, &mut Random(name.len() as u64)))
}

/// The plan for the disk `before`.
pub(crate) fn case_on(name: &'static str, before: Vec<u8>) -> Case {
    let whole = planned(&before).unwrap_or_else(|why| panic!("{name}: {why:?}"));
    let sequence = Sequence {
        id: *b"sequence of many",
        medium: before.len() as u64,
        sector: SECTOR,
        sizes: SIZES,
        stages: whole.stages.clone(),
        listed: Vec::new(),
    };
    sequence.check().unwrap_or_else(|why| panic!("{name}: {why}: {whole:#?}"));
    let graph = graph(&before);
    let leaf = |id: Id| {
        let p = &graph.providers[id];
        let around: Vec<Id> = (1..id).filter(|&outer| graph.is_within(outer, id)).collect();
        let own = whole.partitions.iter().find(|p| p.id == id);
        // One that is not planned by itself goes with the one around it.
        let to = own.map(|own| own.to).unwrap_or_else(|| {
            let with = |p: &&trueline_geom::relocate::whole::Planned| around.contains(&p.id);
            let with = whole.partitions.iter().rfind(with).expect("one around it");
            p.base() - with.now.start + with.to
        });
        Leaf {
            now: p.base(),
            to,
            length: p.topology.length,
            skipped: if around.iter().any(|&a| graph.providers[a].base() == p.base()) {
                BOOT
            } else {
                0
            },
            around: around.iter().map(|&a| graph.providers[a].topology.length).collect(),
        }
    };
    let leaves = leaves(&graph, 0).map(leaf).collect();
    Case { name, before, leaves, whole, sequence }
}

impl Case {
    /// The bytes of a leaf that begins at byte `at`.
    fn bytes(&self, leaf: &Leaf, at: u64) -> Vec<u8> {
        let mut bytes = part(&self.before, leaf.now, leaf.length);
        let last = bytes.len() - 8;
        bytes[last..].copy_from_slice(&at.to_le_bytes());
        bytes.split_off(usize::try_from(leaf.skipped).unwrap())
    }
}

impl Trial for Case {
    fn name(&self) -> &str {
        self.name
    }

    fn before(&self) -> &[u8] {
        &self.before
    }

    fn sequence(&self) -> &Sequence {
        &self.sequence
    }

    fn adapted(&self, disk: &Medium, moved: Movement) -> Result<Adapted, Errno> {
        contents(&disk.seen(), moved)
    }

    /// Every partition is whole, or it or one around it begins with a mark.
    fn shown(&self, disk: &[u8]) {
        let graph = graph(disk);
        let marked = |at: u64| Mark::read(&part(disk, at, 512)).is_some();
        for leaf in &self.leaves {
            let is_there = |p: &&trueline_geom::graph::Provider| {
                let at = p.base();
                let is_whole = || {
                    let own = part(disk, at + leaf.skipped, leaf.length - leaf.skipped);
                    own == self.bytes(leaf, at)
                };
                p.kind.is_some()
                    && (p.topology.length == leaf.length && (marked(at) || is_whole())
                        || leaf.around.contains(&p.topology.length) && marked(at))
            };
            let found = graph.providers.iter().any(|p| is_there(&p));
            assert!(found, "{}: the leaf of byte {} is nowhere", self.name, leaf.now);
        }
    }

    fn check(&self, disk: &[u8], goal: Goal) {
        for leaf in &self.leaves {
            let at = if goal == Goal::Forward { leaf.to } else { leaf.now };
            let own = part(disk, at + leaf.skipped, leaf.length - leaf.skipped);
            assert!(own == self.bytes(leaf, at), "{}: {} at {at}", self.name, leaf.now);
        }
        let after = planned(disk).unwrap();
        if goal == Goal::Forward {
            assert!(after.stages.is_empty(), "{}: {after:#?}", self.name);
            assert!(after.partitions.len() <= self.whole.partitions.len(), "{}", self.name);
        } else {
            assert!(after == self.whole, "{}: {after:#?} {:#?}", self.name, self.whole);
        }
        assert_eq!(leaves(&graph(disk), 0).count(), self.leaves.len(), "{}", self.name);
    }
}

/// Layouts in which contents of a partition are off the grain by different distances.
fn cases() -> Vec<Case> {
    let ufs = |start, sectors| plain("freebsd-ufs", start, sectors);
    let bsd = |start, sectors, inside| with(plain("freebsd", start, sectors), "bsd", inside);
    let data = |start, sectors| plain("linux-data", start, sectors);
    let gpt = |start, sectors, inside| with(data(start, sectors), "gpt", inside);
    let mbr = |start, sectors, inside| with(data(start, sectors), "mbr", inside);
    vec![
        case(
            "FreeBSD in a slice",
            "mbr",
            300,
            vec![bsd(63, 120, vec![ufs(16, 30), ufs(47, 21), ufs(70, 24)]), data(183, 40)],
        ),
        case(
            "FreeBSD, a over its label",
            "mbr",
            300,
            vec![bsd(63, 140, vec![ufs(0, 50), ufs(50, 21), ufs(74, 24)]), data(210, 33)],
        ),
        case(
            "FreeBSD on the grain, contents off it",
            "mbr",
            300,
            vec![bsd(64, 140, vec![ufs(16, 50), ufs(67, 21), ufs(90, 24)]), data(208, 40)],
        ),
        case(
            "OpenBSD in a slice",
            "mbr",
            300,
            vec![
                data(1, 50),
                open(
                    63,
                    130,
                    vec![plain("4.2BSD", 17, 30), plain("swap", 48, 21), plain("4.2BSD", 70, 33)],
                ),
                data(193, 40),
            ],
        ),
        case(
            "OpenBSD pushed",
            "mbr",
            300,
            vec![
                data(9, 54),
                open(
                    63,
                    130,
                    vec![plain("4.2BSD", 17, 30), plain("swap", 48, 21), plain("4.2BSD", 70, 33)],
                ),
                data(193, 40),
            ],
        ),
        case(
            "NetBSD in a slice",
            "mbr",
            300,
            vec![
                with(
                    plain("netbsd", 63, 130),
                    "bsd",
                    vec![plain("4.2BSD", 17, 30), plain("swap", 48, 21)],
                ),
                data(193, 40),
            ],
        ),
        case(
            "an MBR in a GPT",
            "gpt",
            500,
            vec![mbr(41, 160, vec![data(1, 30), data(32, 30), data(63, 40)]), data(201, 40)],
        ),
        case(
            "a GPT in a GPT",
            "gpt",
            600,
            vec![
                data(43, 20),
                gpt(63, 200, vec![data(35, 30), data(66, 30), data(97, 40)]),
                data(263, 40),
            ],
        ),
        case(
            "a GPT in a slice",
            "mbr",
            600,
            vec![
                data(1, 62),
                gpt(63, 200, vec![data(34, 30), data(66, 30), data(97, 40)]),
                data(263, 40),
            ],
        ),
        case(
            "a label in an MBR in a GPT",
            "gpt",
            700,
            vec![
                data(43, 22),
                mbr(
                    65,
                    260,
                    vec![
                        data(1, 30),
                        bsd(32, 120, vec![ufs(16, 30), ufs(47, 21), ufs(70, 24)]),
                        data(155, 40),
                    ],
                ),
                data(325, 40),
            ],
        ),
        case(
            "an OpenBSD label in an MBR in a GPT",
            "gpt",
            700,
            vec![
                mbr(
                    43,
                    260,
                    vec![
                        data(1, 31),
                        open(33, 120, vec![plain("4.2BSD", 17, 30), plain("swap", 48, 21)]),
                    ],
                ),
                data(325, 40),
            ],
        ),
        case(
            "two of them",
            "mbr",
            600,
            vec![
                bsd(63, 120, vec![ufs(16, 30), ufs(47, 21), ufs(70, 24)]),
                open(183, 110, vec![plain("4.2BSD", 16, 30), plain("swap", 47, 21)]),
                gpt(293, 200, vec![data(34, 30), data(66, 30), data(97, 40)]),
            ],
        ),
    ]
}

#[test]
fn what_is_in_partitions_comes_out_on_the_grain() {
    let mut random = Random(1);
    for case in cases() {
        let within = case.whole.partitions.iter().filter(|p| p.carries).count();
        assert!(within > 0 && case.whole.stages.len() > 1, "{}: {:#?}", case.name, case.whole);
        assert!(case.whole.partitions.iter().all(|p| p.stays.is_none()), "{}", case.name);
        case.go(&[], &mut random);
        case.go(&[(Goal::Forward, u64::MAX, false), (Goal::Back, u64::MAX, false)], &mut random);
    }
}

#[test]
fn nothing_is_lost_wherever_tables_in_partitions_are_interrupted() {
    let mut random = Random(2);
    for case in cases() {
        for _ in 0..8 {
            let goals: Vec<_> = (0..1 + random.next(3))
                .map(|_| {
                    let goal = if random.next(3) == 0 { Goal::Back } else { Goal::Forward };
                    (goal, random.next(300), random.next(3) == 0)
                })
                .collect();
            case.go(&goals, &mut random);
            let back = [goals.as_slice(), &[(Goal::Back, u64::MAX, false)]].concat();
            case.go(&back, &mut random);
        }
        for (n, budget) in case.table_writes().into_iter().enumerate() {
            let back = [(Goal::Forward, budget, false), (Goal::Back, budget, false)];
            case.go(&back[..1 + n % 2], &mut random);
        }
    }
}

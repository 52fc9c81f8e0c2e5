//! Every scheme in every other, on every kind of medium: where partitions come out.
//!
//! `product.want` is the table of results, a line a case. `TRUELINE_BLESS=1` writes it anew; the
//! laws below hold whatever stands in it.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::store::Sparse;
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::registry;
use trueline_geom::table::scheme::{New, Scheme, TableSite};
use trueline_geom::table::{Entry, Refusal, Request, Rules, Wanted};

/// The schemes of each case from the outside in; the types that hold the next one.
const CHAINS: &[&[&str]] = &[
    &["gpt"],
    &["mbr"],
    &["bsd"],
    &["gpt", "gpt"],
    &["gpt", "mbr"],
    &["gpt", "bsd"],
    &["mbr", "ebr"],
    &["mbr", "bsd"],
    &["gpt", "gpt", "bsd"],
    &["gpt", "mbr", "bsd"],
    &["gpt", "mbr", "ebr"],
    &["mbr", "ebr", "bsd"],
];

/// Bytes of the medium.
const LENGTH: u64 = 4 << 30;
/// The read-modify-write units and their phases.
const UNITS: &[(u64, u64)] = &[(4096, 0), (4096, 3584), (16384, 0), (65536, 4096), (4 << 20, 0)];

/// How partitions are asked for, from the outside in; the last goes for all that are deeper.
struct Mode {
    name: &'static str,
    outer: fn(u64) -> Request,
    inner: fn(u64) -> Request,
}

const NOTHING: fn(u64) -> Request = |_| Request { start: None, size: None, align: None };

const MODES: &[Mode] = &[
    Mode { name: "default", outer: NOTHING, inner: NOTHING },
    Mode {
        name: "sized",
        outer: NOTHING,
        inner: |_| Request { size: Some(100 << 20), ..NOTHING(0) },
    },
    // The mistake of 2013, and what is nested in it.
    Mode {
        name: "-a 574",
        outer: |sector| Request { align: Some(574 * sector), ..NOTHING(0) },
        inner: NOTHING,
    },
    Mode {
        name: "-b 63",
        outer: |sector| Request { start: Some(63 * sector), ..NOTHING(0) },
        inner: NOTHING,
    },
    Mode {
        name: "-a 4k",
        outer: |_| Request { align: Some(4096), ..NOTHING(0) },
        inner: |_| Request { align: Some(4096), ..NOTHING(0) },
    },
];

fn medium(sector: u64, unit: u64, phase: u64) -> Topology {
    let fact = |size, phase, why| Fact {
        grain: Grain::new(size, phase).expect("a size"),
        why,
        source: Source::User,
        trust: Trust::Trusted,
    };
    Topology::new(sector, LENGTH).with(fact(sector, 0, Why::Logical)).with(fact(
        unit,
        phase,
        Why::Physical,
    ))
}

fn taste(disk: &Sparse, topology: &Topology) -> Graph {
    Graph::taste(vec![Disk::new("", Box::new(disk.clone()), topology.clone())], Default::default())
}

/// The type of a partition of `scheme` that holds a table of `inner`, or nothing.
fn kind(scheme: &dyn Scheme, inner: Option<&str>) -> String {
    let name = match (scheme.name(), inner) {
        ("MBR", Some("ebr")) => "ebr",
        (_, Some("bsd")) => "freebsd",
        ("BSD", _) => "freebsd-ufs",
        _ => "linux-data",
    };
    name.into()
}

/// Makes a table of `name` on the provider called `on`, with one partition in it; gives that
/// partition's provider.
fn nest(
    disk: &mut Sparse,
    topology: &Topology,
    on: &str,
    (name, inner): (&str, Option<&str>),
    place: Request,
) -> Result<String, Refusal> {
    let graph = taste(disk, topology);
    let id = graph.find(on).unwrap_or_else(|| panic!("no provider '{on}'"));
    let p = &graph.providers[id];
    let ground = TableSite { topology: &p.topology, base: p.base(), kind: p.kind };
    let scheme = registry::scheme_named(name).expect("a scheme");
    let empty =
        scheme.create(&graph.probe(id), &ground, &New { random: [7; 16], ..New::default() })?;
    let mut table = empty.clone();
    let kind = scheme.kind(&kind(scheme, inner)).expect("a type");
    let wanted =
        Wanted { kind, place, index: None, label: None, uuid: Some(Guid([9; 16])), attributes: 0 };
    let index = table.add(&ground, wanted, Rules::Aligned)?;
    let base = p.base();
    for patch in scheme.render(&empty, &empty).into_iter().chain(scheme.render(&empty, &table)) {
        disk.put(base + patch.offset, &patch.bytes);
    }
    let entry: Entry = table.entry(index).expect("what was added").clone();
    let graph = taste(disk, topology);
    let found = graph.providers.iter().find(|p| {
        p.base() == base + entry.partition.start
            && p.topology.length == entry.partition.length
            && p.kind == Some(kind)
    });
    Ok(found
        .unwrap_or_else(|| panic!("{name} on '{on}': what was written is not seen"))
        .name
        .clone())
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the table of results is read, and written when blessed"
)]
fn every_scheme_in_every_other_on_every_medium() {
    let mut text = String::new();
    for (sector, &(unit, phase)) in
        [512, 4096].into_iter().flat_map(|s| UNITS.iter().map(move |u| (s, u)))
    {
        if phase % sector != 0 {
            continue;
        }
        let (topology, grain) = (medium(sector, unit, phase), Grain::new(unit, phase).unwrap());
        for (chain, mode) in CHAINS.iter().flat_map(|c| MODES.iter().map(move |m| (c, m))) {
            let _ = write!(text, "{sector:>4} {unit:>7}+{phase:<4} {:<7} ", mode.name);
            let (mut disk, mut on) = (Sparse::new(LENGTH), String::new());
            for (depth, name) in chain.iter().enumerate() {
                let place = if depth == 0 { mode.outer } else { mode.inner };
                let inner = chain.get(depth + 1).copied();
                match nest(&mut disk, &topology, &on, (name, inner), place(sector)) {
                    Ok(provider) => on = provider,
                    Err(refusal) => {
                        let _ = write!(text, " {name} refused: {refusal}");
                        break;
                    }
                }
                let graph = taste(&disk, &topology);
                let p = &graph.providers[graph.find(&on).unwrap()];
                let off = grain.remainder(p.base());
                let _ = write!(text, " {name} {on} {}+{}", p.base(), p.topology.length);
                if off > 0 {
                    let _ = write!(text, " ({off} off)");
                }
                // What was not placed by hand is on the grain, however deep and whatever is above
                // it.
                let chosen = mode.name == "default"
                    || mode.name == "sized"
                    || depth > 0 && mode.name != "-a 4k";
                assert!(off == 0 || !chosen, "{text}");
            }
            text.push('\n');
        }
    }
    let want = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/product.want");
    if std::env::var_os("TRUELINE_BLESS").is_some() {
        fs::write(&want, &text).unwrap();
    }
    assert_eq!(
        fs::read_to_string(&want).unwrap_or_default(),
        text,
        "TRUELINE_BLESS=1 writes what comes out"
    );
}

//! What `label` writes: FreeBSD's own bytes, and to the readers the set that was wanted.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use trueline_geom::base::finding::INCOMPLETE;
use trueline_geom::base::store::Sparse;
use trueline_geom::base::topology::{Topology, lcm, round_down};
use trueline_geom::class::metadata::{self, Component, Field, Label, Labelled};
use trueline_geom::class::{concat, mirror, stripe};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;
use trueline_geom::table::Refusal;

const OPTIONS: mirror::Options<'_> = mirror::Options {
    balance: "load",
    slice: 4096,
    no_autosync: false,
    no_failsync: false,
    ids: &[0x5566_7788, 2, 3],
};

fn component(length: u64, sector: u64) -> Component {
    Component { length, sector, hardcoded: None }
}

fn label<'a>(name: &'a str, components: &'a [Component]) -> Label<'a> {
    Label { name, id: 0x1122_3344, components }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The sector but for the zeros at its end.
fn written(labelled: &Labelled) -> String {
    let end = labelled.sector.iter().rposition(|&b| b != 0).unwrap() + 1;
    hex(&labelled.sector[..end])
}

#[test]
fn the_bytes_are_freebsds() {
    let disks = [component(320_072_933_376, 512), component(320_072_933_376, 512)];
    let [first, second] = &stripe::label(&label("data", &disks), 16384).unwrap()[..] else {
        panic!("two members")
    };
    assert_eq!(first.sector.len(), 512);
    let head = "47454f4d3a3a5354524950450000000003000000646174610000000000000000000000004433221100000200004000";
    assert_eq!(written(first), format!("{head}00{}0060d5854a", "00".repeat(16)));
    assert_eq!(second.sector[40..42], [1, 0]);

    let concat = written(&concat::label(&label("data", &disks)).unwrap()[0]);
    let head =
        "47454f4d3a3a434f4e4341540000000004000000646174610000000000000000000000004433221100000200";
    assert_eq!(concat, format!("{head}{}0060d5854a", "00".repeat(16)));

    let disks = [component(1 << 30, 512), component(1 << 30, 512)];
    let mirror = &mirror::label(&label("gm0", &disks), &OPTIONS).unwrap()[0].sector;
    assert_eq!(hex(&mirror[119..135]), "9f7af8bedee10f8b7254390444c1b159");
    assert!(mirror[135..].iter().all(|&b| b == 0));
}

#[test]
fn dumps_are_freebsds() {
    let lines = |fields: Vec<Field>| {
        fields.into_iter().map(|f| format!("{}: {}", f.name, f.value.print())).collect::<Vec<_>>()
    };
    let disks = [
        Component { hardcoded: Some("ada1".into()), ..component(1 << 30, 4096) },
        component(1 << 30, 4096),
    ];
    let sector = |labels: Vec<Labelled>| labels.into_iter().next().unwrap().sector;
    let shared =
        ["Device name: data", "Device ID: 287454020", "Disk number: 0", "Total number of disks: 2"];
    let first = sector(stripe::label(&label("data", &disks), 16384).unwrap());
    let want = [
        &["Magic string: GEOM::STRIPE", "Metadata version: 3"],
        &shared[..],
        &["Stripe size: 16384", "Hardcoded provider: ada1"],
    ];
    assert_eq!(lines(stripe::dump(&first).unwrap()), want.concat());
    let first = sector(concat::label(&label("data", &disks)).unwrap());
    let want = [
        &["Magic string: GEOM::CONCAT", "Metadata version: 4"],
        &shared[..],
        &["Hardcoded provider: ada1"],
    ];
    assert_eq!(lines(concat::dump(&first).unwrap()), want.concat());
    let options = mirror::Options {
        balance: "prefer",
        slice: 8192,
        no_autosync: true,
        no_failsync: true,
        ..OPTIONS
    };
    let mut first = sector(mirror::label(&label("data", &disks), &options).unwrap());
    let dumped = lines(mirror::dump(&first).unwrap());
    let want = [
        "magic: GEOM::MIRROR",
        "version: 4",
        "name: data",
        "mid: 287454020",
        "did: 1432778632",
        "all: 2",
        "genid: 0",
        "syncid: 1",
        "priority: 0",
        "slice: 8192",
        "balance: prefer",
        "mediasize: 1073737728",
        "sectorsize: 4096",
        "syncoffset: 0",
        "mflags: NOFAILSYNC NOAUTOSYNC",
        "dflags: NONE",
        "hcprovider: ada1",
        "provsize: 1073741824",
    ];
    assert_eq!(dumped[..want.len()], want);
    // Whatever stands there, what it is not is said.
    let said = |dumped: Result<Vec<Field>, Refusal>| dumped.unwrap_err().found;
    assert_eq!(said(stripe::dump(&first)), "its last sector holds GEOM::MIRROR, not GEOM::STRIPE");
    assert_eq!(
        said(concat::dump(&[0; 512])),
        "its last sector holds no metadata, not GEOM::CONCAT"
    );
    first[40] ^= 1;
    assert!(said(mirror::dump(&first)).starts_with("the MD5 of its metadata is "));
    for dump in [stripe::dump, mirror::dump, concat::dump] {
        assert!(dump(&first[..40]).is_err() && dump(&[]).is_err());
    }
}

/// Disks with these last sectors, tasted together.
fn taste(components: &[Component], labels: &[Labelled]) -> Graph {
    let disk = |(i, (c, label)): (usize, (&Component, &Labelled))| {
        let mut store = Sparse::new(c.length);
        store.put(c.length - c.sector, &label.sector);
        Disk::new(format!("disk{i}"), Box::new(store), Topology::new(c.sector, c.length))
    };
    Graph::taste(components.iter().zip(labels).enumerate().map(disk).collect(), Limits::default())
}

/// Chunks, sectors and lengths against each other: what is written is read as what was wanted.
#[test]
fn what_is_written_is_read() {
    let lengths = [1u64 << 20, (1 << 20) + 4096, 3 << 20, 1 << 42];
    let mut tried = 0;
    for chunk in (12..=20).map(|power| 1u64 << power) {
        for (a, b) in [(512, 512), (4096, 512), (512, 4096), (4096, 4096)] {
            for (first, second) in lengths.iter().flat_map(|&x| lengths.map(|y| (x, y))) {
                let components = [component(first, a), component(second, b)];
                let shares = [first - a, second - b];
                let label = label("data", &components);
                let smallest = shares[0].min(shares[1]);
                let stripe = stripe::label(&label, chunk);
                let want =
                    (round_down(smallest, chunk) > 0).then(|| 2 * round_down(smallest, chunk));
                assert_eq!(stripe.is_ok(), want.is_some(), "{chunk} {components:?}");
                let mirrored = round_down(smallest, lcm(a, b).unwrap());
                let sets = [
                    (stripe.ok(), want, "stripe/data"),
                    (mirror::label(&label, &OPTIONS).ok(), Some(mirrored), "mirror/data"),
                    (concat::label(&label).ok(), Some(shares[0] + shares[1]), "concat/data"),
                ];
                for (labels, want, name) in sets {
                    let Some(labels) = labels else { continue };
                    let graph = taste(&components, &labels);
                    let members: Vec<_> = graph.providers[..2]
                        .iter()
                        .map(|p| p.member.as_ref().unwrap().1.clone())
                        .collect();
                    assert_eq!(
                        members,
                        labels.iter().map(|l| l.member.clone()).collect::<Vec<_>>()
                    );
                    let set = &graph.providers[graph.find(name).unwrap()];
                    assert_eq!(Some(set.topology.length), want, "{name} {chunk} {components:?}");
                    tried += 1;
                }
            }
        }
    }
    assert!(tried > 1500, "{tried}");
}

#[test]
fn what_cannot_be_is_refused() {
    let two = [component(1 << 20, 512), component(1 << 20, 4096)];
    let said = |labels: Result<Vec<Labelled>, Refusal>| labels.unwrap_err().to_string();
    let stripe = |name, components, chunk| said(stripe::label(&label(name, components), chunk));
    assert_eq!(stripe("data", &two[..1], 65536), "1 members: name 2 to 65535");
    for (chunk, want) in [
        (0, "a chunk of 0 bytes"),
        (24576, "power of two"),
        (1 << 32, "power of two"),
        (2048, "multiple of 4096"),
    ] {
        assert!(stripe("data", &two, chunk).contains(want), "{chunk}");
    }
    assert!(
        stripe("data", &two, 1 << 20)
            .contains("the smallest member has 1044480 bytes before its metadata")
    );
    for name in ["", "a/b", "a b", "a\n", "sixteen_bytes_is"] {
        stripe(name, &two, 65536);
    }
    assert!(stripe::label(&label("fifteen_bytes_is", &two[..]), 65536).is_err());
    assert!(stripe::label(&label("fifteen_bytes_i", &two[..]), 65536).is_ok());
    let named = [
        Component { hardcoded: Some("disk/by-id/of-this".into()), ..two[0].clone() },
        two[1].clone(),
    ];
    assert!(stripe("data", &named, 65536).contains("has 18 bytes"));
    for odd in
        [component(512, 512), component(1 << 20, 256), component(100, 4096), component(0, 512)]
    {
        let components = [odd.clone(), two[0].clone()];
        let label = label("data", &components);
        assert!(stripe::label(&label, 65536).is_err() && concat::label(&label).is_err(), "{odd:?}");
        assert!(mirror::label(&label, &OPTIONS).is_err(), "{odd:?}");
    }
    let label = label("gm0", &two);
    assert!(
        said(mirror::label(&label, &mirror::Options { balance: "best", ..OPTIONS }))
            .contains("round-robin")
    );
    assert_eq!(metadata::magic(&[0; 512]), None);
}

/// FreeBSD leaves a member whose label is torn alone.
#[test]
fn a_mirrors_torn_label_is_no_member() {
    let disks = [component(1 << 20, 512), component(1 << 20, 512)];
    let mut labels = mirror::label(&label("gm0", &disks), &OPTIONS).unwrap();
    labels[1].sector[45] ^= 1;
    let graph = taste(&disks, &labels);
    assert_eq!(graph.providers.iter().filter(|p| p.member.is_some()).count(), 1);
    let told: Vec<_> =
        graph.providers[1].findings.iter().filter(|f| *f.rule == INCOMPLETE).collect();
    assert!(
        told.len() == 1
            && told[0].message.contains("the label of a member of mirror/gm0 is damaged"),
        "{told:?}"
    );
    assert_eq!(told[0].offset, (1 << 20) - 512);
}

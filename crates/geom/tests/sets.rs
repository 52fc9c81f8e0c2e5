//! Sets of GEOM's own labels: which members make one, and what becomes of those that do not.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use trueline_geom::base::finding::{BLIND, INCOMPLETE};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

const MIB: u64 = 1 << 20;

/// A label of `gstripe` or `gconcat`; their fields differ behind the number of members.
#[derive(Clone, Copy)]
struct Label {
    class: &'static str,
    version: u32,
    number: u16,
    count: u16,
    /// 0: a concatenation has none.
    chunk: u32,
    /// What it says its member's length is, in bytes.
    size: u64,
}

impl Label {
    fn bytes(self) -> Vec<u8> {
        let mut label = format!("GEOM::{}", self.class.to_uppercase()).into_bytes();
        label.resize(16, 0);
        label.extend(self.version.to_le_bytes());
        label.extend(b"data\0\0\0\0\0\0\0\0\0\0\0\0");
        label.extend(7u32.to_le_bytes());
        label.extend([self.number, self.count].map(u16::to_le_bytes).concat());
        if self.class == "stripe" {
            label.extend(self.chunk.to_le_bytes());
        }
        label.extend([0; 16]);
        label.extend(self.size.to_le_bytes());
        label
    }
}

/// The disks of these lengths with these labels in their last sectors, tasted together.
fn taste(members: &[(u64, Label)]) -> Graph {
    let disk = |(i, &(length, label)): (usize, &(u64, Label))| {
        let mut store = Sparse::new(length);
        store.put(length - 512, &label.bytes());
        let topology = Topology::new(512, store.length());
        Disk::new(format!("disk{i}"), Box::new(store), topology)
    };
    Graph::taste(members.iter().enumerate().map(disk).collect(), Limits::default())
}

/// The length of the set that was made, how many members were seen, and whether a finding told
/// that it is incomplete.
fn outcome(graph: &Graph) -> (Option<u64>, usize, bool) {
    let set = graph.providers.iter().find(|p| p.is_set).map(|p| p.topology.length);
    let members = graph.providers.iter().filter(|p| p.member.is_some()).count();
    (set, members, graph.providers.iter().any(|p| p.findings.iter().any(|f| *f.rule == INCOMPLETE)))
}

fn stripe(number: u16) -> Label {
    Label { class: "stripe", version: 3, number, count: 2, chunk: 16384, size: MIB }
}

fn concat(number: u16) -> Label {
    Label { class: "concat", version: 4, number, count: 2, chunk: 0, size: MIB }
}

#[test]
fn a_set_is_as_long_as_its_members_allow() {
    // A stripe takes whole chunks of the smallest, and from no member its last sector.
    assert_eq!(
        outcome(&taste(&[(MIB, stripe(0)), (MIB, stripe(1))])),
        (Some(2 * (MIB - 16384)), 2, false)
    );
    let larger = Label { size: 2 * MIB, ..stripe(1) };
    assert_eq!(
        outcome(&taste(&[(MIB, stripe(0)), (2 * MIB, larger)])),
        (Some(2 * (MIB - 16384)), 2, false)
    );
    let larger = Label { size: 2 * MIB, ..concat(1) };
    assert_eq!(
        outcome(&taste(&[(MIB, concat(0)), (2 * MIB, larger)])),
        (Some(3 * MIB - 1024), 2, false)
    );
}

#[test]
fn a_label_counts_where_it_says_it_is() {
    for good in [stripe(0), concat(0)] {
        assert_eq!(outcome(&taste(&[(MIB, good)])), (None, 1, true));
        // Of another length: the label of something that only ends where this does. Old versions do
        // not say.
        assert_eq!(outcome(&taste(&[(MIB, Label { size: MIB + 512, ..good })])), (None, 0, false));
        assert_eq!(
            outcome(&taste(&[(MIB, Label { size: 0, version: good.version - 1, ..good })])),
            (None, 1, true)
        );
        for bad in [
            Label { number: 2, ..good },
            Label { version: good.version + 1, ..good },
            Label { count: 0, ..good },
        ] {
            assert_eq!(outcome(&taste(&[(MIB, bad)])), (None, 0, false));
        }
    }
    for bad in [
        Label { chunk: 16385, ..stripe(0) },
        Label { chunk: 256, ..stripe(0) },
        Label { count: 1, ..stripe(0) },
    ] {
        assert_eq!(outcome(&taste(&[(MIB, bad)])), (None, 0, false));
    }
}

#[test]
fn members_that_do_not_agree_make_no_set() {
    // One is of a set of three: of its two members none but the first is here.
    for (first, second) in [(stripe(0), stripe(1)), (concat(0), concat(1))] {
        assert_eq!(
            outcome(&taste(&[(MIB, first), (MIB, Label { count: 3, number: 2, ..second })])),
            (None, 2, true)
        );
    }
    assert_eq!(
        outcome(&taste(&[(MIB, stripe(0)), (MIB, Label { chunk: 32768, ..stripe(1) })])),
        (None, 2, true)
    );
    // The same place twice is one member.
    assert_eq!(outcome(&taste(&[(MIB, stripe(0)), (MIB, stripe(0))])), (None, 2, true));
}

/// A mirror of one in a mirror of one, and so on: every label stands before the one around it.
#[test]
fn sets_inside_each_other_end() {
    let mut store = Sparse::new(MIB);
    for depth in 0..40u8 {
        let length = MIB - 512 * u64::from(depth);
        let mut label = b"GEOM::MIRROR\0\0\0\0\x04\0\0\0data\0\0\0\0\0\0\0\0\0\0\0\0".to_vec();
        label.resize(135, 0);
        (label[36], label[44]) = (depth, 1);
        label[59..67].copy_from_slice(&(length - 512).to_le_bytes());
        label[111..119].copy_from_slice(&length.to_le_bytes());
        let sum = md5::compute(&label[..119]);
        label[119..].copy_from_slice(&*sum);
        store.put(length - 512, &label);
    }
    let topology = Topology::new(512, store.length());
    let graph = Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default());
    assert_eq!(graph.providers.len(), Limits::default().depth + 1);
    assert!(graph.providers.last().unwrap().findings.iter().any(|f| *f.rule == BLIND));
}

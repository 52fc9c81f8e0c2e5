//! Disks in containers that qemu-img makes: every byte is that of the raw disk, and lies where
//! qemu-img says.

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use serde_json::Value;
use std::fs;
use trueline_geom::audit::{Audit, audit, profile};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph, Id};
use trueline_geom::mapping::geom::Op;
use trueline_geom::mapping::route::Piece;
use trueline_geom::probe::Limits;

mod dmg;
mod ewf;
mod first_write;
mod formats;
mod vhd;
mod vhdx;
mod vmdk;

const MIB: u64 = 1 << 20;

/// A directory with `raw`, a disk of 40 MiB: a GPT with ext4 from its first MiB, and runs of bytes
/// that repeat nowhere. `None`, and the test is skipped, where a program is missing.
fn raw_disk(what: &str) -> Option<Scratch> {
    if let Some(missing) = missing_of(["qemu-img", "qemu-io", "sfdisk", "mkfs.ext4"]) {
        skip(&format!("no {missing} here"));
        return None;
    }
    let here = Scratch::new(what);
    sh(
        &here,
        "truncate -s 40M raw
        printf 'label: gpt\\nstart=2048, size=40960\\n' | sfdisk -q raw
        mkfs.ext4 -q -F -E offset=1048576 raw 20M",
    );
    let path = here.path().join("raw");
    let mut disk = fs::read(&path).expect("the raw disk");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for (at, length) in [(23 << 20, 70_000), (26 << 20, 4 << 20), ((33 << 20) + 512, 512)] {
        for word in disk[at..at + length].chunks_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
        }
    }
    fs::write(&path, disk).expect("the raw disk");
    Some(here)
}

/// Output of a script in `here` that must go through.
fn sh(here: &Scratch, script: &str) -> String {
    let done = tool("sh", &["-e", "-c", script], here.path()).expect("a shell");
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A file of `here`, as it is tasted on a drive of which nothing is known.
fn opened(here: &Scratch, name: &str) -> (Graph, Audit) {
    let bytes = fs::read(here.path().join(name)).expect("a file");
    let mut store = Sparse::new(bytes.len() as u64);
    for (at, page) in (0..).step_by(4096).zip(bytes.chunks(4096)) {
        if page.iter().any(|&byte| byte != 0) {
            store.put(at, page);
        }
    }
    let mut topology = Topology::new(512, store.length());
    topology.facts = profile::assumed();
    let graph = Graph::taste(vec![Disk::new("", Box::new(store), topology)], Limits::default());
    let audit = audit(&graph);
    (graph, audit)
}

/// The disk in a container, which must be there.
fn contents(graph: &Graph) -> Id {
    graph.find(".disk").expect("a disk in the container")
}

/// Compares the first bytes of the disk in a container with the raw disk, read in pieces that begin
/// anywhere; what is left of it must be zero.
fn compare_bytes(here: &Scratch, graph: &Graph) {
    let raw = fs::read(here.path().join("raw")).expect("the raw disk");
    let id = contents(graph);
    let length = graph.providers[id].topology.length;
    assert!(length >= raw.len() as u64, "{length} bytes");
    let (mut at, mut buffer) = (0, vec![0; 300_000 + 512]);
    while at < length {
        let size = usize::try_from(length - at).map_or(buffer.len(), |n| n.min(buffer.len()));
        let found = &mut buffer[..size];
        graph.read_at(id, found, at).expect("bytes");
        let from = usize::try_from(at).expect("a small number").min(raw.len());
        let expected = &raw[from..raw.len().min(from + size)];
        assert!(found.starts_with(expected), "other bytes from {at}");
        assert!(found[expected.len()..].iter().all(|&byte| byte == 0), "no zeros from {at}");
        at += size as u64;
    }
}

/// Compares the place of each run of the disk with what `qemu-img map` says; returns the number of
/// bytes that have one.
fn compare_map(here: &Scratch, graph: &Graph, format: &str, name: &str) -> u64 {
    let map = sh(here, &format!("qemu-img map --output=json -f {format} {name}"));
    let map: Value = serde_json::from_str(&map).expect("a map");
    let route = graph.providers[contents(graph)].route();
    let mut placed = 0;
    for run in map.as_array().expect("a list") {
        let (start, length) = (number(run, "start"), number(run, "length"));
        let offset = run.get("offset").and_then(Value::as_u64);
        let mut walk = |done: u64, piece| {
            match (piece, offset.filter(|_| run["data"] == true)) {
                (Piece::Store { offset, length, .. }, Some(at)) => {
                    assert_eq!(offset, at + done, "byte {}", start + done);
                    placed += length;
                }
                (Piece::Table { .. }, _) | (Piece::Zero { .. }, None) => {}
                (piece, expected) => {
                    panic!("byte {}: {piece:?}, and not {expected:?}", start + done)
                }
            }
            Ok(())
        };
        route.extents(start, length, Op::Read, &mut walk).expect("places");
    }
    placed
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().expect("a number")
}

/// Messages of the findings of one rule about the provider `id`.
fn messages<'a>(audit: &'a Audit, id: Id, rule: &str) -> Vec<&'a str> {
    let of = audit.findings.iter().filter(|(at, found)| *at == id && found.rule.id == rule);
    of.map(|(_, found)| found.message.as_str()).collect()
}

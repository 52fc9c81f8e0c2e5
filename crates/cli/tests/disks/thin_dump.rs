//! Maps of thin volumes, compared with what thin_dump(8) reads from the same metadata.

use crate::recipe::Scratch;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use trueline_geom::base::topology::Why;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::geom::{Extent, Op};

/// Chunks of a volume, and where each is on the data of its pool.
type Map = BTreeMap<u64, u64>;

/// Differences of the thin volumes of `graph` from what thin_dump says of each pool; none where
/// that is not installed.
pub(crate) fn differences(name: &str, graph: &Graph) -> Vec<String> {
    let mut wrong = Vec::new();
    for id in 0..graph.providers.len() {
        let Some(pool) = graph.providers[id].name.strip_suffix("_tmeta") else { continue };
        let Some(dumped) = dumped(graph, id) else { continue };
        let pool = graph.find(pool).expect("a pool");
        let mut ours: Vec<Map> = graph.children(pool).map(|volume| map(graph, volume)).collect();
        let mut theirs = dumped;
        ours.sort();
        theirs.sort();
        if ours != theirs {
            wrong.push(format!("{name}: thin_dump has {theirs:?}, not {ours:?}"));
        }
    }
    wrong
}

/// The map of a thin volume, as its geom answers it.
fn map(graph: &Graph, id: Id) -> Map {
    let provider = &graph.providers[id];
    let chunk = provider.topology.facts.iter().find(|fact| fact.why == Why::Chunk);
    let chunk = chunk.expect("a chunk").grain.size();
    let set = provider.route().set().expect("a thin volume");
    let mut map = Map::new();
    for at in (0..provider.topology.length).step_by(usize::try_from(chunk).expect("a chunk")) {
        if let Extent::At { consumer: 0, offset, .. } = set.geom.map(set.slot, at, 1, Op::Read) {
            map.insert(at / chunk, offset / chunk);
        }
    }
    map
}

/// The maps of all devices in the metadata that are provider `id`; `None` without thin_dump.
fn dumped(graph: &Graph, id: Id) -> Option<Vec<Map>> {
    let scratch = Scratch::new("thin-dump");
    let file = scratch.path().join("metadata");
    let length = usize::try_from(graph.providers[id].topology.length).expect("a length");
    let mut bytes = vec![0; length];
    graph.read_at(id, &mut bytes, 0).expect("metadata that can be read");
    fs::write(&file, bytes).expect("a file");
    let said = Command::new("thin_dump").arg(&file).output().ok()?;
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let mut maps = Vec::new();
    for line in String::from_utf8_lossy(&said.stdout).lines() {
        let value = |key: &str| -> Option<u64> {
            let (_, rest) = line.split_once(&format!(" {key}=\""))?;
            rest.split('"').next()?.parse().ok()
        };
        if line.trim_start().starts_with("<device") {
            maps.push(Map::new());
        }
        let first = value("origin_block").or(value("origin_begin"));
        let data = value("data_block").or(value("data_begin"));
        let (Some(first), Some(data), Some(map)) = (first, data, maps.last_mut()) else { continue };
        map.extend((0..value("length").unwrap_or(1)).map(|n| (first + n, data + n)));
    }
    Some(maps)
}

//! Volumes as a kernel made them: every sector of a logical volume names itself, and is read back
//! through the map of its member images.
//!
//! `TRUELINE_SETS` names the directory that `tests/kernel/sets.sh` has filled; without it there is
//! nothing to compare. `TRUELINE_SETS_ONLY` keeps to recipes whose names contain its value.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::fs;
use std::path::{Path, PathBuf};
use trueline_geom::base::finding::UNREAD;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

/// Directories of recipes of LVM that went through, in order.
fn recipes() -> Vec<PathBuf> {
    let Ok(sets) = std::env::var("TRUELINE_SETS") else {
        eprintln!("not compared: TRUELINE_SETS names no directory");
        return Vec::new();
    };
    let only = std::env::var("TRUELINE_SETS_ONLY").unwrap_or_default();
    let entries = fs::read_dir(sets).unwrap().map(|entry| entry.unwrap().path());
    let went_through = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let made_by_lvm = name.starts_with("lvm-") && name != "lvm-on-md";
        let done = fs::read_to_string(path.join("status")).is_ok_and(|s| s.trim() == "0");
        made_by_lvm && name.contains(&only) && done
    };
    let mut found: Vec<PathBuf> = entries.filter(went_through).collect();
    found.sort();
    found
}

/// The graph of all members in a directory.
fn graph(recipe: &Path) -> Graph {
    let mut disks = Vec::new();
    for number in 0.. {
        let Ok(bytes) = fs::read(recipe.join(format!("disk{number}.img"))) else { break };
        let mut store = Sparse::new(bytes.len() as u64);
        store.put(0, &bytes);
        let topology = Topology::new(512, store.length());
        disks.push(Disk::new(format!("disk{number}"), Box::new(store), topology));
    }
    Graph::taste(disks, Limits::default())
}

/// First sector of `id` that is not what the kernel wrote, of the run `line` in `expect.txt`; the
/// number of sectors that were compared otherwise.
fn compare(graph: &Graph, line: &str) -> Result<u64, String> {
    let mut words = line.splitn(4, ' ');
    let mut next = || words.next().unwrap();
    let name = next().trim_start_matches("/dev/").to_string();
    let (first, count): (u64, u64) = (next().parse().unwrap(), next().parse().unwrap());
    let tag = next();
    let id = graph.find(&name).ok_or(format!("there is no {name}"))?;
    if !graph.providers[id].seen {
        // Of a type that is not mapped, and says so.
        let said = graph.providers[id].findings.iter().any(|f| *f.rule == UNREAD);
        return if said { Ok(0) } else { Err(format!("{name} is not mapped, without a word")) };
    }
    let mut sector = [0; 512];
    for s in first..first + count {
        let line = match tag {
            "-" => vec![0; 64],
            tag => format!("{tag:<47.47} {s:>15}\n").into_bytes(),
        };
        graph.read_at(id, &mut sector, s * 512).map_err(|e| format!("{name} {s}: {e}"))?;
        if sector != line.repeat(8)[..] {
            let found = String::from_utf8_lossy(&sector[..64]).into_owned();
            return Err(format!("sector {s} of {name} has {found:?}"));
        }
    }
    Ok(count)
}

#[test]
fn every_sector_is_where_the_kernel_put_it() {
    let mut wrong = Vec::new();
    for recipe in recipes() {
        let graph = graph(&recipe);
        let name = recipe.file_name().unwrap().to_string_lossy().into_owned();
        let expect = fs::read_to_string(recipe.join("expect.txt")).unwrap();
        let results: Vec<_> = expect.lines().map(|line| compare(&graph, line)).collect();
        let compared: u64 = results.iter().flatten().sum();
        eprintln!("{name}: {compared} sectors equal");
        wrong.extend(results.into_iter().filter_map(Result::err).map(|e| format!("{name}: {e}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

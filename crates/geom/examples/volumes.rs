//! `volumes WHAT COUNT`: a volume group of four physical and 200 logical volumes in memory.
//!
//! | WHAT | does COUNT times |
//! |---|---|
//! | `raw`, `linear`, `striped`, `thin` | reads 4096 bytes of a disk, or of such a volume; the thin one's pool is striped |
//! | `metadata` | reads the metadata of every disk and sums them |
//! | `assemble` | tastes the disks until all volumes are there |
//!
//! `benches/sets.sh` counts and times it. It reads no clock, so that every run is the same.

use std::fmt::Write;
use std::hint::black_box;
use std::process::ExitCode;
use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::format::lvm2::label;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

#[path = "shared/memory.rs"]
pub mod memory;
#[path = "../tests/hostile/physical.rs"]
pub mod physical;
#[path = "../tests/hostile/repair.rs"]
pub mod repair;

use memory::Memory;
use physical::{AREA, EXTENTS, TEXT_AT};

const READ: usize = 4096;
/// Physical volumes, each on a disk.
const DISKS: u64 = 4;
const LENGTH: u64 = 40 << 20;
/// Length of an extent in bytes.
const EXTENT: u64 = 64 << 10;
/// Plain volumes beside the three that are read and the pool's three.
const OTHERS: u64 = 194;
/// Chunks of the thin volume, as many as one node of its map has room for.
const CHUNKS: u64 = 252;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, count] = args.as_slice() else { return ExitCode::from(2) };
    let Ok(count) = count.parse() else { return ExitCode::from(2) };
    let done = match what.as_str() {
        "metadata" => metadata(count),
        "assemble" => assemble(count),
        volume => read(volume, count),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn read(volume: &str, count: u64) -> Result<(), Errno> {
    let graph = graph(&disks());
    let name = if volume == "raw" { "d0".to_owned() } else { format!("vg/{volume}") };
    let route = graph.providers[graph.find(&name).ok_or(Errno::NoDevice)?].route();
    let mut buffer = [0; READ];
    // Reads of 64 chunks, in order; the places asked for are the same whatever is read.
    let mut at = 0;
    for _ in 0..count {
        black_box(route).read_at(graph.stores(), black_box(&mut buffer), at)?;
        at = (at + 5 * READ as u64) % (4 << 20);
    }
    Ok(())
}

fn metadata(count: u64) -> Result<(), Errno> {
    let (disks, length) = (disks(), text().len());
    let mut buffer = vec![0; length.max(READ)];
    for disk in (0..count).flat_map(|_| &disks) {
        for (at, length) in [(0, READ), (AREA, 512), (TEXT_AT, length)] {
            let part = buffer.get_mut(..length).ok_or(Errno::Range)?;
            disk.read_at(part, at)?;
            black_box(label::crc(part));
        }
    }
    Ok(())
}

fn assemble(count: u64) -> Result<(), Errno> {
    let disks = disks();
    for _ in 0..count {
        let graph = graph(&disks);
        if graph.providers.iter().filter(|p| p.name.starts_with("vg/")).count() != 200 {
            return Err(Errno::NoDevice);
        }
    }
    Ok(())
}

fn graph(disks: &[Memory]) -> Graph {
    let disk = |(nth, disk): (usize, &Memory)| {
        let topology = Topology::new(512, disk.length());
        Disk::new(format!("d{nth}"), Box::new(disk.clone()), topology)
    };
    Graph::taste(disks.iter().enumerate().map(disk).collect(), Limits::default())
}

/// The group as its metadata have it: extents 0 to 3 of the first disk hold the thin pool's map,
/// the next 80 of each disk the striped volume, and the next 80 the pool's data.
fn text() -> String {
    let mut text =
        format!("vg {{ id = \"g\" seqno = 4 extent_size = {} physical_volumes {{\n", EXTENT / 512);
    for disk in 0..DISKS {
        let id = format!("{disk}12345-6789-abcd-ef01-2345-6789-abcdef");
        let count = (LENGTH - EXTENTS) / EXTENT;
        let place = format!("pe_start = {} pe_count = {count}", EXTENTS / 512);
        writeln!(text, "pv{disk} {{ id = \"{id}\" {place} }}").expect("a text");
    }
    text.push_str("}\nlogical_volumes {\n");
    let mut volume = |name: &str, extents: u64, segment: &str| {
        let id = format!("id = \"{name:->6}-0000-0000-0000-0000-0000-000000\"");
        let range = format!("start_extent = 0 extent_count = {extents}");
        let head = format!("{id} status = [\"READ\", \"WRITE\", \"VISIBLE\"] segment_count = 1");
        writeln!(text, "{name} {{ {head} segment1 {{ {range} {segment} }} }}").expect("a text");
    };
    let stripes = |first: u64| {
        let all: Vec<String> = (0..DISKS).map(|disk| format!("\"pv{disk}\", {first}")).collect();
        let all = all.join(", ");
        format!("type = \"striped\" stripe_count = {DISKS} stripe_size = 128 stripes = [{all}]")
    };
    let one =
        |disk: u64, first: u64| format!("type = \"striped\" stripes = [\"pv{disk}\", {first}]");
    volume("linear", 80, &one(1, 170));
    volume("striped", 80 * DISKS, &stripes(4));
    volume("tmeta", 4, &one(0, 0));
    volume("tdata", 80 * DISKS, &stripes(84));
    let parts = "metadata = \"tmeta\" pool = \"tdata\" transaction_id = 1 chunk_size = 128";
    volume("pool", 80 * DISKS, &format!("type = \"thin-pool\" {parts}"));
    volume("thin", CHUNKS, "type = \"thin\" thin_pool = \"pool\" device_id = 1");
    for other in 0..OTHERS {
        let place = one(other % DISKS, 260 + other);
        volume(&format!("other{other}"), 1, &place);
    }
    text.push_str("} }\n");
    text
}

/// Metadata of the pool, whose chunks lie in no order.
fn map() -> Vec<u8> {
    // 101 is prime to their number.
    let chunks: Vec<(u64, u64)> = (0..CHUNKS).map(|n| (n, n * 101 % CHUNKS)).collect();
    physical::thin_pool(&chunks)
}

fn disks() -> Vec<Memory> {
    (0..DISKS).map(|nth| Memory(Arc::new(disk(nth)))).collect()
}

/// A disk with its label, the group's text, and what is on it of the map; every checksum is right.
fn disk(nth: u64) -> Vec<u8> {
    let mut uuid = *b"0123456789abcdef0123456789abcdef";
    uuid[0] = nth.to_le_bytes()[0] + b'0';
    let mut disk = physical::volume(LENGTH, &uuid, text().as_bytes());
    if nth == 0 {
        disk.put(EXTENTS, &map());
    }
    repair::repair(&mut disk, 512);
    let mut all = vec![0; usize::try_from(LENGTH).expect("a length")];
    disk.read_at(&mut all, 0).expect("its bytes");
    all
}

//! `containers FILE COUNT`: reads 4096 bytes of a disk image COUNT times, from memory: of the disk
//! in it, if it is a container, else of the file. All places are among the first 64 MiB, in an
//! order that is the same for every image.
//!
//! `benches/containers.sh` times it. It reads no clock, so that every run is the same.

#![allow(clippy::disallowed_methods, reason = "an example reads its image from a file")]

use std::hint::black_box;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits;

#[path = "shared/memory.rs"]
pub mod memory;

const READ: usize = 4096;
/// Bytes of a disk in which the reads lie.
const REACH: u64 = 64 << 20;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, count] = args.as_slice() else { return ExitCode::from(2) };
    let (Ok(bytes), Ok(count)) = (std::fs::read(file), count.parse()) else {
        return ExitCode::from(2);
    };
    match read(memory::Memory(Arc::new(bytes)), count) {
        Ok(sum) => {
            let line = format!("{sum:016x}\n");
            match std::io::stdout().write_all(line.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// A sum over all bytes that were read: the same of a disk and of a container with it.
fn read(file: memory::Memory, count: u64) -> Result<u64, Errno> {
    let topology = Topology::new(512, file.length());
    let graph = Graph::taste(vec![Disk::new("", Box::new(file), topology)], Limits::default());
    let route = graph.providers[graph.disk(0)].route();
    let (mut buffer, mut at, mut sum) = ([0; READ], 0, 0_u64);
    for _ in 0..count {
        black_box(route).read_at(graph.stores(), black_box(&mut buffer), at)?;
        let (first, last) = (buffer[0], buffer[READ - 1]);
        sum = sum.rotate_left(5) ^ u64::from(first) ^ u64::from(last) << 8;
        // A number that is prime to their number of places.
        at = (at + 1021 * READ as u64) % REACH;
    }
    Ok(sum)
}

//! `serve_memory SOCKET [SECONDS]`: a disk of 64 MiB in memory over NBD, counted; ends after
//! SECONDS, or on SIGINT or SIGTERM.
//!
//! Its sectors of 4096 bytes are emulated in 512, and of its two partitions the second begins off
//! them: reads of it are counted as misaligned. `nbdcopy 'nbd+unix:///?socket=SOCKET' copy` is a
//! client.

#![allow(clippy::disallowed_macros, reason = "an example is a program of its own")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::topology::{Fact, Grain, Placement, Source, Topology, Trust, Why};
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits as TasteLimits;
use trueline_geom::registry;
use trueline_geom::table::scheme::{New, TableSite};
use trueline_geom::table::{Refusal, Request, Rules, Wanted};
use trueline_host::disk::memory::Memory;
use trueline_host::process::signal;
use trueline_serve::counting::ServerCounts;
use trueline_serve::front::config::{Address, FrontConfig};
use trueline_serve::layer_stack::{LayerConfig, LayerStack};
use trueline_serve::notice::Tell;
use trueline_serve::selection::Selection;
use trueline_serve::server;

const LENGTH: u64 = 64 << 20;
/// First byte and length of each partition: the second begins 3584 bytes past a boundary.
const PARTITIONS: [(u64, u64); 2] = [(1 << 20, 16 << 20), ((32 << 20) + 3584, 16 << 20)];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (socket, seconds) = match args.as_slice() {
        [socket] => (socket, Some(u64::MAX)),
        [socket, seconds] => (socket, seconds.parse().ok()),
        _ => return ExitCode::from(2),
    };
    let Some(seconds) = seconds else { return ExitCode::from(2) };
    match serve(Path::new(socket), Duration::from_secs(seconds)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("serve_memory: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Serves for `time` at `socket`, then prints what was counted.
fn serve(socket: &Path, time: Duration) -> Result<(), Box<dyn Error>> {
    let graph = disk()?;
    let whole = graph.find("").ok_or("the disk is not found")?;
    let tell: Arc<Tell> = Arc::new(|notice| eprintln!("serve_memory: {notice}"));
    // A way in asks an export, the export its layers, the layers the provider, the provider the
    // memory.
    let layers = LayerStack::new(
        &graph,
        whole,
        &LayerConfig { count: true, ..LayerConfig::default() },
        &tell,
    )?;
    let selection = Selection { target: "memory".into(), ..Selection::default() };
    let exports = Arc::new(selection.exports(&graph, whole, &layers, None)?);
    let nbd = FrontConfig {
        nbd: Some(Address::Unix(socket.to_owned())),
        memory: 64 << 20,
        ..FrontConfig::default()
    };
    signal::remember_first();
    let fronts = nbd.open(&exports, &tell)?;
    println!("at {}", fronts[0].place());
    let end = Instant::now().checked_add(time);
    server::run(&fronts, layers.counting().map(|counting| &**counting), |ended| {
        while !signal::happened() && !ended() && end.is_none_or(|end| Instant::now() < end) {
            std::thread::sleep(Duration::from_millis(20));
        }
    })?;
    print(&layers.counting().ok_or("nothing is counted")?.counts());
    Ok(())
}

/// A disk in memory with a table of two partitions.
fn disk() -> Result<Graph, Box<dyn Error>> {
    let unit = Grain::new(4096, 0).ok_or("a unit of 4096 bytes")?;
    let physical =
        Fact { grain: unit, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
    let topology = Topology { facts: vec![physical], ..Topology::new(512, LENGTH) };
    let memory = Disk::new("", Box::new(Memory::new(LENGTH)?), topology);
    let empty = Graph::taste(vec![memory], TasteLimits::default());
    write_table(&empty)?;
    // What is on it is found as on any disk.
    Ok(empty.again())
}

/// Writes a GPT with [`PARTITIONS`] on the only disk of `graph`.
fn write_table(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let gpt = registry::scheme_named("gpt").ok_or("no scheme of this name")?;
    let ground = TableSite { topology: &graph.providers[0].topology, base: 0, kind: None };
    let empty = gpt.create(
        &graph.probe(0),
        &ground,
        &New { random: *b"sixteen of these", ..New::default() },
    )?;
    let mut full = empty.clone();
    for (nth, (start, size)) in (1..).zip(PARTITIONS) {
        let place = Request { start: Some(start), size: Some(size), align: None };
        let kind =
            gpt.kind("linux-data").ok_or_else(|| Refusal::new("no type of this name", ""))?;
        let wanted = Wanted {
            kind,
            place,
            index: None,
            label: None,
            uuid: Some(Guid([nth; 16])),
            attributes: 0,
        };
        full.add(&ground, wanted, Rules::Aligned)?;
    }
    for patch in gpt.render(&empty, &full) {
        if patch.after_flush {
            graph.flush()?;
        }
        graph.write_at(0, &patch.bytes, patch.offset)?;
    }
    Ok(graph.flush()?)
}

/// Prints a line for every provider that something was asked of.
fn print(counts: &ServerCounts) {
    for layer in counts.layers() {
        let name = if layer.provider.is_empty() { "disk" } else { &layer.provider };
        println!(
            "{name}: {} aligned, {} misaligned",
            layer.requests(Placement::Aligned),
            layer.requests(Placement::Misaligned)
        );
    }
}

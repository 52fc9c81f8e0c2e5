//! `serve_memory SOCKET [SECONDS]`: a disk of 64 MiB in memory over NBD, counted; ends after SECONDS, or on SIGINT or SIGTERM.
//!
//! Its sectors of 4096 bytes are emulated in 512, and of its two partitions the second begins off them: reads of it are counted as
//! misaligned. `nbdcopy 'nbd+unix:///?socket=SOCKET' copy` is a client.

#![allow(clippy::disallowed_macros, reason = "an example is a program of its own")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trueline_geom::audit::io::{IoAudit, IoKind};
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::boundaries::boundaries;
use trueline_geom::base::topology::{Fact, Grain, Placement, Source, Topology, Trust, Why};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::probe::Limits as TasteLimits;
use trueline_geom::table::scheme::{self, New, TableSite};
use trueline_geom::table::{Refusal, Request, Rules, Wanted};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::listener::Listener;
use trueline_host::nbd::tls::Encryption;
use trueline_host::process::signal;
use trueline_serve::export::{BlockSizes, Export, Exports};
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::front::nbd::memory_budget::MemoryBudget;
use trueline_serve::front::{Front, Nbd};
use trueline_serve::layer::counted::{Counted, Counters};
use trueline_serve::retaste::trigger::RetasteTrigger;

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
    // A way in asks a layer, the layer asks the provider, the provider asks the memory.
    let counters = Arc::new(Counters::new(IoAudit::new(&graph, whole), Arc::new(RetasteTrigger::new(graph.looked()))));
    let below: Arc<dyn Store> = Arc::new(Through::new(&graph, whole));
    let store: Arc<dyn Store> = Arc::new(Counted::new(below, counters.clone(), Box::new(|| ())));
    let topology = &graph.providers[whole].topology;
    let export = Export {
        name: String::new(),
        description: "a disk in memory".into(),
        sizes: BlockSizes::of(topology, &*store),
        boundaries: boundaries(topology),
        store,
        read_only: false,
        rotational: false,
        errors: Arc::default(),
        overlay: None,
        refusals: vec![counters.clone()],
    };
    let front = Nbd {
        listener: Listener::unix(socket)?,
        exports: Arc::new(Exports(vec![export])),
        encryption: Encryption::Off,
        certificates: None,
        limits: Limits::default(),
        room: Arc::new(MemoryBudget::new(64 << 20)),
        tell: Box::new(|line| eprintln!("serve_memory: {line}")),
    };
    signal::remember_first();
    println!("at {}", front.place());
    let (stop, end) = (AtomicBool::new(false), Instant::now().checked_add(time));
    std::thread::scope(|scope| {
        let server = scope.spawn(|| front.run(&stop));
        while !signal::happened() && !server.is_finished() && end.is_none_or(|end| Instant::now() < end) {
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        server.join().map_err(|_| "the server panicked")?.map_err(Box::<dyn Error>::from)
    })?;
    print(&graph, &counters);
    Ok(())
}

/// A disk in memory with a table of two partitions.
fn disk() -> Result<Graph, Box<dyn Error>> {
    let unit = Grain::new(4096, 0).ok_or("a unit of 4096 bytes")?;
    let physical = Fact { grain: unit, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
    let topology = Topology { facts: vec![physical], ..Topology::new(512, LENGTH) };
    let memory = Disk::new("", Box::new(Memory::new(LENGTH)?), topology);
    let empty = Graph::taste(vec![memory], TasteLimits::default());
    write_table(&empty)?;
    // What is on it is found as on any disk.
    Ok(empty.again())
}

/// Writes a GPT with [`PARTITIONS`] on the only disk of `graph`.
fn write_table(graph: &Graph) -> Result<(), Box<dyn Error>> {
    let gpt = scheme::named("gpt").ok_or("no scheme of this name")?;
    let ground = TableSite { topology: &graph.providers[0].topology, base: 0, kind: None };
    let empty = gpt.create(&graph.probe(0), &ground, &New { random: *b"sixteen of these", ..New::default() })?;
    let mut full = empty.clone();
    for (nth, (start, size)) in (1..).zip(PARTITIONS) {
        let place = Request { start: Some(start), size: Some(size), align: None };
        let kind = gpt.kind("linux-data").ok_or_else(|| Refusal::new("no type of this name", ""))?;
        let wanted = Wanted { kind, place, index: None, label: None, uuid: Some(Guid([nth; 16])), attributes: 0 };
        full.add(gpt, &ground, wanted, Rules::Aligned)?;
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
fn print(graph: &Graph, counters: &Counters) {
    for (place, tally) in counters.counts().cells {
        let name = Some(&graph.providers[place.layer.provider].name).filter(|name| !name.is_empty()).map_or("disk", |name| name);
        let count = |fit| IoKind::ALL.iter().map(|&deed| tally.requests(deed, fit)).sum::<u64>();
        println!("{name}: {} aligned, {} misaligned", count(Placement::Aligned), count(Placement::Misaligned));
    }
}

//! Random reads, or writes, of 4 KiB through the rig, for `benches/engine.sh`: `engine FILE DEPTH
//! SECONDS [direct] [sync] [write]`. Prints ns a request.

use std::path::Path;
use std::process::ExitCode;
use trueline_geom::base::store::Store;
use trueline_geom::mapping::route::Route;
use trueline_host::disk::file::{self, Access};
use trueline_host::engine::Choice;
use trueline_host::engine::open_file::{Cache, OpenFile};
use trueline_lab::error::Error;
use trueline_lab::rig::Op;
use trueline_lab::rig::real::{Real, RigSetup};
use trueline_lab::streams::{Ask, Limit, run};
use trueline_sim::random::Random;

const BLOCK: u64 = 4096;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match measure(&arguments) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("engine: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[String]) -> Result<String, Error> {
    let usage = || Error::new("usage: engine FILE DEPTH SECONDS [direct] [sync] [write]".into());
    let [path, depth, seconds, more @ ..] = arguments else { return Err(usage()) };
    let (depth, seconds): (u32, u64) =
        (depth.parse().map_err(|_| usage())?, seconds.parse().map_err(|_| usage())?);
    let said = |word: &str| more.iter().any(|own| own == word);
    let path = Path::new(path);
    let (access, op) =
        if said("write") { (Access::Write, Op::Write) } else { (Access::Read, Op::Read) };
    let opened = file::open_for(path, access).map_err(|e| Error::new(e.to_string()))?;
    let cache = if said("direct") { Cache::Around } else { Cache::Through };
    let file = OpenFile::new(&opened.store, cache, path).map_err(|e| Error::new(e.to_string()))?;
    let length = opened.store.length();
    let engine = if said("sync") { Choice::Sync } else { Choice::Ring };
    let mut rig = Real::new(
        Route::store(0, length),
        512,
        vec![file],
        RigSetup { depth, largest: BLOCK, engine },
    )?;
    let mut random = Random::new(1);
    let blocks = length / BLOCK;
    let mut source =
        |_| Some(Ask { op, offset: random.below(blocks) * BLOCK, length: BLOCK, fua: false });
    let run = run(&mut rig, depth as usize, Limit::Time(seconds * 1_000_000_000), &mut source)?;
    match run.first_error {
        Some(error) => Err(Error::new(error)),
        None => Ok(format!("{:.1}", 1e9 / run.rate())),
    }
}

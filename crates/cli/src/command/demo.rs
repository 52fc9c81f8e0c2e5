//! `demo`: the disks of the five seed documents, laid out in memory and checked.

use super::check::{print, write_file};
use crate::Failure;
use crate::options::{Demo, DiskOptions, Output};
use crate::out;
use crate::report::{Report, Target};
use crate::survey::survey;
use crate::target::{Said, taste_stores};
use std::process::ExitCode;
use trueline_geom::store::{Sparse, Store};

/// One disk, or the members of one set, of a seed document.
struct Seed {
    /// What the document calls it, and what it shows.
    name: &'static str,
    /// The golden disk.
    hex: &'static str,
    /// What the drive is, as `--physical` says it; `None`: nobody said.
    physical: Option<(u64, u64)>,
}

const SEEDS: &[Seed] = &[];

pub(crate) fn run(args: &Demo) -> Result<ExitCode, Failure> {
    let targets = SEEDS.iter().map(check).collect::<Result<Vec<Target>, String>>()?;
    let report = Report::new("trueline/check/1", targets);
    print(&report, &Output::default())?;
    write_file(&args.html, |file| out::html::write(&report, file))?;
    anstream::println!("\nThe same as a page: {}", args.html.display());
    Ok(ExitCode::SUCCESS)
}

fn check(seed: &Seed) -> Result<Target, String> {
    let said = Said::new(&DiskOptions { physical: seed.physical, ..DiskOptions::default() })?;
    let mut disks: Vec<(String, Box<dyn Store>)> = Vec::new();
    for (name, dump) in parts(seed.hex) {
        disks.push((name, Box::new(Sparse::from_hexdump(dump).map_err(|e| format!("{}: {e}", seed.name))?)));
    }
    let graph = taste_stores(disks, &said);
    survey(seed.name, &graph, None)
}

/// The dumps in a golden disk, each with its name: the first is `disk`, a line `# disk: NAME` begins another.
fn parts(hex: &str) -> Vec<(String, &str)> {
    let mut parts = Vec::new();
    let mut rest = hex;
    let mut name = "disk".to_string();
    while let Some((dump, next)) = rest.split_once("# disk: ") {
        parts.push((name, dump));
        let (line, after) = next.split_once('\n').unwrap_or((next, ""));
        (name, rest) = (line.trim().to_string(), after);
    }
    parts.push((name, rest));
    parts
}

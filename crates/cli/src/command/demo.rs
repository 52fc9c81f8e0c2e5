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
    let dumps = Sparse::from_hexdumps(seed.hex).map_err(|e| format!("{}: {e}", seed.name))?;
    let disks = dumps.into_iter().map(|(name, disk)| (name, Box::new(disk) as Box<dyn Store>)).collect();
    let graph = taste_stores(disks, &said);
    survey(seed.name, &graph, None)
}

//! `demo`: the disks of the five seed documents, laid out in memory and checked.

use super::check::print;
use crate::Failure;
use crate::options::{Demo, DiskOptions, Output};
use crate::out;
use crate::page::write_file;
use crate::report::{Report, Target};
use crate::survey::survey;
use crate::target::{Said, taste_stores};
use std::io::Write;
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

/// The golden disk of that name.
macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("../../../../tests/disks/", $name, ".hex"))
    };
}

/// 4096-byte sectors, as an XP jumper shifts them.
const JUMPER: Option<(u64, u64)> = Some((4096, 3584));

const SEEDS: &[Seed] = &[
    Seed { name: "OpenBSD 2010, WD10EARS without its jumper", hex: golden!("seed-000-openbsd"), physical: Some((4096, 0)) },
    Seed { name: "OpenBSD 2010, WD10EARS with its jumper", hex: golden!("seed-000-openbsd"), physical: JUMPER },
    Seed { name: "OSnews 2010, sdd: fdisk's own start", hex: golden!("seed-001-sdd-63"), physical: Some((4096, 0)) },
    Seed { name: "OSnews 2010, sdc: start moved to 64", hex: golden!("seed-001-sdc-64"), physical: Some((4096, 0)) },
    Seed { name: "GEOM benchmark 2002, md9", hex: golden!("seed-002-md"), physical: Some((512, 0)) },
    Seed { name: "Stripe test 2009, default partitioning", hex: golden!("seed-003-default"), physical: Some((512, 0)) },
    Seed { name: "Stripe test 2009, aligned by hand", hex: golden!("seed-003-aligned"), physical: Some((512, 0)) },
    Seed { name: "gpart walk-through 2013, -a 574", hex: golden!("seed-004-574"), physical: Some((4096, 0)) },
    Seed { name: "gpart walk-through 2013, -a 4k", hex: golden!("seed-004-aligned"), physical: Some((4096, 0)) },
];

pub(crate) fn run(args: &Demo) -> Result<ExitCode, Failure> {
    let targets = SEEDS.iter().map(check).collect::<Result<Vec<Target>, String>>()?;
    let report = Report::new("trueline/check/1", targets, Vec::new());
    print(&report, &Output::default())?;
    write_file(&args.html, |file| out::html::write(&report, file))?;
    writeln!(anstream::stdout(), "\nThe same as a page: {}", args.html.display())?;
    Ok(ExitCode::SUCCESS)
}

fn check(seed: &Seed) -> Result<Target, String> {
    let said = Said::new(&DiskOptions { physical: seed.physical, ..DiskOptions::default() })?;
    let dumps = Sparse::from_hexdumps(seed.hex).map_err(|e| format!("{}: {e}", seed.name))?;
    let disks = dumps.into_iter().map(|(name, disk)| (name, Box::new(disk) as Box<dyn Store>)).collect();
    let graph = taste_stores(disks, &said);
    survey(seed.name, &graph, None)
}

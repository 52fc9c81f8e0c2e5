//! `demo`: the disks of the five seed documents, laid out in memory and checked; one of them laid
//! out again, with the time that saves on a simulated drive; and the documents' measurements beside
//! those of simulated drives.

use super::check::print;
use crate::command::check::args::Output;
use crate::command::demo::args::Demo;
use crate::command::lab::text;
use crate::disk_options::DiskOptions;
use crate::failure::{Failure, Reason};
use crate::page_file::write_file;
use crate::progress::Progress;
use crate::render::made::Made;
use crate::report::{self, Report, Target};
use crate::style::Style;
use crate::survey::survey;
use crate::target::open::taste_stores;
use crate::target::{self, DiskOverrides};
use crate::words::columns::wrap;
use std::io::{self, Write};
use std::process::ExitCode;
use trueline_geom::base::store::{Sparse, Store};
use trueline_lab::result::{LabDocument, LabResult};
use trueline_lab::study::{BUILT_IN, Lab, Selection, run as run_rows};

pub(crate) mod args;
pub(crate) mod page;
pub(crate) mod story;

/// One disk, or the members of one set, of a seed document.
struct Seed {
    /// Name of the document, and of the case it shows.
    name: &'static str,
    /// The golden disk, a hexdump.
    hex: &'static str,
    /// The drive's physical sector and phase in bytes, as `--physical` takes them; `None`: the
    /// document gives none.
    physical: Option<(u64, u64)>,
}

/// The golden disk of that name.
macro_rules! golden {
    ($name:literal) => {
        include_str!(concat!("../../disks/", $name, ".hex"))
    };
}

/// Sectors of 4096 bytes, as an XP jumper shifts them.
const JUMPER: Option<(u64, u64)> = Some((4096, 3584));

const SEEDS: &[Seed] = &[
    Seed {
        name: "OpenBSD 2010, WD10EARS without its jumper",
        hex: golden!("seed-000-openbsd"),
        physical: Some((4096, 0)),
    },
    Seed {
        name: "OpenBSD 2010, WD10EARS with its jumper",
        hex: golden!("seed-000-openbsd"),
        physical: JUMPER,
    },
    Seed {
        name: "OSnews 2010, sdd: fdisk's own start",
        hex: golden!("seed-001-sdd-63"),
        physical: Some((4096, 0)),
    },
    Seed {
        name: "OSnews 2010, sdc: start moved to 64",
        hex: golden!("seed-001-sdc-64"),
        physical: Some((4096, 0)),
    },
    Seed {
        name: "GEOM benchmark 2002, md9",
        hex: golden!("seed-002-md"),
        physical: Some((512, 0)),
    },
    Seed {
        name: "Stripe test 2009, default partitioning",
        hex: golden!("seed-003-default"),
        physical: Some((512, 0)),
    },
    Seed {
        name: "Stripe test 2009, aligned by hand",
        hex: golden!("seed-003-aligned"),
        physical: Some((512, 0)),
    },
    Seed {
        name: "gpart walk-through 2013, -a 574",
        hex: golden!("seed-004-574"),
        physical: Some((4096, 0)),
    },
    Seed {
        name: "gpart walk-through 2013, -a 4k",
        hex: golden!("seed-004-aligned"),
        physical: Some((4096, 0)),
    },
];

pub(crate) fn run(args: &Demo) -> Result<ExitCode, Failure> {
    let targets = SEEDS.iter().map(check).collect::<Result<Vec<Target>, Reason>>()?;
    let report = Report::new(report::CHECK, targets, Vec::new());
    let progress = Progress::new(Some("demo"));
    let story = story::tell(&SEEDS[0], &progress)?;
    let labs = if args.short { None } else { Some(labs(&progress)?) };
    progress.end();
    let page = page::Page {
        story: &story,
        layout: story::LAYOUT,
        report: &report,
        labs: labs.as_ref(),
        made: Made::now(),
    };
    // Before anything is printed: a reader that goes away takes no page with it.
    write_file(&args.html, |file| page::write(&page, file))?;
    print(&report, &Output::default())?;
    let mut stdout = anstream::stdout();
    let style = Style::of_stdout();
    heading(
        "What the first of them costs on a simulated drive, and laid out again:",
        &mut stdout,
        style,
    )?;
    text::write(&story.cost, &mut stdout, style)?;
    let (documents, own) =
        labs.into_iter().flat_map(|labs| labs.labs).partition(LabResult::is_published);
    for (labs, says) in [
        (documents, "What the documents measured, and what simulated drives say:"),
        (own, "What simulated drives say where no document measured anything:"),
    ] {
        let document = LabDocument { format: "trueline/lab/1", labs };
        if !document.labs.is_empty() {
            heading(says, &mut stdout, style)?;
            text::write(&document, &mut stdout, style)?;
        }
    }
    writeln!(stdout, "\nThe same as a page: {}", args.html.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a line between two parts of the text.
fn heading(text: &str, out: &mut dyn Write, style: Style) -> io::Result<()> {
    writeln!(out)?;
    wrap("", 0, text, 0, style.width, out)?;
    writeln!(out)
}

/// Every simulated lab that comes with the program. Labs that measure this machine write files,
/// which a demo must not.
fn simulated() -> Result<Vec<Lab>, Reason> {
    let labs = BUILT_IN.iter().map(|lab| {
        lab.lab().map_err(|e| Reason::from(e).behind(format_args!("demo: {}", lab.file)))
    });
    labs.filter(|lab| !lab.as_ref().is_ok_and(Lab::measures_here)).collect()
}

/// Results of all rows of these labs, without sweeps.
fn labs(progress: &Progress) -> Result<LabDocument, Reason> {
    let asked = Selection { rows: Vec::new(), sweep: 0, threads: 2 };
    let ran = run_rows(&simulated()?, &asked, &|step| progress.step(step));
    let (document, failures) = ran.map_err(|failure| format!("demo: lab {failure}"))?;
    match failures.first() {
        Some(failure) => Err(Reason(format!("demo: lab {failure}"))),
        None => Ok(document),
    }
}

fn check(seed: &Seed) -> Result<Target, Reason> {
    let overrides =
        DiskOverrides::new(&DiskOptions { physical: seed.physical, ..DiskOptions::default() })?;
    let dumps = Sparse::from_hexdumps(seed.hex).map_err(|e| format!("{}: {e}", seed.name))?;
    let disks =
        dumps.into_iter().map(|(name, disk)| (name, Box::new(disk) as Box<dyn Store>)).collect();
    let graph = taste_stores(disks, &overrides);
    survey(&target::Target::title(seed.name), &graph, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_writes_nothing_to_measure() {
        let names: Vec<String> =
            simulated().unwrap().iter().map(|lab| lab.name().to_owned()).collect();
        assert!(names.len() > 4 && !names.contains(&"here".to_owned()), "{names:?}");
    }
}

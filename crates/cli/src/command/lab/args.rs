//! `lab`'s part of the command line.

use crate::shard::Shard;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Examples of `lab --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  trueline lab list
  trueline lab run --all --html labs.html
  trueline lab run 2009-gstripe
  trueline lab run --row raidtest-n1,raidtest-n64 --sweep 64 labs/2009-gstripe.toml
  trueline lab sweep 2009-gstripe --row raidtest-n1 --points 1000 > points.jsonl";

/// Examples of `lab sweep --help`.
const SWEEP_EXAMPLES: &str = "Examples:
  trueline lab sweep 2009-gstripe --row raidtest-n1 --points 1000 > points.jsonl
  trueline lab sweep --all --points 1000000 --shard 0/8 --into part-0.jsonl

Exit status:
  0  every point of the share has its line, or its reader wanted no more
  2  usage, a row or a point that could not be run, or an interrupt";

#[derive(Args)]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Run labs: published values beside ours
    #[command(after_help = EXAMPLES)]
    Run(Run),
    /// Run rows at many points of their drives' unknown parameters: a JSON line a point
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(SweepArgs),
    /// List the labs that come with the program, and their rows
    #[command(after_help = "Examples:\n  trueline lab list")]
    List,
}

/// Rows on the command line.
#[derive(Args)]
pub(crate) struct RowChoice {
    /// Lab files, or names that trueline lab list shows
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Run every simulated lab that comes with the program but seen-after
    #[arg(long)]
    pub all: bool,
    /// Run only the rows with these ids
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub row: Vec<String>,
}

#[derive(Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub rows: RowChoice,
    /// Points of a row besides the row as it stands, which is point 0; a quarter as many with other
    /// firmware
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    pub points: u32,
    /// Run one share of N of the points, from 0, by their numbers: I/N
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Write the lines to a file, behind those that it has: points that it has are not run again
    #[arg(long, value_name = "FILE")]
    pub into: Option<PathBuf>,
    /// Do not limit how many requests the rows of a lab may take together
    #[arg(long)]
    pub unlimited: bool,
}

#[derive(Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub rows: RowChoice,
    /// Points to try in the ranges of the drives' parameters, which give a ratio its range; a
    /// quarter as many with other firmware; 0: no range
    #[arg(
        long,
        value_name = "N",
        default_value_t = 16,
        value_parser = clap::value_parser!(u16).range(0..=4096),
    )]
    pub sweep: u16,
    /// Print one JSON document
    #[arg(long, group = "form")]
    pub json: bool,
    /// Print comma-separated values, one line a row
    #[arg(long, group = "form")]
    pub csv: bool,
    /// Also write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

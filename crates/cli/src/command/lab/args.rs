//! `lab`'s part of the command line.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Examples of `lab --help`.
pub(crate) const EXAMPLES: &str = "Examples:
  trueline lab list
  trueline lab run --all --html labs.html
  trueline lab run 2009-gstripe
  trueline lab run --row raidtest-n1,raidtest-n64 --sweep 64 labs/2009-gstripe.toml";

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
    /// List the labs that come with the program, and their rows
    #[command(after_help = "Examples:\n  trueline lab list")]
    List,
}

#[derive(Args)]
pub(crate) struct Run {
    /// Lab files, or names that trueline lab list shows
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Run every simulated lab that comes with the program
    #[arg(long)]
    pub all: bool,
    /// Run only the rows with these ids
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    pub row: Vec<String>,
    /// Points to try in the ranges of the drives' parameters, which give a ratio its interval; a
    /// quarter as many with other firmware; 0: no interval
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

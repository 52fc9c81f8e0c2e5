//! The options of `show`.

use crate::command::check::args::List;
use crate::disk_options::DiskOptions;
use crate::render::report::list::column;
use crate::target::{Named, named};
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  trueline show disk.img
  trueline show --picture /dev/sda
  trueline show --svg stack.svg ada1.img,ada2.img
  trueline show -b -o NAME,TYPE,START,SIZE disk.img";

/// The text behind the options of `show`.
pub(crate) fn after_help() -> String {
    format!("{EXAMPLES}\n\n{}", column::help())
}

#[derive(Args)]
pub(crate) struct Show {
    /// Disks or providers to show: DISK[,DISK...][#PROVIDER]
    #[arg(required = true, value_parser = named())]
    pub targets: Vec<Named>,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Draw it to scale
    #[arg(long, conflicts_with_all = ["json", "list"])]
    pub picture: bool,
    /// Draw it to scale into a file
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub svg: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, short = 'J', conflicts_with = "list")]
    pub json: bool,
    /// Say nothing of what could not be read; the exit status still tells
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub list: List,
}

//! `plan`'s part of the command line.

use crate::disk_options::{DiskOptions, parse_size};
use crate::names::listed;
use crate::target::Target;
use clap::Args;
use trueline_geom::plan::USES;

const EXAMPLES: &str = "Examples:
  trueline plan /dev/sdb --use xfs
  trueline plan --for ssd-16k --use luks+lvm+ext4
  trueline plan --for 512e --use md5x4:64k+luks+lvm+xfs
  trueline plan --for ssd-16k --use raidz2x6+postgres --json
  trueline plan --physical 4096+3584 --use ufs
  trueline plan --grain atomic=16k --physical 16k --use xfs+mysql
  trueline plan --use sd-card --size 64g";

#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct PlanArgs {
    /// DISK[,DISK...][#PROVIDER]; without it, a disk that the options describe
    pub target: Option<Target>,
    /// Layers from the bottom up, each a use from the list below
    #[arg(long = "use", value_name = "LAYER[+LAYER...]", required_unless_present = "list")]
    pub wanted: Option<String>,
    /// List the uses with their other forms, and nothing else
    #[arg(long, conflicts_with_all = ["wanted", "target"])]
    pub list: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Size of a disk that is only described [default: 1 TiB], or of the part of TARGET to use
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Examples, and every use.
fn help() -> String {
    format!("{EXAMPLES}\n\n{}", listed("Uses", USES.iter().map(|kind| (kind.name, kind.about))))
}

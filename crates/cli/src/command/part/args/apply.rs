//! The options of `part apply`.

use crate::disk_options::DiskOptions;
use crate::target::Target;
use crate::writing::WriteOptions;
use clap::Args;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  trueline part apply layout.toml disk.img
  trueline part apply --dry-run layout.toml /dev/sdb       the exact writes, and nothing written
  sfdisk -d /dev/sda | trueline part apply --sfdisk - disk.img
  printf 'label: gpt\\n,512MiB,U\\n,,L\\n' | trueline part apply --sfdisk - disk.img";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Apply {
    /// The layout is a script for sfdisk
    #[arg(long)]
    pub sfdisk: bool,
    /// Delete partitions that the layout does not name: what is in them is lost
    #[arg(long)]
    pub delete_others: bool,
    /// Write new tables over whatever is there: what is there is lost
    #[arg(long, visible_alias = "overwrite")]
    pub replace: bool,
    /// One JSON document: what was done, and the tables as they are in the end
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub write: WriteOptions,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// The layout, a file of TOML; -: from stdin
    pub layout: PathBuf,
    /// Disk or provider to write: DISK[,DISK...][#PROVIDER]
    pub target: Target,
}

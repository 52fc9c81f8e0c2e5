//! The options of `info`.

use crate::disk_options::DiskOptions;
use crate::target::Target;
use clap::Args;

#[derive(Args)]
pub(crate) struct Info {
    /// Disk or provider on it: DISK[,DISK...][#PROVIDER]
    pub target: Target,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

//! The options of `info`.

use crate::disk_options::DiskOptions;
use clap::Args;

#[derive(Args)]
pub(crate) struct Info {
    /// DISK[,DISK...][#PROVIDER]
    pub target: String,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

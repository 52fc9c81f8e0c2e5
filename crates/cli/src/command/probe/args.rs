//! The options of `probe`.

use crate::disk_options::{DiskOptions, parse_size};
use crate::target::Target;
use clap::Args;

pub(crate) const EXAMPLES: &str = "Examples:
  trueline probe /dev/sda                      reads alone: nothing is changed
  trueline probe /mnt/data                     writes to a scratch file in that directory
  trueline probe --destructive /dev/sdb        writes all over the drive
  trueline probe drive:wd10ears                a simulated drive
  trueline probe --seconds 600 --json /media/card";

/// Options and target of `probe`.
#[derive(Args)]
pub(crate) struct Probe {
    /// Device or file to read; directory to write a scratch file in; drive:MODEL[@SIZE]: a
    /// simulated drive
    pub target: Target,
    /// End after so many seconds, certain or not
    #[arg(
        long,
        value_name = "S",
        default_value = "120",
        value_parser = clap::value_parser!(u32).range(1..=86_400),
    )]
    pub seconds: u32,
    /// Write to the device or file itself: ALL OF ITS CONTENTS ARE LOST
    #[arg(long)]
    pub destructive: bool,
    /// Bytes of the scratch file in a directory [default: 1g, or a quarter of what is free]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// Seed of the places and their order
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
}

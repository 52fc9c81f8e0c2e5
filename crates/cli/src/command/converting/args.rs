//! The options of `convert`.

use crate::disk_options::DiskOptions;
use crate::target::Target;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// The two forms: the sectors are named, or a journal.
pub(crate) const USAGE: &str = "trueline convert {--sector-size N | --universal} [OPTIONS] TARGET
       trueline convert {--resume | --rollback} [JOURNAL] [OPTIONS] [TARGET]";

pub(crate) const EXAMPLES: &str = "Examples:
  trueline convert --sector-size 4096 -o new.img disk.img   a new image, for 4Kn drives
  trueline convert --sector-size 4096 --dry-run disk.img    what would change, or stands in the way
  trueline convert --sector-size 512 disk.img               in place, with a journal beside it
  trueline convert --universal -o both.img disk.img         tables that are right on both
  trueline convert --resume disk.img                        after an interruption
  trueline convert --rollback disk.img.journal              back to what it was

Tables and file systems that count in sectors are written anew; everything else stays at its byte. \
A file system that cannot be on the new sectors is named with its reason, and nothing is written.";

/// Options of which one is needed.
const WHITHER: [&str; 4] = ["sector_size", "universal", "resume", "rollback"];

#[derive(Args)]
#[command(group(ArgGroup::new("whither").args(WHITHER).required(true)))]
pub(crate) struct Convert {
    /// Logical sectors that the disk is to be right for
    #[arg(
        long,
        value_name = "N",
        value_parser = PossibleValuesParser::new(["512", "4096"])
            .map(|n| if n == "512" { 512_u64 } else { 4096 }),
    )]
    pub sector_size: Option<u64>,
    /// Write a GPT for sectors of 512 and one for 4096 bytes, of the same partitions; what is in
    /// them is made right for 4096, which the other takes too
    #[arg(long)]
    pub universal: bool,
    /// Write a new image, which must not exist yet, and leave TARGET as it is
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["resume", "rollback"])]
    pub output: Option<PathBuf>,
    /// Go on with the conversion of this journal, on the disk that it names or on TARGET. With a
    /// disk instead, the journal is sought: beside an image, and in the current directory
    #[arg(long, value_name = "JOURNAL", num_args = 0..=1)]
    #[allow(
        clippy::option_option,
        reason = "clap's form of an option whose value may be left out"
    )]
    pub resume: Option<Option<PathBuf>>,
    /// Take the conversion of this journal back: every byte as it was
    #[arg(long, value_name = "JOURNAL", num_args = 0..=1)]
    #[allow(
        clippy::option_option,
        reason = "clap's form of an option whose value may be left out"
    )]
    pub rollback: Option<Option<PathBuf>>,
    /// File for the journal [default: beside an image; for a device, in the current directory]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "rollback", "output"])]
    pub journal: Option<PathBuf>,
    /// Print what would be done; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write even if it is mounted or in use: what uses it may then destroy data
    #[arg(long)]
    pub allow_busy: bool,
    /// One JSON document: what was converted
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Disk or image to convert
    #[arg(required_unless_present_any = ["resume", "rollback"])]
    pub target: Option<Target>,
}

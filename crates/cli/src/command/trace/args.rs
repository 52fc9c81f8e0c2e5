//! The options of `trace`.

use crate::disk_options::{DiskOptions, parse_grain};
use crate::failure::Reason;
use crate::target::Target;
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) const EXAMPLES: &str = "Examples:
  trueline trace /dev/sda --seconds 10
  trueline trace /dev/nvme0n1 --top
  trueline trace --unit 16k /dev/sda --run 'make -j8'   what would a drive of 16 KiB units cost?
  trueline trace /dev/sda --seconds 60 --record day.trace
  trueline trace --replay day.trace disk.img            the same requests to another layout
  trueline trace --replay fio.log --unit 16k
  trueline trace --replay day.trace --drive qlc-16k,wd10ears --html day.html disk.img";

/// Options and target of `trace`.
#[derive(Args)]
pub(crate) struct Trace {
    /// Block device of this host to trace; with --replay, the disk that the requests are to
    #[arg(required_unless_present = "replay")]
    pub target: Option<Target>,
    /// Count the requests of a trace of blktrace, blkparse, fio (--write_iolog) or our own instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seconds", "run", "top", "record"])]
    pub replay: Option<PathBuf>,
    /// Show the time of simulated drives for the requests of --replay, as they are and with every
    /// layer on the grain
    #[arg(long, value_name = "MODEL,...", value_delimiter = ',', requires = "replay")]
    pub drive: Vec<String>,
    /// The unit of the drive to judge by, in the place of what it says, and where the first one
    /// begins on the drive, of a partition too
    #[arg(long, value_name = "N[+PHASE]", value_parser = parse_grain, conflicts_with = "physical")]
    pub unit: Option<(u64, u64)>,
    /// End after so many seconds; without it, Ctrl-C ends
    #[arg(long, value_name = "S", value_parser = parse_seconds)]
    pub seconds: Option<Duration>,
    /// Trace while CMD runs
    #[arg(long, value_name = "CMD")]
    pub run: Option<String>,
    /// Write the requests to a file that bench replay and --replay take
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Show the counts on the terminal, once a second
    #[arg(long, conflicts_with = "json")]
    pub top: bool,
    /// Show all reads and writes by size and alignment, not only those that miss
    #[arg(long, conflicts_with = "json")]
    pub histogram: bool,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Also write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    #[command(flatten)]
    pub disk: DiskOptions,
}

/// Parses a time in seconds, which may have a fraction: more than 0, and at most 10 years.
fn parse_seconds(text: &str) -> Result<Duration, Reason> {
    let seconds = text.parse::<f64>().ok().filter(|&seconds| seconds > 0.0 && seconds < 3.2e8);
    let seconds = seconds.ok_or("not a time in seconds: 10, 0.5")?;
    Ok(Duration::from_secs_f64(seconds))
}

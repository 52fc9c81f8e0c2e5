//! The options of `move`.

use crate::disk_options::DiskOptions;
use crate::target::Target;
use clap::{ArgGroup, Args};
use std::path::PathBuf;

/// The two forms: one of the three options is needed, and the target too but for --resume.
pub(crate) const USAGE: &str = "trueline move {--align | --to OFFSET} [OPTIONS] TARGET
       trueline move {--resume | --rollback} [JOURNAL] [OPTIONS] [TARGET]";

pub(crate) const EXAMPLES: &str = "Examples:
  trueline move --align disk.img#s1                   to the nearest boundary, with its contents
  trueline move --align disk.img                      all partitions of the disk, in one plan
  trueline move --align --dry-run disk.img            that plan, with a picture
  trueline move --to 1MiB disk.img#p2                 to this byte of the disk
  trueline move --align --journal /mnt/usb/sdb1.journal /dev/sdb#p1
  trueline move --align --dry-run disk.img#s1         what would be done
  trueline move --resume disk.img                     after an interruption
  trueline move --resume /mnt/usb/sdb1.journal        with this journal, on the disk that it names
  trueline move --rollback disk.img                   all partitions back to where they were

The partition keeps its size. Where its old and its new place overlap, a journal is kept until \
the move is done, in a file outside the disk that is changed. After an interruption, --resume \
continues where it stopped.";

/// Options of which one is needed.
const WHITHER: [&str; 4] = ["align", "to", "resume", "rollback"];

#[derive(Args)]
#[command(group(ArgGroup::new("whither").args(WHITHER).required(true)))]
pub(crate) struct Move {
    /// Move its start to the nearest place on the grain; of a disk, those of all partitions
    #[arg(long)]
    pub align: bool,
    /// Move its start to this byte of the disk, or of the set that the table is on; 2048s is sector
    /// 2048
    #[arg(long, value_name = "OFFSET")]
    pub to: Option<String>,
    /// Continue the interrupted move of this journal, on the disk that it names or on TARGET. With
    /// a disk instead (`--resume disk.img`), the journal is sought: beside an image, and in the
    /// current directory
    #[arg(long, value_name = "JOURNAL", num_args = 0..=1)]
    #[allow(
        clippy::option_option,
        reason = "clap's form of an option whose value may be left out"
    )]
    pub resume: Option<Option<PathBuf>>,
    /// Take the interrupted move of a whole disk back: every partition to the place it had. JOURNAL
    /// and TARGET as with --resume
    #[arg(long, value_name = "JOURNAL", num_args = 0..=1)]
    #[allow(
        clippy::option_option,
        reason = "clap's form of an option whose value may be left out"
    )]
    pub rollback: Option<Option<PathBuf>>,
    /// File for the journal [default: beside an image; for a device, in the current directory]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "rollback"])]
    pub journal: Option<PathBuf>,
    /// Copy only what the file systems in it use, by their own bitmaps
    #[arg(long, conflicts_with = "allow_busy")]
    pub used_only: bool,
    /// When it is done, discard what it left: a hole in an image, free blocks of a device
    #[arg(long)]
    pub discard: bool,
    /// Sectors of the disk that may be unreadable: 2048,4096-4103,8192+8, or a file with such lines
    /// or a map of ddrescue. Each is tried; what fails is zero at the new place. The journal keeps
    /// the list for --resume
    #[arg(long, value_name = "LIST")]
    pub skip_bad: Option<String>,
    /// Print what would be done, and the exact writes to tables; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write even if it is mounted or in use: what uses it may then destroy data
    #[arg(long)]
    pub allow_busy: bool,
    /// One JSON document: what was moved
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Partition to move, DISK[,DISK...]#PROVIDER; with --align a disk, for all that is on it
    #[arg(required_unless_present_any = ["resume", "rollback"])]
    pub target: Option<Target>,
}

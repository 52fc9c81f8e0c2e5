//! `mkfs`: file systems on the grain.

use crate::disk_options::DiskOptions;
use crate::target::Target;
use clap::{Args, ValueEnum};
use trueline_geom::format::{self, maker::Maker};

pub(crate) const EXAMPLES: &str = "Examples:
  trueline mkfs ext4 'disk.img#p2'
  trueline mkfs xfs --grain chunk=64k --grain full-stripe=192k 'disk.img#p2'
  trueline mkfs vfat --print 'disk.img#p1'            the command, not run
  trueline mkfs ufs 'ada1.img#s1a' -- -U -L data      newfs's own options
  trueline mkfs ext4 disk.img#p2 -- -L root -m 0      mke2fs's own, added to ours";

#[derive(Args)]
pub(crate) struct Mkfs {
    /// Type of the file system
    #[arg(value_enum, value_name = "TYPE")]
    pub kind: FileSystemKind,
    /// Provider to write: DISK[,DISK...][#PROVIDER]
    pub target: Target,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Print what would be run or made; change nothing
    #[arg(long)]
    pub print: bool,
    /// Print the exact writes; change nothing
    #[arg(long, conflicts_with = "print")]
    pub dry_run: bool,
    /// Make it although there is a table, a file system or a member of a set: that is lost
    #[arg(long)]
    pub overwrite: bool,
    /// Write even if it is mounted or in use: what uses it may then destroy data
    #[arg(long)]
    pub allow_busy: bool,
    /// Options of the file system's own mkfs
    #[arg(last = true, value_name = "OPTIONS")]
    pub own: Vec<String>,
}

/// A file system that `mkfs` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FileSystemKind {
    /// ext4, with the options of mkfs.ext4
    Ext4,
    /// XFS, with the options of mkfs.xfs
    Xfs,
    /// Btrfs, with the options of mkfs.btrfs
    Btrfs,
    /// FAT12, FAT16 or FAT32, by size, with the options of mkfs.vfat
    Vfat,
    /// exFAT, with the options of mkfs.exfat
    Exfat,
    /// NTFS, with the options of mkntfs
    Ntfs,
    /// Swap, with the options of mkswap
    Swap,
    /// UFS2, built in, with the options of newfs
    Ufs,
}

impl FileSystemKind {
    /// The kind as a format, with all that is known of it.
    pub(crate) fn contents(self) -> format::FormatKind {
        match self {
            FileSystemKind::Ext4 => format::ext::EXT4,
            FileSystemKind::Xfs => format::xfs::XFS,
            FileSystemKind::Btrfs => format::btrfs::KIND,
            FileSystemKind::Vfat => format::fat::KIND,
            FileSystemKind::Exfat => format::exfat::KIND,
            FileSystemKind::Ntfs => format::ntfs::KIND,
            FileSystemKind::Swap => format::swap::SWAP,
            FileSystemKind::Ufs => format::ufs::KIND,
        }
    }

    /// The tool that makes it; `None` for what is built in.
    pub(crate) fn maker(self) -> Option<&'static Maker> {
        self.contents().format.maker()
    }

    /// The name as typed.
    pub(crate) fn name(self) -> &'static str {
        self.contents().name
    }
}

//! `mkfs`: file systems on the grain.

use crate::disk_options::DiskOptions;
use clap::{Args, ValueEnum};

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
    pub kind: Kind,
    /// DISK[,DISK...][#PROVIDER]
    pub target: String,
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
pub(crate) enum Kind {
    /// ext4: mkfs.ext4's options
    Ext4,
    /// XFS: mkfs.xfs's options
    Xfs,
    /// Btrfs: mkfs.btrfs's options
    Btrfs,
    /// FAT12, FAT16 or FAT32, by size: mkfs.vfat's options
    Vfat,
    /// exFAT: mkfs.exfat's options
    Exfat,
    /// NTFS: mkntfs's options
    Ntfs,
    /// Swap: mkswap's options
    Swap,
    /// UFS2, built in: newfs's options
    Ufs,
}

impl Kind {
    /// Name of the type, as typed.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::Vfat => "vfat",
            Kind::Exfat => "exfat",
            Kind::Ntfs => "ntfs",
            Kind::Swap => "swap",
            Kind::Ufs => "ufs",
        }
    }
}

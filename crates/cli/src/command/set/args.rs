//! `stripe`, `mirror`, `concat`: the verbs of gstripe(8), gmirror(8) and gconcat(8) that need no
//! kernel.

use crate::disk_options::{DiskOptions, parse_size};
use crate::target::Target;
use crate::writing::WriteOptions;
use clap::{ArgAction, Args, Subcommand};

pub(crate) const STRIPE_EXAMPLES: &str = "Examples:
  trueline stripe label -s 16k data ada1.img ada2.img
  trueline stripe label data 'ada1.img#p1' 'ada2.img#p1'
  trueline show ada1.img,ada2.img                 what came of it
  trueline stripe dump ada1.img
  trueline stripe clear ada1.img ada2.img";

pub(crate) const MIRROR_EXAMPLES: &str = "Examples:
  trueline mirror label gm0 'ada1.img#p1' 'ada2.img#p1'
  trueline mirror label -b prefer gm0 'ada1.img#p1'
  trueline mirror dump 'ada1.img#p1'";

pub(crate) const CONCAT_EXAMPLES: &str = "Examples:
  trueline concat label joined 'ada1.img#p1' 'ada2.img#p1'
  trueline concat clear 'ada1.img#p1' 'ada2.img#p1'";

#[derive(Args)]
pub(crate) struct Stripe {
    #[command(subcommand)]
    pub verb: StripeVerb,
}

#[derive(Subcommand)]
pub(crate) enum StripeVerb {
    /// Make a set: write metadata into the last sector of every member
    #[command(disable_help_flag = true)]
    Label(StripeLabel),
    /// Remove a set's metadata from its members
    Clear(Clear),
    /// Print the metadata of members
    Dump(Dump),
}

#[derive(Args)]
pub(crate) struct StripeLabel {
    /// Bytes of one member before the next one's turn, a power of two
    #[arg(short = 's', value_name = "CHUNK", default_value = "65536", value_parser = parse_size)]
    pub chunk: u64,
    #[command(flatten)]
    pub label: Label,
}

#[derive(Args)]
pub(crate) struct Mirror {
    #[command(subcommand)]
    pub verb: MirrorVerb,
}

#[derive(Subcommand)]
pub(crate) enum MirrorVerb {
    /// Make a set: write metadata into the last sector of every member
    #[command(disable_help_flag = true)]
    Label(MirrorLabel),
    /// Remove a set's metadata from its members
    Clear(Clear),
    /// Print the metadata of members
    Dump(Dump),
}

#[derive(Args)]
pub(crate) struct MirrorLabel {
    /// Balance of reads among members: load, prefer, round-robin, split
    #[arg(short = 'b', value_name = "BALANCE", default_value = "load")]
    pub balance: String,
    /// With split, the size from which a read is split
    #[arg(short = 's', value_name = "SLICE", default_value = "4096", value_parser = parse_size)]
    pub slice: u64,
    /// Do not synchronise members after a crash
    #[arg(short = 'F')]
    pub no_failsync: bool,
    /// Do not synchronise stale members by itself
    #[arg(short = 'n')]
    pub no_autosync: bool,
    #[command(flatten)]
    pub label: Label,
}

#[derive(Args)]
pub(crate) struct Concat {
    #[command(subcommand)]
    pub verb: ConcatVerb,
}

#[derive(Subcommand)]
pub(crate) enum ConcatVerb {
    /// Make a set: write metadata into the last sector of every member
    #[command(disable_help_flag = true)]
    Label(Label),
    /// Remove a set's metadata from its members
    Clear(Clear),
    /// Print the metadata of members
    Dump(Dump),
}

#[derive(Args)]
pub(crate) struct Label {
    /// Store the members' names: FreeBSD then accepts them under these names alone
    #[arg(short = 'h')]
    pub hardcode: bool,
    /// Print a line for each member
    #[arg(short = 'v')]
    pub verbose: bool,
    /// Make it although members clash or hold something: what is on them is lost
    #[arg(long, visible_alias = "overwrite")]
    pub force: bool,
    #[command(flatten)]
    pub write: WriteOptions,
    #[command(flatten)]
    pub disk: DiskOptions,
    // -h is taken, as in gstripe(8).
    /// Print help of this command
    #[arg(long, action = ArgAction::Help)]
    pub help: Option<bool>,
    /// The name of the set, 15 bytes at most
    pub name: String,
    /// The members, in order: DISK[,DISK...][#PROVIDER]
    #[arg(required = true)]
    pub disks: Vec<Target>,
}

#[derive(Args)]
pub(crate) struct Clear {
    /// Print a line for each member
    #[arg(short = 'v')]
    pub verbose: bool,
    #[command(flatten)]
    pub write: WriteOptions,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Members of the set: DISK[,DISK...][#PROVIDER]
    #[arg(required = true)]
    pub disks: Vec<Target>,
}

#[derive(Args)]
pub(crate) struct Dump {
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
    /// Members to read: DISK[,DISK...][#PROVIDER]
    #[arg(required = true)]
    pub disks: Vec<Target>,
}

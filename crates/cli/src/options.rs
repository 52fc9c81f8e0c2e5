//! The command line, defined once: parsing, help, man pages and completions all come from here.

use crate::out::list::{self, Column};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::PathBuf;
use toml::Value;
use trueline_geom::finding::Severity;
use trueline_geom::profile;
use trueline_geom::topology::{Fact, Grain, Source, Trust, Why};

pub(crate) mod apply;
pub(crate) mod bench;
pub(crate) mod drives;
pub(crate) mod help;
pub(crate) mod lab;
pub(crate) mod mkfs;
pub(crate) mod moving;
mod names;
pub(crate) mod part;
pub(crate) mod plan;
pub(crate) mod serve;
pub(crate) mod sets;

/// Shows how a stack of block storage is laid out, whether every layer is on its grain, and what it costs where it is not; plans
/// and makes layouts that are.
#[derive(Parser)]
#[command(name = "trueline", version, about, max_term_width = 100, after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Options {
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value = "auto", help_heading = "Global options", display_order = 900)]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  trueline check                            every block device of this host
  trueline check disk.img                   an image, judged by 4096-byte units
  trueline check --for ssd-16k *.img        many, for a drive of 16 KiB units
  trueline show --picture /dev/sda          what is on it, to scale
  trueline explain TL0001                   a finding, and how to mend it
  trueline help targets                     how disks and partitions are named
  trueline plan --for ssd-16k --use xfs     what to tell every layer
  trueline part create -s gpt disk.img      a table: see trueline part --help
  trueline part add -t linux-data disk.img  the rest of it, on the grain
  trueline part apply layout.toml disk.img  or all of it at once
  trueline mkfs ext4 'disk.img#p1'          into the image, without root";

/// When to colour.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check hosts, devices and images: is every layer on its grain?
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Check),
    /// Print what is known of a disk or provider: sizes, sectors, and every grain with its source
    #[command(after_help = "Examples:\n  trueline info /dev/nvme0n1\n  trueline info 'disk.img#s1a'")]
    Info(Info),
    /// Show the stack on a disk: tables, partitions, file systems, free space
    #[command(
        after_help = "Examples:\n  trueline show disk.img\n  trueline show --picture /dev/sda\n  trueline show --svg stack.svg ada1.img,ada2.img"
    )]
    Show(Show),
    /// Show and edit partition tables, on the grain
    #[command(after_help = part::EXAMPLES)]
    Part(part::Part),
    /// Make a file system, laid out for the grains beneath it
    #[command(after_help = mkfs::EXAMPLES)]
    Mkfs(mkfs::Mkfs),
    /// Make striped sets (RAID 0), or take them apart: FreeBSD's gstripe
    #[command(after_help = sets::STRIPE_EXAMPLES)]
    Stripe(sets::Stripe),
    /// Make mirrored sets (RAID 1), or take them apart: FreeBSD's gmirror
    #[command(after_help = sets::MIRROR_EXAMPLES)]
    Mirror(sets::Mirror),
    /// Make sets of one member after another, or take them apart: FreeBSD's gconcat
    #[command(after_help = sets::CONCAT_EXAMPLES)]
    Concat(sets::Concat),
    /// Move a partition with all that is in it, so that it begins on the grain; what interrupts it loses nothing
    #[command(after_help = moving::EXAMPLES)]
    Move(moving::Move),
    /// Plan a layout: the parameters of every layer, what each costs, and the commands to type
    #[command(after_help = plan::help())]
    Plan(plan::Plan),
    /// List the simulated drives, their parameters and where each number comes from
    #[command(after_help = drives::EXAMPLES)]
    Drives(drives::Drives),
    /// Measure what misalignment costs: the same work aligned and not, on real and on simulated drives
    #[command(after_help = bench::help())]
    Bench(bench::Bench),
    /// Make published measurements again, on simulated drives: theirs beside ours
    #[command(after_help = lab::EXAMPLES)]
    Lab(lab::Lab),
    /// Serve a disk, a partition or a set as a block device
    #[command(after_help = serve::EXAMPLES)]
    Serve(serve::Serve),
    /// Explain a finding's rule, a profile or a word, or list them
    #[command(
        after_help = "Examples:\n  trueline explain\n  trueline explain TL0001\n  trueline explain ssd-16k\n  trueline explain straddle"
    )]
    Explain(Explain),
    /// Lay out the disks of the five seed documents in memory, check them, and write the report as a page
    #[command(after_help = "Examples:\n  trueline demo\n  trueline demo --html seeds.html")]
    Demo(Demo),
    /// Write the manual pages into a directory
    #[command(after_help = "Examples:\n  trueline man /usr/local/share/man/man1")]
    Man {
        /// The directory; it must exist
        dir: PathBuf,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  trueline completions bash > /etc/bash_completion.d/trueline\n  trueline completions zsh > ~/.zfunc/_trueline\n  trueline completions fish > ~/.config/fish/completions/trueline.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the help of a command, or a page on targets, grain or profiles
    #[command(after_help = "Examples:\n  trueline help part add\n  trueline help targets")]
    Help {
        /// A command and its verb, or targets, grain, profiles
        #[arg(value_name = "COMMAND|TOPIC")]
        words: Vec<String>,
    },
    /// Print what may stand in the place of the last word: what the completion scripts ask for
    #[command(hide = true)]
    Complete {
        /// The words behind the name of the program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
}

const CHECK_EXAMPLES: &str = "Examples:
  trueline check
  trueline check /dev/sda disk.img
  trueline check 'disk.img#s1a'
  trueline check --physical 4096+3584 wd10ears.img
  trueline check --for raid64kx4 volume.img
  trueline check ada1.img,ada2.img
  trueline check --from lsblk.json
  trueline check --from id-ns.json image.img
  lsblk -OJb | trueline check --from -
  trueline check --sarif *.img > images.sarif
  trueline check --recursive images --strict
  trueline check -n -o NAME,ALIGN,VERDICT disk.img

Exit status:
  0  nothing at or above --fail-on
  1  something was
  2  usage, or a target could not be read
  3  with --strict: something could not be known: contents that are not read, not recognised or not understood inside, or none at all";

/// The heading of options that say what a disk is.
const DISK: &str = "What the disk is (trueline help grain, help profiles)";

/// What to judge a disk by.
#[derive(Args, Clone, Default)]
pub(crate) struct DiskOptions {
    /// The drive it is, or is for
    #[arg(long = "for", value_name = "PROFILE", help = profiles_help(), help_heading = DISK)]
    pub profile: Option<String>,
    /// Its logical sector in bytes
    #[arg(long, value_name = "N", value_parser = parse_sector, help_heading = DISK)]
    pub logical: Option<u64>,
    /// Its read-modify-write unit, and where the first one begins
    #[arg(long, value_name = "N[+PHASE]", value_parser = parse_grain, help_heading = DISK)]
    pub physical: Option<(u64, u64)>,
    /// A boundary of its own: physical, preferred, optimal, chunk, full-stripe, erase, cluster, ...
    #[arg(long, value_name = "WHY=SIZE[+PHASE]", value_parser = WhyGrain::parse, help_heading = DISK)]
    pub grain: Vec<WhyGrain>,
    /// A key of the simulated drives' model, set to another value
    #[arg(long, value_name = "KEY=VALUE", value_parser = drives::parse_set, help_heading = DISK)]
    pub set: Vec<(String, Value)>,
}

impl DiskOptions {
    /// The options that were said, a word each, as a command line takes them.
    pub(crate) fn words(&self) -> Vec<String> {
        let at = |size: u64, phase: u64| if phase == 0 { size.to_string() } else { format!("{size}+{phase}") };
        let profile = self.profile.iter().map(|name| ["--for".into(), name.clone()]);
        let logical = self.logical.iter().map(|size| ["--logical".into(), size.to_string()]);
        let physical = self.physical.iter().map(|&(size, phase)| ["--physical".into(), at(size, phase)]);
        let grain = self.grain.iter().map(|g| ["--grain".into(), format!("{}={}", g.why.name(), at(g.size, g.phase))]);
        profile.chain(logical).chain(physical).chain(grain).flatten().collect()
    }
}

/// A boundary named on the command line.
#[derive(Clone, Copy)]
pub(crate) struct WhyGrain {
    pub(crate) why: Why,
    pub(crate) size: u64,
    pub(crate) phase: u64,
}

impl WhyGrain {
    /// `WHY=SIZE[+PHASE]`.
    pub(crate) fn parse(text: &str) -> Result<WhyGrain, String> {
        let (why, grain) = text.split_once('=').ok_or("write WHY=SIZE[+PHASE]: chunk=64k")?;
        let names = || Why::ALL.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
        let why = Why::ALL.into_iter().find(|w| w.name() == why).ok_or_else(|| format!("no purpose '{why}': {}", names()))?;
        if why == Why::Logical {
            return Err("the logical sector is said with --logical".into());
        }
        let (size, phase) = parse_grain(grain)?;
        Ok(WhyGrain { why, size, phase })
    }

    /// As a fact about a disk.
    pub(crate) fn fact(self) -> Option<Fact> {
        let grain = Grain::new(self.size, self.phase)?;
        Some(Fact { grain, why: self.why, source: Source::User, trust: Trust::Trusted })
    }
}

#[derive(Args)]
pub(crate) struct Check {
    /// Disks or images, DISK[,DISK...][#PROVIDER]; none: this host
    pub targets: Vec<OsString>,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Read a host's devices from a file of `lsblk -OJb`, or a drive from one of `nvme id-ns -o json`: with targets, the drive
    /// they are for; -: from stdin
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// The least severity that makes the exit status 1
    #[arg(long, value_name = "SEVERITY", value_enum, default_value = "warning")]
    pub fail_on: FailOn,
    /// Exit with 3 if something could not be known: what CI uses
    #[arg(long)]
    pub strict: bool,
    /// Also the images in this directory and in those beneath it
    #[arg(long, short, value_name = "DIR")]
    pub recursive: Vec<PathBuf>,
    /// Print nothing but what could not be read: the exit status tells
    #[arg(long, short, conflicts_with_all = ["form", "columns", "no_header", "bytes"])]
    pub quiet: bool,
    #[command(flatten)]
    pub list: List,
    #[command(flatten)]
    pub output: Output,
}

/// How to print a report.
#[derive(Args, Default)]
pub(crate) struct Output {
    /// One JSON document
    #[arg(long, short = 'J', group = "form")]
    pub json: bool,
    /// One JSON document a target, a line each
    #[arg(long, group = "form")]
    pub jsonl: bool,
    /// SARIF 2.1.0
    #[arg(long, group = "form")]
    pub sarif: bool,
    /// Prometheus text
    #[arg(long, group = "form")]
    pub prometheus: bool,
    /// Also write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Output {
    /// Whether a program reads it, which wants a document whatever happened.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.jsonl || self.sarif || self.prometheus
    }
}

/// A list in place of text: a line a provider.
#[derive(Args, Default)]
pub(crate) struct List {
    /// Print a list with these columns
    #[arg(long = "output", short = 'o', value_name = "COLUMNS", value_delimiter = ',', value_parser = Column::parse, help = columns_help())]
    pub columns: Vec<Column>,
    /// Print a list without its heading
    #[arg(long = "noheadings", short = 'n')]
    pub no_header: bool,
    /// Print a list with sizes in bytes
    #[arg(long, short)]
    pub bytes: bool,
}

impl List {
    /// Whether a list is wanted.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.columns.is_empty() || self.no_header || self.bytes
    }

    /// Its columns.
    pub(crate) fn columns(&self) -> Vec<Column> {
        if self.columns.is_empty() { list::usual() } else { self.columns.clone() }
    }
}

fn columns_help() -> String {
    let names: Vec<&str> = list::COLUMNS.iter().map(|column| column.name).collect();
    format!("Print a list with these columns: {}", names.join(", "))
}

/// A severity on the command line.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Note,
}

impl From<FailOn> for Severity {
    fn from(fail_on: FailOn) -> Severity {
        match fail_on {
            FailOn::Error => Severity::Error,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
        }
    }
}

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

#[derive(Args)]
pub(crate) struct Show {
    /// DISK[,DISK...][#PROVIDER]
    #[arg(required = true)]
    pub targets: Vec<OsString>,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Draw it to scale
    #[arg(long, conflicts_with = "json")]
    pub picture: bool,
    /// Draw it to scale into a file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// One JSON document
    #[arg(long, short = 'J')]
    pub json: bool,
    /// Say nothing of what could not be read: the exit status tells
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub list: List,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// A rule id, a profile or a word; none: list them
    pub rule: Option<String>,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Where to write the page
    #[arg(long, value_name = "FILE", default_value = "trueline-demo.html")]
    pub html: PathBuf,
    /// Without the labs of the documents
    #[arg(long)]
    pub short: bool,
}

fn profiles_help() -> String {
    let names: Vec<&str> = profile::PROFILES.iter().map(|p| p.name).collect();
    format!("The drive it is, or is for: {}, raidCHUNKxDISKS (raid64kx4: chunks of 64 KiB, 4 data disks)", names.join(", "))
}

/// The sectors that disks have: 512 to the largest that Linux takes.
fn parse_sector(text: &str) -> Result<u64, String> {
    let size = parse_size(text)?;
    if size.is_power_of_two() && (512..=65536).contains(&size) {
        Ok(size)
    } else {
        Err("a sector is a power of two from 512 to 65536".into())
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    profile::bytes(text).filter(|&n| n > 0).ok_or_else(|| "not a size: 512, 4096, 4k, 1MiB".into())
}

/// `SIZE[+PHASE]`.
fn parse_grain(text: &str) -> Result<(u64, u64), String> {
    let (size, phase) = text.split_once('+').unwrap_or((text, "0"));
    let (size, phase) = (parse_size(size)?, profile::bytes(phase).ok_or("not a phase: 3584")?);
    if phase < size { Ok((size, phase)) } else { Err(format!("the phase must be less than the size {size}")) }
}

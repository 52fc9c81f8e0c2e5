//! The command line, defined once: parsing, help, man pages and completions all come from here.

use crate::target::WhyGrain;
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use trueline_geom::finding::Severity;
use trueline_geom::profile;

/// See, prove, predict and repair how a stack of block storage is laid out.
#[derive(Parser)]
#[command(name = "trueline", version, about, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Options {
    /// When to colour the output
    #[arg(long, global = true, value_enum, default_value = "auto")]
    pub color: Color,
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "Examples:
  trueline check                          every block device of this host, from sysfs
  trueline check disk.img                 an image, judged by 4096-byte units
  trueline check --for ssd-16k *.img      many images, for a drive of 16 KiB units
  trueline show --picture /dev/sda        what is on it, to scale
  trueline explain TL0001                 what a finding means and how to mend it";

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
    /// Explain a finding's rule, or list all rules
    #[command(after_help = "Examples:\n  trueline explain\n  trueline explain TL0001")]
    Explain(Explain),
    /// Lay out the disks of the five seed documents in memory, check them, and write the report as a page
    #[command(after_help = "Examples:\n  trueline demo\n  trueline demo --html seeds.html")]
    Demo(Demo),
    /// Write the manual pages into a directory
    Man {
        /// The directory; it must exist
        dir: PathBuf,
    },
    /// Print a completion script for a shell
    #[command(after_help = "Examples:\n  trueline completions bash > /etc/bash_completion.d/trueline")]
    Completions {
        /// The shell
        shell: Shell,
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
  trueline check --sarif *.img > images.sarif

Exit status: 0 nothing at or above --fail-on; 1 something was; 2 usage, or a target could not be read;
3 with --strict, something could not be known.";

/// What to judge a disk by.
#[derive(Args, Clone, Default)]
pub(crate) struct DiskOptions {
    /// The drive it is, or is for
    #[arg(long = "for", value_name = "PROFILE", help = profiles_help())]
    pub profile: Option<String>,
    /// Its logical sector in bytes
    #[arg(long, value_name = "N", value_parser = parse_sector)]
    pub logical: Option<u64>,
    /// Its read-modify-write unit, and where the first one begins
    #[arg(long, value_name = "N[+PHASE]", value_parser = parse_grain)]
    pub physical: Option<(u64, u64)>,
    /// A boundary of its own: physical, preferred, optimal, chunk, full-stripe, erase, cluster, ...
    #[arg(long, value_name = "WHY=SIZE[+PHASE]", value_parser = WhyGrain::parse)]
    pub grain: Vec<WhyGrain>,
}

#[derive(Args)]
pub(crate) struct Check {
    /// Disks or images, DISK[,DISK...][#PROVIDER]; none: this host
    pub targets: Vec<String>,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Read a host's devices from a file: `lsblk -OJb` or `nvme id-ns -o json`
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// The least severity that makes the exit status 1
    #[arg(long, value_name = "SEVERITY", value_enum, default_value = "warning")]
    pub fail_on: FailOn,
    /// Exit with 3 if something could not be known
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub output: Output,
}

/// How to print a report.
#[derive(Args, Default)]
pub(crate) struct Output {
    /// One JSON document
    #[arg(long, group = "form")]
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
    pub targets: Vec<String>,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Draw it to scale
    #[arg(long, conflicts_with = "json")]
    pub picture: bool,
    /// Draw it to scale into a file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub(crate) struct Explain {
    /// A rule id; none: list them
    pub rule: Option<String>,
}

#[derive(Args)]
pub(crate) struct Demo {
    /// Where to write the page
    #[arg(long, value_name = "FILE", default_value = "trueline-demo.html")]
    pub html: PathBuf,
}

fn profiles_help() -> String {
    let names: Vec<&str> = profile::PROFILES.iter().map(|p| p.name).collect();
    format!("The drive it is, or is for: {}, raidCHUNKxDISKS (raid64kx4: chunks of 64 KiB, 4 data disks)", names.join(", "))
}

fn parse_size(text: &str) -> Result<u64, String> {
    profile::bytes(text).filter(|&n| n > 0).ok_or_else(|| "not a size: 512, 4096, 4k, 1MiB".into())
}

/// A logical sector: no kernel knows others.
fn parse_sector(text: &str) -> Result<u64, String> {
    let sector = parse_size(text)?;
    let known = sector.is_power_of_two() && (512..=64 << 10).contains(&sector);
    if known { Ok(sector) } else { Err("a sector is a power of two from 512 to 65536 bytes".into()) }
}

/// `SIZE[+PHASE]`.
pub(crate) fn parse_grain(text: &str) -> Result<(u64, u64), String> {
    let (size, phase) = text.split_once('+').unwrap_or((text, "0"));
    let (size, phase) = (parse_size(size)?, profile::bytes(phase).ok_or("not a phase: 3584")?);
    if phase < size { Ok((size, phase)) } else { Err(format!("the phase must be less than the size {size}")) }
}

//! The command line, defined once: parsing, help, man pages and completions all come from here.

use crate::args::on_demand::OnDemand;
use crate::command::{
    bench, check, config, converting, demo, drives, explain, info, lab, mkfs, moving, part, plan,
    probe, serve, set, show, trace,
};
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(crate) mod help;
pub(crate) mod on_demand;

/// Shows how a stack of block storage is laid out, whether every layer is on its grain, and what it
/// costs where it is not; plans and makes layouts that are.
#[derive(Parser)]
#[command(
    name = "trueline",
    version,
    about,
    max_term_width = 100,
    after_help = EXAMPLES,
    disable_help_subcommand = true,
)]
pub(crate) struct Options {
    /// When to colour the output
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "auto",
        help_heading = "Global options",
        display_order = 900
    )]
    pub color: Color,
    /// Read settings from this file in place of the usual ones; trueline config shows them
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        value_parser = path_of_file(),
        help_heading = "Global options",
        display_order = 901
    )]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Command,
}

/// The path of a file, for options that take no stream: `-` is refused, which other programs take
/// for one.
pub(crate) fn path_of_file() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(|path| match path == Path::new("-") {
        true => Err("it is a file, not a stream: ./- is one of that name"),
        false => Ok(path),
    })
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

/// Choice of `--color`: when the output is coloured.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Even into a file or a pipe
    Always,
    /// Not even on a terminal
    Never,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Check hosts, devices and images: is every layer on its grain?
    #[command(after_help = check::args::after_help())]
    Check(OnDemand<check::args::Check>),
    /// Print what is known of a disk or provider: sizes, sectors, and every grain with its source
    #[command(
        after_help = "Examples:\n  trueline info /dev/nvme0n1\n  trueline info 'disk.img#s1a'"
    )]
    Info(OnDemand<info::args::Info>),
    /// Show the stack on a disk: tables, partitions, file systems, free space
    #[command(after_help = show::args::after_help())]
    Show(OnDemand<show::args::Show>),
    /// Show and edit partition tables, on the grain
    #[command(after_help = part::args::EXAMPLES)]
    Part(OnDemand<part::args::Part>),
    /// Make a file system, laid out for the grains beneath it
    #[command(after_help = mkfs::args::EXAMPLES)]
    Mkfs(OnDemand<mkfs::args::Mkfs>),
    /// Make striped sets (RAID 0), or take them apart: FreeBSD's gstripe
    #[command(after_help = set::args::STRIPE_EXAMPLES)]
    Stripe(OnDemand<set::args::Stripe>),
    /// Make mirrored sets (RAID 1), or take them apart: FreeBSD's gmirror
    #[command(after_help = set::args::MIRROR_EXAMPLES)]
    Mirror(OnDemand<set::args::Mirror>),
    /// Make sets of one member after another, or take them apart: FreeBSD's gconcat
    #[command(after_help = set::args::CONCAT_EXAMPLES)]
    Concat(OnDemand<set::args::Concat>),
    /// Move a partition and its contents so that it begins on the grain; an interruption loses
    /// nothing
    #[command(override_usage = moving::args::USAGE, after_help = moving::args::EXAMPLES)]
    Move(OnDemand<moving::args::Move>),
    /// Convert a disk or an image between logical sectors of 512 and of 4096 bytes
    #[command(override_usage = converting::args::USAGE, after_help = converting::args::EXAMPLES)]
    Convert(OnDemand<converting::args::Convert>),
    /// Plan a layout: the parameters of every layer, what each costs, and the commands to type
    Plan(OnDemand<plan::args::PlanArgs>),
    /// List the simulated drives, their parameters and where each number comes from
    #[command(after_help = drives::args::EXAMPLES)]
    Drives(OnDemand<drives::args::Drives>),
    /// Measure what misalignment costs: the same work aligned and not, on real and on simulated
    /// drives
    Bench(OnDemand<bench::args::Bench>),
    /// Repeat published measurements on simulated drives, and compare the values
    #[command(after_help = lab::args::EXAMPLES)]
    Lab(OnDemand<lab::args::Lab>),
    /// Serve a disk, a partition or a set as a block device
    #[command(after_help = serve::args::EXAMPLES)]
    Serve(OnDemand<serve::args::Serve>),
    /// Find the units of a drive by measurement: size, where they begin, and how sure that is
    #[command(after_help = probe::args::EXAMPLES)]
    Probe(OnDemand<probe::args::Probe>),
    /// Count the requests that a device of this host gets: which miss the grain, and whose they are
    #[command(after_help = trace::args::EXAMPLES)]
    Trace(OnDemand<trace::args::Trace>),
    /// Show the settings, their values and where they come from
    #[command(after_help = config::args::EXAMPLES)]
    Config(OnDemand<config::args::ShowConfig>),
    /// Explain a finding's rule, a profile or a word, or list them
    #[command(
        after_help = "Examples:\n  trueline explain\n  trueline explain TL0001\n  trueline explain \
            ssd-16k\n  trueline explain straddle"
    )]
    Explain(OnDemand<explain::args::Explain>),
    /// Lay out the disks of the five seed documents in memory, check them, and write the report as
    /// a page
    #[command(after_help = "Examples:\n  trueline demo\n  trueline demo --html seeds.html")]
    Demo(OnDemand<demo::args::Demo>),
    /// Write the manual pages into a directory
    #[command(after_help = "Examples:\n  trueline man /usr/local/share/man/man1")]
    Man {
        /// The directory; it must exist
        dir: PathBuf,
    },
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  trueline completions bash > /etc/bash_completion.d/trueline\n  \
            trueline completions zsh > ~/.zfunc/_trueline\n  trueline completions fish > \
            ~/.config/fish/completions/trueline.fish"
    )]
    Completions {
        /// The shell that reads the completions
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

impl Command {
    /// True for what neither reads disks nor measures: where settings are wrong it goes on, since
    /// it helps to mend them.
    pub(crate) fn is_about_the_program(&self) -> bool {
        matches!(
            self,
            Command::Help { .. }
                | Command::Explain(_)
                | Command::Config(_)
                | Command::Man { .. }
                | Command::Completions { .. }
                | Command::Complete { .. }
        )
    }
}

//! The options of `check`, and those that it shares with `show`.

use crate::args::path_of_file;
use crate::config;
use crate::disk_options::DiskOptions;
use crate::fail_on::FailOn;
use crate::render::report::list;
use crate::render::report::list::column::{self, Column, NamedColumn};
use crate::shard::Shard;
use crate::style::Style;
use crate::target::{Named, named};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  trueline check
  trueline check /dev/sda disk.img
  trueline check 'disk.img#s1a'
  trueline check --physical 4096+3584 wd10ears.img
  trueline check --for raid64kx4 volume.img
  trueline check ada1.img,ada2.img
  trueline check --together members/*.img
  trueline check --from lsblk.json
  trueline check --from id-ns.json image.img
  lsblk -OJb | trueline check --from -
  trueline check --sarif *.img > images.sarif
  trueline check --gitlab -r out > gl-code-quality-report.json
  trueline check --recursive images --strict
  find /vm -name '*.qcow2' -print0 | trueline check --from - --rows > vm.jsonl
  trueline check -r /vm --follow --jsonl --into vm.jsonl --html vm.html
  trueline check -r s3://images/ --rows --into images.jsonl
  trueline check -r /vm --shard 0/8 --rows > part-0.jsonl
  trueline check -n -o NAME,ALIGN,VERDICT disk.img
  trueline check -o +GRAIN,RULES disk.img
  trueline check -P -o NAME,FSTYPE,START disk.img
  trueline check --alignment -r /vm
  trueline check --changed /var/lib/trueline.json
  trueline check --textfile /var/lib/prometheus/node-exporter/trueline-host.prom
  trueline check --nagios /dev/sda /dev/sdb
  trueline check --compat virt-alignment-scan disk.img

Exit status:
  0  nothing at or above --fail-on
  1  something was
  2  usage, or a target could not be read
  3  with --strict, and else 0: a target is `unknown`: contents that are not read, not recognised \
    or not understood inside, or none at all

With --changed 1 and 3 are of what is new.

Exit status with --nagios, and with it alone:
  0  OK
  1  WARNING: findings at or above --fail-on, and no error among them
  2  CRITICAL: an error
  3  UNKNOWN: usage, or a target could not be read; with --strict also a target that is `unknown`

Exit status with --compat virt-alignment-scan, and by that name:
  0  every partition begins on 64 KiB, or there is none
  1  usage, or a target could not be read
  2  one does not
  3  one does not even on 4 KiB";

/// The text behind the options of `check`.
pub(crate) fn after_help() -> String {
    format!("{EXAMPLES}\n\n{}", column::help())
}

#[derive(Args)]
pub(crate) struct Check {
    /// Disks or images, DISK[,DISK...][#PROVIDER]; without one, all disks of this host
    #[arg(value_parser = named())]
    pub targets: Vec<Named>,
    /// Treat all targets as one, as if joined by commas: members of a set, or physical volumes of a
    /// group
    #[arg(long, requires = "targets", conflicts_with = "recursive")]
    pub together: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Read from a file, or with - from stdin: targets, one a line or before a NUL each; or in
    /// place of this host the output of `lsblk -OJb`, or of `nvme id-ns -o json` of the drive that
    /// the images will be written to
    #[arg(long, value_name = "FILE")]
    pub from: Vec<PathBuf>,
    /// Check one share of N of the targets, from 0, by a hash of their names: I/N
    #[arg(long, value_name = "I/N", conflicts_with = "together")]
    pub shard: Option<Shard>,
    /// Write the lines of --jsonl or --rows to a file, behind those that it has: targets that have
    /// not changed since are not checked again
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["json", "sarif", "gitlab", "prometheus", "nagios", "compat"],
    )]
    pub into: Option<PathBuf>,
    /// Print only what differs from the state that earlier runs have left in a file, and replace
    /// it; for the exit status what is new counts
    #[arg(
        long,
        value_name = "FILE",
        value_parser = path_of_file(),
        conflicts_with_all = [
            "rows", "sarif", "gitlab", "prometheus", "textfile", "nagios", "compat", "into",
            "list", "alignment",
        ],
    )]
    pub changed: Option<PathBuf>,
    /// Exit with 1 at findings of this severity or worse, or never [default: warning]
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Exit with 3, instead of 0, if a target is `unknown`; for CI
    #[arg(
        long,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
    )]
    pub strict: Option<bool>,
    /// Also the images in this directory and in those beneath it, or the objects whose names begin
    /// so: s3://BUCKET/PREFIX
    #[arg(long, short, value_name = "DIR")]
    pub recursive: Vec<PathBuf>,
    /// Print only what could not be read; the exit status gives the verdict
    #[arg(
        long,
        short,
        conflicts_with_all = ["json", "sarif", "gitlab", "prometheus", "nagios", "list"],
    )]
    pub quiet: bool,
    #[command(flatten)]
    pub list: List,
    /// Print 1 or 0 for each VHD and VHDX, as Get-VHD's Alignment is
    #[arg(
        long,
        conflicts_with_all = ["form", "columns", "all_columns", "bytes", "pairs", "quiet"],
    )]
    pub alignment: bool,
    /// Print one line for Nagios, Icinga and their like, and exit with their statuses
    #[arg(long, group = "form", conflicts_with = "list")]
    pub nagios: bool,
    /// Print what another program prints, and exit with its statuses
    #[arg(long, value_name = "PROGRAM", value_enum, group = "form", conflicts_with = "list")]
    pub compat: Option<OtherProgram>,
    /// Write Prometheus text to NAME.prom in place of printing, for node_exporter's textfile
    /// collector: replaced whole, with the label check="NAME" and the time of the last success
    #[arg(long, value_name = "FILE", group = "form", conflicts_with_all = ["list", "into"])]
    pub textfile: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

/// Program whose output and exit statuses `--compat` has.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OtherProgram {
    /// The partitions of a guest, of guestfs-tools
    VirtAlignmentScan,
}

impl Check {
    /// The findings that count: by the command line, else by the settings.
    pub(crate) fn counted(&self) -> FailOn {
        let set = || config::load(None).config.fail_on.as_ref().map(|setting| setting.value);
        self.fail_on.or_else(set).unwrap_or_default()
    }

    /// True if what is unknown counts, by the command line or else by the settings.
    pub(crate) fn is_strict(&self) -> bool {
        let set = || config::load(None).config.strict.as_ref().map(|setting| setting.value);
        self.strict.or_else(set).unwrap_or_default()
    }

    /// True if a list is printed in place of text.
    pub(crate) fn prints_list(&self) -> bool {
        self.alignment || self.list.is_wanted()
    }
}

/// Form in which a report is printed.
#[derive(Args, Default)]
pub(crate) struct Output {
    /// Print one JSON document
    #[arg(long, short = 'J', group = "form", conflicts_with = "list")]
    pub json: bool,
    /// Print one JSON document per target, each on its own line
    #[arg(long, group = "form", conflicts_with = "list")]
    pub jsonl: bool,
    /// Print one flat JSON object per provider, each on its own line, with the same keys in all:
    /// for DuckDB, pandas and Spark
    #[arg(long, group = "form", conflicts_with = "list")]
    pub rows: bool,
    /// Print SARIF 2.1.0, for code scanning
    #[arg(long, group = "form", conflicts_with = "list")]
    pub sarif: bool,
    /// Print a Code Quality report of GitLab, for artifacts:reports:codequality
    #[arg(long, group = "form", conflicts_with = "list")]
    pub gitlab: bool,
    /// Print metrics in the text format of Prometheus
    #[arg(long, group = "form", conflicts_with = "list")]
    pub prometheus: bool,
    /// Also write one self-contained page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Output {
    /// True if a program reads the output: it gets a document whatever happened.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.json || self.sarif || self.gitlab || self.prometheus || self.form() != Form::Whole
    }

    /// The form, by when it is written.
    pub(crate) fn form(&self) -> Form {
        match (self.jsonl, self.rows) {
            (true, _) => Form::Lines,
            (_, true) => Form::Rows,
            _ => Form::Whole,
        }
    }
}

/// Form of a report, by when it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A document of all targets, at the end.
    Whole,
    /// A line for each target, as soon as those before it are there.
    Lines,
    /// A line for each provider, likewise.
    Rows,
}

/// A list in place of text: a line a provider.
#[derive(Args, Default)]
#[group(id = "list", multiple = true)]
pub(crate) struct List {
    /// Print a list with these columns; +COLUMNS adds them to the usual ones
    #[arg(
        long = "output",
        short = 'o',
        value_name = "COLUMNS",
        value_delimiter = ',',
        value_parser = NamedColumn::parse,
    )]
    pub columns: Vec<NamedColumn>,
    /// Print a list with all columns
    #[arg(long = "output-all", short = 'O', conflicts_with = "columns")]
    pub all_columns: bool,
    /// Print a list without its heading
    #[arg(long = "noheadings", short = 'n')]
    pub no_header: bool,
    /// Print a list with sizes in bytes
    #[arg(long, short)]
    pub bytes: bool,
    /// Print a list as KEY="value" words, which a shell can evaluate
    #[arg(long, short = 'P')]
    pub pairs: bool,
}

impl List {
    /// True if a list is asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        let is_chosen = !self.columns.is_empty() || self.all_columns || self.pairs;
        is_chosen || self.no_header || self.bytes
    }

    /// The columns of the list, each once. A `+` before the first one adds them to the usual ones.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let is_own = self.columns.first().is_some_and(|named| !named.is_added);
        let begin = match (self.all_columns, is_own) {
            (true, _) => column::COLUMNS.to_vec(),
            (_, true) => Vec::new(),
            _ => column::usual(),
        };
        let mut columns: Vec<Column> = Vec::new();
        for column in begin.into_iter().chain(self.columns.iter().map(|named| named.column)) {
            if columns.iter().all(|own| own.name != column.name) {
                columns.push(column);
            }
        }
        columns
    }

    /// The manner in which it is written on standard output.
    pub(crate) fn manner(&self) -> list::Manner {
        list::Manner {
            pairs: self.pairs,
            header: !self.no_header,
            bytes: self.bytes,
            width: Style::of_stdout().width,
        }
    }
}

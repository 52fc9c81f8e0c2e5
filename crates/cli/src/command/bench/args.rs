//! `bench`'s part of the command line.

use crate::disk_options::{DiskOptions, parse_size};
use crate::failure::Reason;
use crate::names::listed;
use crate::target::Target;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use toml::{Table, Value};
use trueline_geom::base::size;
use trueline_host::engine::Choice;
use trueline_lab::layer::LAYERS;
use trueline_lab::workload::{Parameters, WORKLOADS, Way, tree};

const EXAMPLES: &str = "Examples:
  trueline bench random-write drive:md                    aligned, and a sector further
  trueline bench random-write --buffered drive:md         through the page cache
  trueline bench random-read --offset 0,1,7 --qd 32 /dev/sdb
  trueline bench dd --bs 64k --count 1000 disk.img
  trueline bench dd --write --destructive --seconds 10 /dev/sdb
  trueline bench latency /dev/sdb '/dev/sdb#p1'           what a layer adds
  trueline bench latency md:1m=disk.img 'md:1m=disk.img#s1'   what our own layers add, in memory
  trueline bench random-read --qd 32 nbd://localhost/disk   over the network
  trueline bench tree /mnt/aligned /mnt/off               two file systems, each in a directory
  trueline bench tree --host openbsd-ffs drive:wd10ears   a simulated file system
  trueline bench raidtest -r -n 64 --bs 16k /dev/sdb
  trueline bench replay --trace log.blkparse drive:md
  trueline bench random-write --json drive:md@8g";

/// A string and not documentation: rustdoc takes `[@` for a link.
const TARGETS: &str = "DISK[,DISK...][#PROVIDER]; drive:MODEL[@SIZE]: a simulated drive; \
    md:SIZE[=IMAGE]: memory; nbd://HOST/EXPORT: an export; of files a directory";

#[derive(Args)]
#[command(after_help = help())]
pub(crate) struct Bench {
    /// Workload to run, one of those listed below
    #[arg(value_name = "WORKLOAD")]
    pub workload: String,
    #[arg(required = true, value_name = "TARGET", help = TARGETS)]
    pub targets: Vec<Target>,
    /// Move every request by so many sectors of the target, one variant each [default: 0,1; of
    /// several targets: 0]
    #[arg(long, value_name = "SECTORS,...", value_delimiter = ',')]
    pub offset: Vec<u64>,
    /// Requests in flight, processes of raidtest
    #[arg(long, short = 'n', value_name = "N", visible_alias = "processes")]
    pub qd: Option<usize>,
    /// Bytes of a request: 4k, 64k; the list below has the defaults
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub bs: Option<u64>,
    /// Requests of a run
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub count: Option<u64>,
    /// Seconds of a run
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Runs of every variant
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        value_parser = clap::value_parser!(u32).range(1..=10_000),
    )]
    pub runs: u32,
    /// Runs of every variant that are done first and not counted [default: 1; in virtual time 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1000))]
    pub warmup: Option<u32>,
    /// Seconds of rest before a run that writes to files, devices or exports, after a flush
    /// [default: as long as the run before, at most 1]
    #[arg(long, value_name = "S", value_parser = parse_rest)]
    pub rest: Option<Duration>,
    /// Through the page cache of the host, every write waiting for the medium (O_SYNC), instead of
    /// past it (O_DIRECT)
    #[arg(long)]
    pub buffered: bool,
    /// With --buffered: leave in the page cache what it has when a run begins, instead of emptying
    /// it
    #[arg(long, requires = "buffered")]
    pub cached: bool,
    /// Interface to files and devices [default: io_uring where the kernel has it, else system
    /// calls]
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
    /// On a simulated drive: the host, and its file system [default of tree, copy, bonnie:
    /// linux-writeback]
    #[arg(long, value_enum)]
    pub host: Option<Host>,
    /// On a simulated drive: a layer that requests go through, with its keys:
    /// qcow2:cluster=64k,backing=1g; of several the outermost first
    #[arg(long, value_name = "LAYER[:KEY=VALUE,...]", value_parser = parse_layer)]
    pub through: Vec<(String, Table)>,
    /// Simulated drives: ns of the processor for a request at every layer below its provider
    #[arg(long, value_name = "NS", default_value = "0")]
    pub layer_ns: u32,
    /// tree: files [default: 4000]; bonnie: files in units of 1024 [default: 16]
    #[arg(long, value_name = "N")]
    pub files: Option<u64>,
    /// copy, bonnie: bytes of the file [default: 1g]; --host freebsd-ufs: of the file [default: 4g,
    /// or what fits]; mkfs: of the file system
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub size: Option<u64>,
    /// tree: the phase that is measured [default: unpack]
    #[arg(long, value_enum)]
    pub phase: Option<Phase>,
    /// tree: the names and sizes of a tarball that is not compressed
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub tar: Option<PathBuf>,
    /// copy: until everything is on the medium (fsync), rather than until the program ends
    #[arg(long)]
    pub sync: bool,
    /// Make reads only, no writes
    #[arg(long, short = 'r', conflicts_with = "write")]
    pub read: bool,
    /// Make writes only, no reads
    #[arg(long, short = 'w')]
    pub write: bool,
    /// raidtest: the requests of a file that its genfile, or --genfile, made
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bs", "trace"])]
    pub requests: Option<PathBuf>,
    /// raidtest: write --count requests for the first target into a new file, and run nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["requests", "trace"])]
    pub genfile: Option<PathBuf>,
    /// replay: the trace, of blktrace, blkparse, fio (--write_iolog) or our own
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// replay: ask for requests when they were asked, not as fast as they are answered
    #[arg(long)]
    pub timed: bool,
    /// replay: fold requests past the end of the target into it
    #[arg(long)]
    pub wrap: bool,
    /// Write although there is a table, a file system, a member of a set, or anything but zeros:
    /// that is lost
    #[arg(long)]
    pub destructive: bool,
    /// Write even if it is mounted or in use: what uses it may then destroy data
    #[arg(long)]
    pub allow_busy: bool,
    /// Seed of random numbers, and of where the platters of simulated drives stand
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    #[command(flatten)]
    pub disk: DiskOptions,
    /// Print one JSON document
    #[arg(long, group = "form")]
    pub json: bool,
    /// Print comma-separated values, one line a run
    #[arg(long, group = "form")]
    pub csv: bool,
}

/// The longest rest before a run in seconds, an hour.
const LONGEST_REST: f64 = 3600.0;

/// Parses seconds of rest.
fn parse_rest(text: &str) -> Result<Duration, Reason> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=LONGEST_REST).contains(seconds));
    seconds
        .map(Duration::from_secs_f64)
        .ok_or_else(|| format!("not seconds from 0 to {LONGEST_REST}: 0.5").into())
}

/// Parses a layer and its keys: sizes, `true`, `false` and words.
fn parse_layer(text: &str) -> Result<(String, Table), Reason> {
    let (name, keys) = text.split_once(':').unwrap_or((text, ""));
    let mut table = Table::new();
    for key in keys.split(',').filter(|key| !key.is_empty()) {
        let (key, value) = key
            .split_once('=')
            .ok_or_else(|| Reason::from(format!("{key}: not a key and its value: cluster=64k")))?;
        // Unlike a size, a place may be 0.
        let size = size::bytes(value).and_then(|size| i64::try_from(size).ok());
        let value = match (size, value) {
            (Some(size), _) => Value::Integer(size),
            (None, "true" | "false") => Value::Boolean(value == "true"),
            (None, word) => Value::String(word.to_owned()),
        };
        if table.insert(key.to_owned(), value).is_some() {
            return Err(Reason(format!("{key}: given twice")));
        }
    }
    Ok((name.to_owned(), table))
}

impl Bench {
    /// Parameters of the workload, for a variant moved by `offset` bytes.
    pub(crate) fn parameters(&self, offset: u64) -> Parameters {
        let op = match (self.read, self.write) {
            (true, _) => Some(Way::Read),
            (_, true) => Some(Way::Write),
            (false, false) => None,
        };
        Parameters {
            offset,
            bs: self.bs,
            qd: self.qd,
            count: self.count,
            seconds: self.seconds,
            op,
            file: self.requests.clone().or_else(|| self.trace.clone()),
            timed: self.timed,
            wrap: self.wrap,
            sync: self.buffered || self.sync,
            files: self.files,
            size: self.size,
            phase: self.phase.map(Phase::into),
            ..Parameters::default()
        }
    }
}

/// I/O engine for files and devices.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Engine {
    /// io_uring; an error where this kernel has none
    Ring,
    /// One system call a request, one request at a time
    Sync,
}

impl From<Engine> for Choice {
    fn from(engine: Engine) -> Choice {
        match engine {
            Engine::Ring => Choice::Ring,
            Engine::Sync => Choice::Sync,
        }
    }
}

/// Host, with its page cache and file system, between files and a simulated drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    /// Linux 2.6.31: ext2 with blocks of 4 KiB, through the page cache; 8 GiB of memory
    #[default]
    LinuxWriteback,
    /// OpenBSD 4.6: FFS of newfs -f 2048 -b 16384, no soft updates; 332 MiB of buffers, 64 writes
    /// in flight
    OpenbsdFfs,
    /// FreeBSD 8: one large file on an empty UFS2 of blocks of 16 KiB, for workloads of blocks;
    /// requests in the order of C-LOOK
    FreebsdUfs,
}

impl Host {
    /// Name of the host, as `--host` spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Host::LinuxWriteback => "linux-writeback",
            Host::OpenbsdFfs => "openbsd-ffs",
            Host::FreebsdUfs => "freebsd-ufs",
        }
    }
}

/// Phase of `tree` that is measured; the phases before it run too.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Phase {
    /// As tar makes it
    Unpack,
    /// Copy the tree, as cp -r
    Copy,
    /// Delete the tree, as rm -r
    Delete,
}

impl From<Phase> for tree::Phase {
    fn from(phase: Phase) -> tree::Phase {
        match phase {
            Phase::Unpack => tree::Phase::Unpack,
            Phase::Copy => tree::Phase::Copy,
            Phase::Delete => tree::Phase::Delete,
        }
    }
}

/// Examples, and every workload with its title.
fn help() -> String {
    format!(
        "{EXAMPLES}\n\n{}\n\n{}",
        listed("Workloads", WORKLOADS.iter().map(|kind| (kind.name, kind.title))),
        listed("Layers of --through", LAYERS.iter().map(|kind| (kind.name, kind.title)))
    )
}

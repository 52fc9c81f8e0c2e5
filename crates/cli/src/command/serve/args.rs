//! The options of `serve`.

use crate::disk_options::DiskOptions;
use crate::failure::Reason;
use crate::log::LogForm;
use crate::target::Target;
use clap::{Args, ValueEnum};
use nbd::Network;
use std::path::PathBuf;
use trueline_geom::class::nop::fault::Rule;
use trueline_serve::export::Range;
use trueline_serve::layer::emulated::Speed;
use trueline_serve::layer::overlay::OverlayStorage;

pub(crate) mod hints;
pub(crate) mod nbd;
mod overlay;
mod range;

pub(crate) const EXAMPLES: &str = "Examples:
  trueline serve disk.img --nbd unix:/run/disk.sock
  trueline serve 'disk.img#s1a' --run 'nbdcopy \"$uri\" copy.img'
  trueline serve --read-only ada1.img,ada2.img#stripe/data --nbd tcp:127.0.0.1:10809
  trueline serve disk.img --fuse mnt --run 'mkfs.ext4 \"$file\"'
  trueline serve md:1g --run 'nbdinfo \"$uri\"'
  trueline serve --emulate drive:wd10ears@64g --nbd unix:s
  trueline serve --emulate --drive qlc-16k --speed 0.02 disk.img#p1 --nbd unix:s --record run.trace
  trueline serve --overlay mem --emulate --drive wd10ears prod.img --nbd unix:s
  trueline serve --fault 'write:torn,every=1000' --fault 'read:error=eio,probability=1%' disk.img \
    --nbd unix:s
  trueline serve --strict disk.img --run 'mkfs.ext4 ...; fsck ...'
  trueline serve disk.img --nbd unix:s --top
  trueline serve disk.img --nbd unix:s --metrics 9100
  trueline serve disk.img --nbd unix:s --fork --pidfile s.pid --log-format json 2>serve.log

Exit status:
  0  it was told to end, and all is written
  1  with --strict: a request was refused
  2  usage, or it could not serve, or not all is written
With --run it is that of the command, where that is not 0.";

/// Options and target of `serve`.
#[derive(Args)]
pub(crate) struct Serve {
    /// Disk or provider to serve: DISK[,DISK...][#PROVIDER]
    pub target: Target,
    #[command(flatten)]
    pub network: Network,
    /// Mount exports as files. On a directory: one per provider, `disk` for TARGET. On a file:
    /// TARGET alone
    #[arg(long, value_name = "MOUNTPOINT")]
    pub fuse: Option<PathBuf>,
    /// Serve a block device of this kernel, by its ublk driver
    #[arg(long)]
    pub ublk: bool,
    /// Refuse every write of a client
    #[arg(long, short)]
    pub read_only: bool,
    /// Leave the target unchanged: writes go to a sparse file, which keeps them for the next time,
    /// or to memory (mem) until the server ends
    #[arg(long, value_name = "FILE|mem", value_parser = overlay::parse)]
    pub overlay: Option<OverlayStorage>,
    /// Serve LEN bytes of the target from byte N on, and nothing else; without LEN, to the end of
    /// the target
    #[arg(long, value_name = "N[+LEN]", value_parser = range::parse)]
    pub offset: Option<Range>,
    /// Refuse writes and zeros (with `all`, reads too) that are not whole units of the grain; the
    /// exit status is 1 if a request was refused
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "writes",
    )]
    pub strict: Option<Strict>,
    /// Write the process id to this file once it serves; the file is removed at the end
    #[arg(long, value_name = "FILE")]
    pub pidfile: Option<PathBuf>,
    /// End when the process that started it ends
    #[arg(long)]
    pub exit_with_parent: bool,
    /// Serve in the background: this process ends as soon as clients can connect, with status 0
    #[arg(long, conflicts_with_all = ["exit_with_parent", "run", "top"])]
    pub fork: bool,
    /// Form of the lines on stderr: for people, or a JSON object each
    #[arg(long, value_name = "FORM", value_enum, default_value = "text", conflicts_with = "top")]
    pub log_format: LogFormat,
    /// Serve while CMD runs. It finds the export in $uri, $file (--fuse) or $device (--ublk).
    /// Without --nbd, --fuse and --ublk the export is on a temporary socket
    #[arg(long, value_name = "CMD")]
    pub run: Option<String>,
    /// Serve what is mounted or in use
    #[arg(long)]
    pub allow_busy: bool,
    /// Read and write files and devices past the page cache (O_DIRECT); a request of part of
    /// a unit reads the unit, changes it and writes it back
    #[arg(long)]
    pub direct: bool,
    /// Delay every request by the time that the target's simulated drives take for it
    #[arg(long)]
    pub emulate: bool,
    /// Model of simulated drive that --emulate uses for every disk; trueline drives lists them
    #[arg(long, value_name = "MODEL[@SIZE]", requires = "emulate")]
    pub drive: Option<String>,
    /// Speed of emulated drives, as a factor: 10, 0.5
    #[arg(long, value_name = "N", value_parser = speed, requires = "emulate", default_value = "1")]
    pub speed: Speed,
    /// Record the requests in a file, as a trace for bench replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Make requests fail or wait: OP:WHAT[,WHEN...], as in write:error=enospc,after=1000
    #[arg(long, value_name = "SPEC", value_parser = Rule::parse)]
    pub fault: Vec<Rule>,
    /// Seed of faults, and of where the platters of emulated drives stand
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Show requests, and which of them miss the grain, once a second on a terminal
    #[arg(long, conflicts_with = "no_counters")]
    pub top: bool,
    /// Serve a live page, and Prometheus text at /metrics, on PORT of this machine alone,
    /// ADDRESS:PORT or NAME:PORT
    #[arg(long, value_name = "WHERE", value_parser = metrics, conflicts_with = "no_counters")]
    pub metrics: Option<(String, u16)>,
    /// Print the counters as one JSON document at the end, instead of the summary
    #[arg(long, conflicts_with_all = ["no_counters", "top"])]
    pub json: bool,
    /// Count nothing, and print no summary
    #[arg(long)]
    pub no_counters: bool,
    #[command(flatten)]
    pub disk: DiskOptions,
}

/// Form of the lines on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people to read
    Text,
    /// JSON objects for programs, one a line
    Json,
}

impl LogFormat {
    /// The form of the lines of this process.
    pub(crate) fn form(self) -> LogForm {
        match self {
            LogFormat::Text => LogForm::Text,
            LogFormat::Json => LogForm::Json,
        }
    }
}

/// Requests that `--strict` refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Strict {
    /// Writes and requests for zeros
    Writes,
    /// Reads too, besides writes and zeros
    All,
}

fn speed(text: &str) -> Result<Speed, Reason> {
    Speed::parse(text).ok_or_else(|| {
        Reason(format!("'{text}' is not a speed: write 10, or 0.5, from 0.001 to 1000"))
    })
}

/// Parses the address of the page: PORT, ADDRESS:PORT or NAME:PORT.
fn metrics(text: &str) -> Result<(String, u16), Reason> {
    let (host, port) = nbd::address_and_port(text);
    let port = port
        .and_then(|port| port.parse().ok())
        .filter(|_| !host.is_empty() && !host.contains(['[', ']', '/']));
    // `localhost` is, like a port alone, the one address that every browser tries.
    let host = if host == "localhost" { "127.0.0.1" } else { host };
    let wrong = || {
        Reason(format!(
            "'{text}' is neither PORT nor ADDRESS:PORT: 9100, 127.0.0.1:9100, [::]:9100, disks.example.org:9100"
        ))
    };
    port.map(|port| (host.to_owned(), port)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_page_are_read() {
        for (text, host, port) in [
            ("9100", "127.0.0.1", 9100),
            ("localhost:0", "127.0.0.1", 0),
            ("0.0.0.0:80", "0.0.0.0", 80),
            ("[::1]:9100", "::1", 9100),
            ("disks.example.org:9100", "disks.example.org", 9100),
        ] {
            assert_eq!(metrics(text), Ok((host.to_owned(), port)), "{text}");
        }
        for wrong in [
            "",
            "nowhere",
            ":9100",
            "::1",
            "70000",
            "host:",
            "host:x",
            "http://host:1",
            "[::1",
            "[::1]",
        ] {
            assert!(metrics(wrong).is_err(), "{wrong}");
        }
    }
}

//! The workloads, in the order in which they are listed. Each is written once, against a rig or a file system, and cannot know whether
//! time is real.
//!
//! # Adding one
//! One file, a `mod` line, a line in [`WORKLOADS`].

use crate::error::Error;
use crate::files::Files;
use crate::rig::Rig;
use crate::run::Run;
use crate::streams::{self, Ask, Limit};
use serde::Deserialize;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use trueline_geom::base::topology::is_whole;

pub mod bonnie;
pub mod copy;
pub mod dd;
pub mod fill;
pub mod glibc;
pub mod innodb;
pub mod latency;
pub mod mkfs;
pub mod raidtest;
pub mod random;
pub mod replay;
mod steady;
pub mod tree;

/// Every workload.
pub const WORKLOADS: &[Kind] = &[
    dd::KIND,
    random::READ,
    random::WRITE,
    raidtest::KIND,
    latency::KIND,
    fill::KIND,
    innodb::KIND,
    replay::KIND,
    tree::KIND,
    copy::KIND,
    mkfs::KIND,
    bonnie::KIND,
];

/// The workload of that name.
pub fn named(name: &str) -> Option<&'static Kind> {
    WORKLOADS.iter().find(|kind| kind.name == name)
}

/// What a workload is, before it is given parameters.
pub struct Kind {
    /// Its name on the command line and in labs.
    pub name: &'static str,
    /// In a line.
    pub title: &'static str,
    /// What makes it.
    pub needs: Needs,
}

/// What a workload runs on.
pub enum Needs {
    /// Blocks of a provider.
    Blocks(fn(&Parameters) -> Result<Box<dyn Blocks>, Error>),
    /// A file system.
    Files(fn(&Parameters) -> Result<Box<dyn OnFiles>, Error>),
}

/// A workload of files with its parameters.
pub trait OnFiles {
    /// Operations of one run, for a bar.
    fn extent(&self) -> u64;

    /// Runs once in an empty directory, and takes away what it made. `seed` decides what is random.
    fn run(&self, files: &mut dyn Files, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error>;
}

/// A workload of blocks with its parameters.
pub trait Blocks {
    /// Whether it writes.
    fn writes(&self) -> bool;

    /// Requests in flight, the most.
    fn depth(&self) -> usize;

    /// Bytes of the largest request.
    fn largest(&self) -> u64;

    /// Requests of one run on a provider of `length` bytes, for a bar and for refusing before anything is begun; `None`
    /// for what only time ends.
    fn extent(&self, length: u64) -> Option<u64>;

    /// What is to be known of what it asks for, in words.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Runs once. `seed` decides what is random; every variant of a run is given the same.
    fn run(&self, rig: &mut dyn Rig, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error>;
}

/// Who looks on: told how many requests were asked for so far, before every one; `false` ends the run.
pub type Watch<'a> = dyn FnMut(u64) -> bool + 'a;

/// Parameters of every workload; what is not said is each workload's own.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parameters {
    /// Bytes that every request is moved by: 0 is aligned.
    pub offset: u64,
    /// Bytes of a request.
    pub bs: Option<u64>,
    /// Requests in flight.
    pub qd: Option<usize>,
    /// Requests of a run.
    pub count: Option<u64>,
    /// Seconds of a run, instead.
    pub seconds: Option<f64>,
    /// Read or write, where the workload does either.
    pub op: Option<Way>,
    /// The requests of `raidtest`, the trace of `replay`.
    pub file: Option<PathBuf>,
    /// Whether `replay` asks for requests when they were asked, not as fast as they are answered.
    pub timed: bool,
    /// Whether `replay` folds what lies past the target into it.
    pub wrap: bool,
    /// Who says where random requests go.
    pub generator: Generator,
    /// Whether a write is done only when it is on the medium, as with `O_SYNC`.
    pub sync: bool,
    /// Bytes between the places that random requests begin at, a request's own if not said: 4096 under requests of 16384 is what a file
    /// system of blocks of 4096 makes of such pages.
    pub grid: Option<u64>,
    /// Blocks that random requests fall on, from the first; all that there are if not said.
    pub blocks: Option<u64>,
    /// Bytes of a file, of the file system that is made.
    pub size: Option<u64>,
    /// Files.
    pub files: Option<u64>,
    /// Files of a directory.
    pub per_directory: Option<u64>,
    /// The median and the mean size of files, in bytes.
    pub median: Option<f64>,
    /// See `median`.
    pub mean: Option<f64>,
    /// What is measured of what is done to a tree.
    pub phase: Option<tree::Phase>,
    /// Bytes a second that come from where something is copied from.
    pub source_rate: Option<u64>,
    /// ns that the program computes for a file.
    pub think_ns: Option<u64>,
    /// The tree, instead of one from a seed.
    #[serde(skip)]
    pub entries: Option<std::sync::Arc<Vec<tree::plan::Entry>>>,
}

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// From the medium.
    Read,
    /// To the medium.
    Write,
}

/// Where random numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// `SplitMix64` of the run's seed.
    #[default]
    Seeded,
    /// random(3) of the GNU C library as a program that never calls srandom(3) has it, the same in every run.
    Glibc,
}

impl Parameters {
    /// When a run ends: after `count` or `seconds`, or after `default` requests.
    fn limit(&self, default: u64) -> Result<Limit, Error> {
        match (self.count, self.seconds) {
            (Some(_), Some(_)) => Err(Error("a run ends after a count or after seconds, not both".into())),
            (_, Some(seconds)) => span_ns(seconds).map(Limit::Time),
            (count, None) => match count.unwrap_or(default) {
                0 => Err(Error("a run of 0 requests measures nothing".into())),
                count => Ok(Limit::Count(count)),
            },
        }
    }

    /// Requests in flight.
    fn depth(&self, default: usize) -> Result<usize, Error> {
        match self.qd.unwrap_or(default) {
            depth @ 1..=MOST_IN_FLIGHT => Ok(depth),
            depth => Err(Error(format!("{depth} requests in flight: from 1 to {MOST_IN_FLIGHT}"))),
        }
    }

    /// Bytes of a request.
    fn block(&self, default: u64) -> Result<u64, Error> {
        match self.bs.unwrap_or(default) {
            bs @ 1..=MOST_BYTES => Ok(bs),
            bs => Err(Error(format!("requests of {bs} bytes: from 1 to {MOST_BYTES}"))),
        }
    }
}

/// The most requests in flight, and the longest, that a workload takes.
const MOST_IN_FLIGHT: usize = 4096;
const MOST_BYTES: u64 = 64 << 20;

/// Seconds as ns; what is no span of time is refused.
fn span_ns(seconds: f64) -> Result<u64, Error> {
    if !(seconds > 0.0 && seconds <= 1e9) {
        return Err(Error(format!("a run of {seconds} seconds: more than 0, at most 1e9")));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive and below 2^63")]
    Ok((seconds * 1e9).ceil() as u64)
}

/// That requests of `bs` bytes from `offset` are whole sectors of the rig.
fn whole(rig: &dyn Rig, what: &str, bs: u64, offset: u64) -> Result<(), Error> {
    let sector = rig.sector();
    if is_whole(bs, sector) && is_whole(offset, sector) {
        return Ok(());
    }
    Err(Error(format!("{what} of {bs} bytes at an offset of {offset}: the target takes whole sectors of {sector} bytes")))
}

/// Opens a file: whoever opens a pipe waits for its other end.
fn regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    File::open(path)
}

/// [`streams::run`] with somebody who looks on.
fn watched(
    rig: &mut dyn Rig,
    depth: usize,
    limit: Limit,
    watch: &mut Watch<'_>,
    next: &mut dyn FnMut(usize) -> Option<Ask>,
) -> Result<Run, Error> {
    let mut asked = 0;
    let mut source = |stream: usize| {
        if !watch(asked) {
            return None;
        }
        asked += 1;
        next(stream)
    };
    streams::run(rig, depth, limit, &mut source)
}

#[cfg(test)]
pub(crate) mod recorder;

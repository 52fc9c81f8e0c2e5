//! The workloads, in the order in which they are listed. Each is written once, against a rig or a
//! file system, and does not know whether time is real.
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

/// All workloads, in the order in which they are listed.
pub const WORKLOADS: &[WorkloadKind] = &[
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

/// The workload of the name; `None` if there is none.
pub fn named(name: &str) -> Option<&'static WorkloadKind> {
    WORKLOADS.iter().find(|kind| kind.name == name)
}

/// The definition of a workload, without parameters.
pub struct WorkloadKind {
    /// The name on the command line and in labs.
    pub name: &'static str,
    /// The title, one line for people.
    pub title: &'static str,
    /// The kind of target, with the constructor.
    pub needs: Needs,
}

/// The kind of target of a workload, with its constructor.
pub enum Needs {
    /// Blocks of a provider.
    Blocks(fn(&Parameters) -> Result<Box<dyn Blocks>, Error>),
    /// Files of a file system.
    Files(fn(&Parameters) -> Result<Box<dyn OnFiles>, Error>),
}

/// A workload of files with its parameters.
pub trait OnFiles {
    /// True if the measured part writes files.
    fn writes(&self) -> bool;

    /// The operations of one run, for a progress bar.
    fn extent(&self) -> u64;

    /// Runs once in an empty directory, and removes what it made. `seed` determines everything
    /// random.
    fn run(&self, files: &mut dyn Files, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error>;
}

/// A workload of blocks with its parameters.
pub trait Blocks {
    /// True if the workload writes to the target.
    fn writes(&self) -> bool;

    /// The most requests in flight.
    fn depth(&self) -> usize;

    /// The largest request in bytes.
    fn largest(&self) -> u64;

    /// The requests of one run on a provider of `length` bytes, for a progress bar and for refusals
    /// before the start. `None` if only time ends the run.
    fn extent(&self, length: u64) -> Option<u64>;

    /// A remark about the workload's requests for the reader, if there is one.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Runs once. `seed` determines everything random; every variant of a run is given the same.
    fn run(&self, rig: &mut dyn Rig, seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error>;
}

/// An observer of a run. It is given the number of requests so far before every request; false ends
/// the run.
pub type Watch<'a> = dyn FnMut(u64) -> bool + 'a;

/// Parameters of all workloads. Each workload has its own defaults for what is not given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Parameters {
    /// Bytes by which every request is moved; 0 is aligned.
    pub offset: u64,
    /// The size of a request in bytes.
    pub bs: Option<u64>,
    /// The most requests in flight.
    pub qd: Option<usize>,
    /// Requests of a run.
    pub count: Option<u64>,
    /// Seconds of a run, in place of `count`.
    pub seconds: Option<f64>,
    /// The operation, where the workload can read or write.
    pub op: Option<Way>,
    /// The request file of `raidtest`, or the trace of `replay`.
    pub file: Option<PathBuf>,
    /// True if `replay` submits requests at their recorded times, rather than as fast as they
    /// complete.
    pub timed: bool,
    /// True if `replay` folds requests past the end of the target back into it.
    pub wrap: bool,
    /// The generator of random request offsets.
    pub generator: Generator,
    /// True if every write must be on the medium before it is done, as with `O_SYNC`.
    pub sync: bool,
    /// Bytes between the possible starts of random requests; `None`: the request size. A grid of
    /// 4096 under requests of 16384 is what such database pages become on a file system with blocks
    /// of 4096.
    pub grid: Option<u64>,
    /// The number of blocks that random requests fall on, from the first; `None`: all blocks.
    pub blocks: Option<u64>,
    /// The size in bytes of a file, or of the file system that is made.
    pub size: Option<u64>,
    /// The number of files.
    pub files: Option<u64>,
    /// Files in a directory.
    pub per_directory: Option<u64>,
    /// The median size of files in bytes.
    pub median: Option<f64>,
    /// The mean size of files in bytes.
    pub mean: Option<f64>,
    /// The measured operation on a tree.
    pub phase: Option<tree::Phase>,
    /// Bytes a second that a copy's source delivers; `None` or 0: no limit.
    pub source_rate: Option<u64>,
    /// Nanoseconds of computing for each file.
    pub think_ns: Option<u64>,
    /// The entries of a tree, in place of one generated from a seed.
    #[serde(skip)]
    pub entries: Option<std::sync::Arc<Vec<tree::plan::TreeEntry>>>,
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// A transfer from the medium.
    Read,
    /// A transfer to the medium.
    Write,
}

/// A generator of random numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// `SplitMix64` of the run's seed.
    #[default]
    Seeded,
    /// random(3) of the GNU C library in a program that never calls srandom(3): the same in every
    /// run.
    Glibc,
}

impl Parameters {
    /// The limit of a run: `count` or `seconds`, else `default` requests.
    fn limit(&self, default: u64) -> Result<Limit, Error> {
        match (self.count, self.seconds) {
            (Some(_), Some(_)) => {
                Err(Error::new("a run ends after a count or after seconds, not both".into()))
            }
            (_, Some(seconds)) => span_ns(seconds).map(Limit::Time),
            (count, None) => match count.unwrap_or(default) {
                0 => Err(Error::new("a run of 0 requests measures nothing".into())),
                count => Ok(Limit::Count(count)),
            },
        }
    }

    /// The requests in flight, `default` if none are given. Zero and more than [`MOST_IN_FLIGHT`]
    /// are errors.
    fn depth(&self, default: usize) -> Result<usize, Error> {
        match self.qd.unwrap_or(default) {
            depth @ 1..=MOST_IN_FLIGHT => Ok(depth),
            depth => {
                Err(Error::new(format!("{depth} requests in flight: from 1 to {MOST_IN_FLIGHT}")))
            }
        }
    }

    /// The size of a request in bytes, `default` if none is given. Zero and more than
    /// [`MOST_BYTES`] are errors.
    fn block(&self, default: u64) -> Result<u64, Error> {
        match self.bs.unwrap_or(default) {
            bs @ 1..=MOST_BYTES => Ok(bs),
            bs => Err(Error::new(format!("requests of {bs} bytes: from 1 to {MOST_BYTES}"))),
        }
    }
}

/// The most requests in flight, and the largest request in bytes, of any workload.
const MOST_IN_FLIGHT: usize = 4096;
const MOST_BYTES: u64 = 64 << 20;

/// A duration of `seconds` in ns. It must be above 0 and at most 1e9 seconds.
fn span_ns(seconds: f64) -> Result<u64, Error> {
    if !(seconds > 0.0 && seconds <= 1e9) {
        return Err(Error::new(format!("a run of {seconds} seconds: more than 0, at most 1e9")));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and below 2^63"
    )]
    Ok((seconds * 1e9).ceil() as u64)
}

/// Checks that requests of `bs` bytes from `offset` are whole sectors of the rig.
fn whole(rig: &dyn Rig, what: &str, bs: u64, offset: u64) -> Result<(), Error> {
    let sector = rig.sector();
    if is_whole(bs, sector) && is_whole(offset, sector) {
        return Ok(());
    }
    Err(Error::new(format!(
        "{what} of {bs} bytes at an offset of {offset}: the target takes only whole sectors of {sector} bytes"
    )))
}

/// Opens a regular file. Another kind is refused first: an open of a pipe would wait for its other
/// end.
fn regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Runs [`streams::run`] under an observer.
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

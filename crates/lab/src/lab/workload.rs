//! The workloads that a lab file can name.

use super::file::Size;
use crate::error::Error;
use crate::rig::{Op, Rig};
use crate::run::Run;
use crate::streams::{self, Ask, Limit};
use serde::Deserialize;
use trueline_sim::random::Random;

/// What is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Workload {
    /// One block after another.
    Dd {
        /// Bytes of a request.
        bs: Size,
        /// Bytes of all of them.
        bytes: Size,
        #[serde(default)]
        write: bool,
        /// Requests at one time.
        #[serde(default = "one")]
        depth: usize,
    },
    /// Blocks at random places of a grid.
    Random {
        /// Bytes of a request.
        bs: Size,
        /// Requests.
        count: u64,
        #[serde(default)]
        write: bool,
        /// Whether a write is done only when it is on the medium.
        #[serde(default)]
        sync: bool,
        /// Requests at one time.
        #[serde(default = "one")]
        depth: usize,
        /// Where on the grid requests begin: the first byte.
        #[serde(default)]
        offset: Size,
        /// The bytes they lie within; 0: all.
        #[serde(default)]
        span: Size,
    },
}

fn one() -> usize {
    1
}

impl Workload {
    /// As the file spells it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Workload::Dd { .. } => "dd",
            Workload::Random { .. } => "random",
        }
    }

    /// Whether it needs a file system, rather than blocks.
    #[allow(clippy::unused_self, reason = "workloads of files are told apart here")]
    pub(super) fn is_of_files(&self) -> bool {
        false
    }

    /// Runs it on blocks.
    pub(super) fn on_blocks(&self, rig: &mut dyn Rig, random: u64) -> Result<Run, Error> {
        let op = |write| if write { Op::Write } else { Op::Read };
        match *self {
            Workload::Dd { bs: Size(bs), bytes: Size(bytes), write, depth } => {
                fits(self.name(), bs, bytes, rig)?;
                let mut at = 0;
                let mut next = |_| {
                    let length = bs.min(bytes - at);
                    let ask = (length > 0).then_some(Ask { op: op(write), offset: at, length, fua: false });
                    at += length;
                    ask
                };
                streams::run(rig, depth, Limit::Source, &mut next)
            }
            Workload::Random { bs: Size(bs), count, write, sync, depth, offset, span } => {
                let room = if span.0 > 0 { span.0 } else { rig.length() };
                fits(self.name(), bs, room, rig)?;
                let places = room.saturating_sub(offset.0) / bs;
                let mut random = Random::new(random);
                let mut next = |_| Some(Ask { op: op(write), offset: offset.0 + random.below(places) * bs, length: bs, fua: sync });
                streams::run(rig, depth, Limit::Count(count), &mut next)
            }
        }
    }
}

/// Whether requests of `bs` bytes fit into `bytes`, and those into the provider.
fn fits(name: &str, bs: u64, bytes: u64, rig: &dyn Rig) -> Result<(), Error> {
    if bs == 0 || bs > bytes || bytes > rig.length() {
        return Err(Error(format!("{name}: requests of {bs} bytes in {bytes} bytes of a provider of {}", rig.length())));
    }
    Ok(())
}

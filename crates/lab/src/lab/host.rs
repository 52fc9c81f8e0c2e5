//! The hosts that a lab file can name.

use super::workload::Workload;
use crate::error::Error;
use crate::host::freebsd_ufs::{FreebsdUfs, Shape};
use crate::rig::Rig;
use crate::run::Run;
use serde::Deserialize;
use trueline_sim::world::Schedule;

/// What lies between the workload and the drives.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Host {
    /// Nothing: every request goes down as it is.
    #[default]
    Direct,
    /// One large file on a UFS2.
    FreebsdUfs(Shape),
}

impl Host {
    /// As the file spells it.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Host::Direct => "direct",
            Host::FreebsdUfs(_) => "freebsd-ufs",
        }
    }

    /// Whether what it gives is a file system, rather than blocks.
    #[allow(clippy::unused_self, reason = "hosts of files are told apart here")]
    pub(super) fn is_of_files(&self) -> bool {
        false
    }

    /// In what order its requests wait for a drive.
    pub(super) fn schedule(&self) -> Schedule {
        match self {
            Host::Direct => Schedule::Fifo,
            Host::FreebsdUfs(_) => Schedule::CLook,
        }
    }

    /// Runs `workload` on `rig` through it.
    pub(super) fn run(&self, workload: &Workload, rig: &mut dyn Rig, random: u64) -> Result<Run, Error> {
        match self {
            Host::Direct => workload.on_blocks(rig, random),
            Host::FreebsdUfs(shape) => workload.on_blocks(&mut FreebsdUfs::new(rig, *shape)?, random),
        }
    }
}

//! The hosts that a lab file can name.

use super::workload::Workload;
use crate::error::Error;
use crate::layer::page_cache::{PageCache, Sync};
use crate::os::freebsd_ufs::{FreebsdUfs, UfsLayout};
use crate::os::linux_writeback::{self, LinuxWriteback};
use crate::os::openbsd_ffs::{self, OpenbsdFfs};
use crate::rig::Rig;
use crate::run::Run;
use serde::Deserialize;
use trueline_sim::world::Schedule;

/// The host between the workload and the drives.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Host {
    /// No host: requests reach the drives unchanged. Written with braces, as serde ignores unknown
    /// keys of a unit variant.
    Direct {},
    /// Linux's page cache over a whole block device opened with `O_SYNC`.
    LinuxBdevBuffered {
        /// The most bytes of memory for the cache.
        memory_bytes: u64,
        /// True if every write is followed by a flush of the drive, as since Linux 2.6.33.
        #[serde(default)]
        flush: bool,
    },
    /// One large file on an empty UFS2.
    FreebsdUfs(UfsLayout),
    /// Files on an ext2 through Linux's page cache.
    LinuxWriteback(linux_writeback::Parameters),
    /// Files on an FFS of OpenBSD.
    OpenbsdFfs(openbsd_ffs::Parameters),
}

impl Default for Host {
    fn default() -> Host {
        Host::Direct {}
    }
}

impl Host {
    /// The name in the file.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Host::Direct {} => "direct",
            Host::LinuxBdevBuffered { .. } => "linux-bdev-buffered",
            Host::FreebsdUfs(_) => "freebsd-ufs",
            Host::LinuxWriteback(_) => "linux-writeback",
            Host::OpenbsdFfs(_) => "openbsd-ffs",
        }
    }

    /// True if the host offers files rather than blocks.
    pub(super) fn is_of_files(&self) -> bool {
        matches!(self, Host::LinuxWriteback(_) | Host::OpenbsdFfs(_))
    }

    /// The order in which its requests are sent to a drive.
    pub(super) fn schedule(&self) -> Schedule {
        match self {
            Host::Direct {} | Host::LinuxBdevBuffered { .. } => Schedule::Fifo,
            Host::FreebsdUfs(_) | Host::OpenbsdFfs(_) => Schedule::CLook,
            Host::LinuxWriteback(_) => Schedule::ReadsFirst,
        }
    }

    /// Runs `workload` on `rig` through the host.
    pub(super) fn run(
        &self,
        workload: &Workload,
        rig: &mut dyn Rig,
        random: u64,
    ) -> Result<HostRun, Error> {
        match self {
            Host::Direct {} => Ok(workload.on_blocks(rig, random)?.into()),
            Host::LinuxBdevBuffered { memory_bytes, flush } => {
                let sync = if *flush { Sync::Medium } else { Sync::Drive };
                let mut buffered = PageCache::alone(sync, *memory_bytes, rig)?;
                let run = workload.on_blocks(&mut buffered, random)?;
                Ok(HostRun { run, reads: buffered.caused_reads() })
            }
            Host::FreebsdUfs(shape) => {
                Ok(workload.on_blocks(&mut FreebsdUfs::new(rig, *shape)?, random)?.into())
            }
            Host::LinuxWriteback(parameters) => Ok(workload
                .on_files(&mut LinuxWriteback::new(rig, *parameters)?, random, &mut |_| true)?
                .into()),
            Host::OpenbsdFfs(parameters) => Ok(workload
                .on_files(&mut OpenbsdFfs::new(rig, *parameters)?, random, &mut |_| true)?
                .into()),
        }
    }
}

/// A run through a host.
pub(super) struct HostRun {
    pub(super) run: Run,
    /// The number of reads that the host's page cache added.
    pub(super) reads: u64,
}

impl From<Run> for HostRun {
    fn from(run: Run) -> HostRun {
        HostRun { run, reads: 0 }
    }
}

impl AsMut<Run> for HostRun {
    fn as_mut(&mut self) -> &mut Run {
        &mut self.run
    }
}

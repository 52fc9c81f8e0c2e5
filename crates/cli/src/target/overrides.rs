//! Options of the user that replace what the disks of a target claim.

use super::Target;
use crate::disk_options::{DiskOptions, WhyGrain, known_profile};
use crate::failure::Reason;
use crate::key_file;
use crate::remembered::{self, Remembered};
use std::sync::Arc;
use toml::Value;
use trueline_geom::audit::profile;
use trueline_geom::base::topology::{Fact, Topology, Why};
use trueline_geom::class::nop::Nop;
use trueline_geom::graph::Disk;
use trueline_geom::probe::unlock::Unlock;

/// Options of the user that replace what a disk claims: sector and boundaries; for a simulated
/// drive, keys of its model.
#[derive(Clone)]
pub(crate) struct DiskOverrides {
    pub(super) sector: Option<u64>,
    pub(super) facts: Vec<Fact>,
    pub(super) set: Vec<(String, Value)>,
    /// The options as they were typed.
    options: DiskOptions,
    /// The profile, and its source.
    judged: Option<Remembered>,
    /// True if a file (`nvme id-ns`) describes the drive.
    described: bool,
    /// True if files and devices are opened with `O_DIRECT`, past the page cache.
    pub(super) direct: bool,
    /// True if names of other files in an image are followed, where that is allowed.
    pub(super) follow: bool,
    /// True if few requests are made for an object, and the rest of it is not looked at.
    pub(super) bounded: bool,
}

impl DiskOverrides {
    /// The overrides of the options alone, for no target in particular. Errors: an unknown profile.
    pub(crate) fn new(options: &DiskOptions) -> Result<DiskOverrides, Reason> {
        let profile = options.profile.as_deref();
        profile.map_or(Ok(()), known_profile)?;
        let (mut sector, mut facts) = profile.and_then(profile::named).unwrap_or_default();
        sector = options.logical.or(sector);
        let physical =
            options.physical.map(|(size, phase)| WhyGrain { why: Why::Physical, size, phase });
        for grain in physical.into_iter().chain(options.grain.iter().copied()) {
            facts.retain(|f| f.why != grain.why);
            facts.extend(grain.fact());
        }
        let (follow, bounded) = (options.follow, options.bounded);
        let (set, options) = (options.set.clone(), options.clone());
        Ok(DiskOverrides {
            sector,
            facts,
            set,
            options,
            judged: None,
            described: false,
            direct: false,
            follow,
            bounded,
        })
    }

    /// The overrides of the options and, if they name no profile, of what is remembered for
    /// `target`. Every command uses them.
    pub(crate) fn for_target(
        options: &DiskOptions,
        target: &Target,
    ) -> Result<DiskOverrides, Reason> {
        DiskOverrides::new(options)?.remembering(target)
    }

    /// As [`DiskOverrides::for_target`], for a disk that is described and does not exist.
    pub(crate) fn for_described(options: &DiskOptions) -> Result<DiskOverrides, Reason> {
        DiskOverrides::new(options)?
            .judged_by(remembered::for_described(options.profile.as_deref())?)
    }

    /// As [`DiskOverrides::for_target`], with a line on stderr if the profile comes from elsewhere
    /// than the command line.
    pub(crate) fn announced(
        options: &DiskOptions,
        target: &Target,
    ) -> Result<DiskOverrides, Reason> {
        let overrides = DiskOverrides::for_target(options, target)?;
        overrides.judged.iter().for_each(|judged| judged.announce(target));
        Ok(overrides)
    }

    /// The options that were typed, as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        self.options.words()
    }

    /// The profile and its source; `None` if none is named.
    pub(crate) fn judged(&self) -> Option<&Remembered> {
        self.judged.as_ref()
    }

    /// The same without any profile that is remembered: for forms that say nothing of a profile.
    pub(crate) fn forgetting(self) -> DiskOverrides {
        DiskOverrides { described: true, ..self }
    }

    /// The same for `target`, with the profile remembered for it if none was typed. A drive
    /// described by a file keeps its description.
    pub(crate) fn remembering(&self, target: &Target) -> Result<DiskOverrides, Reason> {
        let found = remembered::profile(self.options.profile.as_deref(), target)?;
        if self.described { Ok(self.clone()) } else { self.judged_by(found) }
    }

    fn judged_by(&self, judged: Option<Remembered>) -> Result<DiskOverrides, Reason> {
        let profile = judged.as_ref().map(|judged| judged.profile.clone());
        if profile == self.options.profile {
            return Ok(DiskOverrides { judged, ..self.clone() });
        }
        let own = DiskOverrides::new(&DiskOptions { profile, ..self.options.clone() })?;
        Ok(DiskOverrides { judged, direct: self.direct, ..own })
    }

    /// Keys of encrypted volumes, for one graph: the work that is done with them is bounded by
    /// itself. `None` if no key file was named.
    pub(crate) fn keys(&self) -> Option<Arc<dyn Unlock>> {
        key_file::keys(&self.options.key_file)
    }

    /// The same, with files and devices opened past the page cache if `direct`.
    pub(crate) fn bypass_cache(self, direct: bool) -> DiskOverrides {
        DiskOverrides { direct, ..self }
    }

    /// States the format of the disks that the user has named.
    pub(super) fn state_format(&self, disks: &mut [Disk]) {
        if let Some(format) = &self.options.format {
            disks.iter_mut().for_each(|disk| disk.format = Some(format.clone()));
        }
    }

    /// Refuses keys of a model for a disk that is no simulated drive; `what` names the attempt.
    pub(crate) fn refuse_model_keys(&self, what: &str) -> Result<(), Reason> {
        match self.set.first() {
            None => Ok(()),
            Some((key, _)) => Err(Reason(format!(
                "{what}: --set {key} is for simulated drives: drive:MODEL[=IMAGE], as trueline drives lists them"
            ))),
        }
    }

    /// Adopts a drive's own description from a file; options of the user win.
    pub(crate) fn adopt(&mut self, drive: &Topology) {
        self.described = true;
        self.sector = self.sector.or(Some(drive.sector));
        let user: Vec<Why> = self.facts.iter().map(|f| f.why).collect();
        self.facts.extend(drive.facts.iter().filter(|f| !user.contains(&f.why)));
    }

    /// The overrides as a `gnop`-like layer over a disk of `length` bytes.
    pub(crate) fn nop(&self, length: u64) -> Nop {
        Nop::new(length, self.sector, self.facts.clone())
    }
}

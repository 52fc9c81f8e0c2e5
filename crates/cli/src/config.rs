//! Settings from files: `trueline.toml` of the user and of the machine.
//!
//! The command line counts before the environment, that before a file beside an image, that before
//! the user's file, that before the machine's, and that before what is remembered of measured
//! drives and what a host reports.

use crate::fail_on::FailOn;
use crate::failure::Reason;
use files::{ConfigFile, FileState};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};

pub(crate) mod files;
mod read;

/// A value and the line that says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) from: ConfigLine,
}

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigLine {
    pub(crate) path: String,
    /// Number of the line, from 1.
    pub(crate) line: usize,
}

impl fmt::Display for ConfigLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// A drive whose boundaries a file states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StatedDrive {
    /// The model; `None` for any.
    pub(crate) model: Option<String>,
    pub(crate) serial: String,
    /// Boundaries in bytes from the start of the drive, one a purpose.
    pub(crate) units: Vec<(Why, Setting<Grain>)>,
    /// The origin of the figures, in the user's words.
    pub(crate) source: Option<String>,
}

impl StatedDrive {
    /// True for a drive that has this model and serial number.
    pub(crate) fn is(&self, model: &str, serial: &str) -> bool {
        self.serial == serial && self.model.as_deref().is_none_or(|own| own == model)
    }
}

/// The settings of a file, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) profile: Option<Setting<String>>,
    pub(crate) fail_on: Option<Setting<FailOn>>,
    pub(crate) strict: Option<Setting<bool>>,
    pub(crate) drives: Vec<Setting<StatedDrive>>,
}

impl Config {
    /// These settings, and those of `lower` where there are none.
    fn over(mut self, lower: Config) -> Config {
        self.drives.extend(lower.drives);
        Config {
            profile: self.profile.or(lower.profile),
            fail_on: self.fail_on.or(lower.fail_on),
            strict: self.strict.or(lower.strict),
            drives: self.drives,
        }
    }

    /// The boundaries of a drive, by its model and serial number: of each purpose the first that
    /// is stated.
    fn units(&self, model: &str, serial: &str) -> Vec<&(Why, Setting<Grain>)> {
        let mut units: Vec<&(Why, Setting<Grain>)> = Vec::new();
        let drives = self.drives.iter().map(|drive| &drive.value);
        for unit in drives.filter(|drive| drive.is(model, serial)).flat_map(|drive| &drive.units) {
            if units.iter().all(|(why, _)| *why != unit.0) {
                units.push(unit);
            }
        }
        units
    }

    /// The topology of a device of a drive with the stated boundaries in the place of others of
    /// the same purpose. The device begins `start` bytes into the drive.
    pub(crate) fn state(
        &self,
        mut topology: Topology,
        (model, serial): (&str, &str),
        start: u64,
    ) -> Topology {
        for (why, unit) in self.units(model, serial) {
            let (grain, source, trust) = (unit.value.shift(start), Source::User, Trust::Trusted);
            topology = topology.instead(Fact { grain, why: *why, source, trust });
        }
        topology
    }

    /// The boundaries that are stated, each with its drive. One that an earlier line states of
    /// every drive that it could be of is left out.
    pub(crate) fn boundaries(
        &self,
    ) -> impl Iterator<Item = (&StatedDrive, &(Why, Setting<Grain>))> {
        let mut before = BTreeSet::new();
        let drives = self.drives.iter().map(|drive| &drive.value);
        let units = drives.flat_map(|drive| drive.units.iter().map(move |unit| (drive, unit)));
        units.filter(move |(drive, (why, _))| {
            let of = |model| (drive.serial.as_str(), why.name(), model);
            !before.contains(&of(None)) && before.insert(of(drive.model.as_deref()))
        })
    }
}

/// The settings of all files, and what became of each file.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// The files that were looked for, those that count first before others.
    pub(crate) files: Vec<(ConfigFile, FileState)>,
}

impl Loaded {
    /// Lines of what is wrong in the files, with the place of each.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|(_, state)| state.errors()).map(String::as_str)
    }

    /// Sentences on files that are there and are not read.
    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        self.files.iter().filter_map(|(place, state)| match state {
            FileState::Refused(why) => Some(format!("note: {} is not read: {why}", place.name())),
            _ => None,
        })
    }
}

static LOADED: OnceLock<Loaded> = OnceLock::new();

/// The settings of this process, which are read once: those of the file that `--config` names, or
/// of the usual ones.
pub(crate) fn load(named: Option<&Path>) -> &'static Loaded {
    LOADED.get_or_init(|| {
        let mut loaded = Loaded::default();
        for place in files::places(named) {
            let state = match place.text() {
                Ok(Some(text)) => match read::config(&place.name(), &text) {
                    Ok(config) => {
                        loaded.config = loaded.config.over(config);
                        FileState::Read
                    }
                    Err(lines) => FileState::Wrong(lines),
                },
                Ok(None) => FileState::Absent,
                Err(state) => state,
            };
            loaded.files.push((place, state));
        }
        loaded
    })
}

/// The settings by which this process goes. Errors: something in a file is wrong.
pub(crate) fn config() -> Result<&'static Config, Reason> {
    let loaded = load(None);
    match loaded.errors().next() {
        Some(first) => Err(Reason(first.to_owned())),
        None => Ok(&loaded.config),
    }
}

/// Lines of what is wrong in the file at `path`; else the number of its settings, and of its
/// drives.
pub(crate) fn check(path: &Path) -> Result<(usize, usize), Vec<String>> {
    let place = ConfigFile::named(path);
    let text = match place.text() {
        Ok(Some(text)) => text,
        Ok(None) => return Err(vec![format!("read {}: no such file", place.name())]),
        Err(state) => return Err(state.errors().to_vec()),
    };
    let Config { profile, fail_on, strict, drives } = read::config(&place.name(), &text)?;
    let set = [profile.is_some(), fail_on.is_some(), strict.is_some()];
    Ok((set.into_iter().filter(|set| *set).count(), drives.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Config {
        read::config(path, text).expect("settings")
    }

    /// The user's file counts before that of the machine, setting by setting.
    #[test]
    fn the_first_file_that_says_something_counts() {
        let user = of("u", "for = \"512n\"\n[[drive]]\nserial = \"a\"\nphysical = \"4k\"");
        let machine = of(
            "m",
            "for = \"4kn\"\ncheck.strict = true\n[[drive]]\nserial = \"a\"\nphysical = \"16k\"\n\
                [[drive]]\nserial = \"b\"\nmodel = \"x\"\nphysical = \"8k+512\"",
        );
        let both = user.over(machine);
        let line = |path: &str, line| ConfigLine { path: path.into(), line };
        let profile = both.profile.as_ref().expect("a profile");
        assert_eq!((profile.value.as_str(), &profile.from), ("512n", &line("u", 1)));
        assert_eq!(both.strict.as_ref().map(|strict| &strict.from), Some(&line("m", 2)));
        let units = |model: &str, serial: &str| -> Vec<_> {
            let all = both.units(model, serial);
            all.into_iter().map(|(_, unit)| (unit.value, unit.from.clone())).collect()
        };
        let grain = |size, phase| Grain::new(size, phase).expect("a grain");
        assert_eq!(units("any", "a"), [(grain(4096, 0), line("u", 4))]);
        assert_eq!(units("x", "b"), [(grain(8192, 512), line("m", 9))]);
        assert_eq!(units("y", "b"), []);
    }

    /// A file that states one boundary of a drive hides no other of the same drive.
    #[test]
    fn boundaries_of_one_drive_are_joined_by_purpose() {
        let user = of("u", "[[drive]]\nserial = \"a\"\nmodel = \"x\"\nchunk = \"64k\"");
        let machine = of("m", "[[drive]]\nserial = \"a\"\nchunk = \"128k\"\nphysical = \"16k\"");
        let both = user.over(machine);
        let of = |model: &str| -> Vec<(&str, u64)> {
            let units = both.units(model, "a");
            units.iter().map(|(why, unit)| (why.name(), unit.value.size())).collect()
        };
        assert_eq!(of("x"), [("chunk", 65536), ("physical", 16384)]);
        assert_eq!(of("y"), [("chunk", 131_072), ("physical", 16384)]);
        let told: Vec<_> = both
            .boundaries()
            .map(|(drive, (why, unit))| (drive.model.as_deref(), why.name(), unit.value.size()))
            .collect();
        let wanted =
            [(Some("x"), "chunk", 65536), (None, "chunk", 131_072), (None, "physical", 16384)];
        assert_eq!(told, wanted);
        assert_eq!(both.over(of_machine_again()).boundaries().count(), 3);
    }

    /// A later file that says again what is said already.
    fn of_machine_again() -> Config {
        of("l", "[[drive]]\nserial = \"a\"\nchunk = \"4k\"\nphysical = \"4k\"")
    }
}

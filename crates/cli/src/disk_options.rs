//! Options that say what a disk is: a profile, its sector, its boundaries.

use crate::failure::Reason;
use crate::key_file::KeyFile;
use crate::words;
use clap::Args;
use clap::builder::PossibleValuesParser;
use toml::Value;
use trueline_geom::audit::profile;
use trueline_geom::base::size;
use trueline_geom::base::topology::{Fact, Grain, Source, Trust, Why};
use trueline_geom::registry;

/// The heading of options that say what a disk is.
const DISK: &str = "What the disk is (trueline help grain, help profiles)";

/// Options that describe a disk; they replace what it claims of itself.
#[derive(Args, Clone, Default)]
pub(crate) struct DiskOptions {
    /// The drive it is, or is for
    #[arg(long = "for", value_name = "PROFILE", help = profiles_help(), help_heading = DISK)]
    pub profile: Option<String>,
    /// Its logical sector in bytes
    #[arg(long, value_name = "N", value_parser = parse_sector, help_heading = DISK)]
    pub logical: Option<u64>,
    /// Its read-modify-write unit, and where the first one begins
    #[arg(long, value_name = "N[+PHASE]", value_parser = parse_grain, help_heading = DISK)]
    pub physical: Option<(u64, u64)>,
    /// A boundary of its own: physical, preferred, optimal, chunk, full-stripe, erase, cluster, ...
    #[arg(
        long,
        value_name = "WHY=SIZE[+PHASE]",
        value_parser = WhyGrain::parse,
        help_heading = DISK,
    )]
    pub grain: Vec<WhyGrain>,
    /// A key of the simulated drives' model, set to another value
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set, help_heading = DISK)]
    pub set: Vec<(String, Value)>,
    /// The format of an image: raw for one that only looks like a container, or qcow2, vhd, ...
    #[arg(long, value_name = "FORMAT", value_parser = formats(), help_heading = DISK)]
    pub format: Option<String>,
    /// Open what an image names too, such as its backing file, from its own directory
    #[arg(long, help_heading = DISK)]
    pub follow: bool,
    /// Fetch at most 12 ranges and 256 KiB of an object, in 3 rounds (16, 512 KiB and 5 of a
    /// container); the rest is not looked at
    #[arg(long, help_heading = DISK)]
    pub bounded: bool,
    /// A file whose bytes are the passphrase of LUKS volumes, opened for reading; - is stdin
    #[arg(long, value_name = "FILE", value_parser = KeyFile::read, help_heading = DISK)]
    pub key_file: Vec<KeyFile>,
}

impl DiskOptions {
    /// The options given, a word each, as a command line takes them. `--set` is left out: only
    /// simulated drives have keys.
    pub(crate) fn words(&self) -> Vec<String> {
        let at = |size: u64, phase: u64| {
            if phase == 0 { size.to_string() } else { format!("{size}+{phase}") }
        };
        let profile = self.profile.iter().map(|name| ["--for".into(), name.clone()]);
        let logical = self.logical.iter().map(|size| ["--logical".into(), size.to_string()]);
        let physical =
            self.physical.iter().map(|&(size, phase)| ["--physical".into(), at(size, phase)]);
        let grain = self
            .grain
            .iter()
            .map(|g| ["--grain".into(), format!("{}={}", g.why.name(), at(g.size, g.phase))]);
        let format = self.format.iter().map(|name| ["--format".into(), name.clone()]);
        let follow = self.follow.then(|| "--follow".into());
        let bounded = self.bounded.then(|| "--bounded".into());
        let keys = self.key_file.iter().map(|file| ["--key-file".into(), file.typed().into()]);
        let pairs = profile.chain(logical).chain(physical).chain(grain).chain(format).chain(keys);
        pairs.flatten().chain(follow).chain(bounded).collect()
    }
}

/// The parser of `--format`: `raw`, or a container that is looked into.
fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new([RAW].into_iter().chain(registry::containers()))
}

/// The format of an image that is no container, whatever it looks like.
const RAW: &str = "raw";

/// A boundary named on the command line.
#[derive(Clone, Copy)]
pub(crate) struct WhyGrain {
    pub(crate) why: Why,
    pub(crate) size: u64,
    pub(crate) phase: u64,
}

impl WhyGrain {
    /// Parses `WHY=SIZE[+PHASE]`, as `--grain` takes it. Errors: an unknown purpose, `logical`, a
    /// size that is no grain.
    pub(crate) fn parse(text: &str) -> Result<WhyGrain, Reason> {
        let (why, grain) = text.split_once('=').ok_or("write WHY=SIZE[+PHASE]: chunk=64k")?;
        let names = || Why::ALL.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
        let why = Why::ALL
            .into_iter()
            .find(|w| w.name() == why)
            .ok_or_else(|| format!("no purpose '{why}': {}", names()))?;
        if why == Why::Logical {
            return Err(Reason("give the logical sector with --logical".into()));
        }
        let (size, phase) = parse_grain(grain)?;
        Ok(WhyGrain { why, size, phase })
    }

    /// The boundary as a fact that the user states; `None` if the size and phase are no grain.
    pub(crate) fn fact(self) -> Option<Fact> {
        let grain = Grain::new(self.size, self.phase)?;
        Some(Fact { grain, why: self.why, source: Source::User, trust: Trust::Trusted })
    }
}

fn profiles_help() -> String {
    let names: Vec<&str> = profile::PROFILES.iter().map(|p| p.name).collect();
    format!(
        "The drive, or the one that an image is for: {}, raidCHUNKxDISKS (raid64kx4: chunks of 64 KiB, 4 data disks)",
        names.join(", ")
    )
}

/// Refuses a name that no profile has, with the one that was perhaps meant, and all that there are.
pub(crate) fn known_profile(name: &str) -> Result<(), Reason> {
    if profile::named(name).is_some() {
        return Ok(());
    }
    let names = || profile::PROFILES.iter().map(|profile| profile.name);
    let near =
        words::near(name, names()).map_or(String::new(), |near| format!("did you mean {near}? "));
    let all = names().collect::<Vec<_>>().join(", ");
    Err(Reason(format!("no profile '{name}': {near}there are {all}, raidCHUNKxDISKS")))
}

/// Parses a logical sector: a power of two from 512 to 65536 bytes, the largest that Linux takes.
fn parse_sector(text: &str) -> Result<u64, Reason> {
    let size = parse_size(text)?;
    if size.is_power_of_two() && (512..=65536).contains(&size) {
        Ok(size)
    } else {
        Err(Reason("a sector is a power of two from 512 to 65536".into()))
    }
}

pub(crate) fn parse_size(text: &str) -> Result<u64, Reason> {
    size::bytes(text).filter(|&n| n > 0).ok_or_else(|| "not a size: 512, 4096, 4k, 1MiB".into())
}

/// Parses `SIZE[+PHASE]`, both in bytes; the phase is less than the size.
pub(crate) fn parse_grain(text: &str) -> Result<(u64, u64), Reason> {
    let (size, phase) = text.split_once('+').unwrap_or((text, "0"));
    let (size, phase) = (parse_size(size)?, size::bytes(phase).ok_or("not a phase: 3584")?);
    if phase < size {
        Ok((size, phase))
    } else {
        Err(Reason(format!("the phase must be less than the size {size}")))
    }
}

/// `KEY=VALUE`, the value as in TOML; what is no such value is a word: `personality=window`.
pub(crate) fn parse_set(text: &str) -> Result<(String, Value), Reason> {
    let (key, value) =
        text.split_once('=').ok_or("write KEY=VALUE: rpm=7200, jumper=true, personality=window")?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) {
        return Err(Reason(format!(
            "'{key}' is not a key: trueline drives MODEL lists those of a model"
        )));
    }
    if value.is_empty() {
        return Err(Reason(format!("{key}: the value is missing")));
    }
    Ok((key.into(), value.parse().unwrap_or_else(|_| Value::String(value.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_toml_and_words() {
        let read = |text: &str| parse_set(text).map(|(key, value)| format!("{key} {value:?}"));
        for (text, want) in [
            ("jumper=true", "jumper Boolean(true)"),
            ("disk.rpm=7200", "disk.rpm Integer(7200)"),
            ("tau_ms = 0.5", "tau_ms Float(0.5)"),
            ("personality=window", "personality String(\"window\")"),
            ("personality=\"window\"", "personality String(\"window\")"),
            ("size=1\nname=2", "size String(\"1\\nname=2\")"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(want), "{text}");
        }
        assert!(["rpm", "=1", "rpm=", "a b=1", "ä=1"].iter().all(|text| read(text).is_err()));
    }
}

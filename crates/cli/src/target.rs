//! `TARGET := DISK[,DISK...][#PROVIDER]`: the target of a command, as a value.
//!
//! A target is parsed once, by clap. A file name may hold a `#` or a `,`, and a disk that is named
//! like a kind of disk may be a file: the files that exist at that moment decide.

mod bands;
mod follow;
mod home;
mod memory;
#[cfg(feature = "cloud")]
pub(crate) mod object;
#[cfg(not(feature = "cloud"))]
#[path = "target/no_object.rs"]
pub(crate) mod object;
pub(crate) mod open;
mod overrides;
mod parts;
mod remote;
pub(crate) mod serving;
pub(crate) mod simulated;
mod source;

use crate::failure::Reason;
use clap::builder::{OsStringValueParser, TypedValueParser};
pub(crate) use overrides::DiskOverrides;
pub(crate) use source::Source;
use std::convert::Infallible;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// The disks that a user names, and the provider on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The text as typed, which messages and reports repeat.
    typed: String,
    /// The disks in order; none for a title.
    sources: Vec<Source>,
    /// The provider after the `#`.
    provider: Option<String>,
}

/// Longest path that Linux takes, in bytes.
const PATH_MAX: usize = 4096;

impl Target {
    /// Parses a target. The text of a disk that does not exist is taken as it reads.
    pub(crate) fn parse(typed: &str) -> Target {
        let target = |sources, provider: Option<&str>| Target {
            typed: typed.into(),
            sources,
            provider: provider.map(str::to_owned),
        };
        let (mut sources, mut rest) = (Vec::new(), typed);
        while let Some((source, after)) = first_disk(rest) {
            sources.push(source);
            match (after.strip_prefix('#'), after.strip_prefix(',')) {
                (Some(provider), _) => return target(sources, Some(provider)),
                (None, Some(next)) => rest = next,
                (None, None) => return target(sources, None),
            }
        }
        // Nothing of that name exists, so it ends in an error.
        let (names, provider) =
            rest.split_once('#').map_or((rest, None), |(names, provider)| (names, Some(provider)));
        sources.extend(names.split(',').map(Source::parse));
        target(sources, provider)
    }

    /// A name under which no command finds a disk: of a demonstration, or of a list.
    pub(crate) fn title(name: &str) -> Target {
        Target { typed: name.into(), sources: Vec::new(), provider: None }
    }

    /// The file or device of that path, whatever marks are in its name.
    pub(crate) fn file(path: &str) -> Target {
        Target::from_sources(vec![Source::file(path)], None)
    }

    /// The target of known disks.
    pub(crate) fn from_sources(sources: Vec<Source>, provider: Option<&str>) -> Target {
        let disks = text_of(&sources);
        let typed = provider.map_or_else(|| disks.clone(), |name| format!("{disks}#{name}"));
        Target { typed, sources, provider: provider.map(str::to_owned) }
    }

    /// All disks of `targets` as one target; an error names a target that is more, or less, than
    /// disks.
    pub(crate) fn together(targets: &[Target]) -> Result<Target, Reason> {
        if let Some(other) = targets.iter().find(|t| t.provider.is_some() || t.sources.is_empty()) {
            return Err(Reason(format!(
                "open {other}: targets that are taken together are disks, without a provider"
            )));
        }
        Ok(Target::from_sources(targets.iter().flat_map(|t| t.sources.clone()).collect(), None))
    }

    /// The text as typed.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// The disks in order.
    pub(crate) fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The provider named after the `#`.
    pub(crate) fn provider(&self) -> Option<&str> {
        self.provider.as_deref()
    }

    /// The same disks without the provider.
    pub(crate) fn disks(&self) -> Target {
        Target::from_sources(self.sources.clone(), None)
    }

    /// The disks as typed, if a command that names them would find and could write them. A title, a
    /// list of another host or an object has none.
    pub(crate) fn known_disks(&self) -> Option<String> {
        let is_known = |source: &Source| {
            source.is_there() && source.object().is_none() || source.typed().starts_with("/dev/")
        };
        let known = !self.sources.is_empty() && self.sources.iter().all(is_known);
        known.then(|| text_of(&self.sources))
    }

    /// The files and devices that it opens.
    pub(crate) fn paths(&self) -> Vec<&Path> {
        self.sources.iter().filter_map(Source::path).collect()
    }

    /// The path of a target that is one file, device or directory as a whole.
    pub(crate) fn only_path(&self) -> Option<&Path> {
        match self.sources.as_slice() {
            [source] if self.provider.is_none() => source.path(),
            _ => None,
        }
    }

    /// The object of a target that is one as a whole.
    pub(crate) fn only_object(&self) -> Option<&object::Spelling> {
        match self.sources.as_slice() {
            [source] if self.provider.is_none() => source.object(),
            _ => None,
        }
    }

    /// True if a disk of it is an object.
    pub(crate) fn has_objects(&self) -> bool {
        self.sources.iter().any(|source| source.object().is_some())
    }

    /// Class of the error that ended the reading of an object of it, if one did.
    pub(crate) fn object_error(&self) -> Option<&'static str> {
        self.sources.iter().filter_map(Source::object).find_map(object::Spelling::error_class)
    }

    /// True if a disk of it is a simulated drive, whether or not its model and image exist.
    pub(crate) fn is_simulated(&self) -> bool {
        self.sources.iter().any(|source| source.simulated().is_some())
    }

    /// True if a disk of it is an NBD export or an object.
    pub(crate) fn is_remote(&self) -> bool {
        self.sources.iter().any(|source| source.is_remote() || source.object().is_some())
    }
}

impl FromStr for Target {
    type Err = Infallible;

    fn from_str(typed: &str) -> Result<Target, Infallible> {
        Ok(Target::parse(typed))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.typed)
    }
}

/// A target of `check` and `show`, which go on after a name that is no text.
pub(crate) type Named = Result<Target, NotText>;

/// The refusal of a name that is not UTF-8: as JSON it could not be told from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotText(OsString);

impl NotText {
    /// The name as far as it is text.
    pub(crate) fn shown(&self) -> String {
        self.0.display().to_string()
    }
}

impl fmt::Display for NotText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.display();
        write!(f, "open {name}: its name is not UTF-8: give it a link with another name")
    }
}

/// The parser of such targets on the command line.
pub(crate) fn named() -> impl TypedValueParser<Value = Named> {
    OsStringValueParser::new().map(|name| listed(&name))
}

/// A name as the command line takes it.
pub(crate) fn listed(name: &OsStr) -> Named {
    name.to_str().map(Target::parse).ok_or_else(|| NotText(name.into()))
}

/// A file that a walk has found, as a target.
pub(crate) fn found(path: &OsStr) -> Named {
    path.to_str().map(Target::file).ok_or_else(|| NotText(path.into()))
}

fn text_of(sources: &[Source]) -> String {
    sources.iter().map(Source::typed).collect::<Vec<_>>().join(",")
}

/// The disk that `text` begins with, and the rest: the whole text if that exists, else the shortest
/// name of something that exists before a mark.
fn first_disk(text: &str) -> Option<(Source, &str)> {
    let marks = text.match_indices([',', '#']).map(|(at, _)| at).take_while(|&at| at <= PATH_MAX);
    let mut ends = Some(text.len()).filter(|&end| end <= PATH_MAX).into_iter().chain(marks);
    ends.find_map(|end| {
        let (name, after) = text.split_at(end);
        let source = Source::parse(name);
        source.is_there().then_some((source, after))
    })
}

#[cfg(test)]
mod tests;

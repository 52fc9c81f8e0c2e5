//! The profile of an image where the command line names none: from `TRUELINE_FOR`, from a file
//! beside the image, or from the settings.

use crate::config::{self, Config};
use crate::disk_options::known_profile;
use crate::failure::Reason;
use crate::target::Target;
use crate::words::{self, columns, escape};
use crate::{complain, input_text};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

/// Environment variable that holds a profile.
pub(crate) const VARIABLE: &str = "TRUELINE_FOR";
/// Command-line option that names a profile.
const OPTION: &str = "--for";
/// Name of the file beside an image.
const FILE: &str = ".trueline.toml";
/// Longest such file, in bytes.
const LONGEST: u64 = 64 << 10;

/// A profile, and the place it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Remembered {
    /// The profile's name, as it was given.
    pub(crate) profile: String,
    /// The source: `--for`, `TRUELINE_FOR`, the path of a file beside the image, or a line of the
    /// settings.
    pub(crate) from: String,
}

impl Remembered {
    fn new(profile: &str, from: &str) -> Remembered {
        Remembered { profile: profile.into(), from: from.into() }
    }

    /// True if the profile comes from elsewhere than the command line.
    fn is_news(&self) -> bool {
        self.from != OPTION
    }

    /// The sentence for a text, with profile and source; `None` if the command line names the
    /// profile.
    pub(crate) fn sentence(&self) -> Option<String> {
        self.is_news()
            .then(|| format!("judged as {}, as {} says", self.profile, escape::plain(&self.from)))
    }

    /// Writes that sentence as an indented line, beneath the name of the target.
    pub(crate) fn write(&self, width: Option<usize>, out: &mut dyn io::Write) -> io::Result<()> {
        self.sentence().map_or(Ok(()), |sentence| columns::wrap("  ", 2, &sentence, 2, width, out))
    }

    /// Writes a line on stderr that `whom` is judged by it, unless the command line names the
    /// profile.
    pub(crate) fn announce(&self, whom: &Target) {
        if self.is_news() {
            complain(&format!("note: {whom} is for {}, as {} says", self.profile, self.from));
        }
    }
}

/// One sentence for each profile and source. It begins with the target, or with the number of
/// targets that share it.
pub(crate) fn sentences<'a>(all: impl Iterator<Item = (&'a str, &'a Remembered)>) -> Vec<String> {
    let mut whom: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let judged = all.filter_map(|(target, judged)| Some((judged.sentence()?, target)));
    judged.for_each(|(sentence, target)| whom.entry(sentence).or_default().push(target));
    let named = |names: &[&str]| {
        if let [one] = names { escape::plain(one) } else { words::count(names.len(), "target") }
    };
    whom.into_iter().map(|(sentence, names)| format!("{}: {sentence}", named(&names))).collect()
}

/// Contents of the file: a profile for all images beside it, and profiles of single images by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    #[serde(rename = "for")]
    profile: Option<Profile>,
    #[serde(default)]
    images: BTreeMap<String, Image>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    #[serde(rename = "for")]
    profile: Profile,
}

/// Name of a profile; an unknown one is reported with its line and column.
struct Profile(String);

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        known_profile(&name).map(|()| Profile(name)).map_err(de::Error::custom)
    }
}

/// The profile for `target`: the option's, else the environment's, else that of the file beside its
/// images, else that of the settings. A device and a simulated drive describe themselves: for them
/// the option alone counts.
pub(crate) fn profile(typed: Option<&str>, target: &Target) -> Result<Option<Remembered>, Reason> {
    let config = config::config()?;
    if let Some(name) = typed {
        return Ok(Some(Remembered::new(name, OPTION)));
    }
    let images: Vec<&Path> = target.paths().into_iter().filter(|path| path.is_file()).collect();
    if images.is_empty() {
        return Ok(None);
    }
    if let Some(found) = environment()? {
        return Ok(Some(found));
    }
    let mut first: Option<(&Path, Remembered)> = None;
    for image in images {
        match (beside(image)?, &first) {
            (Some(found), None) => first = Some((image, found)),
            (Some(found), Some((other, known))) if found.profile != known.profile => {
                let (other, image) = (other.display(), image.display());
                let apart = format!(
                    "{other} is for {}, and {image} for {}, as {} says",
                    known.profile, found.profile, found.from
                );
                return Err(Reason(format!(
                    "open {target}: {apart}: say {OPTION} for all of them"
                )));
            }
            _ => {}
        }
    }
    Ok(first.map(|(_, found)| found).or_else(|| set(config)))
}

/// The profile of a disk that is described and does not exist: no file stands beside it.
pub(crate) fn for_described(typed: Option<&str>) -> Result<Option<Remembered>, Reason> {
    match typed {
        Some(name) => Ok(Some(Remembered::new(name, OPTION))),
        None => Ok(environment()?.or(set(config::config()?))),
    }
}

/// The profile of the settings.
fn set(config: &Config) -> Option<Remembered> {
    let setting = config.profile.as_ref()?;
    Some(Remembered::new(&setting.value, &setting.from.to_string()))
}

/// The profile that `TRUELINE_FOR` names. Errors: no profile has that name.
pub(crate) fn environment() -> Result<Option<Remembered>, Reason> {
    let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let name = name.to_string_lossy();
    known_profile(&name).map_err(|why| format!("{VARIABLE}: {why}"))?;
    Ok(Some(Remembered::new(&name, VARIABLE)))
}

/// The profile of `image` in the file beside it: its own, else the one for all images.
fn beside(image: &Path) -> Result<Option<Remembered>, Reason> {
    let path = image.parent().unwrap_or(Path::new("")).join(FILE);
    let shown = path.display().to_string();
    let failed = |why: Reason| why.behind(format_args!("read {shown}"));
    let Some(text) = read(&path).map_err(&failed)? else { return Ok(None) };
    let notes: Notes = input_text::toml(&text)
        .map_err(|e| failed(format!("{e}: write for = \"PROFILE\"").into()))?;
    let name =
        image.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let own = notes.images.get(&name).map(|image| &image.profile);
    Ok(own.or(notes.profile.as_ref()).map(|profile| Remembered::new(&profile.0, &shown)))
}

/// The text of a plain file; `None` if there is none. A pipe or a device is refused, so the read
/// never waits.
fn read(path: &Path) -> Result<Option<String>, Reason> {
    let is_file = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e.into()),
        Ok(found) => found.is_file(),
    };
    if !is_file {
        return Err(Reason("it is not a regular file".into()));
    }
    let file = input_text::open(path)?;
    input_text::read(file, LONGEST).map(Some)
}

//! What drive an image is for, where the command line does not say: `TRUELINE_FOR`, or a file beside the image.

use crate::render::words;
use crate::target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use trueline_geom::audit::profile;

/// The environment's variable: a profile.
pub(crate) const VARIABLE: &str = "TRUELINE_FOR";
/// The file beside an image.
const FILE: &str = ".trueline.toml";
/// The most bytes that such a file has.
const LONGEST: u64 = 64 << 10;

/// A profile, and who said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Remembered {
    /// The profile, as it was said.
    pub(crate) profile: String,
    /// `--for`, `TRUELINE_FOR`, or the file's path.
    pub(crate) from: String,
}

impl Remembered {
    /// Whether it was said elsewhere than on the command line.
    pub(crate) fn is_news(&self) -> bool {
        self.from != "--for"
    }
}

/// The file's text: a profile for all images beside it, and for some by name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Notes {
    #[serde(rename = "for")]
    profile: Option<String>,
    #[serde(default)]
    images: BTreeMap<String, Image>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Image {
    #[serde(rename = "for")]
    profile: String,
}

/// The profile that `target` is judged by: what was typed, else the environment's, else that of the file beside its first image.
pub(crate) fn profile(typed: Option<&str>, target: &str) -> Result<Option<Remembered>, String> {
    let said = |profile: &str, from: &str| Remembered { profile: profile.into(), from: from.into() };
    if let Some(name) = typed {
        return Ok(Some(said(name, "--for")));
    }
    // A device says what it is; an image cannot.
    let Some(image) = target::paths(target).into_iter().find(|path| path.is_file()) else { return Ok(None) };
    if let Ok(name) = std::env::var(VARIABLE)
        && !name.is_empty()
    {
        return known(&name, VARIABLE).map(|()| Some(said(&name, VARIABLE)));
    }
    beside(image)
}

/// What the file beside `image` says of it.
fn beside(image: &Path) -> Result<Option<Remembered>, String> {
    let path = image.parent().unwrap_or(Path::new("")).join(FILE);
    let shown = path.display().to_string();
    let failed = |what: String| format!("read {shown}: {what}");
    let Some(text) = read(&path).map_err(&failed)? else { return Ok(None) };
    let notes: Notes = toml::from_str(&text).map_err(|e| failed(format!("{}: write for = \"PROFILE\"", e.message())))?;
    let name = image.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let own = notes.images.get(&name).map(|image| image.profile.clone());
    let Some(profile) = own.or(notes.profile) else { return Ok(None) };
    known(&profile, &shown)?;
    Ok(Some(Remembered { profile, from: shown }))
}

/// The text of a plain file; `None` if there is none. Neither a pipe nor a device is waited for.
fn read(path: &Path) -> Result<Option<String>, String> {
    let is_file = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(words::os(&e)),
        Ok(found) => found.is_file(),
    };
    if !is_file {
        return Err("it is no plain file".into());
    }
    let file = File::options().read(true).custom_flags(NONBLOCK).open(path).map_err(|e| words::os(&e))?;
    crate::input_text::read(file, LONGEST).map(Some)
}

/// Linux's `O_NONBLOCK`: what became a pipe since it was looked at is not waited for.
const NONBLOCK: i32 = 0o4000;

fn known(name: &str, from: &str) -> Result<(), String> {
    profile::named(name).map(|_| ()).ok_or_else(|| {
        let names: Vec<&str> = profile::PROFILES.iter().map(|p| p.name).collect();
        format!("{from}: no profile '{name}': there are {}, raidCHUNKxDISKS", names.join(", "))
    })
}

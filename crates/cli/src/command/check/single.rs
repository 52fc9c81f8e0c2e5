//! One target of a fleet: its lines, or the class of the error that came instead.

use super::args::Form;
use super::names::Item;
use super::permits::Permits;
use super::{survey_one, walk};
use crate::disk_options::DiskOptions;
use crate::failure::Reason;
use crate::render::report::json;
use crate::render::report::rows::{self, State};
use crate::report::{CHECK, Target};
use crate::shard;
use crate::target::object::{self, Requests};
use crate::target::open::followed;
use crate::target::{self, DiskOverrides, Named};
use crate::words;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;

/// Manner in which targets are checked: what was said of their disks, and the form of the lines.
pub(super) struct Manner<'a> {
    pub(super) disk: &'a DiskOptions,
    pub(super) overrides: &'a DiskOverrides,
    pub(super) form: Form,
    /// Permits for files: threads that wait for servers are many, and files are read by as many as
    /// there are processors.
    pub(super) permits: &'a Permits,
}

/// Fate of a target.
pub(super) enum Outcome {
    /// Its lines, what is counted of it, and the requests that it took.
    Checked(Vec<u8>, Box<Target>, Requests),
    /// The name, the class of the error, and the error.
    Unread(String, &'static str, String),
    /// A file that holds nothing known.
    Other(String),
    /// Lines of it are there already.
    Done,
}

impl Manner<'_> {
    /// Checks one target, unless `is_done` says so of its name and state.
    pub(super) fn check(&self, item: Item, is_done: impl Fn(&str, &str) -> bool) -> Outcome {
        let (name, is_found) = match item {
            Item::Named(name) => (name, false),
            Item::Found(name) => (name, true),
            Item::Unread(why) => return Outcome::Unread(String::new(), "unreadable", why),
        };
        let is_here = name.as_ref().is_ok_and(|name| !name.is_remote());
        let _permit = is_here.then(|| self.permits.take());
        let mut state =
            name.as_ref().map(|name| state(name, self.disk, self.overrides)).unwrap_or_default();
        if name.as_ref().is_ok_and(|name| is_done(name.typed(), &state.etag)) {
            return Outcome::Done;
        }
        match survey_one(&name, self.overrides) {
            Ok(target) if is_found && !walk::is_image(&target) => Outcome::Other(target.target),
            Ok(target) => {
                let object = name.as_ref().ok().and_then(target::Target::only_object);
                if object.is_some_and(object::Spelling::leads_elsewhere) {
                    // What it says depends on objects that its own state does not know.
                    state.etag.clear();
                }
                let mut lines = Vec::new();
                let written = match self.form {
                    Form::Rows => rows::write(&target, &state, &mut lines),
                    _ => json::write_line(CHECK, &target, &state, &mut lines),
                };
                match written {
                    Ok(()) => {
                        let requests = name.as_ref().map(Requests::of).unwrap_or_default();
                        Outcome::Checked(lines, Box::new(target), requests)
                    }
                    Err(e) => Outcome::Unread(target.target, "unreadable", words::os(&e)),
                }
            }
            Err(Reason(why)) => {
                let typed = match &name {
                    Ok(name) => name.typed().to_owned(),
                    Err(name) => name.shown(),
                };
                Outcome::Unread(typed, class(&name), why)
            }
        }
    }
}

/// Writes the line of a target that could not be read.
pub(super) fn write_error(
    form: Form,
    (name, class, why): (&str, &str, &str),
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match form {
        Form::Rows => rows::write_error(name, class, why, out),
        _ => json::write_error(CHECK, name, class, why, out),
    }
}

/// The word for the state of a target, with what was said of its disk; empty for no state.
pub(super) fn judged(etag: String, disk: &DiskOptions) -> String {
    let words = disk.words().join(" ");
    let said = if words.is_empty() { 0 } else { shard::fnv1a(words.as_bytes()) };
    if etag.is_empty() { etag } else { format!("{etag}-{said:x}") }
}

/// The state of a target that is one file or object, as it is judged: by the file, by those that it
/// leads to, and by what was said of the disk.
pub(super) fn state(name: &target::Target, disk: &DiskOptions, overrides: &DiskOverrides) -> State {
    if let Some(object) = name.only_object() {
        let (size, etag) = object.state();
        return State { size, etag: judged(etag, disk) };
    }
    let known = name.only_path().and_then(|path| fs::metadata(path).ok());
    known.filter(fs::Metadata::is_file).map_or_else(State::default, |file| {
        let others: Vec<String> = followed(name, overrides)
            .into_iter()
            .map(|path| fs::metadata(path).map_or_else(|_| "-".into(), |file| version(&file)))
            .collect();
        let mut etag = version(&file);
        if !others.is_empty() {
            etag = format!("{etag}-{:x}", shard::fnv1a(others.join(" ").as_bytes()));
        }
        State { size: file.len(), etag: judged(etag, disk) }
    })
}

/// The word for the version of a file: its times, inode and length.
fn version(file: &fs::Metadata) -> String {
    format!(
        "{:x}-{:x}-{:x}-{:x}-{:x}-{:x}",
        file.mtime(),
        file.mtime_nsec(),
        file.ctime(),
        file.ctime_nsec(),
        file.ino(),
        file.len()
    )
}

/// The class of the error of a target that could not be read. Only a regular file is opened again:
/// a pipe would wait for a writer.
fn class(name: &Named) -> &'static str {
    let Ok(name) = name else { return "name" };
    if let Some(class) = name.object_error() {
        return class;
    }
    if name.is_remote() {
        return "remote";
    }
    let opened = |path| match fs::metadata(path) {
        Ok(found) if found.is_file() => File::open(path).err(),
        found => found.err(),
    };
    match name.paths().into_iter().find_map(opened).map(|e| e.kind()) {
        Some(ErrorKind::NotFound) => "not found",
        Some(ErrorKind::PermissionDenied) => "denied",
        Some(_) => "unreadable",
        None => "refused",
    }
}

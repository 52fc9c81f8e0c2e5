//! Files of settings: their places, and the owners that are believed.

use crate::failure::Reason;
use crate::input_text;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use trueline_host::process;

/// Environment variable that names the file.
pub(crate) const VARIABLE: &str = "TRUELINE_CONFIG";
/// Command-line option that names the file.
const OPTION: &str = "--config";
/// The file of the machine.
const OF_MACHINE: &str = "/etc/trueline.toml";
/// Name of the user's file, in the directory of configurations.
const NAME: &str = "trueline.toml";
/// Linux's device number of `/dev/null`, which stands for no settings, by any name.
const NOTHING: u64 = 1 << 8 | 3;
/// Longest file of settings, in bytes.
const LONGEST: u64 = 1 << 20;

/// A file that is looked for.
#[derive(Clone, Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    /// The reason for looking there: an option, a variable, `user`, `machine`.
    pub(crate) by: &'static str,
}

/// Outcome of a file that was looked for.
#[derive(Clone, Debug)]
pub(crate) enum FileState {
    Read,
    Absent,
    /// It is there, and not believed, or cannot be opened: the reason.
    Refused(String),
    /// Its lines that are wrong, each with its place.
    Wrong(Vec<String>),
}

impl FileState {
    /// Lines of what is wrong in it.
    pub(crate) fn errors(&self) -> &[String] {
        match self {
            FileState::Wrong(lines) => lines,
            _ => &[],
        }
    }
}

/// The files to read, the one that counts first before others: the named one alone, or those of the
/// user and of the machine.
pub(super) fn places(named: Option<&Path>) -> Vec<ConfigFile> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(path) = named {
        return vec![ConfigFile::named(path)];
    }
    if let Some(path) = variable(VARIABLE) {
        return vec![ConfigFile { path: path.into(), by: VARIABLE }];
    }
    // A directory that depends on where a command is run could be any user's.
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory =
        absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    let user = directory.map(|directory| ConfigFile { path: directory.join(NAME), by: "user" });
    user.into_iter().chain([ConfigFile { path: OF_MACHINE.into(), by: "machine" }]).collect()
}

impl ConfigFile {
    /// The file that the command line names.
    pub(super) fn named(path: &Path) -> ConfigFile {
        ConfigFile { path: path.into(), by: OPTION }
    }

    /// Its path as messages show it.
    pub(crate) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Its text; `None` if there is no such file and none was named. Errors: it is not to be
    /// believed; it is no file of text; it is named, and cannot be read.
    pub(super) fn text(&self) -> Result<Option<String>, FileState> {
        let is_named = [OPTION, VARIABLE].contains(&self.by);
        let wrong = |why: Reason| FileState::Wrong(vec![format!("read {}: {why}", self.name())]);
        let refused = |why: Reason| if is_named { wrong(why) } else { FileState::Refused(why.0) };
        let file = match input_text::open(&self.path) {
            Err(e) if !is_named && (is_absent(&e) || self.is_out_of_reach()) => return Ok(None),
            Err(e) => return Err(refused(e.into())),
            Ok(file) => file,
        };
        let found = file.metadata().map_err(|e| refused(e.into()))?;
        if found.file_type().is_char_device() && found.rdev() == NOTHING {
            return Ok(Some(String::new()));
        }
        if self.by != OPTION {
            self.believed(&found, process::user()).map_err(|why| {
                let rest = format!("{OPTION} FILE reads it all the same");
                refused(Reason(format!("{why}: {rest}")))
            })?;
        }
        if !found.is_file() {
            return Err(wrong(Reason("it is not a regular file".into())));
        }
        input_text::read(file, LONGEST).map(Some).map_err(wrong)
    }

    /// True if nothing can be known of it, not even that it is there: its directory is closed to
    /// this user.
    fn is_out_of_reach(&self) -> bool {
        self.path.symlink_metadata().is_err_and(|e| e.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Refuses a file that another user than root and `user` wrote, or may write: under sudo, HOME
    /// may still be that of the caller. Root believes none in a directory of another user either,
    /// which may hold a link.
    fn believed(&self, file: &Metadata, user: u32) -> Result<(), Reason> {
        owned(file, user, "it", "it")?;
        let directory = self.path.parent().filter(|at| !at.as_os_str().is_empty());
        match user {
            0 => owned(
                &directory.unwrap_or(Path::new(".")).metadata()?,
                user,
                "its directory",
                "to its directory",
            ),
            _ => Ok(()),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses what another user than root and `user` owns, or may write. Root is asked for more, since
/// what is root's is no group's.
fn owned(found: &Metadata, user: u32, what: &str, place: &str) -> Result<(), Reason> {
    let (owner, mode) = (found.uid(), found.mode() & 0o7777);
    let others = if user == 0 { 0o022 } else { 0o002 };
    if ![0, user].contains(&owner) {
        Err(Reason(format!("{what} belongs to the user {owner}")))
    } else if mode & others != 0 {
        Err(Reason(format!("others may write {place} (mode {mode:04o})")))
    } else {
        Ok(())
    }
}

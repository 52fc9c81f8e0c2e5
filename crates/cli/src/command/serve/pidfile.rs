//! `--pidfile`: the process's number, for scripts, while the server runs.

use crate::failure::Failure;
use crate::{replaced, words};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file; it is removed when the value is dropped.
pub(super) struct Pidfile(PathBuf);

/// Most bytes of a number and its line end.
const LONGEST: u64 = 21;

impl Pidfile {
    /// Writes the file in one step, so that no reader finds a part of it. Errors: another kind of
    /// file is there, or a write fails.
    pub(super) fn write(path: &Path) -> Result<Pidfile, Failure> {
        let failed = |why: String| Failure::Message(format!("write {}: {why}", path.display()));
        if !may_be_replaced(path).map_err(|e| failed(words::os(&e)))? {
            return Err(failed(
                "it is there and holds no process's number: name another file".into(),
            ));
        }
        // A name that others can guess may be a link of theirs: the file beside is always new.
        replaced::replace(path, None, |out| writeln!(out, "{}", std::process::id()))
            .map_err(|e| failed(words::os(&e)))?;
        Ok(Pidfile(path.to_owned()))
    }
}

/// True if nothing is at the path, or a file with a process's number.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
        Ok(found) if !found.is_file() || found.len() > LONGEST => Ok(false),
        Ok(_) => Ok(fs::read(path)?
            .iter()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace())),
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // Another server may have put its own there.
        if fs::read_to_string(&self.0)
            .is_ok_and(|text| text.trim() == std::process::id().to_string())
        {
            let _ = fs::remove_file(&self.0);
        }
    }
}

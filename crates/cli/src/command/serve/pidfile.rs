//! `--pidfile`: the number of the process, where scripts find it while something is served.

use crate::failure::Failure;
use crate::words;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file: dropping it removes it.
pub(super) struct Pidfile(PathBuf);

/// The most bytes that a number and the end of its line have.
const LONGEST: u64 = 21;

impl Pidfile {
    /// Writes it, in one step, so that no reader finds a part. What is there and is no such file is left as it is.
    pub(super) fn write(path: &Path) -> Result<Pidfile, Failure> {
        let failed = |why: String| Failure::Message(format!("write {}: {why}", path.display()));
        if !may_be_replaced(path).map_err(|e| failed(words::os(&e)))? {
            return Err(failed("it is there and holds no process's number: name another file".into()));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        let number = std::process::id();
        name.push(format!(".{number}"));
        let new = path.with_file_name(name);
        fs::write(&new, format!("{number}\n")).and_then(|()| fs::rename(&new, path)).map_err(|e| {
            // What is left of the attempt is of no use; if it cannot be removed either, the reason is the same.
            let _ = fs::remove_file(&new);
            failed(words::os(&e))
        })?;
        Ok(Pidfile(path.to_owned()))
    }
}

/// Permission to replace a path: nothing is there, or the number of a process.
fn may_be_replaced(path: &Path) -> io::Result<bool> {
    match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
        Ok(found) if !found.is_file() || found.len() > LONGEST => Ok(false),
        Ok(_) => Ok(fs::read(path)?.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_whitespace())),
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // Another server may have put its own there.
        if fs::read_to_string(&self.0).is_ok_and(|text| text.trim() == std::process::id().to_string()) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

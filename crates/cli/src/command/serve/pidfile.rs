//! `--pidfile`: the process's number, for scripts, while the server runs.

use crate::failure::Failure;
use crate::words;
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
        let mut name = path.file_name().unwrap_or_default().to_owned();
        let number = std::process::id();
        name.push(format!(".{number}"));
        let new = path.with_file_name(name);
        fs::write(&new, format!("{number}\n")).and_then(|()| fs::rename(&new, path)).map_err(
            |e| {
                // The rest of the attempt is of no use; if it cannot be removed either, the reason
                // is the same.
                let _ = fs::remove_file(&new);
                failed(words::os(&e))
            },
        )?;
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

//! Another program of this system, run to its end.
//!
//! # Limits
//! What it prints is kept in memory; it gets nothing to read, so that it asks nothing.

use crate::error::Error;
use crate::process::tmpfile::Unnamed;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// How it ended.
pub struct Ran {
    /// Its status.
    pub status: ExitStatus,
    /// What it said, its errors first.
    pub said: String,
}

/// Where the program `name` is: in `PATH`, or in the `sbin` beside a `bin` of it, which users other than root often do not
/// have there.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let own: Vec<PathBuf> = env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    let beside = own.iter().filter(|dir| dir.ends_with("bin")).map(|dir| dir.with_file_name("sbin"));
    let runs = |file: &PathBuf| file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    own.iter().cloned().chain(beside).map(|dir| dir.join(name)).find(runs)
}

/// Runs `program`. It inherits `file`, if there is one.
pub fn run(program: &Path, arguments: &[OsString], file: Option<&Unnamed>) -> Result<Ran, Error> {
    let failed = |e: std::io::Error| Error::os("run", program, e);
    file.map_or(Ok(()), Unnamed::bequeath).map_err(|e| failed(e.into()))?;
    // Options are understood wherever they stand: what a user adds comes after the device.
    let output = Command::new(program).args(arguments).env_remove("POSIXLY_CORRECT").stdin(Stdio::null()).output().map_err(failed)?;
    let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).join("\n");
    Ok(Ran { status: output.status, said })
}

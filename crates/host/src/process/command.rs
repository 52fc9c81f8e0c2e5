//! Another program of this system, run to its end.
//!
//! # Limits
//! Its output is kept in memory. Its input is empty, so that it asks no questions.

use crate::error::Error;
use crate::process::tmpfile::TemporaryFile;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

/// The result of a program.
pub struct Ran {
    /// The exit status of the program.
    pub status: ExitStatus,
    /// The output of the program, its errors first.
    pub said: String,
    /// Text of its standard error: errors and warnings.
    pub errors: String,
}

/// The path of the program `name`: in `PATH`, or in the `sbin` beside one of its `bin` directories,
/// which users other than root often lack in theirs.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let own: Vec<PathBuf> = env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    let beside =
        own.iter().filter(|dir| dir.ends_with("bin")).map(|dir| dir.with_file_name("sbin"));
    let runs = |file: &PathBuf| {
        file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    own.iter().cloned().chain(beside).map(|dir| dir.join(name)).find(runs)
}

/// Runs `program` to its end. It inherits the descriptor of `file`, if there is one.
pub fn run(
    program: &Path,
    arguments: &[OsString],
    file: Option<&TemporaryFile>,
) -> Result<Ran, Error> {
    let failed = |e: std::io::Error| Error::os("run", program, e);
    file.map_or(Ok(()), TemporaryFile::bequeath).map_err(|e| failed(e.into()))?;
    // Without POSIXLY_CORRECT, options are understood in any place: a user's own come after the
    // device.
    let output = Command::new(program)
        .args(arguments)
        .env_remove("POSIXLY_CORRECT")
        .stdin(Stdio::null())
        .output()
        .map_err(failed)?;
    let [errors, rest] =
        [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Ran { status: output.status, said: format!("{errors}\n{rest}"), errors })
}

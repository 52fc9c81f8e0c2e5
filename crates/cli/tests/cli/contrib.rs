//! The files of `contrib/`, as their users have them: copied, and run with the programs that they
//! are for.

mod fleets;
mod pipelines;
mod recipes;
mod watched;

use crate::program;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file of `contrib/`.
fn contrib(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib").join(name)
}

/// The text of a file of `contrib/`.
fn text(name: &str) -> String {
    fs::read_to_string(contrib(name)).unwrap_or_else(|e| panic!("contrib/{name}: {e}"))
}

/// Another program than `trueline`, in the environment of [`program`], with `trueline` first on its
/// path.
fn beside_trueline(directory: &Path, name: impl AsRef<std::ffi::OsStr>) -> Command {
    let trueline = Path::new(env!("CARGO_BIN_EXE_trueline")).parent().expect("its directory");
    let mut command = Command::new(name);
    command.current_dir(directory);
    for (key, value) in program(directory).get_envs() {
        match value {
            Some(value) if key == "PATH" => {
                let path = format!("{}:{}", trueline.display(), value.to_string_lossy());
                command.env(key, path);
            }
            Some(value) => _ = command.env(key, value),
            None => _ = command.env_remove(key),
        }
    }
    command
}

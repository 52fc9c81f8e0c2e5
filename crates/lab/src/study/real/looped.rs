//! A loop device over the scratch file from a byte on: a layer that may begin off the boundaries
//! beneath it, as a partition may.
//!
//! # Sources
//! losetup(8), loop(4): a detached device that is still open disappears when its last user closes
//! it or ends.

use crate::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use trueline_host::disk::file::{self, Access, Medium};
use trueline_host::process::command;
use trueline_host::process::tmpfile::TemporaryFile;

/// A loop device, which exists until this is dropped.
pub(super) struct Looped {
    pub(super) medium: Medium,
    pub(super) path: PathBuf,
}

impl Looped {
    /// A loop device of `length` bytes of the file from `offset` on. It uses direct I/O: through
    /// the page cache everything would be in memory.
    pub(super) fn new(file: &TemporaryFile, offset: u64, length: u64) -> Result<Looped, Error> {
        let losetup = command::find("losetup").ok_or_else(|| {
            Error::new("make a loop device: losetup is not installed: install util-linux".into())
        })?;
        let asked = ["--find".into(), "--show".into(), "--direct-io=on".into()];
        let part = [
            format!("--offset={offset}").into(),
            format!("--sizelimit={length}").into(),
            file.path().into(),
        ];
        let arguments: Vec<OsString> = asked.into_iter().chain(part).collect();
        let failed = |why: &str| {
            Error::new(format!("make a loop device from byte {offset} of the scratch file: {why}"))
        };
        let ran =
            command::run(&losetup, &arguments, Some(file)).map_err(|e| failed(&e.to_string()))?;
        let mut lines = ran.said.lines().map(str::trim).filter(|line| !line.is_empty());
        let path = match lines.clone().find(|line| line.starts_with("/dev/")) {
            Some(path) if ran.status.success() => PathBuf::from(path),
            _ => return Err(failed(lines.next().unwrap_or("losetup printed nothing"))),
        };
        let opened = file::open_for(&path, Access::Write);
        let detached = command::run(&losetup, &["--detach".into(), path.clone().into()], None);
        let medium = opened.map_err(|e| failed(&e.to_string()))?.store;
        detached.map_err(|e| failed(&e.to_string()))?;
        if is_direct(&path) {
            Ok(Looped { medium, path })
        } else {
            Err(failed(
                "its file system has no direct I/O, and the page cache would be measured instead",
            ))
        }
    }
}

/// True if the device uses direct I/O on its file (`Documentation/ABI/testing/sysfs-block-loop`).
fn is_direct(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let said = std::fs::read_to_string(Path::new("/sys/block").join(name).join("loop/dio"));
    said.is_ok_and(|said| said.trim() == "1")
}

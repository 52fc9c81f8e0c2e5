//! A loop device over the scratch file, from a byte of it on: a layer that may begin off what is beneath it, as a partition may.
//!
//! # Sources
//! losetup(8), loop(4): a device that is detached while somebody has it open goes when he closes it, however his program ends.

use crate::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use trueline_host::disk::file::{self, Access, Medium};
use trueline_host::process::command;
use trueline_host::process::tmpfile::Unnamed;

/// The device, which is there as long as this is.
pub(super) struct Looped {
    pub(super) medium: Medium,
    pub(super) path: PathBuf,
}

impl Looped {
    /// `length` bytes of the file from `offset` on. Requests go past the page cache of the file: it would have them all in memory.
    pub(super) fn new(file: &Unnamed, offset: u64, length: u64) -> Result<Looped, Error> {
        let losetup =
            command::find("losetup").ok_or_else(|| Error("make a loop device: losetup is not here: install util-linux".into()))?;
        let asked = ["--find".into(), "--show".into(), "--direct-io=on".into()];
        let part = [format!("--offset={offset}").into(), format!("--sizelimit={length}").into(), file.path().into()];
        let arguments: Vec<OsString> = asked.into_iter().chain(part).collect();
        let failed = |why: &str| Error(format!("make a loop device from byte {offset} of the scratch file: {why}"));
        let ran = command::run(&losetup, &arguments, Some(file)).map_err(|e| failed(&e.to_string()))?;
        let mut lines = ran.said.lines().map(str::trim).filter(|line| !line.is_empty());
        let path = match lines.clone().find(|line| line.starts_with("/dev/")) {
            Some(path) if ran.status.success() => PathBuf::from(path),
            _ => return Err(failed(lines.next().unwrap_or("losetup says nothing"))),
        };
        let opened = file::open_for(&path, Access::Write);
        let detached = command::run(&losetup, &["--detach".into(), path.clone().into()], None);
        let medium = opened.map_err(|e| failed(&e.to_string()))?.store;
        detached.map_err(|e| failed(&e.to_string()))?;
        if is_direct(&path) {
            Ok(Looped { medium, path })
        } else {
            Err(failed("this file system takes no direct I/O there, and the page cache would be what is measured"))
        }
    }
}

/// Whether the device asks for its file past the page cache (`Documentation/ABI/testing/sysfs-block-loop`).
fn is_direct(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let said = std::fs::read_to_string(Path::new("/sys/block").join(name).join("loop/dio"));
    said.is_ok_and(|said| said.trim() == "1")
}

//! An instance of the kernel's tracing: buffers and events of its own, apart from those of others.

use crate::error::Error;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where tracefs is mounted, since Linux 4.1 and before.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The beginning of the names of all instances.
const PREFIX: &str = "trueline-";

/// The most bytes that are read of a file: the kernel's own limit is a page.
const TEXT: usize = 64 << 10;

/// A directory `instances/trueline-PID-START-NUMBER`, until it is dropped.
pub(super) struct Instance {
    path: PathBuf,
}

impl Instance {
    /// A new instance, after those of programs that were killed are removed. Errors: tracefs is not
    /// mounted, or may not be used.
    pub(super) fn new() -> Result<Instance, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let instances = instances()?;
        sweep(&instances)?;
        let pid = std::process::id();
        let began = began(pid).unwrap_or(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = instances.join(format!("{PREFIX}{pid}-{began}-{number}"));
        fs::create_dir(&path).map_err(|e| failed(&path, e))?;
        Ok(Instance { path })
    }

    /// The path of `file` in the instance.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// The text of a file, of at most [`TEXT`] bytes. `header_page` gives all of itself to the
    /// first read and nothing to a second one.
    pub(super) fn read(&self, file: &str) -> Result<String, Error> {
        let path = self.path(file);
        let mut text = vec![0; TEXT];
        let read = fs::File::open(&path).and_then(|mut opened| opened.read(&mut text));
        text.truncate(read.map_err(|e| failed(&path, e))?);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes `value` to a file, in one call.
    pub(super) fn write(&self, file: &str, value: &str) -> Result<(), Error> {
        let path = self.path(file);
        fs::write(&path, value).map_err(|e| failed(&path, e))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // One whose events are on is in use while one of them is recorded. What stays is left to
        // the next sweep.
        let _ = self.write("events/enable", "0");
        let _ = fs::remove_dir(&self.path);
    }
}

/// The directory of all instances. Errors: tracefs is not mounted, or may not be used.
fn instances() -> Result<PathBuf, Error> {
    for mount in MOUNTS {
        let path = Path::new(mount).join("instances");
        match path.metadata() {
            Ok(_) => return Ok(path),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => return Err(failed(&path, e)),
            Err(_) => {}
        }
    }
    let remedy = "mount -t tracefs nodev /sys/kernel/tracing";
    Err(Error::not("trace requests with", MOUNTS[0], "tracefs is not mounted", remedy))
}

fn failed(path: &Path, error: io::Error) -> Error {
    let denied = error.kind() == ErrorKind::PermissionDenied;
    let mut failed = Error::os("trace requests with", path, error);
    if denied && !rustix::process::geteuid().is_root() {
        failed.remedy = "run as root".into();
    }
    failed
}

/// Removes the instances of programs that are no more.
fn sweep(instances: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(instances).map_err(|e| failed(instances, e))?;
    for entry in entries.flatten() {
        if is_abandoned(&entry.file_name().to_string_lossy(), began) {
            // One that a program of another container reads is in use, and stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
    Ok(())
}

/// True of the name of an instance whose program is no more; `began` has the start of a process. A
/// process of the same number that began at another time is another program.
pub(super) fn is_abandoned(name: &str, began: impl Fn(u32) -> Option<u64>) -> bool {
    let parts = || -> Option<(u32, u64)> {
        let mut parts = name.strip_prefix(PREFIX)?.split('-');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    };
    parts().is_some_and(|(pid, at)| began(pid) != Some(at))
}

/// The start of a process in ticks since the machine's, the 22nd field of `/proc/PID/stat`
/// (`proc_pid_stat(5)`); `None` if there is no such process.
fn began(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may have any bytes.
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

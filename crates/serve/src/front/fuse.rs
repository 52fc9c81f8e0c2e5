//! Exports as files: a mount through which programs, and the loop driver of the kernel, reach a
//! provider.
//!
//! # Limits
//! The kernel caches nothing (`FOPEN_DIRECT_IO`): every read reaches the store, so counters see all
//! requests, and two fronts of a provider see each other's writes. A file keeps the length of its
//! provider: it cannot be truncated.
//!
//! # Sources
//! Linux `Documentation/filesystems/fuse/`, `include/uapi/linux/fuse.h`, fuse(4), fallocate(2),
//! lseek(2), prctl(2) (`PR_SET_IO_FLUSHER`).

use crate::export::Exports;
use crate::front::as_io_flusher;
use files::{Files, Gate};
use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use rustix::fs::{AtFlags, CWD, FileType, StatxAttributes, StatxFlags};
use rustix::mount::UnmountFlags;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tree::Tree;
use trueline_host::error::Error;
use trueline_host::lock::lock;

mod files;
mod range;
mod tree;

/// The most threads that answer: one for each request that a store works on at a time.
const THREADS: usize = 64;
/// The interval between two checks for the end.
const TICK: Duration = Duration::from_millis(20);
/// The time for clients to close their files at the end: a loop device is detached some time after
/// the request.
const GRACE: Duration = Duration::from_secs(1);

/// A mount of exports.
pub struct Mounted {
    point: PathBuf,
    /// The file of the default export.
    file: PathBuf,
    gate: Arc<Gate>,
    unmounter: Mutex<SessionUnmounter>,
    session: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

/// Mounts `exports` at `point`: on a directory, a file for each; on a file, the first of them.
pub fn mount(point: &Path, exports: &Arc<Exports>) -> Result<Mounted, Error> {
    let directory = is_directory(point)?;
    // An absolute path holds even if this program changes its working directory.
    let point = std::path::absolute(point).map_err(|e| Error::os("mount on", point, e))?;
    let (tree, file) = if directory {
        // The first export is the target that was named, whatever its name for NBD clients.
        let others = exports.0.iter().skip(1).map(|export| export.name.as_str());
        (Tree::directory(std::iter::once("").chain(others)), point.join(tree::DEFAULT))
    } else {
        (Tree::file(), point.clone())
    };
    let gate = Arc::new(Gate::default());
    let read_only = exports.0.iter().all(|export| export.read_only);
    let threads = exports
        .0
        .iter()
        .map(|export| export.store.properties().depth)
        .max()
        .unwrap_or(1)
        .clamp(1, THREADS);
    let files = Files::new(exports.clone(), tree, gate.clone());
    let mut session =
        Session::new(files, &point, &config(read_only, threads)).map_err(|e| refused(&point, e))?;
    let unmounter = Mutex::new(session.unmount_callable());
    let serve = move || {
        as_io_flusher();
        session.run()
    };
    let session = thread::Builder::new()
        .name("fuse".into())
        .spawn(serve)
        .map_err(|e| Error::os("mount on", &point, e))?;
    Ok(Mounted { point, file, gate, unmounter, session: Mutex::new(Some(session)) })
}

/// True for a directory, false for a regular file; an error if nothing can be mounted there.
fn is_directory(point: &Path) -> Result<bool, Error> {
    let not = |found: &str, advice| {
        Err(Error::not("mount on", &point.display().to_string(), found, advice))
    };
    // Fetched from the server: the kernel's cached attributes of a dead mount look alive.
    let stat = match rustix::fs::statx(
        CWD,
        point,
        AtFlags::STATX_FORCE_SYNC,
        StatxFlags::TYPE | StatxFlags::SIZE,
    ) {
        // The server of an earlier mount has ended without unmounting.
        Err(rustix::io::Errno::NOTCONN) => {
            return not("a dead mount is there", "end it with umount or fusermount3 -u");
        }
        Err(e) => return Err(Error::os("mount on", point, e)),
        Ok(stat) => stat,
    };
    if stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT)
        && stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
    {
        return not("something is mounted there", "unmount it, or name another directory or file");
    }
    match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::Directory => Ok(true),
        FileType::RegularFile => Ok(false),
        _ => not("it is neither a directory nor a file", "name a directory or a file"),
    }
}

fn config(read_only: bool, threads: usize) -> Config {
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("trueline".into()), MountOption::Subtype("trueline".into())];
    config.mount_options.extend([MountOption::NoExec, MountOption::NoAtime]);
    config.mount_options.push(if read_only { MountOption::RO } else { MountOption::RW });
    config.acl = SessionACL::Owner;
    config.n_threads = Some(threads);
    config.clone_fd = true;
    config
}

/// The error of a failed mount.
fn refused(point: &Path, e: io::Error) -> Error {
    let place = point.display().to_string();
    if !Path::new("/dev/fuse").exists() {
        return Error::not(
            "mount on",
            &place,
            "there is no /dev/fuse",
            "load the kernel module fuse",
        );
    }
    match e.kind() {
        io::ErrorKind::NotFound => Error::not(
            "mount on",
            &place,
            "there is no fusermount3",
            "install fuse3, or run as root",
        ),
        io::ErrorKind::PermissionDenied => Error::not(
            "mount on",
            &place,
            "permission denied",
            "run as root, or install fuse3 and own the place",
        ),
        // The output of fusermount3, on one line.
        _ => Error::not("mount on", &place, e.to_string().trim().replace('\n', ": "), ""),
    }
}

impl Mounted {
    /// The file of the default export.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns when `stop` is set, or the mount is gone. Requests made by then have been answered.
    pub fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        while !stop.load(Ordering::Relaxed) && !self.has_ended() {
            thread::sleep(TICK);
        }
        self.end()
    }

    fn has_ended(&self) -> bool {
        self.session
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_none_or(JoinHandle::is_finished)
    }

    /// Ends the mount, even if a file is open; its client gets errors from then on.
    fn end(&self) -> Result<(), Error> {
        let unmounted = match lock(&self.unmounter).unmount() {
            // A file is open: no other can be opened, and the mount ends when this one is
            // closed.
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
                rustix::mount::unmount(&self.point, UnmountFlags::DETACH).map_err(Into::into)
            }
            // It is no mount point any more: another program has detached it.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            done => done,
        };
        let end = Instant::now() + GRACE;
        while !self.has_ended() && Instant::now() < end {
            thread::sleep(TICK);
        }
        self.gate.close();
        let mut session = lock(&self.session);
        unmounted.map_err(|e| Error::os("unmount", &self.point, e))?;
        match session.take_if(|session| session.is_finished()).map(JoinHandle::join) {
            // The threads end with the program, and the kernel reports errors to clients with open
            // files.
            None | Some(Ok(Ok(()))) => Ok(()),
            // The connection ended as a thread took a request from it: the release of the last
            // open file, as a rule. Linux `fuse_dev_do_read`.
            Some(Ok(Err(e))) if e.kind() == io::ErrorKind::ConnectionAborted => Ok(()),
            Some(Ok(Err(e))) => Err(Error::os("serve", &self.point, e)),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if !self.gate.is_closed() {
            // An earlier error is the one to report.
            let _ = self.end();
        }
    }
}

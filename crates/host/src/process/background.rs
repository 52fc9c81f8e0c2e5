//! A server in the background: the process that was started ends once its child serves.
//!
//! The child stays in the parent's process group, and ends with the parent, until it is ready:
//! Ctrl-C reaches both. Then it has a session of its own.
//!
//! # Sources
//! fork(2), signal-safety(7), setsid(2), daemon(7); QEMU, `qemu-nbd.c` (`--fork`).

#![allow(
    unsafe_code,
    reason = "fork(2) and dup2(2) of standard streams, which rustix does not have"
)]

use rustix::io::retry_on_intr;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, set_parent_process_death_signal, setsid, waitpid,
};
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Exit status of a child that ended without being ready and without one of its own.
const FAILED: u8 = 2;

/// The two processes after a fork.
pub enum Forked {
    /// The process that was started, which waits.
    Parent(Waiting),
    /// The new one, which is to serve.
    Child(Unready),
}

/// The parent's view of a child that is not ready yet.
pub struct Waiting {
    child: Pid,
    /// The end that is read: a byte says that the child is ready.
    told: PipeReader,
}

/// The child's duty to say when it is ready.
pub struct Unready(PipeWriter);

/// Forks this process. Errors: it has several threads, of which a child would have one; no process
/// can be made.
pub fn fork() -> io::Result<Forked> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("this process has several threads"));
    }
    let (told, tell) = io::pipe()?;
    let parent = getpid();
    // SAFETY: the process has one thread, so the child has a copy of all of it: no lock is held by
    // a thread that the child lacks.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        child => Pid::from_raw(child),
    };
    match child {
        Some(child) => Ok(Forked::Parent(Waiting { child, told })),
        None => {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            // A parent that has already ended sends no signal.
            if getppid() != Some(parent) {
                return Err(io::Error::other("the parent has ended"));
            }
            Ok(Forked::Child(Unready(tell)))
        }
    }
}

impl Waiting {
    /// Waits until the child is ready: `None`; or until it has ended: its exit status, which is not
    /// 0.
    pub fn wait(mut self) -> io::Result<Option<u8>> {
        // Without a byte the pipe has ended, and so has the child.
        if self.told.read(&mut [0])? == 1 {
            return Ok(None);
        }
        let ended = retry_on_intr(|| waitpid(Some(self.child), WaitOptions::empty()))?;
        let status = ended.and_then(|(_, status)| status.exit_status());
        let status = status.and_then(|status| u8::try_from(status).ok()).filter(|&code| code > 0);
        Ok(Some(status.unwrap_or(FAILED)))
    }
}

impl Unready {
    /// Leaves the parent's session, lets go of its terminal and pipes, and tells it to end. Output
    /// into files goes on.
    pub fn ready(mut self) -> io::Result<()> {
        setsid()?;
        set_parent_process_death_signal(None)?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        replace(io::stdin().as_fd(), &nothing)?;
        for stream in [io::stdout().as_fd(), io::stderr().as_fd()] {
            if !is_file(stream) {
                replace(stream, &nothing)?;
            }
        }
        // A parent that has gone meanwhile needs no word.
        let _ = self.0.write_all(&[1]);
        Ok(())
    }
}

fn is_file(stream: BorrowedFd<'_>) -> bool {
    let found = stream.try_clone_to_owned().and_then(|fd| File::from(fd).metadata());
    found.is_ok_and(|found| found.is_file())
}

/// Makes a standard stream one of `file`.
fn replace(stream: BorrowedFd<'_>, file: &File) -> io::Result<()> {
    // SAFETY: both descriptors are open; the one that is replaced is a standard stream's, which
    // stays one.
    match unsafe { libc::dup2(file.as_raw_fd(), stream.as_raw_fd()) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

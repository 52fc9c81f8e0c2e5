//! The engine that moves bytes between open files and memory: io_uring ([`crate::engine::ring`])
//! or, where that is not available, one system call for each request ([`crate::engine::sync`]). The
//! export of an NBD server takes the place of a file ([`Pipeline`]).
//!
//! Every submitted request completes exactly once, with an error if it failed. A partial transfer
//! is continued, or ends in an error.

pub mod direct;
pub mod open_file;
pub mod ring;
pub mod sync;
use crate::disk::buffers::Buffers;
use crate::engine::open_file::OpenFile;
use crate::engine::ring::{Refused, Ring};
use crate::engine::sync::Sync;
use crate::nbd::client::pipeline::Pipeline;
use crate::nbd::request::Request;
use crate::nbd::wire::{command, flag};
use rustix::io;
use trueline_geom::base::error::Errno;

/// The operation of a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// A transfer into memory.
    #[default]
    Read,
    /// A transfer from memory.
    Write,
    /// A flush, as fdatasync(2).
    Flush,
}

/// A transfer between a file and a place in the engine's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer<Tag> {
    /// The caller's tag, returned with the completion.
    pub tag: Tag,
    /// The operation of the transfer.
    pub op: Op,
    /// The index of the file among the engine's.
    pub file: usize,
    /// The offset of the first byte in the file.
    pub offset: u64,
    /// The length in bytes, at most that of a place.
    pub length: u32,
    /// True if a write must be on the medium before it is done (`RWF_DSYNC`).
    pub fua: bool,
}

/// The completion of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<Tag> {
    /// The tag of the transfer.
    pub tag: Tag,
    /// The place of its bytes in memory, which the next transfer may reuse.
    pub place: usize,
    /// The error of the transfer; `None` if it succeeded.
    pub error: Option<Errno>,
}

/// The choice of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// io_uring, or system calls if the kernel has or allows none.
    #[default]
    Best,
    /// io_uring, or an error.
    Ring,
    /// System calls alone, one at a time.
    Sync,
}

/// An engine with its files and memory. It keeps the table of transfers in flight: the caller needs
/// to know nothing but tags.
#[allow(
    clippy::large_enum_variant,
    reason = "there is one in a program, and a pointer would be followed at every request"
)]
pub enum Engine<Tag> {
    /// The engine over io_uring.
    Ring(Ring<Tag>),
    /// The engine of system calls.
    Sync(Sync<Tag>),
    /// The connection to an export, its one file.
    Export(Box<Pipeline<Tag>>),
}

impl<Tag: Copy + Default> Engine<Tag> {
    /// An engine over `files`, with as many transfers in flight as `buffers` has places.
    pub fn new(choice: Choice, files: Vec<OpenFile>, buffers: Buffers) -> io::Result<Engine<Tag>> {
        Engine::with_ring(choice, files, buffers, Ring::new)
    }

    /// As [`Engine::new`], with the constructor of the ring: a test simulates a kernel that has
    /// none.
    pub fn with_ring(
        choice: Choice,
        files: Vec<OpenFile>,
        buffers: Buffers,
        make: impl FnOnce(Vec<OpenFile>, Buffers) -> Result<Ring<Tag>, Refused>,
    ) -> io::Result<Engine<Tag>> {
        if !files.iter().all(|file| file.takes(&buffers)) {
            return Err(io::Errno::INVAL);
        }
        if choice == Choice::Sync {
            return Ok(Engine::Sync(Sync::new(files, buffers)));
        }
        match make(files, buffers) {
            Ok(ring) => Ok(Engine::Ring(ring)),
            // ENOSYS: a kernel without; EPERM: sysctl kernel.io_uring_disabled or a seccomp filter;
            // ENOMEM: no memory may be locked.
            Err((
                io::Errno::NOSYS | io::Errno::PERM | io::Errno::ACCESS | io::Errno::NOMEM,
                files,
                buffers,
            )) if choice == Choice::Best => Ok(Engine::Sync(Sync::new(files, buffers))),
            Err((errno, ..)) => Err(errno),
        }
    }

    /// The name in reports: `io_uring`, `sync` or `nbd`.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Ring(_) => "io_uring",
            Engine::Sync(_) => "sync",
            Engine::Export(_) => "nbd",
        }
    }

    /// The most transfers in flight.
    pub fn depth(&self) -> usize {
        match self {
            Engine::Ring(ring) => ring.depth(),
            Engine::Sync(_) => 1,
            Engine::Export(export) => export.depth(),
        }
    }

    /// The open files of the engine; none of an export.
    pub fn files(&self) -> &[OpenFile] {
        match self {
            Engine::Ring(ring) => ring.files(),
            Engine::Sync(sync) => sync.files(),
            Engine::Export(_) => &[],
        }
    }

    /// The number of files.
    pub fn file_count(&self) -> usize {
        if matches!(self, Engine::Export(_)) { 1 } else { self.files().len() }
    }

    /// The length of a file in bytes; `None` if there is none of that index.
    pub fn file_length(&self, file: usize) -> Option<u64> {
        match self {
            Engine::Export(export) => (file == 0).then(|| export.told().length),
            _ => self.files().get(file).map(OpenFile::length),
        }
    }

    /// True if no transfer can be submitted before one completes.
    #[inline]
    pub fn is_full(&self) -> bool {
        match self {
            Engine::Ring(ring) => ring.is_full(),
            Engine::Sync(sync) => sync.is_full(),
            Engine::Export(export) => export.is_full(),
        }
    }

    /// Submits a transfer, which starts at the next [`Engine::wait`] at the latest. An error
    /// concerns this transfer alone, which then has no completion; [`Errno::Io`] if the engine is
    /// full.
    #[inline(always)]
    #[allow(
        clippy::inline_always,
        reason = "a transfer is built by its caller, and goes from registers into the queue"
    )]
    pub fn push(&mut self, transfer: Transfer<Tag>) -> Result<(), Errno> {
        match self {
            Engine::Ring(ring) => ring.push(transfer),
            Engine::Sync(sync) => sync.push(transfer),
            Engine::Export(export) => ask(export, transfer),
        }
    }

    /// Sends the submitted transfers, and waits until [`Engine::take`] has at least `least`
    /// completions, or all there will be. An error ends the engine.
    #[inline]
    pub fn wait(&mut self, least: usize) -> Result<(), Errno> {
        match self {
            Engine::Ring(ring) => ring.wait(least),
            Engine::Sync(sync) => {
                sync.wait();
                Ok(())
            }
            Engine::Export(export) => export.wait(least),
        }
    }

    /// Calls `answer` for every completion. A partial transfer is continued instead, with the next
    /// [`Engine::wait`].
    #[inline]
    pub fn take(&mut self, mut answer: impl FnMut(Finished<Tag>)) {
        match self {
            Engine::Ring(ring) => ring.take(answer),
            Engine::Sync(sync) => sync.take(answer),
            Engine::Export(export) => {
                export.take(|tag, error| answer(Finished { tag, place: 0, error }));
            }
        }
    }

    /// The bytes of one place; `None` while a transfer is in flight, and of an export.
    pub fn memory(&mut self, place: usize) -> Option<&mut [u8]> {
        match self {
            Engine::Ring(ring) => ring.memory(place),
            Engine::Sync(sync) => sync.memory(place),
            Engine::Export(_) => None,
        }
    }
}

/// Submits a transfer to an export.
#[inline(never)]
fn ask<Tag: Copy + Default>(
    export: &mut Pipeline<Tag>,
    transfer: Transfer<Tag>,
) -> Result<(), Errno> {
    let Transfer { tag, op, file, offset, length, fua } = transfer;
    if file != 0 {
        return Err(Errno::NoDevice);
    }
    let (command, offset, length) = match op {
        Op::Read => (command::READ, offset, u64::from(length)),
        Op::Write => (command::WRITE, offset, u64::from(length)),
        Op::Flush => (command::FLUSH, 0, 0),
    };
    let flags = if fua && op == Op::Write { flag::FUA } else { 0 };
    export.push(tag, Request { flags, command, cookie: 0, offset, length })
}

/// Checks that `transfer` may be sent.
#[inline]
pub(crate) fn check<Tag>(
    transfer: &Transfer<Tag>,
    files: &[OpenFile],
    buffers: &Buffers,
) -> Result<(), Errno> {
    let &Transfer { op, file, offset, length, .. } = transfer;
    let file = files.get(file).ok_or(Errno::NoDevice)?;
    match op {
        Op::Flush => Ok(()),
        _ if usize::try_from(length).is_ok_and(|length| length <= buffers.place()) => {
            file.check(offset, u64::from(length), op == Op::Write)
        }
        _ => Err(Errno::Range),
    }
}

/// True if `transfer` must be continued: `moved` bytes are done, `last` of them by the last call.
/// An error is final.
pub(crate) fn goes_on<Tag>(
    transfer: &Transfer<Tag>,
    file: &OpenFile,
    moved: u32,
    last: u32,
) -> Result<bool, Errno> {
    let &Transfer { op, offset, length, .. } = transfer;
    if op == Op::Flush || moved >= length {
        return Ok(false);
    }
    // Nothing, or a length that direct I/O cannot continue from: the file has become shorter.
    if last == 0 || !file.is_aligned(offset + u64::from(moved)) {
        return Err(if op == Op::Read { Errno::Range } else { Errno::NoSpace });
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::file;
    use crate::engine::open_file::Cache;
    use std::path::Path;

    #[test]
    fn what_is_short_is_gone_on_with_or_an_error() {
        let path = Path::new("/proc/self/exe");
        let file = OpenFile::new(&file::open(path).unwrap().store, Cache::Through, path).unwrap();
        let read =
            Transfer { tag: 1, op: Op::Read, file: 0, offset: 8192, length: 4096, fua: false };
        assert_eq!(goes_on(&read, &file, 4096, 4096), Ok(false));
        assert_eq!(goes_on(&read, &file, 1000, 1000), Ok(true));
        assert_eq!(goes_on(&read, &file, 4096, 3096), Ok(false));
        assert_eq!(goes_on(&read, &file, 0, 0), Err(Errno::Range));
        assert_eq!(goes_on(&read, &file, 1000, 0), Err(Errno::Range));
        assert_eq!(goes_on(&Transfer { op: Op::Write, ..read }, &file, 0, 0), Err(Errno::NoSpace));
        assert_eq!(goes_on(&Transfer { op: Op::Flush, length: 0, ..read }, &file, 0, 0), Ok(false));
    }
}

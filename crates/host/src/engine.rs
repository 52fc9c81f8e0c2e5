//! What moves bytes between open files and memory: io_uring ([`crate::engine::ring`]) or, where that is not to be had, one system call a
//! request ([`crate::engine::sync`]).
//!
//! Every request that is pushed is answered exactly once, with its error if it has one; what was transferred in part is completed
//! or is an error.

pub mod direct;
pub mod open_file;
pub mod ring;
pub mod sync;
use crate::disk::buffers::Buffers;
use crate::engine::open_file::OpenFile;
use crate::engine::ring::{Refused, Ring};
use crate::engine::sync::Sync;
use rustix::io;
use trueline_geom::base::error::Errno;

/// What a transfer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Op {
    /// Into memory.
    #[default]
    Read,
    /// From memory.
    Write,
    /// fdatasync(2).
    Flush,
}

/// What is asked of an engine: a file's bytes into or from a place of its own in the engine's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer<Tag> {
    /// What it is called when it is done.
    pub tag: Tag,
    /// What it does.
    pub op: Op,
    /// Which file.
    pub lane: usize,
    /// First byte of the file.
    pub offset: u64,
    /// Bytes, at most those of a place.
    pub length: u32,
    /// Whether a write is done only when it is on the medium (`RWF_DSYNC`).
    pub fua: bool,
}

/// A transfer that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished<Tag> {
    /// Which.
    pub tag: Tag,
    /// The place of its bytes in memory; the next transfer may have it.
    pub place: usize,
    /// Whether it failed.
    pub error: Option<Errno>,
}

/// Which engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// io_uring, or system calls where the kernel has or allows none.
    #[default]
    Best,
    /// io_uring or nothing.
    Ring,
    /// System calls.
    Sync,
}

/// An engine at work. It is the one table of what is in flight: a tag is all that whoever asks has to know again.
#[allow(clippy::large_enum_variant, reason = "there is one in a program, and a pointer would be followed at every request")]
pub enum Engine<Tag> {
    /// io_uring.
    Ring(Ring<Tag>),
    /// System calls.
    Sync(Sync<Tag>),
}

impl<Tag: Copy + Default> Engine<Tag> {
    /// An engine over `lanes`, for as many transfers at a time as `buffers` has places.
    pub fn new(choice: Choice, lanes: Vec<OpenFile>, buffers: Buffers) -> io::Result<Engine<Tag>> {
        Engine::with(choice, lanes, buffers, Ring::new)
    }

    /// As [`Engine::new`], with who makes the ring: a test plays a kernel that has none.
    pub fn with(
        choice: Choice,
        lanes: Vec<OpenFile>,
        buffers: Buffers,
        make: impl FnOnce(Vec<OpenFile>, Buffers) -> Result<Ring<Tag>, Refused>,
    ) -> io::Result<Engine<Tag>> {
        if !lanes.iter().all(|lane| lane.takes(&buffers)) {
            return Err(io::Errno::INVAL);
        }
        if choice == Choice::Sync {
            return Ok(Engine::Sync(Sync::new(lanes, buffers)));
        }
        match make(lanes, buffers) {
            Ok(ring) => Ok(Engine::Ring(ring)),
            // ENOSYS: a kernel without; EPERM: sysctl kernel.io_uring_disabled or a seccomp filter; ENOMEM: no memory may be locked.
            Err((io::Errno::NOSYS | io::Errno::PERM | io::Errno::ACCESS | io::Errno::NOMEM, lanes, buffers)) if choice == Choice::Best => {
                Ok(Engine::Sync(Sync::new(lanes, buffers)))
            }
            Err((errno, ..)) => Err(errno),
        }
    }

    /// Its name in reports: `io_uring`, `sync`.
    pub fn name(&self) -> &'static str {
        match self {
            Engine::Ring(_) => "io_uring",
            Engine::Sync(_) => "sync",
        }
    }

    /// Transfers it does at a time.
    pub fn depth(&self) -> usize {
        match self {
            Engine::Ring(ring) => ring.depth(),
            Engine::Sync(_) => 1,
        }
    }

    /// Its files.
    pub fn lanes(&self) -> &[OpenFile] {
        match self {
            Engine::Ring(ring) => ring.lanes(),
            Engine::Sync(sync) => sync.lanes(),
        }
    }

    /// Whether it takes no transfer before one is answered.
    #[inline]
    pub fn is_full(&self) -> bool {
        match self {
            Engine::Ring(ring) => ring.is_full(),
            Engine::Sync(sync) => sync.is_full(),
        }
    }

    /// Asks for a transfer; it begins at the next [`Engine::wait`] at the latest. An error is of this one, which then is not answered
    /// again; [`Errno::Io`] of an engine that is full.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "a transfer is built by who pushes it, and goes from registers into the queue")]
    pub fn push(&mut self, transfer: Transfer<Tag>) -> Result<(), Errno> {
        match self {
            Engine::Ring(ring) => ring.push(transfer),
            Engine::Sync(sync) => sync.push(transfer),
        }
    }

    /// Sends what was asked for, and returns when [`Engine::take`] has at least `least` transfers to look at, or all there are. An error
    /// ends the engine.
    #[inline]
    pub fn wait(&mut self, least: usize) -> Result<(), Errno> {
        match self {
            Engine::Ring(ring) => ring.wait(least),
            Engine::Sync(sync) => {
                sync.wait();
                Ok(())
            }
        }
    }

    /// Answers what is done. What was transferred in part is not: the rest is asked for, and sent at the next [`Engine::wait`].
    #[inline]
    pub fn take(&mut self, answer: impl FnMut(Finished<Tag>)) {
        match self {
            Engine::Ring(ring) => ring.take(answer),
            Engine::Sync(sync) => sync.take(answer),
        }
    }

    /// The bytes of one place; nothing is in flight, else [`None`].
    pub fn memory(&mut self, place: usize) -> Option<&mut [u8]> {
        match self {
            Engine::Ring(ring) => ring.memory(place),
            Engine::Sync(sync) => sync.memory(place),
        }
    }
}

/// Whether `transfer` may be sent.
#[inline]
pub(crate) fn check<Tag>(transfer: &Transfer<Tag>, lanes: &[OpenFile], buffers: &Buffers) -> Result<(), Errno> {
    let &Transfer { op, lane, offset, length, .. } = transfer;
    let lane = lanes.get(lane).ok_or(Errno::NoDevice)?;
    match op {
        Op::Flush => Ok(()),
        _ if usize::try_from(length).is_ok_and(|length| length <= buffers.place()) => {
            lane.check(offset, u64::from(length), op == Op::Write)
        }
        _ => Err(Errno::Range),
    }
}

/// Whether there is more to ask for of `transfer`, of which `moved` bytes are done, `last` of them by the last call; or an error that
/// is final.
pub(crate) fn goes_on<Tag>(transfer: &Transfer<Tag>, lane: &OpenFile, moved: u32, last: u32) -> Result<bool, Errno> {
    let &Transfer { op, offset, length, .. } = transfer;
    if op == Op::Flush || moved >= length {
        return Ok(false);
    }
    // Nothing, or a part that direct I/O cannot go on from: the end of a file that is shorter than it was.
    if last == 0 || !lane.is_aligned(offset + u64::from(moved)) {
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
        let lane = OpenFile::new(&file::open(path).unwrap().store, Cache::Through, path).unwrap();
        let read = Transfer { tag: 1, op: Op::Read, lane: 0, offset: 8192, length: 4096, fua: false };
        assert_eq!(goes_on(&read, &lane, 4096, 4096), Ok(false));
        assert_eq!(goes_on(&read, &lane, 1000, 1000), Ok(true));
        assert_eq!(goes_on(&read, &lane, 4096, 3096), Ok(false));
        assert_eq!(goes_on(&read, &lane, 0, 0), Err(Errno::Range));
        assert_eq!(goes_on(&read, &lane, 1000, 0), Err(Errno::Range));
        assert_eq!(goes_on(&Transfer { op: Op::Write, ..read }, &lane, 0, 0), Err(Errno::NoSpace));
        assert_eq!(goes_on(&Transfer { op: Op::Flush, length: 0, ..read }, &lane, 0, 0), Ok(false));
    }
}

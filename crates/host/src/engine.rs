//! What moves bytes between open files and memory: io_uring ([`crate::ring`]) or, where that is not to be had, one system call a
//! request ([`crate::sync`]).
//!
//! Every request that is pushed is answered exactly once, with its error if it has one; what was transferred in part is completed
//! or is an error.

use crate::buffers::Buffers;
use crate::lane::Lane;
use crate::ring::Ring;
use crate::sync::Sync;
use rustix::io;
use trueline_geom::error::Errno;

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Into memory.
    Read,
    /// From memory.
    Write,
    /// fdatasync(2).
    Flush,
}

/// What is asked of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What it is called when it is done.
    pub tag: u64,
    /// What it does.
    pub op: Op,
    /// Which file.
    pub lane: usize,
    /// First byte of the file.
    pub offset: u64,
    /// First byte of the memory.
    pub place: usize,
    /// Bytes.
    pub length: u32,
    /// Whether a write is done only when it is on the medium (`RWF_DSYNC`).
    pub fua: bool,
}

/// A transfer that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Which.
    pub tag: u64,
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

/// An engine at work.
#[allow(clippy::large_enum_variant, reason = "there is one in a program, and a pointer would be followed at every request")]
pub enum Engine {
    /// io_uring.
    Ring(Ring),
    /// System calls.
    Sync(Sync),
}

impl Engine {
    /// An engine over `lanes` and `buffers`, for `depth` transfers at a time.
    pub fn new(choice: Choice, lanes: Vec<Lane>, buffers: Buffers, depth: u32) -> io::Result<Engine> {
        Engine::with(choice, lanes, buffers, |lanes, buffers| Ring::new(lanes, buffers, depth))
    }

    /// As [`Engine::new`], with who makes the ring: a test plays a kernel that has none.
    pub fn with(
        choice: Choice,
        lanes: Vec<Lane>,
        buffers: Buffers,
        make: impl FnOnce(Vec<Lane>, Buffers) -> Result<Ring, (io::Errno, Vec<Lane>, Buffers)>,
    ) -> io::Result<Engine> {
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
    pub fn lanes(&self) -> &[Lane] {
        match self {
            Engine::Ring(ring) => ring.lanes(),
            Engine::Sync(sync) => sync.lanes(),
        }
    }

    /// Asks for a transfer. An error is of this one, which then is not answered again.
    pub fn push(&mut self, transfer: Transfer) -> Result<(), Errno> {
        self.push_new(|| transfer)
    }

    /// As [`Engine::push`], for who asks so often that a copy counts: each engine has the transfer built for itself, so that a ring's
    /// goes from registers to where it is kept, and is not in memory because the other one's has to be.
    #[inline(always)]
    #[allow(clippy::inline_always, reason = "the transfer is built by who pushes it, in registers")]
    pub fn push_new(&mut self, make: impl FnOnce() -> Transfer) -> Result<(), Errno> {
        match self {
            Engine::Ring(ring) => ring.push(make()),
            Engine::Sync(sync) => sync.push(make()),
        }
    }

    /// Returns when at least `least` transfers are done, or all there are, and appends them. An error ends the engine.
    #[inline]
    pub fn wait(&mut self, least: usize, done: &mut Vec<Finished>) -> Result<(), Errno> {
        match self {
            Engine::Ring(ring) => ring.wait(least, done),
            Engine::Sync(sync) => {
                sync.wait(done);
                Ok(())
            }
        }
    }

    /// `length` bytes of its memory; nothing is in flight, else [`None`].
    pub fn memory(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        match self {
            Engine::Ring(ring) => ring.memory(at, length),
            Engine::Sync(sync) => sync.memory(at, length),
        }
    }
}

/// Whether `transfer` may be sent, and to which file.
#[inline]
pub(crate) fn check<'a>(transfer: &Transfer, lanes: &'a [Lane], buffers: &Buffers) -> Result<&'a Lane, Errno> {
    let lane = lanes.get(transfer.lane).ok_or(Errno::NoDevice)?;
    if transfer.op != Op::Flush {
        let length = u64::from(transfer.length);
        let inside = usize::try_from(length).is_ok_and(|length| buffers.holds(transfer.place, length));
        if !inside {
            return Err(Errno::Range);
        }
        lane.check(transfer.offset, transfer.place, length, transfer.op == Op::Write)?;
    }
    Ok(lane)
}

/// What is left of `transfer` when `bytes` of it are done: nothing, a further transfer, or an error that is final.
pub(crate) fn rest(transfer: &Transfer, lane: &Lane, bytes: u32) -> Result<Option<Transfer>, Errno> {
    let length = transfer.length.saturating_sub(bytes);
    if transfer.op == Op::Flush || length == 0 {
        return Ok(None);
    }
    let offset = transfer.offset + u64::from(bytes);
    // Nothing, or a part that direct I/O cannot go on from: the end of a file that is shorter than it was.
    if bytes == 0 || !lane.is_aligned(offset) {
        return Err(if transfer.op == Op::Read { Errno::Range } else { Errno::NoSpace });
    }
    let place = usize::try_from(bytes).map_or(usize::MAX, |bytes| transfer.place.saturating_add(bytes));
    Ok(Some(Transfer { offset, place, length, ..*transfer }))
}

/// What the kernel's answer is called here.
pub(crate) fn errno(from: io::Errno) -> Errno {
    match from {
        io::Errno::NODEV | io::Errno::NXIO | io::Errno::NOMEDIUM => Errno::NoDevice,
        io::Errno::NOSPC | io::Errno::DQUOT | io::Errno::FBIG => Errno::NoSpace,
        io::Errno::BADF | io::Errno::PERM | io::Errno::ROFS | io::Errno::ACCESS => Errno::ReadOnly,
        io::Errno::INVAL => Errno::Unaligned,
        _ => Errno::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::lane::Cache;
    use std::path::Path;

    #[test]
    fn what_is_short_is_gone_on_with_or_an_error() {
        let path = Path::new("/proc/self/exe");
        let lane = Lane::new(&file::open(path).unwrap().store, Cache::Through, path).unwrap();
        let read = Transfer { tag: 1, op: Op::Read, lane: 0, offset: 8192, place: 4096, length: 4096, fua: false };
        assert_eq!(rest(&read, &lane, 4096), Ok(None));
        let after = Transfer { offset: 8192 + 1000, place: 4096 + 1000, length: 3096, ..read };
        assert_eq!(rest(&read, &lane, 1000), Ok(Some(after)));
        assert_eq!(rest(&after, &lane, 3096), Ok(None));
        assert_eq!(rest(&read, &lane, 0), Err(Errno::Range));
        assert_eq!(rest(&Transfer { op: Op::Write, ..read }, &lane, 0), Err(Errno::NoSpace));
        assert_eq!(rest(&Transfer { op: Op::Flush, length: 0, ..read }, &lane, 0), Ok(None));
    }

    #[test]
    fn errors_of_the_device_keep_their_meaning() {
        let told = [
            (io::Errno::IO, Errno::Io),
            (io::Errno::NODEV, Errno::NoDevice),
            (io::Errno::NXIO, Errno::NoDevice),
            (io::Errno::NOSPC, Errno::NoSpace),
            (io::Errno::ROFS, Errno::ReadOnly),
            (io::Errno::INVAL, Errno::Unaligned),
        ];
        assert!(told.iter().all(|&(from, to)| errno(from) == to));
    }
}

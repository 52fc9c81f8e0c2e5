//! The kernel's requests to the mounted files, and their answers.

use super::range::{self, Sought};
use super::tree::{Node, Tree};
use crate::error_sequence::Since;
use crate::export::{Export, Exports};
use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenAccMode, OpenFlags, RenameFlags, ReplyAttr,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen,
    ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::OFlags;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use trueline_geom::base::error;
use trueline_host::lock::lock;

/// The time for which the kernel may cache attributes, which never change.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// The most bytes of one write.
const LARGEST: u32 = 1 << 20;
/// The most background requests in the kernel (asynchronous I/O, a loop device with direct I/O).
const BACKGROUND: u16 = 256;
/// The `whence` of lseek(2) for data and holes.
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// The gate to the stores, open or closed. A request holds it open while it uses a store.
#[derive(Debug, Default)]
pub(super) struct Gate(RwLock<bool>);

impl Gate {
    /// Waits for requests under way, and lets no further one begin.
    pub(super) fn close(&self) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` if the gate is open; else the error is EIO.
    fn pass<T>(&self, act: impl FnOnce() -> Result<T, error::Errno>) -> Result<T, Errno> {
        let closed = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if *closed { Err(Errno::EIO) } else { act().map_err(errno) }
    }
}

/// Error of a request for another file, or for one less: a mount has its exports and nothing else.
/// Its directories are not writable (mode 0500), and root is told the same.
const FIXED: Errno = Errno::EACCES;

/// The error number for fuse(4).
fn errno(from: error::Errno) -> Errno {
    match from {
        // A request outside the file never reaches a store, so here the store has become shorter.
        error::Errno::Io
        | error::Errno::NoDevice
        | error::Errno::Range
        | error::Errno::Packed
        | error::Errno::Awaited
        | error::Errno::Unfetched
        | error::Errno::Zone(_) => Errno::EIO,
        error::Errno::Unaligned => Errno::EINVAL,
        error::Errno::ReadOnly => Errno::EROFS,
        error::Errno::NoSpace => Errno::ENOSPC,
        error::Errno::Unsupported => Errno::EOPNOTSUPP,
    }
}

thread_local! {
    /// The buffer of reads: each thread answers one at a time.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The files of a mount.
pub(super) struct Files {
    exports: Arc<Exports>,
    tree: Tree,
    gate: Arc<Gate>,
    since: SystemTime,
    owner: (u32, u32),
    opened: Mutex<Opened>,
}

/// The error state of each open file by handle: as with any file, each is told of an error once.
#[derive(Default)]
struct Opened {
    files: HashMap<u64, Arc<Since>>,
    next: u64,
}

impl Files {
    pub(super) fn new(exports: Arc<Exports>, tree: Tree, gate: Arc<Gate>) -> Files {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        Files { exports, tree, gate, since: SystemTime::now(), owner, opened: Mutex::default() }
    }

    fn opened(&self) -> MutexGuard<'_, Opened> {
        lock(&self.opened)
    }

    /// The error state of an open file.
    fn known(&self, handle: FileHandle) -> Result<Arc<Since>, Errno> {
        self.opened().files.get(&handle.0).cloned().ok_or(Errno::EBADF)
    }

    fn node(&self, ino: INodeNo) -> Option<&Node> {
        // The kernel numbers inodes from 1, the root.
        self.tree.node(usize::try_from(ino.0.checked_sub(1)?).ok()?)
    }

    /// The export behind the file.
    fn export(&self, ino: INodeNo) -> Result<&Export, Errno> {
        match self.node(ino).ok_or(Errno::ENOENT)? {
            Node::File(index) => self.exports.0.get(*index).ok_or(Errno::EIO),
            Node::Directory(_) => Err(Errno::EISDIR),
        }
    }

    /// The index of the file `name` of a directory.
    fn entry(&self, parent: INodeNo, name: &OsStr) -> Result<usize, Errno> {
        let parent = usize::try_from(parent.0.saturating_sub(1)).unwrap_or(usize::MAX);
        name.to_str().and_then(|name| self.tree.find(parent, name)).ok_or(Errno::ENOENT)
    }

    /// Refusal to take the name from a file: the exports stay what they are. A name that is not
    /// there is `ENOENT`.
    fn kept(&self, parent: INodeNo, name: &OsStr) -> Errno {
        self.entry(parent, name).err().unwrap_or(FIXED)
    }

    fn attributes(&self, ino: INodeNo) -> Result<FileAttr, Errno> {
        let (kind, perm, size, blksize) = match self.node(ino).ok_or(Errno::ENOENT)? {
            Node::Directory(_) => (FileType::Directory, 0o500, 0, 512),
            Node::File(_) => {
                let export = self.export(ino)?;
                let perm = if export.read_only { 0o400 } else { 0o600 };
                (FileType::RegularFile, perm, export.store.length(), export.sizes.preferred)
            }
        };
        let ((uid, gid), since) = (self.owner, self.since);
        let times = FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: since,
            mtime: since,
            ctime: since,
            crtime: since,
            kind,
            perm,
            nlink: 1,
            uid,
            gid,
            rdev: 0,
            blksize,
            flags: 0,
        };
        Ok(times)
    }
}

fn inode(index: usize) -> INodeNo {
    INodeNo(u64::try_from(index).unwrap_or(u64::MAX).saturating_add(1))
}

impl Filesystem for Files {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The mount works without capabilities that the kernel lacks.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        // Shared mappings, from Linux 6.6 on: their pages are written by msync(2), munmap(2) and
        // under memory pressure.
        let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        let _ = config.set_max_write(LARGEST);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.entry(parent, name).and_then(|index| self.attributes(inode(index))) {
            Ok(attributes) => reply.entry(&FOR_EVER, &attributes, Generation(0)),
            Err(e) => reply.error(e),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Ok(attributes) => reply.attr(&FOR_EVER, &attributes),
            Err(e) => reply.error(e),
        }
    }

    fn setattr(
        &self,
        request: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        handle: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if mode.is_some() || uid.is_some() || gid.is_some() {
            return reply.error(Errno::EPERM);
        }
        // `O_TRUNC` on a block device truncates nothing, and does not here. Times stay as they are.
        let length = self.export(ino).map(|export| export.store.length());
        match size {
            Some(size) if size != 0 && Ok(size) != length.map_err(|_| ()) => {
                reply.error(Errno::EINVAL)
            }
            _ => self.getattr(request, ino, handle, reply),
        }
    }

    fn open(&self, _: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match self.export(ino) {
            Err(e) => reply.error(e),
            Ok(export) if export.read_only && flags.acc_mode() != OpenAccMode::O_RDONLY => {
                reply.error(Errno::EROFS)
            }
            Ok(export) => {
                let since = Arc::new(export.errors.sample());
                let mut opened = self.opened();
                let handle = opened.next;
                opened.next += 1;
                opened.files.insert(handle, since);
                drop(opened);
                let flags = FopenFlags::FOPEN_DIRECT_IO
                    | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                    | FopenFlags::FOPEN_NOFLUSH;
                reply.opened(FileHandle(handle), flags);
            }
        }
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.opened().files.remove(&handle.0);
        reply.ok();
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let export = match self.export(ino) {
            Ok(export) => export,
            Err(e) => return reply.error(e),
        };
        BUFFER.with_borrow_mut(|buffer| {
            let length = range::inside(export, offset, usize::try_from(size).unwrap_or(usize::MAX));
            if buffer.len() < length {
                buffer.resize(length, 0);
            }
            let into = &mut buffer[..length];
            match self.gate.pass(|| range::read(export, into, offset)) {
                Ok(()) => reply.data(into),
                Err(e) => reply.error(e),
            }
        });
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // For a direct write the kernel leaves O_DSYNC, which is part of O_SYNC, to the file system
        // (Linux fs/fuse/file.c).
        let through = u32::try_from(flags.0)
            .is_ok_and(|flags| OFlags::from_bits_retain(flags).contains(OFlags::DSYNC));
        let through = if through { self.known(handle).map(Some) } else { Ok(None) };
        let written = through.and_then(|through| {
            let export = self.export(ino)?;
            self.gate.pass(|| range::write(export, data, offset, through.as_deref()))
        });
        match written {
            Ok(count) => reply.written(u32::try_from(count).unwrap_or(u32::MAX)),
            Err(e) => reply.error(e),
        }
    }

    fn fsync(&self, _: &Request, ino: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let flushed = self.known(handle).and_then(|since| {
            let export = self.export(ino)?;
            self.gate.pass(|| export.flush(&since))
        });
        match flushed {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        match self
            .export(ino)
            .and_then(|export| self.gate.pass(|| range::allocate(export, offset, length, mode)))
        {
            Ok(()) => reply.ok(),
            Err(e) => reply.error(e),
        }
    }

    fn lseek(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: i64,
        whence: i32,
        reply: ReplyLseek,
    ) {
        let sought = match whence {
            SEEK_DATA => Sought::Data,
            SEEK_HOLE => Sought::Hole,
            _ => return reply.error(Errno::EINVAL),
        };
        let Ok(from) = u64::try_from(offset) else { return reply.error(Errno::ENXIO) };
        let found = self
            .export(ino)
            .and_then(|export| self.gate.pass(|| range::seek(export, from, sought)));
        match found.map(|at| at.and_then(|at| i64::try_from(at).ok())) {
            Ok(Some(at)) => reply.offset(at),
            Ok(None) => reply.error(Errno::ENXIO),
            Err(e) => reply.error(e),
        }
    }

    fn readdir(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let Some(Node::Directory(entries)) = self.node(ino) else {
            return reply.error(Errno::ENOTDIR);
        };
        let dots = [(".", ino, FileType::Directory), ("..", ino, FileType::Directory)];
        let kind = |index| {
            if matches!(self.tree.node(index), Some(Node::File(_))) {
                FileType::RegularFile
            } else {
                FileType::Directory
            }
        };
        let listed =
            entries.iter().map(|(name, index)| (name.as_str(), inode(*index), kind(*index)));
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        for (next, (name, ino, kind)) in (1..).zip(dots.into_iter().chain(listed)).skip(from) {
            if reply.add(ino, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn create(
        &self,
        _: &Request,
        _: INodeNo,
        _: &OsStr,
        _: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        reply.error(FIXED);
    }

    fn mknod(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(FIXED);
    }

    fn mkdir(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, _: u32, reply: ReplyEntry) {
        reply.error(FIXED);
    }

    fn symlink(&self, _: &Request, _: INodeNo, _: &OsStr, _: &Path, reply: ReplyEntry) {
        reply.error(FIXED);
    }

    fn link(&self, _: &Request, _: INodeNo, _: INodeNo, _: &OsStr, reply: ReplyEntry) {
        reply.error(FIXED);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply.error(self.kept(parent, name));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        reply.error(self.kept(parent, name));
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _: INodeNo,
        _: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        reply.error(self.kept(parent, name));
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // The default export is the disk that contains the others.
        let length = self.exports.0.first().map_or(0, |export| export.store.length());
        reply.statfs(
            length.div_ceil(512),
            0,
            0,
            u64::try_from(self.tree.count()).unwrap_or(u64::MAX),
            0,
            512,
            255,
            512,
        );
    }
}

//! The engine without io_uring: one pread(2) or pwrite(2) at a time.

use crate::disk::buffers::Buffers;
use crate::engine::open_file::OpenFile;
use crate::engine::{Finished, Op, Transfer, check, goes_on};
use crate::errno;
use rustix::io::{self, ReadWriteFlags};
use std::io::IoSlice;
use trueline_geom::base::error::Errno;

/// Files and memory, of which one place is used.
pub struct Sync<Tag> {
    files: Vec<OpenFile>,
    buffers: Buffers,
    /// The submitted transfer that is not done.
    asked: Option<Transfer<Tag>>,
    /// The completion that was not taken yet.
    done: Option<Finished<Tag>>,
}

impl<Tag: Copy> Sync<Tag> {
    /// An engine over `files`.
    pub fn new(files: Vec<OpenFile>, buffers: Buffers) -> Sync<Tag> {
        Sync { files, buffers, asked: None, done: None }
    }

    pub(crate) fn files(&self) -> &[OpenFile] {
        &self.files
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.asked.is_some() || self.done.is_some()
    }

    /// Submits a transfer, which the next [`Sync::wait`] performs.
    #[inline]
    pub(crate) fn push(&mut self, transfer: Transfer<Tag>) -> Result<(), Errno> {
        check(&transfer, &self.files, &self.buffers)?;
        if self.is_full() {
            return Err(Errno::Io);
        }
        self.asked = Some(transfer);
        Ok(())
    }

    /// Performs the submitted transfer completely.
    #[inline(never)]
    pub(crate) fn wait(&mut self) {
        if let Some(transfer) = self.asked.take() {
            let error = self.whole(&transfer).err();
            self.done = Some(Finished { tag: transfer.tag, place: 0, error });
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, answer: impl FnMut(Finished<Tag>)) {
        self.done.take().into_iter().for_each(answer);
    }

    pub(crate) fn memory(&mut self, place: usize) -> Option<&mut [u8]> {
        if self.is_full() { None } else { self.buffers.of_place(place) }
    }

    fn whole(&mut self, transfer: &Transfer<Tag>) -> Result<(), Errno> {
        let file = self.files.get(transfer.file).ok_or(Errno::NoDevice)?;
        let mut moved = 0;
        loop {
            let bytes = io::retry_on_intr(|| once(transfer, moved, file, &mut self.buffers))
                .map_err(errno::from_kernel)?;
            let bytes = u32::try_from(bytes).unwrap_or(transfer.length);
            moved = moved.saturating_add(bytes);
            if !goes_on(transfer, file, moved, bytes)? {
                return Ok(());
            }
        }
    }
}

/// One system call for the bytes after those `moved`.
fn once<Tag>(
    transfer: &Transfer<Tag>,
    moved: u32,
    file: &OpenFile,
    buffers: &mut Buffers,
) -> io::Result<usize> {
    let &Transfer { op, offset, length, fua, .. } = transfer;
    let offset = offset + u64::from(moved);
    let (at, length) = (moved as usize, (length - moved) as usize);
    match op {
        Op::Read => io::pread(file, buffers.bytes_mut(at, length), offset),
        Op::Write if fua => io::pwritev2(
            file,
            &[IoSlice::new(buffers.bytes(at, length))],
            offset,
            ReadWriteFlags::DSYNC,
        ),
        Op::Write => io::pwrite(file, buffers.bytes(at, length), offset),
        Op::Flush => rustix::fs::fdatasync(file).map(|()| 0),
    }
}

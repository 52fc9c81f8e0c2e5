//! A file or device opened for direct I/O: every request reaches the device, in the device's own
//! units.
//!
//! It takes whole units only; `sectored` of the crate `serve` makes byte ranges of them.
//!
//! # Sources
//! open(2) (`O_DIRECT`).

use crate::disk::file::Medium;
use crate::engine::open_file::{Cache, OpenFile};
use crate::errno;
use crate::error::Error;
use rustix::io;
use std::path::Path;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Properties, Run, Store};
use trueline_geom::base::topology::is_whole;

/// An open file or device without the page cache.
#[derive(Debug)]
pub struct Direct {
    file: OpenFile,
    /// The original handle: it holds the locks, and does everything but transfers.
    medium: Medium,
}

/// The alignment of memory for direct I/O in bytes, enough for every device: a page.
const PAGE: usize = 4096;

impl Direct {
    /// A second, direct handle of `medium`; `place` is its name in messages.
    pub fn new(medium: Medium, place: &Path) -> Result<Direct, Error> {
        let file = OpenFile::new(&medium, Cache::Around, place)?;
        Ok(Direct { file, medium })
    }
}

/// Calls `work` with `length` bytes of page-aligned memory.
fn with_pages<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut room = vec![0; length + PAGE];
    let start = room.as_ptr().align_offset(PAGE);
    // There is always a page boundary within a page. If it cannot be computed, the kernel reports
    // the misalignment.
    let start = if start < PAGE { start } else { 0 };
    work(&mut room[start..start + length])
}

impl Store for Direct {
    fn length(&self) -> u64 {
        self.medium.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.file.check(offset, buffer.len() as u64, false)?;
        with_pages(buffer.len(), |pages| {
            let mut done = 0;
            while done < pages.len() {
                match io::retry_on_intr(|| {
                    io::pread(&self.file, &mut pages[done..], offset + done as u64)
                }) {
                    // The file has become shorter, or direct I/O cannot continue from here.
                    Ok(count) if count == 0 || !is_whole(count as u64, self.file.grain()) => {
                        return Err(Errno::Range);
                    }
                    Ok(count) => done += count,
                    Err(e) => return Err(errno::from_kernel(e)),
                }
            }
            buffer.copy_from_slice(pages);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.file.check(offset, bytes.len() as u64, true)?;
        with_pages(bytes.len(), |pages| {
            pages.copy_from_slice(bytes);
            let mut done = 0;
            while done < pages.len() {
                match io::retry_on_intr(|| {
                    io::pwrite(&self.file, &pages[done..], offset + done as u64)
                }) {
                    Ok(count) if count == 0 || !is_whole(count as u64, self.file.grain()) => {
                        return Err(Errno::NoSpace);
                    }
                    Ok(count) => done += count,
                    Err(e) => return Err(errno::from_kernel(e)),
                }
            }
            Ok(())
        })
    }

    fn flush(&self) -> Result<(), Errno> {
        self.medium.flush()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.medium.discard(offset, length)
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        self.medium.try_zero(offset, length, keep)
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.medium.extent(offset, length)
    }

    fn properties(&self) -> Properties {
        Properties { unit: self.file.grain(), ..Properties::default() }
    }
}

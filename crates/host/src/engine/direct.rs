//! A file or device around the page cache: every request goes to the device, in its own units.
//!
//! It takes whole units alone; `sectored` of the crate `serve` makes any bytes of that.
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
use trueline_geom::base::store::{Run, Store};
use trueline_geom::base::topology::is_whole;

/// An open file or device, asked directly.
#[derive(Debug)]
pub struct Direct {
    lane: OpenFile,
    /// Keeps it for this program, and does what is no transfer.
    medium: Medium,
}

/// What memory for direct I/O lies on, whatever is asked: a page.
const PAGE: usize = 4096;

impl Direct {
    /// What is open as `medium`; `place` is its name in messages.
    pub fn new(medium: Medium, place: &Path) -> Result<Direct, Error> {
        let lane = OpenFile::new(&medium, Cache::Around, place)?;
        Ok(Direct { lane, medium })
    }
}

/// Does `work` with `length` bytes of memory that begin with a page.
fn with_pages<T>(length: usize, work: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut room = vec![0; length + PAGE];
    let start = room.as_ptr().align_offset(PAGE);
    // It fits always: a page begins within a page. Where it could not be told, the kernel says what it thinks of it.
    let start = if start < PAGE { start } else { 0 };
    work(&mut room[start..start + length])
}

impl Store for Direct {
    fn length(&self) -> u64 {
        self.medium.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.lane.check(offset, buffer.len() as u64, false)?;
        with_pages(buffer.len(), |pages| {
            let mut done = 0;
            while done < pages.len() {
                match io::retry_on_intr(|| io::pread(&self.lane, &mut pages[done..], offset + done as u64)) {
                    // Shorter than it was, or a part that direct I/O cannot go on from.
                    Ok(count) if count == 0 || !is_whole(count as u64, self.lane.grain()) => return Err(Errno::Range),
                    Ok(count) => done += count,
                    Err(e) => return Err(errno::from_kernel(e)),
                }
            }
            buffer.copy_from_slice(pages);
            Ok(())
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.lane.check(offset, bytes.len() as u64, true)?;
        with_pages(bytes.len(), |pages| {
            pages.copy_from_slice(bytes);
            let mut done = 0;
            while done < pages.len() {
                match io::retry_on_intr(|| io::pwrite(&self.lane, &pages[done..], offset + done as u64)) {
                    Ok(count) if count == 0 || !is_whole(count as u64, self.lane.grain()) => return Err(Errno::NoSpace),
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

    fn zero_fast(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        self.medium.zero_fast(offset, length, keep)
    }

    fn run(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.medium.run(offset, length)
    }

    fn unit(&self) -> u64 {
        self.lane.grain()
    }
}

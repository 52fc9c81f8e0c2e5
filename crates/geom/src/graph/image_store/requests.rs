//! Requests to the disk in a qcow2, as a store gets them.

use super::{ImageStore, index, lock};
use crate::base::error::Errno;
use crate::base::store::{Content, Properties, Run, Store};
use crate::class::qcow2::image::Spot;

impl Store for ImageStore {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.visit(offset, buffer.len() as u64, &mut |done, at, place, run| {
            let from = index(done)?;
            let part = buffer.get_mut(from..from + index(run)?).ok_or(Errno::Range)?;
            self.read_run(part, at, place).map(|()| run)
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.visit(offset, bytes.len() as u64, &mut |done, at, place, run| {
            let rest = bytes.get(index(done)?..).ok_or(Errno::Range)?;
            let part = rest.get(..index(run)?).ok_or(Errno::Range)?;
            match place {
                Spot::Own(first) => {
                    self.file()?.write_at(part, self.within(first, at)?).map(|()| run)
                }
                _ => self.write_new(part, at),
            }
        })
    }

    fn flush(&self) -> Result<(), Errno> {
        let _order = lock(&self.order);
        self.commit()
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.visit(offset, length, &mut |_, at, place, run| match place {
            Spot::Own(first) => self.file()?.discard(self.within(first, at)?, run).map(|()| run),
            _ => Ok(run),
        })
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        self.visit(offset, length, &mut |_, at, place, run| match place {
            Spot::Own(first) => {
                self.file()?.try_zero(self.within(first, at)?, run, keep).map(|()| run)
            }
            Spot::Cleared(_) => Ok(run),
            // Room is made by a write.
            _ if keep => Err(Errno::Unsupported),
            place if self.is_zero(place) => Ok(run),
            _ => self.zero_new(at, run),
        })
    }

    fn try_read(&self, buffer: &mut [u8], offset: u64) -> Result<bool, Errno> {
        let length = buffer.len() as u64;
        offset.checked_add(length).filter(|&end| end <= self.length).ok_or(Errno::Range)?;
        let mut done = 0;
        while done < length {
            let at = offset + done;
            let Ok((place, run)) = lock(&self.image).find(at, length - done) else {
                return Ok(false);
            };
            let from = index(done)?;
            let part = buffer.get_mut(from..from + index(run)?).ok_or(Errno::Range)?;
            match place {
                Spot::Own(first) => {
                    if !self.file()?.try_read(part, self.within(first, at)?)? {
                        return Ok(false);
                    }
                }
                place if self.is_zero(place) => part.fill(0),
                _ => return Ok(false),
            }
            done += run;
        }
        Ok(true)
    }

    fn properties(&self) -> Properties {
        let depth = self.file().map_or(1, |file| file.properties().depth);
        Properties { depth, ..Properties::default() }
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let (place, run) = self.find(offset, length)?;
        match place {
            Spot::Own(at) => self.file()?.extent(self.within(at, offset)?, run),
            Spot::Absent if self.parent.is_some() => {
                Ok(Run { content: Content::Data, length: run })
            }
            Spot::Absent => Ok(Run { content: Content::Hole, length: run }),
            Spot::Cleared(_) | Spot::Zero => Ok(Run { content: Content::Zero, length: run }),
            Spot::Shared(_) | Spot::Packed(_) => Ok(Run { content: Content::Data, length: run }),
        }
    }

    fn prefetch(&self, offset: u64, length: u64) {
        let _ = self.visit(offset, length, &mut |_, at, place, run| {
            if let Spot::Own(first) = place {
                self.file()?.prefetch(self.within(first, at)?, run);
            }
            Ok(run)
        });
    }

    fn start_writeback(&self, offset: u64, length: u64) {
        let _ = self.visit(offset, length, &mut |_, at, place, run| {
            if let Spot::Own(first) = place {
                self.file()?.start_writeback(self.within(first, at)?, run);
            }
            Ok(run)
        });
    }
}

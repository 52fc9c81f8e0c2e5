//! The kernel's requests to a disk, and their answers.

use crate::error_sequence::Since;
use crate::export::Export;
use rustix::io;
use trueline_geom::audit::io::IoKind;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store;
use trueline_host::ublk::wire::{DESCRIPTOR, SECTOR};

/// Operations of requests, `UBLK_IO_OP_*`.
const READ: u8 = 0;
const WRITE: u8 = 1;
const FLUSH: u8 = 2;
const DISCARD: u8 = 3;
const WRITE_ZEROES: u8 = 5;
/// The flag `UBLK_IO_F_FUA`: force unit access.
const FUA: u32 = 1 << 13;
/// The flag `UBLK_IO_F_NOUNMAP`: zeros keep their space.
const NOUNMAP: u32 = 1 << 15;

/// A request of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request {
    operation: u8,
    flags: u32,
    offset: u64,
    length: u64,
}

impl Request {
    /// Reads a request from `struct ublksrv_io_desc`.
    pub(super) fn read(bytes: &[u8; DESCRIPTOR]) -> Request {
        let word = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let start = u64::from_ne_bytes([8, 9, 10, 11, 12, 13, 14, 15].map(|at| bytes[at]));
        Request {
            // The low eight bits, in either byte order.
            operation: word(0).to_le_bytes()[0],
            flags: word(0),
            offset: start.saturating_mul(SECTOR),
            length: u64::from(word(4)).saturating_mul(SECTOR),
        }
    }

    /// The answer, if it need not wait for a device.
    pub(super) fn answer_now(
        &self,
        export: &Export,
        since: &Since,
        buffer: &mut [u8],
    ) -> Option<i32> {
        match self.operation {
            READ => {
                match self.part(buffer).and_then(|part| export.store.try_read(part, self.offset)) {
                    Ok(false) => None,
                    done => Some(self.result(done.map(drop))),
                }
            }
            WRITE if export.store.properties().write_back && self.flags & FUA == 0 => {
                Some(self.answer(export, since, buffer))
            }
            _ if export.store.properties().non_blocking => Some(self.answer(export, since, buffer)),
            _ => None,
        }
    }

    /// The answer: a number of bytes, or a negative error. `since`: the kernel's error state.
    pub(super) fn answer(&self, export: &Export, since: &Since, buffer: &mut [u8]) -> i32 {
        let store = &*export.store;
        let writes = match self.operation {
            WRITE => Some(IoKind::Write),
            DISCARD => Some(IoKind::Trim),
            WRITE_ZEROES => Some(IoKind::Zero),
            _ => None,
        };
        if let Some(deed) = writes.filter(|_| export.read_only) {
            export.refuse(deed, self.offset, self.length);
            return self.result(Err(Errno::ReadOnly));
        }
        self.result(match self.operation {
            READ => self.part(buffer).and_then(|part| store.read_at(part, self.offset)),
            WRITE if self.flags & FUA != 0 => {
                self.part(buffer).and_then(|part| export.write_through(since, part, self.offset))
            }
            WRITE => self.part(buffer).and_then(|part| store.write_at(part, self.offset)),
            FLUSH => export.flush(since),
            DISCARD => store.discard(self.offset, self.length),
            WRITE_ZEROES => {
                match store.try_zero(self.offset, self.length, self.flags & NOUNMAP != 0) {
                    Err(Errno::Unsupported) => {
                        store::write_zeros(self.length, &mut |done, zeros| {
                            store
                                .write_at(zeros, self.offset.checked_add(done).ok_or(Errno::Range)?)
                        })
                    }
                    done => done,
                }
            }
            _ => Err(Errno::Unsupported),
        })
    }

    /// The part of the buffer for this request.
    fn part<'a>(&self, buffer: &'a mut [u8]) -> Result<&'a mut [u8], Errno> {
        usize::try_from(self.length)
            .ok()
            .and_then(|length| buffer.get_mut(..length))
            .ok_or(Errno::Range)
    }

    fn result(&self, done: Result<(), Errno>) -> i32 {
        match done {
            Ok(()) if matches!(self.operation, READ | WRITE) => {
                i32::try_from(self.length).unwrap_or(i32::MAX)
            }
            Ok(()) => 0,
            Err(errno) => -errno_number(errno).raw_os_error(),
        }
    }
}

fn errno_number(from: Errno) -> io::Errno {
    match from {
        Errno::Io
        | Errno::NoDevice
        | Errno::Packed
        | Errno::Awaited
        | Errno::Unfetched
        | Errno::Zone(_) => io::Errno::IO,
        Errno::Range | Errno::Unaligned => io::Errno::INVAL,
        Errno::ReadOnly => io::Errno::ROFS,
        Errno::NoSpace => io::Errno::NOSPC,
        Errno::Unsupported => io::Errno::OPNOTSUPP,
    }
}

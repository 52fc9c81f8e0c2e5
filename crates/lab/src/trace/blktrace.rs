//! blktrace's own records, as it writes them in one file for each processor, or joined by `blkparse
//! -d`: `struct blk_io_trace` of include/uapi/linux/blktrace_api.h, 48 bytes in the byte order of
//! the traced machine, then `pdu_len` bytes of payload.
//!
//! A request is taken at its queue event (`__BLK_TA_QUEUE`), in sectors of 512 bytes.

use super::{Fault, Format, Input, Position, TracedRequest, flush, transfer};
use crate::rig::Op;
use std::collections::VecDeque;
use std::io::{self, Read};

/// The magic number `BLK_IO_TRACE_MAGIC`; its lowest byte is the version, of which there is one.
const MAGIC: u32 = 0x6561_7400;
const VERSION: u32 = 7;
const RECORD: usize = 48;

/// The action of a queued request (`__BLK_TA_QUEUE`), and the last action of this version
/// (`__BLK_TA_DRV_DATA`).
const QUEUE: u32 = 1;
const LAST_ACTION: u32 = 17;
/// The categories' place above the action (`BLK_TC_SHIFT`), and the categories used here.
const CATEGORY: u32 = 16;
const WRITE: u32 = 1 << 1;
const FLUSH: u32 = 1 << 2;
const NOTIFY: u32 = 1 << 10;
const DISCARD: u32 = 1 << 13;
const FUA: u32 = 1 << 15;

const SECTOR: u64 = 512;

pub(super) struct Blktrace {
    big_endian: bool,
    device: Option<u32>,
}

impl Blktrace {
    pub(super) fn recognise(head: &[u8]) -> Option<Blktrace> {
        let magic: [u8; 4] = head.get(..4)?.try_into().ok()?;
        let is = |word: u32| word & !0xff == MAGIC;
        let big_endian = !is(u32::from_le_bytes(magic));
        (!big_endian || is(u32::from_be_bytes(magic)))
            .then_some(Blktrace { big_endian, device: None })
    }

    fn u16(&self, bytes: &[u8], at: usize) -> u16 {
        let word = [bytes[at], bytes[at + 1]];
        if self.big_endian { u16::from_be_bytes(word) } else { u16::from_le_bytes(word) }
    }

    fn u32(&self, bytes: &[u8], at: usize) -> u32 {
        let (first, second) = (u32::from(self.u16(bytes, at)), u32::from(self.u16(bytes, at + 2)));
        if self.big_endian { first << 16 | second } else { second << 16 | first }
    }

    fn u64(&self, bytes: &[u8], at: usize) -> u64 {
        let (first, second) = (u64::from(self.u32(bytes, at)), u64::from(self.u32(bytes, at + 4)));
        if self.big_endian { first << 32 | second } else { second << 32 | first }
    }

    /// Appends the requests of a queue event; `what` are its categories.
    fn queued(
        &mut self,
        record: &[u8],
        what: u32,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<(), Fault> {
        let (at_ns, sector, length) =
            (self.u64(record, 8), self.u64(record, 16), u64::from(self.u32(record, 24)));
        let device = self.u32(record, 36);
        if let Some(own) = self.device.replace(device).filter(|&own| own != device) {
            return Err(Fault::TwoTargets(numbers(own), numbers(device)));
        }
        if what & DISCARD != 0 {
            input.skipped += 1;
            return Ok(());
        }
        let flushes = what & FLUSH != 0;
        found.extend(flushes.then(|| flush(at_ns)));
        if length > 0 || !flushes {
            let op = if what & WRITE != 0 { Op::Write } else { Op::Read };
            let offset = sector
                .checked_mul(SECTOR)
                .ok_or_else(|| Fault::PastEnd(format!("sector {sector}")))?;
            found.push_back(transfer(
                at_ns,
                op,
                offset,
                length,
                what & FUA != 0 && op == Op::Write,
            )?);
        }
        Ok(())
    }
}

/// The major and minor number of a device, which the kernel packs in 12 and 20 bits.
fn numbers(device: u32) -> String {
    format!("{},{}", device >> 20, device & 0xf_ffff)
}

impl Format for Blktrace {
    fn read(
        &mut self,
        input: &mut Input<'_>,
        found: &mut VecDeque<TracedRequest>,
    ) -> Result<bool, Fault> {
        let mut record = [0; RECORD];
        match filled(&mut input.bytes, &mut record)? {
            0 => return Ok(false),
            RECORD => {}
            there => {
                let what = format!("a record of {there} bytes");
                return Err(Fault::Cut { what, form: format!("all have {RECORD}") });
            }
        }
        let magic = self.u32(&record, 0);
        if magic != MAGIC | VERSION {
            return Err(Fault::Magic { found: magic, wanted: MAGIC | VERSION });
        }
        let (action, more) = (self.u32(&record, 28), u64::from(self.u16(&record, 46)));
        let passed = io::copy(&mut input.bytes.by_ref().take(more), &mut io::sink())
            .map_err(|e| Fault::Read(e.to_string()))?;
        if passed < more {
            let what = format!("{passed} bytes of payload behind a record");
            return Err(Fault::Cut { what, form: format!("it must have {more}") });
        }
        // The upper byte of the action's half is a flag of control groups.
        let (kind, what) = (action & 0xff, action >> CATEGORY);
        if what & NOTIFY == 0 {
            if kind == 0 || kind > LAST_ACTION {
                return Err(Fault::Action(kind.to_string()));
            }
            if kind == QUEUE {
                self.queued(&record, what, input, found)?;
            }
        }
        if let Position::Byte(at) = &mut input.place {
            *at = at.saturating_add(RECORD as u64 + more);
        }
        Ok(true)
    }
}

/// Fills `record` as far as the input goes. Returns the bytes read.
fn filled(bytes: &mut dyn Read, record: &mut [u8]) -> Result<usize, Fault> {
    let mut done = 0;
    while done < record.len() {
        match bytes.read(&mut record[done..]) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Fault::Read(e.to_string())),
        }
    }
    Ok(done)
}

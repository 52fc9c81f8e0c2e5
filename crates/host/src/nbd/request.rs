//! What a client asks (section "Transmission"), and whether it may.

use super::haggle::Agreed;
use super::wire::{self, EXTENDED, EXTENDED_REQUEST_MAGIC, Fields, Headers, REQUEST, REQUEST_MAGIC, command, error, flag};
use crate::export::Export;
use trueline_geom::audit::io::Deed;
use trueline_geom::base::topology::is_whole;

/// Bytes of a status's payload before the numbers of its contexts.
const FILTER: u64 = 8;

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// `NBD_CMD_FLAG_*`.
    pub flags: u16,
    /// `NBD_CMD_*`.
    pub command: u16,
    /// What the client calls it.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes from there; or, where the flags say so, of the payload.
    pub length: u64,
}

impl Request {
    /// From the first [`Headers::request`] bytes of `bytes`; `None` if they do not begin with the magic: the client has lost the thread, and
    /// nothing it sends means anything.
    pub fn read(bytes: &[u8], headers: Headers) -> Option<Request> {
        let extended = headers == Headers::Extended;
        let mut fields = Fields(bytes);
        (fields.u32()? == if extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC }).then_some(())?;
        let (flags, command, cookie, offset) = (fields.u16()?, fields.u16()?, fields.u64()?, fields.u64()?);
        let length = if extended { fields.u64()? } else { u64::from(fields.u32()?) };
        Some(Request { flags, command, cookie, offset, length })
    }

    /// Its bytes, as a client sends them; [`None`] if the length does not fit.
    pub fn compact(&self) -> Option<[u8; REQUEST]> {
        let mut bytes = [0; REQUEST];
        self.put(REQUEST_MAGIC, &mut bytes);
        bytes[24..].copy_from_slice(&u32::try_from(self.length).ok()?.to_be_bytes());
        Some(bytes)
    }

    /// Its bytes with an extended header.
    pub fn extended(&self) -> [u8; EXTENDED] {
        let mut bytes = [0; EXTENDED];
        self.put(EXTENDED_REQUEST_MAGIC, &mut bytes);
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// All but the length.
    fn put(&self, magic: u32, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&magic.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
    }

    /// Bytes that follow it. With extended headers a write must announce its payload; QEMU's client (10.0) does not, and sends it.
    pub fn payload(&self, headers: Headers) -> u64 {
        let announced = headers == Headers::Extended && self.has(flag::PAYLOAD_LEN);
        if announced || self.command == command::WRITE { self.length } else { 0 }
    }

    /// The kind of request that is counted; [`None`] for what moves, discards and zeroes nothing.
    pub fn deed(&self) -> Option<Deed> {
        match self.command {
            command::READ => Some(Deed::Read),
            command::WRITE => Some(Deed::Write),
            command::TRIM => Some(Deed::Trim),
            command::WRITE_ZEROES => Some(Deed::Zero),
            _ => None,
        }
    }

    /// Whether `flag` is said.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Whether it may be done on `export`, as it was `agreed`; else the protocol's error. What the payload of a status asks is looked at by
    /// [`Request::status`].
    #[inline]
    pub fn check(&self, export: &Export, agreed: &Agreed) -> Result<(), u32> {
        let carries = if agreed.headers == Headers::Extended { flag::PAYLOAD_LEN } else { 0 };
        let known = match self.command {
            // Not to be fragmented is a flag of structured replies (section "Transmission flags").
            command::READ if agreed.headers.are_chunks() => flag::FUA | flag::DF,
            command::READ => flag::FUA,
            command::WRITE => flag::FUA | carries,
            command::TRIM => flag::FUA,
            command::WRITE_ZEROES => flag::FUA | flag::NO_HOLE | flag::FAST_ZERO,
            // A flag that says nothing here and that some clients send with everything.
            command::FLUSH | command::CACHE => flag::FUA,
            command::BLOCK_STATUS if !agreed.contexts.is_empty() => flag::FUA | flag::REQ_ONE | carries,
            _ => return Err(error::EINVAL),
        };
        if self.flags & !known != 0 {
            return Err(error::EINVAL);
        }
        let writes = matches!(self.command, command::WRITE | command::TRIM | command::WRITE_ZEROES);
        if writes && export.read_only {
            return Err(error::EPERM);
        }
        if self.command == command::FLUSH {
            return if (self.offset, self.length) == (0, 0) { Ok(()) } else { Err(error::EINVAL) };
        }
        if self.command == command::BLOCK_STATUS && self.has(flag::PAYLOAD_LEN) {
            // No more numbers than there are contexts: none may be said twice.
            let numbers = self.length.checked_sub(FILTER).filter(|&numbers| is_whole(numbers, 4) && numbers > 0);
            return if numbers.is_some_and(|numbers| numbers / 4 <= agreed.contexts.len() as u64) { Ok(()) } else { Err(error::EINVAL) };
        }
        let inside = self.offset.checked_add(self.length).is_some_and(|end| end <= export.store.length());
        if !inside {
            return Err(if writes && self.command != command::TRIM { error::ENOSPC } else { error::EINVAL });
        }
        if self.length > u64::from(wire::MAXIMUM) && matches!(self.command, command::READ | command::WRITE) {
            // Section "Error values": the one is for a read that may not be fragmented.
            return Err(if self.has(flag::DF) { error::EOVERFLOW } else { error::EINVAL });
        }
        // What a request of no bytes does is not said ("Terminology"): a read of nothing is nothing, a status of nothing has no answer.
        if self.length == 0 && self.command == command::BLOCK_STATUS { Err(error::EINVAL) } else { Ok(()) }
    }

    /// The status that is asked for: the same without a payload, and of which contexts; else the protocol's error.
    pub fn status(&self, payload: &[u8], export: &Export, agreed: &Agreed) -> Result<(Request, Vec<u32>), u32> {
        if !self.has(flag::PAYLOAD_LEN) {
            return Ok((*self, agreed.contexts.clone()));
        }
        let mut fields = Fields(payload);
        let length = fields.u64().ok_or(error::EINVAL)?;
        let mut contexts = Vec::new();
        while let Some(number) = fields.u32() {
            if !agreed.contexts.contains(&number) || contexts.contains(&number) {
                return Err(error::EINVAL);
            }
            contexts.push(number);
        }
        let asked = Request { flags: self.flags & !flag::PAYLOAD_LEN, length, ..*self };
        asked.check(export, agreed)?;
        Ok((asked, contexts))
    }
}

#[cfg(test)]
mod tests;

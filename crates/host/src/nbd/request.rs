//! Requests on the wire (section "Transmission").

use super::wire::{
    EXTENDED, EXTENDED_REQUEST_MAGIC, Fields, Headers, REQUEST, REQUEST_MAGIC, command, flag,
};
use trueline_geom::audit::io::IoKind;

/// A request without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The command flags, `NBD_CMD_FLAG_*`.
    pub flags: u16,
    /// The command of the request, `NBD_CMD_*`.
    pub command: u16,
    /// The client's cookie, which the reply repeats.
    pub cookie: u64,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes: of the range, or of the payload where the flags say so.
    pub length: u64,
}

impl Request {
    /// Reads a request from the first [`Headers::request`] bytes of `bytes`. `None` if they do not
    /// begin with the magic number: the client is out of step, and the rest of its stream means
    /// nothing.
    pub fn read(bytes: &[u8], headers: Headers) -> Option<Request> {
        let extended = headers == Headers::Extended;
        let mut fields = Fields(bytes);
        (fields.u32()? == if extended { EXTENDED_REQUEST_MAGIC } else { REQUEST_MAGIC })
            .then_some(())?;
        let (flags, command, cookie, offset) =
            (fields.u16()?, fields.u16()?, fields.u64()?, fields.u64()?);
        let length = if extended { fields.u64()? } else { u64::from(fields.u32()?) };
        Some(Request { flags, command, cookie, offset, length })
    }

    /// The bytes with a compact header; [`None`] if the length exceeds 32 bits.
    pub fn compact(&self) -> Option<[u8; REQUEST]> {
        let mut bytes = [0; REQUEST];
        self.put(REQUEST_MAGIC, &mut bytes);
        bytes[24..].copy_from_slice(&u32::try_from(self.length).ok()?.to_be_bytes());
        Some(bytes)
    }

    /// The bytes with an extended header.
    pub fn extended(&self) -> [u8; EXTENDED] {
        let mut bytes = [0; EXTENDED];
        self.put(EXTENDED_REQUEST_MAGIC, &mut bytes);
        bytes[24..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }

    /// Puts all fields but the length.
    fn put(&self, magic: u32, bytes: &mut [u8]) {
        bytes[..4].copy_from_slice(&magic.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.command.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
    }

    /// The length of the payload in bytes. With extended headers a write must announce it; QEMU's
    /// client (10.0) sends it unannounced.
    pub fn payload(&self, headers: Headers) -> u64 {
        let announced = headers == Headers::Extended && self.has(flag::PAYLOAD_LEN);
        if announced || self.command == command::WRITE { self.length } else { 0 }
    }

    /// The kind of I/O for statistics; [`None`] for commands without a transfer, discard or
    /// zeroing.
    pub fn deed(&self) -> Option<IoKind> {
        match self.command {
            command::READ => Some(IoKind::Read),
            command::WRITE => Some(IoKind::Write),
            command::TRIM => Some(IoKind::Trim),
            command::WRITE_ZEROES => Some(IoKind::Zero),
            _ => None,
        }
    }

    /// True if `flag` is set.
    pub fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

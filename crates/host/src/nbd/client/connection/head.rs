//! The header of a reply, or of a chunk of one.

use super::timed::Timed;
use crate::nbd::wire::{
    EXTENDED, EXTENDED_REPLY_MAGIC, Fields, Headers, SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC,
    chunk,
};
use std::io;

/// The request in progress, whose identity every reply repeats.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PendingRequest {
    /// The cookie of the request.
    pub(super) cookie: u64,
    /// The offset of the request, which only extended headers repeat.
    pub(super) offset: u64,
}

/// The next header from the server.
#[derive(Debug)]
pub(super) enum Head {
    /// A simple reply with its error number.
    Simple(u32),
    /// A chunk of a structured or extended reply.
    Chunk {
        /// The chunk type, `NBD_REPLY_TYPE_*`.
        kind: u16,
        /// True if no further chunk follows.
        last: bool,
        /// The bytes that it carries.
        length: u32,
    },
}

impl Timed {
    /// The header of the next reply or chunk. It is an error if that does not belong to `asked`.
    pub(super) fn head(&self, headers: Headers, asked: PendingRequest) -> io::Result<Head> {
        let read = if headers == Headers::Extended {
            self.extended_head(asked)
        } else {
            self.compact_head(headers, asked)
        };
        read?.ok_or(io::ErrorKind::InvalidData.into())
    }

    fn extended_head(&self, asked: PendingRequest) -> io::Result<Option<Head>> {
        let head = self.fixed::<EXTENDED>()?;
        let mut fields = Fields(&head);
        let (magic, flags, kind) = (fields.u32(), fields.u16(), fields.u16());
        let same = (fields.u64(), fields.u64()) == (Some(asked.cookie), Some(asked.offset));
        // The payload of a reply is bounded as without extended headers.
        let length = fields.u64().and_then(|length| u32::try_from(length).ok());
        Ok(chunk_of(flags, kind, length).filter(|_| magic == Some(EXTENDED_REPLY_MAGIC) && same))
    }

    fn compact_head(&self, headers: Headers, asked: PendingRequest) -> io::Result<Option<Head>> {
        let magic = u32::from_be_bytes(self.fixed()?);
        if magic == SIMPLE_REPLY_MAGIC {
            let head = self.fixed::<12>()?;
            let mut fields = Fields(&head);
            let (error, cookie) = (fields.u32(), fields.u64());
            return Ok(error.filter(|_| cookie == Some(asked.cookie)).map(Head::Simple));
        }
        let head = self.fixed::<16>()?;
        let mut fields = Fields(&head);
        let (flags, kind, cookie, length) =
            (fields.u16(), fields.u16(), fields.u64(), fields.u32());
        let expected =
            magic == STRUCTURED_REPLY_MAGIC && headers.are_chunks() && cookie == Some(asked.cookie);
        Ok(chunk_of(flags, kind, length).filter(|_| expected))
    }
}

fn chunk_of(flags: Option<u16>, kind: Option<u16>, length: Option<u32>) -> Option<Head> {
    Some(Head::Chunk { kind: kind?, last: flags? & chunk::DONE != 0, length: length? })
}

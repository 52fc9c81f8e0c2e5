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

/// A source of the bytes of a connection, in order.
pub(super) trait Input {
    /// Fills all of `into` with the next bytes.
    fn fill(&mut self, into: &mut [u8]) -> io::Result<()>;

    /// The next bytes, of a known number.
    fn fixed<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }
}

impl Input for &Timed {
    fn fill(&mut self, into: &mut [u8]) -> io::Result<()> {
        self.receive(into)
    }
}

/// The request that a header answers: its cookie, and its offset if the header repeats it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub(super) cookie: u64,
    pub(super) offset: Option<u64>,
}

impl Answered {
    /// True if the header may be of that request.
    pub(super) fn is_of(self, asked: PendingRequest) -> bool {
        self.cookie == asked.cookie && self.offset.is_none_or(|offset| offset == asked.offset)
    }
}

impl Timed {
    /// The header of the next reply or chunk. It is an error if that does not belong to `asked`.
    pub(super) fn head(&self, headers: Headers, asked: PendingRequest) -> io::Result<Head> {
        let (answered, head) = next_head(&mut &*self, headers)?;
        if answered.is_of(asked) { Ok(head) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

/// The header of the next reply or chunk, and the request that it answers.
pub(super) fn next_head(input: &mut impl Input, headers: Headers) -> io::Result<(Answered, Head)> {
    let read = if headers == Headers::Extended {
        extended_head(input)
    } else {
        compact_head(input, headers)
    };
    read?.ok_or(io::ErrorKind::InvalidData.into())
}

fn extended_head(input: &mut impl Input) -> io::Result<Option<(Answered, Head)>> {
    let head = input.fixed::<EXTENDED>()?;
    let mut fields = Fields(&head);
    let (magic, flags, kind) = (fields.u32(), fields.u16(), fields.u16());
    let (cookie, offset) = (fields.u64(), fields.u64());
    // The payload of a reply is bounded as without extended headers.
    let length = fields.u64().and_then(|length| u32::try_from(length).ok());
    let head = chunk_of(flags, kind, length).filter(|_| magic == Some(EXTENDED_REPLY_MAGIC));
    Ok(cookie.zip(head).map(|(cookie, head)| (Answered { cookie, offset }, head)))
}

fn compact_head(input: &mut impl Input, headers: Headers) -> io::Result<Option<(Answered, Head)>> {
    let magic = u32::from_be_bytes(input.fixed()?);
    let (cookie, head) = if magic == SIMPLE_REPLY_MAGIC {
        let head = input.fixed::<12>()?;
        let mut fields = Fields(&head);
        let (error, cookie) = (fields.u32(), fields.u64());
        (cookie, error.map(Head::Simple))
    } else {
        let head = input.fixed::<16>()?;
        let mut fields = Fields(&head);
        let (flags, kind, cookie, length) =
            (fields.u16(), fields.u16(), fields.u64(), fields.u32());
        let expected = magic == STRUCTURED_REPLY_MAGIC && headers.are_chunks();
        (cookie, chunk_of(flags, kind, length).filter(|_| expected))
    };
    Ok(cookie.zip(head).map(|(cookie, head)| (Answered { cookie, offset: None }, head)))
}

fn chunk_of(flags: Option<u16>, kind: Option<u16>, length: Option<u32>) -> Option<Head> {
    Some(Head::Chunk { kind: kind?, last: flags? & chunk::DONE != 0, length: length? })
}

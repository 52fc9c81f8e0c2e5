//! The protocol's numbers, and the forms of its messages. All integers are big-endian.

use trueline_geom::base::error::Errno;

/// "NBDMAGIC", the first of a server's bytes.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// "IHAVEOPT", before every option, and the second of a server's words.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// Before every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// Before every request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// Before a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Before every chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// Before every request with an extended header.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// Before every chunk of a reply with an extended header.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// Bytes of a compact request without its payload.
pub const REQUEST: usize = 28;
/// Bytes of an extended header, of a request as of a chunk.
pub const EXTENDED: usize = 32;
/// Bytes of a simple reply without its payload.
pub const SIMPLE_REPLY: usize = 16;
/// Bytes of a chunk of a structured reply without its payload.
pub const CHUNK: usize = 20;
/// Bytes of an option without its data.
pub const OPTION: usize = 16;
/// The longest string (section "Terminology and conventions").
pub const STRING: usize = 4096;
/// The most that a request may read or write where nothing else was agreed (section "Block size constraints").
pub const MAXIMUM: u32 = 32 << 20;

/// What stands before requests and replies, as client and server agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Headers {
    /// Compact requests and simple replies.
    #[default]
    Simple,
    /// Compact requests and structured replies.
    Structured,
    /// Extended requests and replies: lengths of 64 bits (section "Extended reply chunk message").
    Extended,
}

impl Headers {
    /// Whether a reply is made of chunks.
    pub fn are_chunks(self) -> bool {
        self != Headers::Simple
    }

    /// Bytes of a request without its payload.
    pub fn request(self) -> usize {
        if self == Headers::Extended { EXTENDED } else { REQUEST }
    }
}

/// Handshake flags of the server, and, under the same numbers, of the client.
pub mod handshake {
    /// `NBD_FLAG_FIXED_NEWSTYLE`
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// `NBD_FLAG_NO_ZEROES`
    pub const NO_ZEROES: u16 = 2;
}

/// Options: `NBD_OPT_*`.
pub mod option {
    /// Go to transmission; the one option that cannot be refused.
    pub const EXPORT_NAME: u32 = 1;
    /// End the session.
    pub const ABORT: u32 = 2;
    /// The exports' names.
    pub const LIST: u32 = 3;
    /// TLS from here on.
    pub const STARTTLS: u32 = 5;
    /// What an export is like.
    pub const INFO: u32 = 6;
    /// As `INFO`, then go to transmission.
    pub const GO: u32 = 7;
    /// Structured replies from here on.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// What `BLOCK_STATUS` could tell.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// What `BLOCK_STATUS` is to tell.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Extended headers from the first request on.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options: `NBD_REP_*`.
pub mod reply {
    /// Done.
    pub const ACK: u32 = 1;
    /// An export's name.
    pub const SERVER: u32 = 2;
    /// Something about an export.
    pub const INFO: u32 = 3;
    /// A metadata context and its number.
    pub const META_CONTEXT: u32 = 4;
    /// Not known here.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// Known, and not allowed.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// Ill-formed, or at the wrong time.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// TLS first.
    pub const ERR_TLS_REQD: u32 = 1 << 31 | 5;
    /// No such export.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The server is about to end.
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    /// Longer than is taken.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
    /// Extended headers first; or they are agreed, and there is no way back.
    pub const ERR_EXT_HEADER_REQD: u32 = 1 << 31 | 10;
}

/// What `INFO` and `GO` tell: `NBD_INFO_*`.
pub mod info {
    /// Bytes and transmission flags.
    pub const EXPORT: u16 = 0;
    /// Its name.
    pub const NAME: u16 = 1;
    /// What it is, for people.
    pub const DESCRIPTION: u16 = 2;
    /// Least, preferred and most bytes of a request.
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do: `NBD_FLAG_*`.
pub mod transmission {
    /// Always.
    pub const HAS_FLAGS: u16 = 1;
    /// Nothing can be written.
    pub const READ_ONLY: u16 = 1 << 1;
    /// `FLUSH`.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// Forced unit access.
    pub const SEND_FUA: u16 = 1 << 3;
    /// Seeking takes time.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// `TRIM`.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// `WRITE_ZEROES`.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// A read in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection holds for all.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// `CACHE`.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// `WRITE_ZEROES` that fails rather than takes its time.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
    /// `BLOCK_STATUS` of some contexts, which its payload names.
    pub const BLOCK_STATUS_PAYLOAD: u16 = 1 << 12;
}

/// Requests: `NBD_CMD_*`.
pub mod command {
    /// Read.
    pub const READ: u16 = 0;
    /// Write.
    pub const WRITE: u16 = 1;
    /// End the session.
    pub const DISC: u16 = 2;
    /// Bring what is written to the medium.
    pub const FLUSH: u16 = 3;
    /// Bytes of no further interest.
    pub const TRIM: u16 = 4;
    /// Bytes that will be read.
    pub const CACHE: u16 = 5;
    /// Zeros.
    pub const WRITE_ZEROES: u16 = 6;
    /// What is where.
    pub const BLOCK_STATUS: u16 = 7;
}

/// How a request is to be done: `NBD_CMD_FLAG_*`.
pub mod flag {
    /// On the medium before the reply.
    pub const FUA: u16 = 1;
    /// Zeros that keep their room.
    pub const NO_HOLE: u16 = 1 << 1;
    /// In one chunk.
    pub const DF: u16 = 1 << 2;
    /// One descriptor.
    pub const REQ_ONE: u16 = 1 << 3;
    /// At once or not at all.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// The length is that of a payload. Of extended headers alone.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Chunks of structured replies: `NBD_REPLY_TYPE_*`.
pub mod chunk {
    /// The only flag: nothing follows.
    pub const DONE: u16 = 1;
    /// Nothing: done.
    pub const NONE: u16 = 0;
    /// Bytes.
    pub const OFFSET_DATA: u16 = 1;
    /// Zeros.
    pub const OFFSET_HOLE: u16 = 2;
    /// Descriptors.
    pub const BLOCK_STATUS: u16 = 5;
    /// Descriptors of 64 bits.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// An error.
    pub const ERROR: u16 = 1 << 15 | 1;
    /// An error of one byte of a read.
    pub const ERROR_OFFSET: u16 = 1 << 15 | 2;
}

/// Errors: `NBD_E*`, which are Linux's numbers.
pub mod error {
    /// Not permitted: it is read-only.
    pub const EPERM: u32 = 1;
    /// It failed.
    pub const EIO: u32 = 5;
    /// No memory.
    pub const ENOMEM: u32 = 12;
    /// Ill-formed, or outside.
    pub const EINVAL: u32 = 22;
    /// No room.
    pub const ENOSPC: u32 = 28;
    /// Longer than is taken.
    pub const EOVERFLOW: u32 = 75;
    /// Not known here.
    pub const ENOTSUP: u32 = 95;
    /// The server is about to end.
    pub const ESHUTDOWN: u32 = 108;
}

/// What the protocol calls an error of the data path.
pub fn errno(from: Errno) -> u32 {
    match from {
        // What is outside the export never gets as far as a store: it is the store that is shorter than it was.
        Errno::Io | Errno::NoDevice | Errno::Range => error::EIO,
        Errno::Unaligned => error::EINVAL,
        Errno::ReadOnly => error::EPERM,
        Errno::NoSpace => error::ENOSPC,
        Errno::Unsupported => error::ENOTSUP,
    }
}

/// What an error of the protocol is called here.
pub fn from_errno(from: u32) -> Errno {
    match from {
        error::EPERM => Errno::ReadOnly,
        error::EINVAL | error::EOVERFLOW => Errno::Unaligned,
        error::ENOSPC => Errno::NoSpace,
        error::ENOTSUP => Errno::Unsupported,
        error::ESHUTDOWN => Errno::NoDevice,
        _ => Errno::Io,
    }
}

/// The big-endian integers at the beginning of a message, one after another.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes; `None` if there are fewer.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next two bytes as a number; [`None`] past the end.
    pub fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// The next four bytes as a number; [`None`] past the end.
    pub fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// The next eight bytes as a number; [`None`] past the end.
    pub fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// A string behind its length.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.bytes(length)
    }
}

/// A reply to an option; `data` in pieces, so that nothing is copied twice.
pub fn option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    let length: usize = data.iter().map(|piece| piece.len()).sum();
    out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    data.iter().for_each(|piece| out.extend(*piece));
}

/// A simple reply without its payload.
pub fn simple_reply(error: u32, cookie: u64) -> [u8; SIMPLE_REPLY] {
    let mut head = [0; SIMPLE_REPLY];
    head[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
    head
}

/// A chunk of a structured reply without its payload of `length` bytes.
pub fn structured_chunk(flags: u16, kind: u16, cookie: u64, length: u32) -> [u8; CHUNK] {
    let mut head = [0; CHUNK];
    head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&length.to_be_bytes());
    head
}

/// A chunk with an extended header, without its payload of `length` bytes. `offset`: the request's.
pub fn extended_chunk(flags: u16, kind: u16, cookie: u64, offset: u64, length: u64) -> [u8; EXTENDED] {
    let mut head = [0; EXTENDED];
    head[..4].copy_from_slice(&EXTENDED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..24].copy_from_slice(&offset.to_be_bytes());
    head[24..].copy_from_slice(&length.to_be_bytes());
    head
}

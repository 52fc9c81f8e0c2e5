//! The numbers of the NBD protocol, and the layout of its messages. All integers are big-endian.

use trueline_geom::base::error::Errno;

/// The magic number "NBDMAGIC", the first word of a server.
pub const NBDMAGIC: u64 = 0x4e42_444d_4147_4943;
/// The magic number "IHAVEOPT", the second word of a server, and the first of every option.
pub const IHAVEOPT: u64 = 0x4948_4156_454f_5054;
/// The magic number of a reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// The magic number of a compact request.
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
/// The magic number of a simple reply.
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// The magic number of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;
/// The magic number of a request with an extended header.
pub const EXTENDED_REQUEST_MAGIC: u32 = 0x21e4_1c71;
/// The magic number of a chunk with an extended header.
pub const EXTENDED_REPLY_MAGIC: u32 = 0x6e8a_278c;

/// The size of a compact request in bytes, without its payload.
pub const REQUEST: usize = 28;
/// The size of an extended header in bytes, of a request or a chunk.
pub const EXTENDED: usize = 32;
/// The size of a simple reply in bytes, without its payload.
pub const SIMPLE_REPLY: usize = 16;
/// The size of a structured chunk's header in bytes.
pub const CHUNK: usize = 20;
/// The size of an option's header in bytes.
pub const OPTION: usize = 16;
/// The longest string in bytes (section "Terminology and conventions").
pub const STRING: usize = 4096;

/// The headers of requests and replies, as agreed in the handshake.
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
    /// True if a reply is made of chunks.
    pub fn are_chunks(self) -> bool {
        self != Headers::Simple
    }

    /// The size of a request's header in bytes.
    pub fn request(self) -> usize {
        if self == Headers::Extended { EXTENDED } else { REQUEST }
    }
}

/// Handshake flags of the server and, with the same numbers, of the client.
pub mod handshake {
    /// `NBD_FLAG_FIXED_NEWSTYLE`: the fixed newstyle handshake.
    pub const FIXED_NEWSTYLE: u16 = 1;
    /// `NBD_FLAG_NO_ZEROES`: no padding after `EXPORT_NAME`.
    pub const NO_ZEROES: u16 = 2;
}

/// Options of the handshake, `NBD_OPT_*`.
pub mod option {
    /// Enters transmission; the one option that cannot be refused.
    pub const EXPORT_NAME: u32 = 1;
    /// Ends the session during the handshake.
    pub const ABORT: u32 = 2;
    /// Asks for the names of all exports.
    pub const LIST: u32 = 3;
    /// Starts TLS from here on.
    pub const STARTTLS: u32 = 5;
    /// Asks for the properties of an export.
    pub const INFO: u32 = 6;
    /// As `INFO`, then enters transmission.
    pub const GO: u32 = 7;
    /// Agrees on structured replies from here on.
    pub const STRUCTURED_REPLY: u32 = 8;
    /// Asks for the contexts that `BLOCK_STATUS` could report.
    pub const LIST_META_CONTEXT: u32 = 9;
    /// Selects the contexts that `BLOCK_STATUS` will report.
    pub const SET_META_CONTEXT: u32 = 10;
    /// Agrees on extended headers from the first request on.
    pub const EXTENDED_HEADERS: u32 = 11;
}

/// Replies to options, `NBD_REP_*`.
pub mod reply {
    /// The option is done.
    pub const ACK: u32 = 1;
    /// The name of an export.
    pub const SERVER: u32 = 2;
    /// A property of an export.
    pub const INFO: u32 = 3;
    /// A metadata context and its id.
    pub const META_CONTEXT: u32 = 4;
    /// The option is not supported.
    pub const ERR_UNSUP: u32 = 1 << 31 | 1;
    /// The option is forbidden by the server's policy.
    pub const ERR_POLICY: u32 = 1 << 31 | 2;
    /// The option is ill-formed, or comes at the wrong time.
    pub const ERR_INVALID: u32 = 1 << 31 | 3;
    /// The option needs TLS first.
    pub const ERR_TLS_REQD: u32 = 1 << 31 | 5;
    /// The export does not exist.
    pub const ERR_UNKNOWN: u32 = 1 << 31 | 6;
    /// The server is shutting down.
    pub const ERR_SHUTDOWN: u32 = 1 << 31 | 7;
    /// The option is longer than the server accepts.
    pub const ERR_TOO_BIG: u32 = 1 << 31 | 9;
    /// Extended headers are required first; or they are agreed, and cannot be revoked.
    pub const ERR_EXT_HEADER_REQD: u32 = 1 << 31 | 10;
}

/// Properties in replies to `INFO` and `GO`, `NBD_INFO_*`.
pub mod info {
    /// The length in bytes, and the transmission flags.
    pub const EXPORT: u16 = 0;
    /// The name of the export.
    pub const NAME: u16 = 1;
    /// The description of the export for people.
    pub const DESCRIPTION: u16 = 2;
    /// The minimum, preferred and maximum request in bytes.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags of an export, `NBD_FLAG_*`.
pub mod transmission {
    /// The flags are valid; always set.
    pub const HAS_FLAGS: u16 = 1;
    /// The export cannot be written.
    pub const READ_ONLY: u16 = 1 << 1;
    /// The command `FLUSH` is supported.
    pub const SEND_FLUSH: u16 = 1 << 2;
    /// The flag `FUA` (forced unit access) is supported.
    pub const SEND_FUA: u16 = 1 << 3;
    /// The medium is rotational: seeks take time.
    pub const ROTATIONAL: u16 = 1 << 4;
    /// The command `TRIM` is supported.
    pub const SEND_TRIM: u16 = 1 << 5;
    /// The command `WRITE_ZEROES` is supported.
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    /// The flag `DF` is supported: a read in one chunk.
    pub const SEND_DF: u16 = 1 << 7;
    /// A flush on one connection covers all connections.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    /// The command `CACHE` is supported.
    pub const SEND_CACHE: u16 = 1 << 10;
    /// The flag `FAST_ZERO` is supported: a `WRITE_ZEROES` that fails rather than be slow.
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
    /// A payload of `BLOCK_STATUS` may select contexts.
    pub const BLOCK_STATUS_PAYLOAD: u16 = 1 << 12;
}

/// Commands of requests, `NBD_CMD_*`.
pub mod command {
    /// Reads a range of bytes.
    pub const READ: u16 = 0;
    /// Writes the bytes of the payload.
    pub const WRITE: u16 = 1;
    /// Ends the session without a reply.
    pub const DISC: u16 = 2;
    /// Writes volatile data to the medium.
    pub const FLUSH: u16 = 3;
    /// Discards a range of bytes.
    pub const TRIM: u16 = 4;
    /// Prefetches a range of bytes.
    pub const CACHE: u16 = 5;
    /// Writes zeros to a range.
    pub const WRITE_ZEROES: u16 = 6;
    /// Reports the status of a range in every selected context.
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands, `NBD_CMD_FLAG_*`.
pub mod flag {
    /// The data must be on the medium before the reply.
    pub const FUA: u16 = 1;
    /// The zeros must keep their space allocated.
    pub const NO_HOLE: u16 = 1 << 1;
    /// The reply must be one chunk (don't fragment).
    pub const DF: u16 = 1 << 2;
    /// The reply must have one descriptor.
    pub const REQ_ONE: u16 = 1 << 3;
    /// The zeroing must be fast, or fail.
    pub const FAST_ZERO: u16 = 1 << 4;
    /// The length is that of a payload. With extended headers only.
    pub const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Types of reply chunks, `NBD_REPLY_TYPE_*`.
pub mod chunk {
    /// The only flag of a chunk: it is the last.
    pub const DONE: u16 = 1;
    /// A chunk without any content.
    pub const NONE: u16 = 0;
    /// A chunk of data at an offset.
    pub const OFFSET_DATA: u16 = 1;
    /// A chunk of zeros at an offset.
    pub const OFFSET_HOLE: u16 = 2;
    /// A chunk of status descriptors of 32 bits.
    pub const BLOCK_STATUS: u16 = 5;
    /// A chunk of status descriptors of 64 bits.
    pub const BLOCK_STATUS_EXT: u16 = 6;
    /// A chunk with an error.
    pub const ERROR: u16 = 1 << 15 | 1;
    /// A chunk with an error at an offset of a read.
    pub const ERROR_OFFSET: u16 = 1 << 15 | 2;
}

/// Errors of replies, `NBD_E*`, which are Linux's numbers.
pub mod error {
    /// The operation is not permitted: the export is read-only.
    pub const EPERM: u32 = 1;
    /// The device reported an error.
    pub const EIO: u32 = 5;
    /// The server is out of memory.
    pub const ENOMEM: u32 = 12;
    /// The request is ill-formed, or outside the export.
    pub const EINVAL: u32 = 22;
    /// The medium has no space left.
    pub const ENOSPC: u32 = 28;
    /// The request is longer than the server accepts.
    pub const EOVERFLOW: u32 = 75;
    /// The command is not supported.
    pub const ENOTSUP: u32 = 95;
    /// The server is shutting down.
    pub const ESHUTDOWN: u32 = 108;
}

/// The protocol's number for an error of the data path.
pub fn errno(from: Errno) -> u32 {
    match from {
        // A request outside the export never reaches a store, so here the store has become shorter.
        Errno::Io
        | Errno::NoDevice
        | Errno::Range
        | Errno::Packed
        | Errno::Awaited
        | Errno::Unfetched
        | Errno::Zone(_) => error::EIO,
        Errno::Unaligned => error::EINVAL,
        Errno::ReadOnly => error::EPERM,
        Errno::NoSpace => error::ENOSPC,
        Errno::Unsupported => error::ENOTSUP,
    }
}

/// The error of the data path for a number of the protocol.
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

/// A reader of big-endian integers from the start of a message.
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes; `None` if there are fewer.
    pub fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    /// The next two bytes as an integer; [`None`] past the end.
    pub fn u16(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// The next four bytes as an integer; [`None`] past the end.
    pub fn u32(&mut self) -> Option<u32> {
        self.bytes(4)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// The next eight bytes as an integer; [`None`] past the end.
    pub fn u64(&mut self) -> Option<u64> {
        self.bytes(8)?.try_into().ok().map(u64::from_be_bytes)
    }

    /// The next string, which follows its length; [`None`] past the end.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.u32()?).ok()?;
        self.bytes(length)
    }
}

/// Appends a reply to an option, with `data` in pieces, so that nothing is copied twice.
pub fn option_reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    let length: usize = data.iter().map(|piece| piece.len()).sum();
    out.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    data.iter().for_each(|piece| out.extend(*piece));
}

/// The header of a simple reply.
pub fn simple_reply(error: u32, cookie: u64) -> [u8; SIMPLE_REPLY] {
    let mut head = [0; SIMPLE_REPLY];
    head[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
    head
}

/// The header of a structured chunk with a payload of `length` bytes.
pub fn structured_chunk(flags: u16, kind: u16, cookie: u64, length: u32) -> [u8; CHUNK] {
    let mut head = [0; CHUNK];
    head[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&length.to_be_bytes());
    head
}

/// The extended header of a chunk with a payload of `length` bytes. `offset` is the request's.
pub fn extended_chunk(
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    length: u64,
) -> [u8; EXTENDED] {
    let mut head = [0; EXTENDED];
    head[..4].copy_from_slice(&EXTENDED_REPLY_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..24].copy_from_slice(&offset.to_be_bytes());
    head[24..].copy_from_slice(&length.to_be_bytes());
    head
}

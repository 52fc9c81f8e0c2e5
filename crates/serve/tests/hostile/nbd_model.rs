//! What a network block device server answers, taken apart, and a model of the bytes that it must
//! agree with.

use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, Headers, chunk, command, error, flag};

/// A chunk of a reply, or a simple reply, which is one without anything in it.
pub struct Chunk<'a> {
    kind: u16,
    cookie: u64,
    /// Of the request, where the reply says it again.
    offset: Option<u64>,
    data: &'a [u8],
}

/// A big-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Bytes before what a chunk carries.
fn head(headers: Headers) -> usize {
    if headers == Headers::Extended { wire::EXTENDED } else { wire::CHUNK }
}

fn is_simple(bytes: &[u8], headers: Headers) -> bool {
    headers != Headers::Extended && number(&bytes[..4]) == u64::from(wire::SIMPLE_REPLY_MAGIC)
}

impl<'a> Chunk<'a> {
    /// Bytes of the first one, and whether nothing follows it; [`None`] if it is not all here.
    /// Panics where it has no form.
    pub fn measure(bytes: &[u8], headers: Headers) -> Option<(usize, bool)> {
        if bytes.len() < 16 {
            return None;
        }
        if is_simple(bytes, headers) {
            return Some((16, true));
        }
        let magic = if headers == Headers::Extended {
            wire::EXTENDED_REPLY_MAGIC
        } else {
            wire::STRUCTURED_REPLY_MAGIC
        };
        assert_eq!(
            number(&bytes[..4]),
            u64::from(magic),
            "it begins with neither a reply nor a chunk"
        );
        let (head, flags) = (head(headers), number(&bytes[4..6]));
        let length =
            number(bytes.get(head - if headers == Headers::Extended { 8 } else { 4 }..head)?);
        assert!(flags <= 1 && length <= 2 * 65_536, "{flags:x} {length}");
        let length = head + usize::try_from(length).expect("checked");
        (bytes.len() >= length).then_some((length, flags == 1))
    }

    /// Of its bytes.
    pub fn new(bytes: &'a [u8], headers: Headers) -> Chunk<'a> {
        let cookie = number(&bytes[8..16]);
        if is_simple(bytes, headers) {
            assert_eq!(number(&bytes[4..8]), 0, "errors have chunks of their own");
            return Chunk { kind: chunk::NONE, cookie, offset: None, data: &[] };
        }
        let offset = (headers == Headers::Extended).then(|| number(&bytes[16..24]));
        let kind = u16::try_from(number(&bytes[6..8])).expect("two bytes");
        Chunk { kind, cookie, offset, data: &bytes[head(headers)..] }
    }

    /// Context and descriptors: lengths and what they say.
    fn descriptors(&self) -> (u64, Vec<(u64, u64)>) {
        let (at, half) = match self.kind {
            chunk::BLOCK_STATUS => (4, 4),
            chunk::BLOCK_STATUS_EXT => (8, 8),
            kind => panic!("{kind} is no status"),
        };
        let found = self.data[at..]
            .chunks(2 * half)
            .map(|one| (number(&one[..half]), number(&one[half..])));
        let found: Vec<_> = found.collect();
        assert!(
            half == 4 || number(&self.data[4..8]) == found.len() as u64,
            "their number is another"
        );
        assert_eq!(self.data.len(), at + found.len() * 2 * half);
        (number(&self.data[..4]), found)
    }
}

/// The bytes as they must be.
pub struct Model {
    headers: Headers,
    bytes: Vec<u8>,
    /// Of no interest: they may be zero as well.
    loose: Vec<bool>,
}

impl Model {
    /// Zeros.
    pub fn new(length: u64, headers: Headers) -> Model {
        let length = usize::try_from(length).expect("small");
        Model { headers, bytes: vec![0; length], loose: vec![false; length] }
    }

    /// Whether `chunks` may answer a request.
    pub fn check(&mut self, request: &Request, payload: &[u8], chunks: &[Chunk<'_>]) {
        assert!(!chunks.is_empty(), "{request:?} was not answered");
        for chunk in chunks {
            assert_eq!(chunk.cookie, request.cookie, "{request:?}");
            assert!(chunk.offset.is_none_or(|offset| offset == request.offset), "{request:?}");
        }
        let error = if chunks[0].kind == chunk::ERROR {
            u32::try_from(number(&chunks[0].data[..4])).expect("four bytes")
        } else {
            0
        };
        let named = request.command == command::BLOCK_STATUS && self.payload(request) > 0;
        let length =
            if named && payload.len() >= 8 { number(&payload[..8]) } else { request.length };
        let contexts: Vec<u64> =
            if named { payload.chunks(4).skip(2).map(number).collect() } else { vec![1, 2] };
        let end = request.offset.checked_add(length).filter(|&end| end <= self.bytes.len() as u64);
        let Some(end) = end.filter(|_| self.is_allowed(request, payload, length)) else {
            return assert!(error != 0 && chunks.len() == 1, "{request:?} was done");
        };
        if error == error::ENOTSUP
            && request.command == command::WRITE_ZEROES
            && request.has(flag::FAST_ZERO)
        {
            return;
        }
        assert_eq!(error, 0, "{request:?}");
        let index = |at: u64| usize::try_from(at).expect("inside");
        let range = index(request.offset)..index(end);
        match request.command {
            command::READ if length > 0 => {
                assert!(chunks.len() == 1 && chunks[0].kind == chunk::OFFSET_DATA);
                assert_eq!(chunks[0].data[..8], request.offset.to_be_bytes());
                assert_eq!(chunks[0].data.len() - 8, range.len());
                for (at, &byte) in range.zip(&chunks[0].data[8..]) {
                    assert!(
                        byte == self.bytes[at] || self.loose[at] && byte == 0,
                        "{request:?} at {at}"
                    );
                    (self.bytes[at], self.loose[at]) = (byte, false);
                }
            }
            command::BLOCK_STATUS => self.check_status(request, length, &contexts, chunks),
            // A chunk of data has at least a byte.
            _ => {
                assert!(
                    chunks.len() == 1 && chunks[0].kind == chunk::NONE && chunks[0].data.is_empty(),
                    "{request:?}"
                );
                self.change(request.command, range, payload);
            }
        }
    }

    fn change(&mut self, command: u16, range: std::ops::Range<usize>, payload: &[u8]) {
        match command {
            command::WRITE => self.bytes[range.clone()].copy_from_slice(payload),
            command::WRITE_ZEROES => self.bytes[range.clone()].fill(0),
            command::TRIM => return self.loose[range].fill(true),
            _ => return,
        }
        self.loose[range].fill(false);
    }

    fn check_status(&self, request: &Request, length: u64, contexts: &[u64], chunks: &[Chunk<'_>]) {
        let found: Vec<_> = chunks.iter().map(Chunk::descriptors).collect();
        assert_eq!(
            found.iter().map(|(context, _)| *context).collect::<Vec<_>>(),
            contexts,
            "{request:?}"
        );
        assert!(
            chunks.iter().all(|chunk| (chunk.kind == chunk::BLOCK_STATUS_EXT)
                == (self.headers == Headers::Extended))
        );
        for (_, descriptors) in found {
            assert!(descriptors.iter().all(|&(length, _)| length > 0), "{request:?}");
            let sum: u64 = descriptors.iter().map(|(length, _)| length).sum();
            assert!(!descriptors.is_empty() && sum <= length, "{request:?}");
            assert!(descriptors.len() == 1 || !request.has(flag::REQ_ONE), "{request:?}");
        }
    }

    /// Bytes that follow a request.
    fn payload(&self, request: &Request) -> u64 {
        let carries = request.command == command::WRITE
            || self.headers == Headers::Extended && request.flags & 32 != 0;
        if carries { request.length } else { 0 }
    }

    /// Whether a request is one, wherever it leads: as the protocol says it, in other words than
    /// the server's.
    fn is_allowed(&self, request: &Request, payload: &[u8], length: u64) -> bool {
        let extended = self.headers == Headers::Extended;
        let flags = match request.command {
            command::READ => 0b00_0101,
            command::WRITE if extended => 0b10_0001,
            command::WRITE | command::FLUSH | command::TRIM | command::CACHE => 0b00_0001,
            command::WRITE_ZEROES => 0b01_0011,
            command::BLOCK_STATUS if extended => 0b10_1001,
            command::BLOCK_STATUS => 0b00_1001,
            _ => return false,
        };
        let mut numbers: Vec<&[u8]> = payload.chunks(4).skip(2).collect();
        let told = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        request.flags & !flags == 0
            && match request.command {
                command::FLUSH => length == 0 && request.offset == 0,
                command::BLOCK_STATUS if request.has(flag::PAYLOAD_LEN) => {
                    let are_contexts = numbers.iter().all(|number| {
                        [[0, 0, 0, 1], [0, 0, 0, 2]].iter().any(|known| number == known)
                    });
                    length > 0
                        && (12..=16).contains(&payload.len())
                        && payload.len().is_multiple_of(4)
                        && numbers.len() == told
                        && are_contexts
                }
                command::BLOCK_STATUS => length > 0,
                _ => true,
            }
    }
}

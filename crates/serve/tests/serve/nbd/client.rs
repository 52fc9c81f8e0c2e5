//! A client that says what a test wants said, byte by byte.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, CHUNK, EXTENDED, Headers, command, flag};

/// A connected client.
pub(super) struct Client<S = UnixStream> {
    pub(super) stream: S,
    headers: Headers,
    cookie: u64,
}

/// One chunk or simple reply: its kind ([`None`] of a simple one), what it carries, whether nothing
/// follows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) cookie: u64,
    pub(super) kind: u16,
    pub(super) last: bool,
    /// Of the request, where the reply says it again.
    pub(super) offset: Option<u64>,
    pub(super) data: Vec<u8>,
}

impl<S: Read + Write> Client<S> {
    /// Has gone to the default export with structured replies and both contexts.
    pub(super) fn new(mut stream: S) -> Client<S> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        Client::after_greeting(stream, &hello())
    }

    /// The same with extended headers.
    pub(super) fn extended(mut stream: S) -> Client<S> {
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        Client {
            headers: Headers::Extended,
            ..Client::after_greeting(stream, &hello_with(wire::option::EXTENDED_HEADERS))
        }
    }

    /// The same where the greeting is read, and `hello` is what is left to say.
    pub(super) fn after_greeting(mut stream: S, hello: &[u8]) -> Client<S> {
        stream.write_all(hello).unwrap();
        let mut client = Client { stream, headers: Headers::Structured, cookie: 0 };
        while client.option_reply() != (7, 1) {}
        client
    }

    /// Option and kind of the next reply to an option, which is passed over.
    pub(super) fn option_reply(&mut self) -> (u32, u32) {
        let mut head = [0; 20];
        self.stream.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let mut data = vec![0; usize::try_from(word(16)).unwrap()];
        self.stream.read_exact(&mut data).unwrap();
        (word(8), word(12))
    }

    /// Asks; the answer is not waited for.
    pub(super) fn ask(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> u64 {
        let carries = if self.headers == Headers::Extended && command == command::WRITE {
            flag::PAYLOAD_LEN
        } else {
            0
        };
        self.ask_exactly(command, flags | carries, offset, length, payload)
    }

    /// The same with no other flags.
    pub(super) fn ask_exactly(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> u64 {
        self.cookie += 1;
        let request = Request { flags, command, cookie: self.cookie, offset, length };
        let head = if self.headers == Headers::Extended {
            request.extended().to_vec()
        } else {
            request.compact().unwrap().to_vec()
        };
        self.stream.write_all(&[&head, payload].concat()).unwrap();
        self.cookie
    }

    /// The next reply or chunk.
    pub(super) fn reply(&mut self) -> Reply {
        let mut head = [0; 16];
        self.stream.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        let cookie = u64::from_be_bytes(head[8..].try_into().unwrap());
        if self.headers != Headers::Extended && word(0) == wire::SIMPLE_REPLY_MAGIC {
            return Reply { cookie, kind: 0, last: true, offset: None, data: head[4..8].to_vec() };
        }
        let (magic, left) = match self.headers {
            Headers::Extended => (wire::EXTENDED_REPLY_MAGIC, EXTENDED - 16),
            _ => (wire::STRUCTURED_REPLY_MAGIC, CHUNK - 16),
        };
        assert_eq!(word(0), magic);
        let mut rest = vec![0; left];
        self.stream.read_exact(&mut rest).unwrap();
        let number =
            |bytes: &[u8]| bytes.iter().fold(0, |number: u64, &byte| number << 8 | u64::from(byte));
        let (offset, length) = rest.split_at(if left > 8 { 8 } else { 0 });
        let offset = (!offset.is_empty()).then(|| number(offset));
        let mut data = vec![0; usize::try_from(number(length)).unwrap()];
        self.stream.read_exact(&mut data).unwrap();
        let half = |at: usize| u16::from_be_bytes(head[at..at + 2].try_into().unwrap());
        Reply { cookie, kind: half(6), last: half(4) == 1, offset, data }
    }

    /// Asks and waits; the error, 0 if there is none.
    pub(super) fn error(
        &mut self,
        command: u16,
        flags: u16,
        offset: u64,
        length: u64,
        payload: &[u8],
    ) -> u32 {
        let cookie = self.ask(command, flags, offset, length, payload);
        let reply = self.reply();
        assert!(reply.cookie == cookie && reply.last, "{reply:?}");
        if reply.kind == 0 || reply.kind >> 15 == 1 {
            reply.data.first_chunk().map_or(0, |&error| u32::from_be_bytes(error))
        } else {
            0
        }
    }

    /// Reads and waits.
    pub(super) fn read(&mut self, offset: u64, length: u64) -> Vec<u8> {
        self.ask(command::READ, 0, offset, length, &[]);
        let reply = self.reply();
        assert_eq!((reply.kind, reply.last), (1, true));
        reply.data[8..].to_vec()
    }

    /// Whether the server has hung up: nothing more comes.
    pub(super) fn is_hung_up(&mut self) -> bool {
        let mut rest = Vec::new();
        // Cut off in the middle is an end too; silence is none.
        let silent =
            self.stream.read_to_end(&mut rest).is_err_and(|e| e.kind() == ErrorKind::WouldBlock);
        rest.is_empty() && !silent
    }
}

/// Client flags and the options up to transmission, with structured replies.
pub(super) fn hello() -> Vec<u8> {
    hello_with(wire::option::STRUCTURED_REPLY)
}

/// The same with what `number` asks for.
fn hello_with(number: u32) -> Vec<u8> {
    let contexts = [
        &[0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 15][..],
        b"base:allocation",
        &[0, 0, 0, 14],
        b"trueline:grain",
    ]
    .concat();
    [vec![0, 0, 0, 3], option(number, &[]), option(10, &contexts), option(7, &[0; 6])].concat()
}

/// An option as it is sent.
pub(super) fn option(number: u32, data: &[u8]) -> Vec<u8> {
    [
        b"IHAVEOPT",
        &number.to_be_bytes()[..],
        &u32::try_from(data.len()).unwrap().to_be_bytes(),
        data,
    ]
    .concat()
}

//! A server that says what a test wants said, byte by byte.

use super::LONG;
use crate::Scratch;
use rustix::net::sockopt::{self, Timeout};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, chunk, option, reply, transmission};

/// Bytes of its export.
pub(super) const LENGTH: u64 = 64 << 20;

/// A server that listens.
pub(super) struct Fake {
    scratch: Scratch,
    listener: UnixListener,
    /// Whether it replies in chunks.
    structured: bool,
}

/// A client of it that has come as far as its first request.
pub(super) struct Served(pub(super) UnixStream);

impl Fake {
    pub(super) fn new(structured: bool) -> Fake {
        let scratch = Scratch::new();
        let listener = UnixListener::bind(scratch.0.join("s")).unwrap();
        // accept(2) has it too: a test of a client that does not come fails, and does not wait for
        // ever.
        sockopt::set_socket_timeout(&listener, Timeout::Recv, Some(LONG)).unwrap();
        Fake { scratch, listener, structured }
    }

    pub(super) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.scratch.0.join("s").display())
    }

    /// A client that has connected, and was told nothing.
    pub(super) fn accept_silently(&self) -> UnixStream {
        let stream = self.listener.accept().unwrap().0;
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    /// True if no client connects for a while.
    pub(super) fn is_left_alone(&self, within: Duration) -> bool {
        self.listener.set_nonblocking(true).unwrap();
        std::thread::sleep(within);
        let alone = self.listener.accept().is_err();
        self.listener.set_nonblocking(false).unwrap();
        alone
    }

    /// Greets a client and takes its options, until it has gone to the export.
    pub(super) fn accept(&self) -> Served {
        let mut stream = self.accept_silently();
        stream
            .write_all(
                &[&wire::NBDMAGIC.to_be_bytes()[..], &wire::IHAVEOPT.to_be_bytes(), &[0, 3]]
                    .concat(),
            )
            .unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        loop {
            let mut head = [0; wire::OPTION];
            stream.read_exact(&mut head).unwrap();
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let number = word(8);
            stream.read_exact(&mut vec![0; usize::try_from(word(12)).unwrap()]).unwrap();
            let mut answer = |kind: u32, data: &[u8]| {
                let length = u32::try_from(data.len()).unwrap();
                let head = [
                    &wire::OPTION_REPLY_MAGIC.to_be_bytes()[..],
                    &number.to_be_bytes(),
                    &kind.to_be_bytes(),
                    &length.to_be_bytes(),
                ];
                stream.write_all(&[&head.concat(), data].concat()).unwrap();
            };
            match number {
                option::STRUCTURED_REPLY if self.structured => answer(reply::ACK, &[]),
                option::GO => {
                    use transmission::{CAN_MULTI_CONN, HAS_FLAGS, SEND_FLUSH, SEND_FUA};
                    let flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN;
                    answer(
                        reply::INFO,
                        &[&[0, 0][..], &LENGTH.to_be_bytes(), &flags.to_be_bytes()].concat(),
                    );
                    answer(reply::ACK, &[]);
                    return Served(stream);
                }
                _ => answer(reply::ERR_UNSUP, &[]),
            }
        }
    }
}

impl Served {
    /// The next request; what it carries is read and forgotten.
    pub(super) fn request(&mut self) -> Request {
        let mut head = [0; wire::REQUEST];
        self.0.read_exact(&mut head).unwrap();
        let request = Request::read(&head, wire::Headers::Simple).unwrap();
        self.0
            .read_exact(&mut vec![
                0;
                usize::try_from(request.payload(wire::Headers::Simple)).unwrap()
            ])
            .unwrap();
        request
    }

    /// Says that it is done, or what is wrong.
    pub(super) fn done(&mut self, request: &Request, error: u32) {
        let head = [wire::SIMPLE_REPLY_MAGIC.to_be_bytes(), error.to_be_bytes()].concat();
        // A client whose patience is short may have had enough; what came of it is asked of the
        // client.
        let _ = self.0.write_all(&[&head[..], &request.cookie.to_be_bytes()].concat());
    }

    /// Takes the next request, which is one of `command`, and says that it is done.
    pub(super) fn expect(&mut self, command: u16) {
        let request = self.request();
        assert_eq!(request.command, command);
        self.done(&request, 0);
    }

    /// A chunk of a reply.
    pub(super) fn chunk(&mut self, request: &Request, flags: u16, kind: u16, data: &[u8]) {
        let length = u32::try_from(data.len()).unwrap();
        let head = [
            &wire::STRUCTURED_REPLY_MAGIC.to_be_bytes()[..],
            &flags.to_be_bytes(),
            &kind.to_be_bytes(),
        ]
        .concat();
        // A client that has found something wrong in it has hung up.
        let _ = self.0.write_all(
            &[&head, &request.cookie.to_be_bytes()[..], &length.to_be_bytes(), data].concat(),
        );
    }

    /// Bytes of a read, or a hole, and nothing that follows.
    pub(super) fn content(&mut self, request: &Request, kind: u16, from: u64, length: u32) {
        let at = (request.offset + from).to_be_bytes();
        let what = if kind == chunk::OFFSET_HOLE {
            length.to_be_bytes().to_vec()
        } else {
            vec![7; usize::try_from(length).unwrap()]
        };
        self.chunk(request, 0, kind, &[&at[..], &what].concat());
    }
}

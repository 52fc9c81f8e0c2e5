//! The client with extended headers: with this server, and with one that says what a test wants
//! said.

use super::extended::{TIB, Vast};
use super::fake::{Fake, LENGTH};
use super::{PATIENT, Server};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Run, Store};
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{Grain, Why};
use trueline_host::nbd::client::Remote;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{
    self, Headers, chunk, command, error, flag, option, reply, transmission,
};

/// A disk of which it is noted what is asked of it.
#[derive(Default)]
struct Noted(Mutex<Vec<(&'static str, u64, u64)>>);

impl Noted {
    fn note(&self, what: &'static str, offset: u64, length: u64) -> Result<(), Errno> {
        self.0.lock().unwrap().push((what, offset, length));
        Ok(())
    }
}

impl Store for Noted {
    fn length(&self) -> u64 {
        Vast.length()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.note("read", offset, buffer.len() as u64)?;
        Vast.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.note("write", offset, bytes.len() as u64)
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        self.note("discard", offset, length)
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        self.note("run", offset, length)?;
        Vast.extent(offset, length)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }
}

#[test]
fn a_disk_of_terabytes_is_asked_for_in_few_requests() {
    let store = Arc::new(Noted::default());
    let server = Server::of(store.clone(), PATIENT);
    let remote =
        Remote::open(&format!("nbd+unix:///?socket={}", server.path().display()), false).unwrap();
    assert!(remote.told().extended);
    assert_eq!(
        remote.boundaries(),
        [Boundary { why: Why::Physical, grain: Grain::new(4096, 512) }]
    );
    assert_eq!(
        remote.extent(5, 5 * TIB - 5),
        Ok(Run { content: Content::Hole, length: 3 * TIB - 5 })
    );
    // Of one context, and one descriptor of it: the server has looked no further than the data.
    assert_eq!(*store.0.lock().unwrap(), [("run", 5, 5 * TIB - 5), ("run", 3 * TIB, 2 * TIB)]);
    store.0.lock().unwrap().clear();
    remote.discard(4096, 3 << 30).unwrap();
    let discarded: u64 = store
        .0
        .lock()
        .unwrap()
        .drain(..)
        .map(|(what, _, length)| if what == "discard" { length } else { 0 })
        .sum();
    assert_eq!(discarded, 3 << 30);
    let mut back = [0; 9];
    remote.read_at(&mut back, 4 * TIB).unwrap();
    remote.write_at(&[1; 11], 5 * TIB - 11).unwrap();
    assert_eq!(
        (back, &store.0.lock().unwrap()[..]),
        ([7; 9], &[("read", 4 * TIB, 9), ("write", 5 * TIB - 11, 11)][..])
    );
    assert_eq!(remote.try_zero(0, 5 * TIB, false), Err(Errno::Unsupported));
}

/// Takes a client's options, until it has gone to the export: extended headers, and
/// `base:allocation` by the number 9.
fn accept(fake: &Fake) -> UnixStream {
    let mut stream = fake.accept_silently();
    stream
        .write_all(
            &[&wire::NBDMAGIC.to_be_bytes()[..], &wire::IHAVEOPT.to_be_bytes(), &[0, 3]].concat(),
        )
        .unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    loop {
        let mut head = [0; wire::OPTION];
        stream.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        stream.read_exact(&mut vec![0; usize::try_from(word(12)).unwrap()]).unwrap();
        let mut answer = |kind: u32, data: &[u8]| {
            let numbers =
                [word(8), kind, u32::try_from(data.len()).unwrap()].map(u32::to_be_bytes).concat();
            stream
                .write_all(&[&wire::OPTION_REPLY_MAGIC.to_be_bytes()[..], &numbers, data].concat())
                .unwrap();
        };
        match word(8) {
            option::SET_META_CONTEXT => answer(reply::META_CONTEXT, b"\0\0\0\x09base:allocation"),
            option::GO => {
                let flags = transmission::HAS_FLAGS | transmission::SEND_FLUSH;
                answer(
                    reply::INFO,
                    &[&[0, 0][..], &LENGTH.to_be_bytes(), &flags.to_be_bytes()].concat(),
                );
            }
            _ => {}
        }
        answer(reply::ACK, &[]);
        if word(8) == option::GO {
            return stream;
        }
    }
}

/// The next request, and what it carries.
fn request(stream: &mut UnixStream) -> (Request, Vec<u8>) {
    let mut head = [0; wire::EXTENDED];
    stream.read_exact(&mut head).unwrap();
    let request = Request::read(&head, Headers::Extended).unwrap();
    let mut payload = vec![0; usize::try_from(request.payload(Headers::Extended)).unwrap()];
    stream.read_exact(&mut payload).unwrap();
    (request, payload)
}

/// A chunk that ends a reply, as it must be.
fn last(request: &Request, kind: u16, data: &[u8]) -> Vec<u8> {
    let head = [
        &wire::EXTENDED_REPLY_MAGIC.to_be_bytes()[..],
        &chunk::DONE.to_be_bytes(),
        &kind.to_be_bytes(),
    ]
    .concat();
    let numbers =
        [request.cookie, request.offset, data.len() as u64].map(u64::to_be_bytes).concat();
    [&head, &numbers, data].concat()
}

/// What is sent to a request and its payload.
type Answer = fn(&Request, &[u8]) -> Vec<u8>;

/// What `ask` comes to if the request it makes is answered so.
fn answered<T: Send>(
    ask: impl FnOnce(&Remote) -> T + Send,
    answer: impl FnOnce(&Request, &[u8]) -> Vec<u8>,
) -> T {
    let fake = Fake::new(true);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&Remote::open(&fake.uri(), false).unwrap()));
        let mut stream = accept(&fake);
        let (request, payload) = request(&mut stream);
        // A client that has found something wrong in it has hung up.
        let _ = stream.write_all(&answer(&request, &payload));
        drop(stream);
        asked.join().unwrap()
    })
}

#[test]
fn a_payload_is_announced_and_answers_are_understood() {
    let write = |remote: &Remote| remote.write_at(&[7; 3], 1000);
    let good = |request: &Request, payload: &[u8]| {
        assert_eq!(
            (request.command, request.flags, request.offset, payload),
            (command::WRITE, flag::PAYLOAD_LEN, 1000, &[7; 3][..])
        );
        last(request, chunk::NONE, &[])
    };
    assert_eq!(answered(write, good), Ok(()));
    let full = |request: &Request, _: &[u8]| {
        last(request, chunk::ERROR, &[&error::ENOSPC.to_be_bytes()[..], &[0, 0]].concat())
    };
    assert_eq!(answered(write, full), Err(Errno::NoSpace));
    // What is not of this request, or of no kind that was agreed on, breaks the connection.
    let wrong: [Answer; 5] = [
        |request, _| last(&Request { cookie: request.cookie + 1, ..*request }, chunk::NONE, &[]),
        |request, _| last(&Request { offset: request.offset + 1, ..*request }, chunk::NONE, &[]),
        |request, _| {
            [
                &wire::SIMPLE_REPLY_MAGIC.to_be_bytes()[..],
                &[0; 4],
                &request.cookie.to_be_bytes(),
                &[0; 16],
            ]
            .concat()
        },
        |request, _| {
            [&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes()[..], &last(request, chunk::NONE, &[])[4..]]
                .concat()
        },
        |request, _| [&last(request, chunk::ERROR, &[])[..24], &u64::MAX.to_be_bytes()].concat(),
    ];
    for answer in wrong {
        assert_eq!(answered(write, answer), Err(Errno::NoDevice));
    }
}

#[test]
fn a_status_may_have_descriptors_of_either_size() {
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let run =
        |remote: &Remote| remote.extent(512, LENGTH - 512).map(|run| (run.content, run.length));
    let status = |kind: u16, data: Vec<u8>| {
        answered(run, |request, payload| {
            assert_eq!(
                (request.command, request.flags, request.length, payload),
                (command::BLOCK_STATUS, flag::REQ_ONE, LENGTH - 512, &[][..])
            );
            last(request, kind, &data)
        })
    };
    let hole = Ok((Content::Hole, 4096));
    assert_eq!(status(chunk::BLOCK_STATUS, words(&[9, 4096, 3])), hole);
    assert_eq!(status(chunk::BLOCK_STATUS_EXT, words(&[9, 1, 0, 4096, 0, 3])), hole);
    assert_eq!(status(chunk::BLOCK_STATUS_EXT, words(&[9, 0, 0, 4096, 0, 3])), hole);
    // Beyond what was asked for it may tell, but that is not looked at.
    assert_eq!(
        status(chunk::BLOCK_STATUS_EXT, words(&[9, 1, u32::MAX, 0, 0, 3])),
        Ok((Content::Hole, LENGTH - 512))
    );
    for (kind, data) in [
        (chunk::BLOCK_STATUS_EXT, words(&[9, 2, 0, 4096, 0, 3])),
        (chunk::BLOCK_STATUS_EXT, words(&[9])),
        (chunk::OFFSET_DATA, words(&[9, 4096, 3])),
    ] {
        assert_eq!(status(kind, data), Err(Errno::NoDevice));
    }
}

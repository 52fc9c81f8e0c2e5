//! Several requests on one connection to a server that the tests are themselves: answers in another
//! order, refusals, and answers that belong to nothing.

use crate::Scratch;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::thread;
use trueline_geom::base::error::Errno;
use trueline_host::nbd::client::pipeline::Pipeline;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{
    Headers, IHAVEOPT, NBDMAGIC, OPTION_REPLY_MAGIC, REQUEST, SIMPLE_REPLY_MAGIC, command, flag,
    transmission,
};

const LENGTH: u64 = 1 << 20;
const BLOCK: u64 = 4096;

/// The server's side of a connection, after the handshake: simple replies, and `flags`.
struct Server(UnixStream);

impl Server {
    fn greet(mut stream: UnixStream, flags: u16) -> Server {
        stream.write_all(&[&NBDMAGIC.to_be_bytes()[..], &IHAVEOPT.to_be_bytes()].concat()).unwrap();
        stream.write_all(&3u16.to_be_bytes()).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        loop {
            let mut head = [0; 16];
            stream.read_exact(&mut head).unwrap();
            let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
            let (option, length) = (word(8), word(12));
            stream.read_exact(&mut vec![0; usize::try_from(length).unwrap()]).unwrap();
            let mut answer = |kind: u32, data: &[u8]| {
                let length = u32::try_from(data.len()).unwrap();
                let words = [option, kind, length].map(u32::to_be_bytes).concat();
                stream
                    .write_all(&[&OPTION_REPLY_MAGIC.to_be_bytes()[..], &words, data].concat())
                    .unwrap();
            };
            // GO alone; the others are unknown.
            if option != 7 {
                answer(1 << 31 | 1, &[]);
                continue;
            }
            let export = [&[0, 0][..], &LENGTH.to_be_bytes(), &flags.to_be_bytes()].concat();
            answer(3, &export);
            answer(1, &[]);
            return Server(stream);
        }
    }

    /// The next request; the payload of a write is read and looked at.
    fn next(&mut self) -> Request {
        let mut head = [0; REQUEST];
        self.0.read_exact(&mut head).unwrap();
        let request = Request::read(&head, Headers::Simple).unwrap();
        let length = usize::try_from(request.payload(Headers::Simple)).unwrap();
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload).unwrap();
        assert!(!payload.contains(&0), "writes of zeros may be cheaper");
        request
    }

    /// Answers with an error number, 0 for none, and the bytes of a read.
    fn answer(&mut self, request: Request, error: u32) {
        let mut bytes = [SIMPLE_REPLY_MAGIC, error].map(u32::to_be_bytes).concat();
        bytes.extend(request.cookie.to_be_bytes());
        if request.command == command::READ && error == 0 {
            bytes.extend(vec![7; usize::try_from(request.length).unwrap()]);
        }
        self.0.write_all(&bytes).unwrap();
    }
}

/// A pipeline to a server that does `serve` with its flags.
fn to_server<T: Send + 'static>(
    flags: u16,
    serve: impl FnOnce(Server) -> T + Send + 'static,
) -> (Pipeline<u64>, thread::JoinHandle<T>) {
    let scratch = Scratch::new();
    let socket = scratch.0.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let served = thread::spawn(move || serve(Server::greet(listener.accept().unwrap().0, flags)));
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    (Pipeline::open(&uri, true, 8, BLOCK, LENGTH, || false).unwrap(), served)
}

fn ask(command: u16, block: u64) -> Request {
    let length = if command == command::FLUSH { 0 } else { BLOCK };
    Request { flags: 0, command, cookie: 0, offset: block * BLOCK, length }
}

/// All completions that there will be, in the order of their tags.
fn all(pipeline: &mut Pipeline<u64>) -> Vec<(u64, Option<Errno>)> {
    let mut found = Vec::new();
    pipeline.wait(usize::MAX).unwrap();
    pipeline.take(|tag, error| found.push((tag, error)));
    found.sort_unstable_by_key(|&(tag, _)| tag);
    found
}

#[test]
fn answers_come_in_any_order_and_an_error_is_of_its_own_request() {
    const ENOSPC: u32 = 28;
    let (mut pipeline, served) = to_server(0, |mut server| {
        for _ in 0..2 {
            let asked: Vec<Request> = (0..8).map(|_| server.next()).collect();
            for request in asked.into_iter().rev() {
                let refused = request.offset == 5 * BLOCK;
                server.answer(request, if refused { ENOSPC } else { 0 });
            }
        }
    });
    for round in 0..2 {
        for block in 0..8 {
            pipeline.push(100 * round + block, ask(command::READ, block)).unwrap();
        }
        assert!(pipeline.is_full());
        assert_eq!(pipeline.push(0, ask(command::READ, 9)), Err(Errno::Io));
        let want = |tag| (tag, (tag % 100 == 5).then_some(Errno::NoSpace));
        assert_eq!(all(&mut pipeline), (0..8).map(|n| want(100 * round + n)).collect::<Vec<_>>());
    }
    served.join().unwrap();
}

#[test]
fn requests_that_a_server_would_refuse_are_not_sent() {
    let (mut pipeline, served) = to_server(0, |mut server| server.next().offset);
    let last = LENGTH / BLOCK;
    assert_eq!(pipeline.push(0, ask(command::READ, last)), Err(Errno::Range));
    let long = Request { length: 2 * BLOCK, ..ask(command::READ, 0) };
    assert_eq!(pipeline.push(0, long), Err(Errno::Range));
    // A server without flushes has nothing to flush.
    pipeline.push(3, ask(command::FLUSH, 0)).unwrap();
    assert_eq!(all(&mut pipeline), [(3, None)]);
    pipeline.push(4, ask(command::READ, last - 1)).unwrap();
    assert_eq!(pipeline.wait(1), Err(Errno::NoDevice), "it hung up");
    assert_eq!(served.join().unwrap(), (last - 1) * BLOCK);
}

#[test]
fn an_answer_to_nothing_ends_the_connection() {
    for change in [1, 8] {
        let (mut pipeline, served) = to_server(0, move |mut server| {
            let request = server.next();
            server.answer(Request { cookie: request.cookie + change, ..request }, 0);
            // Whatever comes: it is no second request.
            server.0.read_to_end(&mut Vec::new()).unwrap()
        });
        pipeline.push(1, ask(command::READ, 0)).unwrap();
        assert_eq!(pipeline.wait(1), Err(Errno::NoDevice));
        drop(pipeline);
        assert_eq!(served.join().unwrap(), 0, "no goodbye on a connection that is out of step");
    }
}

#[test]
fn a_write_is_sent_when_reads_are_answered() {
    let (mut pipeline, served) = to_server(0, |mut server| {
        let reads = [server.next(), server.next()];
        server.0.set_nonblocking(true).unwrap();
        let early = server.0.read(&mut [0]).is_ok();
        server.0.set_nonblocking(false).unwrap();
        reads.into_iter().for_each(|read| server.answer(read, 0));
        let write = server.next();
        server.answer(write, 0);
        (early, write.command)
    });
    pipeline.push(1, ask(command::READ, 1)).unwrap();
    pipeline.push(2, ask(command::READ, 2)).unwrap();
    assert!(!pipeline.is_held_back());
    pipeline.push(3, ask(command::WRITE, 3)).unwrap();
    assert!(pipeline.is_held_back());
    assert_eq!(all(&mut pipeline), [(1, None), (2, None), (3, None)]);
    assert_eq!(served.join().unwrap(), (false, command::WRITE));
}

#[test]
fn a_write_reaches_the_medium_as_the_server_has_it() {
    for (flags, commands) in [
        (transmission::SEND_FUA, vec![(command::WRITE, true)]),
        (transmission::SEND_FLUSH, vec![(command::WRITE, false), (command::FLUSH, false)]),
        (0, vec![(command::WRITE, false)]),
    ] {
        let count = commands.len();
        let (mut pipeline, served) = to_server(flags, move |mut server| {
            let mut asked = || {
                let request = server.next();
                server.answer(request, 0);
                (request.command, request.flags & flag::FUA != 0)
            };
            (0..count).map(|_| asked()).collect::<Vec<_>>()
        });
        pipeline.push(1, Request { flags: flag::FUA, ..ask(command::WRITE, 0) }).unwrap();
        assert_eq!(all(&mut pipeline), [(1, None)]);
        assert_eq!(served.join().unwrap(), commands);
    }
}

#[test]
fn an_answer_of_which_a_part_has_come_keeps_no_other_back() {
    let (taken, is_taken) = std::sync::mpsc::channel();
    let (mut pipeline, served) = to_server(0, move |mut server| {
        let (one, two) = (server.next(), server.next());
        server.answer(one, 0);
        let mut bytes = [SIMPLE_REPLY_MAGIC, 0].map(u32::to_be_bytes).concat();
        bytes.extend(two.cookie.to_be_bytes());
        bytes.extend(vec![7; usize::try_from(BLOCK).unwrap()]);
        server.0.write_all(&bytes[..100]).unwrap();
        // The first is taken while the second waits for its rest.
        let first = is_taken.recv_timeout(std::time::Duration::from_secs(20));
        server.0.write_all(&bytes[100..]).unwrap();
        first
    });
    for block in 0..2 {
        pipeline.push(block, ask(command::READ, block)).unwrap();
    }
    let mut found = Vec::new();
    pipeline.wait(1).unwrap();
    pipeline.take(|tag, _| found.push(tag));
    assert_eq!(found, [0]);
    taken.send(()).unwrap();
    assert_eq!(all(&mut pipeline), [(1, None)]);
    served.join().unwrap().expect("taken before the rest was sent");
}

#[test]
fn a_wait_for_none_takes_what_has_arrived() {
    let (mut pipeline, served) = to_server(0, |mut server| {
        for _ in 0..2 {
            let asked = server.next();
            server.answer(asked, 0);
        }
        // Held open until the client hangs up.
        server.0.read(&mut [0; 64])
    });
    for block in 0..2 {
        pipeline.push(block, ask(command::READ, block)).unwrap();
        let mut found = Vec::new();
        let begun = std::time::Instant::now();
        while found.is_empty() && begun.elapsed().as_secs() < 20 {
            pipeline.wait(0).unwrap();
            pipeline.take(|tag, error| found.push((tag, error)));
            thread::yield_now();
        }
        assert_eq!(found, [(block, None)]);
    }
    drop(pipeline);
    served.join().unwrap().unwrap();
}

#[test]
fn an_export_of_another_length_is_another_disk() {
    let scratch = Scratch::new();
    let socket = scratch.0.join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    let served = thread::spawn(move || Server::greet(listener.accept().unwrap().0, 0));
    let uri = format!("nbd+unix:///?socket={}", socket.display());
    let refused = Pipeline::<u64>::open(&uri, true, 8, BLOCK, LENGTH / 2, || false).err();
    let said = refused.expect("another disk").to_string();
    assert!(
        said.contains("it has 1048576 bytes now, and had 524288: it is another disk"),
        "{said}"
    );
    served.join().unwrap();
}

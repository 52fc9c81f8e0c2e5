//! The client, with servers that restart, lie, or take their time.

use super::fake::{Fake, LENGTH, Served};
use super::{LONG, MIB, PATIENT, SHORT, Server};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::client::Remote;
use trueline_host::nbd::client::patience::Patience;
use trueline_host::nbd::wire::{STRUCTURED_REPLY_MAGIC, chunk, command, error};

const PATIENCE: Patience = Patience { handshake: LONG, request: LONG };

/// A client of `fake` that has connected once.
fn open(fake: &Fake, patience: Patience) -> (Remote, Served) {
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| Remote::open_within(&fake.uri(), false, patience).unwrap());
        let served = fake.accept();
        (opened.join().unwrap(), served)
    })
}

/// What `ask` comes to while `answer` is done.
fn while_served<T: Send>(ask: impl FnOnce() -> T + Send, answer: impl FnOnce()) -> T {
    std::thread::scope(|scope| {
        let asked = scope.spawn(ask);
        answer();
        asked.join().unwrap()
    })
}

#[test]
fn bytes_come_back() {
    let server = Server::of(Arc::new(Memory::new(4 * MIB).unwrap()), PATIENT);
    let remote =
        Remote::open(&format!("nbd+unix:///?socket={}", server.path().display()), false).unwrap();
    let bytes: Vec<u8> = (0..3 << 20)
        .map(|n: u32| n.to_le_bytes().iter().fold(0, |sum: u8, &byte| sum.wrapping_mul(31) ^ byte))
        .collect();
    remote.write_at(&bytes, 5000).unwrap();
    let mut back = vec![0; bytes.len()];
    remote.read_at(&mut back, 5000).unwrap();
    assert!(bytes == back);
    assert_eq!(
        (remote.write_through(&bytes[..10], 0), remote.flush(), remote.flush()),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(remote.read_at(&mut back, 4 * MIB - 1), Err(Errno::Range));
}

/// The server has restarted, and of an older connection on which something was written that is not
/// known yet.
#[test]
fn a_restarted_server_does_not_flush_what_the_one_before_had() {
    let fake = Fake::new(false);
    let (remote, mut old) = open(&fake, PATIENCE);
    assert_eq!(
        while_served(|| remote.write_at(&[1; 512], 0), || old.expect(command::WRITE)),
        Ok(())
    );
    std::thread::scope(|scope| {
        let reading = scope.spawn(|| remote.read_at(&mut [0; 512], 0));
        assert_eq!(old.request().command, command::READ);
        let flushing = scope.spawn(|| remote.flush());
        assert!(
            fake.is_left_alone(SHORT),
            "it was flushed on another connection, of which nothing is known"
        );
        drop(old);
        assert_eq!(reading.join().unwrap(), Err(Errno::NoDevice));
        assert_eq!(flushing.join().unwrap(), Err(Errno::Io));
    });
    // It is told once, and then there is a server again.
    assert_eq!(while_served(|| remote.flush(), || fake.accept().expect(command::FLUSH)), Ok(()));
}

#[test]
fn a_connection_that_breaks_loses_what_was_not_flushed_and_nothing_else() {
    let fake = Fake::new(false);
    let (remote, mut served) = open(&fake, PATIENCE);
    // Nothing was written, or it was flushed, or it was written through: nothing is lost.
    for round in 0..3 {
        match round {
            0 => {}
            1 => {
                assert_eq!(
                    while_served(
                        || remote.write_at(&[1; 512], 0),
                        || served.expect(command::WRITE)
                    ),
                    Ok(())
                );
                assert_eq!(
                    while_served(|| remote.flush(), || served.expect(command::FLUSH)),
                    Ok(())
                );
            }
            _ => assert_eq!(
                while_served(
                    || remote.write_through(&[1; 512], 0),
                    || served.expect(command::WRITE)
                ),
                Ok(())
            ),
        }
        drop(served);
        assert_eq!(remote.read_at(&mut [0; 512], 0), Err(Errno::NoDevice));
        served = std::thread::scope(|scope| {
            let flushed = scope.spawn(|| remote.flush());
            let mut served = fake.accept();
            served.expect(command::FLUSH);
            assert_eq!(flushed.join().unwrap(), Ok(()), "{round}");
            served
        });
    }
}

#[test]
fn a_client_says_goodbye() {
    let fake = Fake::new(false);
    let (remote, mut served) = open(&fake, PATIENCE);
    drop(remote);
    assert_eq!(served.request().command, command::DISC);
}

#[test]
fn every_connection_with_something_written_is_flushed() {
    let fake = Fake::new(false);
    let (remote, mut one) = open(&fake, PATIENCE);
    let mut other = std::thread::scope(|scope| {
        let first = scope.spawn(|| remote.write_at(&[1; 512], 0));
        let asked = one.request();
        let second = scope.spawn(|| remote.write_at(&[2; 512], 512));
        let mut other = fake.accept();
        other.expect(command::WRITE);
        one.done(&asked, 0);
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (Ok(()), Ok(())));
        other
    });
    // Both are asked before either answers; one has lost something, as it says.
    let flushed = while_served(
        || remote.flush(),
        || {
            let asked = [one.request(), other.request()];
            assert_eq!(asked.map(|request| request.command), [command::FLUSH; 2]);
            other.done(&asked[1], 0);
            one.done(&asked[0], error::ENOSPC);
        },
    );
    assert_eq!(flushed, Err(Errno::NoSpace));
    assert_eq!(while_served(|| remote.flush(), || one.expect(command::FLUSH)), Ok(()));
}

/// Kind, first byte and bytes.
type Chunk = (u16, u64, u32);

/// Chunks that tell of a byte twice may leave out another, which would be whatever was in memory.
#[test]
fn bytes_that_come_twice_or_not_at_all_are_no_answer() {
    // Chunks of a read of 1024 bytes, and whether they are an answer.
    let (data, hole) = (chunk::OFFSET_DATA, chunk::OFFSET_HOLE);
    let cases: [(&[Chunk], bool); 9] = [
        (&[(data, 0, 1024)], true),
        (&[(hole, 512, 512), (data, 0, 512)], true),
        (&[(data, 512, 256), (hole, 0, 512), (data, 768, 256)], true),
        (&[(data, 0, 512), (data, 0, 512)], false),
        (&[(data, 0, 512), (hole, 256, 512)], false),
        (&[(hole, 0, 1024), (data, 512, 1)], false),
        (&[(data, 0, 1023)], false),
        (&[(data, 0, 1024), (data, 1024, 1)], false),
        (&[(data, 0, 1024), (hole, 100, 0)], false),
    ];
    for (chunks, is_answer) in cases {
        let fake = Fake::new(true);
        let (remote, mut served) = open(&fake, PATIENCE);
        let mut buffer = [9; 1024];
        let read = while_served(
            || remote.read_at(&mut buffer, 4096),
            || {
                let request = served.request();
                chunks
                    .iter()
                    .for_each(|&(kind, from, length)| served.content(&request, kind, from, length));
                served.chunk(&request, chunk::DONE, chunk::NONE, &[]);
            },
        );
        assert_eq!(read.is_ok(), is_answer, "{chunks:?}");
        assert!(!is_answer || !buffer.contains(&9), "{chunks:?}");
    }
}

/// Sends a byte, and another, until the client has had enough.
fn trickle(mut send: impl FnMut() -> std::io::Result<()>) {
    let begun = Instant::now();
    while send().is_ok() {
        assert!(begun.elapsed() < LONG, "it is waited for for ever");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_server_that_trickles_is_not_waited_for() {
    let hasty = Patience { handshake: LONG, request: SHORT };
    let fake = Fake::new(false);
    let (remote, mut served) = open(&fake, hasty);
    let mut buffer = vec![0; 1 << 20];
    let read = while_served(
        || remote.read_at(&mut buffer, 0),
        || {
            let request = served.request();
            served.done(&request, 0);
            trickle(|| served.0.write_all(&[7]));
        },
    );
    assert_eq!(read, Err(Errno::NoDevice));
    let hasty = Patience { handshake: SHORT, request: LONG };
    let opened = while_served(
        || Remote::open_within(&fake.uri(), false, hasty).map(drop),
        || {
            let mut stream = fake.accept_silently();
            // It may have had enough already, where this program is slow.
            let _ = stream.write_all(b"NBDMAGICIHAVEOPT\x00\x03");
            // An answer that is longer than a client could wait for.
            let _ = stream.write_all(
                b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x0b\x00\x00\x00\x01\x00\x00\xff\xff",
            );
            trickle(|| stream.write_all(&[0]));
        },
    );
    assert!(opened.unwrap_err().to_string().contains("the server takes too long to answer"));
}

#[test]
fn a_server_that_takes_nothing_is_not_waited_for() {
    let fake = Fake::new(false);
    let (remote, served) = open(&fake, Patience { handshake: LONG, request: SHORT });
    // Far more than any socket holds.
    let bytes = vec![1; 32 << 20];
    assert!(bytes.len() as u64 <= LENGTH);
    assert_eq!(remote.write_at(&bytes, 0), Err(Errno::NoDevice));
    drop(served);
}

/// Whatever byte of an answer is another: it is the answer all the same, or none.
#[test]
fn an_answer_with_a_wrong_byte_is_whole_or_none() {
    for at in 0..28 {
        for bit in [0, 3, 7] {
            let fake = Fake::new(true);
            let (remote, mut served) = open(&fake, PATIENCE);
            let mut buffer = [9; 1024];
            let read = while_served(
                || remote.read_at(&mut buffer, 4096),
                || {
                    let request = served.request();
                    let mut head = Vec::new();
                    head.extend(STRUCTURED_REPLY_MAGIC.to_be_bytes());
                    head.extend([chunk::DONE, chunk::OFFSET_DATA].map(u16::to_be_bytes).concat());
                    head.extend(request.cookie.to_be_bytes());
                    head.extend(1032_u32.to_be_bytes());
                    head.extend(request.offset.to_be_bytes());
                    head[at] ^= 1 << bit;
                    let _ = served.0.write_all(&[&head[..], &[7; 1024]].concat());
                    // Nothing more comes.
                    drop(served);
                },
            );
            assert!(read.is_err() || buffer == [7; 1024], "bit {bit} of byte {at}");
        }
    }
}

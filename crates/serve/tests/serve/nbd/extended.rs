//! Extended headers, byte by byte: what a server sends, and what it makes of what it is sent.

use super::client::{Client, Reply};
use super::{MIB, PATIENT, Server};
use std::io::{Read, Write};
use std::sync::Arc;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Run, Store};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::{self, command, error, flag};

pub(super) const TIB: u64 = 1 << 40;

/// 5 TiB of which only what lies behind the third is data, and which keeps nothing.
pub(super) struct Vast;

impl Store for Vast {
    fn length(&self) -> u64 {
        5 * TIB
    }

    fn read_at(&self, buffer: &mut [u8], _: u64) -> Result<(), Errno> {
        buffer.fill(7);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn try_zero(&self, _: u64, _: u64, keep: bool) -> Result<(), Errno> {
        if keep { Err(Errno::NoSpace) } else { Ok(()) }
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let (content, end) =
            if offset < 3 * TIB { (Content::Hole, 3 * TIB) } else { (Content::Data, 5 * TIB) };
        Ok(Run { content, length: length.min(end - offset) })
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

fn vast() -> Server {
    Server::of(Arc::new(Vast), PATIENT)
}

/// Sends a request as it is, and takes so many bytes of the answer.
fn exchange(server: &Server, request: &[u8], length: usize) -> Vec<u8> {
    let mut client = Client::extended(server.connect());
    client.stream.write_all(request).unwrap();
    let mut answer = vec![0; length];
    client.stream.read_exact(&mut answer).unwrap();
    answer
}

#[test]
fn what_is_sent_is_the_protocols() {
    let server = vast();
    // A read of three bytes at the fourth TiB: cookie and offset come back, and the offset once
    // more before the bytes.
    let asked = b"\x21\xe4\x1c\x71\0\0\0\0COOKIE!!\0\0\x04\0\0\0\0\x05\0\0\0\0\0\0\0\x03";
    let told = b"\x6e\x8a\x27\x8c\0\x01\0\x01COOKIE!!\0\0\x04\0\0\0\0\x05\0\0\0\0\0\0\0\x0b\0\0\x04\0\0\0\0\x05\x07\x07\x07";
    assert_eq!(exchange(&server, asked, told.len()), told);
    // What has nothing to tell is a chunk as well: a discard of four TiB.
    let asked = b"\x21\xe4\x1c\x71\0\0\0\x04COOKIE!!\0\0\0\x80\0\0\0\0\0\0\x04\0\0\0\0\0";
    let told = b"\x6e\x8a\x27\x8c\0\x01\0\0COOKIE!!\0\0\0\x80\0\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(exchange(&server, asked, told.len()), told);
    // And an error: behind the end.
    let asked =
        b"\x21\xe4\x1c\x71\0\0\0\x06COOKIE!!\0\0\x01\0\0\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff";
    let told =
        b"\x6e\x8a\x27\x8c\0\x01\x80\x01COOKIE!!\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\x06\0\0\0\x1c\0\0";
    assert_eq!(exchange(&server, asked, told.len()), told);
    // The status of everything: context 1, two descriptors; then context 2, three.
    let asked = b"\x21\xe4\x1c\x71\0\0\0\x07COOKIE!!\0\0\0\0\0\0\0\0\0\0\x05\0\0\0\0\0";
    let head = |last: u8, length: u8| {
        [
            &[0x6e, 0x8a, 0x27, 0x8c, 0, last, 0, 6][..],
            b"COOKIE!!",
            &[0; 8],
            &[0, 0, 0, 0, 0, 0, 0, length],
        ]
        .concat()
    };
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let allocation = words(&[1 << 32 | 2, 3 * TIB, 3, 2 * TIB, 0]);
    let grain = words(&[2 << 32 | 3, 512, 0, 5 * TIB - 4096, 4096, 3584, 0]);
    let told = [head(0, 40), allocation, head(1, 56), grain].concat();
    assert_eq!(exchange(&server, asked, told.len()), told);
}

/// A reply whose data is an error, or nothing.
fn answer(client: &mut Client, cookie: u64, offset: u64) -> u32 {
    let Reply { cookie: of, kind, last, offset: at, data } = client.reply();
    assert_eq!((of, at, last), (cookie, Some(offset), true));
    match kind {
        wire::chunk::NONE if data.is_empty() => 0,
        wire::chunk::ERROR => u32::from_be_bytes(*data.first_chunk().unwrap()),
        kind => panic!("a chunk of kind {kind}"),
    }
}

fn ask(
    client: &mut Client,
    command: u16,
    flags: u16,
    offset: u64,
    length: u64,
    payload: &[u8],
) -> u32 {
    let cookie = client.ask_exactly(command, flags, offset, length, payload);
    answer(client, cookie, offset)
}

#[test]
fn everything_can_be_asked_at_once() {
    let server = vast();
    let mut client = Client::extended(server.connect());
    for command in [command::TRIM, command::WRITE_ZEROES, command::CACHE] {
        assert_eq!(ask(&mut client, command, 0, 0, 5 * TIB, &[]), 0);
    }
    assert_eq!(
        ask(&mut client, command::WRITE_ZEROES, flag::NO_HOLE, 0, 5 * TIB, &[]),
        error::ENOSPC
    );
    for (offset, length) in
        [(0, 5 * TIB + 1), (1, 5 * TIB), (0, u64::MAX), (u64::MAX, u64::MAX), (1 << 63, 1 << 63)]
    {
        assert_eq!(ask(&mut client, command::WRITE_ZEROES, 0, offset, length, &[]), error::ENOSPC);
        for command in [command::READ, command::TRIM, command::CACHE, command::BLOCK_STATUS] {
            assert_eq!(ask(&mut client, command, 0, offset, length, &[]), error::EINVAL);
        }
    }
    // Bytes are bounded as they are without extended headers.
    assert_eq!(ask(&mut client, command::READ, 0, 0, 5 * TIB, &[]), error::EINVAL);
    assert_eq!(ask(&mut client, command::READ, flag::DF, 0, (32 << 20) + 1, &[]), error::EOVERFLOW);
    assert_eq!(client.read(TIB, 32 << 20).len(), 32 << 20);
}

#[test]
fn bytes_come_back_through_extended_headers() {
    let server = Server::new(PATIENT);
    let mut client = Client::extended(server.connect());
    assert_eq!(client.error(command::WRITE, flag::FUA, 1000, 300, &[7; 300]), 0);
    assert_eq!(client.error(command::WRITE, 0, 0, 0, &[]), 0);
    assert_eq!(client.error(command::WRITE, 0, 500_000, 300_000, &[9; 300_000]), 0);
    assert_eq!(client.error(command::FLUSH, 0, 0, 0, &[]), 0);
    assert_eq!(client.read(999, 302), [&[0][..], &[7; 300], &[0]].concat());
    assert_eq!(client.read(499_999, 300_002), [&[0][..], &[9; 300_000], &[0]].concat());
    // A read of nothing has no data.
    assert_eq!(ask(&mut client, command::READ, 0, MIB, 0, &[]), 0);
    // Another client without them sees the same.
    assert_eq!(Client::new(server.connect()).read(1000, 300), [7; 300]);
}

/// What follows a request that is refused is passed over, however long it is, and what follows that
/// is answered.
#[test]
fn an_unwanted_payload_is_passed_over() {
    let server = Server::new(PATIENT);
    let mut client = Client::extended(server.connect());
    let carries = flag::PAYLOAD_LEN;
    for length in [1, 12, 40_000, 1 << 20] {
        let payload = vec![0x21; usize::try_from(length).unwrap()];
        for command in [
            command::READ,
            command::FLUSH,
            command::TRIM,
            command::CACHE,
            command::WRITE_ZEROES,
            99,
        ] {
            assert_eq!(
                ask(&mut client, command, carries, 0, length, &payload),
                error::EINVAL,
                "{command}"
            );
        }
        assert_eq!(
            ask(&mut client, command::WRITE, carries | 1 << 15, 0, length, &payload),
            error::EINVAL
        );
        assert_eq!(ask(&mut client, command::WRITE, carries, MIB, length, &payload), error::ENOSPC);
        assert_eq!(
            ask(&mut client, command::BLOCK_STATUS, carries, 0, length, &payload),
            error::EINVAL
        );
    }
    assert_eq!(client.read(0, 512), [0; 512]);
}

/// A write must announce it ("Command flags"), and QEMU's client does not: it is there all the
/// same.
#[test]
fn a_write_need_not_announce_its_payload() {
    let server = Server::new(PATIENT);
    let mut client = Client::extended(server.connect());
    for length in [1, 512, 40_000, 1 << 20] {
        let payload = vec![5; usize::try_from(length).unwrap()];
        assert_eq!(ask(&mut client, command::WRITE, 0, 0, length, &payload), 0);
        assert_eq!(client.read(0, length), payload);
        assert_eq!(ask(&mut client, command::WRITE, 0, 1, MIB, &vec![6; 1 << 20]), error::ENOSPC);
    }
    assert_eq!(ask(&mut client, command::WRITE, 0, 0, u64::MAX, &[]), error::EINVAL);
    assert!(client.is_hung_up());
}

#[test]
fn a_payload_that_is_too_long_ends_it() {
    let server = Server::new(PATIENT);
    for length in [(32 << 20) + 1, 1 << 32, 1 << 63, u64::MAX] {
        for command in [command::WRITE, command::READ, command::BLOCK_STATUS, 99] {
            let mut client = Client::extended(server.connect());
            assert_eq!(ask(&mut client, command, flag::PAYLOAD_LEN, 0, length, &[]), error::EINVAL);
            assert!(client.is_hung_up());
        }
    }
}

#[test]
fn there_is_no_way_back_to_compact_requests() {
    let server = Server::new(PATIENT);
    let mut client = Client::extended(server.connect());
    let request = Request { flags: 0, command: command::READ, cookie: 1, offset: 0, length: 512 };
    client.stream.write_all(&[&request.compact().unwrap()[..], &[0; 4]].concat()).unwrap();
    assert!(client.is_hung_up());
    let mut client = Client::new(server.connect());
    client.stream.write_all(&request.extended()).unwrap();
    assert!(client.is_hung_up());
}

/// A payload of `BLOCK_STATUS`.
fn named(length: u64, contexts: &[u32]) -> Vec<u8> {
    [
        &length.to_be_bytes()[..],
        &contexts.iter().flat_map(|context| context.to_be_bytes()).collect::<Vec<_>>(),
    ]
    .concat()
}

#[test]
fn a_status_is_told_of_the_contexts_that_are_named() {
    let server = vast();
    let mut client = Client::extended(server.connect());
    let mut status = |flags, offset, payload: &[u8]| {
        let cookie = client.ask_exactly(
            command::BLOCK_STATUS,
            flags | flag::PAYLOAD_LEN,
            offset,
            payload.len() as u64,
            payload,
        );
        let mut chunks = vec![client.reply()];
        while !chunks[chunks.len() - 1].last {
            chunks.push(client.reply());
        }
        assert!(chunks.iter().all(|chunk| (chunk.cookie, chunk.offset) == (cookie, Some(offset))));
        chunks.into_iter().map(|chunk| (chunk.kind, chunk.data)).collect::<Vec<_>>()
    };
    let words =
        |words: &[u64]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let (ext, whole) = (wire::chunk::BLOCK_STATUS_EXT, 5 * TIB);
    let grain = (ext, words(&[2 << 32 | 2, 5 * TIB - 4096, 4096, 3584, 0]));
    let allocation = (ext, words(&[1 << 32 | 2, 3 * TIB - 512, 3, 2 * TIB, 0]));
    assert_eq!(status(0, 512, &named(whole - 512, &[2])), std::slice::from_ref(&grain));
    assert_eq!(status(0, 512, &named(whole - 512, &[2, 1])), [grain, allocation]);
    assert_eq!(
        status(flag::REQ_ONE, 0, &named(whole, &[1])),
        [(ext, words(&[1 << 32 | 1, 3 * TIB, 3]))]
    );
    let refused = [(wire::chunk::ERROR, vec![0, 0, 0, 22, 0, 0])];
    for (length, contexts) in [
        (whole, &[][..]),
        (whole, &[3]),
        (whole, &[1, 1]),
        (whole, &[1, 2, 1]),
        (0, &[1]),
        (whole + 1, &[1]),
    ] {
        assert_eq!(status(0, 0, &named(length, contexts)), refused, "{length} {contexts:?}");
    }
    assert_eq!(status(0, 0, &named(whole, &[1, 2])[..14]), refused);
    assert_eq!(status(0, 1 << 63, &named(1 << 63, &[1])), refused);
}

/// However finely a disk is divided, and however much of it is asked about.
#[test]
fn an_answer_has_a_bounded_number_of_descriptors() {
    struct Fine(Memory);

    impl Store for Fine {
        fn length(&self) -> u64 {
            self.0.length()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
            self.0.read_at(buffer, offset)
        }

        fn extent(&self, offset: u64, _: u64) -> Result<Run, Errno> {
            Ok(Run {
                content: if offset.is_multiple_of(2) { Content::Data } else { Content::Hole },
                length: 1,
            })
        }

        fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
            Err(Errno::ReadOnly)
        }

        fn flush(&self) -> Result<(), Errno> {
            Ok(())
        }

        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Ok(())
        }
    }

    let server = Server::of(Arc::new(Fine(Memory::new(MIB).unwrap())), PATIENT);
    let mut client = Client::extended(server.connect());
    let payload = named(MIB, &[1]);
    client.ask_exactly(command::BLOCK_STATUS, flag::PAYLOAD_LEN, 0, payload.len() as u64, &payload);
    assert_eq!(client.reply().data.len(), 8 + 16 * 4096);
}

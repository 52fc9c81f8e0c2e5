//! What is answered to each request.

use super::client::{Client, Reply};
use super::{MIB, PATIENT, Server};
use std::sync::{Arc, Mutex};
use trueline_geom::base::store::{Content, Run, Store};
use trueline_host::disk::file::{self, Access};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::wire::{command, error, flag};

fn file_server(length: u64) -> Server {
    let scratch = crate::Scratch::new();
    let path = scratch.put("disk", []);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
    Server::of(Arc::new(file::open_for(&path, Access::Write).unwrap().store), PATIENT)
}

#[test]
fn bytes_come_back() {
    for server in [Server::new(PATIENT), file_server(MIB)] {
        let (mut one, mut other) = (Client::new(server.connect()), Client::new(server.connect()));
        assert_eq!(one.error(command::WRITE, 0, 1000, 300, &[7; 300]), 0);
        assert_eq!(one.error(command::WRITE, flag::FUA, MIB - 5, 5, &[9; 5]), 0);
        assert_eq!(other.read(999, 302), [&[0][..], &[7; 300], &[0]].concat());
        assert_eq!(other.read(MIB - 6, 6), [0, 9, 9, 9, 9, 9]);
        assert_eq!(one.error(command::WRITE_ZEROES, 0, 1001, 298, &[]), 0);
        assert_eq!(other.read(1000, 300), [&[7][..], &[0; 298], &[7]].concat());
        for (number, length) in [(command::TRIM, 5), (command::CACHE, 512), (command::FLUSH, 0)] {
            assert_eq!(one.error(number, 0, 0, length, &[]), 0);
        }
        assert_eq!(one.error(command::WRITE_ZEROES, flag::NO_HOLE | flag::FUA, 0, 4096, &[]), 0);
    }
}

/// A chunk of data has at least a byte, so a read of none has none.
#[test]
fn nothing_is_asked_and_answered() {
    let server = Server::new(PATIENT);
    let mut client = Client::new(server.connect());
    let cookie = client.ask(command::READ, 0, MIB, 0, &[]);
    assert_eq!(client.reply(), Reply { cookie, kind: 0, last: true, offset: None, data: vec![] });
    for number in [command::WRITE, command::TRIM, command::WRITE_ZEROES, command::CACHE] {
        assert_eq!(client.error(number, 0, MIB, 0, &[]), 0);
    }
    assert_eq!(client.error(command::BLOCK_STATUS, 0, 0, 0, &[]), error::EINVAL);
}

#[test]
fn what_is_wrong_is_told_and_the_next_is_answered() {
    let server = Server::new(PATIENT);
    let mut client = Client::new(server.connect());
    assert_eq!(client.error(command::WRITE, 0, MIB - 1, 2, &[1; 2]), error::ENOSPC);
    assert_eq!(client.error(command::READ, 0, MIB - 1, 2, &[]), error::EINVAL);
    assert_eq!(client.error(99, 0, 0, 512, &[]), error::EINVAL);
    assert_eq!(client.error(command::READ, 1 << 15, 0, 512, &[]), error::EINVAL);
    assert_eq!(client.error(command::WRITE, 1 << 15, 0, 512, &[1; 512]), error::EINVAL);
    assert_eq!(client.read(0, 512), [0; 512]);
    // Longer than is taken: what follows it cannot be found.
    assert_eq!(client.error(command::WRITE, 0, 0, (32 << 20) + 1, &[]), error::EINVAL);
    assert!(client.is_hung_up());
}

#[test]
fn what_ends_a_connection() {
    let server = Server::new(PATIENT);
    let mut client = Client::new(server.connect());
    client.ask(command::DISC, 0, 0, 0, &[]);
    assert!(client.is_hung_up());
    let mut client = Client::new(server.connect());
    std::io::Write::write_all(&mut client.stream, &[b'X'; 28]).unwrap();
    assert!(client.is_hung_up());
}

fn status(client: &mut Client, flags: u16, offset: u64, length: u64) -> [Vec<u8>; 2] {
    let cookie = client.ask(command::BLOCK_STATUS, flags, offset, length, &[]);
    let (first, second) = (client.reply(), client.reply());
    assert_eq!((first.cookie, first.kind, first.last), (cookie, 5, false));
    assert_eq!((second.cookie, second.kind, second.last), (cookie, 5, true));
    [first.data, second.data]
}

#[test]
fn status_is_told_for_each_context() {
    let server = file_server(MIB);
    let mut client = Client::new(server.connect());
    assert_eq!(client.error(command::WRITE, 0, 65536, 65536, &[7; 65536]), 0);
    let words =
        |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
    let [allocation, grain] = status(&mut client, 0, 0, 1 << 20);
    assert_eq!(allocation, words(&[1, 65536, 3, 65536, 0, (1 << 20) - 131_072, 3]));
    assert_eq!(grain, words(&[2, 512, 0, (1 << 20) - 4096, 4096, 3584, 0]));
    let [allocation, grain] = status(&mut client, flag::REQ_ONE, 512, 1 << 19);
    assert_eq!((allocation, grain), (words(&[1, 65024, 3]), words(&[2, 1 << 19, 4096])));
    // What a request cuts is whole all the same; what the export cuts is not.
    let [_, grain] = status(&mut client, 0, 513, 10);
    assert_eq!(grain, words(&[2, 10, 4096]));
    let [_, grain] = status(&mut client, 0, 511, 2);
    assert_eq!(grain, words(&[2, 1, 0, 1, 4096]));
    let [_, grain] = status(&mut client, 0, (1 << 20) - 512, 512);
    assert_eq!(grain, words(&[2, 512, 0]));
}

/// Memory that cannot be made zero but by writing and that knows of no two bytes together what they
/// are, and what is to be read ahead.
struct Slow(Memory, Mutex<Vec<(u64, u64)>>);

impl Store for Slow {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read_at(
        &self,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<(), trueline_geom::base::error::Errno> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), trueline_geom::base::error::Errno> {
        self.0.write_at(bytes, offset)
    }

    fn extent(&self, _: u64, _: u64) -> Result<Run, trueline_geom::base::error::Errno> {
        Ok(Run { content: Content::Data, length: 1 })
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.1.lock().unwrap().push((offset, length));
    }

    fn flush(&self) -> Result<(), trueline_geom::base::error::Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), trueline_geom::base::error::Errno> {
        Ok(())
    }
}

#[test]
fn what_will_be_read_is_read_ahead() {
    let store = Arc::new(Slow(Memory::new(MIB).unwrap(), Mutex::default()));
    let server = Server::of(store.clone(), PATIENT);
    let mut client = Client::new(server.connect());
    assert_eq!(client.error(command::CACHE, 0, 4096, 512, &[]), 0);
    assert_eq!(client.error(command::CACHE, 0, MIB, 512, &[]), error::EINVAL);
    assert_eq!(*store.1.lock().unwrap(), [(4096, 512)]);
}

/// However finely a disk is divided, a status is not asked for ever: it is told of a part of the
/// range.
#[test]
fn status_is_told_in_bounded_time() {
    let server = Server::of(Arc::new(Slow(Memory::new(MIB).unwrap(), Mutex::default())), PATIENT);
    let [allocation, _] = status(&mut Client::new(server.connect()), 0, 0, 1 << 20);
    assert_eq!(allocation, [1u32, 65536, 0].map(u32::to_be_bytes).concat());
}

#[test]
fn fast_zeros_are_fast_or_none() {
    let server = Server::of(Arc::new(Slow(Memory::new(MIB).unwrap(), Mutex::default())), PATIENT);
    let mut client = Client::new(server.connect());
    assert_eq!(client.error(command::WRITE, 0, 0, 512, &[7; 512]), 0);
    assert_eq!(client.error(command::WRITE_ZEROES, flag::FAST_ZERO, 0, 512, &[]), error::ENOTSUP);
    assert_eq!(client.read(0, 512), [7; 512]);
    assert_eq!(client.error(command::WRITE_ZEROES, 0, 0, 512, &[]), 0);
    assert_eq!(client.read(0, 512), [0; 512]);
}

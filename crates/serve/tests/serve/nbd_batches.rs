//! Requests in batches, whole and in pieces: the same answers however they arrive, wherever their
//! bytes are.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{self, Filter};
use trueline_geom::base::store::{Content, Store};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::stream::Stream;
use trueline_host::nbd::tls::Encryption;
use trueline_host::nbd::wire::{
    IHAVEOPT, SIMPLE_REPLY, SIMPLE_REPLY_MAGIC, command, error, option,
};
use trueline_serve::export::{BlockSizes, Export, Exports};
use trueline_serve::front::nbd::connection::{self, Service};
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::front::nbd::memory_budget::MemoryBudget;

/// A client whose bytes arrive in these pieces, and what it is sent.
struct Script {
    pieces: Mutex<VecDeque<Vec<u8>>>,
    sent: Mutex<Vec<u8>>,
}

impl Script {
    fn new(pieces: impl IntoIterator<Item = Vec<u8>>) -> Script {
        Script { pieces: Mutex::new(pieces.into_iter().collect()), sent: Mutex::default() }
    }
}

impl Stream for Script {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut pieces = self.pieces.lock().unwrap();
        let Some(mut piece) = pieces.pop_front() else { return Ok(0) };
        let count = piece.len().min(into.len());
        into[..count].copy_from_slice(&piece[..count]);
        if count < piece.len() {
            pieces.push_front(piece.split_off(count));
        }
        Ok(count)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.sent.lock().unwrap().extend(bytes);
        Ok(())
    }

    fn set_patience(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    fn hang_up(&self) {}
}

/// A client at the other end of a socket.
struct Socket(UnixStream);

impl Stream for Socket {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(into)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    fn set_patience(&self, patience: Option<Duration>) -> io::Result<()> {
        self.0.set_read_timeout(patience)
    }

    fn hang_up(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// Serves until the client ends.
fn serve(stream: &dyn Stream, exports: &Exports) -> io::Result<()> {
    let stop = AtomicBool::new(false);
    let room = &MemoryBudget::new(1 << 30);
    let service = Service {
        exports,
        encryption: &Encryption::Off,
        limits: Limits::default(),
        room,
        stop: &stop,
    };
    connection::serve(stream, &service, &mut |_| {})
}

/// A disk of which everything must be waited for: its requests are done by other threads.
struct Slow(Memory);

impl Filter for Slow {
    fn inner(&self) -> &dyn Store {
        &self.0
    }

    fn pass(
        &self,
        _: &filter::Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        run()
    }
}

const LENGTH: u64 = 1 << 20;

fn exports(store: Arc<dyn Store>) -> Exports {
    let sizes = BlockSizes { least: 1, preferred: 4096, most: 32 << 20 };
    Exports(vec![Export {
        name: String::new(),
        description: String::new(),
        store,
        read_only: false,
        rotational: false,
        sizes,
        boundaries: Vec::new(),
        errors: Arc::default(),
        overlay: None,
        refusals: Vec::new(),
    }])
}

fn stores() -> [(&'static str, Arc<dyn Store>); 2] {
    [
        ("memory", Arc::new(Memory::new(LENGTH).unwrap())),
        ("slow", Arc::new(Slow(Memory::new(LENGTH).unwrap()))),
    ]
}

/// What a client says first: no zeros in the answer, and the default export.
fn hello() -> Vec<u8> {
    [
        &3_u32.to_be_bytes()[..],
        &IHAVEOPT.to_be_bytes(),
        &option::EXPORT_NAME.to_be_bytes(),
        &0_u32.to_be_bytes(),
    ]
    .concat()
}

/// What the server says until the first reply: greeting, length and flags.
const HELLO: usize = 18 + 10;

fn request(command: u16, cookie: u64, offset: u64, length: usize) -> Vec<u8> {
    Request { flags: 0, command, cookie, offset, length: length as u64 }.compact().unwrap().into()
}

fn write(cookie: u64, offset: u64, bytes: &[u8]) -> Vec<u8> {
    [request(command::WRITE, cookie, offset, bytes.len()), bytes.to_vec()].concat()
}

/// Bytes that are nowhere the same.
fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|i| u8::try_from((i * 31 + i / 256 * 7 + seed * 13 + 1) % 251).unwrap())
        .collect()
}

/// Takes simple replies apart: error and bytes by cookie. `reads`: how many bytes follow which.
fn answers(mut bytes: &[u8], reads: &HashMap<u64, usize>) -> HashMap<u64, (u32, Vec<u8>)> {
    let mut found = HashMap::new();
    while let Some((head, rest)) = bytes.split_at_checked(SIMPLE_REPLY) {
        let word = |at: usize| u32::from_be_bytes(head[at..at + 4].try_into().unwrap());
        assert_eq!(word(0), SIMPLE_REPLY_MAGIC);
        let (errno, cookie) = (word(4), u64::from_be_bytes(head[8..].try_into().unwrap()));
        let (data, rest) =
            rest.split_at(if errno == 0 { reads.get(&cookie).copied().unwrap_or(0) } else { 0 });
        assert_eq!(found.insert(cookie, (errno, data.to_vec())), None, "two answers to {cookie}");
        bytes = rest;
    }
    assert!(bytes.is_empty(), "a part of a reply");
    found
}

/// A client that sends everything it has at once, and what it must be answered. Nothing that is
/// read is written in the same batch.
fn small_batch() -> (Vec<u8>, HashMap<u64, usize>) {
    let mut all = hello();
    all.extend(write(1, 1000, &pattern(1, 300)));
    all.extend(request(command::READ, 2, 500_000, 100));
    all.extend(request(command::READ, 3, 600_000, 4096));
    all.extend(request(command::READ, 4, LENGTH - 10, 11));
    all.extend(write(5, LENGTH - 10, &[9; 11]));
    all.extend(request(99, 6, 0, 0));
    all.extend(request(command::FLUSH, 7, 0, 0));
    all.extend(write(8, 2000, &[]));
    all.extend(request(command::WRITE_ZEROES, 9, 100_000, 70_000));
    all.extend(request(command::TRIM, 10, 0, 10));
    all.extend(request(command::DISC, 0, 0, 0));
    (all, [(2, 100), (3, 4096), (4, 11)].into())
}

fn check_small(sent: &[u8], reads: &HashMap<u64, usize>, about: &str) {
    let found = answers(&sent[HELLO..], reads);
    let errors: Vec<u32> = (1..=10).map(|cookie| found[&cookie].0).collect();
    assert_eq!(
        errors,
        [0, 0, 0, error::EINVAL, error::ENOSPC, error::EINVAL, 0, 0, 0, 0],
        "{about}"
    );
    assert_eq!(
        (&found[&2].1[..], &found[&3].1[..]),
        (&pattern(2, 100)[..], &pattern(3, 4096)[..]),
        "{about}"
    );
}

fn prepared(store: &dyn Store) {
    store.write_at(&pattern(2, 100), 500_000).unwrap();
    store.write_at(&pattern(3, 4096), 600_000).unwrap();
    store.write_at(&pattern(4, 70_000), 100_000).unwrap();
}

#[test]
fn a_batch_split_at_any_byte_is_answered_the_same() {
    let (all, reads) = small_batch();
    for (name, store) in stores() {
        for split in 0..=all.len() {
            prepared(&*store);
            let (first, second) = all.split_at(split);
            let pieces =
                [first, second].into_iter().filter(|piece| !piece.is_empty()).map(<[u8]>::to_vec);
            let script = Script::new(pieces);
            serve(&script, &exports(store.clone())).unwrap();
            check_small(&script.sent.lock().unwrap(), &reads, &format!("{name}, split at {split}"));
        }
        let script = Script::new(all.iter().map(|&byte| vec![byte]));
        serve(&script, &exports(store.clone())).unwrap();
        check_small(&script.sent.lock().unwrap(), &reads, name);
        let mut zeros = vec![9; 70_002];
        store.read_at(&mut zeros, 99_999).unwrap();
        assert_eq!(zeros.iter().filter(|&&byte| byte != 0).count(), 0, "{name}");
    }
}

/// A disk's requests, seeded: writes that do not overlap, of every size up to two batches.
fn writes(seed: u64) -> Vec<(u64, Vec<u8>)> {
    let mut state = seed | 1;
    let mut random = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let (mut at, mut made) = (random(5000), Vec::new());
    loop {
        let most = [600, 5000, 40_000, 150_000][usize::try_from(random(4)).unwrap()];
        let length = random(most);
        if at + length > LENGTH {
            return made;
        }
        made.push((at, pattern(made.len(), usize::try_from(length).unwrap())));
        at += length + random(3) * 777;
    }
}

/// Everything that is written, read back: all in one go each, over a real socket, in pieces of
/// every size.
#[test]
fn what_is_written_in_a_batch_is_read_in_a_batch() {
    for seed in 1..40 {
        for (name, store) in stores() {
            let wanted = writes(seed * 7919);
            let exports = exports(store.clone());
            let (own, mut client) = pair();
            std::thread::scope(|scope| {
                scope.spawn(|| serve(&Socket(own), &exports).unwrap());
                client.write_all(&hello()).unwrap();
                client.read_exact(&mut [0; HELLO]).unwrap();
                let cookies = (0..).zip(&wanted);
                let sent: Vec<u8> = cookies
                    .clone()
                    .flat_map(|(cookie, (at, bytes))| write(cookie, *at, bytes))
                    .collect();
                let done = exchange(&mut client, &sent, wanted.len() * SIMPLE_REPLY, seed);
                assert!(answers(&done, &HashMap::new()).values().all(|(errno, _)| *errno == 0));
                let sent: Vec<u8> = cookies
                    .clone()
                    .flat_map(|(cookie, (at, bytes))| {
                        request(command::READ, cookie, *at, bytes.len())
                    })
                    .collect();
                let reads: HashMap<u64, usize> =
                    cookies.clone().map(|(cookie, (_, bytes))| (cookie, bytes.len())).collect();
                let length = wanted.len() * SIMPLE_REPLY + reads.values().sum::<usize>();
                let found = answers(&exchange(&mut client, &sent, length, seed), &reads);
                for (cookie, (at, bytes)) in cookies {
                    assert!(
                        found[&cookie] == (0, bytes.clone()),
                        "{name}, seed {seed}: {} bytes at {at}",
                        bytes.len()
                    );
                }
                client.write_all(&request(command::DISC, 0, 0, 0)).unwrap();
            });
        }
    }
}

/// Two ends, of which the client's does not wait for ever for a server that says nothing.
fn pair() -> (UnixStream, UnixStream) {
    let (own, client) = UnixStream::pair().unwrap();
    client.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
    client.set_write_timeout(Some(Duration::from_secs(600))).unwrap();
    (own, client)
}

/// Sends `bytes` in pieces that grow and shrink, and meanwhile receives `length` bytes.
fn exchange(client: &mut UnixStream, bytes: &[u8], length: usize, seed: u64) -> Vec<u8> {
    let mut sender = client.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut rest, mut size) = (bytes, usize::try_from(seed).unwrap());
            while !rest.is_empty() {
                let (piece, next) = rest.split_at(rest.len().min(size % 50_000 + 1));
                sender.write_all(piece).unwrap();
                (rest, size) = (next, size * 3 % 1_000_003 + 1);
            }
        });
        let mut all = vec![0; length];
        client.read_exact(&mut all).unwrap();
        all
    })
}

/// A write of which not all came is none.
#[test]
fn a_write_that_breaks_off_writes_nothing() {
    let store = Arc::new(Memory::new(LENGTH).unwrap());
    let exports = exports(store.clone());
    let (own, mut client) = pair();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| serve(&Socket(own), &exports));
        client.write_all(&hello()).unwrap();
        // Closing a socket with unread bytes takes back what was sent.
        client.read_exact(&mut [0; HELLO]).unwrap();
        client
            .write_all(&[request(command::WRITE, 1, 100_000, 500_000), vec![7; 300_000]].concat())
            .unwrap();
        drop(client);
        assert!(served.join().unwrap().is_err());
    });
    let mut all = vec![9; 500_000];
    store.read_at(&mut all, 100_000).unwrap();
    assert!(all.iter().all(|&byte| byte == 0));
    assert_eq!(store.extent(100_000, 1).unwrap().content, Content::Hole);
}

//! What all clients of a server may keep together.

use super::client::Client;
use super::{LONG, MIB, PATIENT, SHORT, Server};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::store::filter::{self, Filter};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::tls::Encryption;
use trueline_host::nbd::wire::command;
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::front::nbd::memory_budget::MemoryBudget;

const DISK: u64 = 32 * MIB;
/// A request that is more than what every client has of its own.
const LARGE: u64 = 4 << 20;

/// A disk of which everything must be waited for, and whose bytes are copied.
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

fn serve(room: usize, store: impl Store + 'static, limits: Limits) -> Server {
    Server::within(
        MemoryBudget::new(room),
        Encryption::Off,
        Arc::new(store),
        Limits { connections: 32, ..limits },
    )
}

fn memory() -> Memory {
    Memory::new(DISK).unwrap()
}

/// Announces a large write and sends all of it but the last byte; whether all that went.
fn all_but_a_byte(mut stream: &UnixStream) -> bool {
    let request =
        Request { flags: 0, command: command::WRITE, cookie: 7, offset: 0, length: LARGE };
    let length = usize::try_from(LARGE).unwrap() - 1;
    stream.write_all(&[&request.compact().unwrap()[..], &vec![7; length]].concat()).is_ok()
}

/// Of many clients that announce much and do not finish, as many are heard as there is room for; a
/// client that asks little goes on, and one that asks much when they have gone.
#[test]
fn large_payloads_are_received_as_far_as_there_is_room() {
    let server = serve(2 * usize::try_from(LARGE).unwrap(), memory(), PATIENT);
    let hostile: Vec<UnixStream> = (0..8).map(|_| Client::new(server.connect()).stream).collect();
    let (heard, done) = channel();
    std::thread::scope(|scope| {
        for (number, stream) in hostile.iter().enumerate() {
            let heard = heard.clone();
            scope.spawn(move || {
                if all_but_a_byte(stream) {
                    heard.send(number).unwrap();
                }
            });
        }
        let first = [(); 2].map(|()| done.recv_timeout(LONG).unwrap());
        assert!(done.recv_timeout(SHORT).is_err(), "a third one was heard");
        let mut polite = Client::new(server.connect());
        assert_eq!(polite.error(command::WRITE, 0, 0, 1 << 20, &vec![5; 1 << 20]), 0);
        assert_eq!(polite.read(MIB - 8, 9), [[5; 8].as_slice(), &[0]].concat());
        // Those that wait follow when others have gone, and none of their bytes are written.
        for number in first {
            hostile[number].shutdown(std::net::Shutdown::Both).unwrap();
        }
        let next = [(); 2].map(|()| done.recv_timeout(LONG).unwrap());
        assert!(next.iter().all(|number| !first.contains(number)));
        for stream in &hostile {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
        let large = vec![6; usize::try_from(LARGE).unwrap()];
        assert_eq!(polite.error(command::WRITE, 0, 8 * MIB, LARGE, &large), 0);
        assert_eq!((polite.read(0, 2), polite.read(8 * MIB - 1, 2)), (vec![5; 2], vec![0, 6]));
    });
}

/// Many clients with many large requests each, more than there is room for by far, of which some
/// must be waited for.
#[test]
fn every_client_that_goes_on_is_answered() {
    let stores: [Box<dyn Fn() -> Server>; 2] = [
        Box::new(|| serve(5 << 20, memory(), PATIENT)),
        Box::new(|| serve(5 << 20, Slow(memory()), PATIENT)),
    ];
    for serve in stores {
        let server = serve();
        std::thread::scope(|scope| {
            for number in 0..4_u8 {
                let server = &server;
                scope.spawn(move || {
                    let mut client = Client::new(server.connect());
                    let (at, length) = (u64::from(number) * 8 * MIB, 3 << 20);
                    let bytes = vec![number + 1; 3 << 20];
                    for _ in 0..3 {
                        assert_eq!(client.error(command::WRITE, 0, at, length, &bytes), 0);
                    }
                    for _ in 0..5 {
                        client.ask(command::READ, 0, at, length, &[]);
                    }
                    for _ in 0..5 {
                        assert!(client.reply().data.ends_with(&bytes));
                    }
                });
            }
        });
    }
}

/// A client that does not take a large reply keeps the room for it no longer than it may.
#[test]
fn a_reply_that_is_not_taken_gives_its_room_back() {
    let server = serve(
        usize::try_from(LARGE).unwrap(),
        Slow(memory()),
        Limits { reply: SHORT, request: LONG, ..PATIENT },
    );
    let mut greedy = Client::new(server.connect());
    greedy.ask(command::READ, 0, 0, LARGE, &[]);
    // A writer gets room for all of it, and a reply that is taken whenever this program comes to
    // it.
    let mut polite = Client::new(server.connect());
    assert_eq!(
        polite.error(command::WRITE, 0, 0, LARGE, &vec![5; usize::try_from(LARGE).unwrap()]),
        0
    );
    let said = server.end();
    assert!(
        said.len() == 1 && said[0].ends_with(" or for 0.15 s no byte of a reply was taken"),
        "{said:?}"
    );
}

/// A client that announces much and sends nothing of it, or next to nothing, makes way for others,
/// and not only when its payload is due.
#[test]
fn a_client_that_trickles_makes_way_for_one_that_waits() {
    for trickles in [false, true] {
        let server =
            serve(usize::try_from(LARGE).unwrap(), memory(), Limits { crowded: SHORT, ..PATIENT });
        let mut slow = Client::new(server.connect());
        slow.ask(command::WRITE, 0, 0, LARGE, &[7]);
        let slow = slow.stream;
        slow.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        let mut polite = Client::new(server.connect());
        let begun = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while trickles && (&slow).write_all(&[7]).is_ok() {
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
            // The writer may have come first, until it finds the room taken.
            while (&slow).read(&mut [0]).is_err_and(|e| e.kind() == ErrorKind::WouldBlock) {
                assert!(begun.elapsed() < LONG, "it is never hung up on");
                assert_eq!(
                    polite.error(
                        command::WRITE,
                        0,
                        0,
                        LARGE,
                        &vec![5; usize::try_from(LARGE).unwrap()]
                    ),
                    0
                );
            }
        });
        assert_eq!(polite.read(0, 2), [5; 2], "nothing of what came is written");
        let why = "a client was cut off: others waited for the memory that its large request took, \
            and it was too slow";
        assert_eq!(server.end(), [why]);
    }
}

/// A client that leaves while it waits for room gives its place to the next, and not only when it
/// would be its turn.
#[test]
fn a_client_that_leaves_waits_for_no_room() {
    let (room, limits) =
        (MemoryBudget::new(usize::try_from(LARGE).unwrap()), Limits { connections: 2, ..PATIENT });
    let server = Server::within(room, Encryption::Off, Arc::new(memory()), limits);
    let holds = Client::new(server.connect());
    assert!(all_but_a_byte(&holds.stream));
    let mut waits = Client::new(server.connect());
    waits.ask(command::WRITE, 0, 0, LARGE, &[]);
    drop(waits);
    // There is a place for one more when it has gone.
    let mut polite = Client::new(server.connect());
    assert_eq!(polite.read(0, 8), [0; 8]);
}

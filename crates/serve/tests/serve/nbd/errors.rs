//! An error of the medium, and the clients that are told of it.

use super::client::Client;
use super::{MIB, PATIENT, Server};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_geom::base::store::filter::{self, Action, Filter};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::wire::{command, error, flag};

/// Memory that says of what was written that it is lost: to one flush, as the kernel does.
struct Lossy(Memory, AtomicBool);

impl Filter for Lossy {
    fn inner(&self) -> &dyn Store {
        &self.0
    }

    fn pass(
        &self,
        request: &filter::Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let flushes = request.durable || request.action == Action::Flush;
        if flushes && self.1.swap(false, Ordering::SeqCst) { Err(Errno::Io) } else { run() }
    }
}

/// Each way in which a client can be told that what was written is on the medium, or is not.
fn ask(client: &mut Client, how: usize) -> u32 {
    match how {
        0 => client.error(command::FLUSH, 0, 0, 0, &[]),
        1 => client.error(command::WRITE, flag::FUA, 0, 1, &[1]),
        2 => client.error(command::WRITE_ZEROES, flag::FUA, 0, 512, &[]),
        _ => client.error(command::TRIM, flag::FUA, 0, 512, &[]),
    }
}

#[test]
fn every_client_is_told_of_what_is_lost_once() {
    let store = Arc::new(Lossy(Memory::new(MIB).unwrap(), AtomicBool::new(false)));
    let server = Server::of(store.clone(), PATIENT);
    let (mut one, mut other) = (Client::new(server.connect()), Client::new(server.connect()));
    // Both are served, and not only let in.
    assert_eq!((one.read(0, 1), other.read(0, 1)), (vec![0], vec![0]));
    for (first, then) in [(0, 0), (0, 1), (1, 0), (2, 3), (3, 2)] {
        store.1.store(true, Ordering::SeqCst);
        assert_eq!((ask(&mut one, first), ask(&mut one, first)), (error::EIO, 0), "{first}");
        // A later client has written nothing that could be lost.
        let mut late = Client::new(server.connect());
        assert_eq!(ask(&mut late, first), 0);
        // What does not wait for the medium says nothing of it.
        assert_eq!(other.error(command::WRITE, 0, 0, 1, &[1]), 0);
        assert_eq!(
            (ask(&mut other, then), ask(&mut other, then)),
            (error::EIO, 0),
            "{first} {then}"
        );
    }
}

//! Zeros that take long: no other client waits for them, and they end with the one that asked.

use super::client::Client;
use super::{PATIENT, SHORT, Server, wait_while};
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_host::nbd::wire::command;
use trueline_serve::front::nbd::limits::Limits;

const MIB: u64 = 1 << 20;

/// A disk that must be written to be zero, and whose writes wait until they are let through.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    /// Writes that came.
    writes: Mutex<u64>,
    came: Condvar,
}

impl Gate {
    /// At a MiB a write, more than any test could wait for.
    const LENGTH: u64 = 1 << 60;

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn await_writes(&self, count: u64) {
        wait_while(&self.came, self.writes.lock().unwrap(), |writes| *writes < count);
    }

    fn writes(&self) -> u64 {
        *self.writes.lock().unwrap()
    }
}

impl Store for Gate {
    fn length(&self) -> u64 {
        Gate::LENGTH
    }

    fn read_at(&self, buffer: &mut [u8], _: u64) -> Result<(), Errno> {
        buffer.fill(7);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        *self.writes.lock().unwrap() += 1;
        self.came.notify_all();
        wait_while(&self.opened, self.open.lock().unwrap(), |open| !*open);
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

#[test]
fn a_client_that_hangs_up_ends_them_and_meanwhile_others_are_served() {
    let gate = Arc::new(Gate::default());
    let server = Server::of(gate.clone(), PATIENT);
    let mut client = Client::extended(server.connect());
    client.ask(command::WRITE_ZEROES, 0, 0, 5 << 40, &[]);
    gate.await_writes(1);
    // The same client's next request, and another client's.
    client.ask(command::READ, 0, 0, 3, &[]);
    assert_eq!(client.reply().data[8..], [7; 3]);
    assert_eq!(Client::new(server.connect()).read(0, 3), [7; 3]);
    drop(client);
    gate.open();
    server.stop();
    server.join();
    assert_eq!(gate.writes(), 1);
}

#[test]
fn a_server_that_ends_ends_them() {
    let gate = Arc::new(Gate::default());
    let server = Server::of(gate.clone(), Limits { drain: SHORT, ..PATIENT });
    let mut client = Client::extended(server.connect());
    client.ask(command::WRITE_ZEROES, 0, 0, Gate::LENGTH, &[]);
    gate.await_writes(1);
    gate.open();
    server.stop();
    server.join();
    assert!(gate.writes() < Gate::LENGTH / MIB);
}

/// "NBD_CMD_DISC": what was asked before it is done.
#[test]
fn a_client_that_says_goodbye_has_them_done() {
    let gate = Arc::new(Gate::default());
    let server = Server::of(gate.clone(), PATIENT);
    let mut client = Client::extended(server.connect());
    client.ask(command::WRITE_ZEROES, 0, 4096, 3000 * MIB, &[]);
    gate.await_writes(1);
    client.ask(command::DISC, 0, 0, 0, &[]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    gate.open();
    let reply = client.reply();
    assert_eq!((reply.kind, reply.last), (0, true));
    // A MiB each; the first piece ends on a unit, so that two writes are shorter.
    assert_eq!(gate.writes(), 3001);
}

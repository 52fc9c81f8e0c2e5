//! How a server ends.

use super::client::{Client, hello};
use super::{MIB, PATIENT, SHORT, Server, wait_while};
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_host::nbd::wire::command;
use trueline_serve::front::nbd::limits::Limits;

/// Zeros that wait until they may be read.
#[derive(Default)]
struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
    /// How many wait.
    waiting: Mutex<usize>,
    came: Condvar,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn await_readers(&self, count: usize) {
        wait_while(&self.came, self.waiting.lock().unwrap(), |waiting| *waiting < count);
    }
}

impl Store for Gate {
    fn length(&self) -> u64 {
        MIB
    }

    fn read_at(&self, buffer: &mut [u8], _: u64) -> Result<(), Errno> {
        *self.waiting.lock().unwrap() += 1;
        self.came.notify_all();
        wait_while(&self.opened, self.open.lock().unwrap(), |open| !*open);
        buffer.fill(0);
        Ok(())
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

#[test]
fn what_was_asked_is_answered() {
    let gate = Arc::new(Gate::default());
    let server = Server::of(gate.clone(), PATIENT);
    let mut client = Client::new(server.connect());
    let asked: Vec<u64> = (0..40).map(|_| client.ask(command::READ, 0, 0, 512, &[])).collect();
    gate.await_readers(16);
    let mut idle = Client::new(server.connect());
    server.stop();
    assert!(idle.is_hung_up());
    gate.open();
    let mut answered: Vec<u64> = asked.iter().map(|_| client.reply().cookie).collect();
    answered.sort_unstable();
    assert_eq!(answered, asked);
    assert!(client.is_hung_up());
    server.join();
}

#[test]
fn idle_clients_and_half_a_handshake_do_not_keep_it() {
    let server = Server::new(PATIENT);
    let mut idle = Client::new(server.connect());
    let mut half = server.connect();
    half.read_exact(&mut [0; 18]).unwrap();
    half.write_all(&hello()[..10]).unwrap();
    let (path, beginning) = (server.path(), std::time::Instant::now());
    server.stop();
    assert!(idle.is_hung_up());
    assert_eq!(half.read(&mut [0; 1]).unwrap_or(0), 0);
    server.join();
    assert!(beginning.elapsed() < PATIENT.drain, "it waited for silent clients");
    assert!(!path.exists(), "the socket is left behind");
}

/// The bounded time is for clients that do not read; a store that hangs is waited for.
#[test]
fn a_client_that_takes_no_replies_does_not_keep_it() {
    let server = Server::new(Limits { drain: SHORT, ..PATIENT });
    let mut greedy = Client::new(server.connect());
    // More than sockets hold, so that a reply is stuck; less than would be stuck itself.
    for _ in 0..64 {
        greedy.ask(command::READ, 0, 0, 1 << 20, &[]);
    }
    assert_eq!(
        server.end(),
        ["a client was cut off: the server ends, and it had not taken its replies after 0.15 s"]
    );
}

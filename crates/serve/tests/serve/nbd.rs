//! The server over real sockets, as clients meet it that are slow, broken or hostile.

mod bounds;
mod client;
mod drain;
mod errors;
mod extended;
mod fake;
mod hostile;
mod remote;
mod remote_extended;
mod requests;
mod room;
mod sockets;
mod tls;
mod zeros;

use crate::Scratch;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{Grain, Why};
use trueline_host::disk::memory::Memory;
use trueline_host::nbd::listener::Listener;
use trueline_host::nbd::tls::Encryption;
use trueline_serve::export::{BlockSizes, Export, Exports};
use trueline_serve::front::nbd::limits::Limits;
use trueline_serve::front::nbd::memory_budget::MemoryBudget;
use trueline_serve::front::{Front, Nbd};

const MIB: u64 = 1 << 20;

/// Patience that no test waits for: what is to happen at once must not need it.
const LONG: Duration = Duration::from_secs(600);
/// Patience that a test waits for.
const SHORT: Duration = Duration::from_millis(150);

/// No client is hung up on.
const PATIENT: Limits = Limits {
    connections: 8,
    handshake: LONG,
    request: LONG,
    crowded: LONG,
    reply: LONG,
    drain: LONG,
};

/// A server of its own, which ends with the test.
struct Server {
    scratch: Scratch,
    stop: Arc<AtomicBool>,
    running: Option<JoinHandle<()>>,
    /// What it said of clients that it cut off.
    said: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves `store` by no name.
    fn of(store: Arc<dyn Store>, limits: Limits) -> Server {
        Server::through(Encryption::Off, store, limits)
    }

    /// The same, with or without TLS.
    fn through(encryption: Encryption, store: Arc<dyn Store>, limits: Limits) -> Server {
        Server::within(MemoryBudget::new(1 << 30), encryption, store, limits)
    }

    /// The same, with so much room for large requests.
    fn within(
        room: MemoryBudget,
        encryption: Encryption,
        store: Arc<dyn Store>,
        limits: Limits,
    ) -> Server {
        let scratch = Scratch::new();
        let listener = Listener::unix(&scratch.0.join("s")).unwrap();
        let sizes = BlockSizes { least: 1, preferred: 4096, most: 32 << 20 };
        let (name, description) = (String::new(), "a disk".into());
        let unit = Boundary { why: Why::Physical, grain: Grain::new(4096, 512) };
        let (boundaries, errors) = (vec![unit], Arc::default());
        let (overlay, refusals) = (None, Vec::new());
        let export = Export {
            name,
            description,
            store,
            read_only: false,
            rotational: false,
            sizes,
            boundaries,
            errors,
            overlay,
            refusals,
        };
        let exports = Arc::new(Exports(vec![export]));
        let said = Arc::new(Mutex::new(Vec::new()));
        let kept = said.clone();
        let tell = Box::new(move |line: &str| kept.lock().unwrap().push(line.to_owned()));
        let front = Nbd {
            listener,
            exports,
            encryption,
            certificates: None,
            limits,
            room: Arc::new(room),
            tell,
        };
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let running = Some(std::thread::spawn(move || front.run(&told).unwrap()));
        Server { scratch, stop, running, said }
    }

    /// Serves a MiB of memory.
    fn new(limits: Limits) -> Server {
        Server::of(Arc::new(Memory::new(MIB).unwrap()), limits)
    }

    fn path(&self) -> PathBuf {
        self.scratch.0.join("s")
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.path()).unwrap();
        // A test of a server that does not answer fails, and does not wait for ever.
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    /// Tells it to end; it goes on until it has.
    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Ends it; what it said of clients that it cut off.
    fn end(self) -> Vec<String> {
        let said = self.said.clone();
        self.stop();
        self.join();
        std::mem::take(&mut said.lock().unwrap())
    }

    /// Waits until it has ended.
    fn join(mut self) {
        assert!(self.has_ended(), "it does not end");
        self.running.take().unwrap().join().unwrap();
    }

    /// Whether it ends within [`LONG`].
    fn has_ended(&self) -> bool {
        let begun = Instant::now();
        while self.running.as_ref().is_some_and(|running| !running.is_finished()) {
            if begun.elapsed() > LONG {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

/// Waits on `changed` while `waits` holds of what is locked; one that no longer changes fails the
/// test, and does not keep it.
#[track_caller]
fn wait_while<T>(changed: &Condvar, what: MutexGuard<'_, T>, waits: impl FnMut(&mut T) -> bool) {
    let waited = changed.wait_timeout_while(what, LONG, waits).unwrap();
    assert!(!waited.1.timed_out(), "it does not come");
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let ends = self.has_ended();
        assert!(ends || std::thread::panicking(), "it does not end");
        if let Some(running) = self.running.take().filter(|_| ends) {
            let ended = running.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

//! Tests of internal state: waits for memory, requests before the stop, and panics.

use super::*;
use crate::export::{BlockSizes, Exports};
use crate::front::nbd::connection::serve;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar};
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::Store;
use trueline_host::lock::lock;
use trueline_host::nbd::tls::Encryption;
use trueline_host::nbd::wire::{self, IHAVEOPT, option};

/// The limit of all waits: no test takes as long.
const LONG: Duration = Duration::from_secs(600);
/// Bytes that come at once, at most.
const PIECE: usize = 16 << 10;
const DISK: usize = 4 << 20;

/// A client that says what it has to, and is then silent until it is hung up on, or goes.
struct Script {
    /// The messages, no two of which arrive at once.
    messages: Vec<Vec<u8>>,
    stays: bool,
    state: Mutex<State>,
    hung_up: Condvar,
}

#[derive(Default)]
struct State {
    message: usize,
    at: usize,
    hung_up: bool,
    got: Vec<u8>,
}

impl Script {
    /// A client that opens the default export, with simple replies, and then sends `messages`.
    fn new(messages: Vec<Vec<u8>>, stays: bool) -> Script {
        let hello = [
            &3_u32.to_be_bytes()[..],
            &IHAVEOPT.to_be_bytes(),
            &option::EXPORT_NAME.to_be_bytes(),
            &[0; 4],
        ]
        .concat();
        let messages = std::iter::once(hello).chain(messages).collect();
        Script { messages, stays, state: Mutex::default(), hung_up: Condvar::new() }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// The bytes after the greeting and the export.
    fn got(self) -> Vec<u8> {
        self.state.into_inner().unwrap().got.split_off(18 + 10)
    }
}

impl Stream for Script {
    fn receive(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut state = self.state();
        let Some(message) = self.messages.get(state.message) else {
            let waited = self
                .hung_up
                .wait_timeout_while(state, LONG, |state| self.stays && !state.hung_up)
                .unwrap();
            assert!(!waited.1.timed_out(), "it is never hung up on");
            return Ok(0);
        };
        let count = into.len().min(PIECE).min(message.len() - state.at);
        into[..count].copy_from_slice(&message[state.at..state.at + count]);
        state.at += count;
        if state.at == message.len() {
            (state.message, state.at) = (state.message + 1, 0);
        }
        Ok(count)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.state().got.extend(bytes);
        Ok(())
    }

    fn set_patience(&self, _: Option<Duration>) -> io::Result<()> {
        Ok(())
    }

    /// The rest of the message.
    fn waiting(&self) -> usize {
        let state = self.state();
        self.messages.get(state.message).map_or(0, |message| message.len() - state.at)
    }

    fn hang_up(&self) {
        self.state().hung_up = true;
        self.hung_up.notify_all();
    }
}

/// A disk that calls its function in `read_now`, where others only look, and has no bytes cached.
struct Disk<F, G>(F, G);

impl<F: Fn() + Send + Sync, G: Fn() + Send + Sync> Store for Disk<F, G> {
    fn length(&self) -> u64 {
        DISK as u64
    }

    fn try_read(&self, _: &mut [u8], _: u64) -> Result<bool, Errno> {
        (self.0)();
        Ok(false)
    }

    fn read_at(&self, _: &mut [u8], _: u64) -> Result<(), Errno> {
        (self.1)();
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Ok(())
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Ok(())
    }
}

fn serve_script(
    store: impl Store + 'static,
    script: &Script,
    room: &MemoryBudget,
    stop: &AtomicBool,
    agreed: &mut dyn FnMut(),
) -> io::Result<()> {
    let export = Export {
        name: String::new(),
        description: String::new(),
        store: Arc::new(store),
        read_only: false,
        rotational: false,
        sizes: BlockSizes { least: 1, preferred: 4096, most: LARGEST_REQUEST },
        boundaries: Vec::new(),
        errors: Arc::default(),
        overlay: None,
        refusals: Vec::new(),
    };
    let exports = Exports(vec![export]);
    let service = Service {
        exports: &exports,
        encryption: &Encryption::Off,
        limits: Limits::default(),
        room,
        stop,
    };
    serve(script, &service, &mut |_| agreed())
}

fn request(command: u16, cookie: u64, length: usize) -> Vec<u8> {
    Request { flags: 0, command, cookie, offset: 0, length: length as u64 }
        .compact()
        .unwrap()
        .to_vec()
}

/// A large payload that began before the stop: the part that is received by itself was sent before
/// it too.
#[test]
fn what_comes_after_the_end_is_refused() {
    let write = [request(command::WRITE, 1, 3 * PIECE), vec![7; 3 * PIECE]].concat();
    let script = Script::new(vec![write, request(command::READ, 2, 512)], false);
    let stop = AtomicBool::new(false);
    let done =
        serve_script(Disk(|| {}, || {}), &script, &MemoryBudget::new(DISK), &stop, &mut || {
            stop.store(true, Ordering::Relaxed)
        });
    done.unwrap();
    let got = script.got();
    let answers: Vec<[u8; 16]> = got.as_chunks().0.to_vec();
    assert_eq!(got.len(), 32, "{got:?}");
    assert!(answers.contains(&wire::simple_reply(0, 1)), "it came before the end");
    assert!(answers.contains(&wire::simple_reply(error::ESHUTDOWN, 2)), "it came after the end");
}

/// A read with a reservation that must wait for a device does not wait for one again, behind
/// clients that came meanwhile.
#[test]
fn room_is_waited_for_once() {
    let (room, over, gave_up) = (
        Arc::new(MemoryBudget::new(DISK)),
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicBool::new(false)),
    );
    let (of, ends, gives_up) = (room.clone(), over.clone(), gave_up.clone());
    let come = move || {
        let (own, ends, gives_up) = (of.clone(), ends.clone(), gives_up.clone());
        let begun = Instant::now();
        std::thread::spawn(move || {
            let _share = own.share(1, &|| ends.load(Ordering::Relaxed));
            while !ends.load(Ordering::Relaxed) && !gives_up.load(Ordering::Relaxed) {
                gives_up.store(begun.elapsed() > LONG, Ordering::Relaxed);
                std::thread::yield_now();
            }
        });
        while of.crowded().is_none() {
            assert!(begun.elapsed() < LONG, "the other one does not come");
            std::thread::yield_now();
        }
    };
    let script = Script::new(vec![request(command::READ, 1, DISK)], false);
    let done = serve_script(Disk(come, || {}), &script, &room, &AtomicBool::new(false), &mut || {});
    over.store(true, Ordering::Relaxed);
    done.unwrap();
    assert!(!gave_up.load(Ordering::Relaxed), "it waited for room behind a later client");
    assert_eq!(script.got().len(), 16 + DISK);
}

/// The reply will not come, so the client is disconnected and does not wait for it; the caller of
/// the server sees the panic.
#[test]
fn a_store_that_panics_ends_the_connection() {
    let script = Script::new(vec![request(command::READ, 1, 512)], true);
    fn fails() {
        panic!("as a store might");
    }
    let served = catch_unwind(AssertUnwindSafe(|| {
        serve_script(
            Disk(|| {}, fails),
            &script,
            &MemoryBudget::new(DISK),
            &AtomicBool::new(false),
            &mut || {},
        )
    }));
    assert!(served.is_err() && script.state().hung_up);
}

//! The listener of an NBD socket, with a thread for every client.

use super::connection::{self, Service};
use super::notices::{self, Notices, Tell};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::HashMap;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use trueline_host::clock::TICK;
use trueline_host::error::Error;
use trueline_host::lock::lock;
use trueline_host::nbd::listener::Listener;
pub use trueline_host::nbd::socket::Client;
use trueline_host::nbd::stream::Stream;

/// The time within which a server notices that it must stop.
const PATIENCE: Duration = TICK;

/// The connected clients by number.
#[derive(Default)]
struct Clients {
    table: Mutex<HashMap<u64, Arc<Client>>>,
    /// Signals that a client has gone.
    gone: Condvar,
}

/// The entry of a connected client, removed when dropped.
struct ClientSlot<'a> {
    clients: &'a Clients,
    number: u64,
}

impl Clients {
    fn table(&self) -> MutexGuard<'_, HashMap<u64, Arc<Client>>> {
        lock(&self.table)
    }

    /// Waits at most `within` for no more than `count` clients. True if it is so.
    fn wait(&self, count: usize, within: Duration) -> bool {
        let waited =
            self.gone.wait_timeout_while(self.table(), within, |table| table.len() > count);
        waited.unwrap_or_else(PoisonError::into_inner).0.len() <= count
    }

    fn enter(&self, number: u64, client: Arc<Client>) -> ClientSlot<'_> {
        self.table().insert(number, client);
        ClientSlot { clients: self, number }
    }
}

impl Drop for ClientSlot<'_> {
    fn drop(&mut self) {
        self.clients.table().remove(&self.number);
        self.clients.gone.notify_all();
    }
}

/// Serves the clients of `listener` until it must stop; then answers the requests made, and ends.
/// `tell` reports clients cut off.
pub fn run(listener: &Listener, service: &Service<'_>, tell: &Tell) -> Result<(), Error> {
    // A waiting client may leave before it is accepted, and there may be no other for a long time.
    rustix::io::ioctl_fionbio(listener.fd(), true)
        .map_err(|e| Error::os("listen on", Path::new(&listener.place()), e))?;
    let (clients, notices) = (&Clients::default(), &Notices::new(tell));
    std::thread::scope(|scope| {
        let mut next = 0;
        while !service.stop.load(Ordering::Relaxed) {
            notices.pass(Instant::now());
            if !clients.wait(service.limits.connections.max(1) - 1, PATIENCE)
                || !is_ready(listener.fd())
            {
                continue;
            }
            let own = match listener.accept() {
                Ok(own) => Arc::new(own),
                // The client left before it was accepted.
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted
                    ) =>
                {
                    continue;
                }
                Err(e) => {
                    notices.held_up(&e);
                    // No descriptor, or no memory, until a client goes: an immediate retry would
                    // only spin.
                    std::thread::sleep(PATIENCE);
                    continue;
                }
            };
            let peer = own.peer_name();
            let (place, named) = (clients.enter(next, own.clone()), peer.clone());
            next += 1;
            let serve = move || {
                let (_place, mut begun) = (place, false);
                let serve = |()| connection::serve(&*own, service, &mut |_| begun = true);
                let served = own.set_patience_to_send(service.limits.reply).and_then(serve);
                if let Some(why) =
                    served.err().and_then(|e| notices::why(&e, &service.limits, begun))
                {
                    notices.cut_off(&peer, &why, Instant::now());
                }
            };
            // Without a thread for it, the client is disconnected.
            if std::thread::Builder::new()
                .name("nbd client".into())
                .spawn_scoped(scope, serve)
                .is_err()
            {
                notices.cut_off(&named, "there is no thread to be had for it", Instant::now());
            }
        }
        drain(clients, service.limits.drain, notices);
    });
    notices.end();
    Ok(())
}

/// Answers the requests that clients have made, and disconnects those too slow to take their
/// answers.
fn drain(clients: &Clients, within: Duration, notices: &Notices<'_>) {
    clients.table().values().for_each(|client| client.hear_out());
    clients.wait(0, within);
    for client in clients.table().values() {
        client.hang_up();
        let why = format!(
            "the server ends, and it had not taken its replies after {} s",
            within.as_secs_f64()
        );
        notices.cut_off(&client.peer_name(), &why, Instant::now());
    }
}

/// True if a client waits to be accepted; returns after [`PATIENCE`] at the latest.
fn is_ready(fd: BorrowedFd<'_>) -> bool {
    let patience = Timespec { tv_sec: 0, tv_nsec: i64::from(PATIENCE.subsec_nanos()) };
    let mut poll = [PollFd::new(&fd, PollFlags::IN)];
    matches!(rustix::event::poll(&mut poll, Some(&patience)), Ok(ready) if ready > 0)
}

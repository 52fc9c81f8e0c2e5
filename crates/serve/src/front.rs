//! The fronts of exports: a socket, a mounted file, a block device of the kernel.

pub mod config;
pub mod fuse;
pub mod http;
pub mod nbd;
pub mod ublk;
use crate::export::Exports;
use crate::front::fuse::Mounted;
use crate::front::nbd::connection::Service;
use crate::front::nbd::limits::Limits;
use crate::front::nbd::memory_budget::MemoryBudget;
use crate::front::nbd::notices::Tell;
use crate::front::nbd::server;
use crate::front::ublk::Disk;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trueline_host::error::Error;
use trueline_host::nbd::listener::Listener;
use trueline_host::nbd::tls::Encryption;

/// Makes allocations of this thread, and of threads it creates, never wait for writes to the device
/// that they serve (`PR_SET_IO_FLUSHER`, prctl(2)). Without CAP_SYS_RESOURCE it has no effect, and
/// they work while memory is free.
pub fn as_io_flusher() {
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

/// A way for clients to reach the exports.
pub trait Front: Send + Sync {
    /// The address for clients: an NBD URI, a file, a device.
    fn place(&self) -> String;

    /// The name of the variable that holds the place for a command: `uri`, `file`, `device`.
    fn variable(&self) -> &'static str;

    /// Serves until `stop` is set, answers the requests made by then, and ends.
    fn run(&self, stop: &AtomicBool) -> Result<(), Error>;
}

/// Exports as network block devices.
pub struct Nbd {
    /// The socket that clients connect to.
    pub listener: Listener,
    /// The exports on offer.
    pub exports: Arc<Exports>,
    /// The use of TLS.
    pub encryption: Encryption,
    /// The directory of the authority's certificate for clients on this machine, if there is one.
    pub certificates: Option<PathBuf>,
    /// Limits of time and connections for each client.
    pub limits: Limits,
    /// The memory shared by the clients of all sockets that have it.
    pub room: Arc<MemoryBudget>,
    /// Takes a line about clients that are cut off; of many, only some.
    pub tell: Box<Tell>,
}

impl Front for Nbd {
    fn place(&self) -> String {
        let required = matches!(self.encryption, Encryption::Required(_));
        let name = self.exports.0.first().map_or("", |export| &export.name);
        self.listener.uri(name, required.then_some(self.certificates.as_deref()))
    }

    fn variable(&self) -> &'static str {
        "uri"
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        let service = Service {
            exports: &self.exports,
            encryption: &self.encryption,
            limits: self.limits,
            room: &self.room,
            stop,
        };
        server::run(&self.listener, &service, &*self.tell)
    }
}

/// Exports as files of a mount.
impl Front for Mounted {
    fn place(&self) -> String {
        self.file().display().to_string()
    }

    fn variable(&self) -> &'static str {
        "file"
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        Mounted::run(self, stop)
    }
}

/// The default export as a block device.
impl Front for Disk {
    fn place(&self) -> String {
        self.path()
    }

    fn variable(&self) -> &'static str {
        "device"
    }

    fn run(&self, stop: &AtomicBool) -> Result<(), Error> {
        Disk::run(self, stop)
    }
}

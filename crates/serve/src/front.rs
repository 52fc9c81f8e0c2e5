//! The ways in to exports: a socket, a mounted file, a block device of the kernel.

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

/// From now on memory of this thread, and of threads that it makes, is never got by writing to the very device that waits for them
/// (`PR_SET_IO_FLUSHER`, prctl(2)). Where that is not allowed (no CAP_SYS_RESOURCE) they work as long as memory is there.
pub fn as_io_flusher() {
    let _ = rustix::process::configure_io_flusher_behavior(true);
}

/// One way in.
pub trait Front: Send + Sync {
    /// Where clients find it: an NBD URI, a file, a device.
    fn place(&self) -> String;

    /// What a command that uses it finds its place in: `uri`, `file`, `device`.
    fn variable(&self) -> &'static str;

    /// Serves until `stop` is set, answers what was asked until then, and ends.
    fn run(&self, stop: &AtomicBool) -> Result<(), Error>;
}

/// Exports as network block devices.
pub struct Nbd {
    /// Where clients connect.
    pub listener: Listener,
    /// What they find.
    pub exports: Arc<Exports>,
    /// Whether through TLS.
    pub encryption: Encryption,
    /// Where a client on this machine finds the authority's certificate, if there is one.
    pub certificates: Option<PathBuf>,
    /// What a client may keep.
    pub limits: Limits,
    /// What all clients have together, of every socket that it is given to.
    pub room: Arc<MemoryBudget>,
    /// Takes a line about every client that is cut off; of many, some.
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
        let service = Service { exports: &self.exports, encryption: &self.encryption, limits: self.limits, room: &self.room, stop };
        server::run(&self.listener, &service, &*self.tell)
    }
}

/// Exports as files.
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

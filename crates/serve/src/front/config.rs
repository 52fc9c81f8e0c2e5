//! Ways in to exports as a configuration, and how they are opened.

use crate::error::Error;
use crate::export::Exports;
use crate::front::nbd::limits::Limits;
use crate::front::nbd::memory_budget::MemoryBudget;
use crate::front::{Front, Nbd, fuse, ublk};
use crate::notice::{Notice, Tell};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trueline_host::nbd::activation;
use trueline_host::nbd::listener::Listener;
use trueline_host::nbd::tls::{Certificates, Encryption};

/// An address at which NBD clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The path of a Unix socket.
    Unix(PathBuf),
    /// A host, by name or address, and a port.
    Tcp(String, u16),
}

/// The use of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsUse {
    /// No client may use it.
    Off,
    /// A client may use it.
    Offered,
    /// A client without it is told so, and gets nothing else.
    Required,
}

/// Ways in that are wanted. The default is none.
#[derive(Clone, Debug)]
pub struct FrontConfig {
    /// The address of NBD clients.
    pub nbd: Option<Address>,
    /// A socket for NBD clients where neither [`FrontConfig::nbd`] nor a service manager has any.
    pub fallback: Option<PathBuf>,
    /// Use of the sockets that a service manager has passed to this process (`LISTEN_FDS`).
    pub activation: bool,
    /// The use of TLS; without a word, what is known of certificates decides.
    pub tls: Option<TlsUse>,
    /// The directory of the server's certificate and key.
    pub certificates: Option<PathBuf>,
    /// Refusal of clients without a certificate that the authority vouches for.
    pub verify_peer: bool,
    /// Bounds of what an NBD client may keep.
    pub limits: Limits,
    /// Bytes that all NBD clients have together for large requests.
    pub memory: usize,
    /// A directory or a file to mount exports on.
    pub fuse: Option<PathBuf>,
    /// A block device of this kernel, for the default export.
    pub ublk: bool,
}

impl Default for FrontConfig {
    fn default() -> FrontConfig {
        FrontConfig {
            nbd: None,
            fallback: None,
            activation: false,
            tls: None,
            certificates: None,
            verify_peer: false,
            limits: Limits::default(),
            memory: 1 << 30,
            fuse: None,
            ublk: false,
        }
    }
}

impl FrontConfig {
    /// Opens every way in to `exports`, the one that a client is told of first. `tell` takes what
    /// happens to their clients.
    pub fn open(
        &self,
        exports: &Arc<Exports>,
        tell: &Arc<Tell>,
    ) -> Result<Vec<Box<dyn Front>>, Error> {
        let mut fronts: Vec<Box<dyn Front>> = Vec::new();
        let encryption = self.encryption()?;
        let room = Arc::new(MemoryBudget::new(self.memory));
        for listener in self.listeners()? {
            if listener.is_reachable() && !matches!(encryption, Encryption::Required(_)) {
                tell(&Notice::Exposed { place: listener.place() });
            }
            let (exports, encryption, certificates) =
                (exports.clone(), encryption.clone(), self.authority());
            let (limits, room, tell) = (self.limits, room.clone(), tell.clone());
            let tell = Box::new(move |line: &str| tell(&Notice::Client(line.to_owned())));
            fronts.push(Box::new(Nbd {
                listener,
                exports,
                encryption,
                certificates,
                limits,
                room,
                tell,
            }));
        }
        if let Some(point) = &self.fuse {
            fronts.push(Box::new(fuse::mount(point, exports)?));
        }
        if self.ublk {
            fronts.push(Box::new(ublk::attach(exports)?));
        }
        Ok(fronts)
    }

    /// Sockets that a service manager passed, the one at the address, or the fallback.
    fn listeners(&self) -> Result<Vec<Listener>, Error> {
        let passed = if self.activation { activation::sockets()? } else { Vec::new() };
        if !passed.is_empty() {
            return if self.nbd.is_none() { Ok(passed) } else { Err(Error::Listeners) };
        }
        let fallback = || self.fallback.clone().map(Address::Unix);
        Ok(match self.nbd.clone().or_else(fallback) {
            None => Vec::new(),
            Some(Address::Unix(path)) => vec![Listener::unix(&path)?],
            Some(Address::Tcp(host, port)) => vec![Listener::tcp(&host, port)?],
        })
    }

    fn encryption(&self) -> Result<Encryption, Error> {
        let load = || match &self.certificates {
            Some(directory) => Ok(Certificates::load(directory, self.verify_peer)?),
            None => Err(Error::NoCertificates),
        };
        match (self.tls, &self.certificates) {
            (Some(TlsUse::Off), _) | (None, None) => Ok(Encryption::Off),
            (Some(TlsUse::Offered), _) => Ok(Encryption::Offered(load()?)),
            (Some(TlsUse::Required), _) | (None, Some(_)) => Ok(Encryption::Required(load()?)),
        }
    }

    /// The directory in which a client on this machine finds the certificate that it knows the
    /// server by.
    fn authority(&self) -> Option<PathBuf> {
        let directory = std::path::absolute(self.certificates.as_deref().map(Path::new)?).ok()?;
        directory.join("ca-cert.pem").exists().then_some(directory)
    }
}

//! A store behind an NBD server: `nbd://` targets.
//!
//! A connection does one request at a time. There are as many connections as concurrent requests,
//! up to [`CONNECTIONS`], if the server declares that they see the same bytes. A broken connection
//! is dropped, and the next request makes a new one.
//!
//! # Limits
//! The server is not trusted: its answers are checked, and it cannot make the client keep more than
//! was asked for. Every answer has a deadline ([`Patience`]). If a connection breaks after a write,
//! the next flush fails: unflushed data may be lost.

use super::block_sizes::LARGEST_REQUEST;
use super::tls::Credentials;
use super::uri::{Server, Uri};
use super::wire::{command, flag, transmission};
use crate::error::{Error, Remedy};
use crate::nbd::client::connection::{Session, Wanted};
use crate::nbd::client::patience::Patience;
use crate::nbd::socket::Client as Socket;
use pool::Pool;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Content, Properties, Run, Store};
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{is_whole, round_down};

pub(crate) mod connection;
pub mod patience;
mod pool;

pub use connection::pipeline;

/// The most connections to one server.
pub const CONNECTIONS: usize = 8;

/// The most bytes of one discard or fast zeroing with 64-bit lengths. An answer has a deadline, and
/// a server may be slower than it claims.
const REACH: u64 = 16 << 30;

/// The properties of an export as the server reported them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The length of the export in bytes.
    pub length: u64,
    /// `NBD_FLAG_*` of the transmission phase.
    pub flags: u16,
    /// The minimum, preferred and maximum request in bytes; [`None`] if not reported.
    pub sizes: Option<[u32; 3]>,
    /// True if extended headers were agreed: lengths have 64 bits.
    pub extended: bool,
}

impl ExportInfo {
    /// The unit in bytes that the server asks for, where the export is whole units.
    fn unit(&self) -> u64 {
        let least = self.sizes.map_or(1, |[least, ..]| u64::from(least));
        if is_whole(self.length, least) { least } else { 1 }
    }

    /// The most bytes of a request with data.
    fn most(&self) -> u64 {
        let least = self.unit();
        let largest = u64::from(LARGEST_REQUEST);
        let told = self.sizes.map_or(largest, |[_, _, most]| u64::from(most));
        round_down(told.clamp(least, largest), least)
    }

    fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }
}

/// An export of an NBD server, as a store.
pub struct Remote {
    door: Door,
    told: ExportInfo,
    boundaries: Vec<Boundary>,
    read_only: bool,
    pool: Pool<Session>,
}

/// The address of a server, with credentials and deadlines.
struct Door {
    uri: Uri,
    credentials: Option<Credentials>,
    patience: Patience,
}

impl Door {
    /// The door of the URI `text`, and the first connection through it.
    fn open(text: &str, patience: Patience) -> Result<(Door, Session), Error> {
        let uri = Uri::parse(text).map_err(|why| {
            Error::not(
                "open",
                text,
                why.to_string(),
                "write nbd://HOST[:PORT]/EXPORT or nbd+unix:///EXPORT?socket=PATH",
            )
        })?;
        let credentials = uri
            .tls
            .as_ref()
            .map(|tls| Credentials::load(tls.certificates.as_deref(), &tls.hostname))
            .transpose()?;
        let door = Door { uri, credentials, patience };
        let socket = door.connect().map_err(|e| Error::os("connect to", Path::new(text), e))?;
        let session = Session::begin(socket, &door.wanted())
            .map_err(|e| Error::not("open", text, e.to_string(), ""))?;
        Ok((door, session))
    }

    fn connect(&self) -> std::io::Result<Socket> {
        let within = self.patience.handshake;
        match &self.uri.server {
            Server::Unix(path) => Ok(Socket::Unix(connect_unix(path, within)?)),
            Server::Tcp(host, port) => {
                let mut failed = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, within) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Socket::Tcp(stream));
                        }
                        Err(e) => failed = e,
                    }
                }
                Err(failed)
            }
        }
    }

    fn wanted(&self) -> Wanted<'_> {
        Wanted {
            export: &self.uri.export,
            credentials: self.credentials.as_ref(),
            patience: self.patience,
        }
    }
}

/// Connects to a Unix socket. A server whose queue is full is waited for, but not for ever.
fn connect_unix(path: &Path, within: Duration) -> std::io::Result<UnixStream> {
    let socket = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_socket_timeout(&socket, Timeout::Send, Some(within))?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(socket.into())
}

impl Remote {
    /// Connects to the export of the URI `text`. `read_only`: nothing will be written.
    pub fn open(text: &str, read_only: bool) -> Result<Remote, Error> {
        Remote::open_within(text, read_only, Patience::default())
    }

    /// As [`Remote::open`], with other deadlines.
    pub fn open_within(text: &str, read_only: bool, patience: Patience) -> Result<Remote, Error> {
        let (door, session) = Door::open(text, patience)?;
        let told = session.told();
        let most = if told.flags & transmission::CAN_MULTI_CONN != 0 { CONNECTIONS } else { 1 };
        let mut remote = Remote {
            door,
            told,
            boundaries: Vec::new(),
            read_only,
            pool: Pool::new(session, most),
        };
        // A unit's start is found by a status query from byte 0: a few units are enough.
        remote.boundaries = remote.with(Session::boundaries).unwrap_or_default();
        if !read_only && remote.is_read_only() {
            return Err(exported_read_only(text));
        }
        Ok(remote)
    }

    /// The properties of the export.
    pub fn told(&self) -> ExportInfo {
        self.told
    }

    /// The boundaries that the server reports, if it speaks `trueline:grain` and the like.
    pub fn boundaries(&self) -> &[Boundary] {
        &self.boundaries
    }

    /// True if nothing can be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only || self.told.flags & transmission::READ_ONLY != 0
    }

    fn has(&self, flag: u16) -> bool {
        self.told.has(flag)
    }

    fn connect(&self) -> Result<Session, Errno> {
        let made = self
            .door
            .connect()
            .ok()
            .and_then(|socket| Session::begin(socket, &self.door.wanted()).ok());
        // An export of another length is another disk, even under the same name.
        made.filter(|session| session.told().length == self.told.length).ok_or(Errno::NoDevice)
    }

    /// Calls `work` with a connection, which returns to the pool unless it broke.
    fn with<T>(&self, work: impl FnOnce(&mut Session) -> Result<T, Errno>) -> Result<T, Errno> {
        let (number, mut session) = self.pool.take(|| self.connect())?;
        let done = work(&mut session);
        self.pool.put(number, whole(session), false);
        done
    }

    /// As [`Remote::with`], for writes: they are on the medium only after a flush.
    fn write(&self, work: impl FnOnce(&mut Session) -> Result<(), Errno>) -> Result<(), Errno> {
        let (number, mut session) = self.pool.take(|| self.connect())?;
        let done = work(&mut session);
        self.pool.put(number, whole(session), done.is_ok());
        done
    }

    /// The most bytes of a request with data.
    fn most(&self) -> u64 {
        self.told.most()
    }

    /// The most bytes of a request without data.
    fn reach(&self) -> u64 {
        if self.told.extended { round_down(REACH, self.unit()) } else { self.most() }
    }

    /// Calls `each` for pieces of `length` bytes, each at most `most`: with the bytes before it and
    /// its length.
    fn pieces(
        &self,
        most: u64,
        offset: u64,
        length: u64,
        each: &mut dyn FnMut(u64, u64) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        offset.checked_add(length).filter(|&end| end <= self.told.length).ok_or(Errno::Range)?;
        let mut done = 0;
        while done < length {
            let piece = most.min(length - done);
            each(done, piece)?;
            done += piece;
        }
        Ok(())
    }

    fn put(&self, bytes: &[u8], offset: u64, flags: u16) -> Result<(), Errno> {
        if self.is_read_only() {
            return Err(Errno::ReadOnly);
        }
        self.pieces(self.most(), offset, bytes.len() as u64, &mut |done, length| {
            let from = usize::try_from(done).map_err(|_| Errno::Range)?;
            let piece = &bytes[from..from + usize::try_from(length).map_err(|_| Errno::Range)?];
            let ask = |session: &mut Session| {
                session.ask(command::WRITE, flags, offset + done, length, piece)
            };
            if flags & flag::FUA == 0 { self.write(ask) } else { self.with(ask) }
        })
    }

    /// The unit in bytes that requests must be whole units of.
    fn unit(&self) -> u64 {
        self.told.unit()
    }

    /// Flushes all connections with unflushed writes, concurrently. Returns the first error.
    fn flush_all(&self) -> Result<(), Errno> {
        let mut flush = self.pool.flush();
        let mut done = Ok(());
        let mut asked_any = false;
        while self.has(transmission::SEND_FLUSH) {
            let mut taken = self.pool.take_due(&mut flush);
            if taken.is_empty() {
                break;
            }
            asked_any = true;
            let asked: Vec<_> =
                taken.iter_mut().map(|(_, session)| session.begin_flush()).collect();
            for ((number, mut session), asked) in taken.into_iter().zip(asked) {
                let flushed = session.done(asked);
                done = done.and(flushed);
                if flushed.is_ok() {
                    self.pool.put_flushed(number, session);
                } else {
                    self.pool.put(number, whole(session), false);
                }
            }
        }
        let lost = self.pool.end(&flush);
        if !asked_any && lost.is_ok() && self.has(transmission::SEND_FLUSH) {
            // The writes of other clients may need a flush too.
            return self.with(|session| session.ask(command::FLUSH, 0, 0, 0, &[]));
        }
        lost.and(done)
    }
}

/// The error of a write to what a server exports for reading alone.
fn exported_read_only(text: &str) -> Error {
    Error::not("write", text, "its server exports it read-only", Remedy::ExportWritable)
}

/// The session, if it can be used again.
fn whole(session: Session) -> Option<Session> {
    Some(session).filter(|session| !session.is_broken())
}

impl Store for Remote {
    fn length(&self) -> u64 {
        self.told.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        self.pieces(self.most(), offset, buffer.len() as u64, &mut |done, length| {
            let from = usize::try_from(done).map_err(|_| Errno::Range)?;
            let piece =
                &mut buffer[from..from + usize::try_from(length).map_err(|_| Errno::Range)?];
            self.with(|session| session.read(piece, offset + done))
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        self.put(bytes, offset, 0)
    }

    fn write_through(&self, bytes: &[u8], offset: u64) -> Result<(), Errno> {
        if self.has(transmission::SEND_FUA) {
            return self.put(bytes, offset, flag::FUA);
        }
        self.write_at(bytes, offset)?;
        self.flush()
    }

    fn flush(&self) -> Result<(), Errno> {
        if self.is_read_only() { Ok(()) } else { self.flush_all() }
    }

    fn discard(&self, offset: u64, length: u64) -> Result<(), Errno> {
        if !self.has(transmission::SEND_TRIM) || self.is_read_only() {
            return Ok(());
        }
        self.pieces(self.reach(), offset, length, &mut |done, length| {
            self.with(|session| session.ask(command::TRIM, 0, offset + done, length, &[]))
        })
    }

    fn try_zero(&self, offset: u64, length: u64, keep: bool) -> Result<(), Errno> {
        if !self.has(transmission::SEND_WRITE_ZEROES) || self.is_read_only() {
            return Err(Errno::Unsupported);
        }
        // Without the flag a server may be slow, but nothing is sent over the wire: still the
        // faster way.
        let flags = if keep { flag::NO_HOLE } else { 0 }
            | if self.has(transmission::SEND_FAST_ZERO) { flag::FAST_ZERO } else { 0 };
        // A server that may be slow gets no more at once than a 32-bit length allows.
        let most = if flags & flag::FAST_ZERO != 0 { self.reach() } else { self.most() };
        self.pieces(most, offset, length, &mut |done, length| {
            self.write(|session| {
                session.ask(command::WRITE_ZEROES, flags, offset + done, length, &[])
            })
        })
    }

    fn extent(&self, offset: u64, length: u64) -> Result<Run, Errno> {
        let length = if self.told.extended { length } else { length.min(self.most()) };
        let status = self.with(|session| session.allocation(offset, length))?;
        // A server without allocation status has data everywhere.
        Ok(status.map_or(Run { content: Content::Data, length }, |run| Run {
            length: run.length.clamp(1, length),
            ..run
        }))
    }

    fn properties(&self) -> Properties {
        Properties { unit: self.unit(), depth: self.pool.most(), ..Properties::default() }
    }
}

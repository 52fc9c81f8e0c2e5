//! Listening sockets for clients.
//!
//! # Sources
//! unix(7): a path has at most 107 bytes; `doc/uri.md` of the protocol for URIs.

use crate::error::Error;
use crate::nbd::socket::Client;
use rustix::fs::Stat;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io;
use std::net::{TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The port of the protocol, assigned by IANA.
pub const PORT: u16 = 10809;
/// The longest path of a Unix socket in bytes.
pub const LONGEST: usize = 107;

/// A listening socket for clients.
pub enum Listener {
    /// A Unix socket, with its file if this program must remove it.
    Unix(UnixListener, Option<Bound>),
    /// A TCP socket of any address.
    Tcp(TcpListener),
}

/// The file of a Unix socket, removed when dropped.
pub struct Bound {
    path: PathBuf,
    /// Device and inode number: another server's socket under the same name is another file.
    file: Option<(u64, u64)>,
}

impl Bound {
    fn new(path: &Path) -> Bound {
        Bound { path: path.to_owned(), file: Bound::file(path) }
    }

    fn file(path: &Path) -> Option<(u64, u64)> {
        rustix::fs::lstat(path).ok().map(|Stat { st_dev, st_ino, .. }| (st_dev, st_ino))
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.file.is_some() && self.file == Bound::file(&self.path) {
            // A socket that another program removes at this moment is gone anyway.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Listener {
    /// A Unix socket at `path`. A stale one, without a listener, is replaced.
    pub fn unix(path: &Path) -> Result<Listener, Error> {
        let place = path.display().to_string();
        let not = |found: &str, advice| Error::not("listen on", &place, found, advice);
        let length = path.as_os_str().as_bytes().len();
        if length > LONGEST {
            let found =
                format!("a socket's path has at most {LONGEST} bytes, and this one has {length}");
            return Err(not(
                &found,
                "name a shorter one, or one relative to the working directory",
            ));
        }
        if let Ok(found) = rustix::fs::lstat(path) {
            if rustix::fs::FileType::from_raw_mode(found.st_mode) != rustix::fs::FileType::Socket {
                return Err(not(
                    "it exists and is not a socket",
                    "remove it, or name another place",
                ));
            }
            if !is_stale(path)? {
                return Err(not("another program listens there", "end it, or name another socket"));
            }
            std::fs::remove_file(path)
                .map_err(|e| Error::os("replace the stale socket", path, e))?;
        }
        let listener = UnixListener::bind(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => {
                not("there is no such directory", "make it, or name another place")
            }
            io::ErrorKind::PermissionDenied => {
                not("permission denied", "you may not make a socket in that directory")
            }
            io::ErrorKind::AddrInUse => {
                not("another program has just made it", "end that server, or name another socket")
            }
            _ => Error::os("listen on", path, e),
        })?;
        Ok(Listener::Unix(listener, Some(Bound::new(path))))
    }

    /// A TCP socket at `port` of an address, or of the first address of `host` that can be bound.
    pub fn tcp(host: &str, port: u16) -> Result<Listener, Error> {
        tcp(host, port).map(Listener::Tcp)
    }

    /// True if other machines can connect.
    pub fn is_reachable(&self) -> bool {
        match self {
            Listener::Unix(..) => false,
            Listener::Tcp(listener) => !listener
                .local_addr()
                .is_ok_and(|address| address.ip().to_canonical().is_loopback()),
        }
    }

    /// The place for messages: a path, or address and port.
    pub fn place(&self) -> String {
        match self {
            Listener::Unix(..) => self.path().display().to_string(),
            Listener::Tcp(listener) => {
                listener.local_addr().map_or_else(|_| "TCP".into(), |address| address.to_string())
            }
        }
    }

    /// The absolute path of a Unix socket; empty if it has none.
    pub fn path(&self) -> PathBuf {
        let Listener::Unix(listener, bound) = self else { return PathBuf::new() };
        let path = bound.as_ref().map(|bound| bound.path.clone());
        let path = path
            .or_else(|| listener.local_addr().ok()?.as_pathname().map(Path::to_owned))
            .unwrap_or_default();
        std::path::absolute(&path).unwrap_or(path)
    }

    /// The URI of an export. `certificates`: TLS is used; inside, the directory of the client's
    /// certificates, if it is known.
    pub fn uri(&self, export: &str, certificates: Option<Option<&Path>>) -> String {
        let (tls, certificates) =
            (if certificates.is_some() { "s" } else { "" }, certificates.flatten());
        let certificates = certificates
            .map(|path| format!("tls-certificates={}", escaped(path.as_os_str().as_bytes())));
        match self {
            Listener::Unix(..) => {
                let query: Vec<String> = std::iter::once(format!(
                    "socket={}",
                    escaped(self.path().as_os_str().as_bytes())
                ))
                .chain(certificates)
                .collect();
                format!("nbd{tls}+unix:///{}?{}", escaped(export.as_bytes()), query.join("&"))
            }
            Listener::Tcp(listener) => {
                let address = listener
                    .local_addr()
                    .map_or_else(|_| "localhost".into(), |address| address.to_string());
                let query = certificates.map_or_else(String::new, |query| format!("?{query}"));
                format!("nbd{tls}://{address}/{}{query}", escaped(export.as_bytes()))
            }
        }
    }

    /// The descriptor to poll for clients.
    pub fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener, _) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
        }
    }

    /// Accepts the next client.
    pub fn accept(&self) -> io::Result<Client> {
        Ok(match self {
            Listener::Unix(listener, _) => Client::Unix(listener.accept()?.0),
            Listener::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                // Replies are sent whole, so Nagle's algorithm would only delay them.
                stream.set_nodelay(true)?;
                Client::Tcp(stream)
            }
        })
    }
}

/// Listens on `port` of an address, or of the first address of `host` that can be bound.
pub fn tcp(host: &str, port: u16) -> Result<TcpListener, Error> {
    let place =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    let not = |found: &str, advice| Error::not("listen on", &place, found, advice);
    let addresses = (host, port)
        .to_socket_addrs()
        .map_err(|e| not(&e.to_string(), "write an address or a name of this machine"))?;
    let addresses: Vec<_> = addresses.collect();
    TcpListener::bind(&*addresses).map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => {
            not("another program listens there", "end it, or name another port")
        }
        io::ErrorKind::AddrNotAvailable => {
            not("this machine has no such address", "name one that it has, or 0.0.0.0 for all")
        }
        io::ErrorKind::PermissionDenied => {
            not("permission denied", "only root may use ports below 1024")
        }
        _ => Error::os("listen on", Path::new(&place), e),
    })
}

/// True if no server listens on the socket at `path` any more.
fn is_stale(path: &Path) -> Result<bool, Error> {
    let failed = |e: rustix::io::Errno| Error::os("find the server of", path, e);
    // Nonblocking: a server with a full queue is alive.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path).map_err(failed)?) {
        Err(rustix::io::Errno::CONNREFUSED) => Ok(true),
        Ok(()) | Err(rustix::io::Errno::AGAIN) => Ok(false),
        Err(e) => Err(failed(e)),
    }
}

/// Escapes for a URI all bytes but the unreserved ones (RFC 3986, section 2.3) and the slash.
fn escaped(bytes: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
    bytes
        .iter()
        .map(
            |byte| if plain(byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") },
        )
        .collect()
}

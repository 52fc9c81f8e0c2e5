//! The command of `--run`, and a socket for it alone.

use crate::child::Child;
use crate::failure::Failure;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::Command;
use std::{fs, io};
use trueline_host::nbd::activation;
use trueline_host::nbd::listener::LONGEST;
use trueline_host::nbd::uri::unescaped;
use trueline_host::random;
use trueline_serve::front::Front;

/// Starts `command` in a shell. It finds the exports at `$uri`, the first way in, and at the
/// variable of each way in.
///
/// `aside`: its output goes to stderr, because stdout is for a document.
pub(super) fn start(
    command: &str,
    fronts: &[Box<dyn Front>],
    aside: bool,
) -> Result<Child, Failure> {
    let uri = fronts.first().map_or_else(String::new, |front| front.place());
    let socket = uri.split_once("?socket=").map_or("", |(_, socket)| socket);
    let socket = socket.split_once('&').map_or(socket, |(socket, _)| socket);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", command])
        .env("uri", &uri)
        .env("unixsocket", OsString::from_vec(unescaped(socket).unwrap_or_default()));
    // The first of a kind is set last, and stays.
    for front in fronts.iter().rev() {
        shell.env(front.variable(), front.place());
    }
    if aside {
        shell.stdout(io::stderr());
    }
    // Sockets that were passed to this process are not the command's.
    for variable in activation::VARIABLES {
        shell.env_remove(variable);
    }
    Child::start(&mut shell, command)
}

/// Name of a socket in its own directory.
const NAME: &str = "socket";

/// A directory for one socket; it is removed when the value is dropped.
pub(super) struct Socket(PathBuf);

impl Socket {
    /// A new directory with mode 0700 for temporary files, if it is `wanted`; in /tmp if the usual
    /// place is too deep for the path of a socket.
    pub(super) fn new(wanted: bool) -> Result<Option<Socket>, Failure> {
        if !wanted {
            return Ok(None);
        }
        let number = random::bytes::<8>().map_or(u64::from(std::process::id()), u64::from_le_bytes);
        let places = [std::env::temp_dir(), PathBuf::from("/tmp")]
            .map(|place| place.join(format!("trueline-{number:016x}")));
        let fits = |place: &&PathBuf| place.join(NAME).as_os_str().len() <= LONGEST;
        let directory = places.iter().find(fits).unwrap_or(&places[0]).clone();
        fs::DirBuilder::new()
            .mode(0o700)
            .create(&directory)
            .map_err(|e| format!("make {}: {e}", directory.display()))?;
        Ok(Some(Socket(directory)))
    }

    /// Path of the socket in it.
    pub(super) fn path(&self) -> PathBuf {
        self.0.join(NAME)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // The directory is in a temporary place, which is cleaned up if it cannot be removed here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! Sockets that a service manager opened and passed to this program.
//!
//! # Sources
//! `sd_listen_fds(3)`: descriptors from 3 on, for the process that `LISTEN_PID` names;
//! systemd.socket(5).

#![allow(unsafe_code, reason = "descriptors that were handed over by their numbers")]

use super::listener::Listener;
use crate::error::Error;
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::ffi::OsString;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variables, which are for one process and none of its children.
pub const VARIABLES: [&str; 4] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"];

/// The first descriptor, `SD_LISTEN_FDS_START`.
const FIRST: RawFd = 3;
/// The most sockets accepted; service managers pass far fewer.
const MOST: RawFd = 1024;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The sockets passed to this process, in order; empty if there are none. They belong to the caller
/// from then on: later calls return none.
pub fn sockets() -> Result<Vec<Listener>, Error> {
    let [process, count, names] =
        ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"].map(std::env::var_os);
    let passed = passed(process, count, names, std::process::id())?;
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    passed.into_iter().map(|(number, name)| listener(number, &name)).collect()
}

/// The numbers and names of descriptors passed to process `own`.
fn passed(
    process: Option<OsString>,
    count: Option<OsString>,
    names: Option<OsString>,
    own: u32,
) -> Result<Vec<(RawFd, String)>, Error> {
    let number = |text: Option<OsString>| text.and_then(|text| text.to_str()?.parse::<u32>().ok());
    // The variables may be a parent's that were not removed.
    let (true, Some(count)) = (number(process) == Some(own), count) else { return Ok(Vec::new()) };
    let said = count.to_string_lossy().into_owned();
    let count = number(Some(count))
        .and_then(|count| RawFd::try_from(count).ok())
        .filter(|count| (1..=MOST).contains(count));
    let advice = "start it by a socket unit, or unset LISTEN_PID and LISTEN_FDS";
    let count = count.ok_or_else(|| {
        Error::not(
            "take over",
            "sockets",
            format!("LISTEN_FDS is '{said}', not a number of them"),
            advice,
        )
    })?;
    let names = names.unwrap_or_default().to_string_lossy().into_owned();
    let mut names = names.split(':').map(str::to_owned);
    Ok((FIRST..FIRST + count).map(|number| (number, names.next().unwrap_or_default())).collect())
}

/// The listening socket with descriptor `number`; an error if it is none.
fn listener(number: RawFd, name: &str) -> Result<Listener, Error> {
    let place = if name.is_empty() {
        format!("socket {number}")
    } else {
        format!("socket {number} ({name})")
    };
    let not = |found: String| {
        Error::not(
            "take over",
            &place,
            found,
            "write ListenStream= in the socket unit, and Accept=no",
        )
    };
    // SAFETY: only queried for being open; if it is not, nothing is done to it.
    let open = rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(number) }, FdFlags::CLOEXEC);
    open.map_err(|e| not(e.to_string()))?;
    // SAFETY: it is open, and it was passed to this process to own; `TAKEN` ensures that it is
    // taken once.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    let kind =
        (sockopt::socket_type(&fd), sockopt::socket_acceptconn(&fd), sockopt::socket_domain(&fd));
    let (Ok(SocketType::STREAM), Ok(true), Ok(family)) = kind else {
        return Err(not("it is not a listening stream socket".into()));
    };
    match family {
        AddressFamily::UNIX => Ok(Listener::Unix(UnixListener::from(fd), None)),
        AddressFamily::INET | AddressFamily::INET6 => Ok(Listener::Tcp(TcpListener::from(fd))),
        _ => Err(not("it is neither a Unix socket nor TCP".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_is_for_one_process() {
        let passed = |pid: &str, count: &str, names: Option<&str>| {
            passed(Some(pid.into()), Some(count.into()), names.map(Into::into), 42)
        };
        assert_eq!(
            passed("42", "2", Some("a:b:c")).unwrap(),
            [(3, "a".to_owned()), (4, "b".to_owned())]
        );
        assert_eq!(passed("42", "2", None).unwrap(), [(3, String::new()), (4, String::new())]);
        assert!(passed("41", "2", None).unwrap().is_empty());
        assert!(passed("", "2", None).unwrap().is_empty());
        for wrong in ["0", "-1", "1025", "4294967297", "two", ""] {
            let error = passed("42", wrong, None).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("take over sockets: LISTEN_FDS is '{wrong}', not a")),
                "{error}"
            );
        }
        assert!(super::passed(None, Some("2".into()), None, 42).unwrap().is_empty());
        assert!(super::passed(Some("42".into()), None, None, 42).unwrap().is_empty());
    }
}

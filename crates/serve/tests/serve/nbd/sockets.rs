//! Where a server listens, and what is said where it cannot.

use crate::Scratch;
use crate::skip::skip;
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use std::os::unix::net::UnixListener;
use std::path::Path;
use trueline_host::nbd::listener::Listener;

fn refused(listener: Result<Listener, trueline_host::Error>) -> String {
    listener.err().expect("it is refused").to_string()
}

/// A socket without a listener any more. To close it is not enough: a process that another
/// test makes has a copy of it until it runs its program.
fn dead(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    rustix::net::shutdown(&listener, Shutdown::Both).unwrap();
    listener
}

#[test]
fn a_stale_socket_is_replaced_and_another_servers_is_not() {
    let scratch = Scratch::new();
    let path = scratch.0.join("s");
    let line = |found: &str| format!("listen on {}: {found}", path.display());
    let first = Listener::unix(&path).unwrap();
    assert_eq!(
        refused(Listener::unix(&path)),
        line("another program listens there: end it, or name another socket")
    );
    // Its end leaves nothing behind; that of one which was killed does.
    drop(first);
    assert!(!path.exists());
    drop(dead(&path));
    assert!(path.exists());
    let second = Listener::unix(&path).unwrap();
    // Whose socket has been replaced leaves the other one alone.
    std::fs::remove_file(&path).unwrap();
    let third = Listener::unix(&path).unwrap();
    drop(second);
    assert!(path.exists());
    drop(third);
    assert!(!path.exists());
    std::fs::write(&path, "precious").unwrap();
    assert_eq!(
        refused(Listener::unix(&path)),
        line("it exists and is not a socket: remove it, or name another place")
    );
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}

/// A server whose queue is full does not answer, and is one nevertheless.
#[test]
fn a_busy_server_is_not_waited_for() {
    let scratch = Scratch::new();
    let path = scratch.0.join("s");
    let address = SocketAddrUnix::new(&path).unwrap();
    let socket = |flags| {
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap()
    };
    let server = socket(SocketFlags::CLOEXEC);
    rustix::net::bind(&server, &address).unwrap();
    rustix::net::listen(&server, 0).unwrap();
    let mut waiting = Vec::new();
    loop {
        waiting.push(socket(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK));
        if rustix::net::connect(&waiting[waiting.len() - 1], &address).is_err() {
            break;
        }
    }
    assert!(refused(Listener::unix(&path)).contains("another program listens there"));
}

#[test]
fn places_that_there_are_not() {
    let scratch = Scratch::new();
    let long = scratch.0.join("x".repeat(120));
    let found = format!(
        "a socket's path has at most 107 bytes, and this one has {}",
        long.as_os_str().len()
    );
    let advice = "name a shorter one, or one relative to the working directory";
    assert_eq!(
        refused(Listener::unix(&long)),
        format!("listen on {}: {found}: {advice}", long.display())
    );
    let nowhere = scratch.0.join("no/s");
    assert!(
        refused(Listener::unix(&nowhere))
            .ends_with("no/s: there is no such directory: make it, or name another place")
    );
    // Where any address may be listened on (ip_nonlocal_bind), there is none that is refused.
    if std::net::TcpListener::bind("192.0.2.1:0").is_err() {
        assert_eq!(
            refused(Listener::tcp("192.0.2.1", 0)),
            "listen on 192.0.2.1:0: this machine has no such address: name one that it has, or 0.0.0.0 for all"
        );
    }
    assert!(refused(Listener::tcp("no such host", 1)).starts_with("listen on no such host:1: "));
}

#[test]
fn tcp_on_this_machine_and_beyond() {
    let first = Listener::tcp("127.0.0.1", 0).unwrap();
    let uri = first.uri("p1 a", None);
    let port: u16 = uri
        .strip_prefix("nbd://127.0.0.1:")
        .and_then(|rest| rest.strip_suffix("/p1%20a"))
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        refused(Listener::tcp("127.0.0.1", port)),
        format!(
            "listen on 127.0.0.1:{port}: another program listens there: end it, or name another port"
        )
    );
    assert_eq!(
        first.uri("", Some(Some(Path::new("/c d")))),
        format!("nbds://127.0.0.1:{port}/?tls-certificates=/c%20d")
    );
    assert!(!first.is_reachable());
    assert!(Listener::tcp("0.0.0.0", 0).unwrap().is_reachable());
    match Listener::tcp("::1", 0) {
        Ok(listener) => {
            assert!(!listener.is_reachable() && listener.uri("", None).starts_with("nbd://[::1]:"))
        }
        Err(_) => skip("this machine has no IPv6"),
    }
}

#[test]
fn uris_of_unix_sockets() {
    let scratch = Scratch::new();
    let path = scratch.0.join("s");
    let listener = Listener::unix(&path).unwrap();
    let socket = path.display();
    assert_eq!(listener.uri("s1a", None), format!("nbd+unix:///s1a?socket={socket}"));
    assert_eq!(listener.uri("", Some(None)), format!("nbds+unix:///?socket={socket}"));
    assert_eq!(
        listener.uri("", Some(Some(Path::new("/c")))),
        format!("nbds+unix:///?socket={socket}&tls-certificates=/c")
    );
}

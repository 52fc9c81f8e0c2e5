//! `serve` and foreign clients: TLS, sockets that were passed, images that are in use.

use crate::serve_tls::{has, shell};
use crate::{kill, program, run, run_with, scratch, wait_while_runs, zeroes};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Starts `trueline` with what `from` says as its descriptor 3, as a service manager does.
fn activated(directory: &Path, socket: OwnedFd, environment: &str, arguments: &str) -> crate::Ran {
    let start = format!("exec 3<&0 </dev/null; {environment} exec \"$0\" {arguments}");
    let trueline = program(directory).get_program().to_owned();
    let mut command = Command::new("sh");
    command.args(["-c", &start]).arg(trueline).current_dir(directory).stdin(Stdio::from(socket));
    crate::Ran::of(&command.output().expect("a shell"))
}

/// A visible socket has a server that ends in order, and the socket goes with it. The server is
/// held up before it serves: it has a note to print, and its output is not read.
#[test]
fn it_ends_in_order_as_soon_as_it_can_be_seen() {
    let scratch = scratch();
    let (mut reader, mut full) = UnixStream::pair().expect("two sockets");
    full.set_nonblocking(true).expect("a socket");
    while full.write(&[b'-'; 4096]).is_ok() {}
    full.set_nonblocking(false).expect("a socket");
    let mut serve = program(scratch.path());
    serve
        .args(["serve", "md:1m", "--physical", "4096+512", "--nbd", "unix:s"])
        .stderr(OwnedFd::from(full));
    let mut server = serve.spawn().expect("a server");
    drop(serve);
    let socket = scratch.path().join("s");
    wait_while_runs(&mut server, || socket.exists());
    assert!(kill("-TERM", server.id()));
    let mut said = Vec::new();
    reader.read_to_end(&mut said).expect("a socket");
    assert_eq!(server.wait().expect("a child").code(), Some(0));
    assert!(!socket.exists() && said.windows(6).any(|word| word == b"TL0025"));
}

#[test]
fn sockets_are_taken_over() {
    let scratch = scratch();
    let listener = || {
        let path = scratch.path().join("s");
        let _ = std::fs::remove_file(&path);
        OwnedFd::from(UnixListener::bind(path).expect("a socket"))
    };
    // What the command is told, and that nothing is left of the variables that were for the server.
    let told = "--run 'echo \"$uri\" \"${LISTEN_PID-none}\" \"${LISTEN_FDS-none}\"'";
    let ran = activated(
        scratch.path(),
        listener(),
        "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=nbd",
        &format!("serve md:1m {told}"),
    );
    let path = scratch.path().join("s");
    assert_eq!(ran.ended(0).stdout, format!("nbd+unix:///?socket={} none none\n", path.display()));
    assert!(path.exists(), "the socket is the service manager's");
    if has("nbdinfo") {
        let size = activated(
            scratch.path(),
            listener(),
            "LISTEN_PID=$$ LISTEN_FDS=1",
            "serve md:1m --run 'nbdinfo --size \"$uri\"'",
        );
        assert_eq!(size.ended(0).stdout, "1048576\n");
    }
    let both = activated(
        scratch.path(),
        listener(),
        "LISTEN_PID=$$ LISTEN_FDS=1",
        "serve md:1m --nbd unix:other",
    );
    assert!(both.refused().contains("leave out --nbd"), "{}", both.stderr);
    // The sockets belong to another process.
    let other = activated(scratch.path(), listener(), "LISTEN_PID=1 LISTEN_FDS=1", "serve md:1m");
    assert!(other.refused().starts_with("trueline: serve: where?"), "{}", other.stderr);
    let file = OwnedFd::from(std::fs::File::open("/dev/null").expect("a file"));
    let none = activated(
        scratch.path(),
        file,
        "LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=nbd",
        "serve md:1m",
    );
    assert_eq!(
        none.refused(),
        "trueline: take over socket 3 (nbd): it is not a listening stream socket: write ListenStream= in the socket unit, and Accept=no"
    );
    let few = activated(scratch.path(), listener(), "LISTEN_PID=$$ LISTEN_FDS=20", "serve md:1m");
    assert!(few.refused().starts_with("trueline: take over socket "), "{}", few.stderr);
}

#[test]
fn systemd_starts_it_when_a_client_comes() {
    if !has("systemd-socket-activate") || !has("nbdinfo") {
        return;
    }
    let scratch = scratch();
    let socket = scratch.path().join("s");
    let trueline = program(scratch.path()).get_program().to_owned();
    let mut manager = Command::new("systemd-socket-activate");
    manager
        .arg("-l")
        .arg(&socket)
        .arg(trueline)
        .args(["serve", "md:1m"])
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    let mut manager = manager.spawn().expect("it is installed");
    // The socket exists before it has a listener: __SO_ACCEPTCON in Flags of proc_net_unix(5).
    let listens = |line: &str| {
        line.ends_with(&socket.display().to_string())
            && line.split_whitespace().nth(3) == Some("00010000")
    };
    wait_while_runs(&mut manager, || {
        std::fs::read_to_string("/proc/net/unix").expect("its sockets").lines().any(listens)
    });
    let size = shell(scratch.path(), "nbdinfo --size \"nbd+unix:///?socket=$PWD/s\"");
    manager.kill().expect("a child");
    manager.wait().expect("a child");
    assert_eq!(size, "1048576\n");
}

#[test]
fn an_image_has_one_writer_or_readers() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 20);
    let nested = |outer: &str, inner: &str| {
        let program = program(scratch.path()).get_program().to_string_lossy().into_owned();
        let arguments = format!("exec '{program}' serve {inner} disk --run true");
        let arguments = [
            &["serve"],
            outer.split_whitespace().collect::<Vec<_>>().as_slice(),
            &["disk", "--run", &arguments],
        ]
        .concat();
        run_with(scratch.path(), &arguments)
    };
    assert_eq!(
        nested("", "").refused(),
        "trueline: write disk: another program has locked it, a virtual machine perhaps: release it first, or say --allow-busy"
    );
    assert!(
        nested("", "--read-only")
            .refused()
            .starts_with("trueline: read disk: another program has locked it for writing")
    );
    assert!(
        nested("--read-only", "")
            .refused()
            .starts_with("trueline: write disk: another program has locked it")
    );
    nested("--read-only", "--read-only").ended(0);
    nested("", "--allow-busy").ended(0);
    nested("", "--allow-busy --read-only").ended(0);
}

#[test]
fn an_export_that_is_read_only_is_served_to_be_read() {
    let scratch = scratch();
    let nested = |inner: &str| {
        let program = program(scratch.path()).get_program().to_string_lossy().into_owned();
        let command = format!(
            "exec '{program}' serve {inner} \"nbd+unix:///?socket=$unixsocket\" --run true"
        );
        run_with(scratch.path(), &["serve", "--read-only", "md:1m", "--run", &command])
    };
    assert_eq!(nested("--read-only").code, Some(0));
    assert!(nested("").refused().ends_with(
        "its server exports it read-only: say --read-only or --overlay mem, or let the server export it for writing"
    ));
}

/// The socket of `--run` lies where temporary files do, and elsewhere where that is too deep for a
/// socket.
#[test]
fn temporary_files_may_be_kept_anywhere() {
    let scratch = scratch();
    let deep = scratch.path().join("d".repeat(100));
    std::fs::create_dir(&deep).expect("a directory can be made");
    for place in [scratch.path(), &deep] {
        let mut serve = program(scratch.path());
        serve.env("TMPDIR", place).args([
            "serve",
            "md:1m",
            "--run",
            "echo \"$unixsocket\"; test -S \"$unixsocket\"",
        ]);
        let ran = crate::Ran::of(&serve.output().expect("the program can be run"));
        let socket = Path::new(ran.ended(0).stdout.trim());
        let fits = place.join("trueline-0123456789abcdef/socket").as_os_str().len() <= 107;
        assert_eq!(socket.starts_with(place), fits, "{}", ran.stdout);
        assert!(!socket.exists(), "it is left behind");
    }
}

/// A client that finds no descriptor left waits until another client has gone, and is not
/// disconnected.
#[test]
fn a_client_without_a_descriptor_waits_for_one() {
    let scratch = scratch();
    let trueline = program(scratch.path()).get_program().to_owned();
    let mut shell = Command::new("sh");
    shell
        .args([
            "-c",
            "ulimit -n 47; exec \"$0\" serve md:1m --no-counters --connections 1000 --nbd unix:s",
        ])
        .arg(trueline);
    let mut server = shell
        .current_dir(scratch.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut said = BufReader::new(server.stderr.take().expect("a pipe"))
        .lines()
        .map(|line| line.expect("text"));
    assert!(said.next().is_some_and(|line| line.starts_with("trueline: serving ")));
    let connect = |_| UnixStream::connect(scratch.path().join("s")).expect("it is in the queue");
    let mut clients: Vec<UnixStream> = (0..80).map(connect).collect();
    let line = said.next().expect("a line");
    assert!(
        line.starts_with("trueline: clients wait until others have gone: ")
            && line.ends_with("(ulimit -n)"),
        "{line}"
    );
    // As many go as one program may keep open; all others are greeted.
    let rest = clients.split_off(47);
    drop(clients);
    for mut client in rest.into_iter().rev().take(16) {
        client.set_read_timeout(Some(Duration::from_secs(600))).expect("a socket");
        let mut greeting = [0; 8];
        client.read_exact(&mut greeting).expect("a greeting");
        assert_eq!(&greeting, b"NBDMAGIC");
    }
    server.kill().expect("a child");
    server.wait().expect("a child");
}

#[test]
fn places_that_there_are_not() {
    let scratch = scratch();
    let refused = |place: &str| {
        run(scratch.path(), &format!("serve md:1m --nbd {place}")).refused().to_owned()
    };
    assert!(
        refused("unix:no/s")
            .ends_with("there is no such directory: make it, or name another place")
    );
    // Where any address may be listened on (ip_nonlocal_bind), there is none that is refused.
    if std::net::TcpListener::bind("192.0.2.1:0").is_err() {
        assert!(refused("tcp:192.0.2.1:0").contains("this machine has no such address"));
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    assert_eq!(
        refused(&format!("tcp:{port}")),
        format!(
            "trueline: listen on 127.0.0.1:{port}: another program listens there: end it, or name another port"
        )
    );
    // A server that can be reached without TLS says so.
    let open =
        run_with(scratch.path(), &["serve", "md:1m", "--nbd", "tcp:0.0.0.0:0", "--run", "true"]);
    assert!(
        open.code == Some(0)
            && open
                .stderr
                .contains("every client that reaches this address reads and writes without TLS"),
        "{}",
        open.stderr
    );
    run_with(scratch.path(), &["serve", "md:1m", "--nbd", "tcp:127.0.0.1:0", "--run", "true"])
        .ended(0);
}

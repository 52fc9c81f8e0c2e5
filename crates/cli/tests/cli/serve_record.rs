//! `serve --record`: what becomes of a trace when servers begin, end and die.

use crate::skip::skip;
use crate::{Scratch, program, run, run_with, scratch};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for something that comes far sooner on any machine.
const LONG: Duration = Duration::from_secs(600);

/// Text of the trace.
fn trace(directory: &Path) -> String {
    fs::read_to_string(directory.join("t.trace")).unwrap_or_default()
}

/// A server at the socket `s` that records a memory disk, started by what stands before its name in
/// a shell.
fn server(directory: &Path, before: &str) -> Child {
    let trueline = program(directory).get_program().to_owned();
    let line = format!("{before} exec \"$0\" serve md:1m --record t.trace --nbd unix:s");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &line])
        .arg(trueline)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stderr(Stdio::piped());
    let mut server = shell.spawn().expect("a shell");
    // From then on the socket has a listener, and a signal is heeded.
    let (mut said, mut stderr) =
        (String::new(), BufReader::new(server.stderr.take().expect("a pipe")));
    stderr.read_line(&mut said).expect("a line");
    assert!(said.starts_with("trueline: serving "), "{said}");
    std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    server
}

/// Asks the server at `s` to flush, as a client that stays connected while it is kept.
fn flush(directory: &Path) -> UnixStream {
    let mut client = UnixStream::connect(directory.join("s")).expect("a server");
    // NBD_FLAG_C_FIXED_NEWSTYLE | NBD_FLAG_C_NO_ZEROES; NBD_OPT_EXPORT_NAME of the default export;
    // NBD_CMD_FLUSH.
    client.write_all(&3_u32.to_be_bytes()).expect("a socket");
    client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").expect("a socket");
    client
        .write_all(&[&0x2560_9513_u32.to_be_bytes()[..], &[0, 0, 0, 3], &[0; 20]].concat())
        .expect("a socket");
    client
}

fn signal(server: &Child, name: &str) {
    assert!(
        Command::new("kill")
            .args([name, &server.id().to_string()])
            .status()
            .expect("there is a kill")
            .success()
    );
}

#[track_caller]
fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A directory with a trace in it, and what that says.
fn recorded() -> (Scratch, String) {
    let scratch = scratch();
    let own = format!("'{}' check \"$uri\" >/dev/null; true", env!("CARGO_BIN_EXE_trueline"));
    assert_eq!(
        run_with(scratch.path(), &["serve", "md:1m", "--record", "t.trace", "--run", &own]).code,
        Some(0)
    );
    let before = trace(scratch.path());
    assert!(before.lines().any(|line| line.contains(" R ")), "{before}");
    (scratch, before)
}

#[test]
fn a_server_that_does_not_begin_leaves_the_last_trace() {
    let (scratch, before) = recorded();
    run(scratch.path(), "serve md:1m --record t.trace --nbd unix:no/s").refused();
    assert_eq!(trace(scratch.path()), before);
    assert_eq!(run(scratch.path(), "serve md:1m --record t.trace --run true").code, Some(0));
    assert!(
        trace(scratch.path()).lines().all(|line| !line.contains(" R ")),
        "the next one is in its place"
    );
}

#[test]
fn two_servers_do_not_write_one_trace() {
    let scratch = scratch();
    let own =
        format!("'{}' serve md:2m --record t.trace --run true", env!("CARGO_BIN_EXE_trueline"));
    let both = run_with(
        scratch.path(),
        &["serve", "md:1m", "--record", "t.trace", "--no-counters", "--run", &own],
    );
    let refused = "trueline: record t.trace: another server writes it: name another file";
    assert!(
        both.code == Some(2) && both.stderr.lines().any(|line| line == refused),
        "{}",
        both.stderr
    );
    assert!(trace(scratch.path()).contains("md:1m"));
}

/// Of a server that is killed long after the last request, nothing is missing.
#[test]
fn recorded_requests_are_written_while_no_more_come() {
    let scratch = scratch();
    let mut server = server(scratch.path(), "");
    let _client = flush(scratch.path());
    wait_until("the flush is in the trace", || trace(scratch.path()).ends_with(" F 0 0\n"));
    server.kill().expect("a child");
    server.wait().expect("a child");
}

/// True if a process, by its number or `self`, does not heed SIGHUP.
fn ignores_hangups(process: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let ignored =
        status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("its signals");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("bits, the lowest of signal 1");
    ignored & 1 == 1
}

/// The terminal has gone, or a service manager says so: the server ends as at any other signal,
/// unless it was started not to heed it.
#[test]
fn hanging_up_ends_a_server_in_order() {
    let scratch = scratch();
    // As nohup(1) does.
    let mut kept = server(scratch.path(), "trap '' HUP;");
    let ignored = ignores_hangups(&kept.id().to_string());
    signal(&kept, "-TERM");
    assert!(kept.wait().expect("a child").success());
    assert!(ignored, "SIGHUP is heeded again");
    if ignores_hangups("self") {
        return skip("SIGHUP is ignored here, as below nohup");
    }
    let mut hung = server(scratch.path(), "");
    signal(&hung, "-HUP");
    assert!(hung.wait().expect("a child").success() && !scratch.path().join("s").exists());
}

/// The summary at the end has no reader, for the terminal has gone: the trace is whole all the
/// same.
#[test]
fn an_unread_summary_does_not_end_the_trace() {
    let scratch = scratch();
    let own = format!("'{}' check \"$uri\" >/dev/null 2>&1; true", env!("CARGO_BIN_EXE_trueline"));
    let mut serve = program(scratch.path());
    serve.args([
        "serve",
        "--emulate",
        "--speed",
        "1000",
        "drive:md@1m",
        "--record",
        "t.trace",
        "--run",
        &own,
    ]);
    let full = OpenOptions::new().write(true).open("/dev/full").expect("a device that is full");
    let status = serve.stderr(full).status().expect("the program can be run");
    assert!(status.success(), "{status}");
    assert!(
        trace(scratch.path()).lines().any(|line| line.contains(" R ")),
        "{}",
        trace(scratch.path())
    );
}

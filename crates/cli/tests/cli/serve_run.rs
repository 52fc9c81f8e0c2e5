//! The command of `serve --run` and its children: which are told to end, and which has the
//! terminal.
//!
//! Where `setsid` or `script` is not installed these tests are skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use crate::counters::{here, path};
use crate::{kill, scratch};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Longest wait for something that comes far sooner, on any machine, or never. Processes that the
/// server is to end live longer.
const LONG: Duration = Duration::from_secs(600);

/// A script whose shell, whose shell's child and whose orphan write their numbers down; the child
/// does not listen to SIGTERM.
const FAMILY: &str = r#"( sleep 1200 & echo $! >orphan ) ; sh -c 'trap "" TERM; echo $$ >deaf; n=0; while [ $n -lt 12000 ]; do n=$((n + 1)); sleep 0.1; done' &
sleep 1200 & echo $! >child; echo $$ >shell; wait"#;

/// Waits until `is` holds.
#[track_caller]
fn wait_until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The process whose number is in a file.
fn number(directory: &Path, file: &str) -> Option<u32> {
    fs::read_to_string(directory.join(file)).ok()?.trim().parse().ok()
}

/// True if a process has not ended; one that has and is not waited for has.
fn lives(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// A program that is told to end with its test, if it has not: a server then ends what it started.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            let _ = kill("-TERM", self.0.id());
        }
    }
}

/// A program in `directory`, and what is typed to it.
fn start(directory: &Path, words: &[&str], typed: Stdio) -> Started {
    let mut command = Command::new(words[0]);
    // `script` runs the user's shell: which one that is does not decide a test.
    command
        .args(&words[1..])
        .current_dir(directory)
        .env("PATH", path())
        .env("TERM", "xterm")
        .env("SHELL", "/bin/sh");
    command.env("trueline", env!("CARGO_BIN_EXE_trueline"));
    Started(
        command
            .stdin(typed)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a program can be run"),
    )
}

fn ended(Started(child): &mut Started) -> ExitStatus {
    let mut status = None;
    wait_until("the server has not ended", || {
        status = child.try_wait().expect("a child can be waited for");
        status.is_some()
    });
    status.expect("it has ended")
}

#[test]
fn a_server_that_is_told_to_end_leaves_no_process_behind() {
    if !here(&["setsid"]) {
        return;
    }
    let scratch = scratch();
    let trueline = env!("CARGO_BIN_EXE_trueline");
    let mut server = start(
        scratch.path(),
        &["setsid", trueline, "serve", "md:1m", "--run", FAMILY],
        Stdio::null(),
    );
    let files = ["shell", "child", "orphan", "deaf"];
    wait_until("the command does not run", || {
        files.iter().all(|file| number(scratch.path(), file).is_some())
    });
    let ids = files.map(|file| number(scratch.path(), file).expect("a number"));
    assert_eq!(ids.map(lives), [true; 4]);
    assert!(kill("-TERM", server.0.id()));
    let status = ended(&mut server);
    assert_eq!((status.signal(), ids.map(lives)), (None, [false; 4]), "{ids:?}");
}

/// `script` makes the terminal; its own number is not the server's.
#[test]
fn on_a_terminal_the_command_is_in_the_foreground() {
    if !here(&["script"]) {
        return;
    }
    let scratch = scratch();
    // The terminal stays when the server has ended: hanging up would end the processes that are
    // left.
    let run = |script: &str| {
        fs::write(scratch.path().join("run"), script).expect("a file can be written");
        for file in ["child", "over", "seen"] {
            let _ = fs::remove_file(scratch.path().join(file));
        }
        let serve = "echo $$ >server; exec \"$trueline\" serve md:1m --run \". ./run\"";
        // Ctrl-C is for this shell, too, and not every shell outlives it (bash does, dash does
        // not).
        let shell = format!(
            "trap : INT; sh -c '{serve}'; echo $? >over; until [ -e seen ]; do sleep 0.1; done"
        );
        start(scratch.path(), &["script", "-qfc", &shell, "shown"], Stdio::piped())
    };
    let over = |mut terminal: Started, files: &[&str]| {
        wait_until("the server has not ended", || number(scratch.path(), "over").is_some());
        let ids: Vec<u32> =
            files.iter().map(|file| number(scratch.path(), file).expect("a number")).collect();
        assert!(!ids.iter().copied().any(lives), "{files:?} {ids:?}");
        fs::write(scratch.path().join("seen"), "").expect("a file can be written");
        ended(&mut terminal);
    };
    let typed = |terminal: &mut Started, text: &[u8]| {
        use std::io::Write;
        terminal.0.stdin.as_mut().expect("a pipe").write_all(text).expect("the terminal takes it");
    };
    let ready =
        || wait_until("the command does not run", || number(scratch.path(), "child").is_some());
    // It reads what is typed: a process in the background would be stopped.
    let mut terminal = run("read word; echo \"$word\" >read");
    typed(&mut terminal, b"hello\n");
    over(terminal, &[]);
    assert_eq!(fs::read_to_string(scratch.path().join("read")).expect("it was read"), "hello\n");
    // Ctrl-C is for what the shell runs, too.
    let mut terminal = run(
        "echo $$ >first; sh -c 'trap \"echo >told; exit\" INT; echo $$ >child; n=0; while [ $n -lt 12000 ]; do n=$((n + 1)); sleep 0.1; done'",
    );
    ready();
    typed(&mut terminal, b"\x03");
    over(terminal, &["first", "child"]);
    assert!(scratch.path().join("told").exists());
    // An end of the server alone ends the command and its children as well.
    let terminal = run("echo $$ >first; sleep 1200 & echo $! >child; wait");
    ready();
    assert!(kill("-TERM", number(scratch.path(), "server").expect("a number")));
    over(terminal, &["first", "child"]);
}

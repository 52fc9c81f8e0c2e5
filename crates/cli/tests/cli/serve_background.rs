//! `serve` as a service: in the background, and with a log for programs.

use crate::counters::{at_63, here, path};
use crate::schemas::{fits, hold, schema};
use crate::serve_again::TABLE;
use crate::{Ran, kill, program, run, run_with, scratch, zeroes};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Waits for something that comes soon, or the test fails.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The number in the pidfile `pid`.
fn number(directory: &Path) -> u32 {
    let text = fs::read_to_string(directory.join("pid")).expect("a pidfile");
    text.trim().parse().expect("a number")
}

/// Ends the server of the pidfile, and waits for its end.
fn end(directory: &Path) {
    let number = number(directory);
    assert!(kill("-TERM", number));
    until("its end", || !directory.join("pid").exists());
    until("its end", || !Path::new(&format!("/proc/{number}")).exists());
}

/// Lines of a log, each an object as the schema of lines has it, with documents as theirs have.
#[track_caller]
fn objects(text: &str) -> Vec<Value> {
    text.lines()
        .map(|line| {
            let object: Value =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
            let time = object["time"].as_str().expect("a time");
            assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
            let summary = &object["summary"];
            assert!(summary.is_null() || summary["format"] == "trueline/serve/1", "{line}");
            hold(summary.to_string().as_bytes());
            let serve = schema("serve-1");
            let emulation = json!({ "$ref": "#/$defs/emulation", "$defs": serve["$defs"] });
            if let Some(times) = object.get("emulation") {
                fits(times, &emulation).unwrap_or_else(|why| panic!("emulation: {why}"));
            }
            let mut flat = object.clone();
            for document in ["summary", "emulation"] {
                flat.get_mut(document).into_iter().for_each(|inner| *inner = json!({}));
            }
            fits(&flat, schema("log")).unwrap_or_else(|why| panic!("log.schema.json: {why}"));
            object
        })
        .collect()
}

fn event<'a>(log: &'a [Value], name: &str) -> &'a Value {
    log.iter().find(|line| line["event"] == name).unwrap_or_else(|| panic!("no {name}: {log:?}"))
}

/// The process that was started ends once clients can connect; the one that serves has a session of
/// its own, and holds none of its parent's pipes.
#[test]
fn a_server_in_the_background_is_ready_when_its_parent_ends() {
    let scratch = scratch();
    let mut command = program(scratch.path());
    command.args([
        "serve",
        "md:1m",
        "--no-counters",
        "--nbd",
        "unix:s",
        "--fork",
        "--pidfile",
        "pid",
    ]);
    // It returns when nothing holds the pipes any more.
    let ran = Ran::of(&command.output().expect("the program can be run"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("trueline: serving md:1m at nbd+unix:"), "{}", ran.stderr);
    let mut magic = [0; 8];
    let mut socket = UnixStream::connect(scratch.path().join("s")).expect("it is ready");
    socket.read_exact(&mut magic).expect("it answers");
    assert_eq!(&magic, b"NBDMAGIC");
    drop(socket);
    let server = number(scratch.path());
    let stat = fs::read_to_string(format!("/proc/{server}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    assert_eq!(fields[3], server.to_string(), "its session: {stat}");
    end(scratch.path());
    assert!(!scratch.path().join("s").exists());
}

/// What goes wrong before is its parent's to say.
#[test]
fn a_server_that_cannot_start_says_so_through_its_parent() {
    let scratch = scratch();
    for (words, says) in [
        ("serve nowhere.img --nbd unix:s --fork", "open nowhere.img: "),
        ("serve md:1m --fork", "serve: where? "),
        ("serve md:1m --nbd unix:no/s --fork", "no/s"),
        ("serve md:1m --nbd unix:s --fork --pidfile no/pid", "write no/pid: "),
        ("serve md:1m --nbd unix:s --fork --run true", "--run"),
        ("serve md:1m --nbd unix:s --fork --exit-with-parent", "--exit-with-parent"),
        ("serve md:1m --nbd unix:s --fork --top", "--top"),
    ] {
        let ran = run(scratch.path(), words);
        assert!(ran.refused().contains(says), "{words}: {}", ran.stderr);
    }
    let mut passed = program(scratch.path());
    passed.args(["serve", "md:1m", "--nbd", "unix:s", "--fork"]).env("LISTEN_FDS", "1");
    let ran = Ran::of(&passed.output().expect("the program can be run"));
    assert!(ran.refused().contains("leave --fork out"), "{}", ran.stderr);
}

/// Each line of the log is an object; output into a file goes on in the background.
#[test]
fn a_log_is_objects_a_line_each() {
    let scratch = scratch();
    at_63(scratch.path());
    let words = "serve disk --log-format json --overlay mem --record trace --fault \
        read:error=eio,every=2 --strict --nbd unix:s --pidfile pid --fork";
    let mut command = program(scratch.path());
    command.args(words.split_whitespace());
    let log = scratch.path().join("log");
    command.stderr(File::create(&log).expect("a file"));
    assert!(command.status().expect("the program can be run").success());
    let read = || objects(&fs::read_to_string(&log).expect("a log"));
    let serving = read();
    assert_eq!(event(&serving, "serving")["target"], "disk");
    assert!(event(&serving, "serving")["place"].as_str().is_some_and(|at| at.contains("socket=")));
    end(scratch.path());
    let log = read();
    assert_eq!(event(&log, "overlay")["written_bytes"], 0);
    assert_eq!(event(&log, "fault")["rule"], "read:error=eio,every=2");
    assert_eq!(event(&log, "recording")["requests"], 0);
    assert_eq!(event(&log, "summary")["summary"]["format"], "trueline/serve/1");

    fs::write(scratch.path().join("wrong.toml"), "fro = 1").expect("a file");
    let wrong = "serve md:1m --log-format json --nbd unix:s --config wrong.toml";
    assert_eq!(event(&objects(&run(scratch.path(), wrong).stderr), "error")["level"], "error");
    let failed = run(scratch.path(), "serve nowhere.img --log-format json --nbd unix:s");
    let line = objects(&failed.stderr);
    assert_eq!((failed.code, line.len()), (Some(2), 1), "{}", failed.stderr);
    assert_eq!((&line[0]["event"], &line[0]["level"]), (&"error".into(), &"error".into()));
}

/// The log of a server that ends with its command.
#[track_caller]
fn log_of(directory: &Path, words: &str, command: &str) -> Vec<Value> {
    let words = words.split(' ').chain(["--log-format", "json", "--run", command]);
    objects(&run_with(directory, &words.collect::<Vec<_>>()).stderr)
}

#[test]
fn what_happens_to_a_server_is_an_event_of_its_log() {
    let scratch = scratch();
    let here = scratch.path();
    let log = log_of(here, "serve md:1m --no-counters --nbd tcp:0.0.0.0:0", "true");
    let exposed = event(&log, "exposed");
    assert_eq!(exposed["level"], "warning");
    assert!(exposed["place"].as_str().is_some_and(|at| at.starts_with("0.0.0.0:")), "{exposed}");

    let log = log_of(here, "serve drive:wd10ears@1m --emulate --no-counters --nbd unix:s", "true");
    assert_eq!(event(&log, "emulation")["emulation"]["speed"], 1.0);

    let client =
        format!("! '{}' part create -s mbr \"$uri\" 2>/dev/null", env!("CARGO_BIN_EXE_trueline"));
    let strict = "serve md:8m --physical 16k --strict --no-counters --nbd unix:s";
    let log = log_of(here, strict, &client);
    let refused = event(&log, "refused");
    assert_eq!((&refused["level"], &refused["requests"]), (&"warning".into(), &1.into()));
}

/// A client that sends no requests is cut off; a disk of a set that got shorter cannot be read.
#[test]
fn clients_and_disks_that_fail_are_events_of_the_log() {
    let scratch = scratch();
    let here = scratch.path();
    for disk in ["a.img", "b.img"] {
        zeroes(here, disk, 8 << 20);
    }
    run(here, "mirror label m a.img b.img").ended(0);
    let mut command = program(here);
    let words = "serve a.img,b.img#mirror/m --no-counters --log-format json --nbd unix:s --pidfile \
        pid --fork";
    command.args(words.split_whitespace());
    let log = here.join("log");
    command.stderr(File::create(&log).expect("a file"));
    assert!(command.status().expect("the program can be run").success());
    let mut socket = UnixStream::connect(here.join("s")).expect("it is ready");
    // Flags, NBD_OPT_EXPORT_NAME of the export without a name, and no request.
    socket.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").expect("bytes");
    socket.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("bytes");
    let read = || objects(&fs::read_to_string(&log).expect("a log"));
    until("a line about it", || read().iter().any(|line| line["event"] == "client"));
    File::options().write(true).open(here.join("a.img")).expect("a disk").set_len(0).expect("none");
    File::options().write(true).open(here.join("b.img")).expect("a disk").set_len(0).expect("none");
    let uri = format!("nbd+unix:///?socket={}/s", here.display());
    run_with(here, &["check", &uri]);
    let log = read();
    let failed = event(&log, "read-failed");
    assert_eq!((&failed["disk"], &failed["failed_reads"]), (&"a".into(), &1.into()));
    end(here);
}

/// More providers than are counted: the log of the server has it as an event.
#[test]
fn counters_that_stay_with_what_was_found_are_an_event_of_the_log() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    let does = "
for i in range(16000):
    starts = [64 + 4 * i + n for n in range(4)]
    h.pwrite(table(*[(start, 1) for start in starts]), 0, nbd.CMD_FLAG_FUA)
    if 'counting' in open('log').read(): break
";
    fs::write(scratch.path().join("does"), format!("{TABLE}{does}")).expect("a file");
    let mut command = program(scratch.path());
    command.args(["serve", "md:32m", "--log-format", "json", "--run"]);
    command.arg(r#"nbdsh -u "$uri" -c "$(cat does)""#).env("PATH", path());
    let log = scratch.path().join("log");
    command.stderr(File::create(&log).expect("a file"));
    assert!(command.status().expect("the program can be run").success());
    let log = objects(&fs::read_to_string(&log).expect("a log"));
    let late = event(&log, "counting");
    assert_eq!(late["level"], "warning");
    assert!(late["message"].as_str().is_some_and(|line| line.starts_with("md:32m: ")), "{late}");
}

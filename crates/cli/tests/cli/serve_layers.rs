//! `serve` with drives that take their time, recordings and faults, as QEMU's qemu-io sees them.

use crate::skip::skip;
use crate::{Ran, kill, list, program, run, run_with, scratch, zeroes};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Serves while qemu-io does `commands`; `None`, and it is said, where there is no qemu-io.
fn served(directory: &Path, arguments: &str, commands: &[&str]) -> Option<Ran> {
    if Command::new("qemu-io").arg("--version").stdout(Stdio::null()).status().is_err() {
        skip("no qemu-io here");
        return None;
    }
    let mut client = String::from("qemu-io -f raw -t writeback");
    for command in commands {
        write!(client, " -c '{command}'").expect("a string takes everything");
    }
    client.push_str(" \"$uri\"");
    let arguments = arguments.split_whitespace().chain(["--run", &client]);
    Some(run_with(directory, &["serve"].into_iter().chain(arguments).collect::<Vec<_>>()))
}

/// The cell beneath a heading, in the first row; empty if no row has one.
fn cell<'a>(table: &'a str, heading: &str) -> &'a str {
    let mut lines = table.lines().skip_while(|line| !line.starts_with("where time went"));
    let (head, row) = (lines.next().expect("a heading"), lines.next().expect("a row"));
    let Some(end) = head.find(heading).map(|at| at + heading.len()) else { return "" };
    let upto = row.get(..end).unwrap_or(row);
    if upto.len() < end || upto.ends_with(' ') {
        ""
    } else {
        upto.rsplit(' ').next().unwrap_or_default()
    }
}

/// Two sectors in part a write, or none: however fast the machine is.
#[test]
fn an_emulated_drive_reads_and_modifies_what_is_off_its_sectors() {
    let scratch = scratch();
    for (shift, want) in [(0, ""), (512, "20")] {
        let writes: Vec<String> =
            (0..10).map(|nth| format!("write -f {} 4096", (nth << 20) + shift)).collect();
        let writes: Vec<&str> = writes.iter().map(String::as_str).collect();
        let Some(ran) =
            served(scratch.path(), "--emulate --speed 1000 drive:wd10ears@64m", &writes)
        else {
            return;
        };
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(cell(&ran.stderr, "RMW"), want, "{}", ran.stderr);
    }
}

/// At a speed at which a thousandth of a second of the machine is one of the drive, a stream is not
/// the drive's, and that is said.
#[test]
fn what_of_the_drives_time_is_the_machines_is_said() {
    let scratch = scratch();
    let writes: Vec<String> =
        (0..20).map(|nth| format!("write {} 4096", (1 << 20) + (nth << 12))).collect();
    let writes: Vec<&str> = writes.iter().map(String::as_str).collect();
    let Some(ran) =
        served(scratch.path(), "--emulate --speed 1000 drive:wd10ears@64m --json", &writes)
    else {
        return;
    };
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let emulation = &ran.json()["emulation"];
    let streams = list(emulation, "kinds")
        .iter()
        .find(|kind| kind["op"] == "write" && kind["pattern"] == "sequential");
    let streams = streams.unwrap_or_else(|| panic!("{emulation:#}"));
    assert_eq!(
        (&streams["requests"], &streams["is_the_drives"], &emulation["speed"]),
        (&19.into(), &false.into(), &1000.0.into())
    );
    let number =
        |of: &Value, key: &str| of[key].as_f64().unwrap_or_else(|| panic!("{key}: {emulation:#}"));
    assert!(
        number(streams, "machine_ns") > number(streams, "drive_ns")
            && number(emulation, "true_speed") < 100.0,
        "{emulation:#}"
    );
    assert!(ran.stderr.contains("at --speed 1000 this machine's own work took "), "{}", ran.stderr);
    let says = ran
        .stderr
        .lines()
        .find(|line| line.starts_with("ratios of "))
        .unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(
        says.contains(
            "sequential writes are therefore this machine's, not the drive's: \
        measure them at --speed "
        ),
        "{says}"
    );
}

/// Its image is what was written; what is behind it has no room.
#[test]
fn a_simulated_drive_writes_its_image() {
    let scratch = scratch();
    let image = scratch.path().join("disk.img");
    zeroes(scratch.path(), "disk.img", 1 << 20);
    let commands =
        ["write -P 7 4096 512", "read -P 7 4096 512", "read -P 0 2m 4096", "write 2m 512", "flush"];
    for target in
        ["drive:wd10ears@4m=disk.img", "--emulate --speed 1000 drive:wd10ears@4m=disk.img"]
    {
        let Some(ran) = served(scratch.path(), target, &commands) else { return };
        assert!(
            ran.stdout.contains("read 512/512 bytes at offset 4096"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        assert!(
            ran.stdout.contains("read 4096/4096 bytes at offset 2097152"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        assert!((ran.stdout + &ran.stderr).contains("No space left on device"));
        let bytes = fs::read(&image).expect("the image can be read");
        assert_eq!((bytes.len(), &bytes[4095..4098]), (1 << 20, &[0, 7, 7][..]));
        zeroes(scratch.path(), "disk.img", 1 << 20);
    }
    let Some(ran) = served(scratch.path(), "--read-only drive:wd10ears=disk.img", &["write 0 512"])
    else {
        return;
    };
    assert_ne!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let Some(ran) = served(
        scratch.path(),
        "--emulate --drive wd10ears --speed 1000 disk.img",
        &["write -f -P 9 0 512"],
    ) else {
        return;
    };
    assert_eq!(
        (ran.code, fs::read(&image).expect("the image can be read")[0]),
        (Some(0), 9),
        "{}",
        ran.stderr
    );
}

#[test]
fn which_drive_is_emulated_has_to_be_said_once() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    for (arguments, want) in [
        ("--emulate disk.img", "--drive wd10ears puts the target on one"),
        ("--emulate md:1m", "--drive wd10ears puts the target on one"),
        ("--emulate --drive wd10ears drive:md@1m", "the target names a drive already"),
        (
            "--emulate --drive wd10ears@4k md:1m",
            "md:1m has 1048576 bytes and the drive 4096: give the drive a size: say --drive wd10ears@1048576",
        ),
        ("--emulate --drive wd10ears=disk.img md:1m", "write MODEL or MODEL@SIZE"),
        ("--emulate --drive nonesuch disk.img", "no model 'nonesuch'"),
        (
            "drive:wd10ears@1m=disk.img,drive:wd10ears@1m=disk.img#stripe/data",
            "disk.img is named twice",
        ),
        ("--record disk.img md:1m", "it is there and no trace"),
        ("--record nowhere/t md:1m", "no such file"),
    ] {
        let ran = run(scratch.path(), &format!("serve {arguments} --run true"));
        assert!(ran.refused().contains(want), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn a_recording_is_what_replay_takes() {
    let scratch = scratch();
    let commands = ["write 0 64k", "write -f 64k 4k", "read 0 4k", "flush", "read 1m 512"];
    let Some(ran) = served(scratch.path(), "md:64m --record t.trace", &commands) else { return };
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let trace = fs::read_to_string(scratch.path().join("t.trace")).expect("a trace");
    let requests: Vec<Vec<&str>> = trace
        .lines()
        .skip(1)
        .filter(|l| !l.starts_with('#'))
        .map(|l| l.split(' ').skip(1).collect())
        .collect();
    for want in [
        ["W", "0", "65536"],
        ["WF", "65536", "4096"],
        ["R", "0", "4096"],
        ["F", "0", "0"],
        ["R", "1048576", "512"],
    ] {
        assert!(requests.iter().any(|request| *request == want), "{want:?}: {trace}");
    }
    assert!(
        ran.stderr.contains(&format!("t.trace: {} requests", requests.len())),
        "{}",
        ran.stderr
    );
    let replayed = run(
        scratch.path(),
        "bench replay --trace t.trace --offset 0 drive:wd10ears@64m --runs 1 --json",
    );
    let document = replayed.ended(0).json();
    assert_eq!(
        document["variants"][0]["runs"][0]["ops"],
        requests.len() as u64,
        "{}",
        replayed.stdout
    );
    assert_eq!(list(&document, "variants").len(), 1);
}

/// A trace that is ended by a signal is whole.
#[test]
fn a_signal_ends_a_recording_in_order() {
    let scratch = scratch();
    let arguments = ["serve", "md:64m", "--record", "t.trace", "--nbd", "unix:s"];
    let mut server = program(scratch.path())
        .args(arguments)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be run");
    // From then on the socket has a listener, and a signal is heeded.
    let mut said = String::new();
    let mut stderr = BufReader::new(server.stderr.take().expect("a pipe"));
    stderr.read_line(&mut said).expect("a line");
    assert!(said.starts_with("trueline: serving "), "{said}");
    let rest = std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
    let mut client = Command::new("qemu-io");
    client
        .current_dir(scratch.path())
        .args(["-f", "raw", "-t", "writeback", "-c", "write 0 4k", "nbd+unix:///?socket=s"])
        .stdout(Stdio::null());
    let asked = client.status();
    let killed = kill("-TERM", server.id());
    let ended = server.wait().expect("a child");
    assert!(killed && ended.success(), "{ended}");
    rest.join().expect("it reads").expect("a pipe");
    if asked.is_err() {
        return skip("no qemu-io here");
    }
    let trace = fs::read_to_string(scratch.path().join("t.trace")).expect("a trace");
    assert!(
        trace.ends_with('\n') && trace.lines().any(|line| line.ends_with(" W 0 4096")),
        "{trace}"
    );
}

#[test]
fn the_request_that_is_to_fail_fails() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    let fault = "disk.img --fault read:error=eio,offset=512k..513k --fault \
        write:error=enospc,offset=512k..513k --fault write:torn,offset=0..64k --fault \
        discard:error=eperm,after=1000";
    let commands =
        ["read 512k 512", "read 0 512", "write 512k 512", "write -P 5 64k 512", "write -P 6 0 32k"];
    let Some(ran) = served(scratch.path(), fault, &commands) else { return };
    let said = format!("{}{}", ran.stdout, ran.stderr);
    for want in [
        "read failed: Input/output error",
        "read 512/512 bytes at offset 0",
        "write failed: No space left on device",
        "wrote 512/512 bytes at offset 65536",
        "write failed: Input/output error",
        "fault read:error=eio,offset=512k..513k: 1 of ",
        "fault write:torn,offset=0..64k: 1 of ",
        "fault discard:error=eperm,after=1000: 0 of ",
    ] {
        assert!(said.contains(want), "{want}: {said}");
    }
    let bytes = fs::read(scratch.path().join("disk.img")).expect("the image can be read");
    let torn = bytes.iter().position(|&byte| byte != 6).expect("not all of it is written");
    assert!(
        torn < 32 << 10 && torn % 512 == 0 && bytes[torn..64 << 10].iter().all(|&byte| byte == 0),
        "{torn}"
    );
    assert_eq!(bytes[64 << 10], 5);
}

#[test]
fn what_is_no_fault_says_how_one_is_written() {
    let ran = run(scratch().path(), "serve md:1m --run true --fault write:broken");
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("OP:WHAT[,WHEN...]"), "{}", ran.stderr);
    let ran = run(scratch().path(), "serve md:1m --run true --speed 10");
    assert!(ran.code == Some(2) && ran.stderr.contains("--emulate"), "{}", ran.stderr);
}

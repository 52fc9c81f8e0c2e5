//! `serve` as a client of itself: targets that another server has, and sectors of another size.

use crate::skip::skip;
use crate::{Ran, run, run_with, scratch, zeroes};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trueline");

/// Serves `target` while the program runs with `arguments`, in which `URI` is where the server is.
pub(super) fn while_served(directory: &Path, target: &str, arguments: &str) -> Ran {
    let command = format!("'{}' {}", PROGRAM, arguments.replace("URI", "\"$uri\""));
    let served = ["serve"].into_iter().chain(target.split_whitespace()).chain([
        "--no-counters",
        "--run",
        &command,
    ]);
    run_with(directory, &served.collect::<Vec<_>>())
}

/// An MBR with a partition at sector 63, as fdisk made it in 2010.
fn off_the_grain(directory: &Path) {
    zeroes(directory, "disk.img", 64 << 20);
    for command in ["part create -s mbr disk.img", "part add -t freebsd -b 63 -s 32m disk.img"] {
        let ran = run(directory, command);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
}

#[test]
fn the_phase_goes_through() {
    let scratch = scratch();
    off_the_grain(scratch.path());
    let ran = while_served(scratch.path(), "disk.img#s1", "check --json URI");
    let grains =
        ran.json()["targets"][0]["providers"][0]["grains"].as_array().expect("grains").clone();
    let unit = grains.iter().find(|grain| grain["why"] == "physical").expect("a unit");
    assert_eq!(
        (&unit["size"], &unit["phase"], &unit["source"]),
        (&4096.into(), &512.into(), &"nbd".into())
    );
    assert!(
        ran.stderr.contains("note TL0025 s1: 4096-byte units begin at byte 512"),
        "{}",
        ran.stderr
    );
    // Nothing is to be said where units begin with the export.
    let ran = while_served(scratch.path(), "disk.img --physical 512", "check --fail-on error URI");
    assert!(
        ran.stdout.contains("s1") && !ran.stderr.contains("TL0025"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_partition_inside_of_what_another_server_has_is_written_through_both() {
    let scratch = scratch();
    off_the_grain(scratch.path());
    let ran = while_served(scratch.path(), "disk.img", "part show URI");
    assert!(ran.stdout.contains("freebsd"), "{}{}", ran.stdout, ran.stderr);
    let inner = "serve --no-counters URI#s1 --run 'qemu-io -f raw -c \"write -P 7 0 512\" -c \
        flush \"$uri\"'";
    if Command::new("qemu-io").arg("--version").output().is_err() {
        return skip("no qemu-io here");
    }
    let command = format!("'{}' {}", PROGRAM, inner.replace("URI", "\"$uri\""));
    let ran = run_with(scratch.path(), &["serve", "disk.img", "--no-counters", "--run", &command]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let bytes = fs::read(scratch.path().join("disk.img")).expect("the image");
    assert!(bytes[63 * 512..64 * 512].iter().all(|&byte| byte == 7) && bytes[64 * 512] == 0);
}

#[test]
fn what_a_server_refuses_is_said() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    let command = format!(
        "'{}' serve --no-counters \"$uri\" --run true; '{}' check nbd+unix:///none?socket=$unixsocket",
        PROGRAM, PROGRAM
    );
    let ran = run_with(
        scratch.path(),
        &["serve", "--read-only", "disk.img", "--no-counters", "--run", &command],
    );
    assert_eq!(ran.code, Some(2), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("its server exports it read-only"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the server has no export of that name"), "{}", ran.stderr);
}

/// A disk of 4096-byte sectors refuses parts of one.
#[test]
fn a_sector_that_is_said_is_kept_to() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    if Command::new("qemu-io").arg("--version").output().is_err() {
        return skip("no qemu-io here");
    }
    // QEMU keeps to what is advertised by itself; the other program here is told of nothing.
    let inner = format!(
        "'{}' serve --no-counters --logical 512 \"$uri\" --run 'qemu-io -f raw -c \"write -P 7 512 512\" \"$uri\"'",
        PROGRAM
    );
    let ran = run_with(
        scratch.path(),
        &["serve", "disk.img", "--logical", "4096", "--no-counters", "--run", &inner],
    );
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let bytes = fs::read(scratch.path().join("disk.img")).expect("the image");
    assert_eq!(
        (bytes[511], bytes[512], bytes[1023], bytes[1024]),
        (0, 7, 7, 0),
        "read, changed and written back"
    );
}

/// A disk of a server is called by its URI, as it was typed.
#[test]
fn a_disk_of_a_server_has_a_name() {
    let scratch = scratch();
    let created =
        while_served(scratch.path(), "md:1m", "part create -s gpt URI").ended(0).stdout.clone();
    assert!(created.starts_with("nbd+unix:///") && created.ends_with(" created\n"), "{created}");
}

/// A mirror of which one disk has a bad spot: the other answers, and a line says so.
#[test]
fn a_disk_that_fails_is_said_while_its_mirror_answers() {
    let scratch = scratch();
    let here = scratch.path();
    for name in ["a.img", "b.img"] {
        zeroes(here, name, 8 << 20);
    }
    run(here, "mirror label m a.img b.img").ended(0);
    let bytes: Vec<u8> = (0..1u32 << 20).flat_map(|n| n.to_le_bytes()).collect();
    for name in ["a.img", "b.img"] {
        let file = fs::OpenOptions::new().write(true).open(here.join(name)).expect("an image");
        file.write_all_at(&bytes, 1 << 20).expect("it is written");
    }
    let inner = format!(
        "'{PROGRAM}' serve -r \"$uri,b.img#mirror/m\" --run 'dd if=/dev/null of=out status=none; nbdcopy \"$uri\" out'"
    );
    if Command::new("nbdcopy").arg("--version").output().is_err() {
        return skip("no nbdcopy here");
    }
    let fault = "read:error=eio,offset=2m..3m";
    let words = ["serve", "-r", "--fault", fault, "a.img", "--run", inner.as_str()];
    let served = run_with(here, &words);
    assert_eq!(served.code, Some(0), "{}", served.stderr);
    let out = fs::read(here.join("out")).expect("what was copied");
    assert!(out[1 << 20..][..bytes.len()] == bytes[..], "what is copied is not what was there");
    let said = "another copy, or parity, answers where there is one";
    assert!(served.stderr.contains(said), "{}", served.stderr);
}

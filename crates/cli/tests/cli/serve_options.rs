//! `serve`: options that other NBD servers have, and a test of alignment.
//!
//! Tests of a client that is not installed are skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use crate::counters::{at_63, here, serve};
use crate::{kill, program, run, scratch, zeroes};
use rustix::fs::{FlockOperation, flock};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_pidfile_is_there_as_long_as_the_server_serves() {
    let scratch = scratch();
    let pidfile = scratch.path().join("pid");
    let arguments = ["serve", "md:1m", "--no-counters", "--nbd", "unix:s", "--pidfile", "pid"];
    fs::write(&pidfile, "1\n").expect("an old one");
    // Any user may lock a directory that it can read; that keeps no server from serving.
    let directory = fs::File::open(scratch.path()).expect("a directory");
    flock(&directory, FlockOperation::LockExclusive).expect("a lock");
    let mut server = program(scratch.path())
        .args(arguments)
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be run");
    until("a pidfile", || {
        fs::read_to_string(&pidfile).is_ok_and(|text| text == format!("{}\n", server.id()))
    });
    // The server is there once it is.
    assert!(scratch.path().join("s").exists());
    // While it runs the file is its own; nothing is left of the server that would have had it.
    let ran = run(scratch.path(), "serve md:1m --nbd unix:other --pidfile pid --run true");
    let wanted = format!("write pid: the process {} serves and has it", server.id());
    assert!(ran.refused().contains(&wanted), "{}", ran.stderr);
    let mut left: Vec<_> = fs::read_dir(scratch.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["pid", "s"]);
    assert!(kill("-TERM", server.id()));
    assert!(server.wait().expect("a child").success() && !pidfile.exists());
    zeroes(scratch.path(), "disk.img", 1 << 20);
    for name in ["disk.img", ".", "nowhere/pid"] {
        let ran = run(scratch.path(), &format!("serve md:1m --pidfile {name} --run true"));
        assert!(ran.refused().contains(&format!("write {name}: ")), "{}", ran.stderr);
    }
}

#[test]
fn it_ends_with_its_parent() {
    let scratch = scratch();
    let serve = format!(
        "'{}' serve md:1m --no-counters --nbd unix:s --exit-with-parent --pidfile pid",
        env!("CARGO_BIN_EXE_trueline")
    );
    let mut parent = Command::new("sh");
    parent
        .args(["-c", &format!("{serve} & while ! test -e pid; do sleep 0.05; done")])
        .current_dir(scratch.path())
        .stderr(Stdio::null());
    assert!(parent.status().expect("a shell").success());
    // The shell has ended, and so has the server, in order.
    until("its end", || !scratch.path().join("pid").exists());
}

#[test]
fn the_export_has_the_name_that_it_is_given() {
    if !here(&["nbdinfo"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let script = "nbdinfo --list \"$uri\"; ! nbdinfo \"nbd+unix:///?socket=$unixsocket\" 2>&1; \
        nbdinfo --size \"$uri\"; echo \"$uri\"";
    let ran = serve(scratch.path(), "disk --no-counters --export db/1", script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let exports: Vec<&str> =
        ran.stdout.lines().filter(|line| line.starts_with("export=")).collect();
    assert_eq!(exports, ["export=\"db/1\":", "export=\"s1\":"], "{}", ran.stdout);
    assert!(
        ran.stdout.contains("\n33554432\n") && ran.stdout.contains("nbd+unix:///db"),
        "{}",
        ran.stdout
    );
    let named =
        serve(scratch.path(), "disk#s1 --no-counters --export s1", "nbdinfo --list \"$uri\"");
    assert_eq!(named.stdout.matches("export=").count(), 1, "{}", named.stdout);
}

#[test]
fn a_range_is_served_and_nothing_else() {
    if !here(&["nbdsh", "nbdinfo"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let script = "set -eu
        nbdinfo --list \"$uri\" | grep -c ^export=; nbdinfo --map=trueline:grain \"$uri\"
        nbdsh -u \"$uri\" -c 'h.pwrite(b\"a\" * 4096, 0); assert h.get_size() == 8192; \
        h.set_strict_mode(0)
try: h.pread(1, 8192)
except nbd.Error: pass
else: assert False'";
    let ran = serve(scratch.path(), "disk --no-counters --offset 32256+8k", script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    // The drive's units begin where they did: sector 63 is 3584 bytes into one.
    assert_eq!(
        words,
        ["1", "0", "512", "0", "512", "4096", "4096", "4608", "3584", "0"],
        "{}",
        ran.stdout
    );
    let disk = fs::read(scratch.path().join("disk")).expect("the disk");
    assert!(
        disk[32255] == 0 && disk[32256..36352].iter().all(|&byte| byte == b'a') && disk[36352] == 0
    );
    // Of a partition, and what is counted is where it is.
    let write = "nbdsh -u \"$uri\" -c 'h.pwrite(bytes(4096), 0)'";
    let ran = serve(scratch.path(), "disk#s1 --offset 512 --json", write);
    let served: serde_json::Value = serde_json::from_str(&ran.stdout).expect("a document");
    assert_eq!(served["layers"][0]["writes"]["aligned"], 1, "{}", ran.stdout);
    for (range, want) in [
        ("32m", "the target has 33554432 bytes"),
        ("1m+32m", "32505856 bytes are there"),
        ("x", "not a size"),
    ] {
        let ran = run(scratch.path(), &format!("serve disk --offset {range} --run true"));
        assert!(ran.refused().contains(want), "{range}: {}", ran.stderr);
    }
}

#[test]
fn strict_refuses_what_is_off_the_grain_and_says_so_at_the_end() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let python = |lines: &str| format!("nbdsh -u \"$uri\" -c '\nimport errno\n{lines}'");
    let good = python(
        "h.pwrite(bytes(8192), 512); h.zero(4096, 4608); h.pread(3, 1); h.trim(10, 3); h.pwrite(bytes(4096), 16 * 1048576 - 7680)",
    );
    let ran = serve(scratch.path(), "disk#s1 --no-counters --strict", &good);
    assert_eq!((ran.code, ran.stderr.contains("strict")), (Some(0), false), "{}", ran.stderr);
    let refused = "
for ask in (lambda: h.pwrite(bytes(4096), 0), lambda: h.pwrite(bytes(512), 512), lambda: \
        h.zero(4096, 4096)):
    try: ask()
    except nbd.Error as e: assert e.errnum == errno.EINVAL
    else: assert False";
    let ran = serve(scratch.path(), "disk#s1 --no-counters --strict", &python(refused));
    let said = "strict: 3 requests were off the grain and refused, the first a write of 4096 bytes \
        at 0 of s1, whose 4096-byte units begin at byte 512";
    assert!(ran.code == Some(1) && ran.stderr.contains(said), "{:?} {}", ran.code, ran.stderr);
    // The command's own failure is its own.
    assert_eq!(
        serve(
            scratch.path(),
            "disk#s1 --no-counters --strict",
            &format!("{}; exit 7", python(refused))
        )
        .code,
        Some(7)
    );
    let reads = python(
        "
try: h.pread(512, 0)
except nbd.Error as e: assert e.errnum == errno.EINVAL
else: assert False",
    );
    assert_eq!(serve(scratch.path(), "disk#s1 --no-counters --strict=all", &reads).code, Some(1));
}

#[test]
fn a_read_that_flips_a_bit_says_nothing() {
    if !here(&["nbdsh"]) {
        return;
    }
    let script = "nbdsh -u \"$uri\" -c '
found = [h.pread(4096, 0) for i in range(4)]
assert [sum(bin(b).count(\"1\") for b in one) for one in found] == [0, 1, 0, 1], found'";
    let ran = serve(scratch().path(), "md:1m --no-counters --fault read:flip,every=2", script);
    assert!(
        ran.code == Some(0)
            && ran.stderr.contains("fault read:flip,every=2: 2 of 4 requests, number 2, 4"),
        "{}",
        ran.stderr
    );
}

/// An option of nbdkit or qemu-nbd is answered with ours.
#[test]
fn options_of_other_servers_are_told_ours() {
    let scratch = scratch();
    for (options, want) in [
        ("-p 10809", "say --nbd tcp:PORT"),
        ("--port=10809", "say --nbd tcp:PORT"),
        ("-U -", "say --nbd unix:PATH"),
        ("--unix s", "say --nbd unix:PATH"),
        ("-k s", "say --nbd unix:PATH"),
        ("--socket=s", "say --nbd unix:PATH"),
        ("-f raw", "served as raw bytes"),
        ("-t", "stays until it is ended"),
        ("--persistent", "stays until it is ended"),
        ("-e 4", "say --connections N"),
        ("-x name", "say --export NAME"),
        ("--export-name=name", "say --export NAME"),
        ("-o 512", "say --offset N"),
        ("-P pid", "say --pidfile FILE"),
        ("--pid-file=pid", "say --pidfile FILE"),
        ("-s", "say --overlay mem"),
        ("-c /dev/nbd0", "say --ublk"),
        ("--filter=cow", "--overlay (cow)"),
        ("-v", "say --top"),
        ("--readonly", "say --read-only"),
        ("-b 0.0.0.0", "say --nbd tcp:ADDRESS:PORT"),
    ] {
        let ran = run(scratch.path(), &format!("serve md:1m {options}"));
        let option = options.split([' ', '=']).next().unwrap_or_default();
        let said = format!("trueline: {option} is no option of serve: ");
        assert!(
            ran.code == Some(2) && ran.stderr.starts_with(&said) && ran.stderr.contains(want),
            "{options}: {}",
            ran.stderr
        );
    }
    let ran = serve(scratch.path(), "md:1m --no-counters -r", "true");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(scratch.path(), "serve md:1m --nonsense");
    assert!(ran.code == Some(2) && !ran.stderr.contains("no option of serve"), "{}", ran.stderr);
}

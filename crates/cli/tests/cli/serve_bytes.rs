//! `serve`: what clients may ask without knowing of sectors, and what they are told.
//!
//! Tests of a client that is not installed are skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use crate::counters::{at_63, here, path, serve};
use crate::{Ran, program, run, scratch, zeroes};
use std::fs;
use std::path::Path;

/// Serves while `script` runs, which has to succeed.
#[track_caller]
fn served(directory: &Path, target: &str, script: &str) -> Ran {
    let ran = serve(directory, &format!("{target} --no-counters"), &format!("set -eu\n{script}"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// libnbd refuses by itself what is smaller than the least size of an export.
#[test]
fn clients_that_keep_to_the_least_size_read_and_write_any_byte() {
    if !here(&["nbdsh", "nbdinfo"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    let odd =
        "h.pwrite(b\"abc\", 5); assert h.pread(3, 0) + h.pread(5, 4) == bytes(3) + b\"\\0abc\\0\"";
    for target in
        ["disk.img", "md:1m", "disk.img --direct", "--emulate --speed 1000 drive:wd10ears@1m"]
    {
        served(scratch.path(), target, &format!("nbdsh -u \"$uri\" -c '{odd}'"));
    }
    let least = |target: &str| {
        let told = served(scratch.path(), target, "nbdinfo \"$uri\"").stdout;
        told.lines()
            .find_map(|line| line.trim().strip_prefix("block_size_minimum: ").map(str::to_owned))
            .expect(&told)
    };
    assert_eq!(
        ["disk.img", "disk.img --logical 4096", "disk.img --logical 512"].map(least),
        ["1", "4096", "512"]
    );
}

#[test]
fn nbdfuse_makes_a_file_of_it() {
    if !here(&["nbdfuse", "nbdsh"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    let script = "mkdir mnt; nbdfuse mnt/file \"$uri\" & i=0
        while ! test -e mnt/file; do i=$((i+1)); test $i -lt 100; sleep 0.1; done
        printf odd | dd of=mnt/file bs=1 seek=1001 conv=notrunc status=none; cmp -n 3 -i 0:1001 \
        /dev/stdin mnt/file <<X
odd
X
        umount mnt; wait";
    let ran = served(scratch.path(), "disk.img", script);
    assert_eq!(
        &fs::read(scratch.path().join("disk.img")).expect("the image")[1000..1005],
        b"\0odd\0",
        "{}",
        ran.stderr
    );
}

/// Tables for 4096-byte sectors are found through a server as they are on the disk.
#[test]
fn sectors_of_another_size_go_through() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 64 << 20);
    for command in [
        "part create --logical 4096 -s gpt disk.img",
        "part add --logical 4096 -t linux-data -s 32m disk.img",
    ] {
        run(scratch.path(), command).ended(0);
    }
    let program = env!("CARGO_BIN_EXE_trueline");
    let ran = served(
        scratch.path(),
        "disk.img",
        &format!("'{program}' check --json --fail-on error \"$uri\""),
    );
    let document: serde_json::Value = serde_json::from_str(&ran.stdout).expect("a document");
    let providers = crate::list(&document["targets"][0], "providers");
    let sectors: Vec<_> =
        providers.iter().map(|p| (p["provider"].as_str(), p["sector_size"].as_u64())).collect();
    assert!(sectors.contains(&(Some("p1"), Some(4096))), "{sectors:?}");
}

#[test]
fn zeroes_are_announced_as_read_only() {
    if !here(&["nbdinfo"]) {
        return;
    }
    let told =
        served(scratch().path(), "zero:1m", "nbdinfo \"$uri\"; ! nbdinfo --can write \"$uri\"");
    assert!(told.stdout.contains("is_read_only: true"), "{}", told.stdout);
}

#[test]
fn an_invalid_argument_reaches_the_client_as_one() {
    if !here(&["nbdsh"]) {
        return;
    }
    let faults = "--fault read:error=einval --fault write:error=einval";
    let script = "nbdsh -u \"$uri\" -c '
import errno
for ask in (lambda: h.pread(512, 0), lambda: h.pwrite(bytes(512), 0)):
    try: ask()
    except nbd.Error as e: assert e.errnum == errno.EINVAL, e
    else: assert False
'";
    served(scratch().path(), &format!("md:1m {faults}"), script);
}

#[test]
fn a_recording_of_odd_bytes_is_replayed() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    let script = "nbdsh -u \"$uri\" -c 'h.pwrite(b\"abc\", 5); h.pread(3, 1000); \
        h.pwrite(bytes(4096), 511)'";
    served(scratch.path(), "md:64m --record t.trace", script);
    let replayed = run(
        scratch.path(),
        "bench replay --trace t.trace --offset 0 drive:wd10ears@64m --runs 1 --json",
    );
    let document = replayed.ended(0).json();
    // Two writes are a read and a write each.
    assert_eq!(document["variants"][0]["runs"][0]["ops"], 5, "{}", replayed.stdout);
    assert!(
        replayed.stdout.contains("3 of 3 requests of the trace are not whole sectors"),
        "{}",
        replayed.stdout
    );
}

/// A file of `--fuse` is mapped by programs that share what they write, from Linux 6.6 on.
#[test]
fn files_are_mapped_shared() {
    if !here(&["python3"]) || !Path::new("/dev/fuse").exists() {
        return;
    }
    let version = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = version.split(['.', '-']).map_while(|word| word.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) < (Some(6), Some(6)) {
        return println!("skipped: Linux {version} maps no such file");
    }
    let scratch = scratch();
    at_63(scratch.path());
    fs::create_dir(scratch.path().join("mnt")).expect("a directory");
    let script = "exec python3 -c '
import mmap, os
f = os.open(os.environ[\"file\"], os.O_RDWR)
m = mmap.mmap(f, 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=1 << 20)
m[5:8] = b\"abc\"
m.flush()
assert os.pread(f, 5, (1 << 20) + 4) == b\"\\0abc\\0\"
os.pwrite(f, b\"x\", (1 << 20) + 6)
assert m[5:8] == b\"axc\"
m[70000] = 1
'";
    let mut command = program(scratch.path());
    let ran = command
        .args(["serve", "disk", "--no-counters", "--fuse", "mnt", "--run", script])
        .env("PATH", path())
        .output();
    let ran = ran.expect("the program can be run");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let disk = fs::read(scratch.path().join("disk")).expect("the disk");
    assert_eq!(
        (&disk[(1 << 20) + 4..(1 << 20) + 9], disk[(1 << 20) + 70000]),
        (&b"\0axc\0"[..], 1)
    );
}

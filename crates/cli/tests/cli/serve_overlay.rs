//! `serve --overlay`: targets that are tried without a byte of them changed, and what survives a
//! kill.
//!
//! Tests of a client that is not installed are skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use crate::counters::{at_63, here, path, serve};
use crate::{Ran, kill, program, run, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Serves with an overlay while `script` runs, which has to succeed.
#[track_caller]
fn served(directory: &Path, options: &str, script: &str) -> Ran {
    let ran = serve(directory, &format!("{options} --no-counters"), &format!("set -eu\n{script}"));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// A shell's command that runs lines in nbdsh.
fn nbdsh(python: &str) -> String {
    format!("nbdsh -u \"$uri\" -c '{python}'")
}

/// All of a file, and when it was written.
fn seen(path: &Path) -> (Vec<u8>, std::time::SystemTime) {
    (
        fs::read(path).expect("a file"),
        fs::metadata(path).and_then(|found| found.modified()).expect("a time"),
    )
}

#[test]
fn what_is_written_is_kept_or_discarded_and_the_target_stays() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    at_63(scratch.path());
    let mut file = fs::read(&disk).expect("the disk");
    file[1 << 20..2 << 20].fill(7);
    fs::write(&disk, &file).expect("the disk");
    let before = seen(&disk);
    let write = nbdsh(
        "h.pwrite(b\"abc\", 5 << 20, nbd.CMD_FLAG_FUA); h.zero(70000, 1 << 20); h.trim(8192, (1 << 20) + 131072); h.flush()",
    );
    let look = nbdsh(
        "assert h.pread(5, (5 << 20) - 1) == b\"\\0abc\\0\"; b = h.pread(1 << 20, 1 << 20); assert \
            b[:70000] == bytes(70000) and b[70000:131072] == b\"\\7\" * (131072 - 70000) and \
            b[131072:131072 + 8192] == bytes(8192)",
    );
    // In memory it is there until the end.
    let ran = served(scratch.path(), "disk --overlay mem", &format!("{write}; {look}"));
    assert!(
        ran.stderr.contains(
            "overlay mem: 8192 bytes of written blocks and 77824 bytes (76 KiB) of zeroed or discarded ones are gone now; disk is unchanged"
        ),
        "{}",
        ran.stderr
    );
    assert!(before == seen(&disk));
    // In a file for the next one, of the disk and of its partition.
    served(scratch.path(), "disk --overlay changes", &write);
    assert!(before == seen(&disk));
    let ran = served(scratch.path(), "disk --overlay changes", &look);
    assert!(ran.stderr.contains("kept for the next time"), "{}", ran.stderr);
    let inside = nbdsh("assert h.pread(3, (5 << 20) - 63 * 512) == b\"abc\"");
    served(scratch.path(), "disk#s1 --overlay changes --read-only", &inside);
    // It takes little room.
    let room = std::os::unix::fs::MetadataExt::blocks(
        &fs::metadata(scratch.path().join("changes")).expect("a file"),
    ) * 512;
    assert!(room < 1 << 20, "{room}");
    assert!(before == seen(&disk));
}

/// Tables that are written through it are found through it alone.
#[test]
fn a_table_in_an_overlay_is_tasted() {
    if !here(&["sfdisk", "nbdsh"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 << 20);
    fs::create_dir(scratch.path().join("mnt")).expect("a directory");
    let write = |more: &str| {
        let mut command = program(scratch.path());
        command
            .args([
                "serve",
                "disk",
                "--overlay",
                "changes",
                "--no-counters",
                "--fuse",
                "mnt",
                "--run",
                more,
            ])
            .env("PATH", path());
        let ran = Ran::of(&command.output().expect("the program can be run"));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    write(
        "printf 'label: dos\\nstart=63,size=2048,type=83\\n' | sfdisk -q --no-reread --no-tell-kernel \"$file\"",
    );
    assert!(write("ls mnt").contains("s1"));
    let checked = run(scratch.path(), "check --json --fail-on error disk").ended(0).json();
    assert_eq!(crate::list(&checked["targets"][0], "providers").len(), 1);
}

#[test]
fn the_status_says_what_was_written() {
    if !here(&["nbdsh", "nbdinfo"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let script = format!(
        "{}; nbdinfo --map=trueline:overlay \"$uri\"",
        nbdsh("h.pwrite(bytes(4096), 63 * 512); h.zero(1 << 20, 2 << 20)")
    );
    let map = |ran: Ran| -> Vec<[u64; 3]> {
        let row = |line: &str| {
            let mut words = line.split_whitespace().map(|word| word.parse().expect("a number"));
            [
                words.next().expect("an offset"),
                words.next().expect("a length"),
                words.next().expect("flags"),
            ]
        };
        ran.stdout.lines().map(row).collect()
    };
    let end = 32 << 20;
    let want = [
        [0, 28672, 0],
        [28672, 8192, 1],
        [36864, (2 << 20) - 36864, 0],
        [2 << 20, 1 << 20, 3],
        [3 << 20, end - (3 << 20), 0],
    ];
    assert_eq!(map(served(scratch.path(), "disk --overlay mem", &script)), want);
    // Of a partition, in its own bytes.
    let inside = format!(
        "{}; nbdinfo --map=trueline:overlay \"$uri\"",
        nbdsh("h.pwrite(bytes(4096), 28672 + 512)")
    );
    let found = map(served(scratch.path(), "disk#s1 --overlay mem", &inside));
    assert_eq!(
        found,
        [[0, 28672 + 512, 0], [28672 + 512, 4096, 1], [28672 + 4608, (16 << 20) - 28672 - 4608, 0]]
    );
    let listed = served(scratch.path(), "disk", "nbdinfo \"$uri\"").stdout;
    assert!(!listed.contains("trueline:overlay"), "{listed}");
}

/// A read-only export of another server on a misaligned drive: as slow as on it, and nothing
/// happens to it.
#[test]
fn a_remote_target_that_is_read_only_is_put_on_a_drive() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let before = seen(&scratch.path().join("disk"));
    let program = env!("CARGO_BIN_EXE_trueline");
    let write = nbdsh(
        "b = bytes([9]) * 4096\nfor i in range(10): h.pwrite(b, i << 20, nbd.CMD_FLAG_FUA)\nassert h.pread(4096, 9 << 20) == b",
    );
    fs::write(scratch.path().join("write.sh"), write).expect("a file");
    for (provider, rmw) in [("#s1", true), ("", false)] {
        let inner = format!(
            "'{program}' serve --no-counters --overlay mem --emulate --drive wd10ears --speed 1000 \"$uri{provider}\" --run 'sh write.sh'"
        );
        let ran = served(scratch.path(), "disk --read-only", &inner);
        // A write off the drive's sectors is two of them in part.
        let row = ran
            .stderr
            .lines()
            .skip_while(|line| !line.starts_with("where time went"))
            .nth(1)
            .expect("a drive")
            .to_owned();
        assert_eq!(
            row.split_whitespace().any(|word| word == "20"),
            rmw,
            "{provider}: {}",
            ran.stderr
        );
    }
    assert!(before == seen(&scratch.path().join("disk")));
    // Without an overlay nothing can be written there, and the message says so.
    let inner = format!("'{program}' serve --emulate --drive wd10ears \"$uri#s1\" --run true");
    let ran = serve(scratch.path(), "disk --read-only --no-counters", &inner);
    assert!(
        ran.stderr.contains("its server exports it read-only: say --read-only")
            && ran.stderr.contains("--overlay"),
        "{}",
        ran.stderr
    );
}

/// Every kind of disk takes an overlay and a drive.
#[test]
fn any_target_is_put_on_a_drive_under_an_overlay() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 20);
    let write =
        nbdsh("h.pwrite(b\"abc\", 511); h.flush(); assert h.pread(5, 510) == b\"\\0abc\\0\"");
    for target in ["md:1m", "zero:1m", "disk", "drive:wd10ears@1m", "drive:wd10ears@2m=disk"] {
        served(scratch.path(), &format!("{target} --overlay mem"), &write);
        if !target.starts_with("drive:") {
            served(
                scratch.path(),
                &format!("{target} --overlay mem --emulate --drive wd10ears@2m --speed 1000"),
                &write,
            );
        }
    }
    served(scratch.path(), "md:1m --emulate --drive wd10ears --speed 1000", &write);
    // What lies behind an image has room in the overlay.
    served(
        scratch.path(),
        "drive:wd10ears@2m=disk --overlay mem",
        &nbdsh("h.pwrite(b\"x\" * 4096, 1536 << 10); h.flush()"),
    );
    assert!(fs::read(scratch.path().join("disk")).expect("the disk").iter().all(|&byte| byte == 0));
}

#[test]
fn an_overlay_of_something_else_is_refused() {
    let scratch = scratch();
    zeroes(scratch.path(), "a", 1 << 20);
    zeroes(scratch.path(), "b", 2 << 20);
    fs::write(scratch.path().join("text"), "something else").expect("a file");
    served(scratch.path(), "a --overlay changes", "true");
    let refused = |arguments: &str, want: &str| {
        let ran = run(scratch.path(), &format!("serve {arguments} --run true"));
        assert!(ran.refused().contains(want), "{arguments}: {}", ran.stderr);
    };
    refused(
        "b --overlay changes",
        "it was made over 1048576 bytes, and b has 2097152: name a new file, or the disks that it was made over",
    );
    refused("a --overlay text", "it is there and no overlay of this version: name a new file");
    refused("a --overlay a", "put an overlay over a: it is that disk itself: name a new file");
    refused("a --overlay .", "it is a directory");
    refused("a --overlay nowhere/changes", "no such file");
    refused("a --overlay missing --read-only", "no such file");
    fs::write(scratch.path().join("a"), vec![1; 1 << 20]).expect("a file");
    refused("a --overlay changes", "made over other content than a has now");
}

/// A server that is killed while a client writes: what was flushed is there.
#[test]
fn what_was_flushed_survives_a_kill() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 << 20);
    let write = r"
import os, struct
h.connect_unix('s')
at = 0
for n in range(1, 1 << 30):
    for i in range(8):
        # Odd places: most blocks are written in part.
        h.pwrite(struct.pack('<Q', n) * 100, (i << 20) + 300)
    h.zero(4096 * 3, (9 << 20) + (n % 64) * 12288)
    h.flush()
    with open('flushed', 'w') as f: f.write(str(n))
";
    fs::write(scratch.path().join("write.py"), write).expect("a file");
    for round in 0..4_u32 {
        // A server that was killed leaves its socket.
        for left in ["flushed", "s"] {
            let _ = fs::remove_file(scratch.path().join(left));
        }
        let serve = ["serve", "disk", "--overlay", "changes", "--no-counters", "--nbd", "unix:s"];
        let mut server = program(scratch.path())
            .args(serve)
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be run");
        wait_for(&scratch.path().join("s"));
        let mut client = Command::new("nbdsh");
        client
            .args(["-c", "exec(open(\"write.py\").read())"])
            .current_dir(scratch.path())
            .env("PATH", path())
            .stderr(Stdio::null());
        let mut client = client.spawn().expect("nbdsh");
        wait_for(&scratch.path().join("flushed"));
        std::thread::sleep(Duration::from_millis(u64::from(30 + 70 * round)));
        assert!(kill("-KILL", server.id()));
        server.wait().expect("a child");
        client.wait().expect("a child");
        let flushed = fs::read_to_string(scratch.path().join("flushed")).expect("a number");
        let look = format!(
            "import struct\nfor i in range(8):\n  b = h.pread(1400, i << 20)\n  n, = \
                struct.unpack_from(\"<Q\", b, 300)\n  assert n >= int(\"{flushed}\" or 1), (n, i)\
                \n  assert b[:300] == bytes(300) and b[1100:] == bytes(300)"
        );
        served(scratch.path(), "disk --overlay changes", &nbdsh(&look));
    }
    assert!(fs::read(scratch.path().join("disk")).expect("the disk").iter().all(|&byte| byte == 0));
}

fn wait_for(path: &Path) {
    let end = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < end, "{} never came", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

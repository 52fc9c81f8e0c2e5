//! Targets that `bench` does not write over, and the options that make it.

use crate::loops::sh;
use crate::skip::skip;
use crate::{program, run, scratch, wait_while_runs, zeroes};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const WRITE: &str =
    "bench random-write --buffered --bs 512 --offset 0 --runs 2 --warmup 0 --count 5";

/// A refusal that says `why`, after which the file is as it was.
#[track_caller]
fn refused(directory: &Path, file: &str, arguments: &str, why: &str) {
    let before = fs::read(directory.join(file)).expect("the disk");
    let ran = run(directory, &format!("{WRITE} {arguments}"));
    assert!(ran.refused().contains(why), "{arguments}: {}", ran.stderr);
    assert!(before == fs::read(directory.join(file)).expect("the disk"), "{arguments}: written to");
}

#[test]
fn a_table_or_a_file_system_is_lost_only_if_that_is_said() {
    for (golden, provider, found) in [
        ("bsd-freebsd", "", "there is an MBR with 1 partition"),
        ("ext-ext3-at-63", "#s1", "ext3"),
        ("ext-ext2-1k", "", "ext2"),
    ] {
        let scratch = crate::golden(golden);
        refused(scratch.path(), "disk", &format!("disk{provider}"), found);
        refused(
            scratch.path(),
            "disk",
            &format!("--allow-busy disk{provider}"),
            "say --destructive to lose it: nothing was written",
        );
        run(scratch.path(), &format!("{WRITE} --destructive disk{provider} --json")).ended(0);
    }
}

#[test]
fn a_partition_that_begins_with_its_own_label_is_not_written() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 16 << 20);
    for made in ["part create -s bsd disk", "part add -t freebsd-ufs -b 0 -s 4096 disk"] {
        run(scratch.path(), made).ended(0);
    }
    refused(
        scratch.path(),
        "disk",
        "disk#a",
        "its first sectors hold a BSD label, that of the disk: say --destructive to lose it: nothing was written",
    );
    run(scratch.path(), &format!("{WRITE} --destructive disk#a")).ended(0);
}

#[test]
fn an_image_that_another_program_has_locked_is_not_written() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 20);
    // Another process: what a process has locked does not keep itself off.
    let hold = "import fcntl, sys, time\nf = open('disk', 'r+b')\nfcntl.lockf(f, \
        fcntl.LOCK_EX)\nprint('held', flush=True)\nsys.stdin.read()";
    let held = Command::new("python3")
        .args(["-c", hold])
        .current_dir(scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut held) = held else { return skip("no python3 here, to hold a lock") };
    let mut said = String::new();
    BufReader::new(held.stdout.take().expect("a pipe")).read_line(&mut said).expect("a line");
    assert_eq!(said, "held\n");
    refused(scratch.path(), "disk", "disk", "another program has locked it");
    refused(scratch.path(), "disk", "--destructive disk", "release it first, or say --allow-busy");
    run(scratch.path(), &format!("{WRITE} --allow-busy disk")).ended(0);
    drop(held.stdin.take());
    held.wait().expect("it ends");
    run(scratch.path(), &format!("{WRITE} --destructive disk")).ended(0);
}

#[test]
fn a_mounted_loop_device_is_not_written() {
    let scratch = scratch();
    let make = "truncate -s 16m disk && mkfs.ext4 -q disk && mkdir mnt && d=$(losetup --find \
        --show disk) && { mount $d mnt || { losetup -d $d; false; }; } && echo $d";
    let Some(device) = sh(scratch.path(), make) else {
        return skip(
            "no mounted loop devices here (root, losetup, mkfs.ext4, mount and the loop driver)",
        );
    };
    let ran = |more: &str, target: &str| run(scratch.path(), &format!("{WRITE} {more} {target}"));
    let (recognised, used, image) =
        (ran("", &device), ran("--destructive", &device), ran("--destructive", "disk"));
    let read = run(
        scratch.path(),
        &format!("bench random-read --buffered --offset 0 --runs 2 --count 5 {device} --json"),
    );
    let tree = run(scratch.path(), "bench tree --files 20 --runs 2 --warmup 0 mnt --json");
    let left = sh(scratch.path(), "ls -A mnt");
    let allowed = ran("--destructive --allow-busy", &device);
    sh(scratch.path(), &format!("umount mnt; losetup -d {device}"));
    assert!(
        recognised.refused().contains("ext4") && recognised.stderr.contains("--destructive"),
        "{}",
        recognised.stderr
    );
    assert!(
        used.refused().contains("is mounted at") && used.stderr.contains("--allow-busy"),
        "{}",
        used.stderr
    );
    assert!(
        image.refused().contains("is a loop device over it: release it first, or say --allow-busy"),
        "{}",
        image.stderr
    );
    assert!(
        read.ended(0).json()["variants"][0]["runs"][0]["host_reads"].is_number(),
        "a device counts its reads: {}",
        read.stdout
    );
    tree.ended(0);
    assert_eq!(left.as_deref(), Some("lost+found"));
    // Since Linux 6.8 a mounted device may refuse every writer (CONFIG_BLK_DEV_WRITE_MOUNTED).
    assert!(allowed.code == Some(0) || allowed.refused().contains(&device), "{}", allowed.stderr);
}

/// Reads that a block device has done (`Documentation/admin-guide/iostats.rst`).
fn reads(device: &str) -> u64 {
    let name = device.trim_start_matches("/dev/");
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap_or_default();
    stat.split_whitespace().next().and_then(|reads| reads.parse().ok()).unwrap_or(0)
}

/// A loop device, which goes with its test.
struct Loop(String);

impl Drop for Loop {
    fn drop(&mut self) {
        sh(Path::new("/"), &format!("losetup --detach {}", self.0));
    }
}

#[test]
fn of_a_device_that_shrinks_the_finished_runs_are_shown() {
    let scratch = scratch();
    let make = "truncate -s 16m disk && d=$(losetup --find --show disk) && { losetup \
        --set-capacity $d || { losetup -d $d; false; }; } && echo $d";
    let Some(device) = sh(scratch.path(), make) else {
        return skip("no loop devices here (root, losetup and the loop driver)");
    };
    let own = Loop(device.trim().to_owned());
    let device = own.0.as_str();
    // More than are done before this program comes to look, however late.
    const RUNS: &str = "10000";
    let work = [
        "bench",
        "random-read",
        "--count",
        "1000",
        "--runs",
        RUNS,
        "--warmup",
        "0",
        "--json",
        device,
    ];
    // The device counts on from what it showed before.
    let before = reads(device);
    let mut running = program(scratch.path())
        .args(work)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // Many runs of both variants: a search for a table reads less.
    wait_while_runs(&mut running, || reads(device) >= before + 20_000);
    let shrunk =
        sh(scratch.path(), &format!("truncate -s 0 disk && losetup --set-capacity {device}"));
    let ended = running.wait_with_output().expect("it ends");
    assert!(shrunk.is_some());
    assert_eq!(ended.status.code(), Some(2), "{ended:?}");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(
        said.contains("of 1000 requests failed, the first: ")
            && said.ends_with(": the runs before it are shown\n"),
        "{said}"
    );
    let document: serde_json::Value = serde_json::from_slice(&ended.stdout).expect("a document");
    assert!(document["ended"].as_str().is_some_and(|why| why.contains("requests failed")));
    for nth in 0..2 {
        let runs = document["variants"][nth]["runs"].as_array().expect("runs");
        assert!(
            (1..10_000).contains(&runs.len()) && runs.iter().all(|run| run["ops"] == 1000),
            "{}",
            runs.len()
        );
    }
}

/// Zeroes take no writes: the workload is refused before it runs.
#[test]
fn a_disk_of_zeroes_is_not_written() {
    let scratch = scratch();
    let refused = run(scratch.path(), "bench random-write --count 10 --runs 1 zero:1m");
    assert!(refused.refused().contains("zero: takes no writes: use md:SIZE"));
    run(scratch.path(), "bench random-read --count 10 --runs 1 --json zero:1m").ended(0);
}

//! `trace`: what a device gets, counted against what fio says it has sent; the kernel's tracing is
//! left as it was.
//!
//! Tracing needs root, tracefs, loop devices and fio; what is skipped is printed, and with
//! `TRUELINE_ORACLE=all` a failure. tracefs is mounted for the tests alone, in a mount namespace.

use crate::loops::{LOOPS, Loop, PARTITIONS, can, sh};
use crate::recipe::Scratch;
use crate::terminal::show;
use crate::{Ran, program, scratch, zeroes};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const MIB: u64 = 1 << 20;
/// Runs its arguments where tracefs is mounted, and nothing of other tests: what is mounted here
/// too would not be unmounted there.
pub(crate) const MOUNTED: &str = "grep /trueline- /proc/mounts | while read -r _ place _; do \
    umount --lazy $place; done; mountpoint -q /sys/kernel/tracing || mount -t tracefs nodev \
    /sys/kernel/tracing || exit 1; exec \"$@\"";
/// Runs its arguments where tracefs is not mounted.
const UNMOUNTED: &str = "umount /sys/kernel/debug/tracing /sys/kernel/tracing; exec \"$@\"";

/// `trueline trace` in a mount namespace of its own, which `prepare` prepares.
pub(crate) fn tracing(directory: &Path, prepare: &str, arguments: &[&str]) -> Command {
    let own = program(directory);
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", prepare, "sh"])
        .arg(own.get_program())
        .arg("trace")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

pub(crate) fn traced(directory: &Path, arguments: &[&str]) -> Ran {
    Ran::of(&tracing(directory, MOUNTED, arguments).output().expect("unshare can be run"))
}

/// True where devices can be traced, and fio sends them requests.
pub(crate) fn able() -> bool {
    can("tracing", "command -v fio") && traceable()
}

/// True where devices can be traced.
pub(crate) fn traceable() -> bool {
    let needs = format!(
        "{{ {LOOPS}; }} && unshare --mount --propagation private sh -c '{}' sh \
            test -d /sys/kernel/tracing/events/block",
        MOUNTED.replace('\'', "")
    );
    can("tracing", &needs)
}

/// A disk of 64 MiB whose partition `s1` begins at sector 63.
pub(crate) fn disk() -> Scratch {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 * MIB);
    for edit in ["part create -s mbr disk", "part add -t linux-data -b 63 disk"] {
        let ran = program(scratch.path()).args(edit.split(' ')).output().expect("it runs");
        assert!(ran.status.success(), "{edit}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    scratch
}

/// A job of fio: `count` requests of `size` bytes from byte `offset` on, one at a time. It
/// complains of other tests' devices that come and go while it looks at all of them.
pub(crate) fn job(device: &str, kind: &str, size: u64, offset: u64, count: u64) -> String {
    format!(
        "fio --name=job --filename={device} --direct=1 --ioengine=psync --rw={kind} --bs={size} \
            --offset={offset} --size=8M --number_ios={count} --output=/dev/null 2>/dev/null"
    )
}

pub(crate) fn number(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path}: {document:#}"))
}

/// The only layer of that name.
pub(crate) fn layer<'a>(document: &'a Value, name: &str) -> &'a Value {
    let layers = document["layers"].as_array().expect("layers");
    let mut found = layers.iter().filter(|layer| layer["provider"] == name);
    let own = found.next().unwrap_or_else(|| panic!("no layer {name}: {document:#}"));
    assert!(found.next().is_none(), "{document:#}");
    own
}

#[test]
fn what_fio_sends_is_counted_to_the_request_and_blamed_on_its_layer() {
    if !able() {
        return;
    }
    let scratch = disk();
    let device = Loop::new(scratch.path(), "");
    let jobs = [
        // On the grain of the disk, on that of the partition, and less than a unit.
        job(&device.0, "randwrite", 4096, 8 * MIB, 500),
        job(&device.0, "randwrite", 4096, 63 * 512 + 16 * MIB, 300),
        job(&device.0, "randread", 512, 32 * MIB, 200),
    ];
    let run = jobs.join(" && ");
    let arguments = ["--unit", "4096", "--json", &device.0, "--run", &run, "--record", "requests"];
    let ran = traced(scratch.path(), &arguments);
    ran.ended(0);
    let document = ran.json();
    assert_eq!(document["format"], "trueline/trace/1");
    for (path, count) in [
        ("/requests/reads", 200),
        ("/requests/writes", 800),
        ("/bytes/reads", 200 * 512),
        ("/bytes/writes", 800 * 4096),
        ("/lost", 0),
        ("/outside", 0),
        ("/latency_ns/writes/aligned/count", 500),
        ("/latency_ns/writes/misaligned/count", 300),
        ("/latency_ns/reads/partial/count", 200),
    ] {
        assert_eq!(number(&document, path), count, "{path}");
    }
    let s1 = layer(&document, "s1");
    for (path, count) in [
        ("/unit", 4096),
        ("/writes/aligned", 500),
        ("/writes/misaligned", 300),
        ("/reads/partial", 200),
        ("/blamed_requests/writes", 300),
        ("/blame/remainder", 3584),
        // Each misaligned write touches two units, and reads both first.
        ("/device_operations/writes", 500 + 300 * 4),
    ] {
        assert_eq!(number(s1, path), count, "{path}");
    }
    let of_fio = |process: &&Value| process["name"] == "fio";
    let processes = document["processes"].as_array().expect("processes");
    let misaligned = |process: &Value| number(process, "/writes/misaligned");
    let by_fio: u64 = processes.iter().filter(of_fio).map(misaligned).sum();
    assert_eq!(by_fio, 300, "{document:#}");

    // The same requests to the same disk, from the recording.
    let again = program(scratch.path())
        .args(["trace", "--replay", "requests", "--unit", "4096", "--json", "disk"])
        .output();
    let again = Ran::of(&again.expect("it runs"));
    let replayed = again.ended(0).json();
    for key in ["reads", "writes", "requests", "blamed_requests", "histogram"] {
        assert_eq!(layer(&replayed, "s1")[key], s1[key], "{key}");
    }
    // To no disk at all, by units of 16 KiB: what a drive of them would have to do.
    let again = program(scratch.path())
        .args(["trace", "--replay", "requests", "--unit", "16k", "--json"])
        .output();
    let larger = Ran::of(&again.expect("it runs")).ended(0).json();
    assert_eq!(number(layer(&larger, ""), "/reads/partial"), 200);
    assert_eq!(
        number(layer(&larger, ""), "/writes/partial")
            + number(layer(&larger, ""), "/writes/misaligned"),
        800
    );
    let repeated = program(scratch.path())
        .args(["bench", "replay", "--trace", "requests", "drive:md@64m", "--runs", "1", "--json"])
        .output();
    let repeated = Ran::of(&repeated.expect("it runs")).json();
    assert_eq!(number(&repeated, "/variants/0/runs/0/ops"), 1000);
}

#[test]
fn a_partition_of_the_kernels_is_traced_as_a_disk_of_its_own() {
    if !able() || !can("partitions of loop devices", PARTITIONS) {
        return;
    }
    let scratch = disk();
    let device = Loop::new(scratch.path(), "");
    sh("/", &format!("partx --add {}", device.0)).expect("the kernel takes the partition");
    let partition = format!("{}p1", device.0);
    let run = [
        job(&partition, "randwrite", 4096, MIB, 100),
        // To the disk, in front of the partition and in it.
        job(&device.0, "randread", 512, 0, 50).replace("--size=8M", "--size=16k"),
        job(&device.0, "randread", 4096, 16 * MIB, 25),
    ]
    .join(" && ");
    let ran = traced(scratch.path(), &["--unit", "4096", "--json", &partition, "--run", &run]);
    let document = ran.ended(0).json();
    assert_eq!(number(&document, "/requests/writes"), 100, "{document:#}");
    assert_eq!(number(&document, "/requests/reads"), 25, "{document:#}");
    // A unit is the drive's, whichever of its partitions is named.
    assert_eq!(number(layer(&document, ""), "/writes/misaligned"), 100, "{document:#}");
    assert_eq!(number(layer(&document, ""), "/reads/aligned"), 25, "{document:#}");
    // One that begins in front of it is outside, and so is none of its layers'.
    let run = format!("dd if={} of=/dev/null iflag=direct bs=64k count=1", device.0);
    let before = traced(scratch.path(), &["--json", &partition, "--run", &run]).json();
    assert_eq!((number(&before, "/outside"), number(&before, "/requests/reads")), (1, 0));
    // It is gone, and its disk is not.
    let run = format!("partx --delete {}; exec sleep 60", device.0);
    let gone = traced(scratch.path(), &["--json", &partition, "--run", &run]);
    assert!(gone.stderr.contains("the device is gone"), "{}", gone.stderr);
    assert_eq!(gone.code, Some(2));
}

#[test]
fn every_kind_of_request_is_counted_and_named_in_a_recording() {
    let makes = "truncate -s 4M disk && d=$(losetup --find --show disk) && blkdiscard -z $d && \
        blkdiscard $d; s=$?; losetup --detach $d; exit $s";
    if !able() || !can("discards of loop devices", makes) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 16 * MIB);
    let device = Loop::new(scratch.path(), "");
    let run = format!(
        "blkdiscard -z -o 1M -l 64k {0} && blkdiscard -o 4M -l 128k {0} && dd if=/dev/zero of={0} \
            bs=4k count=3 oflag=direct,dsync status=none",
        device.0
    );
    let arguments = ["--json", &device.0, "--run", &run, "--record", "requests"];
    let document = traced(scratch.path(), &arguments).ended(0).json();
    for (path, count) in [
        ("/bytes/zeroes", 64 << 10),
        ("/bytes/trims", 128 << 10),
        ("/requests/writes", 3),
        ("/other", 0),
    ] {
        assert_eq!(number(&document, path), count, "{path}: {document:#}");
    }
    let kinds = number(&document, "/requests/zeroes") + number(&document, "/requests/trims");
    assert!(number(&document, "/flushes") >= 3, "{document:#}");
    let again = program(scratch.path())
        .args(["trace", "--replay", "requests", "--json"])
        .output()
        .expect("it runs");
    let replayed = Ran::of(&again).ended(0).json();
    assert_eq!(number(&replayed, "/flushes"), number(&document, "/flushes"));
    assert_eq!(number(&replayed, "/other"), kinds);
    // A disk that has grown meanwhile: what is behind its old end is outside.
    let run = format!(
        "truncate -s 32M disk && losetup --set-capacity {0} && dd if={0} of=/dev/null iflag=direct \
            bs=4k skip=5000 count=7",
        device.0
    );
    let grown = traced(scratch.path(), &["--json", &device.0, "--run", &run]).json();
    assert_eq!(number(&grown, "/outside"), 7, "{grown:#}");
}

#[test]
fn a_device_without_queues_is_traced_until_it_is_gone() {
    let makes = "n=$(cat /sys/class/zram-control/hot_add) && echo $n > \
        /sys/class/zram-control/hot_remove";
    if !able() || !can("zram", makes) {
        return;
    }
    let add = "n=$(cat /sys/class/zram-control/hot_add) && echo 16M > /sys/block/zram$n/disksize \
        && echo $n";
    let scratch = scratch();
    let number_of = sh("/", add).expect("zram has a device more");
    let device = format!("/dev/zram{number_of}");
    let remove = format!("echo {number_of} > /sys/class/zram-control/hot_remove");
    let run = job(&device, "randwrite", 4096, MIB, 120);
    let ran = traced(scratch.path(), &["--json", &device, "--run", &run]);
    let document = ran.ended(0).json();
    assert_eq!(number(&document, "/requests/writes"), 120, "{document:#}");
    assert_eq!(number(&document, "/latency_ns/writes/aligned/count"), 120, "{document:#}");
    // Removed while it is traced: what was counted until then is shown.
    let run = format!("{run}; {remove}; exec sleep 60");
    let began = Instant::now();
    let ran = traced(scratch.path(), &["--json", &device, "--run", &run]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let gone = !Path::new(&device).exists();
    assert!(gone || sh("/", &remove).is_some(), "{device} stays");
    assert!(ran.stderr.contains("the device is gone"), "{}", ran.stderr);
    assert!(began.elapsed() < Duration::from_secs(50), "it waits for the command");
    assert_eq!(number(&ran.json(), "/requests/writes"), 120);
}

#[test]
fn an_instance_that_a_killed_trace_left_is_removed_by_the_next() {
    if !able() {
        return;
    }
    let scratch = disk();
    let device = Loop::new(scratch.path(), "");
    let mut command = tracing(scratch.path(), MOUNTED, &[&device.0]);
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it can be run");
    // The instance is seen from the namespace of the trace.
    let instances = format!("/proc/{0}/root/sys/kernel/tracing/instances", child.id());
    let own = format!("trueline-{}-", child.id());
    let names = |of: &str| -> Vec<String> {
        let entries = fs::read_dir(of).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let until = Instant::now() + Duration::from_secs(60);
    while !names(&instances).iter().any(|name| name.starts_with(&own)) {
        assert!(Instant::now() < until, "no instance");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let list = "ls /sys/kernel/tracing/instances; cat /sys/kernel/tracing/set_event";
    let left = traced(scratch.path(), &["--seconds", "0.1", &device.0, "--run", list]);
    left.ended(0);
    assert!(!left.stdout.contains(&own), "{}", left.stdout);
    // Events that another program switches off are missing, and that is said.
    for file in ["tracing_on", "events/block/block_rq_issue/enable"] {
        let own = "/sys/kernel/tracing/instances/trueline-$PPID-*";
        let off = format!("for i in {own}; do echo 0 > $i/{file}; done");
        let cut = traced(scratch.path(), &["--json", &device.0, "--run", &off]);
        assert_eq!(cut.code, Some(2), "{file}: {}", cut.stderr);
        assert!(cut.stderr.contains("switched the trace off"), "{file}: {}", cut.stderr);
    }
}

#[test]
fn refusals_say_what_to_do() {
    if !able() {
        return;
    }
    let scratch = disk();
    let device = Loop::new(scratch.path(), "");
    let run = |prepare: &str, arguments: &[&str]| {
        Ran::of(&tracing(scratch.path(), prepare, arguments).output().expect("it can be run"))
    };
    let unmounted = run(UNMOUNTED, &["--seconds", "1", &device.0]);
    let line = unmounted.stderr.lines().last().unwrap_or_default();
    assert!(line.ends_with("tracefs is not mounted: mount -t tracefs nodev /sys/kernel/tracing"));
    assert!(run(MOUNTED, &["disk"]).refused().contains("serve --top counts requests to an image"));
    assert!(run(MOUNTED, &["/dev/null"]).refused().contains("it is no block device"));
    assert!(run(MOUNTED, &["md:1m"]).refused().contains("the kernel traces whole devices"));
    assert!(run(MOUNTED, &[&device.0, "--seconds", "0"]).refused().contains("not a time"));
    fs::write(scratch.path().join("note"), "not a trace").expect("a file");
    let other = run(MOUNTED, &[&device.0, "--seconds", "1", "--record", "note"]);
    assert!(other.refused().contains("note"), "{}", other.stderr);
    assert_eq!(fs::read(scratch.path().join("note")).expect("a file"), b"not a trace");
    let plain = format!(
        "chmod a+r {}; chmod a+rx . && exec setpriv --reuid 65534 --clear-groups \"$@\"",
        device.0
    );
    let plain = MOUNTED.replace("exec \"$@\"", &plain);
    let user = run(&plain, &["--seconds", "1", &device.0]);
    assert!(user.refused().ends_with("run as root"), "{}", user.stderr);
}

#[test]
fn the_report_fits_every_terminal() {
    let scratch = disk();
    let mut requests = String::from("trueline trace 1\n");
    for nth in 0..40u64 {
        let offset = 63 * 512 + nth * 8192;
        requests += &format!("{} W {offset} 4096\n{} R {offset} 512\n", nth * 1000, nth * 1000 + 1);
    }
    requests += "50000 F 0 0\n60000 W 134217728 4096\n";
    fs::write(scratch.path().join("requests"), requests).expect("a file");
    for width in [40, 60, 80, 100, 132] {
        let drives = ["--drive", "wd10ears,qlc-16k"];
        let arguments = ["trace", "--replay", "requests", "--unit", "4k", "disk"];
        let shown = show(scratch.path(), width, &[&arguments[..], &drives].concat());
        assert_eq!(shown.code, Some(0), "{}", shown.text());
        // Commands are copied, and not broken.
        let wider = shown.wider(width).into_iter();
        let wider = wider.filter(|line| !line.trim_start().starts_with("trueline move "));
        assert_eq!(wider.count(), 0, "{width}: {}", shown.text());
    }
    let shown =
        show(scratch.path(), 132, &["trace", "--replay", "requests", "--unit", "4k", "disk"]);
    let text = shown.text();
    assert!(text.contains("40 reads (20 KiB), 40 writes (160 KiB), 1 flush"), "{text}");
    assert!(text.contains("1 request outside of it"), "{text}");
    assert!(
        text.contains(
            "s1: 40 of 80 requests are off the 4096-byte physical unit, because s1 begins"
        ),
        "{text}"
    );
}

/// The drive of 2010 reads the two sectors that each write at sector 63 cuts, and loses a
/// revolution; with the partition on the grain it does neither.
#[test]
fn drives_take_the_requests_as_they_were_and_on_the_grain() {
    let scratch = disk();
    let mut requests = String::from("trueline trace 1\n");
    for nth in 0..200u64 {
        let offset = 63 * 512 + nth * 7 % 1999 * 4096;
        requests += &format!("{} W {offset} 4096\n", nth * 1000);
    }
    fs::write(scratch.path().join("requests"), requests).expect("a file");
    let run = |words: &str| {
        let ran = program(scratch.path()).args(words.split(' ')).output().expect("it runs");
        Ran::of(&ran)
    };
    let ran = run("trace --replay requests --drive wd10ears,512n --json disk");
    let document = ran.ended(0).json();
    let drives: Vec<(&str, &str)> = document["drives"]
        .as_array()
        .expect("drives")
        .iter()
        .map(|run| (run["drive"].as_str().unwrap_or(""), run["variant"].as_str().unwrap_or("")))
        .collect();
    // Sectors of 512 bytes are cut by nothing.
    assert_eq!(drives, [("wd10ears", "traced"), ("wd10ears", "aligned"), ("512n", "traced")]);
    let number = |path: &str| number(&document, path);
    assert!(number("/drives/0/spent/rmw") > 200, "{document:#}");
    assert_eq!(number("/drives/1/spent/rmw"), 0);
    assert!(number("/drives/0/duration_ns") > 2 * number("/drives/1/duration_ns"));
    assert_eq!(number("/drives/1/requests"), 200);
    // Without the disk, the layer that shifts them is not known.
    let alone = run("trace --replay requests --drive wd10ears --json").ended(0).json();
    assert_eq!(alone["drives"].as_array().map(Vec::len), Some(1));
    let large = run("trace --replay requests --drive qlc-16k@4m disk");
    assert!(large.refused().ends_with(": write qlc-16k@SIZE"), "{}", large.stderr);
    let refused = run("trace --replay requests --drive nothing disk");
    assert!(refused.refused().contains("no model 'nothing'"), "{}", refused.stderr);
    // The first zone with a write pointer, and 63 sectors behind its beginning.
    for (offset, is_taken) in [(140_660_178_944_u64, true), (140_660_211_200, false)] {
        let requests = format!("trueline trace 1\n0 W {offset} 4096\n");
        fs::write(scratch.path().join("zoned"), requests).expect("a file");
        let ran = run("trace --replay zoned --drive smr-hm-14tb");
        if is_taken {
            ran.ended(0);
        } else {
            let told = "1 of 1 requests failed, the first: write at 140660211200";
            assert!(ran.refused().contains(told), "{}", ran.stderr);
        }
    }
}

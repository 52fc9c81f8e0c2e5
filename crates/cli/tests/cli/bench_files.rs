//! `bench` of files, of memory, through either engine.

use crate::counters::at_63;
use crate::fuse::mounts;
use crate::skip::skip;
use crate::{kill, list, program, run, run_with, scratch, wait_while_runs, zeroes};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;

fn names(directory: &Path) -> Vec<String> {
    fs::read_dir(directory)
        .expect("a directory")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn two_directories_are_compared_and_left_as_they_were() {
    let scratch = scratch();
    for name in ["a", "b"] {
        fs::create_dir(scratch.path().join(name)).expect("a directory can be made");
        fs::write(scratch.path().join(name).join("mine"), "mine").expect("a file can be made");
    }
    for work in [
        "tree --files 30",
        "tree --files 30 --phase delete",
        "copy --size 1m --sync",
        "copy -r --size 1m",
        "bonnie --size 1m --files 0",
    ] {
        let ran = run(scratch.path(), &format!("bench {work} a b --runs 1 --warmup 0 --json"));
        let document = ran.ended(0).json();
        let variants = list(&document, "variants");
        let told: Vec<_> = variants
            .iter()
            .map(|v| (v["name"].as_str(), v["engine"].as_str(), list(v, "runs").len()))
            .collect();
        assert_eq!(told, [(Some("a"), Some("files"), 1), (Some("b"), Some("files"), 1)], "{work}");
        assert!(variants.iter().all(|v| v["runs"][0]["ops"].as_u64() > Some(0)), "{work}");
        assert_eq!((document["time"].as_str(), document["host"].as_str()), (Some("real"), None));
        assert_eq!(
            (names(&scratch.path().join("a")), names(&scratch.path().join("b"))),
            (vec!["mine".into()], vec!["mine".into()]),
            "{work}"
        );
    }
}

#[test]
fn ctrl_c_and_errors_leave_nothing_behind() {
    let scratch = scratch();
    let arguments = ["bench", "tree", "--files", "20000", "--runs", "1000", "."];
    for signal in ["-INT", "-TERM"] {
        let mut running = program(scratch.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        // As soon as there is something to take away.
        let below = || {
            let name = names(scratch.path()).into_iter().next()?;
            fs::read_dir(scratch.path().join(name)).ok()?.next()
        };
        wait_while_runs(&mut running, || below().is_some());
        assert!(kill(signal, running.id()));
        let ended = running.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(2), "{signal}: {ended:?}");
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(
            said.contains("interrupted: removing ./.trueline-") && said.lines().count() == 2,
            "{said}"
        );
        assert_eq!(names(scratch.path()), Vec::<String>::new());
    }
    // A tree with a file twice cannot be made.
    let mut archive = Vec::new();
    for _ in 0..2 {
        archive.extend(header("twice", 3));
        archive.extend([0; 512]);
    }
    fs::create_dir(scratch.path().join("d")).expect("a directory can be made");
    fs::write(scratch.path().join("t.tar"), [archive, header("twice/below", 0).to_vec()].concat())
        .expect("a file can be made");
    let ran = run(scratch.path(), "bench tree --tar t.tar d --runs 2");
    ran.refused();
    assert_eq!(names(&scratch.path().join("d")), Vec::<String>::new());
}

/// A header of a file in a ustar archive.
fn header(name: &str, size: usize) -> [u8; 512] {
    let mut record = [0; 512];
    record[..name.len()].copy_from_slice(name.as_bytes());
    record[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    record[148..156].fill(b' ');
    record[156] = b'0';
    record[257..263].copy_from_slice(b"ustar\0");
    let sum: u64 = record.iter().map(|&byte| u64::from(byte)).sum();
    record[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    record
}

#[test]
fn a_tarball_says_what_the_tree_is() {
    let scratch = scratch();
    let archive = [&header("d/a", 700)[..], &[0; 1024], &header("d/b", 0)].concat();
    fs::write(scratch.path().join("t.tar"), archive).expect("a file can be made");
    let ran = run(scratch.path(), "bench tree --tar t.tar drive:md --runs 2 --json");
    let document = ran.ended(0).json();
    let first = &document["variants"][0]["runs"][0];
    assert_eq!(
        (first["ops"].as_u64(), first["bytes"].as_u64()),
        (Some(3), Some(700)),
        "a directory and two files"
    );
    fs::write(scratch.path().join("t.tgz"), [0x1f, 0x8b].repeat(300)).expect("a file can be made");
    let ran = run(scratch.path(), "bench tree --tar t.tgz drive:md");
    assert!(
        ran.refused().contains("t.tgz: read the tar archive at 0: it is compressed with gzip"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_file_system_off_the_sector_costs_on_either_host() {
    for (host, work) in
        [("linux-writeback", "copy --sync --size 64m"), ("openbsd-ffs", "tree --files 300")]
    {
        let ran = run(
            scratch().path(),
            &format!("bench {work} --host {host} drive:wd10ears@4g --runs 4 --json"),
        );
        let document = ran.ended(0).json();
        assert_eq!(
            (document["host"].as_str(), document["time"].as_str()),
            (Some(host), Some("virtual"))
        );
        let rmw =
            |nth: usize| document["variants"][nth]["drives"]["rmw"].as_u64().expect("a count");
        assert!(rmw(1) > rmw(0), "{host}: {} and {}", rmw(0), rmw(1));
    }
    let document = run(scratch().path(), "bench mkfs --count 8 drive:wd10ears --runs 4 --json")
        .ended(0)
        .json();
    let rmw = |nth: usize| document["variants"][nth]["drives"]["rmw"].as_u64().expect("a count");
    assert!(
        rmw(0) == 0 && rmw(1) > 0,
        "a file system off the sector is moved whole: {} and {}",
        rmw(0),
        rmw(1)
    );
}

/// The writes of mke2fs go where any writes go, and over nothing without a word.
#[test]
fn a_file_system_is_made_on_what_is_there() {
    let scratch = scratch();
    fs::File::create(scratch.path().join("disk.img"))
        .and_then(|file| file.set_len(300 << 20))
        .expect("a sparse file");
    let document = run(
        scratch.path(),
        "bench mkfs --buffered --runs 4 --warmup 0 --rest 0.01 --json disk.img",
    )
    .ended(0)
    .json();
    assert_eq!(
        (document["time"].as_str(), document["variants"][0]["offset"].as_u64()),
        (Some("real"), Some(0))
    );
    let simulated =
        run(scratch.path(), "bench mkfs --runs 4 --json drive:512n@300m").ended(0).json();
    let did = |document: &Value, nth: usize| {
        let run = &document["variants"][nth]["runs"][0];
        (run["ops"].as_u64().expect("a count"), run["bytes"].as_u64().expect("a count"))
    };
    for nth in 0..2 {
        assert_eq!(did(&document, nth), did(&simulated, nth), "the same writes, wherever they go");
    }
    let again = run(scratch.path(), "bench mkfs --buffered --runs 4 disk.img");
    assert!(
        again.refused().contains("say --destructive to lose it: nothing was written"),
        "{}",
        again.stderr
    );
    run(scratch.path(), "bench mkfs --runs 4 --count 1 md:300m").ended(0);
}

/// A file system that begins off the sectors has blocks that are off them; what is asked of its
/// file is the same.
#[test]
fn blocks_of_a_file_on_ufs_lie_where_the_file_system_has_them() {
    let work = "bench raidtest -w --bs 16k --count 64 --runs 4 --host freebsd-ufs \
        drive:wd10ears@4g --json";
    let document = run(scratch().path(), work).ended(0).json();
    assert_eq!(document["host"], "freebsd-ufs");
    let rmw = |nth: usize| document["variants"][nth]["drives"]["rmw"].as_u64().expect("a count");
    assert!(rmw(0) == 0 && rmw(1) > 0, "{} and {}", rmw(0), rmw(1));
    let one = |nth: usize| document["variants"][nth]["runs"][0]["bytes"].clone();
    assert_eq!(one(0), one(1));
}

#[test]
fn bonnie_has_its_table_and_its_line() {
    let of = |form: &str| {
        run(
            scratch().path(),
            &format!(
                "bench bonnie --size 4m --files 1 --offset 0 drive:wd10ears@4g --runs 2 {form}"
            ),
        )
    };
    let csv = of("--csv");
    let lines: Vec<&str> = csv.ended(0).stdout.lines().collect();
    assert_eq!(lines.len(), 2, "a line a run: {}", csv.stdout);
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with("1.96,1.96,offset 0,1,1,4M,,")
                && line.split(',').count() == 48),
        "{}",
        csv.stdout
    );
    assert_eq!(of("--json").json()["variants"][0]["runs"][0]["bonnie_csv"], lines[0]);
    let text = of("");
    assert!(
        text.ended(0).stdout.contains("Version  1.96       ------Sequential Output------"),
        "{}",
        text.stdout
    );
}

#[test]
fn memory_is_measured_with_what_an_image_puts_there() {
    let scratch = crate::golden("bsd-freebsd");
    let before = fs::read(scratch.path().join("disk")).expect("the disk");
    let size = before.len();
    let target = |provider: &str| format!("md:{size}=disk{provider}");
    let run = |arguments: String| run(scratch.path(), &arguments);
    let ran = run(format!(
        "bench latency {} {} {} --count 50 --runs 4 --json",
        target(""),
        target("#s1"),
        target("#s1a")
    ));
    let document = ran.ended(0).json();
    let variants = list(&document, "variants");
    let depths: Vec<u64> = variants.iter().map(|v| v["depth"].as_u64().expect("layers")).collect();
    assert!(depths[0] < depths[1] && depths[1] < depths[2], "{depths:?}");
    assert!(
        document["slope"]["interval"]["low"].is_number()
            && document["time"] == "real"
            && variants[0]["engine"] == "memory"
    );
    // What is written is written to memory.
    run(format!("bench random-write {} --runs 2 --count 5 --bs 512", target("#s1"))).ended(0);
    assert!(
        before == fs::read(scratch.path().join("disk")).expect("the disk"),
        "the image is as it was"
    );
    run(format!("check {}", target(""))).code.expect("it ends");
    assert!(
        run("check md:4k=disk".into()).refused().contains("disk has "),
        "larger than the memory"
    );
}

#[test]
fn layers_cost_nothing_in_virtual_time_unless_they_are_said_to() {
    let scratch = crate::golden("bsd-freebsd");
    let of = |more: &str| {
        let ran = run(
            scratch.path(),
            &format!(
                "bench latency drive:md=disk drive:md=disk#s1 drive:md=disk#s1a --count 10 --runs 4 --json {more}"
            ),
        );
        ran.ended(0).json()
    };
    let free = of("");
    assert!(
        free["warnings"][0]
            .as_str()
            .is_some_and(|said| said.contains("layers cost nothing on simulated drives")),
        "{free}"
    );
    let costly = of("--layer-ns 700");
    assert_eq!(list(&costly, "warnings").len(), 0);
    let slope = costly["slope"]["slope"].as_f64().expect("a slope");
    assert!((slope - 700.0).abs() < 1e-6, "{slope}");
    // What a start off the grain costs is no layer's time.
    at_63(scratch.path());
    let words = "bench random-write drive:wd10ears=disk drive:wd10ears=disk#s1 --bs 4096 \
        --count 10 --runs 4 --layer-ns 700 --json";
    let document = run(scratch.path(), words).ended(0).json();
    assert_eq!(document["variants"][1]["aligned"], false, "{document}");
    assert!(document["slope"].is_null(), "{document}");
}

#[test]
fn either_engine_says_which_it_is() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 4 << 20);
    let of = |engine: &str| -> Value {
        run(
            scratch.path(),
            &format!(
                "bench random-read disk.img --buffered --cached --runs 2 --count 20 {engine} --json"
            ),
        )
        .ended(0)
        .json()
    };
    assert_eq!(of("--engine sync")["variants"][1]["engine"], "sync");
    let best = of("");
    assert!(
        ["io_uring", "sync"].contains(&best["variants"][0]["engine"].as_str().expect("a name"))
    );
    let ran = run(
        scratch.path(),
        "bench random-read disk.img --buffered --runs 2 --count 20 --engine sync",
    );
    assert!(
        ran.ended(0).stdout.lines().next().is_some_and(|heading| heading.ends_with("engine")),
        "{}",
        ran.stdout
    );
    let ran = run(
        scratch.path(),
        "bench random-read disk.img --buffered --runs 2 --count 20 --engine ring --json",
    );
    if best["variants"][0]["engine"] == "io_uring" {
        ran.ended(0);
    } else {
        assert!(ran.refused().contains("io_uring"), "{}", ran.stderr);
    }
}

#[test]
fn what_was_finished_before_a_failure_is_shown() {
    if !mounts() {
        return skip("mounting needs root, leave to mount, and /dev/fuse");
    }
    // Memory comes first, and has its run; the served file opens, and its writes fail.
    let scratch = scratch();
    fs::write(scratch.path().join("file"), "").expect("a file can be made");
    let program = program(scratch.path()).get_program().to_string_lossy().into_owned();
    let command = format!(
        "{program} bench random-write --destructive --allow-busy md:1m \"$file\" --count 5 --runs \
            4 --warmup 0 --json"
    );
    let ran = run_with(
        scratch.path(),
        &[
            "serve",
            "md:1m",
            "--fault",
            "write:error=eio",
            "--fuse",
            "file",
            "--no-counters",
            "--run",
            &command,
        ],
    );
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    let document = ran.json();
    let runs = |nth: usize| list(&document["variants"][nth], "runs").len();
    assert_eq!((runs(0), runs(1)), (1, 0));
    assert!(
        document["ended"]
            .as_str()
            .is_some_and(|why| why.contains("5 of 5 requests failed, the first: write at ")),
        "{document}"
    );
    assert!(ran.stderr.contains("the runs before it are shown"), "{}", ran.stderr);
}

#[test]
fn a_file_cut_short_while_it_runs_ends_it_with_what_was_finished() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 4 << 20);
    let arguments =
        "bench random-read disk.img --buffered --engine sync --count 1000 --runs 10000 --json"
            .split(' ');
    let mut running = program(scratch.path())
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // Ten runs and more, counted by the kernel.
    let pid = running.id();
    let read = || -> Option<u64> {
        let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        text.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
    };
    wait_while_runs(&mut running, || read().expect("the program runs, and is counted") >= 50 << 20);
    fs::File::options()
        .write(true)
        .open(scratch.path().join("disk.img"))
        .and_then(|file| file.set_len(0))
        .expect("it can be cut");
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!(ended.status.code(), Some(2), "{}", String::from_utf8_lossy(&ended.stderr));
    let document: Value = serde_json::from_slice(&ended.stdout).expect("a document");
    assert!(list(&document["variants"][0], "runs").len() > 2, "{document}");
    assert!(
        document["ended"]
            .as_str()
            .is_some_and(|why| why.contains("requests failed, the first: read at ")),
        "{}",
        document["ended"]
    );
}

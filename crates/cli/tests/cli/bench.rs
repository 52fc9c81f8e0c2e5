//! `bench`: the document's keys, what simulated drives answer, what is refused.

use crate::skip::skip;
use crate::{list, run, scratch, zeroes};
use serde_json::Value;

fn bench(arguments: &str) -> Value {
    let ran = run(scratch().path(), &format!("bench {arguments} --json"));
    ran.ended(0).json()
}

#[test]
fn the_document_has_the_keys_that_scripts_rely_on() {
    let document = bench("random-write drive:md --runs 6 --count 50");
    assert_eq!(document["format"], "trueline/bench/1");
    assert_eq!(
        (document["workload"].as_str(), document["time"].as_str()),
        (Some("random-write"), Some("virtual"))
    );
    let variants = list(&document, "variants");
    let offsets: Vec<u64> = variants.iter().map(|v| v["offset"].as_u64().expect("bytes")).collect();
    assert_eq!(offsets, [0, 512], "aligned, and a sector further");
    for variant in variants {
        assert!(variant["name"].is_string());
        let runs = list(variant, "runs");
        assert_eq!(runs.len(), 6);
        for run in runs {
            assert_eq!((run["ops"].as_u64(), run["bytes"].as_u64()), (Some(50), Some(50 * 4096)));
            assert!(run["seconds"].is_f64());
            for key in ["mean", "p50", "p99", "max"] {
                assert!(run["latency_ns"][key].is_number(), "{key}");
            }
        }
    }
    for key in ["median", "low", "high"] {
        assert_eq!(document["ratio"][key], 1.0, "memory knows no alignment");
    }
    assert_eq!(document["comparison"]["confidence"], 0.95);
    assert!(document["comparison"]["carry_over"].is_null(), "every run has a new drive");
    let few = bench("random-write drive:md --runs 4 --count 50");
    assert_eq!(few["comparison"]["confidence"], 0.875, "no interval of 95 % of four runs");
    assert_eq!(few["comparison"]["verdict"], "too-few");
}

#[test]
fn the_same_seed_gives_the_same_document_and_another_another() {
    let of = |seed: u32| {
        bench(&format!("random-read drive:wd10ears --runs 4 --count 100 --seed {seed}"))
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1)["variants"][0]["runs"], of(2)["variants"][0]["runs"]);
}

#[test]
fn memory_takes_its_command_time_and_nothing_else() {
    let document = bench("latency drive:md --runs 4 --count 1000 --offset 0,1,7");
    for variant in list(&document, "variants") {
        assert_eq!(variant["runs"][0]["latency_ns"]["mean"], 18_100.0);
    }
    let document = bench("latency drive:md --set command_ns=5000 --runs 4 --count 1000");
    assert_eq!(document["variants"][1]["runs"][3]["latency_ns"]["mean"], 5000.0);
}

#[test]
fn a_write_off_the_sector_costs_and_the_counters_say_why() {
    let document = bench("random-write drive:wd10ears --runs 6 --count 200");
    assert!(document["ratio"]["low"].as_f64().expect("a number") > 1.5, "{}", document["ratio"]);
    let of =
        |nth: usize, key: &str| document["variants"][nth]["drives"][key].as_u64().expect("a count");
    assert_eq!((of(0, "rmw"), of(0, "lost_revolutions")), (0, 0));
    assert!(of(1, "rmw") > 0 && of(1, "lost_revolutions") > 0);
}

#[test]
fn what_a_drive_keeps_in_memory_is_told() {
    let told = |arguments: &str| bench(arguments)["warnings"].to_string();
    let all = "all 15.6 MiB that a run writes fit what the drive keeps in memory, 32 MiB; the \
        medium's cost shows with --count 20481 or more";
    assert!(told("random-write drive:qlc-16k --bs 16k --runs 4").contains(all));
    let part = "of 256 MiB that a run writes the drive may keep 60 MiB in memory at its end";
    assert!(
        told("dd --write drive:wd10ears --runs 4").contains(part),
        "{}",
        told("dd --write drive:wd10ears --runs 4")
    );
    for shown in [
        "random-write drive:wd10ears --runs 4",
        "random-read drive:qlc-16k --runs 4",
        "random-write drive:qlc-16k --buffered --runs 4",
    ] {
        assert_eq!(told(shown), "[]", "{shown}");
    }
    // A card does not write 50 GB a second: its host's memory does.
    let host = "of the 8 MiB of a run the drive had 0 bytes at its end, and the host's memory the \
        rest; the drive's cost shows with --sync";
    assert!(
        told("copy --size 8m drive:sd-4m --runs 4").contains(host),
        "{}",
        told("copy --size 8m drive:sd-4m --runs 4")
    );
    assert_eq!(told("copy --size 8m --sync drive:sd-4m --runs 4"), "[]");
}

#[test]
fn latencies_of_what_is_not_waited_for_are_not_zero_but_unknown() {
    let ran = run(scratch().path(), "bench mkfs --count 8 --runs 4 drive:wd10ears");
    let line =
        ran.ended(0).stdout.lines().find(|line| line.starts_with("offset 0  ")).expect("a variant");
    assert!(
        line.split_whitespace().filter(|&cell| cell == "-").count() == 4 && !line.contains("0 ns"),
        "{line}"
    );
}

#[test]
fn a_unit_has_its_article() {
    let ran =
        run(scratch().path(), "bench dd --write --bs 4m --count 2 --runs 1 --offset 8 drive:sd-4m");
    assert!(
        ran.ended(0).stdout.contains("offset 8: 4096 bytes past an erase unit of 4194304"),
        "{}",
        ran.stdout
    );
}

#[test]
fn every_variant_says_which_boundary_it_is_off() {
    let of = |arguments: &str| {
        let document =
            bench(&format!("random-read {arguments} --runs 4 --count 10 --offset 0,1,7"));
        let missed =
            |v: &Value| v["missed"]["remainder"].as_u64().zip(v["missed"]["size"].as_u64());
        list(&document, "variants")
            .iter()
            .map(|v| (v["aligned"].as_bool(), missed(v)))
            .collect::<Vec<_>>()
    };
    let (on, off) = ((Some(true), None), |remainder| (Some(false), Some((remainder, 4096))));
    assert_eq!(of("drive:wd10ears"), [on, off(512), off(3584)]);
    assert_eq!(of("drive:wd10ears --set jumper=true"), [off(512), off(1024), on]);
    // An image, or memory, does not say what drive it stands for.
    assert_eq!(of("md:1m"), [(None, None); 3]);
    let ran = run(
        scratch().path(),
        "bench random-read drive:wd10ears --set jumper=true --runs 4 --count 10 --offset 0,7",
    );
    assert!(
        ran.ended(0)
            .stdout
            .contains("\noffset 0: 512 bytes past a physical unit of 4096; offset 7: aligned\n"),
        "{}",
        ran.stdout
    );
}

#[test]
fn columns_that_no_drive_fills_are_left_out_and_too_few_runs_are_told_once() {
    let ran = run(scratch().path(), "bench random-read drive:qlc-16k --runs 1 --count 10");
    let heading = ran
        .ended(0)
        .stdout
        .lines()
        .find(|line| line.starts_with("where time went"))
        .expect("a table");
    assert!(
        heading.contains("transfer") && !heading.contains("seek") && !heading.contains("rotate"),
        "{heading}"
    );
    let few: Vec<&str> = ran.stdout.lines().filter(|line| line.contains("too few")).collect();
    let said = "1 run each is too few for 95 %, which needs 6, better 10";
    assert!(few.len() == 1 && few[0].ends_with(said), "{}", ran.stdout);
}

#[test]
fn holes_in_a_file_are_told() {
    let scratch = scratch();
    let sparse =
        std::fs::File::create(scratch.path().join("sparse.img")).expect("a file can be made");
    sparse.set_len(16 << 20).expect("it has room");
    std::fs::write(scratch.path().join("full.img"), vec![0; 1 << 20])
        .expect("a file can be written");
    let warnings = |file: &str| {
        let ran = run(
            scratch.path(),
            &format!("bench random-read {file} --buffered --runs 4 --count 4 --json"),
        );
        ran.ended(0).json()["warnings"].to_string()
    };
    assert!(
        warnings("sparse.img")
            .contains("sparse.img: 16 MiB of its 16 MiB are holes or were never written"),
        "{}",
        warnings("sparse.img")
    );
    assert!(!warnings("full.img").contains("holes"), "{}", warnings("full.img"));
    // All of it is allocated, so stat(2) counts it, and none of it was written.
    let preallocated = std::process::Command::new("fallocate")
        .args(["-l", "16M", "made.img"])
        .current_dir(scratch.path())
        .status();
    if !preallocated.is_ok_and(|status| status.success()) {
        return skip("fallocate(1) does not work here");
    }
    // Nor does reading it write it, though its pages then are in the page cache and lseek(2) finds
    // data there.
    let read = std::fs::read(scratch.path().join("made.img")).expect("it can be read");
    assert!(
        read.iter().all(|&byte| byte == 0)
            && warnings("made.img").contains("MiB of its 16 MiB are holes or were never written")
    );
    if !on_memory(scratch.path()) {
        assert!(
            warnings("made.img").contains("16 MiB of its 16 MiB are holes or were never written"),
            "{}",
            warnings("made.img")
        );
    }
}

/// True if files there are in memory alone (tmpfs), which reports no extents.
fn on_memory(directory: &std::path::Path) -> bool {
    let ran = std::process::Command::new("stat")
        .args(["-f", "-c", "%T"])
        .arg(directory)
        .output()
        .expect("stat(1) runs");
    String::from_utf8_lossy(&ran.stdout).trim() == "tmpfs"
}

#[test]
fn through_the_page_cache_the_drive_reads_and_stays_aligned() {
    let document = bench("random-write drive:wd10ears --buffered --runs 4 --count 100");
    let reads =
        |nth: usize| document["variants"][nth]["runs"][0]["host_reads"].as_u64().expect("a count");
    assert_eq!((reads(0), reads(1)), (0, 200));
    assert_eq!(document["variants"][1]["drives"]["rmw"], 0);
    assert_eq!(
        bench("random-write drive:md --runs 4 --count 10")["variants"][0]["runs"][0]["host_reads"],
        Value::Null
    );
}

#[test]
fn several_targets_are_variants_by_name() {
    let document = bench("random-read drive:md drive:md@2g --runs 4 --count 10");
    let names: Vec<&str> =
        list(&document, "variants").iter().map(|v| v["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["drive:md", "drive:md@2g"]);
}

#[test]
fn csv_has_a_line_for_every_run() {
    let ran = run(scratch().path(), "bench dd drive:md --runs 2 --count 4 --csv");
    let lines: Vec<&str> = ran.ended(0).stdout.lines().collect();
    assert_eq!((lines.len(), lines[0].split(',').next()), (5, Some("workload")));
    assert_eq!(
        lines[4],
        "dd,virtual,offset 1,drive:md,512,2,0.0000724,4,4194304,0,18100,18100,18100,18100,,"
    );
}

#[test]
fn a_file_is_measured_for_real_and_written_only_if_nothing_is_on_it() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 16 << 20);
    let ran =
        run(scratch.path(), "bench random-write disk.img --buffered --runs 4 --count 20 --json");
    let document = ran.ended(0).json();
    assert_eq!(
        (document["time"].as_str(), list(&document["variants"][1], "runs").len()),
        (Some("real"), 4)
    );
    run(scratch.path(), "part create -s gpt --overwrite disk.img").ended(0);
    let ran = run(scratch.path(), "bench random-write disk.img --buffered --runs 4 --count 20");
    assert!(
        ran.refused().ends_with(
            "there is a GPT with 0 partitions: say --destructive to lose it: nothing was written"
        ),
        "{}",
        ran.stderr
    );
    run(scratch.path(), "bench random-read disk.img --buffered --runs 4 --count 20 --json")
        .ended(0);
}

#[test]
fn unrecognised_contents_are_not_written_over_either() {
    let scratch = scratch();
    let text = "a thesis, and no copy of it\n".repeat(4096);
    std::fs::write(scratch.path().join("thesis.odt"), &text).expect("a file can be written");
    let ran = run(
        scratch.path(),
        "bench random-write thesis.odt --buffered --offset 0 --runs 4 --count 4",
    );
    let said = "byte 0 (LBA 0) has 61 20 74 68 65 73 69 73: say --destructive to lose it: nothing \
        was written";
    assert!(ran.refused().ends_with(said), "{}", ran.stderr);
    assert_eq!(
        std::fs::read_to_string(scratch.path().join("thesis.odt")).expect("it is there"),
        text
    );
    run(
        scratch.path(),
        "bench random-write thesis.odt --buffered --destructive --runs 4 --count 4 --json",
    );
    assert_ne!(
        std::fs::read(scratch.path().join("thesis.odt")).expect("it is there"),
        text.as_bytes()
    );
}

#[test]
fn raidtests_files_are_made_told_and_run() {
    let scratch = scratch();
    let made =
        run(scratch.path(), "bench raidtest --genfile requests --count 100 -r --bs 16k drive:md");
    let told = "File requests generated.\nNumber of READ requests: 100.\nNumber of WRITE requests: \
        0.\nNumber of bytes to transmit: 1638400.\n";
    assert_eq!(made.ended(0).stdout, told);
    assert_eq!(
        std::fs::metadata(scratch.path().join("requests")).expect("it was made").len(),
        1600
    );
    let again = run(scratch.path(), "bench raidtest --genfile requests drive:md");
    assert!(again.refused().contains("requests: it is there already"), "{}", again.stderr);
    let ran =
        run(scratch.path(), "bench raidtest --requests requests -n 8 drive:md --runs 4 --json");
    // 100 div 8 = 12 each; 4 are never done.
    assert_eq!(ran.ended(0).json()["variants"][0]["runs"][0]["ops"], 96);
    let bytes = std::fs::read(scratch.path().join("requests")).expect("it was made");
    std::fs::write(scratch.path().join("cut"), &bytes[..100]).expect("a file can be written");
    let ran = run(scratch.path(), "bench raidtest --requests cut drive:md");
    assert!(
        ran.refused().ends_with("read cut: byte 96: a record of 4 bytes, cut short: all have 16"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_trace_is_replayed_and_a_bad_one_named_with_its_line() {
    let scratch = scratch();
    let write = |name: &str, text: &str| {
        std::fs::write(scratch.path().join(name), text).expect("a file can be written")
    };
    write(
        "log",
        "fio version 2 iolog\n/f add\n/f open\n/f write 0 4096\n/f write 1073741312 512\n/f close\n",
    );
    let ran = run(scratch.path(), "bench replay --trace log drive:md --offset 0 --runs 4 --json");
    assert_eq!(ran.ended(0).json()["variants"][0]["runs"][0]["ops"], 2);
    let ran = run(scratch.path(), "bench replay --trace log drive:md@1m --runs 4");
    assert!(
        ran.refused().contains(
            "1 of 2 requests end past the target's 1048576 bytes, the first at line 5: --wrap folds"
        ),
        "{}",
        ran.stderr
    );
    run(scratch.path(), "bench replay --trace log drive:md@1m --wrap --timed --runs 4").ended(0);
    // Odd bytes are what clients of `serve` ask for; a host reads their sectors, and writes them.
    for text in
        ["trueline trace 1\n0 R 0 512\n1 R 100 512\n", "trueline trace 1\n0 R 0 512\n1 W 512 5"]
    {
        write("odd", text);
        let ran = run(scratch.path(), "bench replay --trace odd drive:md --runs 4");
        assert!(
            ran.ended(0).stdout.contains("1 of 2 requests of the trace are not whole sectors"),
            "{}",
            ran.stdout
        );
    }
    write("bad", "fio version 2 iolog\n/f add\n/f open\n/f write 0\n");
    let ran = run(scratch.path(), "bench replay --trace bad drive:md --runs 4");
    assert!(
        ran.refused()
            .contains("read bad: line 4: not FILE ACTION [OFFSET LENGTH]: a number is missing"),
        "{}",
        ran.stderr
    );
    write("bad", "fio version 2 iolog\n/f add\n/f open\n/f erase 0 4096\n");
    let ran = run(scratch.path(), "bench replay --trace bad drive:md");
    assert!(
        ran.refused().ends_with("read bad: line 4: unknown action 'erase' in version 2"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_cannot_be_measured_is_refused_in_a_line() {
    for (arguments, said) in [
        ("nonsense drive:md", "no workload 'nonsense': there are dd, random-read"),
        ("dd drive:nonsense", "no model 'nonsense'"),
        (
            "dd drive:md --bs 1000",
            "dd of 1000 bytes at an offset of 0: the target takes only whole sectors of 512 bytes",
        ),
        ("dd drive:md --bs 2g", "requests of 2147483648 bytes: from 1 to 67108864"),
        ("dd drive:md --count 0", "a run of 0 requests measures nothing"),
        ("dd drive:md --seconds 0", "a run of 0 seconds: more than 0"),
        ("dd drive:md --qd 100000", "100000 requests in flight: from 1 to 4096"),
        ("dd drive:md --offset 99999999999999999999", "--offset"),
        ("dd drive:md --offset 9999999999999999999", "no disk has so many"),
        ("random-read drive:md@4k", "the target has 4096 bytes, and at least 8192 are needed"),
        ("dd drive:md --timed", "bench dd: --timed is for replay"),
        (
            "random-write drive:md --read",
            "bench random-write: --read is for dd, raidtest, latency, copy",
        ),
        ("replay --trace missing drive:md -r", "bench replay: --read is for"),
        ("random-read drive:md -w", "bench random-read: --write is for"),
        ("dd drive:md --set rpm=1", "rpm"),
        ("dd missing.img", "no such file or device"),
        ("dd missing.img --set rpm=1", "--set is for simulated drives"),
        ("dd drive:md,drive:md", "several disks: name the provider"),
        ("dd drive:md#p1", "no provider 'p1'"),
        (
            "dd md:64m,missing.img",
            "missing.img is not memory and others are: write md:SIZE=missing.img",
        ),
        ("dd md:1m=missing.img", "missing.img: no such file or device"),
        ("dd md:64m --buffered", "memory has no page cache before it"),
        (
            "dd md:64m --host openbsd-ffs",
            "that --host is for tree, copy, bonnie: it runs on blocks: one large file to run on is --host freebsd-ufs",
        ),
        ("dd md:64m --host freebsd-ufs", "--host is for simulated drives"),
        (
            "tree drive:md --host freebsd-ufs",
            "--host freebsd-ufs is one large file for workloads of blocks",
        ),
        ("mkfs drive:md --host freebsd-ufs", "is a file system already, and mkfs needs a disk"),
        ("dd drive:md --host freebsd-ufs --buffered", "leave one of them out"),
        (
            "dd drive:md@64m --host freebsd-ufs",
            "the target has 67108864 bytes, less than a cylinder group of 192692224",
        ),
        ("dd drive:md --host freebsd-ufs --size 2g", "a file of 2147483648 bytes does not fit"),
        ("dd md:64m --layer-ns 5", "--layer-ns is for simulated drives"),
        ("dd missing.img --cached", "--buffered"),
        ("tree drive:md --bs 4k", "bench tree: --bs is for workloads of blocks: it runs on files"),
        ("tree drive:md --buffered", "--buffered is for workloads of blocks"),
        ("tree missing", "bench missing: no such file or directory"),
        ("tree . --offset 1", "--offset moves a simulated file system: compare two directories"),
        ("tree . --host openbsd-ffs", "--host is for simulated drives"),
        ("tree --tar missing drive:md", "read missing: no such file or directory"),
        ("tree --tar . drive:md", "read .: it is not a regular file"),
        ("tree --size 5 drive:md", "--size is for copy, bonnie, mkfs"),
        (
            "dd .",
            "it is a directory: name an image file or a block device; the workloads for directories are tree, copy, bonnie",
        ),
        ("mkfs md:64k --offset 0", "mke2fs: 65536 bytes are too few"),
        (
            "mkfs --bs 4k drive:md",
            "bench mkfs: --bs is for workloads that choose the size of their requests",
        ),
        ("tree drive:md --offset 99999999", "the target has 1073741824 bytes"),
        ("replay drive:md", "there is no trace: name one with --trace FILE"),
        (
            "replay --trace missing drive:md",
            "read missing: no such file or directory: check the name",
        ),
        (
            "raidtest --requests missing drive:md",
            "read missing: no such file or directory: check the name",
        ),
        ("dd drive:md --runs 0", "--runs"),
        (
            "dd drive:md --rest 1",
            "bench dd: --rest is for runs that write to files, devices and exports",
        ),
        ("dd md:1m --rest=-1", "not seconds from 0 to 3600"),
    ] {
        let ran = run(scratch().path(), &format!("bench {arguments}"));
        assert!(ran.refused().contains(said), "{arguments}: {}", ran.stderr);
    }
}

#[test]
fn a_medium_larger_than_the_models_is_described_first() {
    let work = "bench random-read drive:wd10ears@4t --offset 0 --runs 2 --count 10";
    let ran = run(scratch().path(), work);
    let said = ran.refused();
    assert!(
        said.contains("wd10ears has a medium of ")
            && said.contains("say --set full_size_bytes=4398046511104"),
        "{said}"
    );
    run(scratch().path(), &format!("{work} --set full_size_bytes=4398046511104")).ended(0);
    // Boundaries are the same whatever the size.
    run(scratch().path(), "info drive:wd10ears@4t").ended(0);
}

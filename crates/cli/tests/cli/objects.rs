//! Objects of a store: the same answers as of files, in few requests; what a store refuses, and
//! runs that go on.

use crate::object_server::{Contents, Faults, Server};
use crate::recipe::{Recipe, Scratch};
use crate::{Ran, containers, lay, program, run, schemas, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// A server of the files in `directory`.
pub(super) fn served(directory: &Path, faults: Faults) -> Server {
    Server::start(Contents::Directory(directory.to_path_buf()), faults)
}

/// A run whose S3 is the server.
pub(super) fn with_bucket(here: &Path, server: &Server, arguments: &str) -> Ran {
    let mut program = program(here);
    program
        .args(arguments.split_whitespace())
        .envs([("AWS_ENDPOINT", server.url.as_str()), ("AWS_ALLOW_HTTP", "true")])
        .envs([("AWS_SKIP_SIGNATURE", "true"), ("AWS_REGION", "us-east-1")]);
    Ran::of(&program.stdin(Stdio::null()).output().expect("the program can be run"))
}

/// Every golden disk, a file each, in `directory`.
pub(super) fn lay_all(directory: &Path) {
    fs::create_dir(directory).expect("a directory");
    let goldens = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/disks");
    for entry in fs::read_dir(goldens).expect("the golden disks").flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "hex") {
            continue;
        }
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let recipe = Recipe::read(path).unwrap_or_else(|e| panic!("{stem}: {e}"));
        let apart = directory.join(&stem);
        fs::create_dir(&apart).expect("a directory");
        for name in lay::lay(&recipe, &apart).unwrap_or_else(|e| panic!("{stem}: {e}")) {
            fs::rename(apart.join(&name), directory.join(format!("{stem}.{name}.img")))
                .expect("a file");
        }
        fs::remove_dir(&apart).expect("an empty directory");
    }
}

/// Lines by the last part of their targets' names, without what differs between a file and an
/// object.
pub(super) fn by_name(ran: &Ran) -> BTreeMap<String, Value> {
    let line = |line: &str| {
        let mut value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let typed = value["target"].as_str().expect("a target").to_owned();
        let name = typed.rsplit('/').next().expect("a name").to_owned();
        value.as_object_mut().expect("an object").remove("image");
        // A cure is a command for a file.
        for finding in value["findings"].as_array_mut().expect("findings") {
            for key in ["fix", "commands"] {
                finding.as_object_mut().expect("an object").remove(key);
            }
        }
        let text = value.to_string().replace(&typed, &name);
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    ran.stdout.lines().map(line).collect()
}

/// A table of which fewer blocks are looked at, where each page of it is a request.
const FEWER: [&str; 1] = ["image-vmdk-cowd.disk.img"];

#[test]
fn every_golden_disk_is_judged_as_an_object_as_it_is_as_a_file() {
    let here = scratch();
    let directory = here.path().join("all");
    lay_all(&directory);
    let server = served(&directory, Faults::default());
    let files = run(here.path(), "check -r all --jsonl");
    let objects = with_bucket(here.path(), &server, "check -r s3://bucket/ --jsonl");
    assert_eq!(files.code, objects.code, "{}", objects.stderr);
    let (files, found) = (by_name(&files), by_name(&objects));
    assert!(found.len() > 170, "{}", found.len());
    let names = |lines: &BTreeMap<String, Value>| lines.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&files), names(&found));
    let differs: Vec<&String> = files
        .iter()
        .filter(|(name, line)| !FEWER.contains(&name.as_str()) && found[*name] != **line)
        .map(|(name, _)| name)
        .collect();
    assert_eq!(differs, [] as [&String; 0]);
    assert!(objects.stderr.contains("note: requests per object: "), "{}", objects.stderr);
}

/// Requests, KiB and rounds within which an image is to be checked: a bare disk, and a container.
pub(super) const BOUNDS: [[u64; 3]; 2] = [[12, 256, 3], [16, 512, 5]];

/// Partitions of which nothing is known, two or more: some places are looked at in the middle of
/// each.
const EMPTY: &[&str] = &[
    "apm-parted",
    "gpt-4096",
    "gpt-ends",
    "gpt-overlap",
    "gpt-parted",
    "gpt-sfdisk",
    "gpt-sgdisk-256-entries",
    "gpt-sgdisk-hybrid",
    "gpt-unaligned",
    "mbr-4096",
    "mbr-overlap",
    "minix-sub",
    "rdb-parted",
    "sgi-parted",
    "unknown-in-gpt",
    "vtoc8-parted",
    "vtoc8-sfdisk",
];

/// Labels in partitions, sets and volumes within them, chains of EBRs, firmware RAIDs: each leads
/// to the next; and cures, for which a disk is looked at once more.
const NESTED: &[&str] = &[
    "bsd-freebsd",
    "bsd-freebsd-absolute",
    "bsd-netbsd",
    "bsd-netbsd-bare",
    "bsd64-dragonfly",
    "ddf-raid5",
    "fat-1024-data-off",
    "fat-4096-off",
    "fat-fat16-data-off",
    "integrity-journal",
    "integrity-off",
    "lvm-copy-damaged",
    "lvm-missing",
    "lvm-raid5-reshaped",
    "lvm-raid5-reshaping",
    "lvm-snapshot",
    "lvm-thin",
    "mbr-cylinders",
    "mbr-ebr-loop",
    "mbr-ebr-out-of-range",
    "mbr-sfdisk",
    "md-0.90",
    "md-0.90-stale",
    "md-1.0",
    "md-twins",
    "seed-004-574",
    "seed-004-forced",
    "solaris-x86",
];

/// Lines `disk requests KiB rounds` of every golden disk. TRUELINE_BLESS=1 rewrites them.
#[test]
fn a_golden_disk_takes_few_requests() {
    let here = scratch();
    let directory = here.path().join("all");
    lay_all(&directory);
    let server = served(&directory, Faults::default());
    let names = fs::read_dir(&directory).expect("a directory").flatten();
    let mut names: Vec<String> =
        names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let costs: Vec<(bool, [u64; 3])> = std::thread::scope(|scope| {
        let all: Vec<_> = names
            .chunks(names.len().div_ceil(4))
            .map(|names| {
                let (here, server) = (here.path(), &server);
                scope.spawn(move || names.iter().map(|name| cost(here, server, name)).collect())
            })
            .collect();
        all.into_iter().flat_map(|own| own.join().unwrap_or_else(|_| Vec::new())).collect()
    });
    assert_eq!(costs.len(), names.len());
    let mut lines = String::from("disk requests KiB rounds\n");
    let mut wrong = Vec::new();
    for (name, (is_container, cost)) in names.iter().zip(&costs) {
        let [requests, kib, rounds] = cost;
        lines += &format!("{name} {requests} {kib} {rounds}\n");
        let keeps = cost.iter().zip(BOUNDS[usize::from(*is_container)]).all(|(n, most)| *n <= most);
        let stem = name.split_once(".disk").map_or("", |(stem, _)| stem);
        let takes_more = EMPTY.contains(&stem) || NESTED.contains(&stem);
        // Of a set, its first disk may lead to more than the others.
        let is_other = takes_more && !name.ends_with(".disk.img");
        if keeps == takes_more && !is_other {
            wrong.push(format!("{stem}: {cost:?}"));
        }
    }
    assert_eq!(wrong, [] as [String; 0], "beyond the bounds, or no longer");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/disks/objects.costs");
    if std::env::var_os("TRUELINE_BLESS").is_some() {
        fs::write(&path, &lines).expect("the costs can be written");
    }
    assert_eq!(
        lines,
        fs::read_to_string(&path).unwrap_or_default(),
        "TRUELINE_BLESS=1 rewrites it"
    );
}

/// Whether an object is a container, and what it took.
fn cost(here: &Path, server: &Server, name: &str) -> (bool, [u64; 3]) {
    let ran = with_bucket(here, server, &format!("check --jsonl s3://bucket/{name}"));
    let value: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|e| panic!("{name}: {e}"));
    let providers = value["providers"].as_array().map_or(&[][..], Vec::as_slice);
    let is_container = providers.iter().any(|own| !own["container"].is_null());
    (is_container, numbers(&ran.stderr))
}

/// The most requests, KiB and rounds that an object took, by the note of a run.
pub(super) fn numbers(said: &str) -> [u64; 3] {
    let numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    // Each as its mean, with a tenth, and its most.
    [numbers[2], numbers[5], numbers[8]]
}

fn two() -> (Scratch, std::path::PathBuf) {
    let here = scratch();
    let directory = here.path().join("images");
    fs::create_dir(&directory).expect("a directory");
    for (golden, name) in
        [("qcow2-63", "a.qcow2"), ("image-vhd", "b.vhd"), ("image-vdi-1g", "c.vdi")]
    {
        for laid in crate::lay_golden(golden, here.path()) {
            fs::rename(here.path().join(laid), directory.join(name)).expect("a file");
        }
    }
    (here, directory)
}

/// A run that was stopped goes on, whatever it was stopped in, and says in the end what a whole one
/// says. An object that was written since is checked again.
#[test]
fn a_run_over_objects_goes_on() {
    let (here, directory) = two();
    let server = served(&directory, Faults::default());
    let command = "check -r s3://bucket/ --jsonl --into out.jsonl";
    let out = here.path().join("out.jsonl");
    assert_eq!(with_bucket(here.path(), &server, command).code, Some(1));
    let whole = fs::read(&out).expect("the lines");
    for length in (0..whole.len()).step_by(whole.len() / 7) {
        fs::write(&out, &whole[..length]).expect("a file");
        let ran = with_bucket(here.path(), &server, command);
        assert_eq!(ran.code, Some(1), "{length}: {}", ran.stderr);
        assert!(fs::read(&out).expect("the lines") == whole, "{length}");
    }
    // All are done: nothing but the listing is asked for.
    let before = server.requests().len();
    with_bucket(here.path(), &server, command);
    let asked = server.requests().split_off(before);
    assert!(asked.iter().all(|line| line.contains("list-type=2")), "{asked:?}");
    // Named one by one, each is asked for its state alone.
    let named =
        "check s3://bucket/a.qcow2 s3://bucket/b.vhd s3://bucket/c.vdi --jsonl --into out.jsonl";
    with_bucket(here.path(), &server, named);
    assert!(fs::read(&out).expect("the lines") == whole);
    let written = fs::read(directory.join("c.vdi")).expect("an image");
    fs::remove_file(directory.join("b.vhd")).expect("an image");
    fs::write(directory.join("b.vhd"), written).expect("an image");
    with_bucket(here.path(), &server, command);
    let text = fs::read_to_string(&out).expect("the lines");
    let kinds: Vec<&str> =
        text.lines().map(|line| if line.contains("\"vdi\"") { "vdi" } else { "other" }).collect();
    assert_eq!(kinds, ["other", "vdi", "vdi"]);
}

#[test]
fn what_a_store_refuses_is_a_line_and_the_rest_goes_on() {
    let (here, directory) = two();
    let faults = Faults { denied: "b.vhd".into(), busy: 2, ..Faults::default() };
    let server = served(&directory, faults);
    let ran = with_bucket(here.path(), &server, "check -r s3://bucket/ s3://bucket/none --jsonl");
    assert_eq!(ran.code, Some(2));
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let classes: Vec<&str> =
        lines.iter().map(|line| line["error_class"].as_str().unwrap_or("")).collect();
    assert_eq!(classes, ["not found", "", "denied", ""]);
    let stopped = served(&directory, Faults { written_after: Some(4), ..Faults::default() });
    let rows = with_bucket(here.path(), &server, "check -r s3://bucket/ s3://bucket/none --rows");
    let ran = with_bucket(here.path(), &stopped, "check -r s3://bucket/ --jsonl");
    for (lines, name) in [(&ran.stdout, "jsonl"), (&rows.stdout, "rows")] {
        let schema = schemas::schema(name);
        for line in lines.lines() {
            let value = serde_json::from_str(line).expect("JSON");
            schemas::fits(&value, schema).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
    assert!(ran.stdout.contains("\"error_class\":\"changed\""), "{}", ran.stdout);
    let ran = run(here.path(), "check http://127.0.0.1:1/disk.img");
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.starts_with("trueline: open http://127.0.0.1:1/disk.img: "),
        "{}",
        ran.stderr
    );
}

/// What begins with a dot is left out, as it is of a directory.
#[test]
fn a_prefix_is_a_directory() {
    let here = scratch();
    let directory = here.path().join("images");
    fs::create_dir(&directory).expect("a directory");
    for name in ["a.img", ".b.img"] {
        fs::write(directory.join(name), [0; 4096]).expect("a file");
    }
    let server = served(&directory, Faults::default());
    let names = |prefix: &str| -> Vec<String> {
        let ran = with_bucket(here.path(), &server, &format!("check --jsonl -r {prefix}"));
        by_name(&ran).into_keys().collect()
    };
    assert_eq!(names("s3://bucket/"), ["a.img"]);
}

/// What is written is refused; what is read is the object's.
#[test]
fn objects_are_read_by_other_commands() {
    let (here, directory) = two();
    let server =
        served(&directory, Faults { latency: Duration::from_millis(2), ..Faults::default() });
    let object = "s3://bucket/a.qcow2";
    let shown = with_bucket(here.path(), &server, &format!("show {object}"));
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    let info = with_bucket(here.path(), &server, &format!("info {object}#s1"));
    assert_eq!(info.code, Some(0), "{}", info.stderr);
    let written = with_bucket(here.path(), &server, &format!("part add -t linux-data {object}"));
    assert_ne!(written.code, Some(0));
    assert!(written.stderr.contains("read, not written"), "{}", written.stderr);
    if !crate::counters::here(&["nbdcopy", "qemu-img"]) {
        return;
    }
    let copy = "nbdcopy \"$uri\" out.raw";
    let mut serve = program(here.path());
    serve
        .args(["serve", "--read-only", object, "--run", copy])
        .envs([("AWS_ENDPOINT", server.url.as_str()), ("AWS_ALLOW_HTTP", "true")])
        .envs([("AWS_SKIP_SIGNATURE", "true"), ("AWS_REGION", "us-east-1")]);
    let ran = Ran::of(&serve.output().expect("the program can be run"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let compared = std::process::Command::new("qemu-img")
        .args(["compare", "images/a.qcow2", "out.raw"])
        .current_dir(here.path())
        .output()
        .expect("qemu-img can be run");
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}

/// A chain of images in a bucket is as one in a directory: followed where that is said, beside the
/// image alone; and checked again whenever it is met, since its own state has nothing of the rest.
#[test]
fn names_in_an_object_lead_to_objects_beside_it() {
    let Some(here) = containers::made(containers::CHAIN) else { return };
    let directory = here.path().join("images");
    let script = "mkdir below
        on() { qemu-img create -q -u -f qcow2 -b \"$1\" -F qcow2 $2.qcow2 32M; }
        on ../base.qcow2 hostile-1; on /base.qcow2 hostile-2
        on https://127.0.0.1/x hostile-3; on base.qcow2?x=1 hostile-4
        on absent.qcow2 absent-1; on circle.qcow2 around; on around.qcow2 circle
        cp mid.qcow2 below/mid.qcow2; cp base.qcow2 below/base.qcow2
        on below/mid.qcow2 above";
    let done = std::process::Command::new("sh")
        .args(["-ec", script])
        .current_dir(&directory)
        .status()
        .expect("a shell");
    assert!(done.success());
    let server = served(&directory, Faults::default());
    let check = |options: &str, name: &str| {
        let file = run(&directory, &format!("check --jsonl {options} {name}"));
        let object = format!("check --jsonl {options} s3://bucket/{name}");
        let object = with_bucket(here.path(), &server, &object);
        (by_name(&file).remove(name), by_name(&object).remove(name))
    };
    for name in ["top.qcow2", "mid.qcow2", "above.qcow2"] {
        for options in ["", "--follow", "--follow --for ssd-16k"] {
            let (file, object) = check(options, name);
            assert_eq!(file, object, "{options} {name}");
            let verdict = if options.is_empty() { "unknown" } else { "aligned" };
            assert_eq!(object.expect("a line")["verdict"], verdict, "{options} {name}");
        }
    }
    for name in ["hostile-1", "hostile-2", "hostile-3", "hostile-4", "absent-1", "circle"] {
        let before = server.requests().len();
        let (_, object) = check("--follow", &format!("{name}.qcow2"));
        let line = object.expect("a line").to_string();
        assert!(line.contains("\"verdict\":\"unknown\""), "{name}: {line}");
        assert_eq!(line.contains("is not followed: "), name != "circle", "{name}: {line}");
        let asked = server.requests().split_off(before);
        let wanted = |line: &&String| name == "circle" || !line.contains(&format!("{name}.qcow2"));
        let others = asked.iter().filter(wanted).count();
        assert!(others <= if name == "circle" { 40 } else { 2 }, "{name}: {asked:?}");
    }
    // Both states of a file behind it.
    let command = "check --follow --rows s3://bucket/top.qcow2 --into out";
    let lines = || {
        with_bucket(here.path(), &server, command);
        fs::read_to_string(here.path().join("out")).expect("lines")
    };
    let first = lines();
    assert!(first.contains("\"etag\":\"\"") && first.contains("\"p1\""), "{first}");
    fs::remove_file(directory.join("base.qcow2")).expect("a file");
    assert!(!lines().contains("\"p1\""));
    fs::copy(directory.join("below/base.qcow2"), directory.join("base.qcow2")).expect("a file");
    assert_eq!(lines(), first);
    if !crate::counters::here(&["nbdcopy", "qemu-img"]) {
        return;
    }
    let compare = "qemu-img compare -f raw -F raw images/whole \"$uri\"";
    let mut serve = program(here.path());
    serve
        .args(["serve", "--read-only", "--follow", "s3://bucket/top.qcow2", "--run", compare])
        .envs([("AWS_ENDPOINT", server.url.as_str()), ("AWS_ALLOW_HTTP", "true")])
        .envs([("AWS_SKIP_SIGNATURE", "true"), ("AWS_REGION", "us-east-1")]);
    let ran = Ran::of(&serve.output().expect("the program can be run"));
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
}

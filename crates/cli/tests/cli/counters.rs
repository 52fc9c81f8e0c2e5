//! Counters of `serve`, through its own server and foreign clients; and its page in a browser.
//!
//! Where a client is not installed its tests are skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use super::{Ran, list, program, run, scratch, zeroes};
use crate::skip::skip;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

const MEG: u64 = 1 << 20;

/// Search path of tools: the system's Python, which has the module that nbdsh needs, before any
/// other.
pub(crate) fn path() -> String {
    format!("/usr/bin:/bin:{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// True if all these tools are here; prints the one that is missing.
pub(crate) fn here(tools: &[&str]) -> bool {
    let found = |name: &&&str| {
        let asked = match **name {
            "nbdsh" => "nbdsh -c pass".to_owned(),
            // In some systems it only tells how to install it.
            "chromium" => "chromium --version".to_owned(),
            // It may be forbidden to trace.
            "strace" => "strace -qq -o /dev/null true".to_owned(),
            "fio" => "fio --enghelp=nbd".to_owned(),
            name => format!("command -v {name}"),
        };
        Command::new("sh")
            .args(["-c", &asked])
            .env("PATH", path())
            .output()
            .is_ok_and(|ran| ran.status.success())
    };
    let missing = tools.iter().find(|name| !found(name));
    if let Some(missing) = missing {
        skip(&format!("no {missing} here"));
    }
    missing.is_none()
}

/// A disk of 32 MiB with one partition of 16 MiB at sector 63.
pub(crate) fn at_63(directory: &Path) {
    zeroes(directory, "disk", 32 * MEG);
    let mut entry = [0; 66];
    entry[4] = 0x83;
    entry[8..12].copy_from_slice(&63u32.to_le_bytes());
    entry[12..16].copy_from_slice(&32768u32.to_le_bytes());
    entry[64..].copy_from_slice(&[0x55, 0xaa]);
    let file = File::options().write(true).open(directory.join("disk")).expect("the disk");
    file.write_all_at(&entry, 446).expect("a write");
}

/// Result of `serve` with these options and `--run script`.
pub(crate) fn serve(directory: &Path, options: &str, script: &str) -> Ran {
    let mut command = program(directory);
    command
        .arg("serve")
        .args(options.split_whitespace())
        .args(["--run", script])
        .env("PATH", path());
    Ran::of(&command.output().expect("the program can be run"))
}

/// The only row of a provider under an export.
fn layer<'a>(served: &'a Value, export: &str, provider: &str) -> &'a Value {
    let rows: Vec<&Value> = list(served, "layers")
        .iter()
        .filter(|l| l["export"] == export && l["provider"] == provider)
        .collect();
    assert_eq!(rows.len(), 1, "{export} {provider}: {served:#}");
    rows[0]
}

fn verdicts(of: &Value) -> [u64; 4] {
    ["aligned", "misaligned", "partial", "unknown"]
        .map(|verdict| of[verdict].as_u64().expect("a count"))
}

#[test]
fn a_known_sequence_is_counted_to_the_request() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    let script = r#"nbdsh -u "$uri" -c '
for i in range(10): h.pwrite(bytes(4096), 63 * 512 + i * 4096)
for i in range(5): h.pread(512, i * 512)
h.pread(8192, 4096)
h.pwrite(bytes(4096), 20 << 20)
h.pwrite(bytes(4096), (20 << 20) + 512, nbd.CMD_FLAG_FUA)
h.flush()
h.flush()
try:
    h.set_strict_mode(0)
    h.pread(512, 1 << 40)
except nbd.Error: pass
'"#;
    let ran = serve(scratch.path(), "disk --json", script);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.lines().all(|line| line.starts_with("trueline: note TL0025 s1: ")),
        "{}",
        ran.stderr
    );
    let served = ran.json();
    assert_eq!(
        (&served["format"], &served["target"]),
        (&"trueline/serve/1".into(), &"disk".into())
    );
    let s1 = layer(&served, "", "s1");
    assert_eq!(
        (verdicts(&s1["writes"]), s1["reads"]["aligned"].as_u64()),
        ([0, 10, 0, 0], Some(0)),
        "{s1:#}"
    );
    assert_eq!(
        (s1["unit"].as_u64(), s1["bytes"]["writes"].as_u64(), s1["blamed"]["writes"].as_u64()),
        (Some(4096), Some(40960), Some(10))
    );
    let blame = (&s1["blame"]["provider"], &s1["blame"]["remainder"], &s1["blame"]["rule"]);
    assert_eq!(blame, (&"s1".into(), &3584.into(), &"TL0001".into()));
    assert_eq!(s1["rmw_factor"].as_f64(), Some(4.0));
    let histogram = list(s1, "histogram");
    let want = serde_json::json!([{"op": "write", "verdict": "misaligned", "size": 4096, "alignment": 512, "count": 10}]);
    assert_eq!(Value::from(histogram), want);
    let disk = layer(&served, "", "");
    assert_eq!(
        (verdicts(&disk["reads"]), verdicts(&disk["writes"])),
        ([1, 0, 5, 0], [1, 1, 0, 0]),
        "{disk:#}"
    );
    // The disk begins on the grain: what is off there is the client's doing.
    assert_eq!((&disk["blame"], disk["blamed"]["writes"].as_u64()), (&Value::Null, Some(0)));
    let export = list(&served, "exports").iter().find(|e| e["provider"] == "").expect("the export");
    assert_eq!(export["flushes"].as_u64(), Some(2), "{export:#}");
}

/// That it ended well.
#[track_caller]
pub(super) fn done(ran: &Ran) -> &Ran {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    ran
}

/// Sums of a key of every layer of a provider over its disks.
fn sum(served: &Value, provider: &str, pointer: &str) -> u64 {
    let rows = list(served, "layers").iter().filter(|layer| layer["provider"] == provider);
    rows.map(|layer| {
        layer
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("{pointer}: {layer:#}"))
    })
    .sum()
}

/// Four disks in a stripe of chunks of 16 KiB, on which a partition begins at sector 63.
pub(crate) fn striped(directory: &Path) {
    let disks = ["d0", "d1", "d2", "d3"];
    disks.iter().for_each(|disk| zeroes(directory, disk, 4 * MEG));
    run(directory, "stripe label -s 16k data d0 d1 d2 d3").ended(0);
    // The first chunk of the set is the first disk's.
    let mut entry = [0; 66];
    entry[4] = 0x83;
    entry[8..12].copy_from_slice(&63u32.to_le_bytes());
    entry[12..16].copy_from_slice(&16384u32.to_le_bytes());
    entry[64..].copy_from_slice(&[0x55, 0xaa]);
    let file = File::options().write(true).open(directory.join("d0")).expect("the disk");
    file.write_all_at(&entry, 446).expect("a write");
}

/// A client that writes whole blocks does nothing wrong where a set cuts them.
#[test]
fn what_a_set_cuts_is_not_the_clients_doing() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    striped(scratch.path());
    let script = r#"nbdsh -u "nbd+unix:///stripe%2Fdatas1?socket=$unixsocket" -c '
for i in range(900): h.pwrite(bytes(4096), i * 4096)
' "#;
    let served = done(&serve(scratch.path(), "d0,d1,d2,d3#stripe/data --json", script)).json();
    let of = |pointer: &str| sum(&served, "stripe/datas1", pointer);
    assert_eq!(
        ["aligned", "misaligned", "partial"].map(|fit| of(&format!("/writes/{fit}"))),
        [0, 1125, 0],
        "{served:#}"
    );
    assert_eq!(
        ["aligned", "misaligned", "partial"].map(|fit| of(&format!("/requests/writes/{fit}"))),
        [0, 900, 0]
    );
    assert_eq!(
        (of("/blamed/writes"), of("/blamed_requests/writes"), of("/request_bytes/writes")),
        (1125, 900, 900 * 4096)
    );
    assert_eq!(
        (of("/device_operations/writes"), of("/device_operations/writes_needed")),
        (3600, 900)
    );
    let export = list(&served, "exports")
        .iter()
        .find(|export| export["provider"] == "stripe/datas1")
        .expect("the export");
    assert_eq!(
        (&export["requests"]["writes"], &export["pieces"]["writes"]),
        (&900.into(), &1125.into()),
        "{export:#}"
    );
    // For people: a line for the layer on all of its disks, and the one that is hit most.
    let said = done(&serve(scratch.path(), "d0,d1,d2,d3#stripe/data", script)).stderr.clone();
    let line = |begins: &str| {
        said.lines()
            .find(|line| line.starts_with(begins))
            .unwrap_or_else(|| panic!("{begins}: {said}"))
            .to_owned()
    };
    assert!(
        line("served ").contains(" 900 writes (3.5 MiB), 0 flushes, 1125 pieces on the disks"),
        "{said}"
    );
    let row = line("stripe/datas1 ");
    assert!(row.contains(" of 4 ") && row.ends_with("  0         900        0  4.00 x"), "{said}");
    let says = line("stripe/datas1: ");
    assert!(
        says.contains("900 of 900 requests are off the 4096-byte physical units of 4 disks, d"),
        "{said}"
    );
    assert!(
        says.contains(
            "because stripe/datas1 begins 3584 bytes past a boundary; its writes come to 4.00 x"
        ),
        "{said}"
    );
    assert!(!said.contains("TL0004") && !said.contains("client"), "{said}");
}

/// A chunk that is smaller than a unit cuts every request, and that is the set's doing.
#[test]
fn a_set_whose_chunks_are_no_whole_units_is_blamed() {
    if !here(&["nbdsh"]) {
        return;
    }
    let scratch = scratch();
    ["d0", "d1"].iter().for_each(|disk| zeroes(scratch.path(), disk, 4 * MEG));
    done(&run(scratch.path(), "stripe label --force -s 2k data d0 d1"));
    let script = r#"nbdsh -u "$uri" -c 'for i in range(10): h.pwrite(bytes(4096), i * 4096)'"#;
    let said = done(&serve(scratch.path(), "d0,d1#stripe/data", script)).stderr.clone();
    let says = said
        .lines()
        .find(|line| line.starts_with("stripe/data: "))
        .unwrap_or_else(|| panic!("{said}"));
    assert!(
        says.starts_with(
            "stripe/data: 10 of 10 requests are off the 4096-byte physical units of 2 disks"
        ),
        "{said}"
    );
    assert!(
        says.contains(
            "because stripe/data cuts them into chunks of 2048 bytes; its writes come to 4.00 x"
        ),
        "{said}"
    );
}

/// Requests that never reach the store are errors all the same, and stand in the trace as what they
/// are.
#[test]
fn what_the_protocol_refuses_is_counted_and_recorded() {
    if !here(&["nbdsh"]) {
        return;
    }
    let script = |ways: &str| {
        format!(
            "nbdsh -u \"$uri\" -c '\nh.set_strict_mode(0)\nfor way in [{ways}]:\n try: way()\n except nbd.Error: pass\n'"
        )
    };
    let past = "lambda: h.pread(512, 1 << 40), lambda: h.pwrite(bytes(512), (1 << 20) - 256), \
        lambda: h.trim(512, 1 << 40), lambda: h.zero(512, 1 << 40), lambda: h.pread(512, 0)";
    let there = scratch();
    let ran = serve(there.path(), "md:1m --json --record t.trace", &script(past));
    let served = done(&ran).json();
    let errors = |served: &Value| {
        ["reads", "writes", "trims", "zeroes"]
            .map(|deed| served["exports"][0]["errors"][deed].as_u64().unwrap_or(99))
    };
    assert_eq!(errors(&served), [1, 1, 1, 1], "{served:#}");
    assert_eq!(served["exports"][0]["requests"]["reads"], 1);
    let trace = fs::read_to_string(there.path().join("t.trace")).expect("the trace");
    let refused: Vec<&str> = trace
        .lines()
        .filter_map(|line| line.split_once(" refused "))
        .map(|(_, what)| what)
        .collect();
    let far = 1u64 << 40;
    assert_eq!(
        refused,
        [
            format!("R {far} 512"),
            format!("W {} 512", MEG - 256),
            format!("discard {far} 512"),
            format!("zero {far} 512")
        ]
    );
    assert!(
        trace.lines().all(|line| !line.contains(" refused ") || line.starts_with("# ")),
        "{trace}"
    );
    // Where nothing may be written.
    let writes = "lambda: h.pwrite(bytes(512), 0), lambda: h.pwrite(bytes(512), 0, \
        nbd.CMD_FLAG_FUA), lambda: h.trim(512, 0)";
    let ran = serve(there.path(), "md:1m --read-only --json", &script(writes));
    assert_eq!(errors(&done(&ran).json()), [0, 2, 1, 0]);
    // Large ones are refused while their bytes are still to come.
    let large = "lambda: h.pwrite(bytes(8 << 20), 0)";
    let ran = serve(there.path(), "md:1m", &script(large));
    assert!(
        done(&ran).stderr.contains("0 writes (0 bytes), 0 flushes, 1 failed"),
        "{}",
        ran.stderr
    );
}

/// A file system that mkfs made, copied to a partition at sector 63 as a client writes it.
#[test]
fn a_file_system_off_the_grain_is_blamed_on_its_partition() {
    if !here(&["qemu-io", "nbdcopy", "mkfs.ext4"]) {
        return;
    }
    let scratch = scratch();
    at_63(scratch.path());
    zeroes(scratch.path(), "fs", 16 * MEG);
    let script = r#"mkfs.ext4 -q -F -b 4096 fs && nbdcopy fs "nbd+unix:///s1?socket=$unixsocket" &&
qemu-io -f raw -c 'write -P 7 8M 64k' -c 'write -P 7 9M 512' -c 'flush' "nbd+unix:///s1?socket=$unixsocket""#;
    let ran = serve(scratch.path(), "disk", &format!("{{ {script}; }} >log 2>&1"));
    let log = fs::read_to_string(scratch.path().join("log")).unwrap_or_default();
    assert_eq!(ran.code, Some(0), "{log}{}", ran.stderr);
    // The whole of it, at the place where the partition is.
    let (mut on_disk, mut made) = (vec![0; 4096], vec![0; 4096]);
    File::open(scratch.path().join("disk"))
        .expect("the disk")
        .read_exact_at(&mut on_disk, 63 * 512)
        .expect("a read");
    File::open(scratch.path().join("fs"))
        .expect("the file")
        .read_exact_at(&mut made, 0)
        .expect("a read");
    assert_eq!((&on_disk, &on_disk[1080..1082]), (&made, &[0x53u8, 0xef][..]));
    let says = ran
        .stderr
        .lines()
        .find(|line| line.starts_with("s1: "))
        .unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(
        says.contains(
            "are off the 4096-byte physical unit, because s1 begins 3584 bytes past a boundary"
        ),
        "{says}"
    );
    assert!(
        says.ends_with("trueline explain TL0001")
            && ran.stderr.contains("writes are smaller than the 4096-byte physical unit"),
        "{}",
        ran.stderr
    );
    let off: u64 = says.split(' ').nth(1).and_then(|n| n.parse().ok()).expect("a count");
    assert!(off > 10, "{says}");
    // On a partition that begins on its unit nothing is said to be off.
    let ran =
        serve(scratch.path(), "disk --physical 4096+3584", &format!("{{ {script}; }} >log 2>&1"));
    assert!(ran.code == Some(0) && !ran.stderr.contains("begins"), "{}", ran.stderr);
}

#[test]
fn nothing_is_counted_where_nothing_is_to_be() {
    if !here(&["nbdsh"]) {
        return;
    }
    let script = r#"nbdsh -u "$uri" -c 'h.pread(512, 0)'"#;
    serve(scratch().path(), "md:1m --no-counters", script).ended(0);
    assert!(serve(scratch().path(), "md:1m", script).stderr.starts_with("served md:1m: "));
    // Without any request there is nothing to sum up.
    serve(scratch().path(), "md:1m", "true").ended(0);
    for (options, says) in [
        ("md:1m --top --no-counters", "cannot be used with"),
        ("md:1m --metrics nowhere", "neither PORT nor ADDRESS:PORT"),
        ("md:1m --top", "serve --top: standard output is not a terminal"),
    ] {
        let ran = serve(scratch().path(), options, "true");
        assert!(ran.code == Some(2) && ran.stderr.contains(says), "{options}: {}", ran.stderr);
    }
}

//! The real kernel: one guest boots with disks of many kinds, and its sysfs must say what we say of
//! every partition.
//!
//! `start` and `length` are compared as they are; `alignment_offset` with the phase of our grain of
//! the kernel's own granularity, the larger of the physical block and the minimum I/O size
//! (`queue_limit_alignment_offset` in `include/linux/blkdev.h`). One more disk is `scsi_debug`'s,
//! which can have its first aligned sector at 7, as the drives with an XP jumper do.

use crate::oracle::{missing, tell};
use crate::recipe::{self, Scratch};
use crate::skip::skip;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A disk in the guest: recipe, logical block, physical block, minimum I/O, optimal I/O.
const DISKS: &[(&str, u64, u64, u64, u64)] = &[
    ("gpt-sfdisk", 512, 512, 0, 0),
    ("gpt-unaligned", 512, 4096, 0, 0),
    ("gpt-unaligned", 512, 512, 16384, 65536),
    ("gpt-sgdisk-256-entries", 512, 4096, 65536, 262_144),
    ("gpt-primary-header-crc", 512, 4096, 0, 0),
    ("gpt-sgdisk-moved-table", 512, 16384, 0, 0),
    ("gpt-4096", 4096, 4096, 0, 0),
    ("mbr-cylinders", 512, 4096, 0, 0),
    ("mbr-sfdisk", 512, 4096, 1 << 20, 0),
    ("mbr-4096", 4096, 4096, 65536, 0),
    ("bsd-freebsd", 512, 4096, 0, 0),
    ("bsd-freebsd-absolute", 512, 4096, 16384, 0),
    ("seed-000-openbsd", 512, 4096, 0, 0),
    ("seed-001-sdc-64", 512, 4096, 0, 0),
    ("seed-004-574", 512, 4096, 0, 0),
];

/// Disks that `trueline part` makes: what it is, its sector, the verbs, the providers whose tables
/// Linux reads. (Its BSD labels count sectors of 512 bytes on every disk.)
const MADE: &[(&str, u64, &[&str], &[&str])] = &[
    ("gpt", 512, GPT, &[""]),
    ("gpt", 4096, GPT, &[""]),
    ("mbr", 512, MBR, &["", "#s2"]),
    ("mbr", 4096, MBR, &["", "#s2"]),
    (
        "bsd",
        512,
        &[
            "create -s mbr disk",
            "add -t linux-data -s 3m disk",
            "add -t freebsd disk",
            "create -s bsd disk#s2",
            "add -t freebsd-ufs -s 9m disk#s2",
            "add -t freebsd-swap -s 5m disk#s2",
            "add -t freebsd-ufs disk#s2",
        ],
        &["", "#s2"],
    ),
];
const GPT: &[&str] = &[
    "create -s gpt disk",
    "add -t efi -s 5m disk",
    "add -t linux-swap -s 516k disk",
    "add -t linux-data disk",
    "delete -i 1 disk",
];
const MBR: &[&str] = &[
    "create -s mbr disk",
    "add -t linux-data -s 3m disk",
    "add -t ebr disk",
    "create -s ebr disk#s2",
    "add -t linux-data -s 3m disk#s2",
    "add -t linux-swap -s 5m disk#s2",
    "add -t linux-data -s 7m disk#s2",
    "add -t linux-data disk#s2",
    "delete -i 6 disk#s2",
];

/// The disk that is also copied onto the one of `scsi_debug`, and the options that describe that
/// one to us.
const JUMPERED: (&str, &str) = ("mbr-cylinders", "4096+3584");

/// Start, length and alignment offset of a partition.
type Row = (u64, u64, u64);

#[test]
fn the_kernel_agrees() {
    let recipes = recipe::all();
    let scratch = Scratch::new("kernel");
    let mut arguments: Vec<String> = Vec::new();
    let (mut disks, mut jumpered) = (Vec::new(), None);
    for (number, &(name, logical, physical, minimum, optimal)) in DISKS.iter().enumerate() {
        let recipe = recipes.iter().find(|r| r.name == name).unwrap();
        if let Some(missing) = missing(recipe) {
            skip(&format!("{name}: no {missing} here"));
            continue;
        }
        let directory = scratch.path().join(number.to_string());
        recipe.make(&directory).unwrap();
        let file = directory.join("disk");
        let device = format!("vd{}", char::from(b'a' + u8::try_from(disks.len()).unwrap()));
        if name == JUMPERED.0 {
            jumpered = Some((device.clone(), file.clone()));
        }
        let mut argument = format!("{},lbs={logical},pbs={physical}", file.display());
        for (key, size) in [("min", minimum), ("opt", optimal)] {
            if size > 0 {
                argument += &format!(",{key}={size}");
            }
        }
        arguments.push(argument);
        let mut options = vec![
            "--logical".to_string(),
            logical.to_string(),
            "--physical".into(),
            physical.to_string(),
        ];
        if minimum > physical {
            options.extend(["--grain".into(), format!("preferred={minimum}")]);
        }
        disks.push((
            format!("{device}: {name} {logical}/{physical} min {minimum}"),
            device,
            file,
            options,
        ));
    }
    let mut made: Vec<(String, BTreeSet<(u64, u64)>)> = Vec::new();
    for (number, &(what, sector, verbs, tables)) in MADE.iter().enumerate() {
        let directory = scratch.path().join(format!("made-{number}"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::File::create(directory.join("disk")).unwrap().set_len(64 << 20).unwrap();
        let options =
            ["--logical".to_string(), sector.to_string(), "--physical".into(), "4096".into()]
                .to_vec();
        let part = |words: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
            let ran = command
                .arg("part")
                .args(words.split_whitespace())
                .args(&options)
                .current_dir(&directory)
                .output()
                .unwrap();
            assert!(
                ran.status.success() && ran.stderr.is_empty(),
                "{words}: {}",
                String::from_utf8_lossy(&ran.stderr)
            );
            ran.stdout
        };
        verbs.iter().for_each(|verb| drop(part(verb)));
        let mut places = BTreeSet::new();
        for table in tables {
            let shown: Value =
                serde_json::from_slice(&part(&format!("show --json disk{table}"))).unwrap();
            let (table, number) =
                (&shown["tables"][0], |value: &Value, key: &str| value[key].as_u64().unwrap());
            let entries = table["entries"].as_array().unwrap();
            places.extend(
                entries
                    .iter()
                    .map(|e| (number(table, "base") + number(e, "start"), number(e, "length"))),
            );
        }
        let device = format!("vd{}", char::from(b'a' + u8::try_from(disks.len()).unwrap()));
        let file = directory.join("disk");
        arguments.push(format!("{},lbs={sector},pbs=4096", file.display()));
        disks.push((format!("{device}: part {what} {sector}"), device.clone(), file, options));
        made.push((device, places));
    }
    let mut boot =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernel/boot.sh"));
    if let Some((device, file)) = jumpered {
        boot.args(["-m", "scsi_debug dev_size_mb=100 physblk_exp=3 lowest_aligned=7"]);
        boot.args([
            "-r",
            &format!("dd if=/dev/{device} of=/dev/sda bs=1M && blockdev --rereadpt /dev/sda"),
        ]);
        let options = ["--logical", "512", "--physical", JUMPERED.1].map(String::from).to_vec();
        disks.push((
            format!("sda: {} --physical {}", JUMPERED.0, JUMPERED.1),
            "sda".into(),
            file,
            options,
        ));
    }
    let ran = boot.args(&arguments).output().unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(2) {
        // boot.sh's own status for "something to boot with is missing"; it says what.
        return skip(errors.trim());
    }
    assert!(ran.status.success(), "{errors}");
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut wrong = Vec::new();
    for (what, device, file, options) in &disks {
        let (theirs, granularity) = kernel(&lines, device);
        let (ours, extended) = ours(file, options, granularity);
        // Linux shows only the first sectors of an extended partition, so that its chain is not
        // written over.
        let stub = |row: &Row| {
            theirs.iter().find(|t| t.0 == row.0 && extended.contains(row)).copied().unwrap_or(*row)
        };
        let ours: BTreeSet<Row> = ours.iter().map(stub).collect();
        if ours != theirs {
            wrong.push(format!(
                "{what}\n  only the kernel: {:?}\n  only we: {:?}",
                theirs.difference(&ours).collect::<Vec<_>>(),
                ours.difference(&theirs).collect::<Vec<_>>()
            ));
        }
    }
    for (device, places) in &made {
        let (theirs, _) = kernel(&lines, device);
        assert!(
            theirs.iter().all(|row| row.2 == 0),
            "{device}: off what the kernel aligns to: {theirs:?}"
        );
        // Of the extended one, Linux shows the start alone.
        let starts = |rows: &mut dyn Iterator<Item = u64>| rows.collect::<BTreeSet<u64>>();
        assert_eq!(
            starts(&mut theirs.iter().map(|r| r.0)),
            starts(&mut places.iter().map(|r| r.0)),
            "{device}"
        );
        let other: Vec<_> = theirs.iter().filter(|r| !places.contains(&(r.0, r.1))).collect();
        assert!(other.iter().all(|r| r.1 <= 4096) && other.len() <= 1, "{device}: {other:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tell(&format!(
        "kernel: {} partitions on {} disks agree",
        lines.len() - disks.len(),
        disks.len()
    ));
}

/// The partitions of `device`, and the granularity the kernel measures its alignment by.
fn kernel(lines: &[Value], device: &str) -> (BTreeSet<Row>, u64) {
    let of_disk: Vec<&Value> = lines.iter().filter(|line| line["disk"] == device).collect();
    let disk =
        of_disk.iter().find(|line| line["name"] == device).expect("the guest shows the disk");
    let number = |line: &Value, key: &str| line[key].as_u64().unwrap_or(u64::MAX);
    let granularity = number(disk, "physical_block_size").max(number(disk, "minimum_io_size"));
    let parts = of_disk.iter().filter(|line| line["name"] != device);
    (
        parts
            .map(|p| (number(p, "start"), number(p, "length"), number(p, "alignment_offset")))
            .collect(),
        granularity,
    )
}

/// Our partitions with the phase of the grain of that size, and those of them that are extended.
fn ours(file: &Path, options: &[String], granularity: u64) -> (BTreeSet<Row>, BTreeSet<Row>) {
    let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["check", "--json"])
        .args(options)
        .arg(file)
        .output();
    let ran = ran.expect("trueline runs");
    let report: Value = serde_json::from_slice(&ran.stdout)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&ran.stderr)));
    let providers = report["targets"][0]["providers"].as_array().expect("providers");
    // Linux reads a BSD label in a slice of an MBR, not in a partition of a GPT.
    let in_gpt = |p: &Value| {
        providers.iter().any(|above| above["provider"] == p["parent"] && above["class"] == "gpt")
    };
    let tables = providers
        .iter()
        .filter(|p| matches!(p["class"].as_str(), Some("gpt" | "mbr" | "bsd")) && !in_gpt(p));
    let (mut all, mut extended) = (BTreeSet::new(), BTreeSet::new());
    for p in tables {
        let grain = p["grains"].as_array().into_iter().flatten().find(|g| g["size"] == granularity);
        let phase = grain.and_then(|g| g["phase"].as_u64()).unwrap_or(u64::MAX);
        let row =
            (p["start"].as_u64().expect("start"), p["length"].as_u64().expect("length"), phase);
        all.insert(row);
        if p["type"].as_str().is_some_and(|kind| kind.to_lowercase().contains("extended")) {
            extended.insert(row);
        }
    }
    (all, extended)
}

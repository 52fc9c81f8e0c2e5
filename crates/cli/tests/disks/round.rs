//! Tables written by other tools are described alike, and a table described by `part backup` is
//! made again by `part restore`.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use crate::lay::lay;
use crate::oracle::{missing_of, tool};
use crate::recipe::{self, Scratch};
use crate::skip::skip;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Goldens whose table `restore` does not make again, and why.
const NOT_AGAIN: &[(&str, &str)] = &[
    ("bsd-parted", "it says that it has three entries, which no label of FreeBSD's has"),
    ("gpt-out-of-range", "a partition does not lie on the disk"),
    ("gpt-overlap", "its partitions overlap"),
    ("image-qcow2", IN_A_CONTAINER),
    ("image-vhd", IN_A_CONTAINER),
    ("image-vhdx", IN_A_CONTAINER),
    ("qcow2-63", IN_A_CONTAINER),
    (
        "mbr-4096-unsaid",
        "what its sectors are only its contents say, and a copy of the table has none",
    ),
];

const IN_A_CONTAINER: &str =
    "the table is of the disk in a container, and the copy as short as its file";

fn part(directory: &Path, words: &str, input: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_trueline"));
    command
        .arg("part")
        .args(words.split_whitespace())
        .current_dir(directory)
        .stdin(input)
        .output()
        .unwrap()
}

/// The table, if there is one.
fn table(directory: &Path, disk: &str) -> Option<Value> {
    let shown = part(directory, &format!("show --json {disk}"), Stdio::null());
    let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
    shown["tables"].get(0).cloned()
}

/// The rows that a backup has for partitions.
fn rows(table: &Value) -> Vec<Vec<Value>> {
    let keys = ["index", "start", "length", "raw_type", "label", "attributes"];
    table["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| keys.map(|key| e[key].clone()).to_vec())
        .collect()
}

#[test]
fn backup_and_restore_make_every_golden_table_again() {
    let (mut wrong, mut count) = (Vec::new(), 0);
    // The table in a container is that of a disk larger than its file, which is not made here.
    for recipe in recipe::all().into_iter().filter(|recipe| !recipe.name.starts_with("image-")) {
        let scratch = Scratch::new(&format!("round-{}", recipe.name));
        let here = scratch.path();
        for name in lay(&recipe, here).unwrap() {
            let Some(old) = table(here, &name)
                .filter(|t| t["damage"] == serde_json::json!([]) && t["read_only"] == false)
            else {
                continue;
            };
            let text = part(here, &format!("backup {name}"), Stdio::null()).stdout;
            std::fs::write(here.join("text"), text).unwrap();
            let length = std::fs::metadata(here.join(&name)).unwrap().len();
            File::create(here.join("copy")).unwrap().set_len(length).unwrap();
            let sector = old["sector_size"].as_u64().unwrap();
            let words = format!("restore -F -l --logical {sector} copy");
            let ran = part(here, &words, File::open(here.join("text")).unwrap().into());
            let again = table(here, "copy");
            let same = again.is_some_and(|again| {
                again["scheme"] == old["scheme"] && rows(&again) == rows(&old)
            });
            count += 1;
            if same == NOT_AGAIN.iter().any(|(not, _)| *not == recipe.name) {
                wrong.push(format!(
                    "{} {name}: {same}: {}",
                    recipe.name,
                    String::from_utf8_lossy(&ran.stderr)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 30, "{count}");
}

/// sgdisk's code, and the name of the type here.
const CODES: [(&str, &str); 6] = [
    ("EF00", "efi"),
    ("8300", "linux-data"),
    ("8200", "linux-swap"),
    ("A503", "freebsd-ufs"),
    ("0700", "ms-basic-data"),
    ("8E00", "linux-lvm"),
];

#[test]
fn sgdisk_prints_what_we_show() {
    if let Some(missing) = missing_of(["sgdisk"]) {
        skip(&format!("sgdisk --print: no {missing} here"));
        return;
    }
    let scratch = Scratch::new("round-sgdisk");
    let here = scratch.path();
    for (n, made) in [
        "-n 1:2048:+1M -t 1:EF00 -n 2:0:+3M -t 2:8300 -n 3:0:0 -t 3:A503",
        "-a 1 -n 5:34:40 -t 5:8200 -n 4:63:4095 -t 4:0700",
        "--resize-table=256 -n 200:0:+1M -t 200:8E00 -n 1:0:0 -t 1:8300",
    ]
    .into_iter()
    .enumerate()
    {
        let disk = format!("disk{n}");
        File::create(here.join(&disk)).unwrap().set_len(32 << 20).unwrap();
        let arguments: Vec<&str> = made.split_whitespace().chain([disk.as_str()]).collect();
        assert!(tool("sgdisk", &arguments, here).unwrap().status.success(), "{made}");
        let printed =
            String::from_utf8(tool("sgdisk", &["--print", &disk], here).unwrap().stdout).unwrap();
        let lines = printed.lines().skip_while(|line| !line.starts_with("Number")).skip(1);
        let theirs: Vec<(u64, u64, u64, String)> = lines
            .map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let number = |i: usize| words[i].parse::<u64>().unwrap();
                (number(0), number(1), number(2), words[5].to_string())
            })
            .collect();
        let table = table(here, &disk).unwrap();
        let code =
            |e: &Value| CODES.iter().find(|(_, name)| e["type"] == *name).unwrap().0.to_string();
        let number = |e: &Value, key: &str| e[key].as_u64().unwrap();
        let last = |e: &Value| (number(e, "start") + number(e, "length")) / 512 - 1;
        let ours: Vec<_> = table["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| (number(e, "index"), number(e, "start") / 512, last(e), code(e)))
            .collect();
        assert!(ours == theirs && !ours.is_empty(), "{made}: {ours:?} {theirs:?}");
    }
}

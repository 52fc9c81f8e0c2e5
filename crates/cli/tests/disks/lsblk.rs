//! The golden disks as block devices: `lsblk -OJb` and `partx` see the partitions that we see, and
//! `check --from` reads them.
//!
//! This needs root and loop devices. libblkid reads the tables (`partx --add`), the kernel keeps
//! them, `lsblk` lists them; a table that partx does not read is left out here, since `oracle.rs`
//! has compared it already.

use crate::lay::lay;
use crate::oracle::{missing_of, tell, tool};
use crate::recipe::{self, Scratch};
use crate::skip::skip;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn lsblk_lists_the_same_partitions() {
    if let Some(missing) = missing_of(["root", "loop", "losetup", "partx", "lsblk"]) {
        skip(&format!("no {missing} here"));
        return;
    }
    let (mut wrong, mut compared) = (Vec::new(), 0);
    // What is at the front of a member of a GEOM set, or of a firmware RAID, is the set's; libblkid
    // and the kernel show it all the same.
    // A Btrfs without a table has no partition, and while a device has its UUID its recipe fails.
    let out = ["btrfs-default", "mirror-two", "raid-isw"];
    for recipe in recipe::all().into_iter().filter(|r| !out.contains(&r.name.as_str())) {
        let sector = if recipe.field("check").any(|check| check.contains("--logical 4096")) {
            "4096"
        } else {
            "512"
        };
        let scratch = Scratch::new(&format!("lsblk-{}", recipe.name));
        for name in lay(&recipe, scratch.path()).unwrap() {
            let Some(device) = Attached::new(scratch.path(), &name, sector) else { continue };
            let listed = tool("lsblk", &["-OJb", &device.0], scratch.path()).unwrap().stdout;
            let theirs = listed_partitions(&serde_json::from_slice(&listed).unwrap_or_default());
            if theirs.is_empty() {
                continue;
            }
            compared += theirs.len();
            let ours = partitions(&check(scratch.path(), &["--logical", sector, &name]));
            // An Apple map has entries for its own blocks and for free space: partitions to Linux,
            // to us the table and what is free.
            let apart = |(start, size): (u64, u64)| {
                ours.iter().all(|&(from, length)| start + size <= from || from + length <= start)
            };
            let is_no_slice = |other: (u64, u64)| recipe.name.starts_with("apm-") && apart(other);
            if let Some(other) = theirs.difference(&ours).find(|&&other| !is_no_slice(other)) {
                wrong
                    .push(format!("{} {name}: lsblk has {other:?}, we have {ours:?}", recipe.name));
            }
            fs::write(scratch.path().join("list.json"), &listed).unwrap();
            let mut reported = partitions(&check(scratch.path(), &["--from", "list.json"]));
            reported.retain(|&(_, size)| size > STUB);
            if reported != theirs {
                wrong.push(format!(
                    "{} {name}: --from gives {reported:?}, lsblk has {theirs:?}",
                    recipe.name
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    tell(&format!("lsblk: {compared} partitions agree"));
    assert!(compared > 100, "only {compared} partitions were compared");
}

/// A loop device with its partitions added; gone when dropped.
struct Attached(String);

impl Attached {
    fn new(directory: &Path, file: &str, sector: &str) -> Option<Attached> {
        let arguments = ["--find", "--show", "--read-only", "--sector-size", sector, file];
        let made =
            tool("losetup", &arguments, directory).ok().filter(|ran| ran.status.success())?;
        let device = Attached(String::from_utf8_lossy(&made.stdout).trim().to_string());
        // A loop device keeps partitions that were added to it for another file.
        let _ = tool("partx", &["--delete", &device.0], directory);
        // It fails where there is no table, and where one entry cannot be added: then the rest are
        // there.
        let _ = tool("partx", &["--add", "--sector-size", sector, &device.0], directory);
        Some(device)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = tool("partx", &["--delete", &self.0], Path::new("/"));
        let _ = tool("losetup", &["--detach", &self.0], Path::new("/"));
    }
}

fn check(directory: &Path, arguments: &[&str]) -> Value {
    let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["check", "--json"])
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("the program runs");
    serde_json::from_slice(&ran.stdout).unwrap_or_default()
}

/// First byte and length of what lies in a table on the disk itself, or in one inside that.
fn partitions(report: &Value) -> BTreeSet<(u64, u64)> {
    let providers = report["targets"][0]["providers"].as_array().into_iter().flatten();
    let slices = providers.filter(|p| {
        !p["parent"].is_null() && !p["provider"].as_str().unwrap_or_default().contains(".data")
    });
    slices
        .filter(|p| p["type"] != "extended" && p["type"] != "extended-lba")
        .filter_map(|p| Some((p["start"].as_u64()?, p["length"].as_u64()?)))
        .collect()
}

/// The same of what lsblk lists; of an extended partition Linux has only the first sectors.
fn listed_partitions(list: &Value) -> BTreeSet<(u64, u64)> {
    let children = list["blockdevices"][0]["children"].as_array().into_iter().flatten();
    let parts = children.filter_map(|c| Some((c["start"].as_u64()? * 512, c["size"].as_u64()?)));
    parts.filter(|&(_, size)| size > STUB).collect()
}

/// Bytes that Linux shows of an extended partition; no golden disk has a partition as small that
/// `--from` should tell from it.
const STUB: u64 = 1024;

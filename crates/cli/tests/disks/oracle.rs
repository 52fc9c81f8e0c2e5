//! The disks made afresh by the recipes, seen by libblkid and libfdisk: the same partitions, the
//! same contents.
//!
//! Every disk of every recipe whose programs are here is made, and `trueline check --json` is
//! compared with `sfdisk -J` (number, start and length of each partition, its UUID and name), with
//! `blkid -p` on the whole disk, and with `blkid -p -O -S` on each partition. Where we mean to
//! differ, [`DIFFERS`] says why. What is skipped is printed; with `TRUELINE_ORACLE=all`, skipping
//! for want of a program is a failure.

use crate::recipe::{self, Recipe, Scratch};
use crate::skip::skip;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};

/// Differences from the oracle that are on purpose: recipe, what differs, why. What differs is
/// `sfdisk` for the list of partitions, else the provider's name and the tag that blkid prints (`s1
/// TYPE`; the disk has no name, so ` TYPE`).
const DIFFERS: &[(&str, &str, &str)] = &[
    (
        "gpt-shrunk",
        "sfdisk",
        "it finds no GPT where the disk ends too early; we show what is left of it",
    ),
    ("image-android-sparse", " TYPE", CONTAINER),
    ("image-dmg-packed", " TYPE", CONTAINER),
    ("image-ewf", " TYPE", CONTAINER),
    ("image-ewf2", " TYPE", CONTAINER),
    ("image-gz", " TYPE", CONTAINER),
    ("image-gz", "sfdisk", CONTAINER),
    ("image-lz4", " TYPE", CONTAINER),
    ("image-lz4", "sfdisk", CONTAINER),
    ("image-ova", " TYPE", CONTAINER),
    ("image-ova", "sfdisk", CONTAINER),
    ("image-parallels", " TYPE", CONTAINER),
    ("image-parallels", "sfdisk", CONTAINER),
    ("image-parallels-63", " TYPE", CONTAINER),
    ("image-parallels-63", "sfdisk", CONTAINER),
    ("image-parallels-hdd", " TYPE", CONTAINER),
    ("image-qcow", " TYPE", CONTAINER),
    ("image-qcow", "sfdisk", CONTAINER),
    ("image-qcow2", " TYPE", CONTAINER),
    ("image-qcow2", "sfdisk", CONTAINER),
    ("image-qed", " TYPE", CONTAINER),
    ("image-qed", "sfdisk", CONTAINER),
    ("image-sparseimage", " TYPE", CONTAINER),
    ("image-sparseimage", "sfdisk", CONTAINER),
    ("image-tar-sparse", " TYPE", CONTAINER),
    ("image-tar-sparse", "sfdisk", CONTAINER),
    ("image-vdi", " TYPE", CONTAINER),
    ("image-vdi", "sfdisk", CONTAINER),
    ("image-vdi-1g", " TYPE", CONTAINER),
    ("image-vdi-1g", "sfdisk", CONTAINER),
    ("image-vhd", " TYPE", CONTAINER),
    ("image-vhd", "sfdisk", CONTAINER),
    ("image-vhdx", " TYPE", CONTAINER),
    ("image-vhdx", "sfdisk", CONTAINER),
    ("image-vmdk", " TYPE", CONTAINER),
    ("image-vmdk", "sfdisk", CONTAINER),
    ("image-vmdk-cowd", " TYPE", CONTAINER),
    ("image-vmdk-flat", " TYPE", CONTAINER),
    ("image-vmdk-stream", " TYPE", CONTAINER),
    ("image-vmdk-stream", "sfdisk", CONTAINER),
    ("image-xz", " TYPE", CONTAINER),
    ("lvm-raid5-degraded", "vg/lv_rimage_0 TYPE", PART),
    ("lvm-snapshot", "vg/snap-cow TYPE", PART),
    ("mbr-ebr-loop", "sfdisk", "it goes round the loop until its numbers run out"),
    ("mbr-overlap", "sfdisk", "a slice that reaches past the end of the disk is shown up to there"),
    ("mirror-two", "sfdisk", MEMBER),
    (
        "moving-half",
        "s1 TYPE",
        "the mark of a move is ours: no other tool knows it, which is its purpose",
    ),
    ("raid-isw", "sfdisk", "it does not know firmware RAIDs: the table at the front is the set's"),
    ("seed-003-aligned", "sfdisk", MEMBER),
    ("seed-003-default", "sfdisk", MEMBER),
    ("stripe-16k", " TYPE", MEMBER),
    ("unknown-in-gpt", "p1 UUID", MAGIC),
    ("unknown-in-gpt", "p2 UUID", MAGIC),
    ("qcow2-63", " TYPE", CONTAINER),
    ("qcow2-63", "sfdisk", CONTAINER),
    ("unknown-vhd", " TYPE", CONTAINER),
    ("vhd-fixed", " TYPE", CONTAINER),
    ("vhd-gpt-rounded", " TYPE", CONTAINER),
    ("vhd-gpt-rounded", "sfdisk", INSIDE),
];
/// Tables that sfdisk reads: its name, our class, and the types of its rows that are no partitions
/// to us.
const OF_SFDISK: &[(&str, &str, &[&str])] = &[
    ("gpt", "gpt", &[]),
    ("dos", "mbr", &["ee"]),
    ("sun", "vtoc8", &["5"]),
    ("sgi", "sgi", &["6"]),
];
/// Tables that parted reads: its name, our class, and the names of its rows that are no partitions
/// to us.
const OF_PARTED: &[(&str, &str, &[&str])] = &[
    ("mac", "apm", &["Apple"]),
    ("sun", "vtoc8", &[]),
    ("dvh", "sgi", &[]),
    ("amiga", "rdb", &[]),
];
const CONTAINER: &str = "blkid does not know containers of disks, nor what is compressed";
const INSIDE: &str = "it does not look for a table in a container";
const MAGIC: &str =
    "a format that is known by its magic alone has no UUID, so that of the table's entry is told";
const MEMBER: &str =
    "it does not know GEOM's sets: what is at the front of a member is the set's, and shown there";
const PART: &str = "a part of a volume is looked into through the volume alone";

#[test]
fn the_real_tools_agree() {
    let recipes = recipe::all();
    let (next, lines, seen) =
        (AtomicUsize::new(0), Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
    // Most recipes wait for a tool that sleeps, or for a guest.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(recipe) = recipes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(missing) = missing(recipe) {
                        skip(&format!("{}: no {missing} here", recipe.name));
                        continue;
                    }
                    let found = compare(recipe);
                    seen.lock()
                        .unwrap()
                        .extend(found.iter().map(|(what, _)| (recipe.name.clone(), what.clone())));
                    let unexpected =
                        found.into_iter().filter(|(what, _)| !differs(&recipe.name, what));
                    lines.lock().unwrap().extend(
                        unexpected.map(|(what, how)| format!("{}: {what}: {how}", recipe.name)),
                    );
                }
            });
        }
    });
    let (mut lines, seen) = (lines.into_inner().unwrap(), seen.into_inner().unwrap());
    let stale =
        DIFFERS.iter().filter(|(name, what, _)| !seen.contains(&((*name).into(), (*what).into())));
    let made = |name: &str| recipes.iter().any(|r| r.name == name && missing(r).is_none());
    lines.extend(
        stale
            .filter(|(name, ..)| made(name))
            .map(|(name, what, _)| format!("{name}: {what}: no difference any more")),
    );
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

fn differs(name: &str, what: &str) -> bool {
    DIFFERS.iter().any(|(n, w, _)| *n == name && *w == what)
}

/// Straight to the terminal: what was not proved must be seen although the test passes.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The first thing the recipe or the oracle needs that this machine has not.
pub(crate) fn missing(recipe: &Recipe) -> Option<String> {
    let needs = recipe.field("needs").flat_map(str::split_whitespace).chain(["sfdisk", "blkid"]);
    let guest = ["qemu-system-x86_64", "busybox", "cpio", "modprobe"];
    missing_of(needs.flat_map(|need| if need == "guest" { guest.to_vec() } else { vec![need] }))
        .or_else(|| {
            (recipe.field("needs").any(|n| n.contains("guest")) && !shell("ls /boot/vmlinuz-*"))
                .then(|| "kernel in /boot".into())
        })
}

/// The first of these programs, or of `root`, `loop` and `sets` (the kernel's, in the directory
/// that `TRUELINE_SETS` names), that this machine has not.
pub(crate) fn missing_of<'a>(needs: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let is_missing = |need: &&str| match *need {
        "root" => !shell("[ $(id -u) = 0 ]"),
        "sets" => std::env::var_os("TRUELINE_SETS").is_none(),
        "loop" => !*LOOPS.get_or_init(loops),
        program => !shell(&format!("command -v {program}")),
    };
    needs.into_iter().find(is_missing).map(str::to_string)
}

/// True if loop devices work here: a driver does not imply that this user may use it.
static LOOPS: OnceLock<bool> = OnceLock::new();

fn loops() -> bool {
    let scratch = Scratch::new("loops");
    let probe = "truncate -s 1M disk && d=$(losetup --find --show disk) && losetup --set-capacity \
        $d; s=$?; losetup --detach $d; exit $s";
    tool("sh", &["-c", probe], scratch.path()).is_ok_and(|ran| ran.status.success())
}

fn shell(command: &str) -> bool {
    tool("sh", &["-c", command], Path::new("/")).is_ok_and(|ran| ran.status.success())
}

/// Runs a program, found also where administrators' programs are.
pub(crate) fn tool(program: &str, arguments: &[&str], directory: &Path) -> std::io::Result<Output> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    // The shell searches the new PATH; the program itself would be searched in the old one.
    let words = ["-c", "exec \"$0\" \"$@\"", program].into_iter().chain(arguments.iter().copied());
    Command::new("sh")
        .args(words)
        .current_dir(directory)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output()
}

/// Differences from the oracle, each with its name.
fn compare(recipe: &Recipe) -> Vec<(String, String)> {
    let scratch = Scratch::new(&format!("oracle-{}", recipe.name));
    let names = match recipe.make(scratch.path()) {
        Ok(names) => names,
        Err(why) => return vec![("recipe".into(), why)],
    };
    let large = recipe.field("check").any(|check| check.contains("--logical 4096"));
    let sectors: &[u64] = if large { &[512, 4096] } else { &[512] };
    let mut found = Vec::new();
    for name in &names {
        for &sector in sectors {
            let Some(disk) = Seen::new(scratch.path(), name, sector) else {
                skip(&format!("{} with 4096-byte sectors: no loop device here", recipe.name));
                continue;
            };
            let ours = match disk.check() {
                Ok(ours) => ours,
                Err(why) => {
                    found.push(("check".into(), why));
                    continue;
                }
            };
            found.extend(disk.partitions(&ours));
            found.extend(disk.partitions_of_parted(&ours));
            for provider in ours
                .iter()
                .filter(|p| p["start"].is_u64() && !text(p, "provider").contains(".data"))
            {
                found.extend(disk.content(provider, &ours));
            }
        }
    }
    found
}

/// A disk as the tools see it: the file, or a loop device over it where the sectors are not 512
/// bytes.
struct Seen<'a> {
    directory: &'a Path,
    file: &'a str,
    device: Option<String>,
    sector: u64,
}

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            let _ = tool("losetup", &["--detach", device], self.directory);
        }
    }
}

impl<'a> Seen<'a> {
    fn new(directory: &'a Path, file: &'a str, sector: u64) -> Option<Seen<'a>> {
        let mut device = None;
        if sector != 512 {
            let arguments =
                ["--find", "--show", "--read-only", "--sector-size", &sector.to_string(), file];
            let made =
                tool("losetup", &arguments, directory).ok().filter(|ran| ran.status.success())?;
            device = Some(String::from_utf8_lossy(&made.stdout).trim().to_string());
        }
        Some(Seen { directory, file, device, sector })
    }

    fn name(&self) -> &str {
        self.device.as_deref().unwrap_or(self.file)
    }

    /// Our providers of the disk.
    fn check(&self) -> Result<Vec<Value>, String> {
        let sector = self.sector.to_string();
        let ran = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(["check", "--json", "--logical", &sector, self.file])
            .current_dir(self.directory)
            .output()
            .map_err(|e| e.to_string())?;
        let report: Value = serde_json::from_slice(&ran.stdout).map_err(|e| {
            format!(
                "{e}: {}{}",
                String::from_utf8_lossy(&ran.stdout),
                String::from_utf8_lossy(&ran.stderr)
            )
        })?;
        report["targets"][0]["providers"]
            .as_array()
            .cloned()
            .ok_or_else(|| format!("no providers: {report}"))
    }

    /// `parted print` against the providers of a table on the disk.
    fn partitions_of_parted(&self, ours: &[Value]) -> Option<(String, String)> {
        if missing_of(["parted"]).is_some() {
            return None;
        }
        let ran =
            tool("parted", &["-sm", self.name(), "unit", "B", "print"], self.directory).ok()?;
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        let rows: Vec<Vec<&str>> =
            printed.lines().map(|line| line.trim_end_matches(';').split(':').collect()).collect();
        let label = rows.iter().find(|row| row.len() == 8).map(|row| row[5])?;
        let (_, class, not) = OF_PARTED.iter().find(|(theirs, ..)| *theirs == label)?;
        let bytes = |field: &str| field.trim_end_matches('B').parse::<u64>().ok();
        let parts = rows.iter().filter(|row| row.len() == 7 && !not.contains(&row[5]));
        let theirs: BTreeMap<u64, _> = parts
            .filter_map(|row| Some((row[0].parse().ok()?, (bytes(row[1]), bytes(row[3])))))
            .collect();
        let mine = ours.iter().filter(|p| text(p, "class") == *class);
        let mine = mine.filter_map(|p| {
            Some((number(text(p, "provider"))?, (p["start"].as_u64(), p["length"].as_u64())))
        });
        let mine: BTreeMap<u64, _> = mine.collect();
        (mine != theirs).then(|| {
            ("parted".into(), format!("number, start, length: it says {theirs:?}, we say {mine:?}"))
        })
    }

    /// `sfdisk -J` against the providers of a table on the disk.
    fn partitions(&self, ours: &[Value]) -> Vec<(String, String)> {
        let Ok(ran) = tool("sfdisk", &["-J", self.name()], self.directory) else {
            return Vec::new();
        };
        let table: Value = serde_json::from_slice(&ran.stdout).unwrap_or_default();
        // What else it reads (labels without regard to their checksum) is not compared; nor is the
        // entry that protects a GPT.
        let scheme = text(&table["partitiontable"], "label");
        let not = OF_SFDISK.iter().find(|(theirs, ..)| *theirs == scheme).map(|(.., not)| *not);
        let rows: BTreeMap<u64, &Value> = table["partitiontable"]["partitions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|row| {
                not.is_some_and(|not| row["size"] != 0 && !not.contains(&text(row, "type")))
            })
            .filter_map(|row| Some((number_at_end(text(row, "node"))?, row)))
            .collect();
        let ours: BTreeMap<u64, &Value> = ours
            .iter()
            .filter(|p| OF_SFDISK.iter().any(|(_, class, _)| text(p, "class") == *class))
            .filter_map(|p| Some((number(text(p, "provider"))?, p)))
            .collect();
        let bytes = |row: &Value, key: &str| row[key].as_u64().map(|sectors| sectors * self.sector);
        let theirs: BTreeMap<u64, _> =
            rows.iter().map(|(&n, row)| (n, (bytes(row, "start"), bytes(row, "size")))).collect();
        let mine: BTreeMap<u64, _> =
            ours.iter().map(|(&n, p)| (n, (p["start"].as_u64(), p["length"].as_u64()))).collect();
        if mine != theirs {
            return vec![(
                "sfdisk".into(),
                format!("number, start, length: it says {theirs:?}, we say {mine:?}"),
            )];
        }
        let mut found = Vec::new();
        // An entry's own UUID and name are shown where nothing was recognised in it; an MBR has
        // neither.
        for (number, p) in
            ours.iter().filter(|(_, p)| text(p, "class") == "gpt" && p["sign"].is_null())
        {
            for (key, theirs) in
                [("uuid", text(rows[number], "uuid")), ("label", text(rows[number], "name"))]
            {
                if !theirs.eq_ignore_ascii_case(text(p, key)) {
                    found.push((
                        format!("{} {key}", text(p, "provider")),
                        format!("sfdisk says {theirs:?}, we say {:?}", p[key]),
                    ));
                }
            }
        }
        found
    }

    /// `blkid -p` against what we say is on one provider.
    fn content(&self, provider: &Value, all: &[Value]) -> Vec<(String, String)> {
        let name = text(provider, "provider");
        let (start, length) = (provider["start"].to_string(), provider["length"].to_string());
        let mut arguments = vec!["-p", "-o", "export"];
        if !name.is_empty() {
            arguments.extend(["-O", &start, "-S", &length]);
        }
        arguments.push(self.name());
        let Ok(ran) = tool("blkid", &arguments, self.directory) else { return Vec::new() };
        let text_of = String::from_utf8_lossy(&ran.stdout).into_owned();
        let tags: BTreeMap<&str, &str> =
            text_of.lines().filter_map(|line| line.split_once('=')).collect();
        let tag = |key: &str| tags.get(key).copied().unwrap_or_default().replace('\\', "");
        let shown = innermost(provider, all);
        let signs: Vec<&str> =
            shown["signs"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // 8 is blkid's status for several signatures among which it does not choose.
        let theirs =
            if ran.status.code() == Some(8) { "ambivalent".to_string() } else { tag("TYPE") };
        let ours = if signs.len() > 1 {
            "ambivalent".to_string()
        } else {
            text(shown, "sign").to_string()
        };
        let mut found = Vec::new();
        if ours != theirs {
            found.push((
                format!("{name} TYPE"),
                format!("blkid says {theirs:?}, we say {ours:?} {signs:?}"),
            ));
        } else if !ours.is_empty() && ours != "ambivalent" {
            for (key, ours) in [("UUID", text(shown, "uuid")), ("LABEL", text(shown, "label"))] {
                let theirs = tag(key);
                // Without a label of its own, a file system is shown under its partition's.
                if ours != theirs && !(theirs.is_empty() && key == "LABEL") {
                    found.push((
                        format!("{name} {key}"),
                        format!("blkid says {theirs:?}, we say {ours:?}"),
                    ));
                }
            }
        }
        found
    }
}

/// The innermost slice that begins where `provider` does, or the provider: contents recognised
/// there are shown as the innermost slice's.
fn innermost<'a>(provider: &'a Value, all: &'a [Value]) -> &'a Value {
    let inside = |p: &&Value| {
        p["parent"] == provider["provider"]
            && p["start"] == provider["start"]
            && p["class"] == "bsd"
    };
    all.iter().find(inside).filter(|_| provider["sign"].is_null()).unwrap_or(provider)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The number of a partition of the disk's own table: of `p12` 12, of `b` 2; none of `s1a`, nor of
/// `s1p1` inside it.
fn number(name: &str) -> Option<u64> {
    match name.as_bytes() {
        [letter @ b'a'..=b'p'] => Some(u64::from(letter - b'a') + 1),
        _ => name.strip_prefix(['p', 's'])?.parse().ok(),
    }
}

/// The number a device's name ends with: of `disk12` and `/dev/loop0p12` 12.
fn number_at_end(name: &str) -> Option<u64> {
    name.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

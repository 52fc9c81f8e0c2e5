//! `mkfs`: every file system into partitions of images, judged by the tools that repair it; what is
//! refused; what newfs prints.

mod judged;

use crate::recipe::Scratch;
use crate::skip::skip;
use crate::{Ran, list, program, run, run_with, scratch, zeroes};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Output};

/// Formats, the program that makes each, and its checkers; a checker gets a copy of the partition
/// as its last word.
const KINDS: [(&str, &str, &[&[&str]]); 8] = [
    ("ext4", "mkfs.ext4", &[&["e2fsck", "-fn"]]),
    ("xfs", "mkfs.xfs", &[&["xfs_repair", "-n", "-f"]]),
    ("btrfs", "mkfs.btrfs", &[&["btrfs", "check"]]),
    ("vfat", "mkfs.vfat", &[&["fsck.fat", "-n"]]),
    ("exfat", "mkfs.exfat", &[&["fsck.exfat", "-n"]]),
    ("ntfs", "mkntfs", &[&["ntfsfix", "-n"], &["ntfsinfo", "-m", "-f"]]),
    ("swap", "mkswap", &[&["swaplabel"]]),
    ("ufs", "true", &[]),
];

const DISK: u64 = 448 << 20;
const MEG: u64 = 1 << 20;

/// Runs a tool, wherever users have it; `None` if it is not here.
fn tool(words: &[&str]) -> Option<Output> {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    match Command::new(words[0]).args(&words[1..]).env("PATH", path).env("LC_ALL", "C").output() {
        // Where a directory of the PATH may not be looked into, that is the error.
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => None,
        output => Some(output.expect("a tool can be run")),
    }
}

/// True if all these tools are here; prints the one that is missing.
fn here(tools: &[&str]) -> bool {
    let missing = tools.iter().find(|name| {
        !tool(&["sh", "-c", &format!("command -v {name}")]).is_some_and(|ran| ran.status.success())
    });
    if let Some(missing) = missing {
        skip(&format!("no {missing} here"));
    }
    missing.is_none()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat())
        .into_owned()
}

/// A disk `disk` of 64 MiB with one partition `p1`.
fn small() -> Scratch {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 * MEG);
    run(scratch.path(), "part create -s gpt disk").ended(0);
    run(scratch.path(), "part add -t linux-data disk").ended(0);
    scratch
}

fn bytes(scratch: &Scratch) -> Vec<u8> {
    fs::read(scratch.path().join("disk")).expect("the disk")
}

/// That it is refused in one line with `words` in it, and the disk is as before.
#[track_caller]
fn nothing_written(scratch: &Scratch, ran: impl FnOnce() -> Ran, words: &[&str]) {
    let before = bytes(scratch);
    let ran = ran();
    let line = ran.refused();
    assert!(words.iter().all(|word| line.contains(word)), "{line}");
    assert!(bytes(scratch) == before, "{line}: but something was");
}

#[test]
fn what_would_be_lost_is_named() {
    let disk = small();
    let path = disk.path();
    run(path, "mkfs ufs disk#p1 -- -R").ended(0);
    nothing_written(
        &disk,
        || run(path, "mkfs ext4 disk#p1"),
        &["there is ufs on it", "--overwrite"],
    );
    nothing_written(
        &disk,
        || run(path, "mkfs ufs disk#p1"),
        &["there is ufs on it", "--overwrite"],
    );
    nothing_written(
        &disk,
        || run(path, "mkfs swap disk"),
        &["there is a GPT with 1 partition:", "--overwrite"],
    );
    nothing_written(&disk, || run(path, "mkfs swap disk#p2"), &["no provider 'p2'"]);
}

#[test]
fn a_label_in_the_first_sectors_of_its_partition_stays() {
    if !here(&["mkswap"]) {
        return;
    }
    let disk = scratch();
    let path = disk.path();
    zeroes(path, "disk", 64 * MEG);
    run(path, "part create -s bsd disk").ended(0);
    run(path, "part add -t freebsd-ufs -s 32m disk").ended(0);
    run(path, "part add -t freebsd-ufs disk").ended(0);
    for kind in ["ext4", "swap", "vfat"] {
        nothing_written(
            &disk,
            || run(path, &format!("mkfs {kind} disk#a")),
            &["a BSD label, that of the disk", "--overwrite"],
        );
    }
    // UFS begins behind it, and so does the next partition.
    run(path, "mkfs ufs disk#a -- -U").ended(0);
    if tool(&["mkswap", "-V"]).is_some() {
        run(path, "mkfs swap disk#b").ended(0);
    }
    assert!(run(path, "part show disk").ended(0).stdout.contains("  2  freebsd-ufs  (32M)"));
}

#[test]
fn an_old_table_and_old_magic_are_gone() {
    if !here(&["mkswap"]) {
        return;
    }
    for kind in ["ufs", "swap"] {
        if kind == "swap" && tool(&["mkswap", "-V"]).is_none() {
            continue;
        }
        let disk = small();
        let ran = run(disk.path(), &format!("mkfs {kind} --overwrite disk"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let document = run(disk.path(), "check --json disk").json();
        let providers = list(&document["targets"][0], "providers");
        assert_eq!(
            providers.iter().map(|p| p["sign"].as_str()).collect::<Vec<_>>(),
            [Some(kind)],
            "{document:#}"
        );
        let bytes = bytes(&disk);
        assert!(
            !bytes.windows(8).any(|word| word == b"EFI PART"),
            "{kind}: a header of the GPT is left"
        );
    }
}

#[test]
fn a_missing_tool_names_its_package() {
    let disk = small();
    for (kind, package) in [
        ("ext4", "e2fsprogs"),
        ("xfs", "xfsprogs"),
        ("btrfs", "btrfs-progs"),
        ("vfat", "dosfstools"),
        ("exfat", "exfatprogs"),
        ("ntfs", "ntfs-3g"),
        ("swap", "util-linux"),
    ] {
        let ran = || {
            Ran::of(
                &program(disk.path())
                    .args(["mkfs", kind, "disk#p1"])
                    .env("PATH", "")
                    .output()
                    .expect("the program"),
            )
        };
        nothing_written(
            &disk,
            ran,
            &["is not on this system", &format!("install {package}"), "nothing was written"],
        );
    }
}

#[test]
fn a_tool_that_fails_is_heard() {
    if !here(&["mkfs.xfs"]) {
        return;
    }
    if tool(&["mkfs.xfs", "-V"]).is_none() {
        return;
    }
    let disk = small();
    let said = ["mkfs.xfs failed (exit status: 1)", "larger than 300MB", "nothing was written"];
    nothing_written(&disk, || run(disk.path(), "mkfs xfs disk#p1"), &said);
    nothing_written(
        &disk,
        || run(disk.path(), "mkfs xfs disk#p1 -- -b size=3"),
        &["mkfs.xfs failed", "Invalid value 3 for -b size", "nothing"],
    );
}

#[test]
fn what_it_would_run_is_printed_and_not_run() {
    let disk = small();
    let print = |arguments: &str| {
        run_with(
            disk.path(),
            &[&["mkfs", "--print"], &*arguments.split(' ').collect::<Vec<_>>()].concat(),
        )
    };
    let before = bytes(&disk);
    for (arguments, wanted) in [
        ("ext4 disk#p1", "trueline mkfs ext4 'disk#p1' -- -b 4096"),
        (
            "ext4 --for raid64kx4 --logical 512 disk#p1 -- -m 0",
            "trueline mkfs ext4 'disk#p1' -- -b 4096 -E stride=16,stripe_width=64 -m 0",
        ),
        (
            "ext4 --for raid64kx4 disk#p1 -- -E nodiscard,stride=8",
            "trueline mkfs ext4 'disk#p1' -- -b 4096 -E stride=16,stripe_width=64,nodiscard,stride=8",
        ),
        (
            "ext4 --for raid64kx4 disk#p1 -- -Enodiscard",
            "trueline mkfs ext4 'disk#p1' -- -b 4096 -Estride=16,stripe_width=64,nodiscard",
        ),
        ("ext4 --for raid64kx4 disk#p1 -- -b 1024", "trueline mkfs ext4 'disk#p1' -- -b 1024"),
        (
            "xfs --for raid64kx4 disk#p1",
            "trueline mkfs xfs 'disk#p1' -- -b size=4096 -s size=4096 -d su=65536,sw=4 -l su=65536",
        ),
        (
            "xfs --for raid64kx4 disk#p1 -- -d agcount=2",
            "trueline mkfs xfs 'disk#p1' -- -b size=4096 -s size=4096 -d su=65536,sw=4 -l su=65536 -d agcount=2",
        ),
        (
            "xfs --for raid64kx4 disk#p1 -- -d noalign -l su=4k",
            "trueline mkfs xfs 'disk#p1' -- -b size=4096 -s size=4096 -d noalign -l su=4k",
        ),
        ("btrfs disk#p1", "trueline mkfs btrfs 'disk#p1' -- -s 4096 -n 16384"),
        (
            "vfat disk#p1",
            "trueline mkfs vfat 'disk#p1' -- -F 16 -S 512 -s 8 -R 8 -g 255/63 -h 2048",
        ),
        ("exfat disk#p1", "trueline mkfs exfat 'disk#p1' -- -c 4096 -b 1048576"),
        (
            "ntfs --for ssd-16k disk#p1 -- -c 4096",
            "trueline mkfs ntfs 'disk#p1' -- -Q -s 512 -p 2048 -H 255 -S 63 -c 4096",
        ),
        ("swap disk#p1 -- -L a", "trueline mkfs swap 'disk#p1' -- -p 4096 -L a"),
    ] {
        let ran = print(arguments);
        // Of a set that the partition is off something else is said.
        assert_eq!(
            (ran.code, ran.stdout.trim_end()),
            (Some(0), wanted),
            "{arguments}: {}",
            ran.stderr
        );
        // What is printed says everything, and so prints itself.
        let again = shell(disk.path(), &wanted.replace("trueline mkfs", "trueline mkfs --print"));
        assert_eq!(text(&again).lines().last(), Some(wanted), "{arguments}");
    }
    let ran = print("ufs --for ssd-16k disk#p1 -- -U --maxphys 128k");
    assert_eq!(
        ran.stdout.lines().next(),
        Some("trueline mkfs ufs 'disk#p1' -- -b 65536 -f 16384 -U --maxphys 128k")
    );
    assert!(ran.stdout.contains("super-block backups"));
    assert!(bytes(&disk) == before, "it was run all the same");
}

/// Runs a line as a user's shell does, with this program as `trueline`.
pub(crate) fn shell(directory: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_trueline"))
        .parent()
        .expect("a directory")
        .display()
        .to_string();
    let path = format!("{program}:{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let ran = Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output();
    ran.expect("a shell")
}

#[test]
fn what_is_printed_runs_in_a_shell() {
    for (kind, maker, _) in KINDS {
        if !here(&[maker]) {
            continue;
        }
        // A partition of an image, an image by itself, and names that a shell takes apart.
        for (target, sector) in
            [("my disk;.img#p1", ""), ("my disk;.img#p1", "--logical 4096"), ("it's whole.img", "")]
        {
            if kind == "exfat" && !sector.is_empty() {
                continue;
            }
            let scratch = scratch();
            let file = target.split('#').next().expect("a name");
            zeroes(scratch.path(), file, DISK);
            let words = |words: &[&str]| {
                run_with(
                    scratch.path(),
                    &[words, &*sector.split_whitespace().collect::<Vec<_>>()].concat(),
                )
            };
            if target.contains('#') {
                words(&["part", "create", "-s", "gpt", file]).ended(0);
                words(&["part", "add", "-t", "linux-data", file]).ended(0);
            }
            let printed = words(&["mkfs", kind, "--print", target]).ended(0).stdout.clone();
            let command = printed.lines().next().expect("a command");
            let ran = shell(scratch.path(), command);
            assert!(ran.status.success(), "{command}: {}", text(&ran));
            let checked = words(&["check", "--json", file]).json();
            let kinds: Vec<&str> = list(&checked["targets"][0], "providers")
                .iter()
                .filter_map(|p| p["sign"].as_str())
                .collect();
            assert!(kinds.contains(&kind), "{command}: {kinds:?}");
        }
    }
}

#[test]
fn a_dry_run_shows_the_writes() {
    if !here(&["mkswap"]) {
        return;
    }
    let disk = small();
    let before = bytes(&disk);
    if tool(&["mkswap", "-V"]).is_some() {
        let ran = run(disk.path(), "mkfs swap --dry-run disk#p1 -- -L scratch");
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert!(
            ran.stdout.starts_with(
                "# zero: 65011712 bytes at byte 0 (LBA 0)\n# 4096 bytes at byte 0 (LBA 0)\n"
            ),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("|......SWAPSPACE2|\n00001000\n"), "{}", ran.stdout);
    }
    let ran = run(disk.path(), "mkfs ufs --dry-run disk#p1 -- -E -R");
    assert!(
        ran.stdout.starts_with("# zero: 64946176 bytes at byte 65536 (LBA 128)\n"),
        "{}",
        &ran.stdout[..200]
    );
    assert!(bytes(&disk) == before);
}

#[test]
fn a_start_off_the_unit_is_warned_of() {
    if !here(&["mkfs.exfat", "mkfs.ext4", "mkfs.vfat"]) {
        return;
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 64 * MEG);
    run(scratch.path(), "part create -s mbr disk").ended(0);
    assert_eq!(run(scratch.path(), "part add -t linux-data -b 63s disk").code, Some(0));
    let ran = run(scratch.path(), "mkfs ufs disk#s1");
    assert_eq!(ran.code, Some(0));
    let wanted = "trueline: warning: disk#s1 starts 3584 bytes past a 4096-byte physical unit, and \
        so will every block";
    assert!(ran.stderr.starts_with(wanted) && ran.stderr.lines().count() == 1, "{}", ran.stderr);
    if tool(&["mkfs.exfat", "-V"]).is_some() {
        let ran = run(scratch.path(), "mkfs exfat --overwrite disk#s1");
        let wanted = "trueline: warning: disk#s1: exfat data area starts at byte 2097152 (LBA \
            4096), 3584 bytes past a 4096-byte physical unit";
        assert!(ran.code == Some(0) && ran.stderr.starts_with(wanted), "{}", ran.stderr);
    }
}

/// The transcript of seed 004, whose terminal was 206 columns wide.
#[test]
fn newfs_prints_what_was_published() {
    let published = include_str!("../../../geom/src/newfs/tests/ada1s1a.txt");
    let scratch = scratch();
    zeroes(scratch.path(), "ada1s1a", 188_743_680 * 512);
    let words = ["mkfs", "ufs", "ada1s1a", "--", "-U", "--maxphys", "128k", "--flavour", "9"];
    let ran = Ran::of(
        &program(scratch.path()).args(words).env("COLUMNS", "206").output().expect("the program"),
    );
    ran.ended(0);
    assert_eq!(ran.stdout, published.replace("/dev/ada1s1a", "ada1s1a"));
    // Without a terminal and COLUMNS newfs takes 80.
    let narrow = run(scratch.path(), &format!("{} -N", words.join(" ")));
    assert!(narrow.ended(0).stdout.lines().skip(4).all(|line| line.len() < 80));
    assert!(narrow.stdout.split_whitespace().eq(ran.stdout.split_whitespace()));
}

#[test]
fn the_same_words_make_the_same_ufs_and_boot_code_stays() {
    let disk = small();
    let file = File::options().write(true).open(disk.path().join("disk")).expect("the disk");
    file.write_all_at(b"boot code", MEG).expect("a write");
    let made = |own: &str| {
        run(disk.path(), &format!("mkfs ufs --overwrite disk#p1 -- {own}")).ended(0);
        bytes(&disk)
    };
    let first = made("-R -U -E");
    assert!(made("-R -U") == first);
    assert!(made("-R -U -n") != first);
    // Nothing of the longer one is left where all is erased first.
    assert!(made("-R -U -E") == first);
    assert_eq!(&first[1 << 20..][..9], b"boot code");
}

#[test]
fn into_sets_as_into_partitions() {
    if !here(&["mkfs.ext4", "e2fsck"]) {
        return;
    }
    if tool(&["mkfs.ext4", "-V"]).is_none() {
        return;
    }
    for (class, set) in [("stripe", "stripe/data"), ("mirror", "mirror/data")] {
        let scratch = scratch();
        let path = scratch.path();
        ["a", "b"].iter().for_each(|name| zeroes(path, name, 32 * MEG));
        run(path, &format!("{class} label data a b")).ended(0);
        let ran = run(path, &format!("mkfs ext4 a,b#{set}"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{class}");
        let document = run(path, "check --json a,b").json();
        let providers = list(&document["targets"][0], "providers");
        let made = providers.iter().find(|p| p["provider"] == set).expect("a set");
        assert_eq!(made["sign"], "ext4", "{class}: {document:#}");
        if class == "mirror" {
            let read = |name: &str| fs::read(path.join(name)).expect("a member");
            let data = usize::try_from(32 * MEG).expect("some") - 512;
            assert!(read("a")[..data] == read("b")[..data], "both copies are the same");
        }
    }
}

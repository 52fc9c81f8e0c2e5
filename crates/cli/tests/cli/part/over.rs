//! Tables over something else, damaged ones, and disks that have grown or shrunk.

use super::image::{Image, MIB};
use crate::skip::skip;
use crate::{list, run, texts};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::Command;

const ID: &str = "--id 0d1f8f5c-6f55-4e0e-9f0e-000000000000";
const UUID: &str = "--uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000001";

/// The way to make each empty table with nothing left to chance.
const CREATE: [&str; 3] = [
    "create -s gpt --id 0d1f8f5c-6f55-4e0e-9f0e-000000000009",
    "create -s mbr --id 87654321",
    "create -s bsd",
];

/// Bytes at a place; counted from the end, if it is negative.
type Sign = (i64, &'static [u8]);

/// Formats by their signs.
const SIGNS: [(&str, &[Sign]); 2] = [
    ("swap", &[(4086, b"SWAPSPACE2"), (1024, &[1, 0, 0, 0, 0xff, 3, 0, 0])]),
    (
        "LUKS",
        &[
            (0, b"LUKS\xba\xbe\0\x01aes\0"),
            (40, b"xts-plain64\0"),
            (72, b"sha256\0"),
            (104, &[0, 0, 8, 0, 0, 0, 0, 64]),
        ],
    ),
];

fn put(disk: &Image, at: i64, bytes: &[u8]) {
    let file = File::options().write(true).open(disk.path("disk")).expect("the image");
    let length = file.metadata().expect("its size").len();
    let at = if at < 0 { length.checked_add_signed(at) } else { u64::try_from(at).ok() };
    file.write_all_at(bytes, at.expect("a place")).expect("it can be written");
}

fn resize(disk: &Image, length: u64) {
    File::options()
        .write(true)
        .open(disk.path("disk"))
        .expect("the image")
        .set_len(length)
        .expect("another length");
}

#[test]
fn over_another_table_nothing_of_it_is_found_again() {
    for options in ["", "--logical 4096"] {
        for old in CREATE {
            for new in CREATE {
                let disk = Image::new(16 * MIB, options);
                disk.done(&format!("{old} disk"));
                let kind =
                    if old.contains("mbr") { "linux-data -s 4m" } else { "freebsd-ufs -s 4m" };
                let uuid = if old.contains("gpt") { UUID } else { "" };
                disk.done(&format!("add -t {kind} {uuid} disk"));
                disk.refused(
                    &format!("{new} disk"),
                    "with 1 partition: remove it with part destroy (-F if it has partitions), or say --overwrite to replace it",
                );
                disk.done(&format!("{new} --overwrite disk"));
                assert_eq!(disk.places(""), [], "{old}, {new}");
                let check =
                    run(disk.scratch.path(), &format!("check --json {options} disk")).json();
                let rules: Vec<&str> = texts(list(&check["targets"][0], "findings"), "rule");
                assert_eq!(rules, ["TL0028"], "{old}, {new}: only that it is empty");
                disk.done("destroy disk");
                let left = disk.part("show disk");
                assert!(
                    left.refused().contains("there is no partition table"),
                    "{old}, {new}: {}",
                    left.stderr
                );
            }
        }
    }
}

#[test]
fn over_a_format_nothing_of_it_is_found_again() {
    for (name, signs) in SIGNS {
        for new in CREATE {
            let disk = Image::new(16 * MIB, "");
            signs.iter().for_each(|(at, bytes)| put(&disk, *at, bytes));
            disk.refused(
                &format!("{new} disk"),
                &format!("{name} on it: say --overwrite to lose it").replace("LUKS", "crypto_LUKS"),
            );
            disk.done(&format!("{new} --overwrite disk"));
            // No sign of it passes the table over.
            let kind = if new.contains("mbr") { "linux-data" } else { "freebsd-ufs" };
            disk.part(&format!("add -t {kind} -s 1m disk")).ended(0);
            disk.done("destroy -F disk");
            disk.done(&format!("{new} disk"));
        }
    }
}

#[test]
fn over_a_real_file_system_nothing_of_it_is_found_again() {
    for mkfs in ["mkfs.ext4 -qF", "mkfs.vfat", "mkfs.ntfs -qF", "mkfs.btrfs -fq", "mkswap -q"] {
        for new in CREATE {
            let disk = Image::new(128 * MIB, "");
            let made = format!("PATH=$PATH:/usr/sbin:/sbin; {mkfs} disk >/dev/null 2>&1");
            if !Command::new("sh")
                .args(["-c", &made])
                .current_dir(disk.scratch.path())
                .status()
                .is_ok_and(|s| s.success())
            {
                skip(&format!("{mkfs} does not work here"));
                break;
            }
            let ran = disk.part(&format!("{new} disk"));
            assert!(ran.refused().contains("say --overwrite to lose it"), "{}", ran.stderr);
            disk.part(&format!("{new} --overwrite disk")).ended(0);
            let kind = if new.contains("mbr") { "linux-data" } else { "freebsd-ufs" };
            disk.part(&format!("add -t {kind} -s 1m disk")).ended(0);
            let check = run(disk.scratch.path(), "check --json disk").json();
            assert_eq!(
                check["targets"][0]["providers"][0]["sign"],
                serde_json::Value::Null,
                "{mkfs}, {new}"
            );
        }
    }
}

#[test]
fn either_copy_of_a_gpt_is_made_again() {
    for (options, sector) in [("", 512), ("--logical 4096", 4096)] {
        let back = -16384 - sector;
        for (what, at) in [
            ("header", sector),
            ("array", 2 * sector),
            ("backup header", -sector),
            ("backup array", back),
            ("PMBR", 0),
        ] {
            let disk = Image::new(16 * MIB, options);
            disk.done(&format!("create -s gpt {ID} disk"));
            disk.done(&format!("add -t efi -s 2m -l name {UUID} disk"));
            let (whole, table) = (disk.bytes("disk"), disk.table(""));
            put(&disk, at, &[0xee; 512]);
            if what == "PMBR" {
                put(&disk, at, &[0; 512]);
            }
            assert_eq!(disk.table("")["entries"], table["entries"], "{what}");
            assert_ne!(disk.table("")["damage"], serde_json::json!([]), "{what}");
            disk.refused("add -t efi disk", "the GPT is damaged");
            disk.refused("destroy disk", "is damaged");
            disk.refused("create -s mbr disk", "there is a damaged GPT with 1 partition");
            disk.done("recover disk");
            assert!(whole == disk.bytes("disk"), "{what}");
        }
    }
}

#[test]
fn a_gpt_that_cannot_be_read_is_lost_only_if_told() {
    let disk = Image::new(16 * MIB, "");
    disk.done(&format!("create -s gpt {ID} disk"));
    disk.done(&format!("add -t efi {UUID} disk"));
    put(&disk, 600, &[0xee]);
    put(&disk, -452, &[0xee]);
    disk.refused("add -t efi disk", "the GPT is damaged");
    disk.refused("recover disk", "neither copy of the GPT can be used");
    disk.refused("destroy disk", "the GPT is damaged");
    disk.refused("create -s mbr disk", "there is a damaged GPT");
    disk.done("create -s mbr --id 12345678 --overwrite disk");
    disk.done("destroy disk");
    assert!(disk.part("show disk").refused().contains("there is no partition table"));
}

#[test]
fn a_disk_that_has_grown() {
    for options in ["", "--logical 4096"] {
        let disk = Image::new(16 * MIB, options);
        disk.done(&format!("create -s gpt {ID} disk"));
        disk.done(&format!("add -t efi -s 2m {UUID} disk"));
        resize(&disk, 24 * MIB);
        disk.refused(
            "add -t efi disk",
            "has grown since the table was written: recover it first: part recover",
        );
        disk.done("recover disk");
        disk.done("add -t linux-data --uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000002 disk");
        assert_eq!(disk.places(""), [(1, MIB, 2 * MIB), (2, 3 * MIB, 20 * MIB)]);
        for (create, kind) in
            [("create -s mbr --id 12345678", "linux-data"), ("create -s bsd", "freebsd-ufs")]
        {
            let disk = Image::new(16 * MIB, options);
            disk.done(&format!("{create} disk"));
            disk.done(&format!("add -t {kind} -s 8m disk"));
            resize(&disk, 24 * MIB);
            disk.done(&format!("add -t {kind} disk"));
            let places = disk.places("");
            assert_eq!(places[1].1 + places[1].2, 24 * MIB);
        }
    }
}

#[test]
fn a_disk_that_has_shrunk() {
    for options in ["", "--logical 4096"] {
        let disk = Image::new(16 * MIB, options);
        disk.done(&format!("create -s gpt {ID} disk"));
        disk.done(&format!("add -t efi -s 2m {UUID} disk"));
        resize(&disk, 8 * MIB);
        disk.refused("add -t efi disk", "the GPT is damaged");
        disk.done("recover disk");
        disk.done("add -t efi --uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000002 disk");
        resize(&disk, 4 * MIB);
        disk.refused("recover disk", "p2 takes");
        for (create, kind) in
            [("create -s mbr --id 12345678", "linux-data"), ("create -s bsd", "freebsd-ufs")]
        {
            let disk = Image::new(16 * MIB, options);
            disk.done(&format!("{create} disk"));
            disk.done(&format!("add -t {kind} -s 8m disk"));
            resize(&disk, 4 * MIB);
            assert!(disk.part("show disk").ended(0).stdout.contains("[CORRUPT]"));
            disk.refused(&format!("add -t {kind} disk"), "is damaged");
            disk.refused("delete -i 1 disk", "is damaged");
            disk.refused("destroy disk", "is damaged");
            if kind == "linux-data" {
                // A slice that begins on the disk is cut to it; one that does not could only be
                // lost.
                disk.done("recover disk");
                assert_eq!(disk.places(""), [(1, MIB, 3 * MIB)]);
            } else {
                disk.refused(
                    "recover disk",
                    "give the disk or image its length back, or destroy the table",
                );
                resize(&disk, 16 * MIB);
                disk.done("resize -i 1 -s 2m disk");
                resize(&disk, 4 * MIB);
                disk.done("add -t freebsd-ufs disk");
            }
        }
    }
}

/// Places at the ends of a disk of 16 MiB, the last counted from its end: what is there is looked
/// at before anything is written.
const ENDS: [i64; 6] = [0, 5 * 512, 100_000, MIB as i64 - 8, -(MIB as i64), -8];
/// Bytes that no class and no format begins with.
const UNKNOWN: [u8; 8] = [0x9d, 0x31, 0x77, 0xc2, 0x05, 0xe8, 0x6b, 0x14];

#[test]
fn what_nothing_recognises_is_written_over_only_if_told() {
    let layout = "scheme = \"gpt\"\n[[partition]]\ntype = \"efi\"\nsize = \"1m\"\n";
    for at in ENDS {
        let disk = Image::new(16 * MIB, "");
        std::fs::write(disk.path("layout"), layout).expect("a layout");
        crate::zeroes(disk.scratch.path(), "other", 16 * MIB);
        put(&disk, at, &UNKNOWN);
        let before = disk.bytes("disk");
        let place = if at < 0 { 16 * MIB - at.unsigned_abs() } else { at.unsigned_abs() };
        let found = format!(
            "there is something that is not recognised: byte {place} (LBA {}) has 9d 31 77 c2 05 e8 6b 14",
            place / 512
        );
        let verbs = CREATE.map(|create| format!("part {create} {{}} disk"));
        let others = [
            "part apply {} layout disk",
            "mkfs ufs {} disk",
            "mkfs swap {} disk",
            "stripe label {} data disk other",
            "mirror label {} data disk other",
        ];
        for verb in verbs.into_iter().chain(others.map(String::from)) {
            let ran = run(disk.scratch.path(), &verb.replace("{}", ""));
            assert!(ran.refused().contains(&found), "{verb}: {}", ran.stderr);
            assert!(before == disk.bytes("disk"), "{verb}: it is another");
            // One name of the danger for all of them.
            if !verb.contains("swap") {
                let ran =
                    run(disk.scratch.path(), &(verb.replace("{}", "--overwrite") + " --dry-run"));
                assert_eq!(ran.code, Some(0), "{verb}: {}", ran.stderr);
            }
        }
        // What the new table does not need stays: it may be the front of a partition that the table
        // is to have again.
        disk.part("create -s gpt --overwrite disk").ended(0);
        let length = usize::try_from(16 * MIB).expect("small");
        let after = disk.bytes("disk");
        assert!(before[34 * 512..length - 33 * 512] == after[34 * 512..length - 33 * 512], "{at}");
    }
    // Further in nothing is looked at.
    let disk = Image::new(16 * MIB, "");
    put(&disk, 3 * MIB as i64, &UNKNOWN);
    disk.part("create -s gpt disk").ended(0);
}

/// Remains of a format after wipefs are not zero; the refusal names their place, and a whole
/// command that goes on.
#[test]
fn a_refusal_names_the_command_that_goes_on() {
    let disk = Image::new(16 * MIB, "");
    put(&disk, 1025, &UNKNOWN);
    std::fs::rename(disk.path("disk"), disk.path("my disk")).expect("another name");
    for (words, again) in [
        (
            ["part", "create", "-s", "gpt", "my disk"].as_slice(),
            "trueline part create -s gpt 'my disk' --overwrite",
        ),
        (
            ["mkfs", "ufs", "my disk", "--", "-L", "a b"].as_slice(),
            "trueline mkfs ufs 'my disk' --overwrite -- -L 'a b'",
        ),
    ] {
        let ran = crate::run_with(disk.scratch.path(), words);
        let want = format!(
            "byte 1025 (LBA 2) has 9d 31 77 c2 05 e8 6b 14: say --overwrite to lose it: {again}: nothing was written"
        );
        assert!(ran.refused().ends_with(&want), "{}", ran.stderr);
    }
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_trueline"))
        .parent()
        .expect("a directory")
        .display()
        .to_string();
    let line = format!("PATH={program}:$PATH; trueline part create -s gpt 'my disk' --overwrite");
    assert!(
        Command::new("sh")
            .args(["-c", &line])
            .current_dir(disk.scratch.path())
            .status()
            .is_ok_and(|s| s.success())
    );
}

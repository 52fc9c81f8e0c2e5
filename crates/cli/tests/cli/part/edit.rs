//! Every verb and option on every scheme, and what is refused.

use super::image::{Image, MIB};
use crate::{run, run_with};
use serde_json::Value;
use std::fs::{self, File};
use std::process::Stdio;

pub(super) const ID: &str = "--id 0d1f8f5c-6f55-4e0e-9f0e-000000000000";

pub(super) const UUID: &str = "--uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000001";

#[test]
fn every_verb_on_a_gpt() {
    for options in ["", "--logical 4096"] {
        let disk = Image::new(16 * MIB, options);
        disk.refused("create -s nope disk", "no such scheme");
        disk.refused("create -s gpt -n 0 disk", "0 entries");
        disk.refused("create -s gpt --id 12345678 disk", "GUID");
        disk.refused("create -s gpt --dialect netbsd disk", "a GPT has no dialects");
        disk.refused("create -s gpt --geometry 63,16 disk", "a GPT has no geometry");
        assert_eq!(disk.done(&format!("create -s gpt {ID} disk")), "disk created\n");
        disk.refused(
            "create -s mbr disk",
            "there is a GPT with 0 partitions: remove it with part destroy",
        );
        let said = disk.done(&format!("add -t efi -s 2m -l Größe-😀 {UUID} disk"));
        assert_eq!(
            said,
            format!(
                "disk#p1 added: 2 MiB at byte 1048576 (LBA {})\n",
                if options.is_empty() { 2048 } else { 256 }
            )
        );
        disk.done(
            "add -t linux-data -s 3MiB -i 7 --uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000002 disk",
        );
        disk.done("add -t freebsd-ufs --uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000003 disk");
        assert_eq!(
            disk.places(""),
            [(1, MIB, 2 * MIB), (2, 6 * MIB, 9 * MIB), (7, 3 * MIB, 3 * MIB)]
        );
        disk.refused("add -t nope disk", "trueline part add --help lists the names");
        disk.refused("add -t efi -i 7 disk", "index 7 is in use");
        disk.refused("add -t efi -i 129 disk", "use 1 to 128");
        disk.refused("add -t efi -b 4m -s 1m disk", "overlap index 7");
        disk.refused("add -t efi -s 1m disk", "no room for 1048576 bytes");
        disk.refused("add -t efi -b 0 -s 8s disk", "do not lie where partitions may");
        disk.refused("add -t efi -b 18446744073709551615 disk", "ends past 2^64 bytes");
        disk.refused("add -t efi --uuid zz disk", "--uuid is not a UUID");
        disk.refused(
            &format!("modify -i 1 -l {} disk", "é".repeat(37)),
            "37 UTF-16 units: a GPT has room for 36",
        );
        disk.refused("modify -i 1 disk", "nothing to change");
        disk.refused("modify -i 3 -t efi disk", "no partition with index 3: in use: 1, 2, 7");
        disk.refused("resize -i 1 -s 4m disk", "overlap index 7");
        disk.refused("resize -i 1 -s 0 disk", "a size of 0");
        disk.refused("delete -i 3 disk", "no partition with index 3");
        disk.refused("set -a nope -i 1 disk", "GPT has no attribute 'nope'");
        disk.refused("set -a bootme disk", "belongs to a partition");
        disk.refused("destroy disk", "the GPT has 3 partitions");
        disk.done("modify -i 1 -t freebsd-boot -l other disk");
        disk.done("resize -i 7 -s 2m disk");
        disk.done("resize -i 7 disk");
        disk.done("set -a bootme -i 2 disk");
        disk.done("unset -a bootme -i 2 disk");
        disk.done("set -a active disk");
        assert_eq!(disk.done("recover disk"), "disk recovering is not needed\n");
        disk.done("delete -i 7 disk");
        let json: Value = serde_json::from_str(&disk.done("modify -i 1 -l Größe --json disk"))
            .expect("a document");
        assert_eq!(json["format"], "trueline/part/1");
        let p1 = &json["tables"][0]["entries"][0];
        assert_eq!(
            (&p1["label"], &p1["start"], &p1["aligned"]),
            (&"Größe".into(), &MIB.into(), &true.into())
        );
        assert_eq!(disk.table(""), json["tables"][0]);
        disk.done("destroy -F disk");
        let none = disk.part("show disk");
        assert!(none.refused().contains("there is no partition table"), "{}", none.stderr);
    }
}

#[test]
fn every_verb_on_an_mbr_and_its_logical_partitions() {
    for options in ["", "--logical 4096"] {
        let disk = Image::new(32 * MIB, options);
        disk.refused("create -s mbr -n 5 disk", "an MBR has 4");
        disk.done("create -s mbr --id 12345678 disk");
        disk.done("add -t linux-data -s 2m disk");
        disk.done("add -t ebr disk");
        disk.refused(&format!("add -t linux-data {UUID} disk"), "partitions of MBR have no UUIDs");
        disk.refused("add -t linux-data -l name disk", "MBR has no labels");
        disk.done("set -a active -i 1 disk");
        disk.done("modify -i 1 -t fat32lba disk");
        disk.done("resize -i 1 -s 1m disk");
        disk.done("unset -a active -i 1 disk");
        for size in ["4m", "3m", "2m", "1m"] {
            disk.done(&format!("add -t linux-data -s {size} disk#s2"));
        }
        let first = disk.places("#s2");
        assert_eq!(first.iter().map(|p| p.0).collect::<Vec<_>>(), [5, 6, 7, 8]);
        disk.refused("delete -i 1 disk#s2", "no partition with index 1");
        disk.refused("add -t linux-data -i 20 disk#s2", "leave out -i");
        disk.done("modify -i 6 -t linux-swap disk#s2");
        disk.done("delete -i 7 disk#s2");
        disk.done("resize -i 6 disk#s2");
        disk.done("delete -i 5 disk#s2");
        // The siblings stay where they were, under the numbers that the kernel gives them.
        let now = disk.places("#s2");
        assert_eq!(
            now.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>(),
            [(5, first[1].1), (6, first[3].1)]
        );
        disk.done("add -t linux-data -s 1m disk#s2");
        disk.refused("destroy disk#s2", "partitions");
        disk.done("destroy -F disk#s2");
        disk.done("delete -i 2 disk");
        for _ in 0..3 {
            disk.done("add -t linux-data -s 1m disk");
        }
        disk.refused("add -t linux-data -s 1m disk", "all 4 entries of the MBR are in use");
        disk.done("destroy -F disk");
    }
}

#[test]
fn every_verb_on_the_bsd_labels() {
    let dialects = [
        ("freebsd", "freebsd", "freebsd-swap"),
        ("openbsd", "openbsd", "freebsd-swap"),
        ("netbsd", "netbsd", "freebsd-swap"),
    ];
    for (kind, dialect, swap) in dialects {
        for options in ["", "--logical 4096"] {
            let disk = Image::new(32 * MIB, options);
            disk.done("create -s mbr --id 12345678 disk");
            disk.done(&format!("add -t {kind} -s 20m disk"));
            let id = if kind == "openbsd" { "--id 0123456789abcdef" } else { "" };
            disk.done(&format!("create -s bsd {id} disk#s1"));
            assert_eq!(
                disk.table("#s1")["dialect"].as_str().map(str::to_lowercase).as_deref(),
                Some(dialect)
            );
            disk.done("add -t freebsd-ufs -s 4m disk#s1");
            disk.done(&format!("add -t {swap} -s 2m disk#s1"));
            disk.done("add -t freebsd-ufs disk#s1");
            assert_eq!(
                disk.places("#s1").iter().map(|p| (p.1, p.2)).collect::<Vec<_>>(),
                [(0, 4 * MIB), (4 * MIB, 2 * MIB), (6 * MIB, 14 * MIB)]
            );
            let last = disk.places("#s1")[2].0;
            disk.refused("add -t freebsd-ufs disk#s1", "no room");
            disk.refused("add -t linux-data disk#s1", "type 'linux-data' is unknown to BSD");
            disk.refused("modify -i 1 -l name disk#s1", "labels are not supported");
            disk.refused(
                "set -a bootme -i 1 disk#s1",
                "BSD has no attribute 'bootme': it has none",
            );
            disk.done(&format!("modify -i {last} -t {swap} disk#s1"));
            disk.done(&format!("resize -i {last} -s 1m disk#s1"));
            disk.done(&format!("delete -i {last} disk#s1"));
            disk.done("recover disk#s1");
            disk.done("destroy -F disk#s1");
            disk.done(&format!("create -s bsd -n 16 {id} disk#s1"));
        }
    }
}

#[test]
fn a_label_three_deep() {
    for options in ["", "--logical 4096", "--physical 4096+3584"] {
        let disk = Image::new(64 * MIB, options);
        disk.done(&format!("create -s gpt {ID} disk"));
        disk.done(&format!("add -t mbr -s 50m {UUID} disk"));
        disk.done("create -s mbr --id 12345678 disk#p1");
        disk.done("add -t freebsd -s 30m disk#p1");
        disk.done("create -s bsd disk#p1s1");
        disk.done("add -t freebsd-ufs -s 8m disk#p1s1");
        disk.done("add -t freebsd-swap -s 8m disk#p1s1");
        let table = disk.table("#p1s1");
        for entry in table["entries"].as_array().expect("entries") {
            assert_eq!(entry["aligned"], true, "{options}: {entry}");
        }
        disk.done("delete -i 1 disk#p1s1");
        disk.done("resize -i 2 -s 4m disk#p1s1");
        disk.done("destroy -F disk#p1s1");
    }
}

#[test]
fn types_that_are_unknown_lead_to_those_there_are() {
    let disk = Image::new(16 * MIB, "");
    disk.part("create -s mbr disk").ended(0);
    disk.refused("add -t fat3 disk", "type 'fat3' is unknown to MBR: there are fat32, fat32lba");
    disk.refused("add -t freebsd-foo disk", "there are freebsd; ");
    disk.refused("add -t ext9 disk", "is unknown to MBR: trueline part add --help lists the names");
    let help = run(disk.scratch.path(), "part add --help").ended(0).stdout.clone();
    assert!(
        help.split_whitespace().any(|word| word == "efi")
            && help.split_whitespace().any(|word| word == "openbsd"),
        "{help}"
    );
    // Where gpart(8) has no name, ours is shown, unless its words are wanted.
    disk.part("add -t openbsd disk").ended(0);
    let shown = |options: &str| {
        disk.part(&format!("show {options} disk")).ended(0).stdout.contains("  1  openbsd  (")
    };
    assert_eq!(["", "--gpart-rules", "--compat 9"].map(shown), [true, false, false]);
}

#[test]
fn partitions_until_it_is_full() {
    let disk = Image::new(16 * MIB, "");
    disk.part("create -s gpt -n 8 disk").ended(0);
    let mut last = disk.part("add -t linux-data -s 1m disk");
    let mut added = 0;
    while last.code == Some(0) {
        added += 1;
        last = disk.part("add -t linux-data -s 1m disk");
    }
    assert!(
        last.refused().contains("no room for 1048576 bytes")
            || last.refused().contains("entries of the GPT are in use")
    );
    let places = disk.places("");
    assert!(places.len() == added && added >= 8, "{added}");
    for pair in places.windows(2) {
        assert!(pair[0].1 + pair[0].2 <= pair[1].1 && pair[1].1 % 4096 == 0);
    }
}

#[test]
fn a_backup_restored_elsewhere_is_the_same_table() {
    let disk = Image::new(16 * MIB, "");
    disk.done(&format!("create -s gpt {ID} disk"));
    disk.done(&format!("add -t efi -s 2m -l Größe {UUID} disk"));
    disk.done("set -a bootme -i 1 disk");
    let text = disk.part("backup disk").ended(0).stdout.clone();
    crate::zeroes(disk.scratch.path(), "copy", 16 * MIB);
    let restore = |arguments: &str| {
        fs::write(disk.path("text"), &text).expect("a file");
        let input = File::open(disk.path("text")).expect("a file");
        let ran = crate::program(disk.scratch.path())
            .args(arguments.split_whitespace())
            .stdin(Stdio::from(input))
            .output();
        crate::Ran::of(&ran.expect("the program runs"))
    };
    restore("part restore -l copy").ended(0);
    let shown = |name: &str| {
        run(disk.scratch.path(), &format!("part show -l {name}")).ended(0).stdout.replace(name, "")
    };
    assert_eq!(shown("disk"), shown("copy"));
    let again = restore("part restore -l copy");
    assert!(
        again.refused().contains("there is a GPT with 1 partition: say -F to replace it"),
        "{}",
        again.stderr
    );
    restore("part restore -F -l copy").ended(0);
    // The document is that of the table that is there now, or with --dry-run would be.
    let restored = restore("part restore -F -l --json copy").ended(0).json();
    let document = || run(disk.scratch.path(), "part show --json copy").ended(0).json();
    assert_eq!(restored, document());
    let would_be = restore("part restore -F -l --json --dry-run copy").json();
    let entry = |of: &str| would_be["tables"][0]["entries"][0][of].clone();
    assert_eq!((entry("label"), entry("start")), ("Größe".into(), (1 << 20).into()));
    assert_eq!(restored, document(), "--dry-run wrote");
    for (text, why) in [
        ("", "line 1"),
        ("GPT 128\n1 nope 2048 8\n", "line 2: type 'nope'"),
        ("XXX 4\n", "no scheme"),
        ("GPT 128\n1 efi 0 8\n", "line 2"),
    ] {
        fs::write(disk.path("text"), text).expect("a file");
        let before = disk.bytes("copy");
        let input = File::open(disk.path("text")).expect("a file");
        let ran = crate::program(disk.scratch.path())
            .args(["part", "restore", "-F", "copy"])
            .stdin(Stdio::from(input))
            .output();
        let ran = crate::Ran::of(&ran.expect("the program runs"));
        assert!(
            ran.refused().contains(why) && ran.refused().ends_with("nothing was written"),
            "{}",
            ran.stderr
        );
        assert!(before == disk.bytes("copy"));
    }
}

#[test]
fn what_saved_nothing_or_something_else_is_not_undone() {
    let disk = Image::new(16 * MIB, "");
    disk.done(&format!("create -s gpt {ID} disk"));
    fs::write(disk.path("bad"), "no saved bytes\n").expect("a file");
    for (file, why) in [("none", "no such file"), ("bad", "does not begin a saved write")] {
        let before = disk.bytes("disk");
        let ran = disk.part(&format!("undo {file} disk"));
        assert!(ran.refused().contains(why), "{}", ran.stderr);
        assert!(before == disk.bytes("disk"));
    }
    // What is there is not saved over.
    disk.refused("destroy --save bad disk", "it is there already");
    let twice = run_with(
        disk.scratch.path(),
        &["part", "add", "-t", "efi", "--dry-run", "--save", "never", "disk"],
    );
    assert_eq!(twice.code, Some(0));
    assert!(!disk.path("never").exists());
}

/// The document of an `undo` has the tables of what was written, as they are afterwards.
#[test]
fn what_is_undone_is_shown_as_json() {
    let disk = Image::new(16 * MIB, "");
    let done = |words: &str| {
        let ran = disk.part(words);
        ran.ended(0);
        ran
    };
    done("create -s mbr --id 12345678 --save made disk");
    done("add -t freebsd -b 1m -s 8m --save added disk");
    let is_there = || done("show --json disk").json();
    let before = is_there();
    done("create -s bsd --save labelled disk#s1");
    done("add -t freebsd-ufs --save inner disk#s1");
    // One whose writes are on another provider, and one that leaves no table.
    let label = done("undo --json inner disk").json();
    assert_eq!(
        (&label["tables"][0]["provider"], &label["tables"][1]),
        (&"disks1".into(), &Value::Null)
    );
    assert_eq!(label, done("show --json disk#s1").json());
    assert_eq!(done("undo --json labelled disk").json()["tables"], Value::Array(vec![]));
    assert_eq!(is_there(), before);
    let both = disk.part("undo --json --dry-run added disk");
    assert!(both.refused().contains("leave one of them out"), "{}", both.stderr);
    assert_eq!(done("undo --json added disk").json(), is_there());
    assert_eq!(is_there()["tables"][0]["entries"], Value::Array(vec![]));
    assert_eq!(done("undo --json made disk").json()["tables"], Value::Array(vec![]));
}

#[test]
fn a_logical_partitions_index_names_the_extended_one() {
    let disk = Image::new(16 * MIB, "");
    disk.part("create -s mbr --id 12345678 disk").ended(0);
    disk.part("add -t linux-data -s 2m disk").ended(0);
    disk.part("add -t ebr disk").ended(0);
    disk.part("add -t linux-data -s 2m disk#s2").ended(0);
    for verb in [
        "delete -i 5 disk",
        "modify -i 5 -t linux-swap disk",
        "resize -i 5 -s 1m disk",
        "set -a active -i 5 disk",
    ] {
        disk.refused(
            verb,
            "index 5 is a logical partition, in the extended one: name that: \
            disk#s2: nothing was written",
        );
    }
    // An index that neither table has is refused.
    disk.refused("delete -i 6 disk", "no partition with index 6: in use: 1, 2");
    disk.done("delete -i 5 disk#s2");
}

#[test]
fn a_label_may_begin_with_a_dash() {
    let disk = Image::new(16 * MIB, "");
    disk.part(&format!("create -s gpt {ID} disk")).ended(0);
    disk.done(&format!("add -t efi -s 2m -l -dash {UUID} disk"));
    assert_eq!(disk.table("")["entries"][0]["label"], "-dash");
    disk.done("modify -i 1 -l --other disk");
    assert_eq!(disk.table("")["entries"][0]["label"], "--other");
}

#[test]
fn a_protective_entry_of_another_length_is_a_note() {
    let disk = Image::new(64 * MIB, "");
    disk.part(&format!("create -s gpt {ID} disk")).ended(0);
    let findings = |size: u32| {
        let mut bytes = disk.bytes("disk");
        bytes[458..462].copy_from_slice(&size.to_le_bytes());
        fs::write(disk.path("disk"), bytes).expect("the image");
        let checked = run(disk.scratch.path(), "check --json disk").ended(0).json();
        checked["targets"][0]["findings"].as_array().cloned().expect("findings")
    };
    let first = |size: u32| findings(size)[0]["rule"].clone();
    assert_eq!(
        (first(131_071), first(u32::MAX)),
        ("TL0028".into(), "TL0028".into()),
        "only that it is empty"
    );
    let found = findings(4096);
    assert_eq!(
        (found.len() - 1, &found[0]["severity"], &found[0]["rule"]),
        (1, &"note".into(), &"TL0008".into()),
        "{found:?}"
    );
    let message = found[0]["message"].as_str().expect("a message");
    assert!(
        message.contains("covers 4096 sectors, and the disk has 131071 behind it"),
        "{message}"
    );
    assert_eq!(disk.done("recover disk"), "disk recovering is not needed\n");
}

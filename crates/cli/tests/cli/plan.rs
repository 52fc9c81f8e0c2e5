//! `plan`: every use on every drive as before, the document's keys, and the real tools told what it
//! says.

mod tools;

use crate::mkfs::shell;
use crate::skip::skip;
use crate::{list, run, run_with, scratch, texts, zeroes};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use tools::number;
use trueline_geom::plan::USES;

const DRIVES: [&str; 8] =
    ["512n", "512e", "4kn", "ssd-16k", "ssd-64k", "sd-4m", "raid64kx3", "raid512kx4"];

/// Stacks beside every kind by itself.
const STACKS: [&str; 9] = [
    "md5x4:64k+luks+lvm+xfs",
    "md6x8+xfs",
    "md10x3+ext4",
    "luks1+ext4",
    "lvm+vm-images",
    "xfs+vm-images+ntfs",
    "zfs+ext4",
    "raidz1x3+vm-images",
    "zfs+postgres",
];

#[test]
fn plans_are_as_before() {
    let bless = std::env::var_os("TRUELINE_BLESS").is_some();
    let (scratch, mut wrong) = (scratch(), String::new());
    for drive in DRIVES {
        let got: String = USES
            .iter()
            .map(|k| k.name)
            .chain(STACKS)
            .map(|wanted| brief(scratch.path(), drive, wanted))
            .collect();
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/plans/{drive}.want"));
        if bless {
            fs::write(&path, &got).expect("a golden text can be written");
        }
        let want = fs::read_to_string(&path).unwrap_or_default();
        let line = want.lines().zip(got.lines()).take_while(|(a, b)| a == b).count();
        if want != got {
            let at = |text: &str| text.lines().nth(line).unwrap_or("(no more)").to_owned();
            let _ =
                writeln!(wrong, "{drive}.want:{}\n--- {}\n+++ {}", line + 1, at(&want), at(&got));
        }
    }
    assert!(wrong.is_empty(), "{wrong}TRUELINE_BLESS=1 writes what is planned");
}

/// A plan in one line a choice: what it is set to, what it costs; then notes and commands.
fn brief(directory: &Path, drive: &str, wanted: &str) -> String {
    let ran = run(directory, &format!("plan --for {drive} --use {wanted} --size 256g --json"));
    let document = ran.ended(0).json();
    let mut text = format!("# {wanted}\n");
    let price = |v: &Value| {
        format!(
            "{} {:.2} {}",
            plain(&v["value"]),
            v["write_amplification"].as_f64().expect("a number"),
            v["space_cost"]["bytes"]
        )
    };
    for row in list(&document, "layers") {
        let others: String =
            list(row, "alternatives").iter().map(|other| format!(" | {}", price(other))).collect();
        let _ = writeln!(
            text,
            "{} {}: {}{others}",
            plain(&row["layer"]),
            plain(&row["parameter"]),
            price(row)
        );
    }
    document["notes"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(|note| writeln!(text, "note: {}", plain(note)).expect("text"));
    document["commands"]
        .as_array()
        .into_iter()
        .flatten()
        .for_each(|command| writeln!(text, "$ {}", plain(command)).expect("text"));
    text + "\n"
}

/// A string without its quotes, a number as it is.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[test]
fn the_document_keeps_its_keys() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 30);
    let document =
        run(scratch.path(), "plan disk --physical 16k --use xfs+mysql --json").ended(0).json();
    assert_eq!(
        (&document["format"], &document["target"], &document["use"]),
        (&json!("trueline/plan/1"), &json!("disk"), &json!("xfs+mysql"))
    );
    assert_eq!(
        document["grains"],
        json!([{"size": 16384, "phase": 0, "why": "physical", "source": "user", "trust": "trusted"}])
    );
    let layers = list(&document, "layers");
    assert_eq!(texts(layers, "layer").first(), Some(&"partition"));
    for row in layers {
        assert!(
            row["parameter"].is_string() && row["unit"].is_string() && row["why"].is_string(),
            "{row}"
        );
        assert!(row["command"].is_string() || row["command"].is_null(), "{row}");
        for priced in list(row, "alternatives").iter().chain([row]) {
            assert!(priced["value"].is_u64() || priced["value"].is_string(), "{priced}");
            assert!(priced["write_amplification"].is_f64(), "{priced}");
            assert!(
                priced["space_cost"]["bytes"].is_u64() && priced["space_cost"]["what"].is_string(),
                "{priced}"
            );
        }
    }
    let page = layers
        .iter()
        .find(|row| row["layer"] == "mysql" && row["parameter"] == "page")
        .expect("a page");
    assert_eq!(
        (&page["value"], &page["unit"], &page["write_amplification"]),
        (&json!(16384), &json!("bytes"), &json!(1.75))
    );
    let nothing = run(scratch.path(), "plan --use ext4 --json").ended(0).json();
    assert_eq!(nothing["target"], Value::Null);
    assert!(nothing["commands"].is_array() && nothing["notes"].is_array());
}

#[test]
fn a_use_that_is_not_one_is_refused() {
    let scratch = scratch();
    zeroes(scratch.path(), "a", 1 << 30);
    zeroes(scratch.path(), "b", 1 << 30);
    for (arguments, word) in [
        ("plan --use nonsense", "nonsense"),
        ("plan --use ext4+luks", "does not stand on ext4"),
        ("plan a,b --use xfs", "2 disks"),
        ("plan a#s1 --use xfs", "#s1"),
        ("plan nowhere --use xfs", "nowhere"),
        ("plan --use xfs --size 64", "no layout fits into 64 bytes"),
        ("plan a", "--use"),
    ] {
        assert!(run(scratch.path(), arguments).refused().contains(word), "{arguments}");
    }
    // Two disks for a set of two, and one with another like it.
    let both = run(scratch.path(), "plan a,b --use md1x2+ext4").ended(0).stdout.clone();
    assert!(both.contains("LOOP1=$(losetup") && both.contains("${LOOP2}p1"), "{both}");
    assert!(
        run(scratch.path(), "plan a --use md1x2+ext4")
            .ended(0)
            .stdout
            .contains("1 of 2 disks are named")
    );
    let spaced = run_with(scratch.path(), &["plan", "md:1g", "--use", " luks + ext4"]);
    assert_eq!(spaced.code, Some(0), "{}", spaced.stderr);
}

#[test]
fn a_provider_off_the_grain_is_told() {
    let scratch = crate::golden("seed-001-sdd-63");
    let said =
        run(scratch.path(), "plan disk#s1 --physical 4096 --use ext4").ended(0).stdout.clone();
    assert!(
        said.contains("begins 3584 bytes past a boundary") && !said.contains("sfdisk"),
        "{said}"
    );
}

#[test]
fn the_planned_partition_is_what_part_makes() {
    let scratch = scratch();
    for (options, length) in [
        ("--physical 4096+3584", 1 << 30),
        ("--for raid64kx3", 10_000_000_000),
        ("--physical 4096+512", 123_456_512),
        ("", 64 << 20),
    ] {
        let _ = fs::remove_file(scratch.path().join("disk"));
        zeroes(scratch.path(), "disk", length);
        let document =
            run(scratch.path(), &format!("plan disk {options} --use ext4 --json")).ended(0).json();
        let commands: Vec<String> = list(&document, "commands")
            .iter()
            .map(|c| plain(c).replace("${LOOP}", "disk"))
            .collect();
        let parts: Vec<&str> = commands
            .iter()
            .filter_map(|c| c.strip_prefix("trueline "))
            .filter(|c| c.starts_with("part "))
            .collect();
        assert_eq!(parts.len(), 2, "{commands:?}");
        for command in &parts {
            run(scratch.path(), &format!("{command} {options}")).ended(0);
        }
        let checked = run(scratch.path(), &format!("check disk {options} --json")).json();
        let providers = list(&checked["targets"][0], "providers");
        let start = providers.iter().find(|p| p["provider"] == "p1").map(|p| p["start"].clone());
        assert_eq!(start.as_ref(), Some(&list(&document, "layers")[0]["value"]), "{parts:?}");
        assert_eq!(checked["targets"][0]["findings"], json!([]), "{parts:?}");
    }
}

/// Runs the commands of a plan in order in a shell; gives the ones that were not run for want of a
/// tool or a kernel.
fn typed(directory: &Path, arguments: &str) -> Vec<String> {
    let document = run(directory, &format!("plan {arguments} --json")).ended(0).json();
    let (mut left, mut stopped) = (Vec::new(), false);
    for command in list(&document, "commands").iter().map(plain) {
        let program = command.split(' ').next().unwrap_or_default();
        let there = shell(directory, &format!("command -v {program}")).status.success();
        // Without loop devices, md and a kernel's mounts the rest has nothing to stand on.
        stopped |= !there || !matches!(program, "trueline" | "cd" | "mkdir");
        if stopped {
            left.push(command);
            continue;
        }
        let ran = shell(directory, &command);
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    }
    left
}

#[test]
fn what_is_planned_on_an_image_runs_as_printed() {
    let missing =
        |tool: &str| !shell(Path::new("/"), &format!("command -v {tool}")).status.success();
    for (wanted, tool, sign) in [
        ("ext4", "mkfs.ext4", "ext4"),
        ("xfs", "mkfs.xfs", "xfs"),
        ("btrfs", "mkfs.btrfs", "btrfs"),
        ("vfat", "mkfs.vfat", "vfat"),
        ("exfat", "mkfs.exfat", "exfat"),
        ("ntfs", "mkntfs", "ntfs"),
        ("swap", "mkswap", "swap"),
        ("ufs", "sh", "ufs"),
    ] {
        if missing(tool) {
            skip(&format!("no {tool} here"));
            continue;
        }
        for options in ["", "--physical 4096+3584", "--logical 4096", "--for ssd-16k"] {
            if wanted == "exfat" && options == "--logical 4096" {
                continue;
            }
            let scratch = scratch();
            zeroes(scratch.path(), "my disk.img", 1 << 30);
            let words = ["plan", "my disk.img", "--use", wanted, "--json"];
            let document = run_with(
                scratch.path(),
                &[&words[..], &options.split_whitespace().collect::<Vec<_>>()].concat(),
            )
            .ended(0)
            .json();
            for command in list(&document, "commands").iter().map(plain) {
                let ran = shell(scratch.path(), &command);
                assert!(
                    ran.status.success(),
                    "{command}: {}",
                    String::from_utf8_lossy(&ran.stderr)
                );
            }
            let words = ["check", "my disk.img", "--json"];
            let checked = run_with(
                scratch.path(),
                &[&words[..], &options.split_whitespace().collect::<Vec<_>>()].concat(),
            )
            .json();
            let signs: Vec<&str> = list(&checked["targets"][0], "providers")
                .iter()
                .filter_map(|p| p["sign"].as_str())
                .collect();
            assert!(
                signs.contains(&sign) && checked["verdict"] == "aligned",
                "{wanted} {options}: {}",
                checked["targets"][0]["findings"]
            );
        }
    }
}

#[test]
fn a_card_is_made_as_printed() {
    if !shell(Path::new("/"), "command -v mkfs.vfat && command -v mkfs.exfat").status.success() {
        skip("no mkfs.vfat or no mkfs.exfat here");
        return;
    }
    // MiB; the MBR's type; bits of the FAT's entries; the boundary unit.
    for (mib, kind, bits, unit) in [
        (60, 0x01, 12, 16 << 10),
        (256, 0x06, 16, 32 << 10),
        (2048, 0x06, 16, 64 << 10),
        (4096, 0x0b, 32, 4 << 20),
        (32768, 0x0c, 32, 4 << 20),
        (65536, 0x07, 0, 16 << 20),
    ] {
        let scratch = scratch();
        zeroes(scratch.path(), "card.img", mib << 20);
        assert_eq!(typed(scratch.path(), "card.img --use sd-card"), Vec::<String>::new(), "{mib}");
        let card = scratch.path().join("card.img");
        let (start, sectors) = (number(&card, 454, 4) * 512, number(&card, 458, 4));
        assert_eq!((number(&card, 450, 1), start + sectors * 512), (kind, mib << 20), "{mib}");
        assert_eq!(
            (number(&card, 462, 8), number(&card, 510, 2)),
            (0, 0xaa55),
            "{mib}: one partition"
        );
        if bits == 0 {
            assert_eq!(number(&card, start + 88, 4) * 512 % unit, 0, "{mib}");
            assert_eq!(start, unit);
        } else {
            let fat = if bits == 32 {
                number(&card, start + 36, 4)
            } else {
                number(&card, start + 22, 2)
            };
            let data = number(&card, start + 14, 2) * 512
                + 2 * fat * 512
                + number(&card, start + 17, 2) * 32;
            assert_eq!((start + data) % unit, 0, "{mib}");
            assert_eq!(number(&card, start + 28, 4) * 512, start, "{mib}: hidden sectors");
            assert!(bits == 32 || number(&card, start + 14, 2) == 1, "{mib}");
        }
        let checked = run(scratch.path(), "check card.img --for sd-4m --json").json();
        let findings = list(&checked["targets"][0], "findings");
        assert!(mib < 4096 || findings.is_empty(), "{mib}: {findings:?}");
    }
}

#[test]
fn every_command_is_one_that_a_shell_reads() {
    let scratch = scratch();
    zeroes(scratch.path(), "it's.img", 4 << 30);
    for wanted in
        USES.iter().flat_map(|k| [k.name].into_iter().chain(k.also.iter().copied())).chain(STACKS)
    {
        let words =
            |target: &[&'static str]| [&["plan", "--use", wanted, "--json"], target].concat();
        let disks = if wanted.contains('x') && wanted.contains(|c: char| c.is_ascii_digit()) {
            Vec::new()
        } else {
            vec!["it's.img"]
        };
        for words in [words(&["--size", "64g"]), words(&disks)] {
            let document = run_with(scratch.path(), &words).ended(0).json();
            let commands: Vec<String> = list(&document, "commands").iter().map(plain).collect();
            assert!(!commands.is_empty(), "{wanted}");
            fs::write(scratch.path().join("commands"), commands.join("\n")).expect("a file");
            let ran = shell(scratch.path(), "sh -n commands");
            assert!(
                ran.status.success(),
                "{wanted}: {}: {commands:?}",
                String::from_utf8_lossy(&ran.stderr)
            );
        }
    }
}

#[test]
fn drbd_is_told_the_device_and_not_a_variable() {
    let scratch = scratch();
    zeroes(scratch.path(), "it's.img", 4 << 30);
    for (arguments, set, device) in [
        (&["--size", "64g"][..], "DISK=/dev/sdq", "/dev/sdq-part1"),
        (&["it's.img"][..], "LOOP=/dev/loop42", "/dev/loop42p1"),
        (&["--use", "md1x2+drbd", "--size", "64g"][..], "DISK=/dev/sdq", "/dev/md0"),
    ] {
        let wanted: &[&str] = if arguments.contains(&"--use") { &[] } else { &["--use", "drbd"] };
        let document = run_with(scratch.path(), &[&["plan", "--json"], arguments, wanted].concat())
            .ended(0)
            .json();
        let commands: Vec<String> = list(&document, "commands").iter().map(plain).collect();
        let command = commands
            .iter()
            .find(|c| c.contains("/etc/drbd.d/data.res"))
            .unwrap_or_else(|| panic!("{commands:?}"));
        let ran = shell(
            scratch.path(),
            &format!("{set}; {}", command.replace("/etc/drbd.d/data.res", "data.res")),
        );
        assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
        let file =
            fs::read_to_string(scratch.path().join("data.res")).expect("a resource was written");
        let lines: Vec<&str> = file.lines().collect();
        assert_eq!(
            (lines.first(), lines.last()),
            (Some(&"resource data {"), Some(&"}")),
            "{command}"
        );
        assert!(
            lines.contains(
                &format!("device /dev/drbd0; disk {device}; meta-disk internal;").as_str()
            ),
            "{command}: {file}"
        );
    }
}

#[test]
fn the_uses_are_listed() {
    let scratch = scratch();
    let text = run(scratch.path(), "plan --list").ended(0).stdout.clone();
    assert!(
        USES.iter().all(|kind| text.contains(kind.about))
            && text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    let document = run(scratch.path(), "plan --list --json").ended(0).json();
    assert_eq!(
        (&document["format"], list(&document, "uses").len()),
        (&json!("trueline/plan-uses/1"), USES.len())
    );
    assert!(
        run(scratch.path(), "plan --use postgress").refused().contains("did you mean postgres")
    );
}

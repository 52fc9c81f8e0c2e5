//! The commands that `check` prints as cures: run as printed, after each of which the finding is
//! gone.

use crate::fuse::mounts;
use crate::lay::lay;
use crate::recipe::{self, Recipe};
use crate::{Ran, list, program, run, scratch};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Disks whose partitions a test can move in little time.
const LARGEST: u64 = 1 << 30;

/// A shell that finds the program as `trueline`, for a line pasted by a user.
fn paste(directory: &Path, line: &str) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_trueline"))
        .parent()
        .expect("a program is in a directory")
        .display()
        .to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{program}:{path}:/usr/sbin:/sbin");
    Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env("PATH", path)
        .env("LC_ALL", "C")
        .output()
        .expect("a shell can be run")
}

#[track_caller]
fn pasted(directory: &Path, line: &str) {
    let ran = paste(directory, line);
    assert!(
        ran.status.success(),
        "{line}: {}{}",
        String::from_utf8_lossy(&ran.stdout),
        String::from_utf8_lossy(&ran.stderr)
    );
}

fn check(directory: &Path, options: &str, target: &str) -> Value {
    run(directory, &format!("check --json {options} {target}")).json()
}

/// True if `rule` is broken by a provider of the name in `finding`, at that severity or a worse
/// one.
fn still(report: &Value, finding: &Value) -> bool {
    let weight = |f: &Value| ["note", "warning", "error"].iter().position(|s| f["severity"] == **s);
    let same = |f: &&Value| {
        f["rule"] == finding["rule"]
            && f["provider"] == finding["provider"]
            && weight(f) >= weight(finding)
    };
    list(&report["targets"][0], "findings").iter().any(|f| same(&f))
}

/// Every finding of a golden disk for which `line` gives something to run, each on a disk of its
/// own.
fn cured(recipe: &Recipe, line: &dyn Fn(&Value) -> Option<String>) -> usize {
    let mut cured = 0;
    let mut checks: Vec<&str> = recipe.field("check").collect();
    if checks.is_empty() {
        checks.push("");
    }
    for options in checks {
        let first = scratch();
        let target = lay(recipe, first.path()).expect("a golden disk can be laid out").join(",");
        let report = check(first.path(), options, &target);
        let small = list(&report["targets"][0], "providers")
            .iter()
            .all(|p| p["length"].as_u64().expect("a length") <= LARGEST);
        for finding in list(&report["targets"][0], "findings").iter().filter(|_| small) {
            let Some(line) = line(finding) else { continue };
            let directory = scratch();
            lay(recipe, directory.path()).expect("a golden disk can be laid out");
            let ran = paste(directory.path(), &line);
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{}: {finding}: {line}: {said}", recipe.name);
            let after = check(directory.path(), options, &target);
            assert!(
                !still(&after, finding),
                "{}: {line}: {finding} is still there: {after}",
                recipe.name
            );
            cured += 1;
        }
    }
    cured
}

#[test]
fn what_is_printed_as_a_cure_of_a_golden_disk_cures_it() {
    let commands = |finding: &Value| {
        let commands = list(finding, "commands");
        let joined =
            commands.iter().map(|c| c.as_str().expect("a string")).collect::<Vec<_>>().join(" && ");
        assert!(commands.is_empty() || finding["fix"][0] == joined.as_str(), "{finding}");
        (!commands.is_empty()).then_some(joined)
    };
    let count: usize = recipe::all().iter().map(|recipe| cured(recipe, &commands)).sum();
    assert!(count >= 40, "{count} cures");
}

/// The sentence names a command that loses what is there: it makes the same format anew, with
/// nothing in it.
#[test]
fn what_is_made_anew_as_printed_is_on_the_grain() {
    let anew = |finding: &Value| {
        let sentences = list(finding, "fix").iter().filter_map(Value::as_str);
        sentences
            .filter_map(|text| text.split_once("make it anew: trueline "))
            .map(|(_, words)| format!("trueline {words}"))
            .next()
    };
    let has_tools = paste(
        Path::new("/"),
        "command -v mkfs.vfat && command -v mkfs.exfat && command -v mkfs.xfs",
    )
    .status
    .success();
    if !has_tools {
        println!("skipped: no mkfs.vfat, mkfs.exfat or mkfs.xfs here");
        return;
    }
    let count: usize = recipe::all().iter().map(|recipe| cured(recipe, &anew)).sum();
    assert!(count >= 5, "{count} made anew");
}

/// An ext4 in the only partition of a GPT, from LBA 34 to the end.
fn full(directory: &Path) {
    let made = "truncate -s 64M 'my disk.img'
        trueline part create -s gpt 'my disk.img' && trueline part add -t linux-data -b 34 -s \
        131005 'my disk.img' &&
        trueline mkfs ext4 'my disk.img#p1' -- -q -L kept";
    pasted(directory, made);
}

#[test]
fn a_partition_to_the_end_of_an_image_gets_room_and_moves() {
    let directory = scratch();
    full(directory.path());
    let checked = Ran::of(
        &program(directory.path())
            .args(["check", "--json", "my disk.img"])
            .output()
            .expect("it runs"),
    );
    let finding = list(&checked.json()["targets"][0], "findings")[0].clone();
    assert_eq!(finding["rule"], "TL0001");
    let wanted = [
        "truncate -s +1M 'my disk.img'",
        "trueline part recover 'my disk.img'",
        "trueline move --align 'my disk.img#p1'",
    ];
    assert_eq!(list(&finding, "commands"), wanted);
    pasted(directory.path(), finding["fix"][0].as_str().expect("a line"));
    let after = Ran::of(
        &program(directory.path()).args(["check", "my disk.img"]).output().expect("it runs"),
    );
    after.ended(0);
    assert!(after.stdout.contains("kept"), "{}", after.stdout);
}

/// A disk that cannot grow: the file system is shrunk through `serve --fuse`, then the partition,
/// which moves.
#[test]
fn a_partition_to_the_end_of_a_disk_is_shrunk_and_moves() {
    if !mounts()
        || !paste(Path::new("/"), "command -v resize2fs && command -v e2fsck").status.success()
    {
        println!("skipped: mounting needs root, leave to mount, and /dev/fuse; and resize2fs");
        return;
    }
    let directory = scratch();
    full(directory.path());
    // A remote disk is no file that could get longer.
    let script = r#"trueline check --json "$uri" > before
        python3 -c 'import json; print("\n".join(json.load(open("before"))["targets"][0]["findings"][0]["commands"]))' > cure
        sh -e cure && trueline check "$uri" > after"#;
    let ran = paste(
        directory.path(),
        &format!(
            "trueline serve --no-counters 'my disk.img' --run '{}'",
            script.replace('\'', r"'\''")
        ),
    );
    let read =
        |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap_or_default();
    let cure = read("cure");
    assert!(ran.status.success(), "{cure}{}", String::from_utf8_lossy(&ran.stderr));
    let verbs: Vec<&str> =
        cure.lines().map(|line| line.split(" -").next().unwrap_or_default()).collect();
    assert_eq!(verbs, ["trueline serve", "trueline part resize", "trueline move"], "{cure}");
    assert!(
        read("after").contains("1 aligned") && read("after").contains("kept"),
        "{}",
        read("after")
    );
    pasted(
        directory.path(),
        "trueline serve --fuse \"$(mktemp)\" 'my disk.img#p1' --run 'e2fsck -fn \"$file\"'",
    );
}

/// A name that a shell would take apart is one word in what is printed.
#[test]
fn names_of_disks_are_quoted() {
    let directory = scratch();
    pasted(
        directory.path(),
        "truncate -s 8M \"a'b \\$(c).img\"; sfdisk -q \"a'b \\$(c).img\" <<'END'\nlabel: dos\nstart=63, size=2000\nEND\n",
    );
    let name = "a'b $(c).img";
    let checked = Ran::of(
        &program(directory.path()).args(["check", "--json", name]).output().expect("it runs"),
    );
    let finding = list(&checked.json()["targets"][0], "findings")[0].clone();
    assert_eq!(list(&finding, "commands"), [r"trueline move --align 'a'\''b $(c).img#s1'"]);
    pasted(directory.path(), finding["fix"][0].as_str().expect("a line"));
}

/// A GPT whose image has grown has its room behind the backup: that goes to the end first, and
/// nothing is shrunk.
#[test]
fn an_image_that_has_grown_is_recovered_first() {
    let directory = scratch();
    full(directory.path());
    pasted(directory.path(), "truncate -s +16M 'my disk.img'");
    let report = Ran::of(
        &program(directory.path())
            .args(["check", "--json", "my disk.img"])
            .output()
            .expect("it runs"),
    )
    .json();
    let finding = list(&report["targets"][0], "findings")
        .iter()
        .find(|f| f["rule"] == "TL0001")
        .expect("a start off the grain")
        .clone();
    assert_eq!(
        list(&finding, "commands"),
        ["trueline part recover 'my disk.img'", "trueline move --align 'my disk.img#p1'"]
    );
    let moved = Ran::of(
        &program(directory.path())
            .args(["move", "--align", "my disk.img#p1"])
            .output()
            .expect("it runs"),
    );
    let line = finding["fix"][0].as_str().expect("a line");
    assert!(
        moved.refused().contains(&format!(
            "these commands make room and move it: {line}: nothing was written"
        )),
        "{}",
        moved.stderr
    );
    pasted(directory.path(), line);
    let after = Ran::of(
        &program(directory.path()).args(["check", "my disk.img"]).output().expect("it runs"),
    );
    assert!(after.ended(0).stdout.contains("kept"), "{}", after.stdout);
}

/// `move` without room says what `check` says, and what is free: the largest first.
#[test]
fn a_move_without_room_names_the_commands_of_its_cure() {
    let directory = scratch();
    full(directory.path());
    let moved = Ran::of(
        &program(directory.path())
            .args(["move", "--align", "my disk.img#p1"])
            .output()
            .expect("it runs"),
    );
    let commands = "truncate -s +1M 'my disk.img' && trueline part recover 'my disk.img' && \
        trueline move --align 'my disk.img#p1'";
    let said = moved.refused().to_owned();
    let found =
        "there is no better place for 67074560 bytes than byte 17408 (LBA 34) (nothing is free)";
    assert!(
        said.contains(found)
            && said.ends_with(&format!("make room and move it: {commands}: nothing was written")),
        "{said}"
    );
    pasted(directory.path(), commands);
    pasted(
        directory.path(),
        "truncate -s 64M b.img; sfdisk -q b.img <<'END'\nlabel: dos\nstart=64, size=50041\nstart=50107, size=80965\nEND\n",
    );
    let said = run(directory.path(), "move --align b.img#s2").refused().to_owned();
    let free = "(free: 1024 bytes at byte 25653760 (LBA 50105), 512 bytes at byte 32256 (LBA 63))";
    assert!(said.contains(free), "{said}");
}

/// A simulated drive is read only: its cures are for the image on it, with what the model says of
/// the drive.
#[test]
fn cures_of_what_is_on_a_simulated_drive_are_for_its_image() {
    let directory = scratch();
    pasted(
        directory.path(),
        "truncate -s 8M disk.img; printf 'label: dos\\nstart=63,size=2000,type=83\\n' | sfdisk -q disk.img",
    );
    let drives = [
        ("drive:wd10ears=disk.img", "--logical 512 --physical 4096"),
        ("drive:sd-4m@8M=disk.img", "--logical 512 --physical 16384 --grain erase=4194304"),
    ];
    for (target, described) in drives {
        let report = check(directory.path(), "", target);
        let command = list(&list(&report["targets"][0], "findings")[0], "commands")[0]
            .as_str()
            .expect("a command")
            .to_owned();
        assert!(command == format!("trueline move --align {described} 'disk.img#s1'"), "{command}");
    }
    // Nothing can be done about what is nowhere, and there is no command for more disk than the
    // image has.
    let longer = check(directory.path(), "", "drive:wd10ears@16M=disk.img");
    assert_eq!(list(&list(&longer["targets"][0], "findings")[0], "commands"), [""; 0], "{longer}");
    let report = check(directory.path(), "", "drive:wd10ears=disk.img");
    pasted(
        directory.path(),
        list(&list(&report["targets"][0], "findings")[0], "commands")[0]
            .as_str()
            .expect("a command"),
    );
    assert_eq!(
        list(&check(directory.path(), "", "drive:wd10ears=disk.img")["targets"][0], "findings")
            .len(),
        0
    );
}

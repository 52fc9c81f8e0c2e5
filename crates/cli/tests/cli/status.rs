//! The end of `check`: exit statuses 0, 1, 2, 3, and messages on stderr.

use crate::{golden, list, program, run, run_with, scratch, texts, zeroes};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::Stdio;

#[test]
fn fail_on_is_the_least_severity_that_fails() {
    // The worst finding of each golden disk, as these options judge it; and the status by --fail-on
    // error, warning, note, never.
    let cases = [
        ("gpt-sfdisk", "", [0, 0, 0, 0]),
        ("seed-001-sdd-63", "--physical 4096+3584", [0, 0, 1, 0]),
        ("gpt-backup-gone", "", [0, 1, 1, 0]),
        ("seed-001-sdd-63", "", [1, 1, 1, 0]),
    ];
    for (name, options, codes) in cases {
        let scratch = golden(name);
        for (fail_on, code) in ["error", "warning", "note", "never"].into_iter().zip(codes) {
            for form in ["", "--json", "--jsonl", "--sarif", "--prometheus"] {
                run(scratch.path(), &format!("check --fail-on {fail_on} {form} {options} disk"))
                    .ended(code);
            }
        }
        assert_eq!(
            run(scratch.path(), &format!("check {options} disk")).code,
            Some(codes[1]),
            "a warning fails by default"
        );
    }
}

/// What makes a run fail is shown, of several targets and of many too.
#[test]
fn notes_that_count_are_shown_of_every_target() {
    let scratch = golden("seed-004-574");
    let disk = scratch.path().join("disk");
    let others: Vec<String> = (0..30).map(|number| format!("d{number}")).collect();
    for other in &others {
        fs::hard_link(&disk, scratch.path().join(other)).expect("a link");
    }
    for names in [&others[..2], &others[..]] {
        let names = names.join(" ");
        let hidden = run(scratch.path(), &format!("check --for 512e {names}"));
        hidden.ended(0);
        assert!(hidden.stdout.contains("are not shown"), "{}", hidden.stdout);
        let shown = run(scratch.path(), &format!("check --for 512e --fail-on note {names}"));
        shown.ended(1);
        assert!(shown.stdout.contains("note TL0017"), "{}", shown.stdout);
        assert!(!shown.stdout.contains("not shown"), "{}", shown.stdout);
    }
}

#[test]
fn strict_fails_on_what_is_not_known_and_on_nothing_else() {
    let scratch = golden("gpt-sfdisk");
    zeroes(scratch.path(), "blank", 1 << 20);
    run(scratch.path(), "check blank").ended(0);
    run(scratch.path(), "check --strict blank").ended(3);
    run(scratch.path(), "check --strict disk").ended(0);
    run(scratch.path(), "check --strict disk blank").ended(3);
    // A finding counts before what is not known, an unreadable target before either.
    run(scratch.path(), "check --strict --fail-on note blank").ended(1);
    run(scratch.path(), "check --strict --fail-on note blank missing").refused();
    run(scratch.path(), "check --strict --fail-on never blank").ended(3);
    run(scratch.path(), "check --fail-on never disk missing").refused();
}

#[test]
fn an_unreadable_target_does_not_keep_the_others_back() {
    let scratch = golden("gpt-sfdisk");
    fs::create_dir(scratch.path().join("directory")).unwrap();
    for (bad, says) in [
        ("missing", "no such file"),
        ("directory", "directory"),
        ("disk#p9", "no provider #p9: there are p1, p2, p3"),
        ("disk,missing", "open missing"),
        ("/dev/null", "character device"),
    ] {
        let ran = run_with(scratch.path(), &["check", "--json", "disk#p2", bad, "disk"]);
        assert!(ran.refused().contains(says), "{}", ran.stderr);
        let document = ran.json();
        assert_eq!(texts(list(&document, "targets"), "target"), ["disk#p2", "disk"]);
        // Nor does it keep show's back.
        let ran = run_with(scratch.path(), &["show", "disk#p2", bad, "disk"]);
        assert!(ran.refused().contains(says), "{}", ran.stderr);
        assert!(
            ran.stdout.starts_with("disk#p2\n") && ran.stdout.contains("\ndisk\n"),
            "{}",
            ran.stdout
        );
    }
    let two = run(scratch.path(), "check --json missing disk lost");
    assert_eq!(
        two.stderr.lines().filter(|line| line.starts_with("trueline: open ")).count(),
        2,
        "{}",
        two.stderr
    );
    assert_eq!(two.json()["errors"].as_array().map(Vec::len), Some(2));
    // A program gets its document even so, and no good verdict; a person has read what there is.
    let none = run(scratch.path(), "check --json missing");
    none.refused();
    assert_eq!(
        (&none.json()["verdict"], list(&none.json(), "targets").len()),
        (&"unknown".into(), 0)
    );
    assert_eq!(run(scratch.path(), "check missing").stdout, "");
}

#[test]
fn errors_are_one_line_whatever_the_name() {
    let scratch = scratch();
    for name in ["a\nb", "a\x1b[31mb", "a\rb"] {
        for command in ["check", "show", "info", "explain", "man"] {
            let ran = run_with(scratch.path(), &[command, name]);
            let line = ran.refused();
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}

#[test]
fn usage_is_answered_by_one_line_too() {
    let scratch = scratch();
    for (arguments, says) in [
        ("chek", "'check'"),
        ("check --jsn disk", "'--json'"),
        ("check --json --sarif disk", "--sarif"),
        ("check --fail-on fatal disk", "error, warning, note, never"),
        ("check --color purple disk", "auto, always, never"),
        ("show", "<TARGETS>..."),
        ("info", "<TARGET>"),
        ("info a b", "'b'"),
        ("man", "<DIR>"),
        ("completions tcsh", "bash"),
        ("--bogus check", "'--bogus'"),
    ] {
        let ran = run(scratch.path(), arguments);
        let line = ran.refused();
        assert!(line.contains(says) && line.contains("--help"), "{line}");
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_reader_that_has_gone_is_not_worth_a_word() {
    let scratch = golden("seed-001-sdd-63");
    for arguments in [
        "check disk",
        "check --json disk",
        "check --sarif disk",
        "check --prometheus disk",
        "show --picture disk",
        "info disk",
        "explain",
        "explain TL0001",
        "demo --short --html demo.html",
        "mkfs ufs md:64m --dry-run",
        "mkfs ufs md:100t --print",
        "completions bash",
        "--help",
        "check --help",
        "--version",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = program(scratch.path())
            .args(arguments.split(' '))
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        // A caller of check still gets its status.
        let status = i32::from(arguments.starts_with("check ") && !arguments.contains("--help"));
        assert_eq!(
            (ran.status.code(), String::from_utf8_lossy(&ran.stderr).as_ref()),
            (Some(status), ""),
            "{arguments}"
        );
    }
    // Nor is stderr's.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ran = program(scratch.path())
        .args(["check", "missing", "lost"])
        .stderr(writer)
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(2));
}

#[test]
fn a_full_disk_is_said() {
    let scratch = golden("seed-001-sdd-63");
    for arguments in [
        "check disk",
        "check --json disk",
        "show disk",
        "info disk",
        "explain",
        "completions bash",
        "demo --short",
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut child = program(scratch.path())
            .args(arguments.split(' '))
            .stdout(full)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{arguments}");
        assert!(
            said.starts_with("trueline: write the output: ") && said.lines().count() == 1,
            "{arguments}: {said}"
        );
    }
    for arguments in [
        "check --html nowhere/page.html disk",
        "show --svg nowhere/disk.svg disk",
        "man nowhere",
        "demo --short --html nowhere/demo.html",
    ] {
        let ran = run(scratch.path(), arguments);
        assert!(ran.refused().contains("nowhere"), "{}", ran.stderr);
    }
}

#[test]
fn a_disk_that_cannot_be_read_is_not_aligned() {
    // It ends before the table it begins with says.
    let scratch = golden("gpt-sfdisk");
    let mut short = Vec::new();
    File::open(scratch.path().join("disk")).unwrap().take(700).read_to_end(&mut short).unwrap();
    File::create(scratch.path().join("short")).unwrap().write_all(&short).unwrap();
    File::create(scratch.path().join("empty")).unwrap();
    for name in ["short", "empty"] {
        let ran = run(scratch.path(), &format!("check --json --strict {name}"));
        assert_eq!(ran.json()["verdict"], "unknown", "{}", ran.stdout);
        assert!(ran.code == Some(1) || ran.code == Some(3), "{}", ran.stdout);
    }
}

/// A page takes the place of a page, and of nothing else.
#[test]
fn pages_never_overwrite_disks() {
    let scratch = golden("seed-001-sdd-63");
    let length = || fs::metadata(scratch.path().join("disk")).unwrap().len();
    let before = length();
    std::os::unix::fs::symlink("disk", scratch.path().join("link")).unwrap();
    for arguments in [
        "check --html disk disk",
        "check --html link disk",
        "show --svg disk disk",
        "demo --short --html disk",
        "check --html . disk",
    ] {
        assert!(
            run(scratch.path(), arguments).refused().starts_with("trueline: write "),
            "{arguments}"
        );
    }
    assert_eq!(length(), before);
    for _ in 0..2 {
        assert_eq!(run(scratch.path(), "check --html page.html disk").code, Some(1));
        assert_eq!(run(scratch.path(), "show --svg drawing.svg disk").code, Some(0));
    }
    assert_eq!(run(scratch.path(), "check --html /dev/null disk").code, Some(1));
    let left: Vec<_> =
        fs::read_dir(scratch.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
}

/// Contents that cannot be judged fail with `--strict`; without it the last line says that they
/// passed.
#[test]
fn what_is_unknown_passes_only_with_a_word() {
    let here = scratch();
    zeroes(here.path(), "empty", 8 << 20);
    fs::write(here.path().join("none"), []).expect("a file");
    fs::write(here.path().join("noise"), [0x9d; 1 << 20]).expect("a file");
    for (name, rule, why) in [
        ("empty", "TL0028", "; nothing is on it\n"),
        ("none", "TL0028", "; nothing is on it\n"),
        ("noise", "TL0027", "; contents not recognised\n"),
    ] {
        let ran = run(here.path(), &format!("check {name}"));
        let last =
            "1 target is unknown, and the exit status is 0: --strict, as for CI, makes it 3\n";
        assert!(
            ran.code == Some(0) && ran.stdout.ends_with(&format!("{why}{last}")),
            "{name}: {}",
            ran.stdout
        );
        assert!(ran.stdout.contains(&format!("note {rule} ")), "{name}: {}", ran.stdout);
        let ran = run(here.path(), &format!("check --strict {name}"));
        assert!(
            ran.code == Some(3) && !ran.stdout.contains("exit status"),
            "{name}: {}",
            ran.stdout
        );
        assert_eq!(
            run(here.path(), &format!("check --json {name}")).ended(0).json()["verdict"],
            "unknown"
        );
    }
}

/// A table that was made and never filled, whole or in part: nothing was judged, so nothing passes
/// by accident.
#[test]
fn an_empty_table_passes_only_with_a_word() {
    let here = scratch();
    let done = |command: &str| run(here.path(), command).ended(0).stdout.clone();
    for scheme in ["gpt", "mbr", "bsd"] {
        zeroes(here.path(), scheme, 16 << 20);
        done(&format!("part create -s {scheme} {scheme}"));
        let said = done(&format!("check {scheme}"));
        assert!(
            said.contains(&format!(
                "note TL0028 disk: there is nothing to judge: its {scheme} table has no partition\n"
            )),
            "{said}"
        );
        assert!(
            said.ends_with(
                "1 target is unknown, and the exit status is 0: --strict, as for CI, makes it 3\n"
            ),
            "{said}"
        );
        run(here.path(), &format!("check --strict {scheme}")).ended(3);
        assert_eq!(
            run(here.path(), &format!("check --strict --json {scheme}")).ended(3).json()["verdict"],
            "unknown"
        );
    }
    // Boot code is no data; nor is an extended partition without any.
    done("part add -t freebsd-boot -s 512k gpt");
    done("part add -t ebr -s 4m mbr");
    done("part create -s ebr mbr#s1");
    for target in ["gpt", "gpt#p1", "mbr", "mbr#s1"] {
        run(here.path(), target.split_once('#').map_or("check gpt mbr", |_| "check gpt#p1 mbr#s1"))
            .ended(0);
        run(here.path(), &format!("check --strict {target}")).ended(3);
    }
    // One partition for data is something to judge.
    done("part add -t freebsd-ufs gpt");
    done("part add -t linux-data mbr#s1");
    run(here.path(), "check --strict gpt mbr").ended(0);
}

//! The text of every command in terminals of 40 to 132 columns: nothing ends in a panic, and no line is wider than its terminal
//! where it can be broken.

use crate::terminal::{Shown, show};
use crate::{lay_golden, program, recipe::Scratch, scratch, zeroes};
use std::fs;
use std::process::Stdio;

const WIDTHS: [u16; 5] = [40, 60, 80, 100, 132];

/// Command lines, in a directory of [`disks`]; those that end in `@N` have lines that cannot be broken in terminals of fewer than N
/// columns: a form of other programs (gpart, diskinfo), or commands to be copied.
const COMMANDS: &[&str] = &[
    "check openbsd.img @80",
    "check a.img,a1.img @80",
    "check openbsd.img gpart.img empty.img @80",
    "check --for raid64kx4 gpart.img @80",
    "info openbsd.img @80",
    "info openbsd.img#s4a @80",
    "show openbsd.img",
    "show a.img,a1.img",
    "show --picture openbsd.img",
    "show --picture a.img,a1.img",
    "part show gpart.img @60",
    "part show openbsd.img @80",
    "plan --for ssd-16k --use luks+lvm+ext4 @80",
    "plan --for raid64kx4 --use xfs @80",
    "bench random-write drive:md --count 200 --runs 3",
    "bench random-write drive:wd10ears --count 200 --runs 3",
    "bench tree --files 50 --host openbsd-ffs drive:wd10ears --runs 2",
    "bench latency --layer-ns 100 drive:md drive:md --count 100 --runs 2",
    "demo --short --html demo.html @60",
    "drives",
    "drives wd10ears",
    "lab list",
    "lab run --sweep 2 2009-gstripe",
    "lab run --sweep 0 --row mds1,raidtest-n1,random-write,cp-r,make-obj,dd-ada1 --all",
    "lab run mine.toml --html page.html",
];

/// A lab whose texts have no short words.
const LAB: &str = r#"
name = "mine"
title = "requests of four kibibytes that begin where a sector does not"
source = "a document of which nothing but the name is known, and that is long"
drives = [{ model = "wd10ears" }]

[[row]]
id = "a-row-with-a-rather-long-name"
title = "a row"
unit = "req/s"
published = { aligned = 1234.5, unaligned = 321.25 }
bound = 0.1
workload = { kind = "random-write", bs = 4096, count = 50 }
personalities = ["command"]
aligned = {}
unaligned = { offset = 512 }
note = "some words about it that go on for longer than a line of a terminal has columns, as notes do"
"#;

/// A directory with golden disks.
fn disks() -> Scratch {
    let scratch = scratch();
    for (name, files) in [("seed-000-openbsd", "openbsd"), ("seed-003-default", "a"), ("seed-004-574", "gpart")] {
        for file in lay_golden(name, scratch.path()) {
            let to = format!("{files}{}.img", file.trim_start_matches(|c: char| !c.is_ascii_digit()));
            fs::rename(scratch.path().join(file), scratch.path().join(to)).expect("a file can be renamed");
        }
    }
    zeroes(scratch.path(), "empty.img", 1 << 30);
    fs::write(scratch.path().join("mine.toml"), LAB).expect("a file can be written");
    scratch
}

/// What is wrong with a run.
fn wrong(shown: &Shown, width: u16) -> Option<String> {
    let wide = shown.wider(width);
    // 101 is the status of a panic.
    let bad = shown.code.is_none_or(|code| code > 3) || shown.text().contains("panicked") || !wide.is_empty();
    bad.then(|| format!("status {:?}\n{}", shown.code, wide.join("\n")))
}

#[test]
fn every_text_fits_its_terminal() {
    let disks = disks();
    let mut all = String::new();
    for command in COMMANDS {
        let (command, least) = command.split_once(" @").unwrap_or((command, "0"));
        let least: u16 = least.parse().expect("a number of columns");
        let arguments: Vec<&str> = command.split_whitespace().collect();
        for width in WIDTHS {
            let shown = show(disks.path(), width, &arguments);
            if let Some(wrong) = wrong(&shown, width.max(least)) {
                all += &format!("{width} columns: {command}: {wrong}\n");
            }
        }
    }
    assert!(all.is_empty(), "{all}");
}

/// A reader that goes away, as `head` does, takes no page with it; nor does what goes wrong while tables are printed.
#[test]
fn pages_are_written_before_tables_are_printed() {
    let disks = disks();
    for command in ["lab run mine.toml --html page.html", "demo --short --html page.html", "check gpart.img --html page.html"] {
        let mut program = program(disks.path());
        let mut child = program.args(command.split(' ')).stdout(Stdio::piped()).spawn().expect("the program can be run");
        drop(child.stdout.take());
        child.wait().expect("a child can be waited for");
        fs::remove_file(disks.path().join("page.html")).unwrap_or_else(|e| panic!("{command}: no page: {e}"));
    }
}

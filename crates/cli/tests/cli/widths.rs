//! The text of every command in terminals of 40 to 132 columns: nothing ends in a panic, and no
//! line is wider than its terminal where it can be broken.

use crate::terminal::{Shown, show};
use crate::{lay_golden, program, recipe::Scratch, scratch, zeroes};
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;

const WIDTHS: [u16; 5] = [40, 60, 80, 100, 132];

/// Command lines, in a directory of [`disks`]. Those that end in `@N` have lines that are not
/// broken in terminals of fewer than N columns: forms of other programs (gpart, diskinfo, newfs),
/// and drawings, whose parts stand above each other. Those that end in `$` print commands to be
/// copied, which are never broken, and other programs' scripts, whose lines are theirs.
const COMMANDS: &[&str] = &[
    "check openbsd.img @80",
    "check a.img,a1.img @80",
    "check a.img a1.img @80",
    "check openbsd.img gpart.img empty.img @80",
    "check --for raid64kx4 gpart.img @80",
    "check -o +GRAIN,COST,RULES openbsd.img",
    "show --output-all a.img,a1.img",
    "info openbsd.img @80",
    "info openbsd.img#s4a @80",
    "show openbsd.img",
    "show a.img,a1.img",
    "show --picture openbsd.img",
    "show --picture a.img,a1.img",
    "part show gpart.img @60",
    "part show openbsd.img @80",
    "plan --list",
    "plan --for ssd-16k --use luks+lvm+ext4 $",
    "plan --for raid64kx4 --use xfs $",
    "plan --for 512e --use md5x4:64k+luks+lvm+xfs $",
    "plan --for ssd-16k --use raidz2x6+postgres $",
    "plan --use sd-card --size 64g $",
    "plan gpart.img --use ufs $",
    "plan --use raid5x4",
    "plan --for ssd-17k --use xfs",
    "explain",
    "explain ssd-16k $",
    "explain straddle",
    "explain nothing-of-the-kind",
    "help targets",
    "help grain @80",
    "help profiles $",
    "help TL0001",
    "complet",
    "stripe label",
    "check nothing-of-the-kind.img",
    "check half.img @80",
    "check empty.img",
    "move --resume half.img",
    "move --rollback twice.img",
    "convert --resume half.img",
    "convert --resume empty.img",
    "move --align --dry-run lilo.img",
    "mkfs ext4 --print gpart.img#s1 $",
    "mkfs ufs gpart.img#s1",
    "mkfs xfs gpart.img#s1",
    "part backup gpart.img",
    "part backup --sfdisk gpart.img $",
    "part show --picture gpart.img @60",
    "part create -s gpt gpart.img",
    "part add -t nonsense gpart.img",
    "stripe dump a.img",
    "lab run nothing-of-the-kind",
    "bench random-write drive:md --count 200 --runs 3",
    "bench random-write drive:wd10ears --count 200 --runs 3",
    "bench random-write drive:wd10ears --count 50 --runs 5 --offset 0,1,2,8",
    "bench tree --files 50 --host openbsd-ffs drive:wd10ears --runs 2",
    "bench latency --layer-ns 100 drive:md drive:md --count 100 --runs 2",
    "bench random-write --through page-cache --through loop drive:wd10ears --count 50 --runs 2",
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
layers = [{ kind = "page-cache" }]
aligned = {}
unaligned = { offset = 512 }
note = "some words about it that go on for longer than a line of a terminal has columns, as notes do"
"#;

/// A directory with golden disks.
fn disks() -> Scratch {
    let scratch = scratch();
    for (name, files) in
        [("seed-000-openbsd", "openbsd"), ("seed-003-default", "a"), ("seed-004-574", "gpart")]
    {
        for file in lay_golden(name, scratch.path()) {
            let to =
                format!("{files}{}.img", file.trim_start_matches(|c: char| !c.is_ascii_digit()));
            fs::rename(scratch.path().join(file), scratch.path().join(to))
                .expect("a file can be renamed");
        }
    }
    zeroes(scratch.path(), "empty.img", 1 << 30);
    let half = lay_golden("moving-half", scratch.path());
    fs::rename(scratch.path().join(&half[0]), scratch.path().join("half.img")).expect("a file");
    fs::copy(scratch.path().join("half.img"), scratch.path().join("twice.img")).expect("a copy");
    fs::write(scratch.path().join("twice.img.journal"), b"TLMOVE\0\x04").expect("a file");
    let lilo = lay_golden("seed-004-574", scratch.path());
    fs::rename(scratch.path().join(&lilo[0]), scratch.path().join("lilo.img")).expect("a file");
    let lilo = fs::File::options().write(true).open(scratch.path().join("lilo.img"));
    lilo.and_then(|file| file.write_all_at(b"LILO", 6)).expect("a boot sector");
    fs::write(scratch.path().join("mine.toml"), LAB).expect("a file can be written");
    scratch
}

/// Commands that change a disk, each after those above it, in a directory of their own; marked as
/// [`COMMANDS`].
const EDITS: &[&str] = &[
    "part create -s gpt new.img",
    "part add -t linux-data -b 63 -s 65536 new.img",
    "part add -t linux-data -b 131072 -s 131072 -l label new.img --dry-run",
    "part add -t linux-data -b 131072 -s 131072 -l label new.img",
    "part add -t linux-data -b 63 new.img",
    "part modify -i 1 -t nonsense new.img",
    "part modify -i 1 -t freebsd-ufs --save saved new.img",
    "part undo saved new.img",
    "part resize -i 2 -s 65536 new.img",
    "part set -a required -i 1 new.img",
    "part delete -i 1 --dry-run new.img",
    "move new.img#p1 --align --dry-run",
    "move --align --dry-run new.img",
    "move new.img#p1 --align",
    "move new.img#p1 --align",
    "move new.img#p2 --to 4097 --dry-run",
    "mkfs ufs new.img#p1 @80",
    "mkfs ufs new.img#p1",
    "mkfs ufs --overwrite --dry-run new.img#p1",
    "part destroy new.img",
    "part apply --dry-run layout.toml other.img",
    "part apply layout.toml other.img",
    "part apply layout.toml other.img",
    "stripe label -v data one.img two.img @80",
    "stripe dump one.img",
    "stripe clear -v one.img two.img",
    "serve --read-only new.img --run true",
    "serve --emulate drive:wd10ears --run true",
    "serve --overlay mem new.img --run true",
    "serve --run ./writes --fuse point new.img",
];

/// A layout of two tables, one in the other.
const LAYOUT: &str = "scheme = \"mbr\"\n[[partition]]\ntype = \"freebsd\"\nsize = \"64MiB\"\n\
    [partition.table]\nscheme = \"bsd\"\n[[partition.table.partition]]\ntype = \"freebsd-ufs\"\n\
    size = \"16MiB\"\n";

/// A directory with what [`EDITS`] name: empty disks, a layout, a place to mount on, and a client
/// that writes off the grain.
fn blanks() -> Scratch {
    let scratch = scratch();
    for name in ["new.img", "other.img", "one.img", "two.img"] {
        zeroes(scratch.path(), name, 256 << 20);
    }
    fs::write(scratch.path().join("layout.toml"), LAYOUT).expect("a file can be written");
    fs::write(scratch.path().join("point"), "").expect("a file can be written");
    let client = "#!/bin/sh\nexec dd if=/dev/zero of=\"$file\" bs=4096 seek=40960 count=9 \
        conv=notrunc status=none\n";
    fs::write(scratch.path().join("writes"), client).expect("a file can be written");
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(scratch.path().join("writes"), all).expect("a file can be made a program");
    scratch
}

/// The command line of an entry of a list, the columns from which on its lines fit, and whether it
/// prints what is copied.
fn entry(entry: &str) -> (Vec<&str>, u16, bool) {
    let (command, copied) =
        entry.strip_suffix(" $").map_or((entry, false), |command| (command, true));
    let (command, least) = command.split_once(" @").unwrap_or((command, "0"));
    (command.split_whitespace().collect(), least.parse().expect("a number of columns"), copied)
}

/// Programs whose command lines are copied from the screen, and the lines of sfdisk's script.
const COPIED: [&str; 17] = [
    "trueline",
    "mkfs.",
    "newfs",
    "gpart",
    "mdadm",
    "cryptsetup",
    "pvcreate",
    "lvcreate",
    "vgcreate",
    "zpool",
    "zfs",
    "printf",
    "install",
    "su ",
    "mdconfig",
    "label-id:",
    "gpart.img",
];

/// Lines wider than they may be. A line of a single word, as a path or a URI, cannot be broken.
fn wider(shown: &Shown, width: u16, copied: bool) -> Vec<&str> {
    let mut wide = shown.wider(width);
    wide.retain(|line| line.trim_start().contains(' '));
    wide.retain(|line| {
        !(copied && COPIED.iter().any(|program| line.trim_start().starts_with(program)))
    });
    wide
}

/// The fault of a run, if it has one.
fn wrong(shown: &Shown, width: u16, copied: bool) -> Option<String> {
    let wide = wider(shown, width, copied);
    // 101 is the status of a panic.
    let bad = shown.code.is_none_or(|code| code > 3)
        || shown.text().contains("panicked")
        || !wide.is_empty();
    bad.then(|| format!("status {:?}\n{}", shown.code, wide.join("\n")))
}

#[test]
fn every_text_fits_its_terminal() {
    let disks = disks();
    let mut all = String::new();
    for command in COMMANDS {
        let (arguments, least, copied) = entry(command);
        for width in WIDTHS {
            let shown = show(disks.path(), width, &arguments);
            if let Some(wrong) = wrong(&shown, width.max(least), copied) {
                all += &format!("{width} columns: {command}: {wrong}\n");
            }
        }
    }
    assert!(all.is_empty(), "{all}");
}

#[test]
fn every_text_of_a_change_fits_its_terminal() {
    let mut all = String::new();
    for width in WIDTHS {
        let blanks = blanks();
        for command in EDITS {
            let (arguments, least, copied) = entry(command);
            let shown = show(blanks.path(), width, &arguments);
            if let Some(wrong) = wrong(&shown, width.max(least), copied) {
                all += &format!("{width} columns: {command}: {wrong}\n");
            }
        }
    }
    assert!(all.is_empty(), "{all}");
}

/// The words of every command and verb, from the lists under `--help`.
fn commands(directory: &Path, path: &[String]) -> Vec<Vec<String>> {
    let help = program(directory)
        .args(path)
        .arg("--help")
        .output()
        .expect("the program can be run")
        .stdout;
    let help = String::from_utf8(help).expect("the output is UTF-8");
    let listed =
        help.split("\n\n").find_map(|block| block.strip_prefix("Commands:\n")).unwrap_or_default();
    let names = listed
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let inner = names.flat_map(|name| commands(directory, &[path, &[name.to_owned()]].concat()));
    [path.to_vec()].into_iter().chain(inner).collect()
}

#[test]
fn every_help_fits_its_terminal() {
    let scratch = scratch();
    let all = commands(scratch.path(), &[]);
    assert!(all.len() > 40, "{all:?}");
    let mut bad = String::new();
    for path in &all {
        for width in WIDTHS {
            let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
            let shown = show(scratch.path(), width, &arguments);
            if let Some(wrong) =
                wrong(&shown, width, false).filter(|_| !path.is_empty() || shown.code == Some(0))
            {
                bad += &format!("{width} columns: {path:?}: {wrong}\n");
            }
        }
    }
    assert!(bad.is_empty(), "{bad}");
}

#[test]
fn an_example_of_help_can_be_copied_at_every_width() {
    let scratch = scratch();
    let examples = [
        ("--help", "trueline part add -t linux-data disk.img"),
        ("bench --help", "trueline bench latency md:1m=disk.img 'md:1m=disk.img#s1'"),
        (
            "serve --help",
            "trueline serve --fault 'write:torn,every=1000' --fault 'read:error=eio,probability=1%' disk.img --nbd unix:s",
        ),
        ("serve --help", "trueline serve disk.img --fuse mnt --run 'mkfs.ext4 \"$file\"'"),
        ("part apply --help", "sfdisk -d /dev/sda | trueline part apply --sfdisk - disk.img"),
    ];
    for width in WIDTHS {
        for (command, example) in examples {
            let arguments: Vec<&str> = command.split(' ').collect();
            // As a shell reads it: a backslash at the end of a line makes one line of two.
            let lines = show(scratch.path(), width, &arguments).text().replace("\\\n", "");
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let found = lines.lines().map(words).any(|line| line.starts_with(example));
            assert!(found, "{width} columns: {example} is broken\n{lines}");
        }
    }
}

/// A pipe gets one line, however long; a terminal one that fits, whatever it says.
#[test]
fn an_error_is_one_line_in_a_pipe() {
    let scratch = scratch();
    let line = program(scratch.path())
        .args(["explain", &"long-".repeat(30)])
        .output()
        .expect("the program can be run")
        .stderr;
    assert_eq!(String::from_utf8(line).expect("the output is UTF-8").lines().count(), 1);
    let shown = show(
        scratch.path(),
        60,
        &[
            "help", "neither", "one", "nor", "the", "other", "but", "a", "long", "line", "of",
            "words",
        ],
    );
    assert!(
        shown.lines.len() > 2 && shown.lines[1..].iter().all(|line| line.starts_with("  ")),
        "{:?}",
        shown.lines
    );
}

/// A reader that goes away, as `head` does, takes no page with it; nor does what goes wrong while
/// tables are printed.
#[test]
fn pages_are_written_before_tables_are_printed() {
    let disks = disks();
    for command in [
        "lab run mine.toml --html page.html",
        "demo --short --html page.html",
        "check gpart.img --html page.html",
    ] {
        let mut program = program(disks.path());
        let mut child = program
            .args(command.split(' '))
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        drop(child.stdout.take());
        child.wait().expect("a child can be waited for");
        fs::remove_file(disks.path().join("page.html"))
            .unwrap_or_else(|e| panic!("{command}: no page: {e}"));
    }
}

/// A bar says how far many targets are, with a rate once there is one, and not at all under `-q`.
#[test]
fn a_bar_of_many_targets_has_a_rate_in_time() {
    let scratch = scratch();
    let names: Vec<String> = (0..49).map(|nth| format!("{nth}.img")).collect();
    names.iter().for_each(|name| zeroes(scratch.path(), name, 64 << 20));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let check = |options: &[&'static str]| {
        show(scratch.path(), 80, &[&["check"], options, &names[..]].concat()).text()
    };
    let text = check(&[]);
    assert!(text.contains("/49") && !text.contains("/s"), "{text}");
    assert_eq!(check(&["-q"]), "");
    let lab = show(disks().path(), 80, &["lab", "run", "mine.toml"]).text();
    assert!(!lab.contains(" 0/0"), "a bar of nothing is a full one\n{lab}");
}

//! Lists of `-o` and its like: columns, forms, and lsblk beside them.

use crate::skip::skip;
use crate::terminal::show;
use crate::{golden, lay_golden, program, run, run_with, scratch};
use std::fs;
use std::process::Command;

/// The words of a line of a list.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

#[test]
fn columns_are_chosen_added_or_all() {
    let scratch = golden("seed-001-sdd-63");
    let list = |options: &str| {
        let ran = run(scratch.path(), &format!("check {options} disk"));
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""), "{options}");
        ran.stdout
    };
    let heading = |options: &str| words(list(options).lines().next().unwrap_or_default()).join(" ");
    let usual = "NAME CONTENT START SIZE ALIGN VERDICT LABEL";
    assert_eq!(heading("-b"), usual);
    assert_eq!(heading("-o +GRAIN,rules"), format!("{usual} GRAIN RULES"));
    assert_eq!(heading("-o TYPE -o FSTYPE"), "TYPE FSTYPE");
    // The first one says it of all, and none is there twice.
    assert_eq!(heading("-o TYPE,+FSTYPE,type"), "TYPE FSTYPE");
    assert_eq!(heading("-o +NAME,RULES"), format!("{usual} RULES"));
    let all = heading("--output-all");
    assert_eq!(all, heading("-O"));
    let offered = run(scratch.path(), "complete check -o x").stdout.clone();
    assert_eq!(offered, "", "no column begins so");
    let offered = run_with(scratch.path(), &["complete", "check", "-o", ""]).stdout.clone();
    let names: Vec<&str> = offered.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(all, names.join(" "), "all columns, in the order of the table");
    let help = run(scratch.path(), "show --help").stdout.clone();
    assert!(names.iter().all(|name| help.contains(&format!("\n  {name} "))), "{help}");
    let columns = "-n -o NAME,PKNAME,TYPE,FSTYPE,PARTTYPENAME,START,PHY-SEC,ALIGNMENT,GRAIN,RULES";
    let text = list(columns);
    let lines: Vec<Vec<&str>> = text.lines().map(words).collect();
    assert_eq!(lines[0][..4], ["disk", "-", "disk", "-"]);
    let wanted =
        ["disk#s1", "disk", "part", "ext2", "linux-data", "32256", "4096", "512", "4K+512"];
    assert_eq!(lines[1], [&wanted[..], &["TL0001"]].concat());
    let whole = run(scratch.path(), "show -nb -o GRAIN,SIZE --physical 4096+3584 disk");
    assert!(whole.ended(0).stdout.contains("4096+3584 "), "{}", whole.stdout);
    run(scratch.path(), "check -o NAME,NONSENSE disk").refused();
    run(scratch.path(), "check -O -o NAME disk").refused();
    run(scratch.path(), "check -q -P disk").refused();
    // None is passed over in silence.
    for list in ["-O", "-P", "-b", "-n", "-o NAME"] {
        for form in ["--json", "--jsonl", "--rows", "--sarif", "--gitlab", "--prometheus"] {
            run(scratch.path(), &format!("check {form} {list} disk")).refused();
        }
        for form in ["--json", "--picture", "--svg=new.svg"] {
            run(scratch.path(), &format!("show {form} {list} disk")).refused();
        }
    }
    assert!(!scratch.path().join("new.svg").exists());
}

#[test]
fn types_are_those_of_lsblk() {
    let scratch = scratch();
    let types = |names: &str, golden: &str| {
        lay_golden(golden, scratch.path());
        let ran = run(scratch.path(), &format!("show -n -o TYPE {names}"));
        let mut all: Vec<String> = ran.ended(0).stdout.lines().map(str::to_owned).collect();
        all.dedup();
        all
    };
    assert_eq!(types("disk", "qcow2-63"), ["disk", "part"]);
    // Two of its providers have one name.
    assert_eq!(types("disk", "image-ova"), ["disk", "part"]);
    assert_eq!(types("disk,disk1,disk2,disk3", "md-raid5-degraded"), ["disk", "raid5", "data"]);
    assert_eq!(types("disk", "fat-fat32"), ["disk", "data"]);
}

#[test]
fn names_lead_from_each_provider_to_the_one_beneath() {
    let scratch = scratch();
    let list = |golden: &str, names: &str, columns: &str| -> Vec<Vec<String>> {
        lay_golden(golden, scratch.path());
        let ran = run(scratch.path(), &format!("show -n -o {columns} {names}"));
        let lines = ran.ended(0).stdout.lines();
        lines.map(|line| words(line).into_iter().map(str::to_owned).collect()).collect()
    };
    // A container in a container has its name.
    let wanted = [
        ["disk", "-"],
        ["disk#.disk", "disk"],
        ["disk#.disk", "disk"],
        ["disk#s1", "disk#.disk"],
        ["disk#s2", "disk#.disk"],
    ];
    assert_eq!(list("image-ova", "disk", "NAME,PKNAME"), wanted);
    // A set stands on its member if it has one.
    let volumes = list("lvm-thin", "disk", "NAME,PKNAME");
    let thin = ["disk#pve/vm-100-disk-0", "disk#pve/data"].map(str::to_owned).to_vec();
    assert!(volumes.contains(&thin), "{volumes:?}");
    let sets = list("stripe-16k", "disk,disk1", "PKNAME,TYPE");
    assert!(sets.contains(&vec!["-".to_owned(), "stripe".to_owned()]), "{sets:?}");
    // A place in a guest has its alignment there.
    let guest = list("qcow2-63", "disk", "START,ALIGN");
    assert!(guest.contains(&vec!["32256".to_owned(), "512".to_owned()]), "{guest:?}");

    // A `#` may be part of a name, also before one that is a provider's.
    lay_golden("seed-001-sdd-63", scratch.path());
    for name in ["a#b.img", "a#s1"] {
        fs::rename(scratch.path().join("disk"), scratch.path().join(name)).expect("a disk");
        let names = |target: &str| {
            let ran = run(scratch.path(), &format!("show -n -o NAME {target}"));
            ran.ended(0).stdout.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(name), [name.to_owned(), format!("{name}#s1")]);
        assert_eq!(names(&format!("{name}#s1")), [format!("{name}#s1")]);
        fs::rename(scratch.path().join(name), scratch.path().join("disk")).expect("a disk");
    }
}

#[test]
fn a_shell_can_evaluate_what_is_exported() {
    let scratch = golden("seed-001-sdd-63");
    let name = "a $(touch x) \"b\" `touch y`.img";
    fs::rename(scratch.path().join("disk"), scratch.path().join(name)).unwrap();
    let export = ["show", "--pairs", "-o", "NAME,LOG-SEC,START,LABEL", name];
    let ran = run_with(scratch.path(), &export);
    let last = ran.ended(0).stdout.lines().last().expect("a line").to_owned();
    let script = format!("{last}\nprintf '%b|' \"$NAME\" \"$LOG_SEC\" \"$START\" \"$LABEL\"");
    let shell = Command::new("bash").args(["-c", &script]).current_dir(scratch.path()).output();
    // The printf of other shells need not know `\x`.
    let Ok(shell) = shell else {
        skip("no bash");
        return;
    };
    let shown = String::from_utf8(shell.stdout).expect("text");
    assert_eq!(shown, format!("{name}#s1|512|32256||"));
    assert!(!scratch.path().join("x").exists() && !scratch.path().join("y").exists());
}

#[test]
fn keys_are_those_that_lsblk_exports() {
    let columns = "NAME,FSTYPE,PARTTYPENAME,ALIGNMENT,MIN-IO,OPT-IO,PHY-SEC,LOG-SEC,DISC-GRAN";
    let lsblk = Command::new("lsblk").args(["-P", "-y", "-o", columns]).output();
    let text = lsblk.ok().map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned());
    let Some(line) = text.as_deref().and_then(|text| text.lines().next()) else {
        skip("an lsblk with -y, and a device");
        return;
    };
    let keys = |line: &str| -> Vec<String> {
        let pairs = line.split("\" ").filter_map(|pair| pair.split_once("=\""));
        pairs.map(|(key, _)| key.to_owned()).collect()
    };
    let scratch = golden("gpt-sfdisk");
    let ran = run(scratch.path(), &format!("check -P -o {columns} disk"));
    assert_eq!(keys(ran.ended(0).stdout.lines().next().unwrap_or_default()), keys(line));
}

#[test]
fn a_list_fits_its_terminal_and_is_whole_without_a_heading() {
    let scratch = golden("gpt-sfdisk");
    for width in [40, 41, 80, 132] {
        let shown = show(scratch.path(), width, &["check", "-O", "disk"]);
        let wide = shown.wider(width);
        assert!(wide.is_empty(), "{width}: {}", shown.text());
        let bare = show(scratch.path(), width, &["check", "-n", "-O", "disk"]);
        assert_eq!(bare.text().lines().count(), 4, "{}", bare.text());
    }
    let piped = program(scratch.path()).args(["check", "-O", "disk"]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&piped.stdout).lines().count(), 5);
}

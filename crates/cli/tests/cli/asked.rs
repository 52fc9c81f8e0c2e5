//! Habits of lsblk, sfdisk and a shell that the command line meets: topics, lists, trees of images,
//! names of types.

use crate::{Ran, golden, list, program, run, run_with, scratch};
use std::fs;
use std::path::Path;

#[test]
fn topics_profiles_and_words_are_explained() {
    let scratch = scratch();
    for (topic, word) in
        [("targets", "disk.img#s1a"), ("grain", "full-stripe"), ("profiles", "ssd-16k")]
    {
        let page = run(scratch.path(), &format!("help {topic}")).ended(0).stdout.clone();
        assert!(page.starts_with("# ") && page.contains(word), "{page}");
    }
    assert!(run(scratch.path(), "help part add").ended(0).stdout.contains("trueline part add"));
    assert!(run(scratch.path(), "help nonsense").refused().contains("targets, grain, profiles"));
    for word in ["grain", "stripe", "straddle", "full-stripe", "sd-4m", "raid64kx4"] {
        assert!(
            run(scratch.path(), &format!("explain {word}")).ended(0).stdout.starts_with("# "),
            "{word}"
        );
    }
    let list = run(scratch.path(), "explain").ended(0).stdout.clone();
    assert!(list.contains("\nProfiles: 512n, ") && list.contains("\nWords: align, "), "{list}");
}

#[test]
fn lists_are_what_scripts_read() {
    let here = golden("seed-001-sdd-63");
    let ran = run(here.path(), "check -n -b -o name,align,verdict disk");
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), "disk       -  -\ndisk#s1  512  misaligned\n")
    );
    let shown = run(here.path(), "show -n -b -o NAME,START,SIZE disk").ended(0).stdout.clone();
    assert!(
        shown.lines().nth(1).is_some_and(|line| line.starts_with("disk#s1  32256  15002")),
        "{shown}"
    );
    assert!(run(here.path(), "check -b disk").stdout.starts_with("NAME "));
    assert_eq!(run(here.path(), "check -J disk").json()["format"], "trueline/check/1");
    assert_eq!(run(here.path(), "show -J disk").json()["format"], "trueline/show/1");
    assert_eq!(run(here.path(), "check -q disk").ended(1).stdout, "");
    assert!(
        run(here.path(), "check -o nonsense disk").refused().contains("there are NAME, TARGET")
    );
    // The names are taken as they are printed.
    assert_eq!(run(here.path(), "check -n -o NAME disk#s1").stdout, "disk#s1\n");
}

#[test]
fn a_tree_of_images_is_checked() {
    let here = golden("seed-001-sdd-63");
    fs::create_dir_all(here.path().join("tree/a/b")).expect("directories");
    fs::create_dir_all(here.path().join("tree/.git")).expect("directories");
    let disk = here.path().join("disk");
    for name in ["tree/one", "tree/a/b/two.img", "tree/.git/three.img"] {
        let made = std::process::Command::new("cp")
            .args(["--sparse=always".as_ref(), disk.as_os_str()])
            .arg(here.path().join(name))
            .status();
        assert!(made.expect("cp").success());
    }
    fs::write(here.path().join("tree/a/read.me"), "words ".repeat(500)).expect("a file");
    std::os::unix::fs::symlink("..", here.path().join("tree/a/loop")).expect("a link");
    let ran = run(here.path(), "check --json --recursive tree");
    let report = ran.json();
    let names: Vec<&str> =
        list(&report, "targets").iter().map(|t| t["target"].as_str().expect("a name")).collect();
    assert_eq!((names, ran.code), (vec!["tree/a/b/two.img", "tree/one"], Some(1)));
    let note = "note: tree: 1 file that holds nothing known was passed over: tree/a/read.me\n";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    // A build that was cut short to nothing does not pass.
    fs::create_dir(here.path().join("cut")).expect("a directory");
    fs::write(here.path().join("cut/short.img"), "").expect("a file");
    let cut = run(here.path(), "check --strict -r cut");
    assert!(cut.code == Some(3) && cut.stdout.contains("cut/short.img"), "{}", cut.stdout);
    fs::create_dir(here.path().join("empty")).expect("a directory");
    assert!(run(here.path(), "check -r empty").refused().contains("no image in it or beneath it"));
    assert!(run(here.path(), "check -r nonsense").refused().contains("read nonsense: "));
}

#[test]
fn a_compressed_image_of_a_tree_is_not_looked_into_and_so_unknown() {
    let here = scratch();
    fs::create_dir(here.path().join("tree")).expect("a directory");
    let write = |name: &str, magic: &[u8]| {
        fs::write(here.path().join("tree").join(name), [magic, &[0x5a; 4096]].concat())
            .expect("a file");
    };
    for name in ["a", "b", "c", "d", "e"] {
        write(name, b"words");
    }
    write("report.docx", b"PK\x03\x04");
    let ran = run(here.path(), "check -r tree");
    let note = "note: tree: 6 files that hold nothing known were passed over: tree/a, tree/b, \
        tree/c and 3 more\n";
    assert!(ran.code == Some(2) && ran.stderr.contains(note), "{}", ran.stderr);
    let kinds: [(&str, &str, &[u8]); 5] = [
        ("one.gz", "gzip", b"\x1f\x8b\x08\0"),
        ("two.img.xz", "xz", b"\xfd7zXZ\0"),
        ("three.zst", "zstd", b"\x28\xb5\x2f\xfd"),
        ("four.bz2", "bzip2", b"BZh91AY&SY"),
        ("five.zip", "zip", b"PK\x03\x04"),
    ];
    for (name, kind, magic) in kinds {
        write(name, magic);
        let ran = run(here.path(), "check -r tree --strict");
        assert_eq!(ran.code, Some(3), "{name}: {}", ran.stderr);
        let said = ran.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            said.contains(name)
                && said.contains(kind)
                && (said.contains("compressed") || said.contains("neither empty nor recognised")),
            "{name}: {}",
            ran.stdout
        );
        fs::remove_file(here.path().join("tree").join(name)).expect("a file");
    }
    // An archive is no image; a disk with a compressed file in a partition is.
    write("source.tar.gz", b"\x1f\x8b\x08\0");
    let ran = run(here.path(), "check -r tree --strict");
    assert!(ran.code == Some(2) && ran.stderr.contains("7 files"), "{}", ran.stderr);
    let mut disk = vec![0; 8 << 20];
    for (nth, start) in [63u32, 8192].iter().enumerate() {
        disk[446 + 16 * nth + 4] = 0x83;
        disk[454 + 16 * nth..][..4].copy_from_slice(&start.to_le_bytes());
        disk[458 + 16 * nth..][..4].copy_from_slice(&4096u32.to_le_bytes());
    }
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    disk[8192 * 512..][..4].copy_from_slice(b"PK\x03\x04");
    fs::write(here.path().join("tree/usbstick"), disk).expect("a file");
    assert!(run(here.path(), "check -r tree").stdout.contains("usbstick"));
}

#[test]
fn types_are_taken_as_people_type_them() {
    let here = scratch();
    let kinds = |disk: &str| {
        let table = run(here.path(), &format!("part show --json {disk}")).json();
        list(&table["tables"][0], "entries")
            .iter()
            .map(|e| e["raw_type"].as_str().expect("a type").to_owned())
            .collect::<Vec<_>>()
    };
    for (scheme, wanted) in [
        ("dos", ["131", "11", "7", "130"]),
        (
            "gpt",
            [
                "0fc63daf-8483-4772-8e79-3d69d8477de4",
                "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7",
                "ebd0a0a2-b9e5-4433-87c0-68b6b72699c7",
                "0657fd6d-a4ab-43c4-84e5-0933c84b4f4f",
            ],
        ),
    ] {
        let disk = format!("{scheme}.img");
        fs::File::create(here.path().join(&disk))
            .and_then(|f| f.set_len(64 << 20))
            .expect("an image");
        assert_eq!(
            run(here.path(), &format!("part create -s {scheme} {disk}")).ended(0).stdout,
            format!("{disk} created\n")
        );
        for (nth, kind) in ["ext4", "fat32", "ntfs", "swap"].iter().enumerate() {
            let ran = run(here.path(), &format!("part add -t {kind} -s 8m {disk}"));
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let letter = if scheme == "dos" { 's' } else { 'p' };
            assert!(
                ran.stdout.starts_with(&format!("{disk}#{letter}{} added: 8 MiB at ", nth + 1)),
                "{}",
                ran.stdout
            );
            assert_eq!(
                ran.stderr.contains("note: -t ext4: its "),
                *kind == "ext4",
                "{}",
                ran.stderr
            );
        }
        assert_eq!(kinds(&disk), wanted);
        // GEOM's names where GEOM's words are asked for, and in documents as before.
        let deleted = run(here.path(), &format!("part delete --gpart-rules -i 4 {disk}"))
            .ended(0)
            .stdout
            .clone();
        assert_eq!(
            deleted,
            format!("{scheme}{}4 deleted\n", if scheme == "dos" { 's' } else { 'p' })
        );
        let table = run(here.path(), &format!("part show --json {disk}")).json();
        assert_eq!(table["tables"][0]["provider"], scheme);
    }
}

/// A shell that is here is run as a user has it: it reads the script, and is asked what it would
/// offer.
fn shell_offers(shell: &str, script: &str, line: &str) -> Option<String> {
    let here = golden("seed-001-sdd-63");
    if std::process::Command::new(shell).arg("--version").output().is_err() {
        println!("skipped: no {shell} here");
        return None;
    }
    let completion = run_with(here.path(), &["completions", shell]).ended(0).stdout.clone();
    fs::write(here.path().join("completion"), completion).expect("a file");
    let program = Path::new(env!("CARGO_BIN_EXE_trueline"))
        .parent()
        .expect("a directory")
        .display()
        .to_string();
    let path = format!("{program}:{}", std::env::var("PATH").unwrap_or_default());
    let ran = std::process::Command::new(shell)
        .args(if shell == "zsh" { vec!["-f", "-c", script] } else { vec!["-c", script] })
        .current_dir(here.path())
        .env("PATH", path)
        .env("LINE", line)
        .env("HOME", here.path())
        .output()
        .expect("a shell can be run");
    Some(String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr))
}

/// Lines to complete, and a word that has to be offered.
const OFFERS: [(&str, &str); 14] = [
    ("trueline che", "check"),
    ("trueline explain TL000", "TL0003"),
    ("trueline check --for ssd-1", "ssd-16k"),
    ("trueline plan --use luks+x", "luks+xfs"),
    ("trueline part create -s m", "mbr"),
    ("trueline lab run 2009", "2009-gstripe"),
    ("trueline bench rai", "raidtest"),
    ("trueline drives ql", "qlc-16k"),
    ("trueline check disk#", "disk#s1"),
    ("trueline part add -t ext", "ext4"),
    ("trueline bench dd --through qc", "qcow2"),
    ("trueline bench dd --through partition:st", "partition:start="),
    ("trueline check --set cache_by", "cache_bytes="),
    ("trueline serve --emulate --drive wd10ea", "wd10ears"),
];

/// What a completion reads is a file or a device, and what it cannot read it says nothing of.
#[test]
fn a_completion_waits_for_nothing_and_never_complains() {
    let here = golden("seed-001-sdd-63");
    let path = here.path();
    let mkfifo = std::process::Command::new("mkfifo").arg(path.join("pipe")).status();
    assert!(mkfifo.expect("mkfifo").success());
    fs::write(path.join("empty"), "").expect("a file");
    fs::write(path.join("noise"), b"\xff\x00".repeat(4096)).expect("a file");
    fs::hard_link(path.join("disk"), path.join("a b.img")).expect("another name");
    let asked = |words: &[&str]| {
        let words: Vec<&str> =
            ["complete", "--"].into_iter().chain(words.iter().copied()).collect();
        let mut command = program(path);
        // What is wrong in the settings and in the environment is not its business.
        command.env("TRUELINE_FOR", "nonsense").env("TRUELINE_CONFIG", "pipe").args(words);
        let ran = Ran::of(&command.output().expect("the program can be run"));
        ran.ended(0).stdout.clone()
    };
    for target in [
        "pipe",
        "pipe#",
        "disk,pipe#",
        "md:8g=pipe#",
        "drive:wd10ears=pipe#",
        "empty#",
        "noise#",
        "nowhere#",
        "#",
        ",",
        ",#",
        "nbd://127.0.0.1:1/#",
        "http://127.0.0.1:1/#",
        ".#",
    ] {
        let offered = asked(&["check", target]);
        let offered: Vec<&str> = offered.lines().filter(|line| line.contains("#s")).collect();
        assert_eq!(offered, [""; 0], "{target}");
    }
    assert!(
        asked(&["check", "disk#s"]).starts_with("disk#s1\t"),
        "{}",
        asked(&["check", "disk#s"])
    );
    assert!(asked(&["check", "a b.img#"]).contains("a b.img#s1"));
    assert_eq!(asked(&["check", "disk,no"]), "disk,noise\n");
    // A profile that is typed decides on what is found.
    assert!(!asked(&["check", "--for", "4kn", "disk#"]).contains("ext2"));
    assert!(!asked(&["check", "--for=4kn", "disk#"]).contains("ext2"));
    assert!(asked(&["check", "--format", "raw", "disk#"]).contains("disk#s1\text2"));
    for words in [
        &["--for"][..],
        &[""],
        &["--", "-"],
        &["\u{1}\n"],
        &["check", "--key-file", "pipe", "disk#"],
    ] {
        let _ = asked(words);
    }
}

#[test]
fn bash_offers_what_the_program_knows() {
    let script = r#"source ./completion; COMP_LINE=$LINE; COMP_POINT=${#LINE}; read -ra COMP_WORDS <<< "$LINE"
        [[ $LINE == *" " ]] && COMP_WORDS+=(""); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); _trueline; printf '%s\n' "${COMPREPLY[@]}""#;
    for (line, wanted) in OFFERS {
        let Some(offered) = shell_offers("bash", script, line) else { return };
        assert!(offered.lines().any(|found| found == wanted), "{line}: {offered}");
    }
    // Readline has taken the word apart at the colon, and replaces what is behind it.
    let parts = r#"source ./completion; COMP_LINE=$LINE; COMP_POINT=${#LINE}; COMP_WORDS=(trueline check drive : wd); COMP_CWORD=4
        _trueline; printf '%s\n' "${COMPREPLY[@]}""#;
    let offered = shell_offers("bash", parts, "trueline check drive:wd").expect("it was here");
    assert!(offered.lines().any(|found| found == "wd10ears"), "{offered}");
    // What a disk says of itself is text, not a part of the command line.
    let names = r#"source ./completion; PATH=.:$PATH
        printf '#!/bin/sh\necho "a.img#stripe/\$(touch hit)"\necho "a.img#b c"\n' > trueline
        chmod +x trueline
        for typed in 'a.img#' "'a.img#"; do
            COMP_LINE="trueline check $typed"; COMP_POINT=${#COMP_LINE}
            COMP_WORDS=(trueline check "$typed"); COMP_CWORD=2
            _trueline; printf '%s\n' "${COMPREPLY[@]}"
        done"#;
    let offered = shell_offers("bash", names, "").expect("it was here");
    assert_eq!(offered, "a.img#stripe/\\$\\(touch\\ hit\\)\na.img#b\\ c\na.img#b c\n");
}

#[test]
fn fish_offers_what_the_program_knows() {
    for (line, wanted) in OFFERS {
        let Some(offered) =
            shell_offers("fish", "source ./completion; complete -C \"$LINE\"", line)
        else {
            return;
        };
        assert!(
            offered.lines().any(|found| found.split('\t').next() == Some(wanted)),
            "{line}: {offered}"
        );
    }
}

/// zsh completes in a terminal alone: its own pseudo-terminal types the line and a tab, and reads
/// what becomes of it.
#[test]
fn zsh_offers_what_the_program_knows() {
    let script = r#"zmodload zsh/zpty || exit 9
        zpty -b z zsh -f -i
        zpty -w z 'PS1=; autoload -Uz compinit; compinit -u -D; source ./completion; unsetopt autolist; setopt listambiguous noautomenu; stty -echo; print rea""dy'
        zpty -r -m z got '*ready*'
        zpty -w -n z "$LINE"$'\t'$'\e[H'
        local i got all=
        for i in {1..60}; do sleep 0.1; while zpty -r -t z got; do all+=$got; done; done
        print -r -- "$all""#;
    for (line, wanted) in [
        ("trueline explain TL0003", "TL0003"),
        ("trueline check --for ssd-1", "ssd-16k"),
        ("trueline drives qlc-1", "qlc-16k"),
        // A value follows its key without a blank.
        ("trueline bench --through qcow2:clus\tX", "ter=X"),
        ("trueline check --set rpm_\tX", "spread_percent=X"),
    ] {
        let Some(offered) = shell_offers("zsh", script, line) else { return };
        let rest =
            wanted.strip_prefix(line.rsplit(' ').next().unwrap_or_default()).unwrap_or(wanted);
        assert!(offered.contains(rest), "{line}: {offered:?}");
    }
}

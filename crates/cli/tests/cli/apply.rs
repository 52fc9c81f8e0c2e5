//! `part apply`: what the manual promises of it.

use crate::{program, run, run_with, scratch, zeroes};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

/// The layouts of the manual, each with the size of the disk it is for.
fn layouts() -> Vec<(u64, String)> {
    let manual = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/apply.md"),
    )
    .expect("the manual");
    let block = |block: &str| {
        let (size, rest) = block.split_once("GiB\n")?;
        Some((size.parse::<u64>().ok()? << 30, rest.split("```").next()?.to_owned()))
    };
    manual.split("```toml ").skip(1).filter_map(block).collect()
}

#[test]
fn the_manuals_layouts_are_applied_aligned_and_only_once() {
    let layouts = layouts();
    assert!(layouts.len() >= 5, "{}", layouts.len());
    for (size, layout) in layouts {
        let directory = scratch();
        zeroes(directory.path(), "disk.img", size);
        fs::write(directory.path().join("layout.toml"), &layout).unwrap();
        let shown = run(directory.path(), "part apply --dry-run layout.toml disk.img");
        assert!(shown.ended(0).stdout.contains("00000000  "), "{}", shown.stdout);
        let first: Value =
            run(directory.path(), "part apply --json layout.toml disk.img").ended(0).json();
        assert_eq!(
            (&first["format"], &first["changed"]),
            (&Value::from("trueline/part-apply/1"), &Value::from(true))
        );
        let second: Value =
            run(directory.path(), "part apply --json layout.toml disk.img").ended(0).json();
        assert_eq!(second["changed"], false);
        let places = |report: &Value| {
            report["tables"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|t| t["partitions"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&second), places(&first));
        assert_eq!(
            run(directory.path(), "part apply --dry-run layout.toml disk.img").ended(0).stdout,
            ""
        );
        let checked = run(directory.path(), "check --json disk.img").ended(0).json();
        assert_eq!(checked["verdict"], "aligned", "{layout}");
    }
}

/// Every name that `part add -t` takes is one of a layout, and means the same; a scheme's too.
#[test]
fn types_of_a_layout_are_those_of_part_add() {
    let directory = scratch();
    let raw = |disk: &str| {
        let table = run(directory.path(), &format!("part show --json {disk}")).json();
        let entries = table["tables"][0]["entries"].as_array().cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["raw_type"].clone()).collect::<Vec<_>>()
    };
    let names = ["ext4", "fat32", "ntfs", "swap", "EFI", "linux-data"];
    for scheme in ["dos", "gpt"] {
        let (added, applied) = (format!("{scheme}-added"), format!("{scheme}-applied"));
        for kinds in names.chunks(3) {
            zeroes(directory.path(), &added, 64 << 20);
            zeroes(directory.path(), &applied, 64 << 20);
            assert_eq!(
                run(directory.path(), &format!("part create -s {scheme} {added}")).code,
                Some(0)
            );
            let mut layout = format!("scheme = \"{scheme}\"\n");
            for kind in kinds {
                assert_eq!(
                    run(directory.path(), &format!("part add -t {kind} -s 8m {added}")).code,
                    Some(0),
                    "{kind}"
                );
                layout += &format!("[[partition]]\ntype = \"{kind}\"\nsize = \"8m\"\n");
            }
            fs::write(directory.path().join("layout.toml"), &layout).unwrap();
            run(directory.path(), &format!("part apply layout.toml {applied}")).ended(0);
            assert_eq!(
                (raw(&applied).len(), raw(&applied)),
                (3, raw(&added)),
                "{scheme} {kinds:?}"
            );
            // Once more it is as the layout says.
            let again = run(directory.path(), &format!("part apply --json layout.toml {applied}"))
                .ended(0)
                .json();
            assert_eq!(again["changed"], false, "{again}");
            for disk in [&added, &applied] {
                fs::remove_file(directory.path().join(disk)).unwrap();
            }
        }
    }
    zeroes(directory.path(), "disk.img", 64 << 20);
    fs::write(
        directory.path().join("layout.toml"),
        "scheme = \"gpt\"\n[[partition]]\ntype = \"linux-nonsense\"\n",
    )
    .unwrap();
    let refused = run(directory.path(), "part apply layout.toml disk.img");
    assert!(
        refused
            .refused()
            .contains("type 'linux-nonsense' is unknown to GPT: there are linux-data, "),
        "{}",
        refused.stderr
    );
}

#[test]
fn what_is_refused_writes_nothing() {
    let directory = scratch();
    zeroes(directory.path(), "disk.img", 64 << 20);
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write(
        "good.toml",
        "scheme = \"gpt\"\n[[partition]]\ntype = \"efi\"\nsize = \"8MiB\"\n[[partition]]\ntype = \"linux-data\"\n",
    );
    run(directory.path(), "part apply good.toml disk.img").ended(0);
    let before = fs::read(directory.path().join("disk.img")).unwrap();
    let refusals = [
        (
            "scheme = \"gpt\"\n[[partition]]\ntype = \"efi\"\nsize = \"9MiB\"\n[[partition]]\ntype = \"efi\"\n",
            "partition 1 has 8388608 bytes, the layout says 9437184",
        ),
        (
            "scheme = \"gpt\"\n[[partition]]\ntype = \"efi\"\nsize = \"8MiB\"\n",
            "the layout does not name partitions that are there: index 2",
        ),
        ("scheme = \"mbr\"\n", "there is a table of another scheme, GPT, with 2 partitions"),
        ("scheme = \"gpt\"\nsector = 4096\n", ""),
        ("scheme = \"gpt\"\nsise = 1\n", "read bad.toml: line 2, column 1: unknown field `sise`"),
        ("", "read bad.toml: line 1, column 1: missing field `scheme`"),
    ];
    for (layout, want) in refusals {
        write("bad.toml", layout);
        let ran = run(directory.path(), "part apply bad.toml disk.img");
        assert!(ran.refused().contains(want), "{want}: {}", ran.refused());
        assert!(fs::read(directory.path().join("disk.img")).unwrap() == before, "{want}");
    }
    write("bad.sf", "label: gpt\nsector-size: 512\n\n,8MiB,U\n,,L\n,1GiB\n");
    let ran = run(directory.path(), "part apply --sfdisk bad.sf disk.img");
    assert!(
        ran.refused().contains("no room for partition 3 of 1073741824 bytes"),
        "{}",
        ran.refused()
    );
    run_with(directory.path(), &["part", "apply", "none.toml", "disk.img"]).refused();
    assert!(fs::read(directory.path().join("disk.img")).unwrap() == before);
}

#[test]
fn a_layout_comes_from_stdin_too() {
    let directory = scratch();
    zeroes(directory.path(), "disk.img", 64 << 20);
    let mut child = program(directory.path())
        .args(["part", "apply", "--sfdisk", "-", "disk.img"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    child.stdin.take().expect("stdin").write_all(b"label: gpt\n,8MiB,U\n;\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "disk.img: create GPT\ndisk.img: add 1: efi, 8388608 bytes at byte 1048576 (LBA 2048)\n\
         disk.img: add 2: linux-data, 56623104 bytes at byte 9437184 (LBA 18432)\n"
    );
}

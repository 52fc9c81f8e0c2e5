//! The power fails at any write: through the program, every state is the table before or the table
//! after.
//!
//! The ordered writes are what `--dry-run` lists. Those between two flushes may reach the medium in
//! any order, so every subset of them is laid on a copy, and every write of that group is cut at
//! several sectors.

use super::image::{Image, MIB, Write, writes};
use crate::skip::skip;
use crate::{Ran, program, run_with};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The table that `part show` shows on the copy `name` of the disk, and every provider that `check`
/// finds at any depth: a table that only an editor would find is in the first and not in the
/// second.
fn state(disk: &Image, name: &str, provider: &str) -> [Vec<Value>; 2] {
    let shown = disk.part(&format!("show --json {name}{provider}"));
    let check: Ran = run_with(
        disk.scratch.path(),
        &[&["check", "--json", name], &*disk.options.split_whitespace().collect::<Vec<_>>()]
            .concat(),
    );
    assert!(matches!(check.code, Some(0 | 1)), "{}", check.stderr);
    let checked = check.json();
    let providers = checked["targets"][0]["providers"].as_array().expect("providers").iter();
    let found: Vec<Value> = providers
        .skip(1)
        .flat_map(|p| ["provider", "start", "length"].map(|key| p[key].clone()))
        .collect();
    if shown.code != Some(0) {
        assert!(shown.refused().contains("there is no partition table"), "{}", shown.stderr);
        return [Vec::new(), found];
    }
    let table = shown.json()["tables"][0].clone();
    let keys = ["index", "start", "length", "raw_type", "label", "attributes"];
    let entries = table["entries"].as_array().expect("entries").iter();
    let own = vec![table["scheme"].clone(), table["dialect"].clone(), table["attributes"].clone()];
    [own.into_iter().chain(entries.flat_map(|e| keys.map(|key| e[key].clone()))).collect(), found]
}

/// Output of sfdisk and blkid on the copy `name`; `None`, with a message, if one of them is not
/// installed.
fn judged(disk: &Image, name: &str) -> Option<String> {
    let ask = |program: &str, arguments: &[&str]| {
        let ran =
            Command::new(program).args(arguments).arg(disk.path(name)).env("PATH", PATH).output();
        let Ok(output) = ran else {
            skip(&format!("no {program} here"));
            return None;
        };
        Some(
            String::from_utf8_lossy(&output.stdout)
                .replace(&*disk.path(name).to_string_lossy(), "disk"),
        )
    };
    // What blkid knows besides tables is old bytes where no file system is made.
    let tables = ask(
        "blkid",
        &["--probe", "--output", "export", "--match-tag", "PTTYPE", "--match-tag", "PTUUID"],
    )?;
    Some(ask("sfdisk", &["--dump"])? + &tables)
}

/// Search path with the system programs, which an ordinary user's PATH may lack.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Cuts `words` short in every way; gives how many states there were.
#[track_caller]
fn cut(disk: &Image, words: &str, provider: &str) -> usize {
    cut_writes(disk, words, &disk.writes(words), provider)
}

#[track_caller]
fn cut_writes(disk: &Image, words: &str, writes: &[Write], provider: &str) -> usize {
    assert!(!writes.is_empty(), "{words}: writes nothing");
    let (before, before_others) = (state(disk, "disk", provider), judged(disk, "disk"));
    fs::copy(disk.path("disk"), disk.path("done")).expect("a copy");
    writes.iter().for_each(|w| disk.write("done", w, w.bytes.len()));
    let (after, after_others) = (state(disk, "done", provider), judged(disk, "done"));
    let mut groups: Vec<Vec<&Write>> = Vec::new();
    for write in writes {
        match groups.last_mut().filter(|_| !write.after_flush) {
            Some(group) => group.push(write),
            None => groups.push(vec![write]),
        }
    }
    let mut states = 0;
    fs::copy(disk.path("disk"), disk.path("base")).expect("a copy");
    for group in groups {
        // Of many writes in a group, prefixes and each alone have to do.
        let all: u32 = (1 << group.len().min(4)) - 1;
        for mask in 1..=all {
            for torn in [None, Some(1), Some(2), Some(3), Some(17)] {
                fs::copy(disk.path("base"), disk.path("cut")).expect("a copy");
                let chosen: Vec<&&Write> = group
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| mask >> i & 1 == 1)
                    .map(|(_, w)| w)
                    .collect();
                let (last, others) = chosen.split_last().expect("at least one");
                let sector = if disk.options.is_empty() { 512 } else { 4096 };
                let length = torn.map_or(last.bytes.len(), |sectors| sectors * sector);
                if torn.is_some() && length >= last.bytes.len() {
                    continue;
                }
                others.iter().for_each(|w| disk.write("cut", w, w.bytes.len()));
                disk.write("cut", last, length);
                let now = state(disk, "cut", provider);
                let is_either =
                    (0..2).all(|view| now[view] == before[view] || now[view] == after[view]);
                assert!(
                    is_either,
                    "{words}: {torn:?} of a write at {}: neither: {now:?}",
                    last.offset
                );
                states += 1;
                // A sample, two processes a state: every prefix, and now and then a torn write.
                if provider.is_empty()
                    && (torn.is_none() && (mask + 1).is_power_of_two() || states % 16 == 0)
                {
                    let now = judged(disk, "cut");
                    let is_either = now == before_others || now == after_others;
                    assert!(
                        is_either,
                        "{words}: {torn:?} of a write at {}: others find neither: {now:?}",
                        last.offset
                    );
                }
            }
        }
        group.iter().for_each(|w| disk.write("base", w, w.bytes.len()));
    }
    states
}

const ID: &str = "--id 0d1f8f5c-6f55-4e0e-9f0e-000000000000";
const UUID: [&str; 3] = [
    "--uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000001",
    "--uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000002",
    "--uuid 0d1f8f5c-6f55-4e0e-9f0e-000000000003",
];

#[test]
fn while_a_gpt_is_edited() {
    for options in ["", "--logical 4096"] {
        let disk = Image::new(5 * MIB, options);
        assert!(cut(&disk, &format!("create -s gpt {ID} disk"), "") > 1);
        disk.part(&format!("create -s gpt {ID} disk")).ended(0);
        disk.part(&format!("add -t efi -s 1m {} disk", UUID[0])).ended(0);
        disk.part(&format!("add -t linux-data -s 1m {} disk", UUID[1])).ended(0);
        let add = format!("add -t freebsd-ufs {} disk", UUID[2]);
        let verbs = [
            "delete -i 1 disk",
            "resize -i 2 disk",
            "modify -i 1 -l name disk",
            "set -a bootme -i 1 disk",
            "destroy -F disk",
        ];
        for verb in verbs.iter().copied().chain([
            add.as_str(),
            "create -s mbr --id 12345678 --overwrite disk",
            "create -s bsd --overwrite disk",
        ]) {
            assert!(cut(&disk, verb, "") > 1);
        }
        let file = fs::OpenOptions::new().write(true).open(disk.path("disk")).expect("the image");
        file.set_len(6 * MIB).expect("a longer one");
        cut(&disk, "recover disk", "");
    }
}

#[test]
fn while_an_mbr_and_its_chain_are_edited() {
    for options in ["", "--logical 4096"] {
        let disk = Image::new(12 * MIB, options);
        disk.part("create -s mbr --id 12345678 disk").ended(0);
        disk.part("add -t linux-data -s 1m disk").ended(0);
        disk.part("add -t ebr -s 9m disk").ended(0);
        for verb in [
            "add -t linux-data disk",
            "resize -i 2 disk",
            "modify -i 1 -t fat32 disk",
            "set -a active -i 1 disk",
            "delete -i 1 disk",
        ] {
            cut(&disk, verb, "");
        }
        for _ in 0..3 {
            disk.part("add -t linux-data -s 1m disk#s2").ended(0);
        }
        for verb in [
            "add -t linux-data -s 1m",
            "delete -i 5",
            "delete -i 6",
            "delete -i 7",
            "resize -i 7",
            "resize -i 5 -s 512k",
            "modify -i 6 -t linux-swap",
        ] {
            cut(&disk, &format!("{verb} disk#s2"), "#s2");
        }
        disk.part("delete -i 6 disk#s2").ended(0);
        // Into the gap: the chain goes through it.
        cut(&disk, "add -t linux-data -s 512k disk#s2", "#s2");
        cut(&disk, "resize -i 5 disk#s2", "#s2");
        for verb in [
            format!("create -s gpt {ID} --overwrite disk"),
            "destroy -F disk".into(),
            "create -s bsd --overwrite disk".into(),
        ] {
            cut(&disk, &verb, "");
        }
    }
}

#[test]
fn while_a_label_is_edited() {
    for (kind, id) in [("freebsd", ""), ("openbsd", "--id 0123456789abcdef"), ("netbsd", "")] {
        for options in ["", "--logical 4096"] {
            let disk = Image::new(6 * MIB, options);
            disk.part("create -s mbr --id 12345678 disk").ended(0);
            disk.part(&format!("add -t {kind} disk")).ended(0);
            cut(&disk, &format!("create -s bsd {id} disk#s1"), "#s1");
            disk.part(&format!("create -s bsd {id} disk#s1")).ended(0);
            disk.part("add -t freebsd-ufs -s 1m disk#s1").ended(0);
            for verb in [
                "add -t freebsd-swap",
                "resize -i 1",
                "delete -i 1",
                "modify -i 1 -t freebsd-swap",
                "destroy -F",
            ] {
                cut(&disk, &format!("{verb} disk#s1"), "#s1");
            }
        }
    }
}

#[test]
fn while_another_table_is_restored() {
    for options in ["", "--logical 4096"] {
        for (old, new) in [
            ("gpt", "MBR 4"),
            ("mbr", "GPT 128"),
            ("gpt", "GPT 64"),
            ("mbr", "MBR 4"),
            ("bsd", "GPT 128"),
        ] {
            let disk = Image::new(5 * MIB, options);
            disk.part(&format!("create -s {old} disk")).ended(0);
            disk.part(&format!(
                "add -t {} -s 1m disk",
                if old == "bsd" { "freebsd-ufs" } else { "linux-data" }
            ))
            .ended(0);
            fs::write(
                disk.path("text"),
                format!("{new}\n1 linux-swap 256 64\n2 linux-data 512 256\n"),
            )
            .expect("a file");
            let input = fs::File::open(disk.path("text")).expect("a file");
            let words = format!("part restore -F --dry-run {options} disk");
            let ran =
                program(disk.scratch.path()).args(words.split_whitespace()).stdin(input).output();
            let listed = Ran::of(&ran.expect("the program runs")).ended(0).stdout.clone();
            cut_writes(&disk, &format!("{new} over {old}"), &writes(&listed), "");
        }
    }
}

/// Applies `layout` to the disk, cut short in every way.
#[track_caller]
fn cut_apply(disk: &Image, layout: &str, flags: &str) -> String {
    fs::write(disk.path("layout.toml"), layout).expect("a layout");
    let listed =
        disk.part(&format!("apply --dry-run {flags} layout.toml disk")).ended(0).stdout.clone();
    cut_writes(disk, layout, &writes(&listed), "");
    listed
}

#[test]
fn while_nested_tables_are_applied() {
    let label = "[partition.table]\nscheme = \"bsd\"\n[[partition.table.partition]]\ntype \
        = \"freebsd-ufs\"\n";
    let chain = "[partition.table]\nscheme = \"ebr\"\n[[partition.table.partition]]\ntype = \
        \"linux-data\"\nsize = \"50%\"\n[[partition.table.partition]]\ntype = \"linux-data\"\nsize \
        = \"50%\"\n";
    let id = |scheme: &str| {
        format!(
            "scheme = \"{scheme}\"\nid = {}\n",
            if scheme == "gpt" { GUID } else { "\"12345678\"" }
        )
    };
    let uuid =
        |scheme: &str| if scheme == "gpt" { format!("uuid = {GUID}\n") } else { String::new() };
    for (scheme, kind, inside) in
        [("gpt", "freebsd", label), ("mbr", "freebsd", label), ("mbr", "extended", chain)]
    {
        let disk = Image::new(12 * MIB, "");
        let part = format!("[[partition]]\ntype = \"{kind}\"\n{}{inside}", uuid(scheme));
        let listed = cut_apply(&disk, &format!("{}{part}", id(scheme)), "");
        assert!(!listed.contains("interrupted"), "{listed}");
    }
    // The slice is there already, with another type: its table and its label change one after
    // another.
    let disk = Image::new(12 * MIB, "");
    disk.part("create -s mbr --id 12345678 disk").ended(0);
    disk.part("add -t linux-data disk").ended(0);
    fs::write(
        disk.path("layout.toml"),
        format!("{}[[partition]]\ntype = \"freebsd\"\n{label}", id("mbr")),
    )
    .expect("a layout");
    let listed = disk.part("apply --dry-run --replace layout.toml disk").ended(0).stdout.clone();
    assert!(listed.starts_with("# interrupted, "), "{listed}");
    assert!(
        listed.contains("\n#   the disk: the MBR as the layout says, a table inside it not yet\n"),
        "{listed}"
    );
}

const GUID: &str = "\"0d1f8f5c-6f55-4e0e-9f0e-000000000007\"";

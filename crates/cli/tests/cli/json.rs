//! `--json` and `--jsonl`: every key that scripts may rely on, with its type.

use crate::{golden, lay_golden, list, run, run_with, scratch, texts, zeroes};
use serde_json::Value;

/// The type of a value.
#[derive(Clone, Copy, Debug)]
enum Type {
    Int,
    IntOrNull,
    Number,
    Bool,
    Str,
    StrOrNull,
    Array,
    ObjectOrNull,
}
use Type::*;

const TARGET: &[(&str, Type)] =
    &[("target", Str), ("verdict", Str), ("providers", Array), ("findings", Array)];

const PROVIDER: &[(&str, Type)] = &[
    ("provider", Str),
    ("parent", StrOrNull),
    ("class", Str),
    ("sign", StrOrNull),
    ("start", IntOrNull),
    ("length", Int),
    ("sector_size", Int),
    ("stripe_size", Int),
    ("stripe_offset", Int),
    ("grains", Array),
    ("largest_grain", IntOrNull),
    ("verdict", Str),
    ("data_bearing", Bool),
    ("base", Int),
    ("root", Str),
    ("signs", Array),
    ("table", ObjectOrNull),
    ("members", Array),
    ("type", StrOrNull),
    ("label", StrOrNull),
    ("uuid", StrOrNull),
    ("block_size", IntOrNull),
    ("mountpoint", StrOrNull),
];

const GRAIN: &[(&str, Type)] =
    &[("size", Int), ("phase", Int), ("why", Str), ("source", Str), ("trust", Str)];

const TABLE: &[(&str, Type)] = &[("scheme", Str), ("first", Int), ("end", Int), ("free", Array)];

const FINDING: &[(&str, Type)] = &[
    ("rule", Str),
    ("severity", Str),
    ("provider", Str),
    ("offset", Int),
    ("unit", Int),
    ("remainder", Int),
    ("straddle", Number),
    ("rmw_factor", Number),
    ("message", Str),
    ("fix", Array),
];

/// Disks that between them have every kind of value.
const DISKS: &[&str] = &[
    "gpt-sfdisk",
    "gpt-unaligned",
    "gpt-4096",
    "gpt-both-gone",
    "mbr-ebr-loop",
    "mbr-overlap",
    "bsd-in-gpt",
    "bsd-hostile",
    "disk-tiny",
    "disk-zero",
    "ext-over-xfs",
    "fat-fat16-data-off",
    "luks-luks2-512",
    "lvm-pv-off",
    "md-1.2",
    "ntfs-2k-clusters",
    "seed-003-default",
    "seed-004-574",
    "stripe-one-missing",
];

#[track_caller]
fn has(object: &Value, keys: &[(&str, Type)]) {
    for (key, kind) in keys {
        let value = object.get(key).unwrap_or_else(|| panic!("no {key} in {object}"));
        let fits = match kind {
            Int => value.is_u64(),
            IntOrNull => value.is_u64() || value.is_null(),
            Number => value.as_f64().is_some_and(f64::is_finite),
            Bool => value.is_boolean(),
            Str => value.is_string(),
            StrOrNull => value.is_string() || value.is_null(),
            Array => value.is_array(),
            ObjectOrNull => value.is_object() || value.is_null(),
        };
        assert!(fits, "{key} is to be {kind:?}: {value}");
    }
}

#[track_caller]
fn one_of(value: &Value, words: &[&str]) {
    assert!(value.as_str().is_some_and(|v| words.contains(&v)), "{value} is none of {words:?}");
}

pub(crate) const VERDICTS: &[&str] = &["aligned", "misaligned", "unknown"];

/// That a target is as the contract has it.
#[track_caller]
pub(crate) fn is_target(target: &Value) {
    has(target, TARGET);
    one_of(&target["verdict"], VERDICTS);
    let mut names = Vec::new();
    for provider in list(target, "providers") {
        is_provider(provider);
        if let Some(parent) = provider["parent"].as_str() {
            // Of one provider and what stands on it, its own parent is not shown.
            assert!(
                names.is_empty() || names.contains(&parent),
                "{parent} comes after what stands on it"
            );
        }
        assert!(list(provider, "members").iter().all(|m| m.is_string()), "{provider}");
        names.extend(provider["provider"].as_str());
    }
    let mut worst = 3;
    for finding in list(target, "findings") {
        has(finding, FINDING);
        let rank = ["note", "warning", "error"]
            .iter()
            .position(|s| finding["severity"] == *s)
            .expect("a severity");
        assert!(rank <= worst, "the most severe comes first: {target}");
        worst = rank;
        let rule = finding["rule"].as_str().expect("a rule");
        assert!(
            rule.len() == 6
                && rule.starts_with("TL")
                && rule[2..].bytes().all(|b| b.is_ascii_digit()),
            "{rule}"
        );
        let (straddle, factor) = (
            finding["straddle"].as_f64().expect("a share"),
            finding["rmw_factor"].as_f64().expect("a factor"),
        );
        assert!((0.0..=1.0).contains(&straddle) && factor >= 1.0, "{finding}");
        assert!(list(finding, "fix").iter().all(Value::is_string), "{finding}");
        assert!(!finding["message"].as_str().expect("a message").contains('\n'), "{finding}");
        assert!(
            names.iter().any(|n| finding["provider"] == **n),
            "a finding on no provider: {finding}"
        );
    }
}

#[track_caller]
fn is_provider(provider: &Value) {
    has(provider, PROVIDER);
    one_of(&provider["verdict"], VERDICTS);
    for grain in list(provider, "grains") {
        has(grain, GRAIN);
        assert!(grain["phase"].as_u64() < grain["size"].as_u64(), "{grain}");
        one_of(&grain["trust"], &["trusted", "claimed", "assumed", "untrusted"]);
    }
    match (provider["start"].as_u64(), provider["largest_grain"].as_u64()) {
        (Some(start), Some(grain)) => assert_eq!(grain, 1 << start.trailing_zeros(), "{provider}"),
        (start, grain) => assert_eq!((start.filter(|&s| s > 0), grain), (None, None), "{provider}"),
    }
    if provider["table"].is_object() {
        has(&provider["table"], TABLE);
        list(&provider["table"], "free")
            .iter()
            .for_each(|range| has(range, &[("start", Int), ("length", Int)]));
    }
}

#[test]
fn check_has_every_key_with_its_type() {
    let scratch = scratch();
    let mut targets = Vec::new();
    for name in DISKS {
        let directory = scratch.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        let disks = lay_golden(name, &directory);
        targets
            .push(disks.iter().map(|disk| format!("{name}/{disk}")).collect::<Vec<_>>().join(","));
    }
    let ran = run(scratch.path(), &format!("check --json {}", targets.join(" ")));
    let document = ran.ended(1).json();
    has(&document, &[("format", Str), ("verdict", Str), ("targets", Array)]);
    assert_eq!(document["format"], "trueline/check/1");
    assert_eq!(document["verdict"], "misaligned");
    let found = list(&document, "targets");
    assert_eq!(texts(found, "target"), targets);
    found.iter().for_each(is_target);
    // Every kind of value was seen.
    let providers: Vec<&Value> = found.iter().flat_map(|t| list(t, "providers")).collect();
    for (key, _) in
        PROVIDER.iter().filter(|(_, kind)| matches!(kind, IntOrNull | StrOrNull | ObjectOrNull))
    {
        assert!(providers.iter().any(|p| p[key].is_null()), "no {key} is null");
        // Nothing is mounted here.
        assert!(
            *key == "mountpoint" || providers.iter().any(|p| !p[key].is_null()),
            "every {key} is null"
        );
    }
    let verdicts = |v: &str| found.iter().any(|t| t["verdict"] == v);
    assert!(VERDICTS.iter().all(|v| verdicts(v)));
}

#[test]
fn a_stripe_has_no_single_place_and_no_parent() {
    let scratch = golden("seed-003-default");
    let document = run(scratch.path(), "check --json disk,disk1").json();
    let providers = list(&document["targets"][0], "providers");
    let of = |name: &str| providers.iter().find(|p| p["provider"] == name).expect("the provider");
    let set = of("stripe/data");
    assert_eq!(
        (set["parent"].is_null(), &set["members"]),
        (true, &serde_json::json!(["disk", "disk1"]))
    );
    for name in ["stripe/data", "stripe/datas1", "stripe/datas1a"] {
        assert!(of(name)["start"].is_null() || of(name)["start"] == 0, "{}", of(name));
    }
    assert_eq!(of("stripe/datas1a")["parent"], "stripe/datas1");
    assert_eq!(of("stripe/datas1a")["base"], 40448);
}

#[test]
fn a_line_of_jsonl_is_the_target_of_the_document() {
    let scratch = golden("gpt-unaligned");
    zeroes(scratch.path(), "blank", 1 << 20);
    let document = run(scratch.path(), "check --json disk blank disk#p1").json();
    let lines = run(scratch.path(), "check --jsonl disk blank disk#p1");
    assert_eq!(lines.code, Some(1));
    let lines: Vec<Value> = lines
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is a document"))
        .collect();
    assert_eq!(lines.len(), 3);
    for (line, target) in lines.iter().zip(list(&document, "targets")) {
        is_target(line);
        assert_eq!(line["format"], "trueline/check/1");
        assert!(TARGET.iter().all(|(key, _)| line[key] == target[key]));
    }
}

#[test]
fn show_and_info_say_the_same_of_a_provider() {
    let scratch = golden("bsd-in-gpt");
    let check = run(scratch.path(), "check --json disk").json();
    let show = run(scratch.path(), "show --json disk").json();
    assert_eq!(show["format"], "trueline/show/1");
    assert_eq!(show["targets"], check["targets"]);
    for provider in list(&check["targets"][0], "providers") {
        let name = provider["provider"].as_str().expect("a name");
        let info =
            run_with(scratch.path(), &["info", "--json", &format!("disk#{name}")]).ended(0).json();
        assert_eq!(info["format"], "trueline/info/1");
        assert_eq!(info["target"], format!("disk#{name}"));
        is_provider(&info);
        assert!(PROVIDER.iter().all(|(key, _)| info[key] == provider[key]), "{info}");
    }
}

#[test]
fn info_prints_one_document_or_none() {
    let scratch = golden("seed-003-default");
    let several = run(scratch.path(), "info --json disk,disk1");
    assert!(several.refused().contains("disk, disk1, stripe/data"), "{}", several.stderr);
    assert_eq!(several.stdout, "");
    let one = run(scratch.path(), "info --json disk,disk1#stripe/datas1a").ended(0).json();
    assert_eq!(one["provider"], "stripe/datas1a");
    // People can read two of them.
    let text = run(scratch.path(), "info disk,disk1");
    assert_eq!(text.ended(0).stdout.matches("# sectorsize").count(), 2, "{}", text.stdout);
}

/// With `--json` a dry run is a document of what would be, and so is nothing at all: a script finds
/// one wherever it asked for one.
#[test]
fn what_would_be_is_a_document_too() {
    let here = scratch();
    let path = here.path();
    zeroes(path, "disk.img", 96 << 20);
    std::fs::write(
        path.join("l.toml"),
        "scheme = \"gpt\"\n[[partition]]\ntype = \"linux-data\"\nlabel = \"a\"\n",
    )
    .expect("a layout");
    let document = |words: &str| {
        let before = std::fs::read(path.join("disk.img")).expect("a disk");
        let ran = run(path, words);
        assert_eq!(ran.code, Some(0), "{words}: {}", ran.stderr);
        // The exact writes of a dry run are on stderr.
        let is_listed = ran.stderr.contains(" bytes at byte ");
        assert!(is_listed || !words.starts_with("part "), "{words}: {}", ran.stderr);
        let json = ran.json();
        assert!(std::fs::read(path.join("disk.img")).expect("a disk") == before, "{words}");
        json
    };
    let applied = document("part apply --dry-run --json l.toml disk.img");
    assert_eq!(applied["changed"], true);
    assert_eq!(applied["tables"][0]["partitions"][0]["label"], "a", "{applied}");
    let created = document("part create --dry-run --json -s mbr disk.img");
    assert_eq!(created["tables"][0]["scheme"], "MBR", "{created}");
    run(path, "part create -s mbr disk.img").ended(0);
    assert_eq!(run(path, "part add -t linux-data -b 63 -s 64m disk.img").code, Some(0));
    let added = document("part add --dry-run --json -t linux-data -s 8m disk.img");
    let partitions = added["tables"][0]["entries"].as_array().map(Vec::len);
    assert_eq!(partitions, Some(2), "{added}");
    let places = |document: &Value| {
        ["from", "to", "copied"].map(|key| document[key].as_u64().unwrap_or(u64::MAX))
    };
    let moved = document("move --align --dry-run --json disk.img#s1");
    // All of it is a hole, which is not copied.
    assert_eq!(places(&moved), [32256, 1 << 20, 0], "{moved}");
    run(path, "move --align disk.img#s1").ended(0);
    let stays = document("move --align --json disk.img#s1");
    assert_eq!(places(&stays), [1 << 20, 1 << 20, 0], "{stays}");
    let all = document("move --align --json disk.img");
    assert_eq!((&all["bytes"], &all["partitions"]), (&0.into(), &serde_json::json!([])));
    let planned = document("move --align --dry-run --json disk.img");
    assert_eq!(planned["partitions"][0]["from"], planned["partitions"][0]["to"], "{planned}");
    let absent = run(path, "show --json absent.img");
    assert_eq!((absent.code, &absent.json()["targets"]), (Some(2), &serde_json::json!([])));
}

//! Boundaries that `serve` announces, and their use by a client.

use crate::skip::skip;
use crate::{lay_golden, list, run_with, scratch, zeroes};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

/// The verdict of every provider of a report of `check`, by its name.
fn verdicts(report: &Value) -> BTreeMap<String, String> {
    let text = |value: &Value, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let targets = list(report, "targets").iter().flat_map(|target| list(target, "providers"));
    targets.map(|provider| (text(provider, "provider"), text(provider, "verdict"))).collect()
}

/// Checks `target` where it is, and served; `options` say what its disks are. What stands on the
/// provider that is served has the same verdicts both ways.
fn agree(directory: &Path, target: &str, options: &str) -> Vec<String> {
    let words: Vec<&str> = options.split_whitespace().collect();
    let (_, provider) = target.split_once('#').unwrap_or((target, ""));
    let image = run_with(directory, &[&["check", "--json", target], &words[..]].concat());
    let image = verdicts(
        &serde_json::from_str(&image.stdout)
            .unwrap_or_else(|e| panic!("{target}: {e}: {}", image.stderr)),
    );
    let check = format!("'{}' check --json \"$uri\" || :", env!("CARGO_BIN_EXE_trueline"));
    let arguments =
        [&["serve", "--read-only", "--no-counters", target, "--run", &check], &words[..]].concat();
    let served = run_with(directory, &arguments);
    let served = verdicts(
        &serde_json::from_str(&served.stdout)
            .unwrap_or_else(|e| panic!("{target}: {e}: {}", served.stderr)),
    );
    for (name, verdict) in &served {
        let there = format!("{provider}{name}");
        assert_eq!(
            image.get(&there),
            Some(verdict),
            "{target} {options}: {there}: {image:?}, served {served:?}"
        );
    }
    served.into_values().collect()
}

#[test]
fn a_served_stack_has_the_verdicts_of_the_stack() {
    let directory = scratch();
    let here = directory.path();
    let mut seen = BTreeMap::new();
    for name in [
        "gpt-parted",
        "gpt-unaligned",
        "gpt-4096",
        "mbr-cylinders",
        "ext-ext3-at-63",
        "bsd-freebsd-absolute",
        "fat-fat16-data-off",
    ] {
        lay_golden(name, here);
        // Of one unit, of an erase block that nothing begins on, and of what is larger than any of
        // them.
        for options in [
            "",
            "--physical 512",
            "--physical 4096+512",
            "--grain erase=4m+1m --grain optimal=128k",
            "--for raid64kx4",
        ] {
            for verdict in agree(here, "disk", options) {
                *seen.entry(verdict).or_insert(0) += 1;
            }
        }
    }
    lay_golden("ext-ext3-at-63", here);
    for options in ["", "--grain erase=64k", "--grain chunk=128k+512 --physical 512"] {
        agree(here, "disk#s1", options);
    }
    for (name, set) in [
        ("stripe-16k", "stripe/data"),
        ("mirror-two", "mirror/gm0"),
        ("concat-two", "concat/joined"),
    ] {
        lay_golden(name, here);
        // Disks whose units begin elsewhere cannot agree in a stripe, nor these two one after
        // another whatever they are.
        for options in ["", "--physical 4096+512", "--grain erase=64k"] {
            for verdict in agree(here, &format!("disk,disk1#{set}"), options) {
                *seen.entry(verdict).or_insert(0) += 1;
            }
        }
    }
    assert!(seen["aligned"] > 10 && seen["misaligned"] > 10, "{seen:?}");
}

#[test]
fn a_clash_is_told_to_clients() {
    let directory = scratch();
    lay_golden("stripe-16k", directory.path());
    let check = format!("'{}' check \"$uri\"", env!("CARGO_BIN_EXE_trueline"));
    let arguments = [
        "serve",
        "--no-counters",
        "--physical",
        "4096+512",
        "disk,disk1#stripe/data",
        "--run",
        &check,
    ];
    let served = run_with(directory.path(), &arguments);
    assert_eq!(served.code, Some(1));
    let want = "the server says that what this stands on has no physical boundary in common";
    assert!(
        served.stdout.contains("TL0006") && served.stdout.contains(want),
        "{}{}",
        served.stdout,
        served.stderr
    );
}

/// The contexts, as a foreign client lists and shows them.
#[test]
fn nbdinfo_shows_every_boundary() {
    if Command::new("nbdinfo").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("no nbdinfo here");
    }
    let directory = scratch();
    zeroes(directory.path(), "disk", 16 << 20);
    let serve = |command: &str| {
        let arguments = [
            "serve",
            "--for",
            "raid64kx4",
            "--grain",
            "erase=4m+1m",
            "disk",
            "--no-counters",
            "--run",
            command,
        ];
        run_with(directory.path(), &arguments).ended(0).stdout.clone()
    };
    let listed = serve("nbdinfo \"$uri\"");
    for context in [
        "base:allocation",
        "trueline:grain",
        "trueline:chunk",
        "trueline:full-stripe",
        "trueline:erase",
    ] {
        assert!(listed.contains(context), "{context}: {listed}");
    }
    assert!(!listed.contains("trueline:cluster"), "{listed}");
    let map = serve("nbdinfo --map=trueline:erase \"$uri\"");
    let rows: Vec<Vec<&str>> = map.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(
        rows,
        [["0", "1048576", "0"], ["1048576", "12582912", "4194304"], ["13631488", "3145728", "0"]]
    );
}

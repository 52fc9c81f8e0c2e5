//! Options that describe a disk: `--for`, `--logical`, `--physical`, `--grain`, and sizes.

use crate::{golden, list, run, scratch, zeroes};
use serde_json::{Value, json};
use std::path::Path;
use trueline_geom::audit::profile::PROFILES;

/// The disk's logical sector, and its boundaries as `WHY=SIZE+PHASE SOURCE`.
fn described(directory: &Path, options: &str) -> (u64, Vec<String>) {
    let document = run(directory, &format!("info --json {options} disk")).ended(0).json();
    let word = |g: &Value, key: &str| g[key].as_str().expect("a string").to_owned();
    let grain = |g: &Value| {
        format!("{}={}+{} {}", word(g, "why"), g["size"], g["phase"], word(g, "source"))
    };
    (
        document["sector_size"].as_u64().expect("a sector"),
        list(&document, "grains").iter().map(grain).collect(),
    )
}

#[test]
fn profiles_say_what_they_promise() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 30);
    // As the manual's table has it.
    let table: &[(&str, u64, &[&str])] = &[
        ("512n", 512, &["physical=512+0 user"]),
        ("512e", 512, &["physical=4096+0 user"]),
        ("4kn", 4096, &["physical=4096+0 user"]),
        ("ssd-4k", 512, &["physical=4096+0 user"]),
        ("ssd-8k", 512, &["physical=8192+0 user"]),
        ("ssd-16k", 512, &["physical=16384+0 user"]),
        ("ssd-32k", 512, &["physical=32768+0 user"]),
        ("ssd-64k", 512, &["physical=65536+0 user"]),
        ("sd-4m", 512, &["physical=4096+0 user", "erase=4194304+0 user"]),
        (
            "raid64kx4",
            512,
            &["physical=4096+0 user", "chunk=65536+0 user", "full-stripe=262144+0 user"],
        ),
        (
            "raid2kx3",
            512,
            &["physical=2048+0 user", "chunk=2048+0 user", "full-stripe=6144+0 user"],
        ),
        (
            "raid1MiBx10",
            512,
            &["physical=4096+0 user", "chunk=1048576+0 user", "full-stripe=10485760+0 user"],
        ),
    ];
    for &(name, sector, grains) in table {
        assert_eq!(
            described(scratch.path(), &format!("--for {name}")),
            (sector, grains.iter().map(|g| g.to_string()).collect()),
            "{name}"
        );
    }
    assert!(
        PROFILES.iter().all(|p| table.iter().any(|(name, ..)| *name == p.name)),
        "a profile without a row here"
    );
    let help = run(scratch.path(), "check --help");
    for name in ["nope", "raid", "raid64k", "raid64kx0", "raid0x4", "raid1x2", "512", "raid64kx4x2"]
    {
        let ran = run(scratch.path(), &format!("check --for {name} disk"));
        assert!(ran.refused().contains(name), "{}", ran.stderr);
        for profile in PROFILES {
            assert!(
                ran.stderr.contains(profile.name) && help.stdout.contains(profile.name),
                "{}",
                profile.name
            );
        }
    }
}

#[test]
fn the_image_says_its_sector_where_the_profile_does_not() {
    let scratch = golden("gpt-4096");
    assert_eq!(described(scratch.path(), "").0, 4096);
    assert_eq!(described(scratch.path(), "--for ssd-16k").0, 4096);
    assert_eq!(described(scratch.path(), "--for 512e").0, 512);
    assert_eq!(
        described(scratch.path(), "--for 512e --logical 4096").0,
        4096,
        "an option of its own comes before the profile"
    );
}

#[test]
fn the_jumper_puts_63_right_and_64_wrong() {
    let (at_63, at_64) = (golden("seed-001-sdd-63"), golden("seed-001-sdc-64"));
    for (scratch, plain, jumper) in
        [(&at_63, "misaligned", "aligned"), (&at_64, "aligned", "misaligned")]
    {
        let verdict = |options: &str| {
            run(scratch.path(), &format!("check --json {options} disk")).json()["verdict"].clone()
        };
        assert_eq!(
            (verdict("--physical 4096"), verdict("--physical 4096+3584")),
            (json!(plain), json!(jumper))
        );
        assert_eq!(verdict("--physical 4k+7s"), jumper, "7 sectors of 512 bytes");
        assert_eq!(verdict("--for 4kn --logical 512 --physical 4KiB+3584"), jumper);
    }
    assert_eq!(described(at_63.path(), "--physical 4096+3584").1, ["physical=4096+3584 user"]);
}

#[test]
fn grains_are_said_by_their_purpose() {
    let scratch = golden("gpt-sfdisk");
    let (_, grains) =
        described(scratch.path(), "--grain chunk=64k --grain erase=4MiB --grain physical=8192+512");
    for grain in ["chunk=65536+0 user", "erase=4194304+0 user", "physical=8192+512 user"] {
        assert!(grains.iter().any(|g| g == grain), "{grains:?}");
    }
    assert_eq!(grains.iter().filter(|g| g.starts_with("physical=")).count(), 1, "{grains:?}");
    // The last word counts.
    let (_, grains) = described(scratch.path(), "--grain chunk=64k --grain chunk=128k");
    assert_eq!(
        grains.iter().filter(|g| g.starts_with("chunk=")).collect::<Vec<_>>(),
        ["chunk=131072+0 user"]
    );
    run(scratch.path(), "check --grain chunk=64k disk").ended(0);
    run(scratch.path(), "check --grain chunk=3MiB disk").ended(1);
}

#[test]
fn sizes_that_are_none_are_refused() {
    let scratch = golden("gpt-sfdisk");
    for option in [
        "--physical 0",
        "--physical 4x",
        "--physical 1.5k",
        "--physical 4k+",
        "--physical +3584",
        "--physical 4096+4096",
        "--physical 16e",
        "--physical=-1",
        "--logical 0",
        "--logical x",
        // A sector is a power of two that a disk can have.
        "--logical 1",
        "--logical 256",
        "--logical 1000",
        "--logical 128k",
        "--logical 1e",
        "--grain chunk",
        "--grain chunk=",
        "--grain =64k",
        "--grain chunk=0",
        "--grain chunk=64k+64k",
        "--grain stripe=64k",
        "--grain logical=4096",
    ] {
        for command in ["check", "show", "info"] {
            let ran = run(scratch.path(), &format!("{command} {option} disk"));
            assert!(
                ran.refused().contains(option.split([' ', '=']).next().unwrap()),
                "{}",
                ran.stderr
            );
            assert_eq!(ran.stdout, "", "{command} {option}");
        }
    }
}

#[test]
fn sizes_are_spelt_in_many_ways() {
    let scratch = scratch();
    zeroes(scratch.path(), "disk", 1 << 20);
    for (spelt, size) in [
        ("4096", 4096),
        ("4k", 4096),
        ("4K", 4096),
        ("4KiB", 4096),
        ("4kB", 4000),
        ("1m", 1 << 20),
        ("2MB", 2_000_000),
        ("8s", 4096),
    ] {
        assert_eq!(
            described(scratch.path(), &format!("--grain chunk={spelt}")).1.last().unwrap(),
            &format!("chunk={size}+0 user")
        );
    }
    for logical in [512, 1024, 2048, 4096, 8192, 65536] {
        assert_eq!(described(scratch.path(), &format!("--logical {logical}")).0, logical);
    }
}

#[test]
fn the_wrong_logical_sector_is_found_out() {
    let scratch = golden("gpt-sfdisk");
    let ran = run(scratch.path(), "check --json --logical 4096 disk");
    let target = &ran.ended(1).json()["targets"][0];
    let finding = &target["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["severity"]),
        (&json!("TL0007"), &json!("error")),
        "{target}"
    );
    assert!(finding["fix"].to_string().contains("--logical 512"), "{finding}");
    assert_eq!(target["verdict"], "unknown");
    run(scratch.path(), "check --logical 512 disk").ended(0);
}

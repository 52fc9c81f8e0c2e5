//! `stripe`, `mirror`, `concat`: what they write is there to be read, and what they refuse is left
//! as it was.

use crate::{Ran, golden, list, run, scratch, zeroes};
use serde_json::Value;
use std::fs;
use std::path::Path;

const MIB: u64 = 1 << 20;

/// The provider called `name`, as `check --json` has it; `None` if there is none.
fn provider(directory: &Path, target: &str, options: &str, name: &str) -> Option<Value> {
    let report = run(directory, &format!("check --json {options} {target}")).json();
    list(&report["targets"][0], "providers").iter().find(|p| p["provider"] == name).cloned()
}

/// Bytes of `name` on `target`.
fn length(directory: &Path, target: &str, name: &str) -> Option<u64> {
    provider(directory, target, "", name).and_then(|p| p["length"].as_u64())
}

/// A directory with disks of these lengths: `a.img`, `b.img` and so on.
fn disks(lengths: &[u64]) -> crate::recipe::Scratch {
    let scratch = scratch();
    for (name, &length) in ["a.img", "b.img", "c.img", "d.img"].iter().zip(lengths) {
        zeroes(scratch.path(), name, length);
    }
    scratch
}

fn bytes(directory: &Path, name: &str) -> Vec<u8> {
    fs::read(directory.join(name)).expect("an image can be read")
}

/// An MBR of one FreeBSD slice.
fn slice(directory: &Path, name: &str, first: u32, sectors: u32) {
    let mut image = bytes(directory, name);
    image[446..462].copy_from_slice(&[[0, 0, 0, 0, 0xa5, 0, 0, 0], [0; 8]].concat());
    image[454..458].copy_from_slice(&first.to_le_bytes());
    image[458..462].copy_from_slice(&sectors.to_le_bytes());
    image[510..512].copy_from_slice(&[0x55, 0xaa]);
    fs::write(directory.join(name), image).expect("an image can be written");
}

#[test]
fn what_is_labelled_is_a_set() {
    let scratch = disks(&[8 * MIB, 8 * MIB + 4096]);
    let here = scratch.path();
    let labelled = run(here, "stripe label -v -s 16k data a.img b.img");
    assert_eq!(labelled.code, Some(0));
    assert_eq!(
        labelled.stderr,
        "trueline: warning: b.img: only 8388096 bytes from 8392192 bytes used.\n"
    );
    let want = "Metadata value stored on a.img.\nMetadata value stored on b.img.\n\
        a.img,b.img#stripe/data\n\t512         \t# sectorsize\n\t16744448    \t# mediasize in \
        bytes";
    assert!(labelled.stdout.starts_with(want), "{}", labelled.stdout);
    // The order in which the disks are named does not matter any more.
    assert_eq!(length(here, "b.img,a.img", "stripe/data"), Some(2 * (8 * MIB - 16384)));

    let dump = run(here, "stripe dump a.img b.img").ended(0).stdout.clone();
    let id = dump
        .lines()
        .find_map(|l| l.strip_prefix("            Device ID: "))
        .expect("an id")
        .to_owned();
    let one = |disk: &str, number: u8| {
        format!(
            "Metadata on {disk}:\n         Magic string: GEOM::STRIPE\n     Metadata version: 3\
                \n          Device name: data\n            Device ID: {id}\n          Disk number: \
                {number}\nTotal number of disks: 2\n          Stripe size: 16384\n   Hardcoded \
                provider: \n\n"
        )
    };
    assert_eq!(dump, one("a.img", 0) + &one("b.img", 1));
    let json = run(here, "stripe dump --json a.img b.img").ended(0).json();
    assert_eq!(json["format"], "trueline/stripe/1");
    let second = &list(&json, "members")[1];
    assert_eq!((&second["target"], &second["metadata"]["number"]), (&"b.img".into(), &1.into()));
    assert_eq!(second["metadata"]["id"].to_string(), id);
    let partly = run(here, "mirror dump --json a.img");
    assert_eq!(
        (partly.code, partly.json()["format"].as_str()),
        (Some(2), Some("trueline/mirror/1"))
    );

    assert!(
        run(here, "mirror clear a.img").refused().contains("holds GEOM::STRIPE, not GEOM::MIRROR")
    );
    assert!(
        run(here, "stripe label data a.img b.img")
            .refused()
            .contains("clear it first: trueline stripe clear")
    );
    assert_eq!(
        run(here, "stripe clear -v a.img b.img").ended(0).stdout,
        "Metadata cleared on a.img.\nMetadata cleared on b.img.\n"
    );
    assert!(bytes(here, "a.img").iter().chain(&bytes(here, "b.img")).all(|&b| b == 0));
    run(here, "stripe clear a.img").refused();
}

#[test]
fn mirrors_and_concatenations_are_sets_too() {
    let scratch = disks(&[8 * MIB, 8 * MIB]);
    let here = scratch.path();
    run(here, "mirror label -b prefer -s 8k -n gm0 a.img b.img").ended(0);
    assert_eq!(length(here, "a.img,b.img", "mirror/gm0"), Some(8 * MIB - 512));
    let dump = run(here, "mirror dump b.img").ended(0).stdout.clone();
    for line in [
        "  priority: 1",
        "     slice: 8192",
        "   balance: prefer",
        "    mflags: NOAUTOSYNC",
        "    dflags: NONE",
    ] {
        assert!(dump.lines().any(|l| l == line), "{line} in {dump}");
    }
    run(here, "mirror clear a.img b.img").ended(0);
    assert!(run(here, "mirror label -b best gm0 a.img").refused().contains("round-robin"));
    run(here, "mirror label -h gm0 a.img").ended(0);
    assert!(run(here, "mirror dump a.img").ended(0).stdout.contains("hcprovider: a\n"));
    run(here, "mirror clear a.img").ended(0);

    // The metadata's sector puts the second member off its boundary; on drives of 512-byte sectors
    // nothing minds.
    let refused = run(here, "concat label joined a.img b.img");
    assert!(
        refused.refused().contains("give a 8385024 bytes (16377 sectors)"),
        "{}",
        refused.stderr
    );
    run(here, "concat label --physical 512 joined a.img b.img").ended(0);
    assert_eq!(length(here, "a.img,b.img", "concat/joined"), Some(16 * MIB - 1024));
    run(here, "concat clear a.img b.img").ended(0);
    zeroes(here, "a.img", 8_385_024);
    run(here, "concat label joined a.img b.img").ended(0);
    assert_eq!(length(here, "a.img,b.img", "concat/joined"), Some(8_385_024 + 8 * MIB - 1024));
}

/// Partitions, of one disk and of several, and sets of sets.
#[test]
fn members_are_targets() {
    let scratch = disks(&[8 * MIB, 8 * MIB, 8 * MIB, 8 * MIB]);
    let here = scratch.path();
    run(here, "mirror label gm0 a.img b.img").ended(0);
    run(here, "mirror label gm1 c.img d.img").ended(0);
    run(here, "stripe label -s 4k both a.img,b.img#mirror/gm0 c.img,d.img#mirror/gm1").ended(0);
    assert_eq!(length(here, "a.img,b.img,c.img,d.img", "stripe/both"), Some(2 * (8 * MIB - 4096)));
    assert!(
        run(here, "stripe dump a.img,b.img#mirror/gm0")
            .ended(0)
            .stdout
            .contains("Device name: both")
    );
    assert!(run(here, "stripe dump a.img,b.img").refused().contains("name the provider after a #"));
    assert!(run(here, "stripe dump a.img#s9").refused().contains("no provider 's9'"));

    let scratch = disks(&[8 * MIB, 8 * MIB]);
    let here = scratch.path();
    slice(here, "a.img", 64, 8192);
    slice(here, "b.img", 128, 8192);
    run(here, "stripe label -h data a.img#s1 b.img#s1").ended(0);
    assert_eq!(length(here, "a.img,b.img", "stripe/data"), Some(2 * (8192 * 512 - 65536)));
    assert!(
        run(here, "stripe dump b.img#s1").ended(0).stdout.contains("Hardcoded provider: bs1\n")
    );
    assert!(run(here, "stripe label data a.img a.img#s1").refused().contains("share bytes"));
    assert!(run(here, "stripe label data b.img b.img").refused().contains("named twice"));
}

/// Refusals that say why; nothing is written.
#[test]
fn what_would_cost_or_be_lost_is_refused() {
    let scratch = disks(&[8 * MIB, 8 * MIB]);
    let here = scratch.path();
    slice(here, "a.img", 63, 8192);
    slice(here, "b.img", 64, 8192);
    let before = [bytes(here, "a.img"), bytes(here, "b.img")];
    let kept = |ran: Ran, said: &[&str]| {
        let line = ran.refused();
        assert!(said.iter().all(|said| line.contains(said)), "{said:?} in {line}");
        assert!([bytes(here, "a.img"), bytes(here, "b.img")] == before, "{line}");
    };
    let clash = [
        "no address is on a 4096-byte physical boundary of all members",
        "(as1) is 3584 bytes off, 4.00 x",
        "--force",
    ];
    kept(run(here, "stripe label data a.img#s1 b.img#s1"), &clash);
    // What matters of a first member is where it ends.
    kept(
        run(here, "concat label data a.img#s1 b.img#s1"),
        &[clash[0], "(as1) is 3072 bytes off", "label aligned partitions"],
    );
    kept(run(here, "mirror label data a.img#s1 b.img#s1"), &["(bs1) is 3584 bytes off"]);
    kept(
        run(here, "stripe label data a.img b.img"),
        &["partition table on a (mbr, entries in use: 1)", "--force"],
    );
    kept(
        run(here, "stripe label -s 2k data b.img#s1 md:8m"),
        &["a chunk of 2048 bytes is not a multiple of ", "4096-byte", "-s 4096"],
    );
    kept(run(here, "stripe label -s 3k data a.img b.img"), &["use a power of two"]);
    kept(run(here, "stripe label a/b a.img b.img"), &["'a/b' is no name"]);
    kept(run(here, "stripe label sixteen-bytes-is a.img b.img"), &["has 16 bytes"]);
    kept(run(here, "stripe label data a.img"), &["1 members"]);
    kept(run(here, "stripe clear a.img b.img"), &["holds no metadata"]);
    run(here, "stripe label --dry-run --force data a.img b.img");
    assert!([bytes(here, "a.img"), bytes(here, "b.img")] == before);

    // Insisted on, it is done, and the reasons are said all the same.
    let forced = run(here, "stripe label --force data a.img#s1 b.img#s1");
    assert!(
        forced.code == Some(0)
            && forced.stderr.contains("warning: stripe label data: no address is on"),
        "{}",
        forced.stderr
    );
    let report = run(here, "check --json a.img,b.img").json();
    assert!(
        list(&report["targets"][0], "findings").iter().any(|f| f["rule"] == "TL0006"),
        "{report}"
    );
}

#[test]
fn a_file_system_or_a_backup_gpt_is_not_written_over() {
    let gpt = golden("gpt-unaligned");
    zeroes(gpt.path(), "other", 16 * MIB);
    let refused = run(gpt.path(), "mirror label gm0 disk other");
    assert!(
        refused
            .refused()
            .contains("there is a GPT on disk, and its backup header is in the last sector"),
        "{}",
        refused.stderr
    );
    let set = golden("stripe-16k");
    run(set.path(), "stripe clear disk disk1").ended(0);
    let refused = run(set.path(), "mirror label gm0 disk");
    assert!(refused.refused().contains("there is ext4 on the disk"), "{}", refused.stderr);
    // The same set again, by its own command: all it held is back.
    run(set.path(), "stripe label --force -s 16k data disk disk1");
    let found = provider(set.path(), "disk,disk1", "", "stripe/data").expect("the set");
    assert_eq!((&found["sign"], &found["verdict"]), (&"ext4".into(), &"aligned".into()));
}

#[test]
fn what_is_written_is_shown_first_and_undone_after() {
    let scratch = disks(&[8 * MIB, 8 * MIB]);
    let here = scratch.path();
    // Foreign bytes in a last sector: cleared on all before one is labelled.
    for name in ["a.img", "b.img"] {
        let mut image = bytes(here, name);
        image[8 * 1024 * 1024 - 512..].fill(0x5a);
        fs::write(here.join(name), image).expect("an image can be written");
    }
    let before = [bytes(here, "a.img"), bytes(here, "b.img")];
    // What is lost is said all the same.
    let over = |words: &str| {
        let ran = run(here, &format!("stripe label --overwrite {words} data a.img b.img"));
        assert!(
            ran.code == Some(0)
                && ran.stderr.matches("something that is not recognised").count() == 2,
            "{}",
            ran.stderr
        );
        ran.stdout
    };
    let shown = over("--dry-run");
    let writes: Vec<&str> = shown
        .lines()
        .filter(|l| l.starts_with("# "))
        .map(|l| l.split(':').next().unwrap_or_default())
        .collect();
    let want = [
        "# cleared last sector to a.img,b.img#a",
        "# flush",
        "# cleared last sector to a.img,b.img#b",
        "# flush",
        "# metadata to a.img,b.img#a",
        "# flush",
        "# metadata to a.img,b.img#b",
    ];
    assert_eq!(writes, want);
    assert!([bytes(here, "a.img"), bytes(here, "b.img")] == before);
    over("--save old");
    assert!(length(here, "a.img,b.img", "stripe/data").is_some());
    run(here, "part undo old a.img,b.img").ended(0);
    assert!([bytes(here, "a.img"), bytes(here, "b.img")] == before);
}

/// December 2009: two disks of 625142448 sectors in chunks of 16 KiB, sliced and labelled as the
/// documents say.
#[test]
fn seed_003_by_our_command() {
    for (disk, offset, size) in
        [("seed-003-default", 7680, 640_140_600_832u64), ("seed-003-aligned", 0, 640_140_583_936)]
    {
        let set = golden(disk);
        let here = set.path();
        run(here, "stripe clear disk disk1").ended(0);
        assert_eq!(provider(here, "disk,disk1", "", "stripe/data"), None);
        let labelled = run(here, "stripe label --force --physical 512 -s 16384 data disk disk1");
        assert!(
            labelled.stdout.contains("\t1250284864  \t# mediasize in sectors\n"),
            "{}{}",
            labelled.stdout,
            labelled.stderr
        );
        let a = provider(here, "disk,disk1", "--physical 512", "stripe/datas1a")
            .expect("the partition");
        let found = (a["length"].as_u64(), a["stripe_size"].as_u64(), a["stripe_offset"].as_u64());
        assert_eq!(found, (Some(size), Some(16384), Some(offset)));
    }
}

/// A message that names the missing members, and how to name all of them, wherever the set is asked
/// for.
#[test]
fn a_set_without_a_member_says_which() {
    let scratch = disks(&[8 * MIB, 8 * MIB, 8 * MIB]);
    let here = scratch.path();
    run(here, "stripe label data a.img b.img c.img").ended(0);
    let missing = "stripe set stripe/data has 2 of its 3 members here: member 1 is missing \
        (numbers begin at 0)";
    for name in ["stripe/data", "stripe/datap1"] {
        let named = format!("{missing}: name all of them: a.img,c.img,DISK#{name}\n");
        for command in ["serve --run true", "check", "show", "info"] {
            let ran = run(here, &format!("{command} a.img,c.img#{name}"));
            assert!(
                ran.code == Some(2) && ran.stderr.ends_with(&named),
                "{command}: {}",
                ran.stderr
            );
        }
    }
    let two = run(here, "serve --run true b.img#stripe/data");
    assert!(
        two.refused().ends_with(
            ": members 0, 2 are missing (numbers begin at 0): name all of them: b.img,DISK,DISK#stripe/data"
        ),
        "{}",
        two.stderr
    );
    // A member by itself may be served, and it is said that it is one.
    let ran = run(here, "serve --run true b.img");
    let note = "trueline: note TL0020 disk: stripe set stripe/data has 1 of its 3 members here: \
        members 0, 2 are missing (numbers begin at 0): ";
    assert!(ran.code == Some(0) && ran.stderr.starts_with(note), "{}", ran.stderr);
    run(here, "serve --run true a.img,b.img,c.img#stripe/data").ended(0);
}

/// Members named one by one: a hint has the command that finds what is on the set.
#[test]
fn members_in_several_targets_are_checked_together() {
    let scratch = golden("md-raid5-lvm-xfs");
    let here = scratch.path();
    let single = run(here, "check disk disk1 disk2 disk3");
    let hint = "md/r5 has members in 4 of these targets: ";
    let line = single.stdout.lines().find(|line| line.starts_with(hint)).expect("a hint");
    let command = line.strip_prefix(hint).and_then(|line| line.strip_prefix("trueline "));
    let together = run(here, command.expect("a command"));
    assert!(together.stdout.contains("vg/data"), "{}", together.stdout);
    assert_eq!(together.stdout, run(here, "check disk,disk1,disk2,disk3").stdout);
    // Nothing is hinted at where a document is read, or where the set is whole.
    assert!(!run(here, "check disk disk1 --json").stdout.contains("has members in"));
    assert!(!together.stdout.contains("has members in"));
    let refused = run(here, "check --together disk disk1#data");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("without a provider"), "{}", refused.stderr);
}

/// A thin volume has room for some writes alone: what would stop half-way does not begin.
#[test]
fn a_thin_volume_is_not_written_as_a_whole() {
    let scratch = golden("lvm-thin");
    let here = scratch.path();
    let before = bytes(here, "disk");
    for command in
        ["mkfs --overwrite ufs disk#pve/vm-100-disk-0", "part destroy -F disk#pve/vm-100-disk-0"]
    {
        let ran = run(here, command);
        assert_eq!(ran.code, Some(2), "{command}: {}", ran.stderr);
        assert!(ran.stderr.contains("its pool has not given it"), "{command}: {}", ran.stderr);
        assert!(bytes(here, "disk") == before, "{command} wrote");
    }
}

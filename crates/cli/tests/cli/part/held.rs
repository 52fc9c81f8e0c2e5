//! Contents that are not written over without an option: tables of others, tables that cannot be
//! edited here, and contents that only a key shows.

use super::image::{Image, MIB};
use crate::{golden, run};
use std::fs;

/// A mirror of `disk` and `other` with a GPT in it: one disk alone looks like a GPT with a missing
/// backup.
fn mirrored() -> Image {
    let disk = Image::new(16 * MIB, "");
    crate::zeroes(disk.scratch.path(), "other", 16 * MIB);
    for command in [
        "mirror label gm0 disk other",
        "part create -s gpt disk,other#mirror/gm0",
        "part add -t freebsd-ufs disk,other#mirror/gm0",
    ] {
        run(disk.scratch.path(), command).ended(0);
    }
    disk
}

#[test]
fn the_table_of_a_mirror_is_not_mended_on_one_of_its_disks() {
    let disk = mirrored();
    fs::write(disk.path("layout"), "scheme = \"gpt\"\n[[partition]]\ntype = \"freebsd-ufs\"\n")
        .expect("a layout");
    let before = disk.bytes("disk");
    for verb in [
        "recover disk",
        "add -t linux-data disk",
        "resize -i 1 disk",
        "destroy -F disk",
        "create -s mbr disk",
        "apply layout disk",
    ] {
        let ran = disk.part(verb);
        assert!(
            ran.refused().contains("it is a member of the mirror set mirror/gm0: "),
            "{verb}: {}",
            ran.stderr
        );
    }
    assert!(before == disk.bytes("disk"), "refused, and yet the disk is another");
    run(disk.scratch.path(), "part delete -i 1 disk,other#mirror/gm0").ended(0);
}

#[test]
fn the_front_of_a_raid_with_its_metadata_behind_is_not_its_disks() {
    let here = golden("md-1.0");
    let ran = run(here.path(), "part create -s gpt disk1");
    assert!(ran.refused().contains("say --overwrite to lose it"), "{}", ran.stderr);
    for verb in ["recover", "destroy -F"] {
        let ran = run(here.path(), &format!("part {verb} disk1"));
        assert!(ran.refused().contains("its table is edited there"), "{verb}: {}", ran.stderr);
    }
}

#[test]
fn a_table_that_is_not_edited_here_is_not_written_over() {
    let here = golden("bsd64-dragonfly");
    let ran = run(here.path(), "part create -s gpt disk#s1");
    assert!(
        ran.refused()
            .contains("there is a partition table (bsd64) on it: say --overwrite to lose it"),
        "{}",
        ran.stderr
    );
}

#[test]
fn in_what_is_encrypted_no_table_is_made() {
    let here = golden("luks-luks2-512");
    let json = run(here.path(), "check --json disk").json();
    let providers = json["targets"][0]["providers"].as_array().cloned().expect("providers");
    let inner =
        providers.last().and_then(|p| p["provider"].as_str()).expect("the data area").to_string();
    let ran = run(here.path(), &format!("part create -s gpt disk#{inner}"));
    assert!(
        ran.refused().contains("can tell what is on it: say --overwrite to lose it"),
        "{inner}: {}",
        ran.stderr
    );
}

#[test]
fn one_file_by_two_names_is_one_disk() {
    let disk = Image::new(16 * MIB, "");
    std::os::unix::fs::symlink("disk", disk.path("alias")).expect("a link");
    let before = disk.bytes("disk");
    for command in
        ["stripe label st0 disk ./disk", "stripe label st0 disk alias", "check disk,alias"]
    {
        let ran = run(disk.scratch.path(), command);
        assert!(ran.refused().contains("are the same disk"), "{command}: {}", ran.stderr);
    }
    assert!(before == disk.bytes("disk"), "refused, and yet the disk is another");
}

#[test]
fn a_set_of_disks_with_colons_in_their_names_is_undone() {
    let disk = Image::new(16 * MIB, "");
    crate::zeroes(disk.scratch.path(), "pci-0:1f.2", 16 * MIB);
    let here = disk.scratch.path();
    let before = disk.bytes("pci-0:1f.2");
    run(here, "stripe label --save saved st0 disk pci-0:1f.2").ended(0);
    assert!(before != disk.bytes("pci-0:1f.2"));
    run(here, "part undo saved disk,pci-0:1f.2").ended(0);
    assert!(before == disk.bytes("pci-0:1f.2"));
}

//! `mkfs vfat` in a partition of an MBR whose type is another FAT's.

use crate::{run, scratch, zeroes};
use std::path::Path;

/// Messages on stderr about a FAT in a partition of type `kind` and that many MiB.
fn made(directory: &Path, kind: &str, mib: u64, options: &str) -> String {
    zeroes(directory, "disk", 512 << 20);
    run(directory, "part create -s mbr disk").ended(0);
    run(directory, &format!("part add -t {kind} -s {mib}m disk")).ended(0);
    printed(directory, &format!("disk#s1 {options}"))
}

/// Messages on stderr of `mkfs vfat --print`.
fn printed(directory: &Path, target: &str) -> String {
    let ran = run(directory, &format!("mkfs vfat --print {target}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stderr
}

#[test]
fn a_type_of_another_width_is_named_with_its_cure() {
    let here = scratch();
    let warning = |has: u8, says: u64, bits: u64, name: &str| {
        format!(
            "trueline: warning: disk#s1: the partition's type is {has:02x}, for FAT{says}, and this is a FAT{bits}: Windows and cameras go by \
             the type: trueline part modify -i 1 -t {name} disk\n"
        )
    };
    assert_eq!(made(here.path(), "fat32lba", 63, ""), warning(0x0c, 32, 16, "fat16lba"));
    assert_eq!(made(here.path(), "fat32", 63, ""), warning(0x0b, 32, 16, "fat16"));
    assert_eq!(made(here.path(), "fat16", 8, ""), warning(0x06, 16, 12, "fat12"));
    assert_eq!(made(here.path(), "fat32", 20, "-- -F16"), warning(0x0b, 32, 16, "fat16-small"));
    assert_eq!(made(here.path(), "fat16", 300, ""), warning(0x06, 16, 32, "fat32"));
    // Types of the right width, and types of no FAT.
    for (kind, mib) in [("fat12", 8), ("fat16", 63), ("fat16lba", 63), ("fat32", 300), ("fat32lba", 300), ("linux-data", 63), ("efi", 63)] {
        assert_eq!(made(here.path(), kind, mib, ""), "", "{kind}");
    }
    assert_eq!(made(here.path(), "fat32lba", 63, "-- -F 32"), "");
    // The command that it names mends it.
    assert_ne!(made(here.path(), "fat32lba", 63, ""), "");
    run(here.path(), "part modify -i 1 -t fat16lba disk").ended(0);
    assert_eq!(printed(here.path(), "disk#s1"), "");
}

#[test]
fn a_logical_partition_is_mended_in_its_own_table() {
    let here = scratch();
    zeroes(here.path(), "disk", 512 << 20);
    for command in ["part create -s mbr disk", "part add -t ebr disk", "part create -s ebr disk#s1", "part add -t fat32lba -s 63m disk#s1"]
    {
        run(here.path(), command).ended(0);
    }
    let said = printed(here.path(), "disk#s5");
    assert!(said.ends_with(": trueline part modify -i 5 -t fat16lba 'disk#s1'\n"), "{said}");
    run(here.path(), "part modify -i 5 -t fat16lba disk#s1").ended(0);
    assert_eq!(printed(here.path(), "disk#s5"), "");
}

//! `mkfs vfat` in a partition of an MBR whose type is another FAT's.

use crate::skip::skip;
use crate::{list, run, scratch, zeroes};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// True if the tool is here, in an `sbin` too.
fn on_path(tool: &str) -> bool {
    ["/sbin", "/usr/sbin", "/usr/bin"]
        .iter()
        .any(|directory| Path::new(directory).join(tool).exists())
}

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
            "trueline: warning: disk#s1: the partition's type is {has:02x}, for FAT{says}, and \
                this is a FAT{bits}: Windows and cameras go by the type: trueline part modify -i 1 \
                -t {name} disk\n"
        )
    };
    assert_eq!(made(here.path(), "fat32lba", 63, ""), warning(0x0c, 32, 16, "fat16lba"));
    assert_eq!(made(here.path(), "fat32", 63, ""), warning(0x0b, 32, 16, "fat16"));
    assert_eq!(made(here.path(), "fat16", 8, ""), warning(0x06, 16, 12, "fat12"));
    assert_eq!(made(here.path(), "fat32", 20, "-- -F16"), warning(0x0b, 32, 16, "fat16-small"));
    assert_eq!(made(here.path(), "fat16", 300, ""), warning(0x06, 16, 32, "fat32"));
    // Types of the right width, and types of no FAT.
    for (kind, mib) in [
        ("fat12", 8),
        ("fat16", 63),
        ("fat16lba", 63),
        ("fat32", 300),
        ("fat32lba", 300),
        ("linux-data", 63),
        ("efi", 63),
    ] {
        assert_eq!(made(here.path(), kind, mib, ""), "", "{kind}");
    }
    assert_eq!(made(here.path(), "fat32lba", 63, "-- -F 32"), "");
    // The command that it names mends it.
    assert_ne!(made(here.path(), "fat32lba", 63, ""), "");
    run(here.path(), "part modify -i 1 -t fat16lba disk").ended(0);
    assert_eq!(printed(here.path(), "disk#s1"), "");
}

/// The command that is printed for a partition of type `kind` and so many MiB.
fn told(directory: &Path, kind: &str, mib: u64, words: &str) -> String {
    zeroes(directory, "disk", 4 << 30);
    run(directory, "part create -s mbr disk").ended(0);
    run(directory, &format!("part add -t {kind} -s {mib}m --for sd-4m disk")).ended(0);
    let ran = run(directory, &format!("mkfs vfat --print --for sd-4m disk#s1 {words}"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

#[test]
fn a_type_for_fat32_gets_one_where_whole_units_make_enough_clusters() {
    let here = scratch();
    // 65536 clusters of 32 KiB, less the tables, are too few for FAT32; half as large they are
    // enough.
    assert!(told(here.path(), "linux-data", 2049, "").contains(" -F 16 -S 512 -s 128 "));
    assert!(told(here.path(), "fat32lba", 2049, "").contains(" -F 32 -S 512 -s 32 "));
    // Of 256 MiB only clusters below the unit make one, and those the user has to ask for.
    assert!(told(here.path(), "fat32lba", 256, "").contains(" -F 16 -S 512 -s 16 "));
}

#[test]
fn a_kind_that_is_named_settles_clusters_and_reserved_sectors() {
    if !on_path("mkfs.vfat") {
        skip("no mkfs.vfat here");
        return;
    }
    let here = scratch();
    for (mib, bits, kind) in [
        (256, 32, "fat32lba"),
        (256, 16, "fat16lba"),
        (64, 32, "fat32lba"),
        (300, 16, "fat16lba"),
        (12, 12, "fat12"),
    ] {
        zeroes(here.path(), "disk", 512 << 20);
        run(here.path(), "part create -s mbr disk").ended(0);
        run(here.path(), &format!("part add -t {kind} -s {mib}m --for sd-4m disk")).ended(0);
        let made = run(here.path(), &format!("mkfs vfat --for sd-4m disk#s1 -- -n BOOT -F {bits}"));
        assert_eq!(made.code, Some(0), "{}", made.stderr);
        assert!(!made.stderr.contains("mkfs.vfat: "), "{bits} bits, {mib} MiB: {}", made.stderr);
        assert!(made.stdout.contains(" -R "), "{}", made.stdout);
        let found = run(here.path(), "check --for sd-4m --json disk").json();
        let data = list(&found["targets"][0], "providers")
            .iter()
            .find(|p| p["provider"] == "s1.data")
            .expect("a data area")
            .clone();
        assert_eq!(data["start"].as_u64().map(|start| start % 4096), Some(0), "{data:#}");
        let clusters = fat_clusters(&here.path().join("disk"), 4 << 20);
        let valid = match bits {
            12 => 1..4085,
            16 => 4085..65525,
            _ => 65525..1 << 28,
        };
        assert!(valid.contains(&clusters), "{bits} bits, {mib} MiB: {clusters} clusters");
    }
}

/// Number of clusters of the FAT that begins at byte `at`, as Microsoft counts them.
fn fat_clusters(disk: &Path, at: u64) -> u64 {
    let mut boot = [0; 512];
    File::open(disk).and_then(|disk| disk.read_exact_at(&mut boot, at)).expect("a boot sector");
    let number =
        |at: usize, bytes: usize| (0..bytes).rev().fold(0, |n, i| n << 8 | u64::from(boot[at + i]));
    let either = |short: u64, long: u64| if short > 0 { short } else { long };
    let (sectors, table) =
        (either(number(19, 2), number(32, 4)), either(number(22, 2), number(36, 4)));
    let before =
        number(14, 2) + u64::from(boot[16]) * table + (number(17, 2) * 32).div_ceil(number(11, 2));
    (sectors - before) / u64::from(boot[13])
}

#[test]
fn a_warning_of_the_tool_is_heard() {
    if !on_path("mkfs.vfat") {
        skip("no mkfs.vfat here");
        return;
    }
    let here = scratch();
    zeroes(here.path(), "disk", 16 << 20);
    // No cluster makes a FAT32 of that.
    let made = run(here.path(), "mkfs vfat disk -- -F 32");
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let said =
        "mkfs.vfat: WARNING: Number of clusters for 32 bit FAT is less then suggested minimum.";
    assert!(made.stderr.contains(said), "{}", made.stderr);
}

#[test]
fn a_logical_partition_is_mended_in_its_own_table() {
    let here = scratch();
    zeroes(here.path(), "disk", 512 << 20);
    for command in [
        "part create -s mbr disk",
        "part add -t ebr disk",
        "part create -s ebr disk#s1",
        "part add -t fat32lba -s 63m disk#s1",
    ] {
        run(here.path(), command).ended(0);
    }
    let said = printed(here.path(), "disk#s5");
    assert!(said.ends_with(": trueline part modify -i 5 -t fat16lba 'disk#s1'\n"), "{said}");
    run(here.path(), "part modify -i 5 -t fat16lba disk#s1").ended(0);
    assert_eq!(printed(here.path(), "disk#s5"), "");
}

//! Places on and off the grain: what is chosen, what is obeyed, what is said of it.

use super::edit::{ID, UUID};
use super::image::{Image, MIB};
use crate::{run, run_with};

#[test]
fn what_is_known_of_the_drive_decides_where_it_begins() {
    let begins = |options: &str| {
        let disk = Image::new(64 * MIB, options);
        disk.part("create -s gpt disk").ended(0);
        disk.part("add -t linux-data disk").ended(0);
        disk.places("")[0].1
    };
    assert_eq!(begins("--for ssd-16k") % 16384, 0);
    assert_eq!(begins("--for sd-4m"), 4 * MIB);
    assert_eq!(begins("--for raid64kx3") % (192 << 10), 0);
    assert_eq!(begins("--physical 4096+3584") % 4096, 3584);
    assert_eq!(begins("--grain optimal=3m") % (3 * MIB), 0);
    assert_eq!(begins("--grain optimal=5m --physical 4096"), 5 * MIB);
}

#[test]
fn off_the_grain_is_obeyed_with_a_warning() {
    for (options, words, offset, cost) in [
        (
            "--physical 4096",
            "-b 2049 -s 1m",
            "512 bytes past a 4096-byte physical unit",
            "writes of 4096 bytes take 4.0 x the device operations",
        ),
        (
            "--physical 4096",
            "-b 63 -s 1m",
            "3584 bytes past a 4096-byte physical unit",
            "on the boundary: -b 56 (byte 28672) or -b 64 (byte 32768)",
        ),
        (
            "--physical 4096",
            "-a 574 -s 1m",
            "3072 bytes past a 4096-byte physical unit",
            "-b 568 (byte 290816) or -b 576 (byte 294912)",
        ),
        (
            "--for sd-4m",
            "-b 2048 -s 1m",
            "1048576 bytes (1 MiB) past a 4194304-byte erase unit",
            "-b 8192 (byte 4194304)",
        ),
    ] {
        let disk = Image::new(16 * MIB, options);
        disk.done(&format!("create -s gpt {ID} disk"));
        let ran = disk.edited(&format!("add -t linux-data {words} {UUID} disk"));
        let line = ran.stderr.strip_suffix('\n').expect("a line");
        assert!(
            ran.code == Some(0) && line.starts_with("trueline: warning: ") && !line.contains('\n'),
            "{line}"
        );
        assert!(line.contains(offset) && line.contains(cost), "{line}");
    }
}

#[test]
fn a_scrap_before_the_first_boundary_is_not_given_unasked() {
    let disk = Image::new(16 * MIB, "");
    disk.part("create -s mbr disk").ended(0);
    disk.part("add -t linux-data disk").ended(0);
    disk.part("add -t linux-data -b 64 disk").ended(0);
    disk.refused(
        "add -t linux-data disk",
        "no room on the grain: the most that is free is 512 bytes at byte 32256 (LBA 63)",
    );
    assert_eq!(disk.part("add -t linux-data -b 63 disk").code, Some(0));
}

#[test]
fn what_a_smaller_partition_cuts_off_is_said() {
    let disk = Image::new(64 * MIB, "");
    disk.part("create -s gpt disk").ended(0);
    disk.part("add -t freebsd-ufs disk").ended(0);
    run(disk.scratch.path(), "mkfs ufs disk#p1").ended(0);
    let ran = disk.part("resize -i 1 -s 32m disk");
    assert!(
        ran.code == Some(0) && ran.stderr.contains("warning: ufs on disk#p1 covers 65"),
        "{}",
        ran.stderr
    );
    assert_eq!(disk.part("resize -i 1 disk").stderr, "");
}

/// `check` counts on the disk, `-b` in the table: what is printed names both, and which is which.
#[test]
fn in_an_extended_partition_both_places_are_said() {
    let disk = Image::new(64 * MIB, "");
    disk.done("create -s mbr --id 12345678 disk");
    disk.done("add -t linux-data -s 10m disk");
    disk.done("add -t ebr disk");
    let said = disk.done("add -t linux-data -s 5m disk#s2");
    let places = "byte 12582912 (LBA 24576) of the disk, byte 1048576 (LBA 2048) of disk#s2";
    assert_eq!(said, format!("disk#s5 added: 5 MiB at {places}\n"));
    let checked = run(disk.scratch.path(), "check disk").ended(0).stdout.clone();
    assert!(checked.contains("12582912  (24576)"), "{checked}");
    let ran = disk.part("add -t linux-data -b 14401 -s 5m disk#s2");
    let off = "disk#s6 starts at byte 18907648 (LBA 36929) of the disk, byte 7373312 (LBA 14401) \
        of disk#s2, 512 bytes past";
    let better = "on the boundary: -b 14400 (byte 18907136 of the disk) or -b 14408 (byte 18911232 \
        of the disk)";
    assert!(ran.stderr.contains(off) && ran.stderr.trim_end().ends_with(better), "{}", ran.stderr);
    let checked = run(disk.scratch.path(), "check disk").ended(1).stdout.clone();
    assert!(
        checked.contains("s6: partition starts at byte 18907648 (LBA 36929), 512 bytes past"),
        "{checked}"
    );
}

/// From its first byte an extended partition does no I/O, and an SD card's FAT begins where its
/// clusters come out right.
#[test]
fn a_start_that_costs_nothing_is_not_warned_of() {
    let disk = Image::new(1 << 30, "");
    disk.part("create -s mbr disk").ended(0);
    let add = |words: &str| disk.part(words).ended(0).stderr.clone();
    assert_eq!(add("add -t ebr -b 63 -s 1m disk"), "");
    disk.part("delete -i 1 disk").ended(0);
    // As `plan --use sd-card` prints it.
    assert_eq!(add("add -t fat16 -b 223 -s 2096929 disk"), "");
    let data = "mkfs vfat disk#s1 -- -F 16 -S 512 -s 32 -R 1 -g 255/63 -a";
    if run_with(disk.scratch.path(), &data.split(' ').collect::<Vec<_>>()).code == Some(0) {
        run(disk.scratch.path(), "check --strict disk").ended(0);
    }
    disk.part("delete -i 1 disk").ended(0);
    for wrong in ["add -t fat16 -b 225 -s 2000000 disk", "add -t linux-data -b 223 -s 2096929 disk"]
    {
        let ran = disk.part(wrong);
        assert!(
            ran.code == Some(0)
                && ran.stderr.contains(
                    " past a 4096-byte physical unit (assumed): writes of 4096 bytes take 4.0 x"
                ),
            "{wrong}"
        );
        disk.part("delete -i 1 disk").ended(0);
    }
}

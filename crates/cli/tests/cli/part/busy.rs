//! Live devices, and images that are in use.
//!
//! Loop devices and mounts need root; what is skipped is printed, and with `TRUELINE_ORACLE=all` a
//! failure.

use super::image::{Image, MIB};
use crate::loops::{LOOPS, Loop, can, sh};
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Stdio};

const MOUNTS: &str = "command -v partx && mkfs.ext4 -q -F disk 4M && mkdir mnt && mount -o loop \
    disk mnt && umount mnt";

/// True if this kernel was built to read the tables of disks: some are not.
fn kernel_reads() -> bool {
    let disk = Image::new(16 * MIB, "");
    let table = "printf 'label: gpt\n,1M\n' | sfdisk -q --no-tell-kernel disk";
    sh(disk.scratch.path(), table).is_some()
        && !Loop::new(disk.scratch.path(), "--partscan").partitions().is_empty()
}

/// A program that is ended when the test is.
struct Holder(Child);

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_image_behind_a_loop_device_is_not_written() {
    if !can("images behind loop devices", LOOPS) {
        return;
    }
    let disk = Image::new(16 * MIB, "");
    disk.part("create -s gpt disk").ended(0);
    let device = Loop::new(disk.scratch.path(), "");
    let before = disk.bytes("disk");
    for verb in ["add -t efi", "destroy", "create -s mbr --overwrite", "recover", "set -a active"] {
        let ran = disk.part(&format!("{verb} disk"));
        let want =
            format!("{} is a loop device over it: release it first, or say --allow-busy", device.0);
        assert!(ran.refused().contains(&want), "{verb}: {}", ran.stderr);
    }
    assert!(before == disk.bytes("disk"));
    disk.part("add -t efi --dry-run disk").ended(0);
    disk.part("add -t efi --allow-busy disk").ended(0);
    assert_eq!(disk.places("").len(), 1);
}

#[test]
fn the_kernel_shows_what_was_written_to_a_loop_device() {
    if !can("tables on loop devices", LOOPS) {
        return;
    }
    let reads = kernel_reads();
    for (scan, sector) in [("--partscan", 512), ("", 512), ("--partscan", 4096)] {
        let disk = Image::new(32 * MIB, "");
        let device = Loop::new(disk.scratch.path(), &format!("{scan} --sector-size {sector}"));
        let part = |words: &str| disk.part(&words.replace("DEV", &device.0));
        let shown = || {
            let entries = part("show --json DEV").json()["tables"][0]["entries"]
                .as_array()
                .cloned()
                .expect("entries");
            let number = |e: &serde_json::Value, key: &str| e[key].as_u64().expect("a number");
            entries
                .iter()
                .map(|e| (number(e, "index"), number(e, "start"), number(e, "length")))
                .collect::<Vec<_>>()
        };
        for verb in [
            "create -s gpt DEV",
            "add -t efi -s 2m DEV",
            "add -t linux-data -s 4m DEV",
            "add -t linux-data DEV",
            "delete -i 2 DEV",
            "resize -i 1 -s 3m DEV",
            "destroy -F DEV",
            "create -s mbr DEV",
            "add -t linux-data -s 3m DEV",
            "add -t fat32 -s 3m DEV",
            "modify -i 2 -t linux-data DEV",
            "delete -i 1 DEV",
        ] {
            part(verb).ended(0);
            let ours = if verb.starts_with("destroy") { Vec::new() } else { shown() };
            if scan.is_empty() || !reads {
                // It reads no tables of such a one by itself.
                sh("/", &format!("partx --delete {0}; partx --add {0}", device.0));
            }
            assert_eq!(device.partitions(), ours, "{verb} {scan} {sector}");
        }
    }
}

#[test]
fn what_is_mounted_is_not_written() {
    if !can("mounted devices", MOUNTS) {
        return;
    }
    let disk = Image::new(64 * MIB, "");
    fs::create_dir(disk.path("mnt")).expect("a directory");
    let mnt = disk.path("mnt").display().to_string();
    let device = Loop::new(disk.scratch.path(), "--partscan");
    let part = |words: &str| disk.part(&words.replace("DEV", &device.0));
    let mount =
        |what: &str| sh("/", &format!("mkfs.ext4 -qF {what} && mount {what} {mnt}")).is_some();
    if !mount(&device.0) {
        assert!(!can("mounted devices", "false"));
        return;
    }
    for verb in ["create -s gpt DEV", "create -s gpt --overwrite DEV"] {
        let ran = part(verb);
        let want =
            format!("{} is mounted at {mnt}: release it first, or say --allow-busy", device.0);
        assert!(ran.refused().contains(&want), "{}", ran.stderr);
    }
    sh("/", &format!("umount {mnt}")).expect("umount");
    part("create -s mbr --overwrite DEV").ended(0);
    part("add -t linux-data -s 32m DEV").ended(0);
    sh("/", &format!("partx --update {}", device.0)).expect("partx");
    // In a container the kernel's own /dev may be elsewhere.
    if !can("mounted partitions", &format!("[ -b {}p1 ]", device.0)) {
        return;
    }
    assert!(mount(&format!("{}p1", device.0)), "a partition is mounted");
    let before = disk.bytes("disk");
    for verb in ["add -t fat32 DEV", "destroy -F DEV", "resize -i 1 -s 16m DEV"] {
        let ran = part(verb);
        assert!(
            ran.refused().contains(&format!("{}p1 is mounted at {mnt}", device.0)),
            "{}",
            ran.stderr
        );
    }
    assert!(before[..512] == disk.bytes("disk")[..512], "the table is as it was");
    let ran = part("add -t fat32 --allow-busy DEV");
    let want =
        format!("{0} is in use, so the kernel keeps the old partitions: partx -u {0}", device.0);
    assert!(ran.code == Some(0) && ran.stderr.contains(&want), "{}", ran.stderr);
    sh("/", &format!("partx --update {}", device.0)).expect("partx");
    assert_eq!(device.partitions().len(), 2);
    sh("/", &format!("umount {mnt}")).expect("umount");
    part("delete -i 2 DEV").ended(0);
    sh("/", &format!("partx --update {}", device.0)).expect("partx");
    assert_eq!(device.partitions().len(), 1);
}

#[test]
fn what_is_read_only_is_not_written() {
    if !can("read-only loop devices", LOOPS) {
        return;
    }
    let disk = Image::new(16 * MIB, "");
    let device = Loop::new(disk.scratch.path(), "--read-only");
    let ran = disk.part(&format!("create -s gpt {}", device.0));
    assert!(
        ran.refused().contains(&device.0) && ran.refused().contains("read-only"),
        "{}",
        ran.stderr
    );
    assert!(disk.bytes("disk").iter().all(|b| *b == 0));
}

#[test]
fn an_image_that_a_virtual_machine_has_is_not_written() {
    if !can("images that QEMU has", "command -v qemu-io") {
        return;
    }
    let disk = Image::new(16 * MIB, "");
    let mut io = Command::new("qemu-io");
    io.args(["-f", "raw", "disk"]).current_dir(disk.scratch.path());
    let io = io.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut holder = Holder(io.expect("qemu-io runs"));
    // It has the image once it asks what to do.
    holder.0.stdout.as_mut().expect("its output").read_exact(&mut [0; 7]).expect("its prompt");
    let ran = disk.part("create -s gpt disk");
    assert!(
        ran.refused().contains("another program has locked it, a virtual machine perhaps"),
        "{}",
        ran.stderr
    );
    assert!(disk.bytes("disk").iter().all(|b| *b == 0));
    disk.part("create -s gpt --allow-busy disk").ended(0);
    drop(holder);
    disk.part("add -t efi disk").ended(0);
}

#[test]
fn what_is_no_disk_is_not_written() {
    let disk = Image::new(16 * MIB, "");
    fs::create_dir(disk.path("directory")).expect("a directory");
    for (target, why) in [
        ("directory", "it is a directory"),
        ("/dev/null", "it is a character device"),
        ("nowhere", "no such file or device"),
    ] {
        let ran = disk.part(&format!("create -s gpt {target}"));
        assert!(ran.refused().contains(why), "{}", ran.stderr);
    }
    let ran = disk.part("create -s gpt disk#p1");
    assert!(ran.refused().contains("no provider 'p1'"), "{}", ran.stderr);
}

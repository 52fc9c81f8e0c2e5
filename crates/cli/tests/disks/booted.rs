//! Disks that start from their own boot loader, also after `move --align` has put all of them on
//! the grain: GRUB between the MBR and the first partition, GRUB in a partition of a GPT, EXTLINUX.
//!
//! A guest whose kernel gets the words of the loader's configuration was started by what is on the
//! moved disk: the old place of what moved is zeroed first.

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Word on the kernel's command line, which its log repeats.
const WORD: &str = "trueline=moved";
/// Longest time for a guest, which starts in a few seconds where nothing else runs.
const PATIENCE: Duration = Duration::from_secs(240);
const GRUB: &str = "/usr/lib/grub/i386-pc";

fn sh(here: &Scratch, script: &str) {
    let done = tool("sh", &["-e", "-c", script], here.path()).expect("a shell");
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}

fn trueline(here: &Scratch, words: &str) {
    let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(words.split_whitespace())
        .current_dir(here.path())
        .output()
        .expect("it runs");
    assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
}

/// A kernel; `None`, and the test is skipped, where that or a program is missing.
fn kernel(programs: &[&str], file: &str) -> Option<String> {
    let needs = ["qemu-system-x86_64", "mke2fs"].iter().chain(programs).copied();
    let kernel = fs::read_dir("/boot").ok().into_iter().flatten().flatten();
    let mut names: Vec<String> =
        kernel.map(|entry| entry.path().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.contains("/vmlinuz-") && name.ends_with("-amd64"));
    names.sort();
    let missing = missing_of(needs)
        .or_else(|| (!Path::new(file).exists()).then(|| file.to_string()))
        .or_else(|| names.is_empty().then(|| "kernel in /boot".into()));
    if let Some(missing) = missing {
        skip(&format!("boot loaders: no {missing} here"));
        return None;
    }
    names.pop()
}

/// The kernel that `disk.img` starts has the loader's words.
fn boots(here: &Scratch) {
    let mut guest = Command::new("qemu-system-x86_64")
        .args(["-display", "none", "-monitor", "none", "-no-reboot", "-m", "256", "-serial"])
        .args(["file:serial", "-drive", "file=disk.img,format=raw,if=ide,snapshot=on"])
        .current_dir(here.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let begun = Instant::now();
    let said = loop {
        let said = fs::read(here.path().join("serial")).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).into_owned();
        let is_over = guest.try_wait().expect("a child").is_some();
        if said.contains(WORD) || is_over || begun.elapsed() > PATIENCE {
            break said;
        }
        std::thread::sleep(Duration::from_millis(200));
    };
    let _ = guest.kill();
    let _ = guest.wait();
    assert!(said.contains("Linux version") && said.contains(WORD), "it did not boot: {said}");
}

/// Zeroes of the sectors `at` up to `end`, which no partition has any more.
fn wiped(here: &Scratch, at: u64, end: u64) {
    let count = end - at;
    sh(here, &format!("dd if=/dev/zero of=disk.img bs=512 seek={at} count={count} conv=notrunc"));
}

/// Puts GRUB's `boot.img` into the MBR and `core.img` at sector `at`, as grub-bios-setup does.
fn install(here: &Scratch, at: u64) {
    let path = here.path().join("disk.img");
    let mut disk = fs::read(&path).expect("an image");
    let boot = fs::read(format!("{GRUB}/boot.img")).expect("GRUB's boot.img");
    disk[..440].copy_from_slice(&boot[..440]);
    disk[0x5c..0x64].copy_from_slice(&at.to_le_bytes());
    disk[0x64] = 0xff;
    disk[0x66..0x68].fill(0x90);
    let mut core = fs::read(here.path().join("core")).expect("GRUB's core.img");
    core.resize(core.len().next_multiple_of(512), 0);
    let rest = u16::try_from(core.len() / 512 - 1).expect("a short file");
    core[500..508].copy_from_slice(&(at + 1).to_le_bytes());
    core[508..510].copy_from_slice(&rest.to_le_bytes());
    core[510..512].copy_from_slice(&0x820u16.to_le_bytes());
    let from = usize::try_from(at * 512).expect("an index");
    disk[from..from + core.len()].copy_from_slice(&core);
    fs::write(path, disk).expect("an image");
}

fn grub_tree(here: &Scratch, kernel: &str) {
    sh(
        here,
        &format!(
            "mkdir -p tree/boot/grub/i386-pc; cp {kernel} tree/boot/vmlinuz
            cp {GRUB}/*.mod {GRUB}/*.lst tree/boot/grub/i386-pc
            printf 'linux /boot/vmlinuz console=ttyS0 {WORD}\\nboot\\n' > tree/boot/grub/grub.cfg"
        ),
    );
}

#[test]
fn grub_before_the_first_partition_starts_a_moved_disk() {
    let Some(kernel) = kernel(&["grub-mkimage"], &format!("{GRUB}/boot.img")) else { return };
    let here = Scratch::new("grub-mbr");
    grub_tree(&here, &kernel);
    sh(&here, "truncate -s 120M disk.img");
    trueline(&here, "part create -s mbr disk.img");
    trueline(&here, "part add -t linux-data -b 63 -s 120000 disk.img");
    trueline(&here, "part add -t linux-data -b 120063 -s 60001 disk.img");
    sh(
        &here,
        "mke2fs -q -F -t ext4 -O ^metadata_csum -d tree -E offset=32256 disk.img 60000k
        grub-mkimage -O i386-pc -o core -p '(hd0,msdos1)/boot/grub' biosdisk part_msdos ext2",
    );
    install(&here, 1);
    trueline(&here, "move --align disk.img");
    wiped(&here, 63, 2048);
    boots(&here);
}

#[test]
fn grub_in_a_partition_of_its_own_starts_a_moved_disk() {
    let Some(kernel) = kernel(&["grub-mkimage"], &format!("{GRUB}/boot.img")) else { return };
    let here = Scratch::new("grub-gpt");
    grub_tree(&here, &kernel);
    sh(&here, "truncate -s 120M disk.img");
    trueline(&here, "part create -s gpt disk.img");
    trueline(&here, "part add -t bios-boot -b 34 -s 1001 disk.img");
    trueline(&here, "part add -t linux-data -b 1035 -s 120000 disk.img");
    sh(
        &here,
        "mke2fs -q -F -t ext4 -O ^metadata_csum -d tree -E offset=529920 disk.img 60000k
        grub-mkimage -O i386-pc -o core -p '(hd0,gpt2)/boot/grub' biosdisk part_gpt ext2 normal \
        linux",
    );
    install(&here, 34);
    trueline(&here, "move --align disk.img");
    // `core.img` was at sector 34, and nothing is there now.
    wiped(&here, 34, 2048);
    boots(&here);
}

#[test]
fn extlinux_starts_a_moved_disk() {
    let needs = ["extlinux", "root", "loop", "mount"];
    let Some(kernel) = kernel(&needs, "/usr/lib/syslinux/mbr/mbr.bin") else { return };
    let here = Scratch::new("extlinux");
    sh(&here, "truncate -s 80M disk.img");
    trueline(&here, "part create -s mbr disk.img");
    trueline(&here, "part add -t linux-data -b 63 -s 100000 disk.img");
    trueline(&here, "part set -a active -i 1 disk.img");
    sh(
        &here,
        &format!(
            "mke2fs -q -F -t ext4 -O ^64bit,^metadata_csum -E offset=32256 disk.img 50000k
            mkdir at; d=$(losetup --find --show -o 32256 --sizelimit 51200000 disk.img)
            trap 'umount at; losetup -d $d' EXIT
            mount -t ext4 $d at; mkdir at/boot; cp {kernel} at/vmlinuz
            printf 'DEFAULT x\\nLABEL x\\n KERNEL /vmlinuz\\n APPEND console=ttyS0 {WORD}\\n' \
            > at/boot/extlinux.conf
            extlinux --install at/boot
            dd if=/usr/lib/syslinux/mbr/mbr.bin of=disk.img conv=notrunc bs=440 count=1"
        ),
    );
    // A loop device says nothing of where it begins; on a disk the start is noted.
    let path = here.path().join("disk.img");
    let mut disk = fs::read(&path).expect("an image");
    disk[32256 + 28..32256 + 32].copy_from_slice(&63u32.to_le_bytes());
    fs::write(&path, disk).expect("an image");
    trueline(&here, "move --align disk.img");
    let disk = fs::read(&path).expect("an image");
    assert_eq!(disk[(1 << 20) + 28..(1 << 20) + 32], 2048u32.to_le_bytes());
    wiped(&here, 63, 2048);
    boots(&here);
}

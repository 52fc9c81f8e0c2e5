//! Disks that start from their own boot loader, also after `move --align` has put all of them on
//! the grain: GRUB between the MBR and the first partition, GRUB in a partition of a GPT, EXTLINUX.
//!
//! A guest whose kernel gets the words of the loader's configuration was started by what is on the
//! moved disk: the old place of what moved is zeroed first.

use crate::guest::{GRUB, WORD, boots, grub_tree, install, kernel, sh, trueline, wiped};
use crate::recipe::Scratch;
use std::fs;

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

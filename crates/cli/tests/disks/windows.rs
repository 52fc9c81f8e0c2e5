//! Disks of Windows XP with a Linux beside it, as they were made in 2009: killed twenty times while
//! they are put right, and started afterwards.

use crate::guest::{GRUB, WORD, boots_to, grub_tree, has, install, kernel, sh, trueline};
use crate::killed;
use crate::moved::{CYLINDER, files, is_aligned, places, sums, wipe_between};
use crate::recipe::Scratch;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Partition in an MBR or an EBR: type, first sector, sectors.
type Row = (u8, u64, u64);

/// Word that the initial ramdisk of the guest says.
const STARTED: &str = "its ramdisk was read";

/// An MBR, or an EBR at sector `at`, as XP and fdisk write it: the first partition is active,
/// cylinders, heads and sectors are those of 255 and 63. First sectors count from the disk.
fn table(disk: &File, at: u64, link: u64, rows: &[Row]) {
    let mut sector = [0; 512];
    let number = |value: u64| u32::try_from(value).expect("32 bits").to_le_bytes();
    let place = |lba: u64| {
        let (cylinder, rest) = (lba / CYLINDER, lba % CYLINDER);
        let [low, high, ..] = cylinder.min(1023).to_le_bytes();
        let [head, sector] = [rest / 63, rest % 63 + 1].map(|part| part.to_le_bytes()[0]);
        [head, sector | high << 6, low]
    };
    for (nth, &(kind, start, count)) in rows.iter().enumerate() {
        let entry = &mut sector[446 + 16 * nth..][..16];
        entry[0] = if at == 0 && nth == 0 { 0x80 } else { 0 };
        entry[1..4].copy_from_slice(&place(start));
        entry[4] = kind;
        entry[5..8].copy_from_slice(&place(start + count - 1));
        // A logical partition counts from its EBR, a link to the next one from the first.
        let base = if nth == 0 { at } else { link };
        entry[8..12].copy_from_slice(&number(start - base));
        entry[12..16].copy_from_slice(&number(count));
    }
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    disk.write_all_at(&sector, at * 512).expect("a write");
}

/// Checks a disk that Windows XP was installed on beside Linux in 2009: NTFS, FAT32, ext3 and swap
/// from sector 63 on, each up to the end of a cylinder. GRUB reads its configuration from the
/// ext3, the kernel from the NTFS, and the ramdisk from the FAT32.
fn windows_of_2009(name: &str, is_extended: bool) {
    let needs = [
        "grub-mkimage",
        "mkntfs",
        "ntfs-3g",
        "ntfsfix",
        "mkfs.fat",
        "fsck.fat",
        "mcopy",
        "debugfs",
        "mkswap",
        "busybox",
        "cpio",
        "root",
    ];
    let Some(kernel) = kernel(&needs, &format!("{GRUB}/boot.img")) else { return };
    if !has(&[], &["/dev/fuse"]) {
        return;
    }
    let here = Scratch::new(name);
    let starts = [0, 9, 17, 26, 29].map(|cylinder| cylinder * CYLINDER);
    // A logical partition begins a track behind its EBR; so does the first one behind the MBR.
    let first =
        |nth: usize| starts[nth] + if nth == 0 || (nth > 1 && is_extended) { 63 } else { 0 };
    let rows: Vec<Row> = [7, 0x0c, 0x83, 0x82]
        .into_iter()
        .enumerate()
        .map(|(nth, kind)| (kind, first(nth), starts[nth + 1] - first(nth)))
        .collect();
    let names: [&str; 4] =
        if is_extended { ["s1", "s2", "s5", "s6"] } else { ["s1", "s2", "s3", "s4"] };
    files(&here, "tree", 40);
    let before = sums(&here, "tree");
    grub_tree(&here, &kernel);
    let grub = if is_extended { "(hd0,msdos5)" } else { "(hd0,msdos3)" };
    let sizes: Vec<u64> = rows.iter().map(|row| row.2 * 512).collect();
    let [s1, s2, s3, s4] = sizes[..] else { unreachable!("four rows") };
    sh(
        &here,
        &format!(
            "mkdir at root boot; '{}' root busybox /bin/busybox
            printf '#!/bin/busybox sh\\necho {STARTED}\\n/bin/busybox poweroff -f\\n' > root/init
            chmod +x root/init; (cd root; find . | cpio -o -H newc) > boot/ramdisk
            truncate -s {s1} 0.img; truncate -s {s2} 1.img
            truncate -s {s3} 2.img; truncate -s {s4} 3.img; truncate -s {} disk.img
            mkntfs -qFQ -p 63 -H 255 -S 63 0.img
            ntfs-3g 0.img at; trap 'umount at || :' EXIT
            cp -r tree/school tree/winxp.img at; cp {kernel} at/vmlinuz; umount at; trap - EXIT
            mkfs.fat -F 32 -h {} 1.img
            mcopy -s -i 1.img tree/school tree/winxp.img boot/ramdisk ::/
            printf '%s\\n' 'insmod ntfs' 'insmod fat' \
            'linux (hd0,msdos1)/vmlinuz console=ttyS0 {WORD}' 'initrd (hd0,msdos2)/ramdisk' boot \
            > tree/boot/grub/grub.cfg
            mke2fs -q -t ext3 -b 4096 -d tree 2.img; mkswap -q 3.img
            grub-mkimage -O i386-pc -o core -p '{grub}/boot/grub' biosdisk part_msdos ext2",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kernel/program.sh"),
            (starts[4] + CYLINDER) * 512,
            rows[1].1
        ),
    );
    let disk = File::options().write(true).open(here.path().join("disk.img")).expect("an image");
    if is_extended {
        let (first, second, end) = (starts[2], starts[3], starts[4]);
        table(&disk, 0, 0, &[rows[0], rows[1], (0x0f, first, end - first)]);
        table(&disk, first, first, &[rows[2], (5, second, end - second)]);
        table(&disk, second, first, &[rows[3]]);
    } else {
        table(&disk, 0, 0, &rows);
    }
    install(&here, 1);
    for (nth, row) in rows.iter().enumerate() {
        sh(
            &here,
            &format!(
                "dd if={nth}.img of=disk.img bs=1M oflag=seek_bytes seek={} conv=notrunc,sparse",
                row.1 * 512
            ),
        );
    }
    let bytes = |(_, start, count): Row| (start * 512, count * 512);
    assert_eq!(places(&here, &names), rows.iter().copied().map(bytes).collect::<Vec<_>>());
    assert!(trueline(&here, "move --align --dry-run disk.img").contains("4 moves"));
    killed::align(&here);
    is_aligned(&here);
    let now = places(&here, &names);
    // What lies between logical partitions are EBRs.
    wipe_between(&here, if is_extended { &now[..2] } else { &now });
    for (nth, (start, length)) in now.iter().enumerate() {
        sh(
            &here,
            &format!(
                "dd if=disk.img of=now bs=1M iflag=skip_bytes,count_bytes conv=sparse \
                skip={start} count={length}"
            ),
        );
        let (was, mut is) = (read(&here, &format!("{nth}.img")), read(&here, "now"));
        is.resize(was.len(), 0);
        // Hidden sectors, in the boot sector and in its copy.
        let copy = match nth {
            0 => Some(was.len() - 512),
            1 => Some(6 * 512),
            _ => None,
        };
        for at in copy.into_iter().flat_map(|copy| [28, copy + 28]) {
            let sectors = u32::try_from(start / 512).expect("a small disk");
            assert_eq!(is[at..at + 4], sectors.to_le_bytes(), "partition {nth} at byte {at}");
            is[at..at + 4].copy_from_slice(&was[at..at + 4]);
        }
        assert!(is == was, "partition {nth}");
        let check = match nth {
            0 => "ntfsfix -n now; ntfs-3g -o ro now at; trap 'umount at || :' EXIT; cp -r at/. out",
            1 => "fsck.fat -n now; mcopy -s -i now ::/ out",
            2 => "e2fsck -fn now; debugfs -R 'rdump / out' now; rm -r out/boot out/lost+found",
            _ => continue,
        };
        sh(&here, &format!("rm -rf out; mkdir out; {check}; rm -f out/vmlinuz out/ramdisk"));
        assert_eq!(sums(&here, "out"), before, "partition {nth}");
    }
    boots_to(&here, &[], &["Linux version", WORD, STARTED]);
}

fn read(here: &Scratch, name: &str) -> Vec<u8> {
    std::fs::read(here.path().join(name)).expect("a file")
}

#[test]
fn four_partitions_of_2009_without_a_gap() {
    windows_of_2009("windows-primary", false);
}

#[test]
fn logical_partitions_of_2009_without_a_gap() {
    windows_of_2009("windows-logical", true);
}

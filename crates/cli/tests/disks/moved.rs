//! Disks of users that one command puts right although it is killed twenty times: files, file
//! systems and boot loaders are then as they were.

use crate::guest::{WORD, boots_to, has, kernel, sh, trueline};
use crate::killed;
use crate::recipe::Scratch;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Sectors of a cylinder where a head has 63 and there are 255 heads.
pub(crate) const CYLINDER: u64 = 255 * 63;

/// Fills a folder with files of random bytes: a large one of `mebibytes`, and small ones of many
/// sizes in folders.
pub(crate) fn files(here: &Scratch, folder: &str, mebibytes: u64) {
    sh(
        here,
        &format!(
            "mkdir -p {folder}; head -c {mebibytes}M /dev/urandom > {folder}/winxp.img
            for n in $(seq 120); do
                mkdir -p {folder}/school/$((n % 7))
                head -c $((n * n * 37 % 70000)) /dev/urandom > {folder}/school/$((n % 7))/file$n
            done"
        ),
    );
}

/// Names and checksums of all files in a folder.
pub(crate) fn sums(here: &Scratch, folder: &str) -> String {
    let list = "find . -type f ! -path './lost+found/*' -print0 | sort -z | xargs -0 sha256sum";
    let found = sh(here, &format!("cd {folder}; {list}"));
    assert!(found.lines().count() > 100, "{folder}: {found}");
    found
}

/// The files of an ext file system at byte `at` of `disk.img`, which is clean.
fn files_of_ext(here: &Scratch, at: u64) -> String {
    sh(here, &format!("e2fsck -fn 'disk.img?offset={at}' >&2"));
    sh(here, &format!("rm -rf out; mkdir out; debugfs -R 'rdump / out' 'disk.img?offset={at}'"));
    sums(here, "out")
}

/// Places of partitions on `disk.img` in bytes, as `trueline` shows them: first byte, length.
pub(crate) fn places(here: &Scratch, names: &[&str]) -> Vec<(u64, u64)> {
    let listed = trueline(here, "show -o NAME,START,SIZE -b -n disk.img");
    let place = |name: &&str| {
        let line = listed.lines().find(|line| line.starts_with(&format!("disk.img#{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name}: {listed}"));
        let words: Vec<u64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
        (words[0], words[1])
    };
    names.iter().map(place).collect()
}

/// Nothing on the disk is off the grain.
pub(crate) fn is_aligned(here: &Scratch) {
    let said = sh(here, &format!("'{}' check disk.img || :", env!("CARGO_BIN_EXE_trueline")));
    assert!(said.contains("✓ aligned") && !said.contains("misaligned"), "{said}");
}

/// Zeroes of all that is between these partitions, from the old place of the first one on.
pub(crate) fn wipe_between(here: &Scratch, places: &[(u64, u64)]) {
    let disk = File::options().write(true).open(here.path().join("disk.img")).expect("an image");
    let mut end = 63 * 512;
    for &(start, length) in places {
        let gap = usize::try_from(start - end).expect("a small gap");
        disk.write_all_at(&vec![0; gap], end).expect("a write");
        end = start + length;
    }
}

/// The drive of seed 001 that was partitioned by fdisk's defaults, a 2700th of its length: one
/// partition at sector 63 up to the last whole cylinder, ext2, a large file and many small ones.
#[test]
fn the_drive_of_2010_at_sector_63() {
    if !has(&["mke2fs", "debugfs", "e2fsck"], &[]) {
        return;
    }
    let here = Scratch::new("seed-001");
    let (cylinders, rest) = (66, 2_930_277_168 % CYLINDER);
    let (sectors, size) = (cylinders * CYLINDER + rest, cylinders * CYLINDER - 63);
    files(&here, "tree", 260);
    sh(&here, &format!("truncate -s {} disk.img", sectors * 512));
    trueline(&here, "part create -s mbr disk.img");
    trueline(&here, &format!("part add -t linux-data -b 63 -s {size} disk.img"));
    let offset = 63 * 512;
    sh(&here, &format!("mke2fs -q -F -t ext2 -d tree -E offset={offset} disk.img {}k", size / 2));
    let before = sums(&here, "tree");
    assert_eq!(files_of_ext(&here, offset), before);
    // With the jumper the drive counts from 1, and nothing is off the grain.
    let jumpered = trueline(&here, "move --align --dry-run --physical 4096+3584 disk.img");
    assert!(jumpered.contains("nothing was moved"), "{jumpered}");
    killed::align(&here);
    is_aligned(&here);
    assert_eq!(files_of_ext(&here, 1 << 20), before);
}

/// Firmware of a guest with UEFI, and its variables.
const OVMF: [&str; 2] = ["/usr/share/OVMF/OVMF_CODE_4M.fd", "/usr/share/OVMF/OVMF_VARS_4M.fd"];

/// A disk of a GPT with an ESP at sector 34 and an ext4 behind it: GRUB for UEFI, which finds the
/// ext4 by its UUID.
#[test]
fn grub_for_uefi_starts_a_moved_disk() {
    let needs = ["grub-mkimage", "mkfs.fat", "fsck.fat", "mcopy", "debugfs", "e2fsck"];
    let Some(kernel) = kernel(&needs, "/usr/lib/grub/x86_64-efi/linux.mod") else { return };
    if !has(&[], &OVMF) {
        return;
    }
    let here = Scratch::new("grub-uefi");
    let uuid = "11111111-2222-3333-4444-555555555555";
    files(&here, "tree", 80);
    sh(&here, &format!("mkdir -p tree/boot/grub; cp {kernel} tree/boot/vmlinuz"));
    sh(&here, "truncate -s 256M disk.img");
    trueline(&here, "part create -s gpt disk.img");
    trueline(&here, "part add -t efi -b 34 -s 80000 disk.img");
    trueline(&here, "part add -t linux-data -b 80034 -s 360001 disk.img");
    let [first, second] = places(&here, &["p1", "p2"])[..] else { unreachable!("two") };
    // Sectors before the FATs are as many as put its data off the grain.
    sh(
        &here,
        &format!(
            "printf '%s\\n' 'linux /boot/vmlinuz console=ttyS0 {WORD}' boot \
            > tree/boot/grub/grub.cfg
            mkfs.fat -a -F 32 -s 1 -R 33 -h 34 --offset 34 disk.img 40000
            mke2fs -q -F -t ext4 -b 4096 -U {uuid} -d tree -E offset={} disk.img 180000k
            printf 'search --fs-uuid --set=root {uuid}\\nconfigfile /boot/grub/grub.cfg\\n' > early
            grub-mkimage -O x86_64-efi -o BOOTX64.EFI -c early -p /boot/grub \
            part_gpt ext2 fat search search_fs_uuid configfile normal linux
            mmd -i disk.img@@{at} ::/EFI ::/EFI/BOOT
            mcopy -i disk.img@@{at} BOOTX64.EFI ::/EFI/BOOT
            mcopy -s -i disk.img@@{at} tree/school ::/",
            second.0,
            at = first.0
        ),
    );
    let before = sums(&here, "tree");
    killed::align(&here);
    is_aligned(&here);
    let now = places(&here, &["p1", "p2"]);
    assert!(now[0].0 != first.0 && now[1].0 != second.0, "{now:?}");
    wipe_between(&here, &now);
    assert_eq!(files_of_ext(&here, now[1].0), before);
    sh(
        &here,
        &format!(
            "dd if=disk.img of=esp bs=1M iflag=skip_bytes,count_bytes skip={} count={}
            fsck.fat -n esp; mkdir from
            mcopy -s -i esp ::/school from; mcopy -i esp ::/EFI/BOOT/BOOTX64.EFI now
            diff -r tree/school from/school; cmp now BOOTX64.EFI",
            now[0].0, now[0].1
        ),
    );
    // The firmware writes to its variables; it begins with none that name a disk.
    let [code, variables] = OVMF;
    sh(&here, &format!("cp {variables} variables"));
    let code = format!("if=pflash,format=raw,readonly=on,file={code}");
    let variables = "if=pflash,format=raw,file=variables";
    // The firmware needs memory too.
    let options = ["-m", "512", "-net", "none", "-drive", &code, "-drive", variables];
    boots_to(&here, &options, &["Linux version", WORD]);
}

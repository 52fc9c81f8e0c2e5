//! An installed Debian, with everything that belongs to it: a root file system at sector 63, swap
//! behind it without a gap, both named by their UUIDs, and Debian's own GRUB in the MBR.

use crate::guest::{boots_to, has, sh, start, trueline};
use crate::killed;
use crate::moved::{is_aligned, places, wipe_between};
use crate::recipe::Scratch;

/// UUIDs of the root file system and of the swap.
const UUIDS: [&str; 2] =
    ["11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-aaaaaaaaaaaa"];
/// Sectors of the two partitions.
const SECTORS: [u64; 2] = [2_800_000, 400_000];

/// Script with which the guest starts for the first time. GRUB is installed from inside, where the
/// disk has partitions and no loop device.
const FIRST: &str = "#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -o remount,rw /
grub-install /dev/sda && update-grub && mount -o remount,ro / && echo GRUB is there
echo o > /proc/sysrq-trigger
sleep 60
";

/// Unit that says which swap is in use, before the prompt comes.
const UNIT: &str = "[Unit]
After=swap.target
Before=serial-getty@ttyS0.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'cat /proc/swaps > /dev/ttyS0'
";

/// Puts a Debian on `disk.img`: the release of this machine, else the stable one.
fn install(here: &Scratch) {
    let [root, swap] = SECTORS;
    sh(here, &format!("truncate -s {} disk.img", (63 + root + swap + 16065) * 512));
    trueline(here, "part create -s mbr disk.img");
    trueline(here, &format!("part add -t linux-data -b 63 -s {root} disk.img"));
    trueline(here, &format!("part add -t linux-swap -b {} -s {swap} disk.img", 63 + root));
    trueline(here, "part set -a active -i 1 disk.img");
    for (name, text) in [("first", FIRST), ("unit", UNIT)] {
        std::fs::write(here.path().join(name), text).expect("a file");
    }
    let [of_root, of_swap] = UUIDS;
    sh(
        here,
        &format!(
            "mke2fs -q -F -t ext4 -U {of_root} -E offset=32256 disk.img {}k
            . /etc/os-release; release=stable; [ \"$ID\" != debian ] || release=$VERSION_CODENAME
            mkdir at; d=$(losetup --find --show -o 32256 --sizelimit {} disk.img)
            trap 'umount at || umount -l at; losetup -d $d' EXIT
            mount -t ext4 $d at
            debootstrap --variant=minbase \
            --include=systemd-sysv,udev,initramfs-tools,linux-image-amd64,grub-pc $release at >&2
            rm -f at/var/cache/apt/archives/*.deb
            printf 'UUID={of_root} / ext4 defaults 0 1\\nUUID={of_swap} none swap sw 0 0\\n' \
            > at/etc/fstab
            echo moved > at/etc/hostname
            sed -i 's/^GRUB_CMDLINE_LINUX=.*/GRUB_CMDLINE_LINUX=console=ttyS0/
            s/^GRUB_TIMEOUT=.*/GRUB_TIMEOUT=0/' at/etc/default/grub
            install -m 755 first at/first
            cp unit at/etc/systemd/system/swaps.service
            mkdir -p at/etc/systemd/system/multi-user.target.wants
            ln -s ../swaps.service at/etc/systemd/system/multi-user.target.wants
            cp at/boot/vmlinuz-* vmlinuz; cp at/boot/initrd.img-* initrd
            truncate -s {} swap; mkswap -q -U {of_swap} swap
            dd if=swap of=disk.img bs=1M oflag=seek_bytes seek={} conv=notrunc,sparse",
            root / 2,
            root * 512,
            swap * 512,
            (63 + root) * 512
        ),
    );
    let drive = "file=disk.img,format=raw,if=ide";
    let words = "console=ttyS0 root=/dev/sda1 init=/first";
    start(
        here,
        drive,
        &["-m", "512", "-kernel", "vmlinuz", "-initrd", "initrd", "-append", words],
        &["Installation finished", "GRUB is there", "Power down"],
    );
}

/// Everything in the root file system at byte `at`, which is clean: kinds, modes, owners, sizes,
/// links and names, and the checksums of files.
fn contents(here: &Scratch, at: u64) -> String {
    let found = sh(
        here,
        &format!(
            "e2fsck -fn 'disk.img?offset={at}' >&2
            d=$(losetup --find --show -r -o {at} --sizelimit {} disk.img)
            trap 'umount at; losetup -d $d' EXIT
            mount -t ext4 -o ro,noload $d at; cd at
            find . -printf '%y %m %U %G %s %l %p\\n' | sort
            find . -type f -print0 | sort -z | xargs -0 sha256sum; cd ..",
            SECTORS[0] * 512
        ),
    );
    assert!(found.lines().count() > 10_000, "{found}");
    found
}

/// The Debian is installed, moved with twenty kills, compared, and started up to its prompt.
#[test]
#[ignore = "five minutes and packages from the network: see tests/README.md"]
fn an_installed_debian_is_put_right_and_starts() {
    let needs = ["qemu-system-x86_64", "mke2fs", "e2fsck", "mkswap", "debootstrap"];
    if !has(&[&needs[..], &["root", "loop", "mount"]].concat(), &[]) {
        return;
    }
    let here = Scratch::new("debian");
    install(&here);
    let before = contents(&here, 63 * 512);
    killed::align(&here);
    is_aligned(&here);
    let now = places(&here, &["s1", "s2"]);
    wipe_between(&here, &now);
    assert_eq!(now[0].0, 1 << 20);
    assert!(contents(&here, now[0].0) == before, "not all is as it was");
    boots_to(&here, &["-m", "512", "-net", "none"], &["/dev/sda2", "moved login:"]);
}

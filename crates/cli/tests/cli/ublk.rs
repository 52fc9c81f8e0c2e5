//! `serve --ublk`: a block device of the kernel.

use crate::skip::skip;
use crate::{run, scratch, zeroes};
use std::path::Path;
use std::process::Command;

#[test]
fn a_kernel_without_the_driver_is_named() {
    if Path::new("/dev/ublk-control").exists() {
        return skip("this kernel has the driver");
    }
    let scratch = scratch();
    zeroes(scratch.path(), "disk.img", 1 << 20);
    let want = "trueline: open /dev/ublk-control: this kernel has no ublk driver: load ublk_drv \
        (CONFIG_BLK_DEV_UBLK, since Linux 6.0), or say --fuse and use losetup";
    assert_eq!(run(scratch.path(), "serve disk.img --ublk").refused(), want);
}

/// In a guest, where a kernel with the driver can be booted: `TRUELINE_GUEST_ROOT`.
#[test]
fn a_guest_uses_the_device() {
    let scratch = scratch();
    let here = scratch.path();
    zeroes(here, "disk.img", 64 << 20);
    // The table is for the kernel, which makes the partition; the rest is what any disk is used
    // for, in sectors of both sizes.
    let used = "set -eux
        b=${device#/dev/}; q=/sys/block/$b/queue
        [ \"$uri\" = \"$device\" ]; [ $(cat $q/logical_block_size) = $LOGICAL ]; [ $(cat \
        $q/physical_block_size) = 4096 ]
        [ $(ls /sys/block/$b/mq | wc -l) = 2 ]; [ $(cat /sys/block/$b/size) = $SECTORS ]; \
        [ \"$(cat $q/write_cache)\" = \"write back\" ]
        dd if=/dev/urandom of=$device bs=1048576 count=4 conv=fsync; $BLKDISCARD -z -o 1048576 -l \
        1048576 $device
        dd if=$device of=/piece bs=1048576 skip=1 count=1; dd if=/dev/zero of=/zero bs=1048576 \
        count=1; cmp /piece /zero
        mkfs.ext4 -q -F $device; mount -t ext4 $device /mnt
        head -c 3000000 /dev/urandom >/outside; cp /outside /mnt/inside; sync; umount /mnt
        e2fsck -fn $device; echo 3 >/proc/sys/vm/drop_caches; mount -t ext4 -o ro $device /mnt; \
        cmp /outside /mnt/inside; umount /mnt";
    // One read does not come back, and others do, through the same queues.
    let late = "set -eux
        b=$(basename $1)
        inflight() { awk '{ print $1 }' /sys/block/$b/inflight; }
        dd if=$1 of=/dev/null bs=4096 skip=2048 count=1 iflag=direct &
        while [ $(inflight) = 0 ]; do usleep 10000; done
        for processor in 1 2; do taskset $processor dd if=$1 of=/dev/null bs=4096 count=20 \
        iflag=direct; done
        [ $(inflight) = 1 ]";
    let commands = [
        "mkdir -p /mnt /tmp".to_owned(),
        // The guest's shell has one of its own that knows less, and prefers it.
        "export BLKDISCARD=$(ls /usr/sbin/blkdiscard /sbin/blkdiscard 2>/dev/null | head -n \
            1)".into(),
        format!("cat >/used <<'END'\n{used}\nEND\ncat >/late <<'END'\n{late}\nEND"),
        // The device is there before it can be opened.
        "seen() { until dd if=/dev/ublkb0 of=/dev/null count=1 2>/dev/null; do usleep 10000; done; \
            }".into(),
        "LOGICAL=512 SECTORS=131072 trueline serve /dev/vda --ublk --physical 4096 --run 'sh \
            /used'".into(),
        "[ ! -e /dev/ublkb0 ]".into(),
        "mount -t ext4 -o ro /dev/vda /mnt && cmp /outside /mnt/inside && umount /mnt".into(),
        "trueline serve --read-only /dev/vda --ublk --run 'e2fsck -fn $device; ! dd if=/dev/zero of=$device count=1; [ $(cat /sys/block/${device#/dev/}/ro) = 1 ]'"
            .into(),
        // A user with a mount at the end gets an error, and finds the written data later.
        "trueline serve /dev/vda --ublk 2>/said & server=$!; seen; mount -t ext4 /dev/ublkb0 /mnt; \
            echo more >/mnt/more; kill -TERM $server
         status=0; wait $server || status=$?; [ $status = 2 ]; grep 'take away /dev/ublkb0: \
            /dev/ublkb0 is mounted at /mnt: ' /said; umount /mnt"
            .into(),
        "mount -t ext4 /dev/vda /mnt && [ $(cat /mnt/more) = more ] && umount /mnt".into(),
        // A killed server leaves no disk, and the next one removes the rest.
        "trueline serve md:16m --ublk --fault read:delay=1000s,offset=8m..9m & server=$!; seen; sh \
            /late /dev/ublkb0; kill -KILL $server
         wait $server || :; while [ -e /dev/ublkb0 ]; do usleep 10000; done; [ -e /dev/ublkc0 ]"
            .into(),
        "trueline serve md:16m --ublk --run '[ $device = /dev/ublkb0 ]'; [ ! -e /dev/ublkc0 \
            ]".into(),
        // Partitions are the kernel's to find.
        "{ echo label: gpt; echo start=2048,size=8192; } | sfdisk -q --no-reread /dev/vda".into(),
        "trueline serve '/dev/vda' --allow-busy --ublk --run '[ $(cat \
            /sys/block/${device#/dev/}/${device#/dev/}p1/start) = 2048 ]'".into(),
        // A set is described as md describes one, so that mkfs lays file systems out on its chunks.
        "trueline serve md:16m --for raid64kx4 --ublk --run 'cd /sys/block/${device#/dev/}/queue; \
            [ \"$(echo $(cat minimum_io_size optimal_io_size))\" = \"65536 262144\" ]'"
            .into(),
        "trueline serve '/dev/vda#p1' --allow-busy --ublk --run '[ $(cat \
            /sys/block/${device#/dev/}/size) = 8192 ]'".into(),
        // It ends when it is told, while the device is in use.
        "trueline serve md:16m --ublk & server=$!; seen; exec 3</dev/ublkb0; kill -TERM $server; \
            wait $server; exec 3<&-".into(),
    ];
    let mut boot =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernel/boot.sh"));
    boot.current_dir(here).args(["-c", "2", "-m", "ublk_drv", "-m", "ext4"]);
    for tool in [env!("CARGO_BIN_EXE_trueline"), "mkfs.ext4", "e2fsck", "sfdisk", "blkdiscard"] {
        boot.args(["-p", tool]);
    }
    // Programs lie in the guest where they lie here.
    let directory =
        Path::new(env!("CARGO_BIN_EXE_trueline")).parent().expect("a program is in a directory");
    boot.args(["-r", &format!("PATH=$PATH:{}", directory.display())]);
    for command in &commands {
        boot.args(["-r", command]);
    }
    let booted = boot.arg("disk.img,lbs=512,pbs=4096,rw").output().expect("a script can be run");
    if booted.status.code() == Some(2) {
        return println!("skipped: {}", String::from_utf8_lossy(&booted.stderr).trim());
    }
    assert!(booted.status.success(), "{}", String::from_utf8_lossy(&booted.stderr));
}

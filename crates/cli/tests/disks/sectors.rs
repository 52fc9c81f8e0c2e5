//! A disk that was converted to other sectors, and one that is for both, in a real kernel: it finds
//! the partitions, mounts the file systems, and reads the files.

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use std::path::Path;
use std::process::Command;

fn sh(here: &Scratch, script: &str) -> String {
    let done = tool("sh", &["-e", "-c", script], here.path()).expect("a shell");
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).into_owned()
}

/// A GPT with a FAT32 whose clusters are one sector, an ext4 and an exFAT; the sum of a file in the
/// first two.
fn disk(here: &Scratch) -> String {
    let trueline = env!("CARGO_BIN_EXE_trueline");
    sh(
        here,
        &format!(
            "truncate -s 200M disk.img
            printf 'label: gpt\\nstart=2048,size=80M,type=U\\nsize=40M\\nsize=40M\\n' |
                sfdisk -q disk.img >&2
            mkfs.vfat -F 32 -s 1 --offset 2048 disk.img 81920 >&2
            mkdir tree; seq 1 200000 >tree/numbers; seq 1 9 >tree/few
            mcopy -i disk.img@@1M tree/* ::/ >&2
            mke2fs -q -t ext4 -b 4096 -d tree -E offset=$((81<<20)) disk.img 40M
            {trueline} mkfs exfat 'disk.img#p3' >&2
            {trueline} convert --sector-size 4096 -o large.img disk.img >&2
            {trueline} convert --universal -o both.img disk.img >&2
            md5sum tree/numbers | cut -c1-32"
        ),
    )
}

#[test]
fn a_kernel_reads_a_converted_disk() {
    let needs = ["qemu-system-x86_64", "sfdisk", "mkfs.vfat", "mcopy", "mke2fs", "mkfs.exfat"];
    if let Some(missing) = missing_of(needs) {
        return skip(&format!("converted disks: no {missing} here"));
    }
    let here = Scratch::new("sectors");
    let sum = disk(&here);
    let path = |name: &str| here.path().join(name).display().to_string();
    let mut boot =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernel/boot.sh"));
    for module in ["vfat", "nls_cp437", "nls_ascii", "ext4", "exfat"] {
        boot.args(["-m", module]);
    }
    let read = "mkdir -p /m; for d in vda vdb vdc vdd; do for p in 1:vfat 2:ext4 3:exfat; do \
        mount -t ${p#*:} -o ro /dev/$d${p%:*} /m; \
        s=$(test ! -e /m/numbers || md5sum /m/numbers | cut -c1-32); \
        echo \"{\\\"at\\\":\\\"$d $p\\\",\\\"sum\\\":\\\"$s\\\"}\" >&3; umount /m; done; done";
    let disks = [("disk", 512), ("large", 4096), ("both", 512), ("both", 4096)];
    let ran = boot
        .args(["-r", read])
        .args(disks.map(|(name, sector)| {
            format!("{},lbs={sector},pbs=4096", path(&format!("{name}.img")))
        }))
        .output()
        .expect("it runs");
    let errors = String::from_utf8_lossy(&ran.stderr);
    if ran.status.code() == Some(2) {
        return skip(errors.trim());
    }
    assert!(ran.status.success(), "{errors}");
    let out = String::from_utf8_lossy(&ran.stdout);
    for device in ["vda", "vdb", "vdc", "vdd"] {
        for (part, wanted) in [("1:vfat", sum.trim()), ("2:ext4", sum.trim()), ("3:exfat", "")] {
            let line = format!("{{\"at\":\"{device} {part}\",\"sum\":\"{wanted}\"}}");
            assert!(out.contains(&line), "{line}: {out}");
        }
    }
}

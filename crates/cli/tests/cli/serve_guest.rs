//! `serve` to a Debian kernel under QEMU: as the disk of a virtual machine, and by the kernel's own
//! NBD client.
//!
//! Where something to boot it with is missing the tests are skipped, and that is said; with
//! `TRUELINE_ORACLE=all` it is a failure.

use crate::skip::skip;
use crate::{Scratch, program, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::Command;

const MIB: u64 = 1 << 20;

/// The directory of what makes and boots a guest.
const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kernel");

/// Programs of this host that the guest needs.
const TOOLS: [&str; 5] = ["mkfs.ext4", "e2fsck", "mkfs.xfs", "xfs_repair", "nbd-client"];

/// A PATH with the system's programs in it.
fn path() -> String {
    format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

/// A shell's lines in `directory`: whether they succeed, and what they say.
fn shell(directory: &Path, lines: &str) -> (bool, String) {
    let ran = Command::new("sh")
        .args(["-euc", lines])
        .current_dir(directory)
        .env("PATH", path())
        .output()
        .expect("a shell");
    (
        ran.status.success(),
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr),
    )
}

/// A disk with a partition at sector 63 for an ext4, and one for an XFS, which takes 300 MiB at
/// least; [`None`] without the tools.
fn disk() -> Option<Scratch> {
    let scratch = scratch();
    for tool in [&TOOLS[..], &["sfdisk", "cmp"]].concat() {
        if !shell(scratch.path(), &format!("command -v {tool}")).0 {
            skip(&format!("no {tool} here"));
            return None;
        }
    }
    zeroes(scratch.path(), "disk.img", 400 * MIB);
    let made = shell(
        scratch.path(),
        "printf 'label: dos\\nstart=63,size=65536,type=83\\nstart=69632,size=655360,type=83\\n' | sfdisk -q disk.img",
    );
    assert!(made.0, "{}", made.1);
    Some(scratch)
}

/// Commands of a guest for two block devices: it makes file systems, writes a file on each, and
/// reads it back by a mount of its own. The file holds numbers, so that it can be found in the
/// image.
fn used(ext4: &str, xfs: &str) -> Vec<String> {
    let mut commands = vec!["mkdir -p /mnt /tmp".to_owned(), "seq 1 200000 >/numbers".into()];
    for (kind, device, check) in [("ext4", ext4, "e2fsck -fn"), ("xfs", xfs, "xfs_repair -n")] {
        let make = if kind == "ext4" { "mkfs.ext4 -q -F" } else { "mkfs.xfs -q -f" };
        commands.extend([
            format!("{make} {device}"),
            format!(
                "mount -t {kind} {device} /mnt && echo {kind} >/mnt/kind && cat /mnt/kind \
                /numbers >/mnt/numbers && umount /mnt"
            ),
            format!("{check} {device}"),
            "echo 3 >/proc/sys/vm/drop_caches".into(),
            // Discards, and what is found afterwards.
            format!(
                "mount -t {kind} {device} /mnt && fstrim /mnt && sha256sum </mnt/numbers >&3 \
                && umount /mnt"
            ),
        ]);
    }
    commands
}

/// Serves `disk.img` at `place` while a guest with these options does its work, and holds what it
/// says against what the image holds.
fn boot(scratch: &Scratch, place: &str, options: &str, commands: &[String], disks: &str) {
    let here = scratch.path();
    let mut guest = format!("exec '{KERNEL}/boot.sh' {options} -m ext4 -m xfs");
    for tool in &TOOLS {
        guest += &format!(" -p {tool}");
    }
    fs::write(here.join("commands"), commands.join("\n")).expect("a file can be written");
    guest += &format!(" -r \"$(cat commands)\" {disks} >said 2>errors");
    let served = program(here)
        .args(["serve", "disk.img", "--nbd", place, "--run", &guest])
        .env("PATH", path())
        .output()
        .expect("it runs");
    let errors = fs::read_to_string(here.join("errors")).unwrap_or_default();
    if served.status.code() == Some(2) {
        return skip(errors.trim());
    }
    assert!(served.status.success(), "{errors}{}", String::from_utf8_lossy(&served.stderr));
    let said = fs::read_to_string(here.join("said")).expect("it said something");
    for (number, kind, start, length) in [(1, "ext4", 63, 65536), (2, "xfs", 69632, 655_360)] {
        // What the guest found, and what lies on the disk, are the numbers.
        let numbers =
            format!("{{ echo {kind}; seq 1 200000; }} >want{number}; sha256sum <want{number}");
        let want = shell(here, &numbers).1;
        assert_eq!(said.lines().nth(number - 1), Some(want.trim_end()), "{kind}: {said}");
        let cut = format!(
            "dd if=disk.img of=p{number} skip={start} count={length} bs=512 conv=sparse status=none"
        );
        let image = shell(here, &cut);
        assert!(image.0, "{}", image.1);
        assert!(
            holds(&here.join(format!("p{number}")), &here.join(format!("want{number}"))),
            "{kind}: the file is not in the image"
        );
        let check = if kind == "ext4" { "e2fsck -fn p1" } else { "xfs_repair -n -f p2" };
        let checked = shell(here, check);
        assert!(checked.0, "{check}: {}", checked.1);
    }
}

/// True if a whole file lies in an image in one piece, as an empty file system lays it.
fn holds(image: &Path, file: &Path) -> bool {
    let (image, file) = (fs::read(image).expect("an image"), fs::read(file).expect("a file"));
    image.chunks(512).enumerate().any(|(sector, bytes)| {
        file.starts_with(&bytes[..8]) && image[sector * 512..].starts_with(&file)
    })
}

#[test]
fn a_virtual_machine_has_it_as_disks() {
    let Some(scratch) = disk() else { return };
    let disks = r#""nbd+unix:///s1?socket=$unixsocket,rw" "nbd+unix:///s2?socket=$unixsocket,rw""#;
    boot(&scratch, "unix:s", "", &used("/dev/vda", "/dev/vdb"), disks);
}

#[test]
fn the_kernels_own_client_has_it() {
    let Some(scratch) = disk() else { return };
    let mut commands = vec!["PATH=$PATH:/usr/sbin".to_owned()];
    for number in [1, 2] {
        commands.push(format!(
            "nbd-client 10.0.2.2 $(cat /port) /dev/nbd{} -N s{number} -C 2",
            number - 1
        ));
    }
    commands.extend(used("/dev/nbd0", "/dev/nbd1"));
    commands.extend(["nbd-client -d /dev/nbd0".to_owned(), "nbd-client -d /dev/nbd1".into()]);
    // The port is the server's choice, and reaches the guest as its first command.
    let port = r#"-n -m "nbd max_part=4" -r "echo ${uri##*:} | tr -cd 0-9 >/port""#;
    boot(&scratch, "tcp:127.0.0.1:0", port, &commands, "");
}

/// A root file system with a shell, in a partition at `start` of an image: what a machine in
/// production boots.
fn production(here: &Path, image: &str, start: u64) {
    let sectors = 65536;
    let lines = format!(
        "'{KERNEL}/program.sh' root busybox /bin/busybox; for p in sh cat dd sync sha256sum; do \
             ln -sf busybox root/bin/$p; done
        seq 1 200000 >root/numbers; seq 0 99 >root/tens; truncate -s {} {image}; printf 'label: \
            dos\\nstart={start},size={sectors},type=83\\n' | sfdisk -q {image}
        mkfs.ext4 -q -F -b 4096 -d root -E offset={} {image} {}k",
        48 * MIB,
        start * 512,
        sectors / 2
    );
    let made = shell(here, &lines);
    assert!(made.0, "{}", made.1);
}

/// The work of the guest in the image's own system: a hundred blocks, each on the medium before the
/// next. It tells how long that took.
const WORK: &str = "mkdir -p /mnt; mount -t ext4 /dev/vda1 /mnt; cut -d' ' -f1 /proc/uptime >/began
chroot /mnt /bin/sh -c 'cat numbers >copy; sync; for i in $(cat tens); do
dd if=numbers of=copy bs=4k count=1 skip=$i seek=$i conv=notrunc,fsync 2>log; done; sha256sum \
    <copy' >/sum
cat /sum >&3; cat /began >&3; cut -d' ' -f1 /proc/uptime >&3; umount /mnt";

/// A production image is booted on a drive that it is misaligned on, and on the same one aligned,
/// and nothing happens to it.
#[test]
fn an_image_is_booted_on_drives_that_it_never_saw() {
    let scratch = scratch();
    let here = scratch.path();
    for tool in ["mkfs.ext4", "sfdisk", "busybox", "sha256sum"] {
        if !shell(here, &format!("command -v {tool}")).0 {
            return skip(&format!("no {tool} here"));
        }
    }
    fs::write(here.join("work"), WORK).expect("a file can be written");
    for (image, start, misaligned) in [("old.img", 63, true), ("new.img", 2048, false)] {
        production(here, image, start);
        let before = shell(here, &format!("sha256sum <{image}; sha256sum <root/numbers")).1;
        let guest = format!(
            "exec '{KERNEL}/boot.sh' -m ext4 -r \"$(cat work)\" \"$uri,rw\" >said 2>errors"
        );
        let arguments = [
            "serve",
            image,
            "--overlay",
            "mem",
            "--emulate",
            "--drive",
            "wd10ears",
            "--json",
            "--run",
            &guest,
        ];
        let served = program(here).args(arguments).env("PATH", path()).output().expect("it runs");
        let errors = fs::read_to_string(here.join("errors")).unwrap_or_default();
        if served.status.code() == Some(2) {
            return skip(errors.trim());
        }
        let told = String::from_utf8_lossy(&served.stderr);
        assert!(served.status.success(), "{errors}{told}");
        let after = shell(here, &format!("sha256sum <{image}; head -n 1 said")).1;
        assert_eq!(before, after, "the image, and what the guest read");
        assert!(
            told.contains("overlay mem: ")
                && told.contains(&format!("are gone now; {image} is unchanged")),
            "{told}"
        );
        let document: serde_json::Value =
            serde_json::from_slice(&served.stdout).expect("a document");
        let layers =
            crate::list(&document, "layers").iter().filter(|layer| layer["provider"] == "s1");
        let count = |verdict: &str| -> u64 {
            layers.clone().map(|layer| layer["writes"][verdict].as_u64().expect("a count")).sum()
        };
        let (aligned, off) = (count("aligned"), count("misaligned"));
        assert!(
            if misaligned { off >= 100 && aligned == 0 } else { aligned >= 100 && off == 0 },
            "{image}: {aligned} {off}"
        );
        // For the manual: what the drive says.
        println!("{image}: {}\n{told}", fs::read_to_string(here.join("said")).unwrap_or_default());
    }
}

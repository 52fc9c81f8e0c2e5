//! Disks that were cut into files: the first part is said to be one, and with `--follow` all of
//! them are the disk.

use crate::skip::skip;
use crate::{list, run, scratch};
use std::fs;
use std::process::Command;

/// A disk in parts as imaging tools number them, and as `split` names them; parts of which one was
/// cut off; and images of one disk each, which have such names by chance.
const SCRIPT: &str = "command -v qemu-img sfdisk mke2fs split >/dev/null || exit 77
    truncate -s 24M raw
    printf 'label: gpt\\nstart=2048, size=40960\\n' | sfdisk -q raw
    mke2fs -q -t ext4 -b 4096 -E offset=1048576 raw 20M
    dd if=/dev/urandom of=raw bs=1M seek=5 count=4 conv=notrunc status=none
    split -b 7000000 -a 3 --numeric-suffixes=1 raw disk.
    split -b 9M raw cut.
    for part in 1 2 3 4; do cp disk.00$part odd.00$part; done; truncate -s -1 odd.002
    cp raw one.001; cp raw apart.01; truncate -s 20M apart.02";

#[test]
fn parts_are_joined_where_that_is_said() {
    let scratch = scratch();
    let here = scratch.path();
    let done = Command::new("sh").args(["-ec", SCRIPT]).current_dir(here).output();
    let done = done.expect("a shell");
    if done.status.code() == Some(77) {
        return skip("no qemu-img, sfdisk, mke2fs or split here");
    }
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let size = 24 << 20;
    for (arguments, length, verdict, part) in [
        ("disk.001", 7_000_000, None, "part 1 of 4"),
        ("--follow disk.001", size, Some("aligned"), ""),
        ("--follow cut.aa", size, Some("aligned"), ""),
        ("--follow disk.003", 7_000_000, None, "and that begins in disk.001"),
        ("--follow odd.001", 7_000_000, None, "odd.002 has not its length"),
        ("odd.001", 7_000_000, None, ""),
        ("one.001", size, Some("aligned"), ""),
        ("apart.01", size, Some("aligned"), "part 1 of 2"),
    ] {
        let ran = run(here, &format!("check --json {arguments}"));
        let told = ran.json();
        let target = &told["targets"][0];
        assert_eq!(list(target, "providers")[0]["length"], length, "{arguments}: {told}");
        assert!(verdict.is_none_or(|verdict| told["verdict"] == verdict), "{arguments}: {told}");
        let is_said = ran.stdout.contains(part);
        assert!(is_said && (!part.is_empty() || !ran.stdout.contains("part 1 of")), "{told}");
    }
    // Each by itself, where several are named.
    let told = run(here, "check --json --follow disk.001,disk.002").stdout;
    assert!(!told.contains("part 1 of"), "{told}");
    // The whole of it is served, and nothing of it is written.
    let done = Command::new(env!("CARGO_BIN_EXE_trueline"))
        .args(["serve", "--follow", "disk.001", "--run"])
        .arg("qemu-img compare -f raw -F raw raw \"$uri\"")
        .current_dir(here)
        .output()
        .expect("trueline");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains("Images are identical"), "{said}");
    let before = fs::read(here.join("disk.001")).expect("a part");
    let ran = run(here, "part delete --follow -i 1 disk.001");
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    assert!(fs::read(here.join("disk.001")).expect("a part") == before);
}

//! BSD labels that we write, seen by libblkid and libfdisk. OpenBSD's and NetBSD's own tools do not
//! run here.

use crate::recipe::Scratch;
use crate::skip::skip;
use std::path::Path;
use std::process::Command;

fn run(program: &str, args: &[&str], directory: &Path) -> Option<String> {
    let ran = Command::new(program).args(args).current_dir(directory).output().ok()?;
    assert!(ran.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&ran.stderr));
    Some(String::from_utf8_lossy(&ran.stdout).into_owned())
}

#[test]
fn util_linux_finds_the_partitions_of_every_dialect() {
    let scratch = Scratch::new("labels");
    let directory = scratch.path();
    let part = |args: &[&str]| {
        run(env!("CARGO_BIN_EXE_trueline"), &[&["part"], args].concat(), directory).unwrap()
    };
    std::fs::File::create(directory.join("disk")).and_then(|f| f.set_len(64 << 20)).unwrap();
    part(&["create", "-s", "mbr", "disk"]);
    for (slice, kind) in [("disk#s1", "freebsd"), ("disk#s2", "openbsd"), ("disk#s3", "netbsd")] {
        part(&["add", "-t", kind, "-s", "16m", "disk"]);
        part(&["create", "-s", "bsd", slice]);
        part(&["add", "-t", "4.2BSD", "-s", "6m", slice]);
        part(&["add", "-t", "swap", "-s", "3m", slice]);
        part(&["add", "-t", "freebsd-ufs", slice]);
        part(&["delete", "-i", "2", slice]);
    }
    // Each slice has 6 MiB, a hole of 3, and 7.
    let want: Vec<(u64, u64)> = [2048, 34816, 67584]
        .into_iter()
        .flat_map(|at| [(at, 12288), (at + 18432, 14336)])
        .collect();
    let Some(seen) = run("partx", &["-s", "-g", "-b", "-o", "START,SECTORS", "disk"], directory)
    else {
        return skip("no partx here");
    };
    let pair = |line: &str| {
        line.split_whitespace()
            .map(str::parse)
            .collect::<Result<Vec<u64>, _>>()
            .map(|n| (n[0], n[1]))
            .unwrap()
    };
    assert_eq!(seen.lines().map(pair).skip(3).collect::<Vec<_>>(), want);

    // libfdisk looks at the checksum, and shows the whole too. It knows labels only on a disk of
    // their own.
    let disk = std::fs::read(directory.join("disk")).unwrap();
    for (number, at) in [(1, 2048_usize), (2, 34816), (3, 67584)] {
        std::fs::write(directory.join("slice"), &disk[at * 512..(at + 32768) * 512]).unwrap();
        let Some(seen) = run("sfdisk", &["-d", "slice"], directory) else {
            return skip("no sfdisk here");
        };
        assert!(seen.contains("label: bsd"), "{seen}");
        let at = if number == 1 { 0 } else { at };
        for (start, size) in [(at, 12288), (at + 18432, 14336)] {
            let entry = format!("start={start:>12}, size={size:>12}, type=7");
            assert!(seen.contains(&entry), "{entry}\n{seen}");
        }
    }
}

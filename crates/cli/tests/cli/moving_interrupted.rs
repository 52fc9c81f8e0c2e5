//! `move` that was interrupted: its journal, its mark, what goes on with it and what refuses.

use crate::moving::{MIB, disk, done, has, refused};
use crate::{run, run_with, scratch, zeroes};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Kills at random moments; none may lose anything.
#[test]
fn killed_at_any_moment_it_goes_on() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    for (round, to) in [MIB, 63 * 512, 9 * MIB, 63 * 512].into_iter().enumerate() {
        let mut words =
            vec!["move".to_string(), "--to".into(), to.to_string(), "disk.img#s1".into()];
        for attempt in 0.. {
            let mut child = Command::new(env!("CARGO_BIN_EXE_trueline"));
            let child = child
                .args(&words)
                .current_dir(directory)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = child.spawn().expect("it runs");
            // The more often it was interrupted, the later, so that it ends.
            std::thread::sleep(Duration::from_millis(7 * (attempt * attempt + round as u64 + 1)));
            let _ = child.kill();
            let status = child.wait().expect("it ends");
            if status.success() {
                break;
            }
            let journal = directory.join("disk.img.journal");
            if !journal.exists() {
                // Killed before it had one, or when it had removed it.
                if has(directory, to, &bytes)
                    && done(directory, "show disk.img").contains(&to.to_string())
                {
                    break;
                }
                continue;
            }
            words = vec!["move".into(), "--resume".into(), "disk.img.journal".into()];
            let ran = run_with(directory, &["move", "--resume", "disk.img.journal", "--dry-run"]);
            if ran.code == Some(2) {
                // The journal itself was not whole, or nothing had begun.
                if ran.stderr.contains("was not complete") {
                    refused(directory, "move --resume disk.img.journal");
                    assert!(!journal.exists());
                } else {
                    assert!(ran.stderr.contains("was not changed yet"), "{}", ran.stderr);
                    assert!(fs::read(&journal).is_ok() && fs::remove_file(&journal).is_ok());
                }
                words = vec!["move".into(), "--to".into(), to.to_string(), "disk.img#s1".into()];
            }
        }
        assert!(has(directory, to, &bytes), "round {round}");
    }
}

/// A server lets writes fail from the n-th on: the disk is then in the middle of a move.
#[test]
fn a_disk_that_fails_is_gone_on_with_and_no_other_is() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    fs::copy(directory.join("disk.img"), directory.join("other.img")).expect("a copy");
    let trueline = env!("CARGO_BIN_EXE_trueline");
    let command = format!("'{trueline}' move --align --journal j \"$uri#s1\" 2>said");
    let ran = run_with(
        directory,
        &[
            "serve",
            "disk.img",
            "--no-counters",
            "--fault",
            "write:error=eio,after=12",
            "--run",
            &command,
        ],
    );
    let said = fs::read_to_string(directory.join("said")).expect("what it said");
    assert!(
        ran.code == Some(2)
            && said.contains("input/output error at byte")
            && said.contains("move --resume j"),
        "{said}{}",
        ran.stderr
    );
    // In between, no other kind of contents is recognised.
    assert!(done(directory, "show disk.img").contains("trueline_move"));
    let check = run(directory, "check disk.img");
    assert!(check.code == Some(1) && check.stdout.contains("error TL0026 s1"), "{}", check.stdout);
    for command in [
        "move --align --journal j2 disk.img#s1",
        "part add -t linux-data disk.img",
        "part delete -i 1 disk.img",
        "part resize -i 1 -s 10m disk.img",
    ] {
        let said = refused(directory, command);
        assert!(
            said.contains("trueline move --resume j disk.img") && !directory.join("j2").exists(),
            "{command}: {said}"
        );
    }
    let said = refused(directory, "move --resume j other.img");
    assert!(said.contains("is not as the move left it"), "{said}");
    zeroes(directory, "short.img", 1 << 20);
    assert!(refused(directory, "move --resume j short.img").contains("has 1048576 bytes"));
    assert!(
        refused(directory, "move --resume j --logical 4096 disk.img")
            .contains("in sectors of 4096")
    );
    // A move that stops before it writes leaves a disk to others: their writes are not written
    // over.
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(directory.join("j")).expect("a journal").permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert!(
        done(directory, "move --resume j --dry-run disk.img")
            .contains("saved in the journal first")
    );
    fs::copy(directory.join("j"), directory.join("copy")).expect("a copy");
    done(directory, "move --resume j disk.img");
    assert!(has(directory, MIB, &bytes) && !directory.join("j").exists());
    // Nothing is left of the mark; and an older copy of the journal does nothing to what is done.
    assert!(has(directory, 63 * 512, &[0; 512]));
    assert!(refused(directory, "move --resume copy disk.img").contains("not as the move left it"));
}

/// Runs `command` on the served disk, where the flushes from the n-th on fail; what it says on
/// stderr.
pub(super) fn served(directory: &Path, flushes: u32, command: &str) -> String {
    served_from(directory, "disk.img", flushes, command)
}

/// As [`served`], with another target.
pub(super) fn served_from(directory: &Path, target: &str, flushes: u32, command: &str) -> String {
    let trueline = env!("CARGO_BIN_EXE_trueline");
    let command = format!("'{trueline}' {command} 2>said");
    let fault = format!("flush:error=eio,after={flushes}");
    let ran = run_with(
        directory,
        &["serve", target, "--no-counters", "--fault", &fault, "--run", &command],
    );
    assert_eq!(ran.code, Some(2), "{command}: {}", ran.stderr);
    fs::read_to_string(directory.join("said")).expect("what it said")
}

#[test]
fn a_journal_is_found_and_named_and_only_that_of_this_moment_is_gone_on_with() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    let copy = |from: &str, to: &str| {
        fs::copy(directory.join(from), directory.join(to)).map(drop).expect("a copy")
    };
    served(directory, 2, "move --align --journal disk.img.journal \"$uri#s1\"");
    copy("disk.img", "old.img");
    copy("disk.img.journal", "old.journal");
    // Four steps on: of the two disks and the two journals only those of one moment belong
    // together.
    served(directory, 4, "move --resume disk.img.journal \"$uri\"");
    let check = run(directory, "check disk.img");
    // Through the server the disk had another name.
    let fix = "fix: trueline move --resume disk.img.journal disk.img\n";
    assert!(check.code == Some(1) && check.stdout.contains(fix), "{}", check.stdout);
    // No command writes to it, nor to the table around it, whatever options it has.
    fs::write(directory.join("layout"), "label: gpt\n,,L\n").expect("a layout");
    for command in [
        "part delete -i 1 disk.img",
        "part destroy -F disk.img",
        "part create --overwrite -s gpt disk.img",
        "part create --overwrite -s bsd disk.img#s1",
        "part apply --replace --sfdisk layout disk.img",
        "move --to 2MiB disk.img#s1",
        "part create --overwrite -s ebr disk.img#s1",
        "mkfs ufs --overwrite disk.img#s1",
        "mkfs ext4 --overwrite disk.img#s1",
        "mkfs ext4 --overwrite disk.img",
        "stripe label --overwrite data disk.img#s1 old.img",
        "bench random-write --destructive --count 1 disk.img#s1",
    ] {
        assert!(
            refused(directory, command).contains("trueline move --resume disk.img.journal"),
            "{command}"
        );
    }
    assert!(done(directory, "part show disk.img").contains("linux-data"));
    // A signature behind the mark is of contents in two places: no fix wipes one of the two.
    let mut swap = fs::read(directory.join("disk.img")).expect("an image");
    let first = 63 * 512;
    swap[first + 1024..][..8].copy_from_slice(&[1, 0, 0, 0, 100, 0, 0, 0]);
    swap[first + 4086..][..10].copy_from_slice(b"SWAPSPACE2");
    fs::write(directory.join("swap.img"), &swap).expect("an image");
    let check = run(directory, "check swap.img").stdout;
    assert!(
        check.contains("TL0026") && !check.contains("TL0013") && !check.contains("wipefs"),
        "{check}"
    );
    swap[first..][..16].fill(0);
    fs::write(directory.join("swap.img"), &swap).expect("an image");
    assert!(run(directory, "check swap.img").stdout.contains("swap"));
    let said = refused(directory, "move --resume old.journal disk.img");
    assert!(
        said.contains("the journal is an older copy") && said.contains("nothing was moved"),
        "{said}"
    );
    copy("disk.img", "new.img");
    copy("old.img", "disk.img");
    let said = refused(directory, "move --resume disk.img.journal disk.img");
    assert!(said.contains("disk.img is an older copy"), "{said}");
    copy("new.img", "disk.img");
    // A flipped bit in the bytes that are nowhere else, and a journal of another trueline.
    let journal = fs::read(directory.join("disk.img.journal")).expect("a journal");
    for (at, found) in [(1 << 20, "it is damaged"), (7, "a journal of format 7")] {
        let mut other = journal.clone();
        other[at] ^= 1;
        fs::write(directory.join("j"), other).expect("a journal");
        assert!(refused(directory, "move --resume j disk.img").contains(found), "{found}");
    }
    // Every way to name it.
    for command in [
        "move --resume disk.img",
        "move --resume disk.img#s1",
        "move disk.img --resume",
        "move --resume disk.img.journal disk.img",
    ] {
        assert!(
            done(directory, &format!("{command} --dry-run")).contains("saved in the journal first"),
            "{command}"
        );
    }
    let said = refused(directory, "move --resume new.img");
    assert!(said.contains("disk.img.journal and old.journal are journals of it"), "{said}");
    done(directory, "move --resume disk.img");
    assert!(has(directory, MIB, &bytes) && !directory.join("disk.img.journal").exists());
}

/// Written data may be in a cache: the journal is removed only after a flush that reports success.
#[test]
fn a_journal_is_removed_only_after_a_flush_of_the_disk() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = disk(directory);
    fs::copy(directory.join("disk.img"), directory.join("before.img")).expect("a copy");
    // A flush behind the last write fails: all is written, and the mark is gone. Each connection
    // with writes is flushed, and how many have any depends on the time, so its number is not
    // known.
    let is_written = |after: &u32| {
        let _ = fs::remove_file(directory.join("disk.img.journal"));
        fs::copy(directory.join("before.img"), directory.join("disk.img")).expect("a copy");
        served(directory, *after, "move --align --journal disk.img.journal \"$uri#s1\"");
        has(directory, MIB, &bytes) && has(directory, 63 * 512, &[0; 512])
    };
    assert!((13..20).find(is_written).is_some());
    let said = served(directory, 0, "move --resume disk.img.journal \"$uri\"");
    assert!(
        said.contains("nothing was moved") && directory.join("disk.img.journal").exists(),
        "{said}"
    );
    done(directory, "move --resume disk.img");
    assert!(has(directory, MIB, &bytes) && !directory.join("disk.img.journal").exists());
}

/// What stands on a set is in two places on each member: none of them is written to.
#[test]
fn members_of_a_set_with_a_half_moved_partition_are_not_written_to() {
    let scratch = scratch();
    let directory = scratch.path();
    for disk in ["disk.img", "other.img"] {
        zeroes(directory, disk, 48 << 20);
    }
    for command in [
        "stripe label -s 64k data disk.img other.img",
        "part create -s mbr disk.img,other.img#stripe/data",
        "part add -t linux-data -b 63 -s 64m disk.img,other.img#stripe/data",
    ] {
        done(directory, command);
    }
    served_from(
        directory,
        "disk.img,other.img#stripe/data",
        2,
        "move --to 1MiB --journal j \"$uri#s1\"",
    );
    let said = refused(directory, "stripe clear disk.img other.img");
    assert!(said.contains("the move of stripe/datas1 was interrupted"), "{said}");
    done(directory, "move --resume j disk.img,other.img#stripe/data");
    done(directory, "stripe clear disk.img other.img");
}

/// An extended partition is read by the table around it; the mark on it is found all the same.
#[test]
fn a_half_moved_extended_partition_is_not_written_to() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 96 << 20);
    for command in [
        "part create -s mbr disk.img",
        "part add -t ebr -b 63 -s 40m disk.img",
        "part add -t linux-data -s 10m disk.img#s1",
        "mkfs ufs disk.img#s5",
    ] {
        done(directory, command);
    }
    let backup = done(directory, "part backup disk.img");
    served(directory, 2, "move --to 1MiB --journal disk.img.journal \"$uri#s1\"");
    let resume = "trueline move --resume disk.img.journal";
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("TL0026 s1") && check.contains(resume), "{check}");
    for command in [
        "part create --overwrite -s ebr disk.img#s1",
        "part create -s ebr disk.img#s1",
        "mkfs ext4 --overwrite disk.img#s1",
        "part delete -i 1 disk.img",
    ] {
        let said = refused(directory, command);
        assert!(said.contains(resume), "{command}: {said}");
    }
    fs::write(directory.join("backup"), backup).expect("a backup");
    let restore = format!("'{}' part restore -F disk.img < backup", env!("CARGO_BIN_EXE_trueline"));
    let ran =
        Command::new("sh").arg("-c").arg(restore).current_dir(directory).output().expect("a shell");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(2) && said.contains(resume), "{said}");
    done(directory, "move --resume disk.img");
    assert!(done(directory, "show disk.img").contains("ufs"));
}

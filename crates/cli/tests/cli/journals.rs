//! Journals of moves and conversions: found again by the mark on the disk, whatever they are
//! called, and only where there is no doubt.

use crate::moving::{MIB, disk, done, has, refused};
use crate::moving_interrupted::served;
use crate::{converting, run, scratch, zeroes};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use trueline_geom::relocate::draft::draft;

/// Kills the command on `disk.img` until it leaves a mark on that; the disk is as `before` at the
/// start of each attempt, and no journal is there.
fn killed(directory: &Path, words: &[&str], journal: &str, before: &[u8]) {
    for attempt in 0..400_u64 {
        fs::write(directory.join("disk.img"), before).expect("an image");
        let _ = fs::remove_file(directory.join(journal));
        let mut child = Command::new(env!("CARGO_BIN_EXE_trueline"))
            .args(words)
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it runs");
        std::thread::sleep(Duration::from_millis(5 + attempt * 7 % 250));
        let _ = child.kill();
        let _ = child.wait();
        if run(directory, "check disk.img").stdout.contains("error TL0026") {
            return;
        }
    }
    panic!("{words:?} was never killed in its middle");
}

/// The half-moved disk `disk.img`, whose journal is `strange`; returns its contents.
fn half(directory: &Path) -> Vec<u8> {
    let bytes = disk(directory);
    let before = fs::read(directory.join("disk.img")).expect("an image");
    let words = ["move", "--align", "--journal", "strange", "disk.img#s1"];
    killed(directory, &words, "strange", &before);
    bytes
}

#[test]
fn a_journal_is_found_by_the_mark_whatever_its_name_is() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = half(directory);
    // Files that are none, and names of the one.
    symlink(directory.join("strange"), directory.join("a-link")).expect("a link");
    symlink("/dev/zero", directory.join("a-device")).expect("a link");
    fs::hard_link(directory.join("strange"), directory.join("also")).expect("a link");
    fs::create_dir(directory.join("b")).expect("a directory");
    let fifo = Command::new("mkfifo").arg(directory.join("fifo")).status();
    assert!(fifo.is_ok_and(|status| status.success()));
    File::create(directory.join("huge")).and_then(|file| file.set_len(1 << 40)).expect("a file");
    fs::write(directory.join("magic"), b"TLMOVE\0\x04 and no more").expect("a file");
    fs::write(directory.join("empty.journal"), b"").expect("a file");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("fix: trueline move --resume also\n"), "{check}");
    let ran = run(directory, "move --resume --dry-run disk.img");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: the journal of its move is also"), "{}", ran.stderr);
    let said = refused(directory, "part add -t linux-data disk.img");
    assert!(said.contains("trueline move --resume also"), "{said}");
    // The command of another journal, and that for whole disks.
    let said = refused(directory, "convert --resume disk.img");
    assert!(said.contains("trueline move --resume disk.img"), "{said}");
    let said = refused(directory, "convert --rollback also");
    assert!(said.contains("trueline move --rollback also"), "{said}");
    let said = refused(directory, "move --rollback disk.img");
    assert!(said.contains("the journal of one partition"), "{said}");
    // A copy of it is another file.
    fs::copy(directory.join("strange"), directory.join("copy")).expect("a copy");
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("also and copy are journals of it"), "{said}");
    let check = run(directory, "check disk.img").stdout;
    assert!(
        check.contains("trueline move --resume also disk.img, or trueline move --resume copy"),
        "{check}"
    );
    // Unless it has the usual name.
    fs::rename(directory.join("copy"), directory.join("disk.img.journal")).expect("a file");
    let ran = run(directory, "move --resume --dry-run disk.img");
    assert!(ran.code == Some(0) && !ran.stderr.contains("note: the journal"), "{}", ran.stderr);
    fs::remove_file(directory.join("disk.img.journal")).expect("a file");
    done(directory, "move --resume disk.img");
    assert!(has(directory, MIB, &bytes) && !directory.join("also").exists());
}

#[test]
fn only_a_journal_of_this_disk_is_taken() {
    let scratch = scratch();
    let directory = scratch.path();
    let bytes = half(directory);
    let name = |from: &str, to: &str| {
        fs::rename(directory.join(from), directory.join(to)).expect("a file");
    };
    // A copy of the disk has the same mark: the end of its move would take the journal away.
    fs::copy(directory.join("disk.img"), directory.join("other.img")).expect("a copy");
    let said = refused(directory, "move --resume other.img");
    assert!(
        said.contains("disk.img has the same mark") && said.contains("--resume strange other.img"),
        "{said}"
    );
    let check = run(directory, "check other.img").stdout;
    assert!(check.contains("disk.img has the same mark"), "{check}");
    // Also if that has the name after which the journal is called.
    name("strange", "disk.img.journal");
    name("other.img", "new.img");
    let said = refused(directory, "move --resume new.img");
    assert!(said.contains("disk.img has the same mark"), "{said}");
    fs::remove_file(directory.join("new.img")).expect("a file");
    // None, that of another disk, one that is damaged, one of another trueline.
    name("disk.img.journal", "kept");
    fs::create_dir(directory.join("d")).expect("a directory");
    name("kept", "d/kept");
    let said = refused(directory, "move --resume disk.img");
    assert!(
        said.contains("no journal of it is at disk.img.journal or elsewhere in the current")
            && said.contains("trueline move --resume JOURNAL disk.img"),
        "{said}"
    );
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("trueline move --resume JOURNAL, the file"), "{check}");
    let journal = fs::read(directory.join("d/kept")).expect("a journal");
    let mut other = journal.clone();
    other[90] ^= 1;
    fs::write(directory.join("disk.img.journal"), &other).expect("a journal");
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("disk.img.journal is not the journal of it, and no journal"), "{said}");
    for (at, found) in [(1 << 20, "it is damaged"), (7, "a journal of format 7")] {
        let mut other = journal.clone();
        other[at] ^= 1;
        fs::write(directory.join("j"), other).expect("a journal");
        let said = refused(directory, "move --resume disk.img");
        assert!(said.contains("j is the journal") && said.contains(found), "{said}");
        let check = run(directory, "check disk.img").stdout;
        assert!(check.contains("j is the journal") && check.contains(found), "{check}");
    }
    // A damaged copy beside a whole one does no harm.
    fs::write(directory.join("k"), &journal).expect("a journal");
    let ran = run(directory, "move --resume --dry-run disk.img");
    assert!(ran.stderr.contains("note: the journal of its move is k"), "{}", ran.stderr);
    // The disk has another name, and is in another directory.
    fs::remove_file(directory.join("disk.img.journal")).expect("a file");
    name("disk.img", "d/renamed.img");
    let check = run(directory, "check d/renamed.img").stdout;
    assert!(check.contains("d/kept and k") || check.contains("--resume d/kept d/ren"), "{check}");
    fs::remove_file(directory.join("k")).expect("a file");
    let check = run(directory, "check d/renamed.img").stdout;
    assert!(check.contains("fix: trueline move --resume d/kept d/renamed.img\n"), "{check}");
    done(directory, "move --resume d/renamed.img");
    name("d/renamed.img", "disk.img");
    assert!(has(directory, MIB, &bytes) && !directory.join("d/kept").exists());
    // The disk is for other sectors since, and an older copy of the journal is there.
    done(directory, "convert --sector-size 4096 disk.img");
    fs::write(directory.join("disk.img.journal"), journal).expect("a journal");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("is the journal of a trueline move, and none is under way"), "{check}");
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("nothing was moved"), "{said}");
    assert!(directory.join("disk.img.journal").exists());
}

/// A directory of files that are all journals of the mark: bounded, and none is taken.
#[test]
fn a_directory_full_of_journals_is_looked_at_within_bounds() {
    let scratch = scratch();
    let directory = scratch.path();
    half(directory);
    let journal = fs::read(directory.join("strange")).expect("a journal");
    for n in 0..200 {
        fs::write(directory.join(format!("j{n:03}")), &journal[..100]).expect("a file");
    }
    for n in 0..5000 {
        File::create(directory.join(format!("z{n:04}"))).expect("a file");
    }
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("is the journal") || said.contains("as far as 4096 files"), "{said}");
    let ran = run(directory, "move --resume --dry-run strange");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_conversion_is_found_by_its_mark_too() {
    let scratch = scratch();
    let directory = scratch.path();
    converting::disk(directory, "gpt");
    let before = fs::read(directory.join("disk.img")).expect("an image");
    served(directory, 1, "convert --sector-size 4096 --journal strange \"$uri\"");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("fix: trueline convert --resume strange disk.img\n"), "{check}");
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("trueline convert --resume disk.img"), "{said}");
    let said = refused(directory, "move --rollback disk.img");
    assert!(said.contains("trueline convert --rollback disk.img"), "{said}");
    fs::create_dir(directory.join("d")).expect("a directory");
    fs::rename(directory.join("strange"), directory.join("d/kept")).expect("a file");
    let said = refused(directory, "convert --resume disk.img");
    assert!(said.contains("name it: trueline convert --resume JOURNAL disk.img"), "{said}");
    // The journal of a move, and one of another conversion, on the disk of a conversion.
    let kept = fs::read(directory.join("d/kept")).expect("a journal");
    let mut other = kept.clone();
    other[25] ^= 1;
    for bytes in [b"TLMOVE\0\x04".repeat(20), other] {
        fs::write(directory.join("disk.img.journal"), bytes).expect("a journal");
        let said = refused(directory, "convert --rollback disk.img");
        assert!(said.contains("disk.img.journal is not the journal of it"), "{said}");
    }
    fs::remove_file(directory.join("disk.img.journal")).expect("a file");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("trueline convert --resume JOURNAL, the file"), "{check}");
    fs::rename(directory.join("d/kept"), directory.join("strange")).expect("a file");
    let ran = run(directory, "convert --rollback disk.img");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the journal of its convert is strange"), "{}", ran.stderr);
    assert!(fs::read(directory.join("disk.img")).expect("an image") == before);
    assert!(!directory.join("strange").exists());
    let said = refused(directory, "convert --resume disk.img");
    assert!(said.contains("no conversion of it is under way"), "{said}");
    // Of a disk that was changed since.
    fs::write(directory.join("disk.img.journal"), kept).expect("a journal");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains("is the journal of a trueline convert, and none is"), "{check}");
    done(directory, "part modify -i 1 -l other disk.img");
    let said = refused(directory, "convert --resume disk.img");
    assert!(said.contains("is another disk, or was written to since"), "{said}");
}

/// A journal that was cut short is removed by the command that would go on with it.
#[test]
fn a_journal_that_was_never_complete_is_removed() {
    let scratch = scratch();
    let directory = scratch.path();
    zeroes(directory, "disk.img", 96 << 20);
    done(directory, "part create -s mbr disk.img");
    done(directory, "part add -t linux-data -b 63 -s 64m disk.img");
    let path = directory.join("disk.img.journal");
    let mut cut = draft(&[7; 16]);
    cut.resize(1 << 20, 0);
    for bytes in [cut, Vec::new(), vec![0; 512]] {
        fs::write(&path, &bytes).expect("a journal");
        let check = run(directory, "check disk.img").stdout;
        assert!(check.contains("disk.img.journal is a journal that was never complete"), "{check}");
        let said = refused(directory, "move --align disk.img#s1");
        assert!(said.contains("--resume"), "{said}");
        for command in ["move", "convert"] {
            for target in ["disk.img", "disk.img.journal"] {
                fs::write(&path, &bytes).expect("a journal");
                let said = refused(directory, &format!("{command} --resume --dry-run {target}"));
                assert!(said.contains("would be removed") && path.exists(), "{said}");
                let said = refused(directory, &format!("{command} --resume {target}"));
                assert!(said.contains("it is removed: begin again") && !path.exists(), "{said}");
                fs::write(&path, &bytes).expect("a journal");
                let said = done(directory, &format!("{command} --rollback {target}"));
                assert!(said.contains("nothing on the disk had changed"), "{said}");
                assert!(!path.exists());
            }
        }
    }
    // A file that only begins with zeros is not one.
    fs::write(&path, vec![0; 4096]).expect("a file");
    refused(directory, "convert --resume disk.img");
    refused(directory, "move --resume disk.img");
    assert!(path.exists());
    fs::remove_file(&path).expect("a file");
    // On a disk that is half moved it is not that of the move, and stays.
    served(directory, 2, "move --align --journal strange \"$uri#s1\"");
    fs::write(&path, draft(&[7; 16])).expect("a journal");
    let ran = run(directory, "move --resume disk.img");
    assert!(ran.code == Some(0) && path.exists(), "{}", ran.stderr);
}

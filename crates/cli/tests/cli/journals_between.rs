//! Moves of a whole disk that stand between two steps, with no mark on the disk: `check` names
//! them, and what would change the table is refused.

use crate::moving::{done, refused};
use crate::moving_interrupted::served;
use crate::moving_whole::{disk, is_moved};
use crate::{run, scratch, zeroes};
use std::fs;
use std::path::Path;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::relocate::sequence::Sequence;

/// A disk whose moves stand between two steps, and its partitions; the journal is at the usual
/// place.
fn between(directory: &Path) -> Vec<Vec<u8>> {
    let all = disk(directory);
    let before = fs::read(directory.join("disk.img")).expect("an image");
    for flushes in 4..200 {
        served(directory, flushes, "move --align --journal disk.img.journal \"$uri\"");
        let check = run(directory, "check disk.img").stdout;
        if check.contains("warning TL0026") {
            return all;
        }
        fs::write(directory.join("disk.img"), &before).expect("an image");
        fs::remove_file(directory.join("disk.img.journal")).expect("a journal");
    }
    panic!("it was never between two steps");
}

/// Writes `words` into the journal, for the disk by which it is known.
fn rename(path: &Path, words: &str) {
    let mut bytes = fs::read(path).expect("a journal");
    let mut store = Sparse::new(bytes.len() as u64);
    store.put(0, &bytes);
    let (sequence, _, room) = Sequence::open(&store).expect("a journal");
    let (head, _) = sequence.head(words).expect("a head");
    assert!(head.len() as u64 <= room && store.length() == bytes.len() as u64);
    bytes[..head.len()].copy_from_slice(&head);
    fs::write(path, bytes).expect("a journal");
}

#[test]
fn it_is_named_and_its_table_is_kept() {
    let scratch = scratch();
    let directory = scratch.path();
    let all = between(directory);
    let ran = run(directory, "check disk.img");
    for wanted in [
        "warning TL0026 disk: a move of all partitions was interrupted between two steps:",
        "every partition is whole where the table says",
        "fix: trueline move --resume disk.img.journal disk.img\n",
        "or back: trueline move --rollback disk.img.journal disk.img\n",
    ] {
        assert!(ran.stdout.contains(wanted), "{wanted}: {}", ran.stdout);
    }
    let json = run(directory, "check --json disk.img").json();
    let found = json["targets"][0]["findings"].as_array().expect("findings");
    let found = found.iter().find(|finding| finding["rule"] == "TL0026").expect("a finding");
    assert_eq!(found["commands"][0], "trueline move --resume disk.img.journal disk.img");
    zeroes(directory, "two.img", 72 << 20);
    fs::write(directory.join("layout"), "label: gpt\n,,L\n").expect("a layout");
    for command in [
        "part delete -i 1 disk.img",
        "part add -t linux-data disk.img",
        "part destroy -F disk.img",
        "part create --overwrite -s gpt disk.img",
        "part delete -i 5 disk.img#s3",
        "part apply --replace --sfdisk layout disk.img",
        "move --align disk.img#s1",
        "move --align --journal j disk.img",
        "convert --sector-size 4096 disk.img",
        "mkfs ext4 --overwrite disk.img",
        "stripe label --overwrite data disk.img two.img",
    ] {
        let said = refused(directory, command);
        for wanted in ["move --resume disk.img.journal", "--rollback", "remove disk.img.journal"] {
            assert!(said.contains(wanted), "{command}: {said}");
        }
    }
    // What is in a partition may change meanwhile: it moves as it is then.
    done(directory, "part create --overwrite -s bsd disk.img#s4 --dry-run");
    done(directory, "move --resume disk.img");
    is_moved(directory, &all);
    assert!(!run(directory, "check disk.img").stdout.contains("TL0026"));
}

#[test]
fn a_journal_elsewhere_is_found_if_it_names_the_disk() {
    let scratch = scratch();
    let directory = scratch.path();
    let all = between(directory);
    let journal = directory.join("strange");
    fs::rename(directory.join("disk.img.journal"), &journal).expect("a file");
    // It knows the disk as that of a server: it may be another one.
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("no move of it is under way"), "{said}");
    let known = fs::canonicalize(directory.join("disk.img")).expect("a path");
    rename(&journal, known.to_str().expect("text"));
    fs::copy(directory.join("disk.img"), directory.join("other.img")).expect("a copy");
    assert!(refused(directory, "move --resume other.img").contains("no move of it is under way"));
    fs::copy(&journal, directory.join("twice")).expect("a copy");
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("strange and twice are journals of it"), "{said}");
    fs::remove_file(directory.join("twice")).expect("a file");
    done(directory, "move --resume disk.img");
    is_moved(directory, &all);
    assert!(!journal.exists());
}

/// Journals of what is not under way: done, not begun, of another disk.
#[test]
fn a_journal_of_nothing_is_said_and_hinders_nothing() {
    let scratch = scratch();
    let directory = scratch.path();
    between(directory);
    let path = directory.join("disk.img.journal");
    fs::copy(&path, directory.join("kept")).expect("a copy");
    let half = fs::read(directory.join("disk.img")).expect("an image");
    done(directory, "move --resume disk.img");
    let moved = fs::read(directory.join("disk.img")).expect("an image");
    fs::copy(directory.join("kept"), &path).expect("a copy");
    let idle = "note TL0026 disk: disk.img.journal is the journal of a trueline move, and none is";
    let check = run(directory, "check disk.img").stdout;
    let end = "note TL0026 disk: disk.img.journal is the journal of a move of all partitions that";
    assert!(check.contains(&format!("{end} is done\n")), "{check}");
    done(directory, "part modify -i 1 -t linux-swap disk.img");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains(idle), "{check}");
    let said = refused(directory, "move --resume disk.img");
    assert!(said.contains("nothing was moved") && path.exists(), "{said}");
    // Damaged, it says nothing of the disk.
    let mut journal = fs::read(&path).expect("a journal");
    journal[200] ^= 1;
    fs::write(&path, journal).expect("a journal");
    fs::write(directory.join("disk.img"), &half).expect("an image");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains(idle), "{check}");
    fs::copy(directory.join("kept"), &path).expect("a copy");
    done(directory, "move --rollback disk.img");
    fs::copy(directory.join("kept"), &path).expect("a copy");
    let check = run(directory, "check disk.img").stdout;
    assert!(check.contains(&format!("{end} has not begun\n")), "{check}");
    done(directory, "part modify -i 1 -t linux-swap --dry-run disk.img");
    done(directory, "move --resume disk.img");
    assert!(fs::read(directory.join("disk.img")).expect("an image") == moved);
}

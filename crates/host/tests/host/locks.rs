//! Locks of image files, between programs.

use crate::Scratch;
use crate::skip::skip;
use std::path::Path;
use std::process::{Command, Stdio};
use trueline_host::disk::file::{self, Access};

fn opens(path: &Path, access: Access) -> bool {
    file::open_for(path, access).is_ok()
}

#[test]
fn writers_are_alone_and_readers_are_not() {
    let scratch = Scratch::new();
    let path = scratch.put("disk", [0; 4096]);
    let writer = file::open_for(&path, Access::Write).unwrap();
    let refused = |access| file::open_for(&path, access).err().expect("it is refused").to_string();
    let place = path.display();
    assert_eq!(
        refused(Access::Write),
        format!(
            "write {place}: another program has locked it, a virtual machine perhaps: release it first"
        )
    );
    assert_eq!(
        refused(Access::ReadLocked),
        format!(
            "read {place}: another program has locked it for writing, a virtual machine perhaps: end that program first"
        )
    );
    // To look is free, and to have looked, which closes a descriptor of the file, does not end the
    // lock.
    assert!(opens(&path, Access::Read) && opens(&path, Access::WriteInUse));
    assert!(!opens(&path, Access::Write) && !opens(&path, Access::ReadLocked));
    drop(writer);
    let readers = [(); 2].map(|()| file::open_for(&path, Access::ReadLocked).unwrap());
    assert!(refused(Access::Write).contains("another program has locked it"));
    drop(readers);
    assert!(opens(&path, Access::Write));
}

/// The bytes that QEMU locks: `qemu-io` keeps off and is kept off where it writes. Reading, it
/// shares a raw image with a writer, with its own kind too.
#[test]
fn qemu_keeps_to_it() {
    let scratch = Scratch::new();
    let path = scratch.put("disk", vec![0; 1 << 20]);
    let qemu = |options: &[&str], command: &str| {
        let ran = Command::new("qemu-io")
            .args(["-f", "raw"])
            .args(options)
            .args(["-c", command])
            .arg(&path)
            .output();
        ran.ok().map(|ran| ran.status.success())
    };
    let Some(alone) = qemu(&[], "write 0 512") else { return skip("no qemu-io here") };
    assert!(alone);
    let writer = file::open_for(&path, Access::Write).unwrap();
    assert_eq!((qemu(&[], "write 0 512"), qemu(&["-r"], "read 0 512")), (Some(false), Some(true)));
    drop(writer);
    let reader = file::open_for(&path, Access::ReadLocked).unwrap();
    assert_eq!((qemu(&[], "write 0 512"), qemu(&["-r"], "read 0 512")), (Some(false), Some(true)));
    drop(reader);
    // While it runs, which it does until its input ends.
    let holding = |options: &[&str]| {
        let mut held = Command::new("qemu-io");
        held.args(["-f", "raw"])
            .args(options)
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        held.spawn().unwrap()
    };
    for (options, allowed) in [(&["-r"][..], true), (&[][..], false)] {
        let mut held = holding(options);
        std::io::Write::write_all(held.stdin.as_mut().unwrap(), b"read 0 512\n").unwrap();
        let mut said = [0; 64];
        // It has it open when it has read.
        while !String::from_utf8_lossy(&said).contains("read") {
            assert!(
                std::io::Read::read(held.stdout.as_mut().unwrap(), &mut said).unwrap() > 0,
                "it has ended"
            );
        }
        assert_eq!(
            [Access::Write, Access::ReadLocked].map(|access| opens(&path, access)),
            [allowed; 2],
            "{options:?}"
        );
        drop(held.stdin.take());
        held.wait().unwrap();
    }
}

//! Loop devices over a file on ext4, whose own device is traced.

use crate::device::{LoopDevice, issued};
use crate::modelled::{mixed, plans, sorted};
use crate::skip::skip;
use rustix::fs::{Advice, fadvise};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use trueline_lab::layer::{FLUSH, ask};
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;

/// The bytes of the file, which is in one piece.
const FILE: u64 = 4 << 20;
/// The bytes of the file system: small, so that it is made fast.
const SYSTEM: u64 = 64 << 20;
/// `O_DIRECT` of Linux on x86-64; the tests of requests run there.
const O_DIRECT: i32 = 0x4000;

#[test]
fn a_loop_device_over_a_file_asks_what_the_model_says() {
    let Some(device) = LoopDevice::new(SYSTEM) else { return };
    let Some(mounted) = Mounted::new(&device) else { return };
    let image = mounted.directory.join("image");
    for (direct, seed) in [(false, 1), (false, 2), (true, 3)] {
        // Reads of a file are read ahead, which the model does not do: those of random pages far
        // apart are not.
        let mut asks = mixed(seed, 1 << 20);
        asks.retain(|ask| direct || ask.op != Op::Read);
        asks.extend((0..40).map(|nth| ask(Op::Read, ((nth * 13 % 40 + 20) << 16) + 32768, 4096)));
        let keys = if direct { "direct = true" } else { "" };
        // A synchronous write around the page cache is one with FUA, and a flush.
        let sent = asks.iter().flat_map(|&ask| [ask].into_iter().chain(ask.fua.then_some(FLUSH)));
        let mut plans = plans("loop", keys, FILE, &sent.collect::<Vec<_>>()).into_iter();
        let mut planned = Vec::new();
        for ask in &asks {
            let taken = 1 + usize::from(ask.fua);
            planned.push(plans.by_ref().take(taken).flatten().collect());
        }
        let planned = sorted(planned);
        // As in `page_cache`: what is dirty may be written before its time.
        let mut differs = Vec::new();
        for _ in 0..3 {
            let Some(found) = made(&device, &image, direct, &asks) else { return };
            differs = asks.iter().zip(found.into_iter().zip(&planned)).collect();
            differs.retain(|(_, (found, planned))| found != *planned);
            if differs.is_empty() {
                break;
            }
        }
        assert!(differs.is_empty(), "direct {direct}, seed {seed}: {:?}", differs[0]);
    }
}

/// The requests of the file's own that this kernel makes for each of `asks` to a loop device over
/// it, anew.
fn made(device: &LoopDevice, image: &Path, direct: bool, asks: &[Ask]) -> Option<Vec<Vec<Ask>>> {
    std::fs::write(image, vec![1; usize::try_from(FILE).expect("it is small")])
        .expect("there is room");
    let file = File::open(image).expect("it is there");
    file.sync_all().expect("it is written");
    fadvise(&file, 0, None, Advice::DontNeed).expect("it is a hint");
    let place = place(image);
    let above = LoopDevice::over(image, direct)?;
    let opened = OpenOptions::new().read(true).write(true).custom_flags(O_DIRECT).open(&above.path);
    let found = issued(&device.path, &opened.expect("our own"), asks)?;
    let own = |asks: Vec<Ask>| asks.into_iter().filter_map(|ask| inside(ask, place)).collect();
    Some(found.into_iter().map(own).collect())
}

/// A request as one of the file at `place` of the device; `None` outside it.
fn inside(ask: Ask, place: u64) -> Option<Ask> {
    if ask.op == Op::Flush {
        return Some(ask);
    }
    let offset = ask.offset.checked_sub(place).filter(|&offset| offset < FILE)?;
    Some(Ask { offset, ..ask })
}

/// The first byte on its device of a file, which is in one piece.
fn place(file: &Path) -> u64 {
    let ran = Command::new("filefrag").args(["-v", "-b512"]).arg(file).output();
    let said = String::from_utf8(ran.expect("filefrag runs").stdout).expect("text");
    // ` 0:        0..    8191:      49152..     57343:   8192:             last,eof`
    let mut extents = said.lines().filter(|line| line.trim_start().starts_with(char::is_numeric));
    let first = extents.next().expect("an extent");
    assert!(first.contains("last") && extents.next().is_none(), "{said}");
    let physical = first.split(':').nth(2).and_then(|place| place.split("..").next());
    512 * physical.expect("a place").trim().parse::<u64>().expect("a number")
}

/// An ext4 on a device, as long as it is mounted. It has no journal, whose writes would be many.
struct Mounted {
    directory: PathBuf,
}

impl Mounted {
    /// `None`, with a word, where it cannot be made or mounted.
    fn new(device: &LoopDevice) -> Option<Mounted> {
        let directory = std::env::temp_dir().join(format!("trueline-loop-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let run = |program: &str, args: &[&str]| {
            let mut ran = Command::new(program);
            ran.args(args).arg(&device.path);
            if program == "mount" {
                ran.arg(&directory);
            }
            ran.output().is_ok_and(|ran| ran.status.success())
        };
        let made = run("mke2fs", &["-q", "-t", "ext4", "-b", "4096", "-O", "^has_journal"]);
        if made && run("mount", &["-o", "noatime,lazytime,noinit_itable"]) {
            return Some(Mounted { directory });
        }
        skip("loop devices over files of this kernel: no ext4 can be made and mounted");
        None
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.directory).status();
        let _ = std::fs::remove_dir(&self.directory);
    }
}

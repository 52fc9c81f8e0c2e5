//! Loop devices, and what this kernel asks of them.

use crate::skip::skip;
use rustix::io::{ReadWriteFlags, pwritev2};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use trueline_host::tracefs::{BlockTrace, Operation, Phase, SeenRequest, TracedDevice};
use trueline_lab::layer::ask;
use trueline_lab::rig::Op;
use trueline_lab::streams::Ask;

/// What the driver of `traced` gets for each of `asks` of the open file: of one, in the order of
/// their operations and places.
pub(crate) fn issued(traced: &Path, file: &File, asks: &[Ask]) -> Option<Vec<Vec<Ask>>> {
    let device = TracedDevice::at(traced).expect("a device of our own");
    let mut trace = match BlockTrace::start(device) {
        Ok(trace) => trace,
        Err(error) => {
            skip(&format!("requests of this kernel: {error}"));
            return None;
        }
    };
    // Direct I/O takes addresses of whole sectors.
    let mut buffer = vec![0; 2 << 20];
    let from = buffer.as_ptr().align_offset(4096);
    let mut all = Vec::with_capacity(asks.len());
    for Ask { op, offset, length, fua } in asks {
        let part = &mut buffer[from..][..usize::try_from(*length).expect("it is small")];
        match op {
            Op::Read => file.read_exact_at(part, *offset),
            Op::Write if *fua => {
                let parts = [std::io::IoSlice::new(part)];
                let wrote = pwritev2(file, &parts, *offset, ReadWriteFlags::DSYNC);
                wrote.map(|wrote| assert_eq!(wrote, part.len())).map_err(std::io::Error::from)
            }
            Op::Write => file.write_all_at(part, *offset),
            Op::Flush => file.sync_data(),
        }
        .expect("it is in the file");
        let mut seen = Vec::new();
        trace.poll(&mut |request| seen.extend(asked(&request))).expect("it is traced");
        seen.sort_by_key(|ask: &Ask| (ask.op as u8, ask.offset));
        all.push(seen);
    }
    let end = trace.finish(&mut |request| assert!(asked(&request).is_none(), "{request:?}"));
    let end = end.expect("it ends");
    assert!(end.lost == 0 && end.is_whole, "{end:?}");
    Some(all)
}

/// A request that goes to the driver.
fn asked(request: &SeenRequest) -> Option<Ask> {
    let Phase::Issued(_) = request.phase else { return None };
    let op = match request.flags.operation {
        Operation::Read => Op::Read,
        Operation::Write => Op::Write,
        Operation::Flush => return Some(trueline_lab::layer::FLUSH),
        other => panic!("{other:?} was not asked for"),
    };
    Some(ask(op, request.offset.expect("a place"), request.length))
}

/// A loop device over a sparse file, taken away when it is dropped. No other program looks at it
/// meanwhile.
pub(crate) struct LoopDevice {
    pub(crate) path: PathBuf,
    /// The file that goes with it.
    file: Option<PathBuf>,
    held: Option<Child>,
}

impl LoopDevice {
    /// One of `size` bytes; `None`, with a word, where none can be had.
    pub(crate) fn new(size: u64) -> Option<LoopDevice> {
        let name =
            format!("trueline-layers-{}-{:?}", std::process::id(), std::thread::current().id());
        let file = std::env::temp_dir().join(name.replace(['(', ')'], ""));
        File::create(&file).and_then(|made| made.set_len(size)).expect("a sparse file");
        if let Some(mut device) = LoopDevice::over(&file, false) {
            device.file = Some(file);
            return Some(device);
        }
        let _ = std::fs::remove_file(&file);
        None
    }

    /// One over a file, around the page cache if `direct`. `None` as before.
    pub(crate) fn over(file: &Path, direct: bool) -> Option<LoopDevice> {
        let skipped = |why: &str| skip(&format!("loop devices of this kernel: {why}"));
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).args(direct.then_some("--direct-io=on")).arg(file);
        let path = match losetup.output() {
            Ok(ran) if ran.status.success() => {
                PathBuf::from(String::from_utf8_lossy(&ran.stdout).trim())
            }
            Ok(ran) => {
                skipped(&format!("losetup: {}", String::from_utf8_lossy(&ran.stderr).trim()));
                return None;
            }
            Err(error) => {
                skipped(&format!("losetup: {error}"));
                return None;
            }
        };
        let mut device = LoopDevice { path, file: None, held: None };
        device.held = device.hold();
        if device.held.is_none() {
            skipped("flock(1) does not lock the device");
            return None;
        }
        Some(device)
    }

    /// Keeps udev from it, which looks at a device when it appears, under a shared lock, and waits
    /// where another has it alone (systemd's "Locking Block Device Access"). That the lock was
    /// given says that no program is looking.
    fn hold(&self) -> Option<Child> {
        let mut flock = Command::new("flock");
        flock.arg("--exclusive").arg(&self.path).args(["sh", "-c", "echo held; exec cat"]);
        let mut held = flock.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let mut said = String::new();
        let read = BufReader::new(held.stdout.take()?).read_line(&mut said);
        (read.is_ok() && said == "held\n").then_some(held)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Some(mut held) = self.held.take() {
            // cat ends with its input.
            drop(held.stdin.take());
            let _ = held.wait();
        }
        let _ = Command::new("losetup").arg("--detach").arg(&self.path).status();
        if let Some(file) = &self.file {
            let _ = std::fs::remove_file(file);
        }
    }
}

//! The host's sources against captured and hand-made input.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod engine;
mod file;
mod fuse;
mod locks;
mod lsblk;
mod nbd;
mod nbd_batches;
mod nvme;
#[path = "../../../../tests/skip.rs"]
mod skip;
mod sysfs;

use skip::skip;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use trueline_geom::base::topology::{Trust, Why};
use trueline_host::Device;

/// A fixture's text.
fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)).unwrap()
}

/// A directory that goes with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        // The path of a socket in it has at most 107 bytes, and stands in URIs, in scripts and in the table of mounts.
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/-_.".contains(byte);
        let fits = |place: &PathBuf| place.as_os_str().len() <= 40 && place.as_os_str().as_encoded_bytes().iter().all(plain);
        let place = Some(std::env::temp_dir()).filter(fits).unwrap_or("/tmp".into());
        loop {
            let name = format!("trueline-host-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
            let dir = place.join(name);
            match fs::create_dir(&dir) {
                // An earlier process with this number left it behind.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made.unwrap();
                    return Scratch(dir);
                }
            }
        }
    }

    fn put(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A loop device that goes with the test.
struct Loop(PathBuf);

impl Loop {
    /// Shows `image` as a device; `None`, and says so, where there are no loop devices to be had.
    fn new(image: &Path, options: &[&str]) -> Option<Loop> {
        let made = Loop::losetup(&[&["--find", "--show"], options].concat(), image);
        if made.is_none() {
            skip("no loop devices here (root, losetup and the loop driver)");
        }
        made.map(|device| Loop(PathBuf::from(device)))
    }

    fn path(&self) -> &Path {
        &self.0
    }

    /// Has the kernel look at the length of the image again.
    fn resize(&self) {
        Loop::losetup(&["--set-capacity"], &self.0).unwrap();
    }

    fn losetup(options: &[&str], on: &Path) -> Option<String> {
        let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
        let ran = Command::new("losetup").env("PATH", path).args(options).arg(on).output().ok()?;
        ran.status.success().then(|| String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Loop::losetup(&["--detach"], &self.0);
    }
}

/// The device called `name`.
fn find<'a>(devices: &'a [Device], name: &str) -> &'a Device {
    devices.iter().find(|d| d.name == name).unwrap_or_else(|| panic!("no {name} in {:?}", names(devices)))
}

fn names(devices: &[Device]) -> Vec<&str> {
    devices.iter().map(|d| d.name.as_str()).collect()
}

/// Size, phase and trust of a device's boundaries for `why`.
fn of(device: &Device, why: Why) -> Vec<(u64, u64, Trust)> {
    let (t, _) = device.topology();
    t.facts.iter().filter(|f| f.why == why).map(|f| (f.grain.size(), f.grain.phase(), f.trust)).collect()
}

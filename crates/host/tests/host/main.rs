//! The host's sources against captured and hand-made input.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod engine;
mod file;
mod locks;
mod lsblk;
mod nvme;
mod pipeline;
#[path = "../../../../tests/scratch.rs"]
mod scratch;
#[path = "../../../../tests/skip.rs"]
mod skip;
mod sysfs;

use scratch::Scratch;
use skip::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use trueline_geom::base::topology::{Trust, Why};
use trueline_host::Device;

/// A fixture's text.
fn fixture(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name))
        .unwrap()
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
    devices
        .iter()
        .find(|d| d.name == name)
        .unwrap_or_else(|| panic!("no {name} in {:?}", names(devices)))
}

fn names(devices: &[Device]) -> Vec<&str> {
    devices.iter().map(|d| d.name.as_str()).collect()
}

/// Size, phase and trust of a device's boundaries for `why`.
fn of(device: &Device, why: Why) -> Vec<(u64, u64, Trust)> {
    let (t, _) = device.topology();
    t.facts
        .iter()
        .filter(|f| f.why == why)
        .map(|f| (f.grain.size(), f.grain.phase(), f.trust))
        .collect()
}

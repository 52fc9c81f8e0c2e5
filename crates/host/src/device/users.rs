//! The users of a device or an image, as phrases for the message that refuses to write it.
//!
//! # Sources
//! Linux `Documentation/ABI/testing/sysfs-block-loop` (`loop/backing_file`),
//! `Documentation/ABI/stable/sysfs-block` (`holders`).

use crate::device::{Device, DeviceKind, sysfs};
use std::fs;
use std::path::Path;

/// The uses of the block device at `path`, of its partitions, and of devices above them.
pub fn users(path: &Path) -> Vec<String> {
    let Some((devices, at)) = sysfs::named(path) else { return Vec::new() };
    let own = &devices[at];
    let part = |d: &&Device| match &d.kind {
        DeviceKind::Partition { parent, .. } => *parent == own.name,
        _ => false,
    };
    std::iter::once(own).chain(devices.iter().filter(part)).flat_map(uses).collect()
}

fn uses(device: &Device) -> impl Iterator<Item = String> {
    let mounted = device.mountpoints.iter().map(|point| match point.as_str() {
        "[SWAP]" => format!("{} is swapped to", device.path),
        point => format!("{} is mounted at {point}", device.path),
    });
    mounted
        .chain(device.holders.iter().map(|holder| format!("{} is held by {holder}", device.path)))
}

/// The path of a loop device over the file at `path`, if there is one.
pub fn loop_of(path: &Path) -> Option<String> {
    let own = rustix::fs::stat(path).ok()?;
    let shown = |name: &str| {
        let file = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok()?;
        let there = rustix::fs::stat(file.strip_suffix('\n').unwrap_or(&file)).ok()?;
        Some((there.st_dev, there.st_ino) == (own.st_dev, own.st_ino))
    };
    // Only loop devices are searched, not all: this runs before each write of an image.
    let names =
        fs::read_dir("/sys/block").ok()?.flatten().filter_map(|e| e.file_name().into_string().ok());
    names
        .filter(|name| name.starts_with("loop"))
        .find(|name| shown(name) == Some(true))
        .map(|name| format!("/dev/{name}"))
}

//! This host's block devices, from sysfs.
//!
//! # Limits
//! Needs no root. An attribute that is missing (an older kernel), unreadable or malformed counts as
//! not reported. Devices without a medium (an unused loop, an empty card reader) and hidden ones
//! (the paths of a multipath NVMe drive) are left out. `size`, `start` and md's `offset` count
//! 512-byte sectors, whatever the logical block size is.
//!
//! # Sources
//! Linux `Documentation/ABI/stable/sysfs-block`, `Documentation/ABI/testing/sysfs-block-dm`,
//! `Documentation/admin-guide/md.rst`, `drivers/block/loop.c`; `proc_pid_mountinfo(5)`.

use crate::device::{self, Device, DeviceKind, Member, Signs, udev};
use crate::error::Error;
use rustix::fs::FileType;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use trueline_geom::audit::limits::Limits;

/// The unit of `size`, `start` and `offset` in bytes.
pub(crate) const SECTOR: u64 = 512;
/// The most bytes of an attribute: sysfs returns a page at most.
const ATTRIBUTE: u64 = 4096;
/// The most bytes read of a mount table.
const MOUNTS: u64 = 16 << 20;

/// The block devices of this host, each partition after its disk.
pub fn host() -> Result<Vec<Device>, Error> {
    let mut devices = read(Path::new("/sys"), Path::new("/proc/self/mountinfo"))?;
    for device in &mut devices {
        let found = udev::signs(Path::new("/run/udev/data"), device.major, device.minor);
        let mounted = device.signs.fstype.take();
        let block = mounted
            .as_ref()
            .and(device.mountpoints.first())
            .and_then(|point| block_of(Path::new(point)));
        device.signs = Signs { fstype: mounted.or(found.fstype), block, ..found };
    }
    Ok(devices)
}

/// The block size of the file system mounted at `point` in bytes: `f_frsize`, the unit that these
/// file systems allocate and write.
fn block_of(point: &Path) -> Option<u64> {
    rustix::fs::statvfs(point).ok().map(|s| s.f_frsize).filter(|&size| size > 0)
}

/// The block devices of this host, and the index of `path` among them; `None` if it is none of
/// them, or the lookup fails.
pub fn named(path: &Path) -> Option<(Vec<Device>, usize)> {
    let stat = rustix::fs::stat(path).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice).then_some(())?;
    let number = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let devices = host().ok()?;
    let at = devices.iter().position(|d| (d.major, d.minor) == number)?;
    Some((devices, at))
}

/// The path of the device that covers `length` bytes from byte `start` of the block device at
/// `path`: that device itself, or one of its partitions known to the kernel.
pub fn node(path: &Path, start: u64, length: u64) -> Option<PathBuf> {
    let (devices, at) = named(path)?;
    let own = &devices[at];
    if (start, length) == (0, own.size) {
        return Some(path.into());
    }
    let (disk, start) = match &own.kind {
        DeviceKind::Partition { parent, start: first, .. } => {
            (parent, first.as_ref()?.checked_add(start)?)
        }
        _ => (&own.name, start),
    };
    let same = |d: &&Device| match &d.kind {
        DeviceKind::Partition { parent, start: first, .. } => {
            parent == disk && *first == Some(start) && d.size == length
        }
        _ => false,
    };
    // In a container the kernel may have a partition without a node.
    devices.iter().find(same).map(|d| PathBuf::from(&d.path)).filter(|path| path.exists())
}

/// The block devices of the sysfs tree at `root`, with the mounts of `mountinfo` if it can be read.
pub fn read(root: &Path, mountinfo: &Path) -> Result<Vec<Device>, Error> {
    let block = root.join("block");
    fs::read_dir(&block).map_err(|e| Error::os("list the block devices in", &block, e))?;
    let mut devices = Vec::new();
    for name in names(&block) {
        let dir = Attributes(block.join(&name));
        if dir.number::<u8>("hidden") == Some(1) {
            continue;
        }
        let Some(disk) = whole(&dir, &name) else { continue };
        let parts = names(&dir.0)
            .into_iter()
            .filter_map(|part| partition(&Attributes(dir.0.join(&part)), &part, &disk));
        let mut parts: Vec<Device> = parts.collect();
        parts.sort_by_key(number);
        devices.push(disk);
        devices.append(&mut parts);
    }
    device::settle(&mut devices);
    mount(&mut devices, mountinfo);
    Ok(devices)
}

/// The block device of this host with a number as stat(2) tells it, with its disk's limits if it is
/// a partition; `None` if there is none, or the lookup fails.
pub fn numbered(number: u64) -> Option<Device> {
    let number = (rustix::fs::major(number), rustix::fs::minor(number));
    host().ok()?.into_iter().find(|d| (d.major, d.minor) == number)
}

/// The device with this number, with its disk's limits if it is a partition; `None` if sysfs does
/// not list it.
pub fn device(root: &Path, mountinfo: &Path, major: u32, minor: u32) -> Option<Device> {
    // All devices are read: a striped device is recognised by its members.
    read(root, mountinfo).ok()?.into_iter().find(|d| (d.major, d.minor) == (major, minor))
}

/// True if a block device has a command that writes zeros; otherwise the kernel sends zeros. A
/// partition has its disk's command.
pub fn writes_zeroes(root: &Path, major: u32, minor: u32) -> bool {
    let own = root.join(format!("dev/block/{major}:{minor}"));
    let most = |path: PathBuf| Attributes(path).number::<u64>("queue/write_zeroes_max_bytes");
    most(own.clone()).or_else(|| most(own.join(".."))).is_some_and(|most| most > 0)
}

/// The number of a partition; `None` for any other device.
fn number(device: &Device) -> Option<u32> {
    if let DeviceKind::Partition { number, .. } = device.kind { number } else { None }
}

/// A directory of files with one line each.
struct Attributes(PathBuf);

impl Attributes {
    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        fs::File::open(self.0.join(name)).ok()?.take(ATTRIBUTE).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = String::from_utf8_lossy(&self.bytes(name)?).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }

    fn number<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    /// The size in bytes of an attribute that counts 512-byte sectors.
    fn sectors(&self, name: &str) -> Option<u64> {
        self.number::<u64>(name)?.checked_mul(SECTOR)
    }

    fn flag(&self, name: &str) -> bool {
        self.number::<u8>(name) == Some(1)
    }

    fn directory(&self, name: &str) -> Option<Attributes> {
        let path = self.0.join(name);
        path.is_dir().then_some(Attributes(path))
    }
}

/// The names in a directory, sorted; empty if it cannot be read.
fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The common attributes of disks and partitions; `None` if the device has no number or no medium.
fn any(dir: &Attributes, name: &str) -> Option<Device> {
    let number = dir.text("dev")?;
    let (major, minor) = number.split_once(':')?;
    let size = dir.sectors("size").filter(|&size| size > 0)?;
    Some(Device {
        name: name.to_owned(),
        // A slash in a device's name is a bang in sysfs.
        path: format!("/dev/{}", name.replace('!', "/")),
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        size,
        alignment_offset: dir.number("alignment_offset"),
        discard_alignment: dir.number("discard_alignment"),
        read_only: dir.flag("ro"),
        slaves: names(&dir.0.join("slaves")),
        holders: names(&dir.0.join("holders")),
        ..Device::default()
    })
}

fn whole(dir: &Attributes, name: &str) -> Option<Device> {
    let device = any(dir, name)?;
    let mut limits = limits(&Attributes(dir.0.join("queue")));
    limits.alignment_offset = device.alignment_offset.unwrap_or_default();
    limits.discard_alignment = device.discard_alignment.unwrap_or_default();
    let about = Attributes(dir.0.join("device"));
    Some(Device {
        kind: kind(dir),
        limits,
        removable: dir.flag("removable"),
        model: about.text("model"),
        vendor: about.text("vendor"),
        revision: about.text("rev").or_else(|| about.text("firmware_rev")),
        wwid: dir.text("wwid").or_else(|| about.text("wwid")),
        // virtio-blk has it beside its limits.
        serial: about.text("serial").or_else(|| dir.text("serial")).or_else(|| serial(&about)),
        nsid: dir.number("nsid"),
        ..device
    })
}

/// The serial number in page 80h of a SCSI drive's vital product data: behind four bytes, of which
/// the fourth is its length.
fn serial(about: &Attributes) -> Option<String> {
    let page = about.bytes("vpd_pg80")?;
    let text = page.get(4..4 + usize::from(*page.get(3)?))?;
    let text = String::from_utf8_lossy(text).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn partition(dir: &Attributes, name: &str, disk: &Device) -> Option<Device> {
    let number = Some(dir.number("partition")?);
    let kind = DeviceKind::Partition {
        parent: disk.name.clone(),
        number,
        start: dir.sectors("start"),
        whole: disk.size,
    };
    Some(Device { kind, limits: disk.limits.clone(), removable: disk.removable, ..any(dir, name)? })
}

fn limits(queue: &Attributes) -> Limits {
    let bytes = |name| queue.number(name).unwrap_or_default();
    Limits {
        logical_block_size: bytes("logical_block_size"),
        physical_block_size: bytes("physical_block_size"),
        minimum_io_size: bytes("minimum_io_size"),
        optimal_io_size: bytes("optimal_io_size"),
        discard_granularity: bytes("discard_granularity"),
        discard_max_bytes: queue.number("discard_max_bytes"),
        chunk_sectors: bytes("chunk_sectors"),
        atomic_write_unit_min_bytes: bytes("atomic_write_unit_min_bytes"),
        atomic_write_unit_max_bytes: bytes("atomic_write_unit_max_bytes"),
        atomic_write_boundary_bytes: bytes("atomic_write_boundary_bytes"),
        dma_alignment: queue.number("dma_alignment"),
        max_sectors_kb: queue.number("max_sectors_kb"),
        rotational: queue.number::<u8>("rotational").map(|r| r != 0),
        zoned: queue.text("zoned"),
        ..Limits::default()
    }
}

fn kind(dir: &Attributes) -> DeviceKind {
    if let Some(dm) = dir.directory("dm") {
        return DeviceKind::Dm { name: dm.text("name"), uuid: dm.text("uuid") };
    }
    if let Some(md) = dir.directory("md") {
        return DeviceKind::Md {
            level: md.text("level"),
            // The value 0 means that this level has no chunks.
            chunk: md.number("chunk_size").filter(|&chunk| chunk > 0),
            // While the set grows, the value reads "3 (4)".
            disks: md.text("raid_disks").and_then(|n| n.split_whitespace().next()?.parse().ok()),
            metadata: md.text("metadata_version"),
            members: members(&md),
        };
    }
    if let Some(file) = dir.directory("loop") {
        return DeviceKind::Loop {
            backing_file: file.text("backing_file"),
            offset: file.number("offset").unwrap_or_default(),
            sizelimit: file.number("sizelimit").unwrap_or_default(),
        };
    }
    DeviceKind::Disk
}

/// The members of a set: `rd0`, `rd1`, ... are links to `dev-NAME`, where the member's data begin
/// at `offset`.
fn members(md: &Attributes) -> Vec<Member> {
    let slots = names(&md.0)
        .into_iter()
        .filter_map(|name| Some((name.strip_prefix("rd")?.parse().ok()?, name)));
    let mut members: Vec<Member> = slots
        .map(|(slot, name)| {
            let link = fs::read_link(md.0.join(&name)).ok();
            let device =
                link.and_then(|l| Some(l.file_name()?.to_str()?.strip_prefix("dev-")?.to_owned()));
            Member { slot, device, offset: Attributes(md.0.join(&name)).sectors("offset") }
        })
        .collect();
    members.sort_by_key(|m| m.slot);
    members
}

/// Adds mount points. A file system over several devices (Btrfs) has a number of its own and is
/// found by its source.
fn mount(devices: &mut [Device], mountinfo: &Path) {
    let mut text = Vec::new();
    let _ = fs::File::open(mountinfo).and_then(|f| f.take(MOUNTS).read_to_end(&mut text));
    for line in String::from_utf8_lossy(&text).lines() {
        let mut fields = line.split(' ');
        let (Some(number), Some(point)) = (fields.nth(2), fields.nth(1)) else { continue };
        let mut after = fields.skip_while(|&f| f != "-").skip(1);
        let (fstype, source) = (after.next(), after.next().map(unescape));
        let found = devices.iter_mut().find(|d| {
            let mapped = match &d.kind {
                DeviceKind::Dm { name: Some(name), .. } => {
                    source.as_deref() == Some(&format!("/dev/mapper/{name}"))
                }
                _ => false,
            };
            let is_source = mapped || source.as_ref() == Some(&d.path);
            number == format!("{}:{}", d.major, d.minor) || (number.starts_with("0:") && is_source)
        });
        let point = unescape(point);
        if let Some(device) = found.filter(|d| !d.mountpoints.contains(&point)) {
            device.mountpoints.push(point);
            // The mount table is reliable, whether or not this user may read the device.
            device.signs.fstype = fstype.map(str::to_owned);
        }
    }
}

/// Decodes blank, tab, newline and backslash, which are written as a backslash and three octal
/// digits.
fn unescape(field: &str) -> String {
    let mut pieces = field.split('\\');
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let code = piece.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(code) => text.extend(std::iter::once(char::from(code)).chain(piece[3..].chars())),
            None => text.extend(std::iter::once('\\').chain(piece.chars())),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_what_is_mounted_is_known_to_any_user() {
        let block = block_of(Path::new("/")).unwrap();
        assert!(block.is_power_of_two() && (512..=1 << 20).contains(&block), "{block}");
        assert_eq!(block_of(Path::new("/no such place")), None);
    }
}

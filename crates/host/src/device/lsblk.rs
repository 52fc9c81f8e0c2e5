//! Another host's block devices, from `lsblk -OJb`.
//!
//! # Limits
//! Columns come and go between versions, and numbers are strings before util-linux 2.33. All forms
//! are accepted, and a missing column is not reported. Without `START` (before 2.38) a partition is
//! judged by its own alignment alone. So is one whose `START` cannot be true, which is a finding.
//! There is nothing about atomic writes, and nothing about md but its level: the chunk of a striped
//! set is its `MIN-IO`.
//!
//! # Sources
//! `lsblk(8)`; util-linux release notes 2.33, 2.38 and `misc-utils/lsblk.c`: `START` counts
//! 512-byte sectors, everything else is bytes with `-b`.

use crate::device::{self, Device, DeviceKind, Signs};
use crate::error::{Cause, Error};
use serde_json::Value;
use trueline_geom::audit::limits::Limits;
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::topology::Grain;

/// The devices in the output of `lsblk -OJb`, each after those beneath it. `place` names the output
/// in an error.
pub fn parse(text: &str, place: &str) -> Result<Vec<Device>, Error> {
    const ATTEMPT: &str = "read lsblk's output from";
    let json: Value = serde_json::from_str(text).map_err(|e| Error {
        attempt: ATTEMPT,
        place: place.to_owned(),
        source: Cause::Json(e),
        remedy: "save what lsblk -OJb prints".into(),
    })?;
    let Some(list) = json.get("blockdevices").and_then(Value::as_array) else {
        return Err(Error::not(
            ATTEMPT,
            place,
            "no \"blockdevices\"",
            "save what lsblk -OJb prints",
        ));
    };
    if let Some(size) = list
        .iter()
        .find_map(|e| Some(e.get("size")?.as_str()?).filter(|s| s.trim().parse::<u64>().is_err()))
    {
        return Err(Error::not(
            ATTEMPT,
            place,
            format!("a size of {size:?} is not in bytes"),
            "run lsblk with -b as well",
        ));
    }
    let mut devices = Vec::new();
    add(list, None, &mut devices);
    for i in 0..devices.len() {
        inherit(i, &mut devices);
        if let DeviceKind::Partition { whole: 1.., .. } = devices[i].kind {
            // A partition's limits are its disk's, and the finding is reported there.
            devices[i].findings.retain(|f| *f.rule != finding::LIMITS);
        }
    }
    devices.retain(|d| d.size > 0);
    device::settle(&mut devices);
    Ok(devices)
}

/// Adds a list and the lists nested in it. A device over several others is listed under each of
/// them.
fn add(list: &[Value], parent: Option<&str>, devices: &mut Vec<Device>) {
    for entry in list {
        let entry = ListedDevice(entry);
        let Some(mut device) = device(entry) else { continue };
        let name = device.name.clone();
        let parent = parent.map(str::to_owned).or_else(|| entry.text("pkname"));
        if let (DeviceKind::Partition { parent: disk, .. }, Some(parent)) =
            (&mut device.kind, &parent)
        {
            disk.clone_from(parent);
        } else if let Some(parent) = parent {
            if let Some(below) = devices.iter_mut().find(|d| d.name == parent) {
                push(&mut below.holders, &name);
            }
            push(&mut device.slaves, &parent);
        }
        match devices.iter_mut().find(|d| d.name == name) {
            Some(known) => device.slaves.iter().for_each(|slave| push(&mut known.slaves, slave)),
            None => devices.push(device),
        }
        if let Some(children) = entry.0.get("children").and_then(Value::as_array) {
            add(children, Some(&name), devices);
        }
    }
}

fn push(names: &mut Vec<String>, name: &str) {
    if !names.iter().any(|n| n == name) {
        names.push(name.to_owned());
    }
}

/// Gives a partition its disk's limits, or shifts its own into its disk's addresses if the disk is
/// not listed.
fn inherit(i: usize, devices: &mut [Device]) {
    let DeviceKind::Partition { parent, start, .. } = &devices[i].kind else { return };
    let (parent, start) = (parent.clone(), *start);
    let disk = devices.iter().find(|d| d.name == parent).map(|d| (d.limits.clone(), d.size));
    let device = &mut devices[i];
    if let Some((limits, size)) = disk {
        device.limits = limits;
        if let DeviceKind::Partition { whole, .. } = &mut device.kind {
            *whole = size;
        }
    } else if let Some(start) = start {
        let limits = &mut device.limits;
        let on_disk =
            |size: u64, own: u64| Grain::new(size, own.checked_add(start)?).map(Grain::phase);
        let granularity = limits.minimum_io_size.max(limits.physical_block_size);
        let own = u64::try_from(limits.alignment_offset).ok();
        if let Some(phase) = own
            .and_then(|own| on_disk(granularity, own))
            .and_then(|phase| i64::try_from(phase).ok())
        {
            limits.alignment_offset = phase;
        }
        limits.discard_alignment =
            on_disk(limits.discard_granularity, limits.discard_alignment).unwrap_or_default();
    }
}

/// The columns of one device.
#[derive(Clone, Copy)]
struct ListedDevice<'a>(&'a Value);

impl ListedDevice<'_> {
    fn text(self, column: &str) -> Option<String> {
        let text = self.0.get(column)?.as_str()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn number(self, column: &str) -> Option<i64> {
        match self.0.get(column)? {
            Value::Number(n) => n.as_i64(),
            Value::String(s) => s.trim().parse().ok(),
            _ => None,
        }
    }

    /// As [`ListedDevice::number`], for numbers of any length.
    fn whole(self, column: &str) -> Option<i128> {
        match self.0.get(column)? {
            Value::Number(n) => n.as_i128(),
            Value::String(s) => s.trim().parse().ok(),
            _ => None,
        }
    }

    /// The first byte of a partition on its disk, if its `START` is valid: no disk is longer than
    /// an `off_t` counts.
    fn start(self) -> Option<u64> {
        let bytes = self.whole("start")?.checked_mul(512)?;
        i64::try_from(bytes).ok().and_then(|bytes| u64::try_from(bytes).ok())
    }

    fn bytes(self, column: &str) -> Option<u64> {
        u64::try_from(self.number(column)?).ok()
    }

    fn flag(self, column: &str) -> Option<bool> {
        self.0.get(column)?.as_bool().or_else(|| Some(self.number(column)? != 0))
    }

    fn mountpoints(self) -> Vec<String> {
        let all = self
            .0
            .get("mountpoints")
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let one = self.0.get("mountpoint");
        let mut points = Vec::new();
        all.iter()
            .chain(one)
            .filter_map(Value::as_str)
            .filter(|p| !p.is_empty())
            .for_each(|p| push(&mut points, p));
        points
    }
}

fn device(entry: ListedDevice<'_>) -> Option<Device> {
    let shown = entry.text("name");
    let name = entry.text("kname").or_else(|| shown.clone())?;
    let numbers = entry.text("maj:min").unwrap_or_default();
    let numbers = numbers
        .split_once(':')
        .and_then(|(major, minor)| Some((major.trim().parse().ok()?, minor.trim().parse().ok()?)));
    let (major, minor) = numbers.unwrap_or_default();
    let bytes = |column| entry.bytes(column).unwrap_or_default();
    let limits = Limits {
        logical_block_size: bytes("log-sec"),
        physical_block_size: bytes("phy-sec"),
        minimum_io_size: bytes("min-io"),
        optimal_io_size: bytes("opt-io"),
        alignment_offset: entry.number("alignment").unwrap_or_default(),
        discard_granularity: bytes("disc-gran"),
        discard_alignment: bytes("disc-aln"),
        discard_max_bytes: entry.bytes("disc-max"),
        rotational: entry.flag("rota"),
        zoned: entry.text("zoned"),
        ..Limits::default()
    };
    let path = entry.text("path").unwrap_or_else(|| format!("/dev/{}", name.replace('!', "/")));
    Some(Device {
        findings: doubts(entry, &name),
        path,
        major,
        minor,
        size: bytes("size"),
        kind: kind(entry, shown),
        alignment_offset: entry.number("alignment"),
        discard_alignment: entry.bytes("disc-aln"),
        limits,
        read_only: entry.flag("ro").unwrap_or_default(),
        removable: entry.flag("rm").unwrap_or_default(),
        model: entry.text("model"),
        serial: entry.text("serial"),
        vendor: entry.text("vendor"),
        revision: entry.text("rev"),
        wwid: entry.text("wwn"),
        mountpoints: entry.mountpoints(),
        signs: Signs {
            fstype: entry.text("fstype"),
            block: None,
            label: entry.text("label"),
            uuid: entry.text("uuid"),
            pttype: entry.text("pttype"),
            parttype: entry.text("parttype"),
            partlabel: entry.text("partlabel"),
        },
        name,
        ..Device::default()
    })
}

/// Findings about listed numbers that cannot be true.
fn doubts(entry: ListedDevice<'_>, name: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for column in ["phy-sec", "log-sec"] {
        if let Some(size) = entry.whole(column).filter(|&size| size <= 0) {
            let message = format!(
                "{} of {name} is {size} bytes, which is not possible: nothing is judged by it",
                column.to_uppercase()
            );
            let fix = "list the host again, with the lsblk of its own system";
            found.push(Finding::new(&finding::LIMITS, Severity::Warning, 0, message).fix(fix));
        }
    }
    if let Some(start) = entry.whole("start").filter(|_| entry.start().is_none()) {
        let message = format!(
            "{name} would start at sector {start}, which no disk has: its ALIGNMENT is used instead"
        );
        let fix =
            "list the host again, with the lsblk of its own system; sfdisk --dump prints its start";
        found.push(Finding::new(&finding::RANGE, Severity::Error, 0, message).fix(fix));
    }
    found
}

fn kind(entry: ListedDevice<'_>, shown: Option<String>) -> DeviceKind {
    let kind = entry.text("type").unwrap_or_default();
    match kind.as_str() {
        "part" => {
            // `PARTN` is new in 2.39; the kernel's name ends with the number.
            let name = entry.text("kname").or(shown).unwrap_or_default();
            let digits = name
                .trim_start_matches(|c: char| !c.is_ascii_digit())
                .rsplit(|c: char| !c.is_ascii_digit())
                .next();
            let number = entry
                .bytes("partn")
                .and_then(|n| u32::try_from(n).ok())
                .or_else(|| digits?.parse().ok());
            DeviceKind::Partition { parent: String::new(), number, start: entry.start(), whole: 0 }
        }
        "loop" => DeviceKind::Loop { backing_file: None, offset: 0, sizelimit: 0 },
        "crypt" | "lvm" | "dm" | "mpath" | "dmraid" => DeviceKind::Dm { name: shown, uuid: None },
        // md's level is its type; an inactive set is "md".
        level if level.starts_with("raid") || matches!(level, "linear" | "md") => DeviceKind::Md {
            level: Some(kind),
            chunk: None,
            disks: None,
            metadata: None,
            members: Vec::new(),
        },
        _ => DeviceKind::Disk,
    }
}

//! Devices of this host, or of another one as `lsblk` or `nvme` listed them: each a target.

use crate::failure::Reason;
use crate::measured;
use crate::report::{self, Provider, UnreadTarget};
use crate::survey::{survey, survey_with};
use crate::target::{DiskOverrides, Target};
use reported::{number, reported};
use std::io::{self, Read};
use std::path::Path;
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::graph::{Bytes, Disk, Graph, Reported};
use trueline_geom::probe::Limits;
use trueline_host::device::{Device, DeviceKind, lsblk, nvme, sysfs};
use trueline_host::disk::file;

mod reported;

/// Longest list of devices, in bytes: ten thousand devices take some thirty megabytes.
const LISTED: u64 = 64 << 20;

/// Every block device of this host: its contents if they can be read, else what sysfs and udev
/// report.
pub(crate) fn this_host(overrides: &DiskOverrides) -> Result<Vec<report::Target>, Reason> {
    let devices = sysfs::host()?;
    targets(&devices, overrides, true)
}

/// A whole device of this host that the user named, with what sysfs reports of it; `None` if it is
/// not one.
pub(crate) fn named(
    name: &Target,
    overrides: &DiskOverrides,
) -> Option<Result<report::Target, Reason>> {
    let (devices, at) = sysfs::named(name.only_path()?)?;
    let device = devices.get(at).filter(|d| !matches!(d.kind, DeviceKind::Partition { .. }))?;
    let target = target(device, &devices, overrides, true);
    Some(target.map(|target| report::Target { target: name.typed().into(), ..target }))
}

/// Text of a file of `lsblk -OJb` or `nvme id-ns -o json`, and the name of its place for messages.
pub(crate) struct Listing {
    place: String,
    text: Result<String, Reason>,
}

impl Listing {
    /// The text of what is open at `place`. An error of it: a failed read, a list longer than any
    /// host's.
    pub(crate) fn read(place: String, reader: &mut dyn Read) -> Listing {
        let mut text = String::new();
        match reader.take(LISTED + 1).read_to_string(&mut text) {
            Err(e) => Listing::unread(place, &e),
            Ok(read) if read as u64 > LISTED => {
                let why = format!("read {place}: more than {LISTED} bytes: no host lists as much");
                Listing { place, text: Err(Reason(why)) }
            }
            Ok(_) => Listing { place, text: Ok(text) },
        }
    }

    /// A file that cannot be read.
    pub(crate) fn unread(place: String, e: &io::Error) -> Listing {
        let why = format!(
            "read {place}: {e}: save what lsblk -OJb or nvme id-ns -o json prints, or names"
        );
        Listing { place, text: Err(Reason(why)) }
    }

    fn text(&self) -> Result<&str, Reason> {
        self.text.as_deref().map_err(Clone::clone)
    }
}

/// The targets that files of `lsblk -OJb` or `nvme id-ns -o json` list, and an error for each file
/// that cannot be read.
pub(crate) fn from_files(
    files: &[Listing],
    overrides: &DiskOverrides,
) -> (Vec<report::Target>, Vec<UnreadTarget>) {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for file in files {
        match from_file(file, overrides) {
            Ok(targets) => all.extend(targets),
            Err(failure) => failures.push(failure.0.into()),
        }
    }
    (all, failures)
}

fn from_file(file: &Listing, overrides: &DiskOverrides) -> Result<Vec<report::Target>, Reason> {
    let (place, text) = (&file.place, file.text()?);
    if text.contains("\"blockdevices\"") {
        targets(&lsblk::parse(text, place)?, overrides, false)
    } else {
        namespaces(text, place, overrides)
    }
}

/// Adds a drive's own description, from files of `nvme id-ns -o json`, to the overrides for images
/// that are for that drive.
pub(crate) fn adopt_files(files: &[Listing], overrides: &mut DiskOverrides) -> Result<(), Reason> {
    for file in files {
        let (place, text) = (&file.place, file.text()?);
        if text.contains("\"blockdevices\"") {
            return Err(Reason(format!(
                "read {place}: lsblk's list is of devices of its own: name no targets beside it"
            )));
        }
        let [ref namespace] = nvme::parse(text, place)?[..] else {
            return Err(Reason(format!(
                "read {place}: several namespaces: which one the targets are for is not known"
            )));
        };
        if let Some((topology, _)) = namespace.topology() {
            overrides.adopt(&topology);
        }
    }
    Ok(())
}

fn namespaces(
    text: &str,
    place: &str,
    overrides: &DiskOverrides,
) -> Result<Vec<report::Target>, Reason> {
    let found = nvme::parse(text, place)?;
    let several = found.len() > 1;
    let disks = found.iter().enumerate().filter_map(|(i, namespace)| {
        let (topology, findings) = namespace.topology()?;
        let name = if several { format!("{place}[{i}]") } else { place.to_string() };
        let nop = Some(overrides.nop(topology.length));
        let bytes = Bytes::Reported(Reported::default());
        Some((
            name,
            Disk {
                name: String::new(),
                bytes,
                topology,
                start: Some(0),
                serial: None,
                nop,
                findings,
                references: Vec::new(),
                refused: Vec::new(),
                format: None,
            },
        ))
    });
    disks
        .map(|(name, disk)| {
            survey(&Target::title(&name), &Graph::taste(vec![disk], Limits::default()), None)
        })
        .collect()
}

/// A target for every device except partitions whose disk is listed. `read`: the devices are this
/// host's, so their contents are read.
fn targets(
    devices: &[Device],
    overrides: &DiskOverrides,
    read: bool,
) -> Result<Vec<report::Target>, Reason> {
    let listed = |name: &String| devices.iter().any(|d| d.name == *name);
    let whole = devices
        .iter()
        .filter(|d| !matches!(&d.kind, DeviceKind::Partition { parent, .. } if listed(parent)));
    whole.map(|device| target(device, devices, overrides, read)).collect()
}

fn target(
    device: &Device,
    all: &[Device],
    overrides: &DiskOverrides,
    read: bool,
) -> Result<report::Target, Reason> {
    let parts: Vec<&Device> = all
        .iter()
        .filter(
            |d| matches!(&d.kind, DeviceKind::Partition { parent, .. } if *parent == device.name),
        )
        .collect();
    let (topology, mut findings) = measured::topology(device);
    let opened = read.then(|| file::open(Path::new(&device.path)));
    let tasted = matches!(opened, Some(Ok(_)));
    let bytes = match opened {
        Some(Ok(opened)) => Bytes::Store(Box::new(opened.store)),
        Some(Err(why)) => {
            let message = format!("not read, so judged by what sysfs and udev tell: {why}");
            findings.push(Finding::new(&finding::UNREAD, Severity::Note, 0, message));
            Bytes::Reported(reported(device, &parts, all))
        }
        None => Bytes::Reported(reported(device, &parts, all)),
    };
    let nop = Some(overrides.nop(topology.length));
    let disk = Disk {
        name: String::new(),
        bytes,
        topology,
        start: device.medium_start(),
        serial: device.serial.clone(),
        nop,
        findings,
        references: Vec::new(),
        refused: Vec::new(),
        format: None,
    };
    let mut graph = Graph::taste_with(vec![disk], Limits::default(), overrides.keys());
    if tasted {
        let differs = kernel_differs(&graph, &parts);
        graph.providers[0].findings.extend(differs);
    }
    leave_to_the_kernel(&mut graph, device, &parts);
    let mut target = survey_with(&Target::file(&device.path), Some(overrides), &graph, None)?;
    for provider in &mut target.providers {
        annotate(provider, device, &parts);
    }
    Ok(target)
}

/// Drops what is said of incomplete sets where the kernel has the set: the members are devices of
/// their own, and so is the set.
fn leave_to_the_kernel(graph: &mut Graph, device: &Device, parts: &[&Device]) {
    for provider in &mut graph.providers {
        let part = parts.iter().copied().find(|part| {
            matches!(part.kind, DeviceKind::Partition { start, .. } if start == provider.start)
                && part.size == provider.topology.length
        });
        let here = if provider.parents.is_empty() { Some(device) } else { part };
        if here.is_some_and(|here| !here.holders.is_empty()) {
            provider.findings.retain(|finding| *finding.rule != finding::INCOMPLETE);
        }
    }
}

/// Findings for partitions of the kernel that the table on the disk does not have, and for a table
/// whose partitions it lacks.
fn kernel_differs(graph: &Graph, parts: &[&Device]) -> Vec<Finding> {
    let Some(table) = graph.providers[0].slices() else { return Vec::new() };
    let mut found = Vec::new();
    if parts.is_empty() && !table.entries.is_empty() {
        let message =
            format!("the kernel has none of the {} partitions in this table", table.entries.len());
        found.push(
            Finding::new(&finding::KERNEL, Severity::Note, 0, message)
                .fix("have it read: partx --add, or partprobe"),
        );
    }
    for part in parts {
        let DeviceKind::Partition { start: Some(start), .. } = part.kind else { continue };
        // The kernel shows an extended partition as its first sectors only; nested tables are its
        // own providers.
        let known = graph
            .providers
            .iter()
            .any(|p| p.start == Some(start) && (p.topology.length == part.size || p.is_extended()));
        if !known {
            let message = format!(
                "the kernel has {} at byte {start}, {} bytes long; the table on the disk has no such partition",
                part.name, part.size
            );
            let finding = Finding::new(&finding::KERNEL, Severity::Warning, start, message);
            found.push(finding.fix(
                "the table was changed while the disk was in use: partx --update, or restart",
            ));
        }
    }
    found
}

/// Adds mount points, members and classes, which only a running host has.
fn annotate(provider: &mut Provider, device: &Device, parts: &[&Device]) {
    let here = if provider.provider.is_empty() {
        Some(device)
    } else {
        let at = |p: &&&Device| {
            matches!(p.kind, DeviceKind::Partition { start, .. } if start == provider.start)
                && p.size == provider.length
        };
        // Without a place, the number identifies the partition.
        let own = |p: &&Device| {
            number(p).is_some_and(|n| provider.provider.get(1..) == Some(&n.to_string()))
        };
        parts.iter().find(|p| at(p) && (provider.placed || own(p))).copied()
    };
    provider.mountpoint = here.and_then(|d| d.mountpoints.first().cloned());
    if provider.provider.is_empty() {
        provider.members.clone_from(&device.slaves);
        provider.class = match device.kind {
            DeviceKind::Md { .. } => "md",
            DeviceKind::Dm { .. } => "dm",
            _ => provider.class,
        };
    }
}

#[cfg(test)]
mod tests;

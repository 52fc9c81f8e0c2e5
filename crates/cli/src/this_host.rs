//! Devices of this host, or of another one as `lsblk` or `nvme` listed them: each a target.

use crate::report::{Provider, Target};
use crate::survey::{survey, survey_with};
use crate::target::DiskOverrides;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::topology::round_down;
use trueline_geom::format::{Data, Inside, Sign};
use trueline_geom::graph::{Bytes, Disk, Graph, Reported, Unplaced};
use trueline_geom::mapping::slices::{self, Slice, Slices};
use trueline_geom::probe::Limits;
use trueline_geom::registry::reported_sign;
use trueline_host::device::{Device, Kind, Signs, lsblk, nvme, sysfs};
use trueline_host::disk::file;

/// Longest list of devices, in bytes: ten thousand devices take some thirty megabytes.
const LISTED: u64 = 64 << 20;

/// Every block device of this host: its contents if they can be read, else what sysfs and udev
/// report.
pub(crate) fn this_host(overrides: &DiskOverrides) -> Result<Vec<Target>, String> {
    let devices = sysfs::host().map_err(|e| e.to_string())?;
    targets(&devices, overrides, true)
}

/// A whole device of this host that the user named, with what sysfs reports of it; `None` if it is
/// not one.
pub(crate) fn named(name: &str, overrides: &DiskOverrides) -> Option<Result<Target, String>> {
    let (devices, at) = sysfs::named(Path::new(name))?;
    let device = devices.get(at).filter(|d| !matches!(d.kind, Kind::Partition { .. }))?;
    let target = target(device, &devices, overrides, true);
    Some(target.map(|target| Target { target: name.into(), ..target }))
}

/// The targets that files of `lsblk -OJb` or `nvme id-ns -o json` list, and an error for each file
/// that cannot be read.
pub(crate) fn from_files(
    files: &[PathBuf],
    overrides: &DiskOverrides,
) -> (Vec<Target>, Vec<String>) {
    let (mut all, mut failures) = (Vec::new(), Vec::new());
    for path in files {
        match from_file(path, overrides) {
            Ok(targets) => all.extend(targets),
            Err(failure) => failures.push(failure),
        }
    }
    (all, failures)
}

fn from_file(path: &Path, overrides: &DiskOverrides) -> Result<Vec<Target>, String> {
    let (place, text) = read(path)?;
    if text.contains("\"blockdevices\"") {
        targets(&lsblk::parse(&text, &place).map_err(|e| e.to_string())?, overrides, false)
    } else {
        namespaces(&text, &place, overrides)
    }
}

/// Name of a file for messages, and its text; `-` is standard input. Errors: a failed read, a list
/// longer than any host's.
fn read(path: &Path) -> Result<(String, String), String> {
    let stdin = path == Path::new("-");
    let place = if stdin { "stdin".to_string() } else { path.display().to_string() };
    let mut text = String::new();
    let read = if stdin {
        io::stdin().take(LISTED + 1).read_to_string(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(LISTED + 1).read_to_string(&mut text))
    };
    let read = read.map_err(|e| {
        format!("read {place}: {e}: save what lsblk -OJb or nvme id-ns -o json prints")
    })?;
    if read as u64 > LISTED {
        Err(format!("read {place}: more than {LISTED} bytes: no host lists as much"))
    } else {
        Ok((place, text))
    }
}

/// Adds a drive's own description, from files of `nvme id-ns -o json`, to the overrides for images
/// that are for that drive.
pub(crate) fn adopt_files(files: &[PathBuf], overrides: &mut DiskOverrides) -> Result<(), String> {
    for path in files {
        let (place, text) = read(path)?;
        if text.contains("\"blockdevices\"") {
            return Err(format!(
                "read {place}: lsblk's list is of devices of its own: name no targets beside it"
            ));
        }
        let [ref namespace] = nvme::parse(&text, &place).map_err(|e| e.to_string())?[..] else {
            return Err(format!(
                "read {place}: several namespaces: which one the targets are for is not known"
            ));
        };
        if let Some((topology, _)) = namespace.topology() {
            overrides.adopt(&topology);
        }
    }
    Ok(())
}

fn namespaces(text: &str, place: &str, overrides: &DiskOverrides) -> Result<Vec<Target>, String> {
    let found = nvme::parse(text, place).map_err(|e| e.to_string())?;
    let several = found.len() > 1;
    let disks = found.iter().enumerate().filter_map(|(i, namespace)| {
        let (topology, findings) = namespace.topology()?;
        let name = if several { format!("{place}[{i}]") } else { place.to_string() };
        let nop = Some(overrides.nop(topology.length));
        let bytes = Bytes::Reported(Reported::default());
        Some((name, Disk { name: String::new(), bytes, topology, start: Some(0), nop, findings }))
    });
    disks
        .map(|(name, disk)| survey(&name, &Graph::taste(vec![disk], Limits::default()), None))
        .collect()
}

/// A target for every device except partitions whose disk is listed. `read`: the devices are this
/// host's, so their contents are read.
fn targets(
    devices: &[Device],
    overrides: &DiskOverrides,
    read: bool,
) -> Result<Vec<Target>, String> {
    let listed = |name: &String| devices.iter().any(|d| d.name == *name);
    let whole = devices
        .iter()
        .filter(|d| !matches!(&d.kind, Kind::Partition { parent, .. } if listed(parent)));
    whole.map(|device| target(device, devices, overrides, read)).collect()
}

fn target(
    device: &Device,
    all: &[Device],
    overrides: &DiskOverrides,
    read: bool,
) -> Result<Target, String> {
    let parts: Vec<&Device> = all
        .iter()
        .filter(|d| matches!(&d.kind, Kind::Partition { parent, .. } if *parent == device.name))
        .collect();
    let (topology, mut findings) = device.topology();
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
    let disk =
        Disk { name: String::new(), bytes, topology, start: device.medium_start(), nop, findings };
    let mut graph = Graph::taste(vec![disk], Limits::default());
    if tasted {
        let differs = kernel_differs(&graph, &parts);
        graph.providers[0].findings.extend(differs);
    }
    let mut target = survey_with(&device.path, Some(overrides), &graph, None)?;
    for provider in &mut target.providers {
        annotate(provider, device, &parts);
    }
    Ok(target)
}

/// Contents of the device as the kernel and udev report them.
fn reported(device: &Device, parts: &[&Device], all: &[Device]) -> Reported {
    let signs = |d: &Device| sign_of(d, all).into_iter().collect::<Vec<_>>();
    let extended = parts.iter().any(|part| is_extended(part, parts));
    let (scheme, letter) = match device.signs.pttype.as_deref() {
        Some("dos") => ("mbr", 's'),
        Some("gpt") => ("gpt", 'p'),
        Some("bsd") => ("bsd", 'p'),
        None if extended => ("mbr", 's'),
        _ => ("partition", 'p'),
    };
    let kind =
        |part: &Device| if is_extended(part, parts) { EXTENDED } else { kind_of(&part.signs) };
    let unplaced: Vec<Unplaced> = parts
        .iter()
        .filter(|part| matches!(part.kind, Kind::Partition { start: None, .. }))
        .filter_map(|part| {
            let (length, starts, findings) = (part.size, part.starts(), part.findings.clone());
            let (suffix, label) =
                (format!("{letter}{}", number(part)?), part.signs.partlabel.clone());
            Some(Unplaced {
                suffix,
                kind: kind(part),
                label,
                length,
                starts,
                signs: signs(part),
                findings,
            })
        })
        .collect();
    let entries: Vec<(Slice, Vec<Sign>)> = parts
        .iter()
        .filter_map(|part| {
            let Kind::Partition { start: Some(start), .. } = &part.kind else { return None };
            let index = number(part)?;
            let slice = Slice {
                suffix: format!("{letter}{index}"),
                index,
                start: *start,
                length: part.size,
                kind: kind(part),
                label: part.signs.partlabel.clone(),
                uuid: None,
            };
            Some((slice, signs(part)))
        })
        .collect();
    let (entries, on_entries): (Vec<Slice>, Vec<Vec<Sign>>) = entries.into_iter().unzip();
    // The sectors that the table itself takes are not reported. Without the place of every
    // partition, free ranges are unknown.
    let usable =
        if unplaced.is_empty() { 0..round_down(device.size, device.sector()) } else { 0..0 };
    let slices = Slices { usable, entries };
    let table = (!parts.is_empty() || device.signs.pttype.is_some()).then_some((scheme, slices));
    Reported { table, signs: signs(device), entries: on_entries, unplaced }
}

/// Number of a partition: as reported, else the digits at the end of the kernel's name.
fn number(part: &Device) -> Option<u32> {
    let Kind::Partition { number, .. } = &part.kind else { return None };
    let name = part.name.trim_end_matches(|c: char| c.is_ascii_digit());
    number.or_else(|| part.name[name.len()..].parse().ok())
}

const EXTENDED: slices::Kind = slices::Kind::Mbr(0x05);

/// True if it is an extended partition whose type is not reported: the kernel shows two sectors of
/// it, before logical ones.
fn is_extended(part: &Device, all: &[&Device]) -> bool {
    let logical = |d: &&Device| number(d).is_some_and(|n| n > 4);
    part.signs.parttype.is_none() && part.size == 1024 && !logical(&part) && all.iter().any(logical)
}

/// Signature of a device's contents: as udev, lsblk or the mount table report it, or as the device
/// that holds it requires.
fn sign_of(device: &Device, all: &[Device]) -> Option<Sign> {
    let holder = all.iter().find(|d| device.holders.contains(&d.name));
    let held = holder.and_then(|d| match &d.kind {
        Kind::Md { .. } => Some("linux_raid_member"),
        Kind::Dm { uuid: Some(uuid), .. } if uuid.starts_with("CRYPT-") => Some("crypto_LUKS"),
        Kind::Dm { uuid: Some(uuid), .. } if uuid.starts_with("LVM-") => Some("LVM2_member"),
        _ => None,
    });
    let mut sign = reported_sign(device.signs.fstype.as_deref().or(held)?, device.signs.block);
    sign.label.clone_from(&device.signs.label);
    sign.uuid.clone_from(&device.signs.uuid);
    if let Some(Kind::Md { members, .. }) = holder.map(|d| &d.kind)
        && let Some(offset) = members
            .iter()
            .find(|m| m.device.as_deref() == Some(&device.name))
            .and_then(|m| m.offset)
    {
        // The kernel itself reports where the data of the set begin.
        sign.inside = Inside::Understood;
        sign.data = Some(Data { offset, length: None, plain: false });
    }
    Some(sign)
}

/// Type of a partition in the spelling of udev or lsblk: `0x83`, or a GUID; MBR's 0, which no
/// partition has, if none is reported.
fn kind_of(signs: &Signs) -> slices::Kind {
    let text = signs.parttype.as_deref().unwrap_or_default();
    match text.parse() {
        Ok(guid) => slices::Kind::Gpt(guid),
        Err(_) => {
            slices::Kind::Mbr(u8::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0))
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
        let Kind::Partition { start: Some(start), .. } = part.kind else { continue };
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
            matches!(p.kind, Kind::Partition { start, .. } if start == provider.start)
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
            Kind::Md { .. } => "md",
            Kind::Dm { .. } => "dm",
            _ => provider.class,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk_options::DiskOptions;
    use crate::report::Verdict;
    use trueline_host::device::Member;

    #[test]
    fn partitions_an_old_lsblk_lists_are_numbered_by_their_names() {
        let list = r#"{"blockdevices":[{"name":"nvme0n1","type":"disk","size":1073741824,"children":[
            {"name":"nvme0n1p1","type":"part","start":2048,"size":1048576},{"name":"nvme0n1p15","type":"part","start":4096,"size":1048576}]}]}"#;
        let devices = lsblk::parse(list, "here").unwrap();
        let found = targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false)
            .unwrap();
        let named: Vec<(&str, Option<&str>)> =
            found[0].providers.iter().map(|p| (p.provider.as_str(), p.kind.as_deref())).collect();
        assert_eq!(named, [("", None), ("p1", None), ("p15", None)]);
        assert_eq!(found[0].providers[0].table.as_ref().unwrap().scheme, "partition");
    }

    /// A drive that reports 512-byte sectors, with one partition at 1 MiB.
    fn drive(part: Device) -> Vec<Device> {
        let limits = trueline_geom::audit::limits::Limits {
            logical_block_size: 512,
            physical_block_size: 512,
            ..Default::default()
        };
        let disk = Device {
            name: "sda".into(),
            path: "/dev/sda".into(),
            size: 1 << 30,
            limits: limits.clone(),
            ..Device::default()
        };
        let kind = Kind::Partition {
            parent: "sda".into(),
            number: Some(1),
            start: Some(1 << 20),
            whole: 1 << 30,
        };
        vec![disk, Device { name: "sda1".into(), size: 1 << 28, kind, limits, ..part }]
    }

    fn judged(devices: &[Device], physical: Option<(u64, u64)>) -> Target {
        let overrides =
            DiskOverrides::new(&DiskOptions { physical, ..DiskOptions::default() }).unwrap();
        targets(devices, &overrides, false).unwrap().remove(0)
    }

    #[test]
    fn what_is_not_read_is_aligned_only_if_its_blocks_are_known() {
        let verdict = |block| {
            let signs = Signs { fstype: Some("ext4".into()), block, ..Signs::default() };
            judged(&drive(Device { signs, ..Device::default() }), Some((4096, 0))).verdict
        };
        assert_eq!(
            [None, Some(4096), Some(1024)].map(verdict),
            [Verdict::Unknown, Verdict::Aligned, Verdict::Misaligned]
        );
    }

    #[test]
    fn what_cannot_be_opened_is_unknown_whatever_is_told_of_it() {
        let signs = Signs { fstype: Some("ext4".into()), block: Some(4096), ..Signs::default() };
        let mut devices = drive(Device { signs, ..Device::default() });
        devices[0].path = "/nonexistent/sda".into();
        let overrides = DiskOverrides::new(&DiskOptions::default()).unwrap();
        let found = targets(&devices, &overrides, true).unwrap().remove(0);
        assert_eq!(found.verdict, Verdict::Unknown);
        assert_eq!(
            found.findings.iter().filter(|f| f.rule == "TL0029").count(),
            1,
            "{:?}",
            found.findings
        );
        // The list of another host is never read from this one's devices.
        assert_eq!(
            targets(&devices, &overrides, false).unwrap().remove(0).verdict,
            Verdict::Aligned
        );
    }

    #[test]
    fn a_running_set_tells_where_its_members_data_begin() {
        let with = |offset| {
            let mut devices = drive(Device { holders: vec!["md0".into()], ..Device::default() });
            let member = Member { slot: 0, device: Some("sda1".into()), offset };
            let kind = Kind::Md {
                level: None,
                chunk: None,
                disks: None,
                metadata: None,
                members: vec![member],
            };
            devices.push(Device {
                name: "md0".into(),
                path: "/dev/md0".into(),
                size: 1 << 28,
                kind,
                ..Device::default()
            });
            devices
        };
        let data = |t: &Target| {
            t.providers.iter().find(|p| p.provider == "p1.data").map(|p| (p.start, p.verdict))
        };
        let odd = (1 << 20) + 512;
        assert_eq!(
            data(&judged(&with(Some(1 << 20)), Some((4096, 0)))),
            Some((Some(2 << 20), Verdict::Aligned))
        );
        assert_eq!(
            data(&judged(&with(Some(odd)), Some((4096, 0)))),
            Some((Some((1 << 20) + odd), Verdict::Misaligned))
        );
        assert_eq!(data(&judged(&with(None), None)), None);
        // The drive's sectors may be larger than it reports: that is worth a note on a data area
        // too.
        let hinted = judged(&with(Some(odd)), None);
        assert_eq!(data(&hinted).unwrap().1, Verdict::Aligned);
        assert!(
            hinted
                .findings
                .iter()
                .any(|f| f.rule == "TL0016" && f.provider == "p1.data" && f.remainder == 512)
        );
    }

    #[test]
    fn a_partition_past_the_end_does_not_give_its_contents_to_the_next() {
        let list = r#"{"blockdevices":[{"name":"sda","type":"disk","size":1073741824,"children":[
            {"name":"sda1","type":"part","start":2048,"size":1048576,"fstype":"ext4"},
            {"name":"sda2","type":"part","start":4194304,"size":1048576,"fstype":"swap"},
            {"name":"sda3","type":"part","start":4096,"size":1048576,"fstype":"xfs"}]}]}"#;
        let devices = lsblk::parse(list, "here").unwrap();
        let found = targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false)
            .unwrap();
        let signs: Vec<_> =
            found[0].providers.iter().map(|p| (p.provider.as_str(), p.sign.as_deref())).collect();
        assert_eq!(signs, [("", None), ("p1", Some("ext4")), ("p3", Some("xfs"))]);
        assert!(
            found[0]
                .findings
                .iter()
                .any(|f| f.rule == "TL0009" && f.message.starts_with("p2 at byte 2147483648"))
        );
    }

    #[test]
    fn a_partition_whose_disk_is_not_listed_is_a_target() {
        let list = r#"{"blockdevices":[{"name":"sda1","pkname":"sda","type":"part","start":63,"size":1048576,"phy-sec":4096,
            "log-sec":512,"alignment":512,"fstype":"ext4"}]}"#;
        let devices = lsblk::parse(list, "here").unwrap();
        let found = targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false)
            .unwrap();
        let named: Vec<_> = found.iter().map(|t| (t.target.as_str(), t.verdict)).collect();
        assert_eq!(named, [("/dev/sda1", Verdict::Misaligned)]);
    }

    /// A list as util-linux 2.32 writes it: numbers as text, and no START.
    const OLD: &str = r#"{"blockdevices":[{"name":"sda","type":"disk","size":"107374182400","phy-sec":"4096","log-sec":"512","min-io":"4096",
        "alignment":"0","pttype":"dos","children":[
        {"name":"sda1","type":"part","size":"1073741824","phy-sec":"4096","log-sec":"512","min-io":"4096","alignment":"512","fstype":"xfs",
         "mountpoint":"/boot","parttype":"0x83"},
        {"name":"sda2","type":"part","size":"1073741824","phy-sec":"4096","log-sec":"512","min-io":"4096","alignment":"0","fstype":"ext4"}]}]}"#;

    fn listed(list: &str) -> Target {
        let devices = lsblk::parse(list, "here").unwrap();
        targets(&devices, &DiskOverrides::new(&DiskOptions::default()).unwrap(), false)
            .unwrap()
            .remove(0)
    }

    #[test]
    fn a_partition_without_a_start_is_judged_by_its_alignment() {
        let found = listed(OLD);
        let seen: Vec<_> = found
            .providers
            .iter()
            .map(|p| (p.provider.as_str(), p.start, p.placed, p.verdict))
            .collect();
        let want = [
            ("", Some(0), true, Verdict::Misaligned),
            ("s1", None, false, Verdict::Misaligned),
            ("s2", None, false, Verdict::Unknown),
        ];
        assert_eq!(seen, want);
        assert_eq!(
            (found.providers[1].mountpoint.as_deref(), found.providers[2].mountpoint.as_deref()),
            (Some("/boot"), None)
        );
        let start = found.findings.iter().find(|f| f.rule == "TL0001").unwrap();
        assert_eq!(
            (start.provider.as_str(), start.unit, start.remainder, start.rmw_factor),
            ("s1", 4096, 3584, 4.0)
        );
        assert_eq!(
            start.message,
            "xfs starts, at a place that is not reported, 3584 bytes past a 4096-byte physical unit"
        );
        assert_eq!(
            start.fix,
            ["start it 512 bytes later; sfdisk --dump tells where it starts now"]
        );
        assert!(found.providers[0].table.as_ref().unwrap().free.is_empty());
        // Overrides of the user hold for it too, as far as its alignment tells.
        let for_drive = |physical| {
            let devices = lsblk::parse(OLD, "here").unwrap();
            let found = targets(
                &devices,
                &DiskOverrides::new(&DiskOptions {
                    physical: Some(physical),
                    ..DiskOptions::default()
                })
                .unwrap(),
                false,
            );
            let s1 = found.unwrap().remove(0);
            (
                s1.providers[1].verdict,
                s1.findings.iter().filter(|f| f.provider == "s1" && f.rule == "TL0019").count(),
            )
        };
        assert_eq!(for_drive((512, 0)), (Verdict::Unknown, 0));
        assert_eq!(for_drive((4096, 3584)), (Verdict::Unknown, 0));
        assert_eq!(for_drive((16384, 0)), (Verdict::Unknown, 1));
        // Without either, nothing is known and nothing is called aligned.
        let neither = listed(
            &OLD.replace("\"alignment\":\"512\",", "")
                .replace("\"alignment\":\"0\",\"fstype\"", "\"fstype\""),
        );
        assert_eq!(neither.verdict, Verdict::Unknown);
        assert_eq!(
            neither
                .findings
                .iter()
                .filter(|f| f.rule == "TL0019" && f.severity == Severity::Warning)
                .count(),
            2
        );
    }

    #[test]
    fn a_start_that_cannot_be_is_a_finding() {
        for start in ["-1", "4611686018427387904", "36028797018963968", "\"-1\""] {
            let found =
                listed(&OLD.replace(
                    "\"name\":\"sda1\",",
                    &format!("\"name\":\"sda1\",\"start\":{start},"),
                ));
            let range: Vec<_> = found.findings.iter().filter(|f| f.rule == "TL0009").collect();
            assert_eq!(range.len(), 1, "{start}: {:?}", found.findings);
            assert_eq!(
                (range[0].severity, range[0].provider.as_str()),
                (Severity::Error, "s1"),
                "{start}"
            );
            assert_eq!(found.providers[1].verdict, Verdict::Misaligned, "{start}");
        }
        // A start beyond this disk alone leaves the partition out, as before.
        let found =
            listed(&OLD.replace("\"name\":\"sda1\",", "\"name\":\"sda1\",\"start\":4194304000,"));
        assert!(
            found
                .findings
                .iter()
                .any(|f| f.rule == "TL0009" && f.message.starts_with("s1 at byte"))
        );
    }

    #[test]
    fn a_block_of_no_bytes_cannot_be() {
        for size in ["\"0\"", "0", "-1"] {
            let found =
                listed(&OLD.replace("\"phy-sec\":\"4096\"", &format!("\"phy-sec\":{size}")));
            let limits: Vec<_> = found
                .findings
                .iter()
                .filter(|f| f.rule == "TL0012")
                .map(|f| (f.severity, f.provider.as_str()))
                .collect();
            assert_eq!(limits, [(Severity::Warning, "")], "{size}");
        }
    }
}

//! Contents of a device as the kernel, udev or a list report them, unread.

use trueline_geom::base::topology::round_down;
use trueline_geom::format::{Data, Inside, Sign};
use trueline_geom::graph::{Reported, Unplaced};
use trueline_geom::mapping::partition::Partition;
use trueline_geom::mapping::slices::{self, Slice, Slices};
use trueline_geom::registry::reported_sign;
use trueline_host::device::{Device, DeviceKind, Signs};

/// Contents of the device as the kernel and udev report them.
pub(super) fn reported(device: &Device, parts: &[&Device], all: &[Device]) -> Reported {
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
        .filter(|part| matches!(part.kind, DeviceKind::Partition { start: None, .. }))
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
            let DeviceKind::Partition { start: Some(start), .. } = &part.kind else { return None };
            let index = number(part)?;
            let slice = Slice {
                suffix: format!("{letter}{index}"),
                partition: Partition {
                    index,
                    start: *start,
                    length: part.size,
                    kind: kind(part),
                    label: part.signs.partlabel.clone(),
                    guid: None,
                },
            };
            Some((slice, signs(part)))
        })
        .collect();
    let (entries, on_entries): (Vec<Slice>, Vec<Vec<Sign>>) = entries.into_iter().unzip();
    // The sectors that the table itself takes are not reported. Without the place of every
    // partition, free ranges are unknown.
    let usable =
        if unplaced.is_empty() { 0..round_down(device.size, device.sector()) } else { 0..0 };
    let slices = Slices::new(usable, entries);
    let table = (!parts.is_empty() || device.signs.pttype.is_some()).then_some((scheme, slices));
    Reported { table, signs: signs(device), entries: on_entries, unplaced }
}

/// Number of a partition: as reported, else the digits at the end of the kernel's name.
pub(super) fn number(part: &Device) -> Option<u32> {
    let DeviceKind::Partition { number, .. } = &part.kind else { return None };
    let name = part.name.trim_end_matches(|c: char| c.is_ascii_digit());
    number.or_else(|| part.name[name.len()..].parse().ok())
}

const EXTENDED: slices::PartitionType = slices::PartitionType::Mbr(0x05);

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
        DeviceKind::Md { .. } => Some("linux_raid_member"),
        DeviceKind::Dm { uuid: Some(uuid), .. } if uuid.starts_with("CRYPT-") => {
            Some("crypto_LUKS")
        }
        DeviceKind::Dm { uuid: Some(uuid), .. } if uuid.starts_with("LVM-") => Some("LVM2_member"),
        _ => None,
    });
    let mut sign = reported_sign(device.signs.fstype.as_deref().or(held)?, device.signs.block);
    sign.label.clone_from(&device.signs.label);
    sign.uuid.clone_from(&device.signs.uuid);
    if let Some(DeviceKind::Md { members, .. }) = holder.map(|d| &d.kind)
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
fn kind_of(signs: &Signs) -> slices::PartitionType {
    let text = signs.parttype.as_deref().unwrap_or_default();
    match text.parse() {
        Ok(guid) => slices::PartitionType::Gpt(guid),
        Err(_) => slices::PartitionType::Mbr(
            u8::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0),
        ),
    }
}

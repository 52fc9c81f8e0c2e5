//! A table in the form of `sfdisk --dump`.

use crate::mapping::slices::PartitionType;
use crate::table::scheme::Id;
use crate::table::{Entry, Table};
use std::fmt::Write;

/// Default alignment of sfdisk, in bytes.
const GRAIN: u64 = 1 << 20;

/// The script that makes `table`, of GPT or MBR, byte for byte as `sfdisk --dump DEVICE` prints it;
/// `None` for another scheme. `logicals` is the table in the extended partition, and the byte where
/// that begins.
pub fn dump(table: &Table, logicals: Option<(&Table, u64)>, device: &str) -> Option<String> {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write(&mut out, table, logicals, device)?;
    Some(out)
}

fn write(
    out: &mut String,
    table: &Table,
    logicals: Option<(&Table, u64)>,
    device: &str,
) -> Option<std::fmt::Result> {
    let sector = table.sector.max(1);
    let gpt = match table.scheme.name() {
        "GPT" => true,
        "MBR" => false,
        _ => return None,
    };
    let mut line = |name: &str, value: String| writeln!(out, "{name}: {value}");
    let headers = (|| {
        line("label", if gpt { "gpt" } else { "dos" }.into())?;
        match table.id {
            Some(Id::Guid(guid)) => line("label-id", guid.to_string().to_uppercase())?,
            Some(Id::Signature(signature)) => line("label-id", format!("{signature:#010x}"))?,
            _ => {}
        }
        line("device", device.into())?;
        line("unit", "sectors".into())?;
        if gpt {
            line("first-lba", (table.usable.start / sector).to_string())?;
            line("last-lba", (table.usable.end / sector).saturating_sub(1).to_string())?;
            if table.capacity != 128 {
                line("table-length", table.capacity.to_string())?;
            }
        }
        // On a disk too small for its own grain sfdisk uses every sector.
        if table.length / sector <= GRAIN * 4 / sector {
            line("grain", sector.to_string())?;
        }
        line("sector-size", sector.to_string())
    })();
    let partitions = (|| {
        headers?;
        if !table.entries.is_empty() {
            writeln!(out)?;
        }
        for entry in &table.entries {
            partition(out, device, entry.partition.index, entry.partition.start, entry, sector)?;
        }
        for (entry, number) in logicals.iter().flat_map(|(table, _)| &table.entries).zip(5..) {
            let above = logicals.map_or(0, |(_, above)| above);
            partition(
                out,
                device,
                number,
                entry.partition.start.saturating_add(above),
                entry,
                sector,
            )?;
        }
        Ok(())
    })();
    Some(partitions)
}

fn partition(
    out: &mut String,
    device: &str,
    number: u32,
    start: u64,
    entry: &Entry,
    sector: u64,
) -> std::fmt::Result {
    write!(
        out,
        "{} : start={:>12}, size={:>12}, type=",
        node(device, number),
        start / sector,
        entry.partition.length / sector
    )?;
    match entry.partition.kind {
        PartitionType::Gpt(guid) => write!(out, "{}", guid.to_string().to_uppercase())?,
        PartitionType::Mbr(byte) | PartitionType::Bsd(_, byte) => write!(out, "{byte:x}")?,
        PartitionType::Tag(tag) => write!(out, "{}", tag.code)?,
    }
    let gpt = matches!(entry.partition.kind, PartitionType::Gpt(_));
    if let Some(uuid) = entry.partition.guid.filter(|_| gpt) {
        write!(out, ", uuid={}", uuid.to_string().to_uppercase())?;
    }
    if let Some(name) = entry.partition.label.as_ref().filter(|name| gpt && !name.is_empty()) {
        write!(out, ", name=\"{}\"", quoted(name))?;
    }
    if gpt && entry.attributes != 0 {
        write!(out, ", attrs=\"{}\"", attributes(entry.attributes))?;
    }
    if !gpt && entry.attributes & super::ACTIVE != 0 {
        write!(out, ", bootable")?;
    }
    writeln!(out)
}

/// The device node of partition `number`, as sfdisk names it.
fn node(device: &str, number: u32) -> String {
    let by_name = ["/dev/disk/by-id/", "/dev/disk/by-path/", "/dev/mapper/"]
        .iter()
        .any(|p| device.starts_with(p));
    let between = match device.ends_with(|c: char| c.is_ascii_digit()) {
        _ if by_name => "-part",
        true => "p",
        false => "",
    };
    format!("{device}{between}{number}")
}

/// The name with every byte that a shell or the script could misread written as `\x22`.
fn quoted(name: &str) -> String {
    let plain = |b: u8| (0x20..0x7f).contains(&b) && !matches!(b, b'"' | b'\\' | b'`' | b'$');
    name.bytes()
        .map(|b| if plain(b) { char::from(b).to_string() } else { format!("\\x{b:02x}") })
        .collect()
}

fn attributes(bits: u64) -> String {
    let names = ["RequiredPartition", "NoBlockIOProtocol", "LegacyBIOSBootable"];
    let mut words: Vec<String> = (0..3)
        .zip(names)
        .filter(|(n, _)| bits >> n & 1 == 1)
        .map(|(_, name)| name.into())
        .collect();
    let numbers: Vec<String> =
        (48..64).filter(|n| bits >> n & 1 == 1).map(|n| n.to_string()).collect();
    if !numbers.is_empty() {
        words.push(format!("GUID:{}", numbers.join(",")));
    }
    words.join(" ")
}

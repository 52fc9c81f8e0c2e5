//! Sets of Linux, field by field, against the words of the guest that made them: the tables of
//! device-mapper, what lvs and `mdadm --examine` say, and the sizes of lsblk.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use trueline_geom::format::{ddf, imsm, md};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::mapping::geom::Op;
use trueline_geom::mapping::route::Piece;

/// Size of a sector of the kernel's words in bytes.
const SECTOR: u64 = 512;

/// What is said of a recipe's sets, and how often it was compared.
#[derive(Default)]
pub(crate) struct Words {
    /// Differences.
    pub(crate) wrong: Vec<String>,
    /// Fields and places that were equal.
    pub(crate) equal: usize,
}

impl Words {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, ours: T, theirs: T) {
        if ours == theirs {
            self.equal += 1;
        } else {
            self.wrong.push(format!("{what}: {ours:?}, the kernel has {theirs:?}"));
        }
    }
}

/// Differences of `graph` from what stands in `directory`, the results of the recipe `name`.
pub(crate) fn differences(name: &str, directory: &Path, graph: &Graph) -> Words {
    let text = |file: &str| fs::read_to_string(directory.join(file)).unwrap_or_default();
    let mut words = Words::default();
    let devices = Devices::new(graph, &text("disks.txt"), &text("dminfo.txt"));
    for line in text("dmtable.txt").lines() {
        devices.table(name, line, &mut words);
    }
    let lvs: Value = serde_json::from_str(&text("lvs.json")).unwrap_or_default();
    let all = lvs["report"][0]["seg"].as_array().map_or(&[][..], Vec::as_slice);
    for volume in all {
        report(name, graph, volume, all, &mut words);
    }
    // Serial numbers may be names of devices too.
    for member in format!("\n{}", text("examine.txt")).split("\n/dev/").skip(1) {
        // What is no member has a bitmap of whatever stands there, after mdadm has said so.
        let member = member.split("\nmdadm: ").next().unwrap_or_default();
        examine(name, graph, &text("disks.txt"), member, &mut words);
    }
    let lsblk: Value = serde_json::from_str(&text("lsblk.json")).unwrap_or_default();
    sizes(name, &devices, &lsblk["blockdevices"], &mut words);
    words
}

/// Devices of the guest.
struct Devices<'a> {
    graph: &'a Graph,
    /// Providers by the kernel's numbers, `254:16`.
    numbers: BTreeMap<String, Id>,
    /// Volumes by device-mapper's names, `vg-lv`.
    names: BTreeMap<String, Id>,
}

impl<'a> Devices<'a> {
    fn new(graph: &'a Graph, disks: &str, mapped: &str) -> Devices<'a> {
        let mut names = BTreeMap::new();
        for (id, provider) in graph.providers.iter().enumerate() {
            if let Some((group, volume)) = provider.name.split_once('/') {
                let escaped = |text: &str| text.replace('-', "--");
                names.insert(format!("{}-{}", escaped(group), escaped(volume)), id);
                // A volume with snapshots is a device of its own beneath them, as is their store.
                if let Some(hidden) = volume.strip_suffix("-cow") {
                    names.insert(format!("{}-{}-cow", escaped(group), escaped(hidden)), id);
                }
            }
        }
        let mut numbers = BTreeMap::new();
        for (nth, line) in disks.lines().enumerate() {
            let number = line.split_whitespace().nth(1).unwrap_or_default();
            let (major, first) = number.split_once(':').expect("MAJOR:MINOR");
            let first: u64 = first.parse().expect("a number");
            numbers.extend(graph.find(&format!("disk{nth}")).map(|id| (number.to_owned(), id)));
            for partition in 1..16 {
                let id = graph.find(&format!("disk{nth}p{partition}"));
                numbers.extend(id.map(|id| (format!("{major}:{}", first + partition), id)));
            }
        }
        for line in mapped.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if let [name, major, minor, ..] = fields[..] {
                numbers.extend(names.get(name).map(|&id| (format!("{major}:{minor}"), id)));
            }
        }
        Devices { graph, numbers, names }
    }

    /// Compares a line of `dmsetup table` that says where bytes are: those of a linear and of a
    /// striped target. What the other targets do is compared by what they hold.
    fn table(&self, recipe: &str, line: &str, words: &mut Words) {
        let Some((device, target)) = line.split_once(": ") else { return };
        let fields: Vec<&str> = target.split_whitespace().collect();
        let number = |nth: usize| fields.get(nth).and_then(|text| text.parse::<u64>().ok());
        if let [_, _, "integrity", under, ..] = fields[..]
            && let Some(&under) = self.numbers.get(under)
        {
            let volume = self.graph.children(under).find(|&id| self.graph.providers[id].is_set);
            let own = volume.map(|id| self.graph.providers[id].topology.length);
            words.compare(&format!("{recipe}: {device}"), own, number(1).map(|n| n * SECTOR));
        }
        let Some(&id) = self.names.get(device) else { return };
        let (Some(start), Some(count)) = (number(0), number(1)) else { return };
        let (stripes, chunk, first) = match fields.get(2) {
            Some(&"linear") => (1, count, 3),
            Some(&"striped") => (number(3).unwrap_or(1), number(4).unwrap_or(1), 5),
            _ => return,
        };
        for nth in 0..count.div_ceil(chunk) {
            let at = first + usize::try_from(nth % stripes).expect("a stripe") * 2;
            let Some(&under) = fields.get(at).and_then(|under| self.numbers.get(*under)) else {
                continue;
            };
            let offset = number(at + 1).expect("an offset") + nth / stripes * chunk;
            let length = chunk.min(count - nth * chunk) * SECTOR;
            let ours = self.places(id, (start + nth * chunk) * SECTOR, length);
            let theirs = self.places(under, offset * SECTOR, length);
            words.compare(&format!("{recipe}: {device}: {target}: {nth}"), ours, theirs);
        }
    }

    /// The places on the disks at which `length` bytes at `offset` of a provider lie: disk, first
    /// byte, length.
    fn places(&self, id: Id, offset: u64, length: u64) -> Vec<(usize, u64, u64)> {
        let mut places: Vec<(usize, u64, u64)> = Vec::new();
        let walked =
            self.graph.providers[id].route().extents(offset, length, Op::Read, &mut |_, piece| {
                if let Piece::Store { store, offset, length } = piece {
                    match places.last_mut() {
                        Some(last) if last.0 == store && last.1 + last.2 == offset => {
                            last.2 += length;
                        }
                        _ => places.push((store, offset, length)),
                    }
                }
                Ok(())
            });
        walked.expect("places that are read");
        places
    }
}

/// Compares a line of `lvs --segments`, one of `all`, with the volume.
fn report(recipe: &str, graph: &Graph, volume: &Value, all: &[Value], words: &mut Words) {
    let text = |key: &str| volume[key].as_str().unwrap_or_default();
    let bytes = |of: &Value, key: &str| {
        of[key].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) * SECTOR
    };
    let name = text("lv_full_name");
    let Some(id) = graph.find(name) else { return };
    let provider = &graph.providers[id];
    let what = |field: &str| format!("{recipe}: {name}: {field}");
    // Of an old snapshot lvs describes the store, of a thin volume the chunk is its pool's, and of
    // a writecache the block has a field of its own.
    let is_snapshot = text("segtype") == "linear" && !text("origin").is_empty();
    let (level, length) = match is_snapshot {
        true => ("snapshot", "origin_size"),
        false => (text("segtype"), "lv_size"),
    };
    words.compare(&what("length"), provider.topology.length, bytes(volume, length));
    let Some(own) = &provider.arrangement else { return };
    words.compare(&what("type"), own.level.as_str(), level);
    let pool = all.iter().find(|other| level == "thin" && other["lv_name"] == volume["pool_lv"]);
    let chunk = match level {
        "writecache" => text("writecache_block_size").parse().unwrap_or(0),
        _ => ["stripe_size", "chunk_size"]
            .map(|key| bytes(pool.unwrap_or(volume), key))
            .into_iter()
            .max()
            .unwrap_or(0),
    };
    words.compare(&what("chunk"), own.chunk.unwrap_or(0), chunk);
}

/// Compares what `mdadm --examine` says of one member, `said`, with the sign on that disk.
fn examine(recipe: &str, graph: &Graph, disks: &str, said: &str, words: &mut Words) {
    let device = said.split(':').next().unwrap_or_default();
    let is_device = |line: &str| line.split_whitespace().next() == Some(&format!("/dev/{device}"));
    // A member that is a partition is one of a disk that is not named here.
    let Some(nth) = disks.lines().position(is_device) else { return };
    let provider = &graph.providers[graph.find(&format!("disk{nth}")).expect("a disk")];
    let value = |key: &str| {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(key))?;
        line.trim_start().strip_prefix(": ").map(str::trim)
    };
    if let Some(sign) = provider.signs.iter().find(|sign| sign.kind == imsm::KIND) {
        let version = value("Version").map(str::to_owned);
        words.compare(&format!("{recipe}: disk{nth}: Version"), sign.version.clone(), version);
        let own: Vec<String> = sign
            .details
            .iter()
            .filter(|(name, _)| *name == "volume")
            .map(|(_, volume)| volume.clone())
            .collect();
        words.compare(&format!("{recipe}: disk{nth}: volumes"), own, firmware_volumes(said));
        return;
    }
    if let Some(sign) = provider.signs.iter().find(|sign| sign.kind == ddf::KIND) {
        let own: Vec<String> = sign.details.iter().map(|(_, volume)| volume.clone()).collect();
        words.compare(&format!("{recipe}: disk{nth}: volumes"), own, ddf_volumes(said));
        return;
    }
    let Some(sign) = provider.signs.iter().find(|sign| sign.kind == md::KIND) else {
        return words.compare(&format!("{recipe}: disk{nth}: a sign"), None, value("Version"));
    };
    let detail = |key: &str| {
        sign.details.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone())
    };
    let sectors = |bytes: u64| format!("{} sectors", bytes / SECTOR);
    let role = provider.member.as_ref().map(|(_, member)| match member.number {
        Some(number) => format!("Active device {number}"),
        None => "spare".to_owned(),
    });
    for (key, own) in [
        ("Version", sign.version.clone()),
        ("Raid Level", detail("level")),
        ("Raid Devices", detail("raid devices")),
        ("Chunk Size", sign.chunk.map(|chunk| format!("{}K", chunk / 1024))),
        ("Super Offset", Some(sectors(sign.magic))),
        ("Data Offset", sign.data.as_ref().map(|data| sectors(data.offset))),
        ("Array UUID", sign.uuid.as_ref().map(|uuid| uuid.replace('-', ""))),
        ("Device Role", role),
    ] {
        // Of a reshape mdadm says the old chunk and the new one.
        let new = value("New Chunksize").filter(|_| key == "Chunk Size");
        let theirs = new.or_else(|| value(key)).map(|text| match key {
            "Array UUID" => text.replace(':', ""),
            // What has no role of its own is a spare here, what is to take one has it already.
            "Device Role" if text == "Journal" => "spare".to_owned(),
            "Device Role" => text.replace("Replacement", "Active"),
            // mdadm writes the patch level of this version in two digits, blkid in one.
            "Version" if text == "0.90.00" => "0.90.0".to_owned(),
            _ => text.to_owned(),
        });
        // Version 0.90 has no offsets, and its role and identity are words of another kind.
        if theirs.is_some() {
            words.compare(&format!("{recipe}: disk{nth}: {key}"), own, theirs);
        }
    }
}

/// The volumes of a container as `mdadm --examine` lists them, in the words of a sign. Of a volume
/// with work under way it says first what it will be, then what it is.
fn firmware_volumes(said: &str) -> Vec<String> {
    let volume = |block: &str| {
        let value = |key: &str| {
            let line = block.lines().find_map(|line| line.trim().strip_prefix(key))?;
            line.rsplit(['-', ':']).next()?.split_whitespace().next()?.parse::<u64>().ok()
        };
        let name = block.split(']').next()?;
        let (level, disks) = (value("RAID Level")?, value("Members")?);
        let chunk = value("Chunk Size")? * 1024;
        let chunks = if level == 1 { String::new() } else { format!(", chunks of {chunk} bytes") };
        Some(format!("{name}: raid{level} of {disks} disks{chunks}"))
    };
    said.split("\n[").skip(1).filter_map(volume).collect()
}

/// The volumes of a DDF container as `mdadm --examine` numbers them, in the words of a sign. Of a
/// RAID1 it says no chunk.
fn ddf_volumes(said: &str) -> Vec<String> {
    let volume = |nth: usize| {
        let value = |key: &str| {
            let key = format!("{key}[{nth}] : ");
            Some(said.lines().find_map(|line| line.trim().strip_prefix(&*key))?.trim())
        };
        let (name, level) = (value("Name")?, value("Raid Level")?.to_lowercase());
        let members = value("Raid Devices")?.split(' ').next()?;
        let chunk = value("Chunk Size").and_then(|text| text.strip_suffix(" sectors"));
        let chunk = chunk.map(|sectors| SECTOR * sectors.parse::<u64>().expect("a number"));
        let chunk = chunk.map_or(String::new(), |chunk| format!(", chunks of {chunk} bytes"));
        Some(format!("{name}: {level} of {members} members{chunk}"))
    };
    (0..).map_while(volume).collect()
}

/// Compares the sizes of a list of lsblk's, and of what stands on each.
fn sizes(recipe: &str, devices: &Devices<'_>, list: &Value, words: &mut Words) {
    for device in list.as_array().into_iter().flatten() {
        let name = device["name"].as_str().unwrap_or_default();
        if let Some(&id) = devices.names.get(name) {
            let own = devices.graph.providers[id].topology.length;
            words.compare(&format!("{recipe}: {name}: size"), Some(own), device["size"].as_u64());
        }
        sizes(recipe, devices, &device["children"], words);
    }
}

//! Sets that the real kernel made: every sector of every device of theirs names its own address,
//! and is read back through our map of the member images.
//!
//! A few recipes of `tests/kernel/sets/` are made anew where QEMU and the tools are there. With
//! `TRUELINE_SETS=DIRECTORY`, all that `tests/kernel/sets.sh DIRECTORY` has left there are
//! compared.

use crate::kernel_words;
use crate::recipe::Scratch;
use crate::skip::skip;
use crate::thin_dump;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph, Id};
use trueline_geom::probe::Limits;
use trueline_geom::probe::unlock::Unlock;
use trueline_unlock::{Key, Keys};

/// Recipes that are made where nothing else is asked for: as many disks as one boot has.
const FEW: &[&str] = &[
    "md-raid0-zones-original",
    "md-raid1-0.90",
    "md-raid10-f2-3",
    "md-raid5-reshape-grow",
    "md-raid6-two-gone-24",
    "imsm-raid0",
    "imsm-raid5",
    "lvm-linear",
    "lvm-striped",
    "lvm-raid5-stale",
    "lvm-raid6-nc",
    "lvm-snapshot",
    "lvm-thin",
    "lvm-thin-external",
    "lvm-cache-dirty",
    "lvm-writecache",
    "disk-server",
    "integrity-crc32c",
    "luks-ciphers",
];

/// Recipes of sets that Linux does not start without being told more, and neither are they made
/// here.
const REFUSED: &[&str] =
    &["md-raid0-zones-0.90", "md-raid0-zones-unsaid-alternate", "md-raid0-zones-unsaid-original"];

/// One line of `expect.txt`.
struct Expected {
    device: String,
    first: u64,
    count: u64,
    tag: String,
}

/// A recipe's members, as the kernel left them.
struct Made {
    name: String,
    images: Vec<Vec<u8>>,
    /// Names of the disks there, which are serial numbers to a firmware's metadata.
    serials: Vec<String>,
    expected: Vec<Expected>,
    /// The key file of encrypted volumes.
    key: Option<Vec<u8>>,
}

impl Made {
    /// The recipe in `directory`; `None` if it did not go through.
    fn read(directory: &Path) -> Option<Made> {
        let text = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
        if text("status").trim() != "0" {
            return None;
        }
        let image = |n: usize| fs::read(directory.join(format!("disk{n}.img"))).ok();
        let lines = text("expect.txt");
        let expected = lines.lines().map(|line| {
            let mut words = line.splitn(4, ' ');
            let mut next = || words.next().unwrap_or_default().to_string();
            Expected {
                device: next(),
                first: next().parse().expect("a number"),
                count: next().parse().expect("a number"),
                tag: next(),
            }
        });
        Some(Made {
            name: directory.file_name()?.to_str()?.to_string(),
            images: (0..).map_while(image).collect(),
            serials: text("disks.txt")
                .lines()
                .filter_map(|line| Some(line.split_whitespace().next()?.to_string()))
                .collect(),
            expected: expected.collect(),
            key: fs::read(directory.join("key")).ok(),
        })
    }

    /// The members, without those in `gone`, tasted together.
    fn graph(&self, gone: &[usize]) -> Graph {
        let here = self.images.iter().enumerate().filter(|(n, _)| !gone.contains(n));
        let disks = here.map(|(n, bytes)| {
            let mut store = Sparse::new(bytes.len() as u64);
            for (at, page) in (0..).step_by(4096).zip(bytes.chunks(4096)) {
                if page.iter().any(|&byte| byte != 0) {
                    store.put(at, page);
                }
            }
            let topology = Topology::new(512, store.length());
            let serial = self.serials.get(n).cloned();
            Disk { serial, ..Disk::new(format!("disk{n}"), Box::new(store), topology) }
        });
        let keys = self.key.clone().map(|bytes| {
            let key = Key { source: "key".into(), passphrase: Arc::new(bytes.into()) };
            Arc::new(Keys::new(vec![key])) as Arc<dyn Unlock>
        });
        Graph::taste_with(disks.collect(), Limits::default(), keys)
    }

    /// Compares every device with what the kernel had there; says what differs first.
    fn compare(&self, graph: &Graph) -> Result<u64, String> {
        let mut compared = 0;
        for Expected { device, first, count, tag } in &self.expected {
            let at = format!("{}: {device}", self.name);
            let id = provider(graph, device, &written(tag, *first), *first)
                .ok_or_else(|| format!("{at}: no such provider"))?;
            let length = graph.providers[id].topology.length;
            if length < (first + count) * 512 {
                return Err(format!("{at}: {length} bytes, the kernel had {count} sectors"));
            }
            for number in *first..first + count {
                let mut sector = vec![0; 512];
                graph
                    .read_at(id, &mut sector, number * 512)
                    .map_err(|error| format!("{at}: sector {number}: {error}"))?;
                if sector != written(tag, number) {
                    let found = String::from_utf8_lossy(&sector[..64]).into_owned();
                    return Err(format!("{at}: sector {number} of {tag:?} is {found:?}"));
                }
            }
            compared += count;
        }
        Ok(compared)
    }
}

/// Differences of whole volumes from the kernel's devices: `sums.txt` has the SHA-256, the length
/// in bytes and the name of each.
fn compare_sums(name: &str, directory: &Path, graph: &Graph) -> Vec<String> {
    let sums = fs::read_to_string(directory.join("sums.txt")).unwrap_or_default();
    let mut wrong = Vec::new();
    for line in sums.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [sum, length, device] = words[..] else { panic!("{name}: {line}") };
        // A partition's name there counts disks of one boot.
        let Some(volume) = device.strip_prefix("/dev/").filter(|at| at.contains('/')) else {
            continue;
        };
        let length: u64 = length.parse().expect("a length");
        // A mapping that the recipe laid over a partition has a name of its own.
        let found: Vec<Id> = match volume.strip_prefix("mapper/") {
            None => graph.find(volume).into_iter().collect(),
            Some(_) => (0..graph.providers.len())
                .filter(|&id| graph.providers[id].topology.length == length)
                .collect(),
        };
        if !found.into_iter().any(|id| sum_of(graph, id, length).as_deref() == Some(sum)) {
            wrong.push(format!("{name}: {volume} is not what the kernel had"));
        }
    }
    wrong
}

/// Differences of what is said of md's sets from what mdadm said: `detail.txt` has its words on
/// each that was running.
fn compare_words(name: &str, directory: &Path, graph: &Graph) -> Vec<String> {
    let detail = fs::read_to_string(directory.join("detail.txt")).unwrap_or_default();
    let detail = format!("\n{detail}");
    let is_set = |class| ["md", "imsm"].contains(&class);
    let sets = || graph.providers.iter().filter(|p| is_set(p.class) && p.is_set);
    // A name is given twice where two sets have it, and not at all in version 0.90; a container is
    // no set.
    let is_container = |block: &&str| block.contains("Raid Level : container");
    let blocks: Vec<&str> =
        detail.split("\n/dev/md").skip(1).filter(|block| !is_container(block)).collect();
    let mut wrong = Vec::new();
    if blocks.len() != 1 || sets().count() != 1 {
        return wrong;
    }
    let Some(set) = sets().next().and_then(|p| p.arrangement.as_ref()) else {
        return vec![format!("{name}: its set has no arrangement")];
    };
    let said = |key: &str| {
        let line = blocks[0].lines().find_map(|line| line.trim().strip_prefix(key))?;
        line.trim_start().strip_prefix(": ").map(str::trim)
    };
    let chunk = set.chunk.map(|chunk| format!("{}K", chunk / 1024));
    let members = set.members.to_string();
    for (key, own) in [
        ("Raid Level", Some(set.level.as_str())),
        // mdadm has no name for a RAID0 of one zone that does not say.
        ("Layout", set.layout.as_deref().or(said("Layout").filter(|_| set.level == "raid0"))),
        ("Chunk Size", chunk.as_deref()),
        ("Raid Devices", Some(members.as_str())),
    ] {
        // Of a reshape mdadm says the old and the new; a linear set's chunk it calls rounding.
        let others = match key {
            "Chunk Size" => &["New Chunksize", "Rounding"][..],
            "Layout" => &["New Layout"],
            _ => &[],
        };
        let theirs = others.iter().find_map(|other| said(other)).or_else(|| said(key));
        // A linear set of version 0.90 has a chunk of nothing.
        let theirs = theirs.filter(|&text| text != "0K");
        if own != theirs {
            wrong.push(format!("{name}: {key}: {own:?}, mdadm said {theirs:?}"));
        }
    }
    wrong
}

/// The SHA-256 of the first `length` bytes of a provider; `None` if it cannot be read.
fn sum_of(graph: &Graph, id: Id, length: u64) -> Option<String> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    graph.read_at(id, &mut bytes, 0).ok()?;
    Some(sha256(&bytes))
}

/// The SHA-256 of `bytes`, as sha256sum(1) prints it.
fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("sha256sum reads");
    let said = child.wait_with_output().expect("sha256sum ends").stdout;
    String::from_utf8_lossy(&said).split_whitespace().next().unwrap_or_default().to_string()
}

/// The sector that the recipe's `pattern` writes.
fn written(tag: &str, number: u64) -> Vec<u8> {
    match tag {
        "-" => vec![0; 512],
        _ => format!("{tag:<47.47} {number:>15}\n").into_bytes().repeat(8),
    }
}

/// The provider that the kernel calls `device`, else the set that has `sector` as its `first`: one
/// of version 0.90 has a number for a name, and the second of two of one name has a number behind
/// it.
fn provider(graph: &Graph, device: &str, sector: &[u8], first: u64) -> Option<Id> {
    let holds = |id: Id| {
        let mut found = vec![0; sector.len()];
        graph.read_at(id, &mut found, first * 512).is_ok() && found == sector
    };
    let sets = || (0..graph.providers.len()).filter(|&id| graph.providers[id].is_set);
    let named = device.strip_prefix("/dev/")?;
    let firmware = named.strip_prefix("md/").map(|name| format!("imsm/{name}"));
    let named = graph.find(named).or_else(|| graph.find(&firmware?));
    let twins = sets().count() > 1;
    named.filter(|&id| !twins || holds(id)).or_else(|| sets().find(|&id| holds(id)))
}

/// The directory with the recipes' results; `None` if they cannot be made here.
fn results(scratch: &Scratch) -> Option<PathBuf> {
    if let Some(given) = std::env::var_os("TRUELINE_SETS") {
        return Some(given.into());
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/kernel/sets.sh");
    let made = Command::new("sh").arg(script).arg(scratch.path()).args(FEW).output().expect("sh");
    match made.status.code() {
        Some(0) => Some(scratch.path().to_path_buf()),
        // Something to boot with is missing.
        Some(2) => {
            skip(String::from_utf8_lossy(&made.stderr).trim());
            None
        }
        _ => panic!("sets.sh: {}", String::from_utf8_lossy(&made.stdout)),
    }
}

/// Pairs, and single ones, of `count` members.
fn losses(count: usize) -> Vec<Vec<usize>> {
    let one = (0..count).map(|n| vec![n]);
    one.chain((0..count).flat_map(|n| (n + 1..count).map(move |other| vec![n, other]))).collect()
}

/// Disks of `count` that a RAID volume of LVM or of a firmware can do without, by the name of its
/// recipe.
fn spared(name: &str, count: usize) -> usize {
    if ["imsm-two", "imsm-raid5-recovering"].contains(&name) {
        // A RAID0 among them, and one disk that is not whole.
        return 0;
    }
    let level = name.trim_start_matches("lvm-raid").trim_start_matches("imsm-raid");
    match level.chars().next() {
        Some('0') | None => 0,
        Some('1') if !level.starts_with("10") => count - 1,
        Some('6') => 2,
        _ => 1,
    }
}

#[test]
fn sets_of_the_kernel_read_as_it_wrote_them() {
    let scratch = Scratch::new("sets");
    let Some(directory) = results(&scratch) else { return };
    let (mut wrong, mut equal) = (Vec::new(), 0);
    let mut directories: Vec<PathBuf> =
        fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    directories.sort();
    for made in directories.iter().filter_map(|path| Made::read(path)) {
        if made.name.starts_with("disk") {
            let directory = directory.join(&made.name);
            let graph = made.graph(&[]);
            wrong.extend(compare_sums(&made.name, &directory, &graph));
            wrong.extend(thin_dump::differences(&made.name, &graph));
            let words = kernel_words::differences(&made.name, &directory, &graph);
            wrong.extend(words.wrong);
            equal += words.equal;
            continue;
        }
        if made.name.starts_with("luks-") {
            match made.compare(&made.graph(&[])) {
                Ok(sectors) => eprintln!("{}: {sectors} sectors are equal", made.name),
                Err(why) => wrong.push(why),
            }
            continue;
        }
        let is_md = made.name.starts_with("md-");
        let is_imsm = made.name.starts_with("imsm-");
        let known = ["md-", "lvm-", "integrity-", "imsm-", "ddf-"];
        if !known.iter().any(|set| made.name.starts_with(set)) {
            continue;
        }
        let whole = made.graph(&[]);
        wrong.extend(compare_words(&made.name, &directory.join(&made.name), &whole));
        let words = kernel_words::differences(&made.name, &directory.join(&made.name), &whole);
        wrong.extend(words.wrong);
        equal += words.equal;
        let alone = whole.providers.iter().filter(|p| p.is_set).count() == 1;
        let compared = made.compare(&whole);
        if REFUSED.contains(&made.name.as_str()) {
            assert!(compared.is_err(), "{}: it was made", made.name);
            continue;
        }
        match compared {
            Ok(sectors) => eprintln!("{}: {sectors} sectors are equal", made.name),
            Err(why) => wrong.push(why),
        }
        // What is left of a set either reads the same, or is no set; unless all that is left is
        // old.
        let aged = made.expected.iter().any(|line| line.tag.ends_with(" new"));
        for gone in losses(made.images.len()).into_iter().filter(|_| is_md && !aged) {
            let graph = made.graph(&gone);
            let sets: Vec<&str> =
                graph.providers.iter().filter(|p| p.is_set).map(|p| p.name.as_str()).collect();
            match made.compare(&graph) {
                Ok(_) => eprintln!("{}: equal without {gone:?}", made.name),
                Err(why) if alone && !sets.is_empty() && made.expected.len() == 1 => {
                    wrong.push(format!("without {gone:?}: {why}"));
                }
                Err(_) => {}
            }
        }
        wrong.extend(thin_dump::differences(&made.name, &whole));
        let spared = spared(&made.name, made.images.len());
        let is_raid = (is_imsm || made.name.starts_with("lvm-raid")) && !aged;
        for gone in losses(made.images.len()).into_iter().filter(|_| is_raid) {
            match made.compare(&made.graph(&gone)) {
                Ok(_) => eprintln!("{}: equal without {gone:?}", made.name),
                // More than it can do without may be lost, and what is read of it is still right.
                Err(why) if gone.len() > spared && !why.contains(" is \"") => {}
                Err(why) => wrong.push(format!("without {gone:?}: {why}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    eprintln!("{equal} fields and places of volumes are as the kernel has them");
    assert!(equal > 0, "no volume was compared with the kernel's tables");
}

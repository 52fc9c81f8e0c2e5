//! GUID partition tables as we write them, beside those of sfdisk, sgdisk and parted for the same
//! layout, byte for byte; and whether those tools and libblkid find fault with ours.
//!
//! Sectors of 4096 bytes need a loop device, so root. What is skipped is printed; with
//! `TRUELINE_ORACLE=all` it is a failure.

#![allow(clippy::unwrap_used, reason = "in a test a panic is the answer")]

use crate::oracle::{missing_of, tool};
use crate::recipe::Scratch;
use crate::skip::skip;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::class::gpt::Gpt;
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::table::scheme::{Id, New, Scheme, TableSite};
use trueline_geom::table::{Request, Rules, Wanted};

const MIB: u64 = 1 << 20;
/// A small one, one that is no whole number of MiB, and one beyond what an MBR can say.
const SIZES: [u64; 3] = [16 * MIB, 64 * MIB + 3 * 4096, 20_000_000 * MIB / 8];

/// Alias, first MiB, MiB, name, bits of attributes.
const LAYOUT: [(&str, u64, u64, &str, &[u32]); 4] = [
    ("efi", 1, 2, "EFI system", &[0, 2]),
    ("linux-data", 3, 4, "Größe \u{1f600}", &[]),
    ("freebsd-ufs", 8, 1, "a name of thirty-six characters wide", &[59, 63]),
    ("linux-swap", 9, 2, "swap", &[]),
];

/// Bytes in which a tool differs on purpose: tool, sectors of the disk it is about (512 or all),
/// bytes of LBA 0, why.
const PMBR: [(&str, Range<u64>, &str); 1] = [(
    "sgdisk",
    451..454,
    "it gives the last cylinder, head and sector of a small disk; FreeBSD, util-linux and parted write ff ff ff, which UEFI allows for what does not fit",
)];

fn guid(n: u8) -> Guid {
    Guid([n; 16])
}

/// The layout as we write it, on a disk that was empty. `guids`: the disk's and each partition's.
fn ours(
    sector: u64,
    size: u64,
    guids: &[Guid],
    parts: &[Wanted],
    usable: Option<(u64, u64)>,
) -> Sparse {
    let mut disk = Sparse::new(size);
    let topology = Topology::new(sector, size);
    let site = TableSite { topology: &topology, base: 0, kind: None };
    let (route, stores) = (Route::store(0, size), [Box::new(disk.clone()) as Box<dyn Store>]);
    let budget = Budget::new(Limits::default());
    let new = New { id: Some(Id::Guid(guids[0])), usable, ..New::default() };
    let before = Gpt
        .create(&Probe::new(&route, &stores, &budget, sector, Some(0), None), &site, &new)
        .expect("as the test laid it");
    let mut after = before.clone();
    for (part, uuid) in parts.iter().zip(&guids[1..]) {
        after
            .add(&site, Wanted { uuid: Some(*uuid), ..part.clone() }, Rules::Aligned)
            .expect("as the test laid it");
    }
    Gpt.render(&before, &after).iter().for_each(|p| disk.put(p.offset, &p.bytes));
    disk
}

fn layout() -> Vec<Wanted> {
    let part = |&(kind, start, size, name, bits): &(&str, u64, u64, &str, &[u32])| Wanted {
        kind: Gpt.kind(kind).expect("as the test laid it"),
        place: Request { start: Some(start * MIB), size: Some(size * MIB), align: None },
        index: None,
        label: Some(name.into()),
        uuid: None,
        attributes: bits.iter().map(|bit| 1 << bit).sum(),
    };
    LAYOUT.iter().map(part).collect()
}

/// The layout for sfdisk, which leaves out a name with a character past the basic plane, and
/// parted, which complains of one.
fn plain() -> Vec<Wanted> {
    let name = |part: Wanted| Wanted {
        label: part.label.map(|label| label.replace('\u{1f600}', "x")),
        ..part
    };
    layout().into_iter().map(name).collect()
}

fn guids() -> Vec<Guid> {
    (1..=5).map(guid).collect()
}

/// An image, shown in its sector size.
pub(crate) struct Image {
    path: PathBuf,
    /// The loop device, where the sector is not 512.
    device: Option<String>,
    pub(crate) scratch: Scratch,
}

impl Image {
    pub(crate) fn new(what: &str, sector: u64, disk: &Sparse) -> Image {
        let scratch = Scratch::new(&format!("table-{what}-{sector}-{}", disk.length()));
        let path = scratch.path().join("disk");
        let mut file = File::create(&path).expect("as the test laid it");
        file.set_len(disk.length()).expect("as the test laid it");
        for (at, bytes) in disk.runs() {
            file.seek(SeekFrom::Start(at)).expect("as the test laid it");
            file.write_all(bytes).expect("as the test laid it");
        }
        let image = path.to_string_lossy().into_owned();
        let device = (sector != 512).then(|| {
            let shown =
                run("losetup", &["--find", "--show", "--sector-size", &sector.to_string(), &image]);
            shown.unwrap_or_else(|why| panic!("{why}")).trim().to_string()
        });
        Image { path, device, scratch }
    }

    /// The name that tools get.
    pub(crate) fn name(&self) -> String {
        self.device.clone().unwrap_or_else(|| self.path.to_string_lossy().into_owned())
    }

    /// `length` bytes at `offset`.
    pub(crate) fn bytes(&self, offset: u64, length: u64) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(length).expect("as the test laid it")];
        let mut file = File::open(&self.path).expect("as the test laid it");
        file.seek(SeekFrom::Start(offset)).expect("as the test laid it");
        file.read_exact(&mut bytes).expect("as the test laid it");
        bytes
    }

    /// Ranges that differ from `disk`, within a MiB of either end, one for each run.
    fn differences(&self, disk: &Sparse) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for from in [0, disk.length() - MIB] {
            let (theirs, mut ours) = (
                self.bytes(from, MIB),
                vec![0; usize::try_from(MIB).expect("as the test laid it")],
            );
            disk.read_at(&mut ours, from).expect("as the test laid it");
            for at in (from..)
                .zip(theirs.iter().zip(&ours))
                .filter(|(_, (a, b))| a != b)
                .map(|(at, _)| at)
            {
                match runs.last_mut() {
                    Some(run) if run.end == at => run.end += 1,
                    _ => runs.push(at..at + 1),
                }
            }
        }
        runs
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        if let Some(device) = &self.device {
            // What the kernel found on it goes with it.
            let _ = run("losetup", &["--detach", device]);
        }
        let _ = &self.scratch;
    }
}

/// Output of the program. Errors: it is missing or fails.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let ran = tool(program, arguments, Path::new("/")).map_err(|e| format!("{program}: {e}"))?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.success() { Ok(text) } else { Err(format!("{program} {arguments:?}: {text}")) }
}

/// Every sector size this machine can show, with every size.
fn disks(programs: &[&str]) -> Vec<(u64, u64)> {
    sectors(programs).into_iter().flat_map(|sector| SIZES.map(|size| (sector, size))).collect()
}

/// Every sector size this machine can show to those programs.
pub(crate) fn sectors(programs: &[&str]) -> Vec<u64> {
    let mut found = Vec::new();
    for sector in [512, 4096] {
        let needs = if sector == 512 { &[][..] } else { &["losetup", "root", "loop"] };
        match missing_of(programs.iter().chain(needs).copied()) {
            None => found.push(sector),
            Some(missing) => {
                skip(&format!(
                    "tables of {sector}-byte sectors with {programs:?}: no {missing} here"
                ));
            }
        }
    }
    found
}

fn same_bytes(what: &str, image: &Image, disk: &Sparse) {
    let allowed = |run: &Range<u64>| {
        PMBR.iter().any(|(tool, bytes, _)| {
            *tool == what && bytes.start <= run.start && run.end <= bytes.end
        })
    };
    let other: Vec<_> = image.differences(disk).into_iter().filter(|run| !allowed(run)).collect();
    assert!(
        other.is_empty(),
        "{what} on {} of {} bytes differs in {other:x?}",
        image.name(),
        disk.length()
    );
}

#[test]
fn sfdisk_writes_the_same_bytes() {
    for (sector, size) in disks(&["sfdisk"]) {
        let image = Image::new("sfdisk", sector, &Sparse::new(size));
        let front = 2 + 16384 / sector;
        let mut script = format!("label: gpt\nlabel-id: {}\nfirst-lba: {front}\n", guid(1));
        let parts = plain();
        for (n, part) in (2..).zip(&parts) {
            let attributes: Vec<String> =
                (0..64).filter(|bit| part.attributes >> bit & 1 == 1).map(attribute).collect();
            let (start, length) = (
                part.place.start.expect("as the test laid it") / sector,
                part.place.size.unwrap() / sector,
            );
            let (kind, name) = (kind(part), part.label.as_ref().expect("as the test laid it"));
            script += &format!(
                "start={start}, size={length}, type={kind}, uuid={}, name=\"{name}\"",
                guid(n)
            );
            script += &if attributes.is_empty() {
                "\n".into()
            } else {
                format!(", attrs=\"{}\"\n", attributes.join(" "))
            };
        }
        let file = image.scratch.path().join("script");
        std::fs::write(&file, script).expect("as the test laid it");
        run(
            "sh",
            &[
                "-c",
                "LC_ALL=C.UTF-8 sfdisk --quiet --no-tell-kernel \"$0\" < \"$1\"",
                &image.name(),
                &file.to_string_lossy(),
            ],
        )
        .expect("as the test laid it");
        same_bytes("sfdisk", &image, &ours(sector, size, &guids(), &parts, None));
    }
}

/// As sfdisk writes a bit.
fn attribute(bit: u32) -> String {
    match bit {
        0 => "RequiredPartition".into(),
        1 => "NoBlockIOProtocol".into(),
        2 => "LegacyBIOSBootable".into(),
        bit => format!("GUID:{bit}"),
    }
}

/// The GUID of its type.
fn kind(part: &Wanted) -> String {
    match part.kind {
        trueline_geom::mapping::slices::PartitionType::Gpt(guid) => guid.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn where_sfdisk_begins_nothing_else_differs() {
    for (sector, size) in disks(&["sfdisk"]) {
        let image = Image::new("sfdisk-default", sector, &Sparse::new(size));
        let script = format!("label: gpt\\nlabel-id: {}\\n", guid(1));
        run(
            "sh",
            &[
                "-c",
                "printf \"$1\" | sfdisk --quiet --no-tell-kernel \"$0\"",
                &image.name(),
                &script,
            ],
        )
        .expect("as the test laid it");
        let end = size / sector * sector;
        let disk = ours(sector, size, &guids()[..1], &[], Some((MIB, end - 16384 - sector)));
        assert_eq!(image.differences(&disk), [], "from 1 MiB on, as it puts first-lba");
        // FreeBSD, sgdisk and parted leave to partitions what the table does not take: first usable
        // LBA and header CRC.
        let fields = [16..20, 40..44].map(|f: Range<u64>| {
            [sector + f.start..sector + f.end, end - sector + f.start..end - sector + f.end]
        });
        let found = image.differences(&ours(sector, size, &guids()[..1], &[], None));
        assert!(!found.is_empty());
        for run in found {
            assert!(
                fields.iter().flatten().any(|f| f.start <= run.start && run.end <= f.end),
                "{run:?}"
            );
        }
    }
}

#[test]
fn sgdisk_writes_the_same_bytes() {
    for (sector, size) in disks(&["sgdisk"]) {
        let image = Image::new("sgdisk", sector, &Sparse::new(size));
        let mut arguments: Vec<String> =
            vec!["--set-alignment=1".into(), "--clear".into(), format!("--disk-guid={}", guid(1))];
        for (n, part) in (1..).zip(layout()) {
            let (start, length) = (
                part.place.start.expect("as the test laid it") / sector,
                part.place.size.unwrap() / sector,
            );
            arguments.push(format!("--new={n}:{start}:{}", start + length - 1));
            arguments.push(format!("--typecode={n}:{}", kind(&part)));
            arguments.push(format!("--partition-guid={n}:{}", guid(n + 1)));
            arguments.push(format!(
                "--change-name={n}:{}",
                part.label.as_ref().expect("as the test laid it")
            ));
            arguments.extend(
                (0..64)
                    .filter(|bit| part.attributes >> bit & 1 == 1)
                    .map(|bit| format!("--attributes={n}:set:{bit}")),
            );
        }
        arguments.push(image.name());
        run(
            "env",
            &[
                &["LC_ALL=C.UTF-8", "sgdisk"][..],
                &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
            ]
            .concat(),
        )
        .expect("as the test laid it");
        same_bytes("sgdisk", &image, &ours(sector, size, &guids(), &layout(), None));
    }
}

#[test]
fn parted_writes_the_same_bytes() {
    for (sector, size) in disks(&["parted"]) {
        let image = Image::new("parted", sector, &Sparse::new(size));
        let mut arguments =
            vec!["--script".to_string(), image.name(), "mklabel".into(), "gpt".into()];
        let mut parts: Vec<Wanted> = layout()
            .into_iter()
            .filter(|p| p.label.as_ref().is_some_and(|l| l.is_ascii()))
            .collect();
        for part in &mut parts {
            // It names a type only by what it knows of it.
            part.kind = Gpt.kind("linux-data").expect("as the test laid it");
            part.attributes = 0;
            let (start, end) = (
                part.place.start.expect("as the test laid it"),
                part.place.start.unwrap() + part.place.size.unwrap(),
            );
            let name = format!("\"{}\"", part.label.as_ref().expect("as the test laid it"));
            arguments.extend(["mkpart".into(), name, format!("{start}B"), format!("{}B", end - 1)]);
        }
        arguments.extend(["set".into(), "1".into(), "legacy_boot".into(), "on".into()]);
        parts[0].attributes = 4;
        run("parted", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
            .expect("as the test laid it");
        // Its GUIDs are its own.
        let header = image.bytes(sector + 56, 16);
        let array = (0..parts.len() as u64).map(|n| image.bytes(2 * sector + 128 * n + 16, 16));
        let guids: Vec<Guid> = std::iter::once(header)
            .chain(array)
            .map(|b| Guid(b.try_into().expect("as the test laid it")))
            .collect();
        same_bytes("parted", &image, &ours(sector, size, &guids, &parts, None));
    }
}

#[test]
fn no_tool_finds_fault() {
    for (sector, size) in disks(&["sgdisk", "sfdisk", "parted", "blkid"]) {
        let image = Image::new("ours", sector, &ours(sector, size, &guids(), &plain(), None));
        let name = image.name();
        let said = run("sgdisk", &["--verify", &name]).expect("as the test laid it");
        assert!(said.contains("No problems found"), "{said}");
        let said = run("sfdisk", &["--verify", &name]).expect("as the test laid it");
        assert!(said.contains("No errors detected") && !said.contains("arning"), "{said}");
        for n in 1..=LAYOUT.len() {
            // It answers by its exit status.
            run("parted", &["--script", &name, "align-check", "opt", &n.to_string()])
                .expect("as the test laid it");
        }
        let said = run("env", &["LC_ALL=C.UTF-8", "parted", "--script", &name, "print"])
            .expect("as the test laid it");
        assert!(!said.contains("arning") && !said.contains("rror"), "{said}");
        let said = run("blkid", &["-p", "-o", "export", &name]).expect("as the test laid it");
        assert!(
            said.contains("PTTYPE=gpt") && said.contains(&format!("PTUUID={}", guid(1))),
            "{said}"
        );
    }
}

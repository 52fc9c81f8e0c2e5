//! MBRs and chains of logical partitions as we write them, beside those of sfdisk for the same
//! edits, byte for byte; whether others find fault with ours; and our edits of a chain that parted
//! wrote.
//!
//! parted's bytes differ on purpose: it writes boot code of its own, CHS fields of another
//! geometry, `0f` for an extended partition of any size, and EBRs a few sectors before their
//! partitions.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use crate::gpt::{Image, run, sectors};
use std::ops::Range;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::class::mbr::{Ebr, Mbr};
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::table::scheme::{Id, New, Scheme, TableSite};
use trueline_geom::table::{Request, Rules, Table, Wanted};

const MIB: u64 = 1 << 20;
/// Size of the disk and place of the extended partition: within what CHS can say, past it and past
/// 4 GiB, and past 2^32 bytes and 2^31 sectors of either size.
const DISKS: [(u64, u64); 3] =
    [(512 * MIB, 8 * MIB), (20_000 * MIB, 9_000 * MIB), (2_000_000 * MIB, 1_100_000 * MIB)];
const EXTENDED: u64 = 200 * MIB;

/// Type, MiB and MiB: primary partitions.
const PRIMARY: [(&str, u64, u64); 2] = [("c", 1, 4), ("83", 6, 2)];
/// The same of logical ones, from the extended partition.
const LOGICAL: [(&str, u64, u64); 4] =
    [("83", 1, 10), ("82", 12, 5), ("fd", 40, 3), ("7", 44, 100)];

/// Bytes in which sfdisk differs when it deletes: it leaves the CHS fields of the link to the
/// deleted EBR in the one that skips it; and into the rest of a sector of 4096 bytes, of an EBR
/// that is left empty, version 2.38 writes what its memory held.
const DELETED: [Range<usize>; 3] = [463..466, 467..470, 512..4096];

fn wanted(kind: &str, start: u64, size: u64) -> Wanted {
    let place = Request { start: Some(start), size: Some(size), align: None };
    Wanted {
        kind: Mbr.kind(kind).expect("as the test laid it"),
        place,
        index: None,
        label: None,
        uuid: None,
        attributes: 0,
    }
}

/// A disk that we write, and where its extended partition is.
struct Ours {
    disk: Sparse,
    sector: u64,
    at: u64,
}

impl Ours {
    fn new(sector: u64, size: u64, at: u64) -> Ours {
        let mut ours = Ours { disk: Sparse::new(size), sector, at };
        let new = New { id: Some(Id::Signature(0x1234_5678)), ..New::default() };
        let before = ours
            .see(None, |probe, site| Mbr.create(probe, site, &new).expect("as the test laid it"));
        let mut after = before.clone();
        let topology = Topology::new(sector, size);
        let site = TableSite { topology: &topology, base: 0, kind: None };
        let primary = PRIMARY.map(|(kind, start, size)| wanted(kind, start * MIB, size * MIB));
        for wanted in primary.into_iter().chain([wanted("5", at, EXTENDED)]) {
            after.add(&site, wanted, Rules::Aligned).expect("as the test laid it");
        }
        after.mark(Some(1), &Mbr.attributes()[0], true).expect("as the test laid it");
        ours.write(0, &Mbr.render(&before, &after));
        ours.logical(|table, site| {
            for (kind, start, size) in LOGICAL {
                table
                    .add(site, wanted(kind, start * MIB, size * MIB), Rules::Aligned)
                    .expect("as the test laid it");
            }
        });
        ours
    }

    fn write(&mut self, from: u64, patches: &[Patch]) {
        patches.iter().for_each(|p| self.disk.put(from + p.offset, &p.bytes));
    }

    fn see<T>(&self, from: Option<u64>, look: impl FnOnce(&Probe<'_>, &TableSite<'_>) -> T) -> T {
        let (length, kind) =
            from.map_or((self.disk.length(), None), |_| (EXTENDED, Some(PartitionType::Mbr(5))));
        let mut view = Sparse::new(length);
        let from = from.unwrap_or(0);
        for (at, run) in self.disk.runs().filter(|(at, run)| at + run.len() as u64 > from) {
            let cut = usize::try_from(from.saturating_sub(at)).expect("as the test laid it");
            view.put(at.saturating_sub(from), &run[cut..]);
        }
        let (route, stores) = (Route::store(0, length), [Box::new(view) as Box<dyn Store>]);
        let topology = Topology::new(self.sector, length);
        let site = TableSite { topology: &topology, base: from, kind };
        let budget = Budget::new(Limits::default());
        look(&Probe::new(&route, &stores, &budget, self.sector, Some(from), kind.as_ref()), &site)
    }

    /// Edits the chain of logical partitions.
    fn logical(&mut self, edit: impl FnOnce(&mut Table, &TableSite<'_>)) {
        let patches = self.see(Some(self.at), |probe, site| {
            let before = Ebr.read(probe).expect("as the test laid it");
            let mut after = before.clone();
            edit(&mut after, site);
            Ebr.render(&before, &after)
        });
        self.write(self.at, &patches);
    }

    /// Asserts that `image` has the same bytes wherever we wrote any, except those at `but` in
    /// every sector.
    fn is_like(&self, image: &Image, what: &str, but: &[Range<usize>]) {
        for (at, run) in self.disk.runs() {
            let theirs = image.bytes(at, run.len() as u64);
            let other: Vec<usize> = (0..run.len())
                .filter(|&n| theirs[n] != run[n] && !but.iter().any(|r| r.contains(&n)))
                .collect();
            assert!(
                other.is_empty(),
                "{what}, sectors of {}: at {at} sfdisk differs in {other:?}",
                self.sector
            );
        }
    }
}

/// Has sfdisk do the same as [`Ours::new`].
fn theirs(sector: u64, size: u64, at: u64) -> Image {
    let image = Image::new("sfdisk-mbr", sector, &Sparse::new(size));
    let line = |kind: &str, start: u64, size: u64, more: &str| {
        format!("start={}, size={}, type={kind}{more}\n", start / sector, size / sector)
    };
    let mut script = "label: dos\nlabel-id: 0x12345678\n".to_string();
    script += &line(PRIMARY[0].0, PRIMARY[0].1 * MIB, PRIMARY[0].2 * MIB, ", bootable");
    script += &line(PRIMARY[1].0, PRIMARY[1].1 * MIB, PRIMARY[1].2 * MIB, "");
    script += &line("5", at, EXTENDED, "");
    // Four primary entries or a number are what tells sfdisk that the rest are logical.
    for (n, (kind, start, size)) in (5..).zip(LOGICAL) {
        script += &format!("{n} : {}", line(kind, at + start * MIB, size * MIB, ""));
    }
    sfdisk(&image, &script, "");
    image
}

fn sfdisk(image: &Image, script: &str, options: &str) {
    let file = image.scratch.path().join("script");
    std::fs::write(&file, script).expect("as the test laid it");
    let command = format!("sfdisk --quiet --no-tell-kernel {options} \"$0\" < \"$1\"");
    run("sh", &["-c", &command, &image.name(), &file.to_string_lossy()])
        .expect("as the test laid it");
}

#[test]
fn sfdisk_writes_the_same_bytes() {
    for sector in sectors(&["sfdisk"]) {
        for (size, at) in DISKS {
            Ours::new(sector, size, at).is_like(&theirs(sector, size, at), "a new table", &[]);
        }
    }
}

#[test]
fn sfdisk_deletes_with_the_same_bytes() {
    for sector in sectors(&["sfdisk"]) {
        let (size, at) = DISKS[1];
        // On sectors of 4096 bytes sfdisk 2.38 trips over what it left in a first EBR without a
        // partition.
        let last = if sector == 512 { &[8, 7, 6, 5][..] } else { &[8, 7, 6] };
        for numbers in [&[5][..], &[6], &[8], &[6, 5], &[5, 5], last] {
            let (image, mut ours) = (theirs(sector, size, at), Ours::new(sector, size, at));
            for number in numbers {
                run(
                    "sfdisk",
                    &[
                        "--quiet",
                        "--no-tell-kernel",
                        "--delete",
                        &image.name(),
                        &number.to_string(),
                    ],
                )
                .expect("as the test laid it");
                ours.logical(|table, _| assert!(table.delete(*number).is_ok()));
            }
            ours.is_like(&image, &format!("without {numbers:?}"), &DELETED);
        }
    }
}

/// A table without its blanks.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn no_tool_finds_fault() {
    for sector in sectors(&["sfdisk", "parted", "blkid", "partx"]) {
        for (size, at) in DISKS {
            let image = Image::new("our-mbr", sector, &Ours::new(sector, size, at).disk);
            let name = image.name();
            let said = run("sfdisk", &["--verify", &name]).expect("as the test laid it");
            assert!(said.contains("No errors detected") && !said.contains("arning"), "{said}");
            let said = run("parted", &["--script", &name, "unit", "s", "print"])
                .expect("as the test laid it");
            assert!(!said.contains("arning") && !said.contains("rror"), "{said}");
            for n in ["1", "2", "3", "5", "6", "7", "8"] {
                run("parted", &["--script", &name, "align-check", "opt", n])
                    .expect("as the test laid it");
            }
            let said = run("blkid", &["-p", "-o", "export", &name]).expect("as the test laid it");
            assert!(said.contains("PTTYPE=dos") && said.contains("PTUUID=12345678"), "{said}");
            let logical = LOGICAL.map(|(_, start, size)| (at + start * MIB, size * MIB));
            let primary = PRIMARY.map(|(_, start, size)| (start * MIB, size * MIB));
            let all = primary.into_iter().chain([(at, EXTENDED)]).chain(logical);
            let numbers = [1, 2, 3, 5, 6, 7, 8];
            let want: Vec<String> = numbers
                .iter()
                .zip(all)
                .map(|(n, (start, size))| format!("{n} {} {}", start / 512, size / 512))
                .collect();
            let said =
                run("partx", &["--show", "--noheadings", "--output", "NR,START,SECTORS", &name])
                    .expect("as the test laid it");
            // It counts in 512 bytes whatever the sector.
            assert_eq!(lines(&said), want);
        }
    }
}

#[test]
fn a_chain_that_parted_wrote_is_edited_in_its_place() {
    let sector = 512;
    if !sectors(&["parted", "sfdisk", "partx"]).contains(&sector) {
        return;
    }
    let (size, at) = DISKS[1];
    let image = Image::new("parted-mbr", sector, &Sparse::new(size));
    let mut arguments = vec!["--script".to_string(), image.name()];
    let end = |start: u64, size: u64| format!("{}B", start + size - 1);
    arguments.extend("mklabel msdos mkpart extended".split(' ').map(String::from));
    arguments.extend([format!("{at}B"), end(at, EXTENDED)]);
    for (_, start, size) in LOGICAL {
        arguments.extend([
            "mkpart".into(),
            "logical".into(),
            format!("{}B", at + start * MIB),
            end(at + start * MIB, size * MIB),
        ]);
    }
    run("parted", &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        .expect("as the test laid it");
    let mut disk = Sparse::new(size);
    disk.put(0, &image.bytes(0, 512));
    disk.put(at, &image.bytes(at, EXTENDED));
    let mut ours = Ours { disk, sector, at };
    ours.logical(|table, site| {
        assert!(table.delete(7).is_ok() && table.delete(5).is_ok());
        table
            .add(site, wanted("82", 30 * MIB, 4 * MIB), Rules::Aligned)
            .expect("as the test laid it");
        table.add(site, wanted("83", 2 * MIB, MIB), Rules::Aligned).expect("as the test laid it");
    });
    let edited = Image::new("parted-edited", sector, &ours.disk);
    let said =
        run("partx", &["--show", "--noheadings", "--output", "NR,START,SECTORS", &edited.name()])
            .expect("as the test laid it");
    let logical = [(2, 1), (12, 5), (30, 4), (44, 100)].into_iter().zip(5..);
    let want: Vec<String> = logical
        .map(|((start, size), n)| format!("{n} {} {}", (at + start * MIB) / 512, size * MIB / 512))
        .collect();
    assert_eq!(lines(&said)[1..], want);
    let said = run("sfdisk", &["--verify", &edited.name()]).expect("as the test laid it");
    assert!(said.contains("No errors detected"), "{said}");
    run("parted", &["--script", &edited.name(), "print"]).expect("as the test laid it");
}

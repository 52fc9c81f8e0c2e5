//! Parameters that are planned, given to the real tools: what they make has them.

use super::{DRIVES, plain};
use crate::mkfs::shell;
use crate::skip::skip;
use crate::{list, run, scratch, zeroes};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::Command;
use trueline_geom::audit::profile;
use trueline_geom::base::topology::{Fact, Topology, Why};
use trueline_geom::plan::{btrfs, exfat, ext4, fat, ntfs, swap, xfs};

/// Output of a program; `None`, with a message, if it is not installed.
fn tool(name: &str, arguments: &[String]) -> Option<String> {
    match Command::new(name).args(arguments).env("MKE2FS_CONFIG", "/dev/null").output() {
        Ok(output) => {
            let text = [output.stdout, output.stderr]
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
                .concat();
            assert!(output.status.success(), "{name} {}: {text}", arguments.join(" "));
            Some(text)
        }
        // Where a directory of the PATH may not be looked into, that is the error.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
            skip(&format!("no {name} here"));
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// A topology of `length` bytes of a drive that `--for` knows.
fn topology_of(drive: &str, length: u64) -> Topology {
    let (sector, facts) = profile::named(drive).expect("a drive");
    Topology { facts, ..Topology::new(sector.unwrap_or(512), length) }
}

/// Makes a file system of `topology.length` bytes with `options`, and `flags` that a file needs;
/// its image, if the tool is there.
fn made(
    directory: &Path,
    name: &str,
    flags: &[&str],
    options: Vec<String>,
    topology: &Topology,
) -> Option<std::path::PathBuf> {
    let image = directory.join("image");
    let _ = fs::remove_file(&image);
    zeroes(directory, "image", topology.length);
    let arguments: Vec<String> = flags
        .iter()
        .map(|&f| f.to_owned())
        .chain(options)
        .chain([image.display().to_string()])
        .collect();
    tool(name, &arguments).map(|_| image)
}

/// A little-endian number of an image.
pub(super) fn number(image: &Path, at: u64, width: usize) -> u64 {
    let (mut file, mut bytes) = (File::open(image).expect("an image"), [0; 8]);
    file.seek(SeekFrom::Start(at))
        .and_then(|_| file.read_exact(&mut bytes[..width]))
        .expect("it is as long");
    u64::from_le_bytes(bytes)
}

#[test]
fn mkfs_does_what_ext4_and_xfs_parameters_say() {
    let scratch = scratch();
    for drive in DRIVES {
        let t = topology_of(drive, 1 << 30);
        let p = ext4::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkfs.ext4", &["-q", "-F"], p.options(), &t) {
            // The superblock begins at 1024: s_log_block_size, s_raid_stride, s_raid_stripe_width.
            let seen = (
                1024 << number(&image, 1024 + 24, 4),
                number(&image, 1024 + 0x164, 2),
                number(&image, 1024 + 0x170, 4),
            );
            assert_eq!(
                seen,
                (p.block, p.stride.unwrap_or(0), p.stripe_width.unwrap_or(0)),
                "{drive}"
            );
        }
        let p = xfs::Parameters::for_topology(&t);
        if made(scratch.path(), "mkfs.xfs", &["-q", "-f"], p.options(), &t).is_some() {
            let words =
                ["-r", "-c", "sb 0", "-c", "p blocksize sectsize unit width logsunit", "image"]
                    .map(str::to_owned);
            let words = words.map(|w| {
                if w == "image" { scratch.path().join(w).display().to_string() } else { w }
            });
            let Some(seen) = tool("xfs_db", &words) else { continue };
            let blocks = |n: Option<u64>| n.unwrap_or(0) / p.block;
            // logsunit is 1 where the log has no stripe unit of its own, or its sector where that
            // is larger.
            let log = p.log_su.unwrap_or(if p.sector > 512 { p.sector } else { 1 });
            let row = p.su.zip(p.sw).map(|(su, sw)| su * sw);
            let want = format!(
                "blocksize = {}\nsectsize = {}\nunit = {}\nwidth = {}\nlogsunit = {log}\n",
                p.block,
                p.sector,
                blocks(p.su),
                blocks(row)
            );
            assert_eq!(seen, want, "{drive}");
        }
    }
}

#[test]
fn mkfs_does_what_the_other_parameters_say() {
    let scratch = scratch();
    for drive in DRIVES {
        let t = topology_of(drive, 1 << 30);
        let p = btrfs::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkfs.btrfs", &["-q", "-f"], p.options(), &t) {
            assert_eq!(
                (number(&image, 65536 + 0x90, 4), number(&image, 65536 + 0x94, 4)),
                (p.sector, p.node),
                "{drive}"
            );
        }
        let p = ntfs::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkntfs", &["-q", "-Q", "-F"], p.options(), &t) {
            // Above 128 sectors a cluster is 2 to the power of the negated byte.
            assert_eq!(
                (number(&image, 11, 2), number(&image, 11, 2) * number(&image, 13, 1)),
                (p.sector, p.cluster),
                "{drive}"
            );
        }
        let p = exfat::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkfs.exfat", &[], p.options(), &t) {
            let sector = 1 << number(&image, 108, 1);
            let (table, clusters) =
                (number(&image, 80, 4) * sector, number(&image, 88, 4) * sector);
            assert_eq!(sector << number(&image, 109, 1), p.cluster, "{drive}");
            assert_eq!((table % p.boundary, clusters % p.boundary), (0, 0), "{drive}");
        }
        let p = swap::Parameters::for_topology(&t);
        if let Some(image) = made(scratch.path(), "mkswap", &["-q"], p.options(), &t) {
            assert_eq!(&number(&image, p.page - 10, 8).to_le_bytes(), b"SWAPSPAC", "{drive}");
        }
    }
}

#[test]
fn fat_data_begin_where_it_is_said() {
    let scratch = scratch();
    let (m, g) = (1 << 20, 1 << 30);
    for drive in ["512e", "4kn", "ssd-16k", "ssd-64k", "sd-4m"] {
        let lengths = [
            8 * m,
            17 * m,
            40 * m,
            100 * m,
            256 * m,
            260 * m,
            256 * m + (700 << 10),
            511 * m,
            777 * m + 512 * 8,
            500 * m,
            600 * m,
        ];
        for length in
            lengths.into_iter().chain([3 * g + 12288, 8 * g, 9_876_541_440, 20 * g, 40 * g])
        {
            // As of a partition that begins on the boundaries, or at one of these bytes.
            for start in [0, 63 * 512, m, 3 * 4096] {
                let disk = topology_of(drive, length + start);
                fat_is_as_said(
                    scratch.path(),
                    &disk.shift(start, length),
                    &format!("{drive} {length} at {start}"),
                );
            }
        }
    }
}

fn fat_is_as_said(directory: &Path, t: &Topology, which: &str) {
    let p = fat::Parameters::for_topology(t);
    let Some(image) = made(directory, "mkfs.vfat", &[], p.options(), t) else { return };
    let sector = number(&image, 11, 2);
    let table = if p.bits == 32 { number(&image, 36, 4) } else { number(&image, 22, 2) };
    let root = number(&image, 17, 2) * 32;
    let data = (number(&image, 14, 2) + number(&image, 16, 1) * table) * sector + root;
    assert_eq!((sector, sector * number(&image, 13, 1)), (p.sector, p.cluster), "{which}");
    assert_eq!((data, data % p.align), (p.data, p.phase), "{which}: {p:?}");
    let reached = |f: &&Fact| {
        f.grain.phase().is_multiple_of(p.sector)
            && (f.grain.size() <= p.cluster || f.why == Why::Erase && t.length >= 32 << 20)
    };
    assert!(t.facts.iter().filter(reached).all(|f| f.grain.contains(data)), "{which}: {p:?}");
}

/// The commands of a plan for a disk of 2 GiB.
fn commands(directory: &Path, options: &str) -> Vec<String> {
    let document = run(directory, &format!("plan --size 2g {options} --json")).ended(0).json();
    list(&document, "commands").iter().map(plain).collect()
}

/// The words of the command that begins so, from its second on, with the last replaced.
fn words(commands: &[String], begins: &str, last: &Path) -> Vec<String> {
    let command = commands
        .iter()
        .find(|c| c.starts_with(begins))
        .unwrap_or_else(|| panic!("no {begins} in {commands:?}"));
    let mut words: Vec<String> = command.split(' ').skip(1).map(str::to_owned).collect();
    *words.last_mut().expect("a device") = last.display().to_string();
    words
}

#[test]
fn cryptsetup_and_qemu_take_what_is_planned() {
    let scratch = scratch();
    let image = scratch.path().join("image");
    fs::write(scratch.path().join("key"), "secret").expect("a key");
    let fast = ["-q", "--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000", "--key-file"]
        .map(str::to_owned);
    for (options, version) in [
        ("--for raid64kx3 --use luks", 2),
        ("--for 512n --use luks", 2),
        ("--for 4kn --use luks1", 1),
    ] {
        zeroes(scratch.path(), "image", 64 << 20);
        let planned = words(&commands(scratch.path(), options), "cryptsetup luksFormat", &image);
        let value = |option: &str| {
            planned.iter().skip_while(|w| *w != option).nth(1).and_then(|w| w.parse::<u64>().ok())
        };
        let arguments: Vec<String> = planned
            .iter()
            .cloned()
            .chain(fast.clone())
            .chain([scratch.path().join("key").display().to_string()])
            .collect();
        if tool("cryptsetup", &arguments).is_none() {
            return;
        }
        let dump = tool("cryptsetup", &["luksDump".to_owned(), image.display().to_string()])
            .expect("it is there");
        let offset = value("--offset").expect("an offset");
        let want = if version == 2 {
            format!("offset: {} [bytes]", offset * 512)
        } else {
            format!("Payload offset:\t{offset}\n")
        };
        assert!(dump.contains(&want), "{options}: {want}: {dump}");
        assert!(
            version == 1
                || dump.contains(&format!(
                    "sector: {} [bytes]",
                    value("--sector-size").expect("a sector")
                )),
            "{options}: {dump}"
        );
    }
    for drive in DRIVES {
        let planned = commands(scratch.path(), &format!("--for {drive} --use xfs+vm-images"));
        let mut arguments = words(&planned, "qemu-img create", Path::new("64M"));
        let file = arguments.len() - 2;
        arguments[file] = image.display().to_string();
        if tool("qemu-img", &arguments).is_none() {
            return;
        }
        let cluster = 1 << (number(&image, 20, 4).swap_bytes() >> 32);
        assert!(
            planned.iter().any(|c| c.contains(&format!("discard_granularity={cluster}"))),
            "{drive}: {cluster}: {planned:?}"
        );
    }
}

#[test]
fn f2fs_and_sqlite_do_what_is_planned() {
    let scratch = scratch();
    let planned = commands(scratch.path(), "--grain erase=8m --use f2fs");
    zeroes(scratch.path(), "image", 2 << 30);
    let image = scratch.path().join("image");
    if tool("mkfs.f2fs", &[&["-q".to_owned()][..], &words(&planned, "mkfs.f2fs", &image)].concat())
        .is_some()
    {
        // The superblock is at 1024: log_blocks_per_seg at 20, segs_per_sec at 24.
        assert_eq!((number(&image, 1024 + 20, 4), number(&image, 1024 + 24, 4)), (9, 4));
    }
    let planned = commands(scratch.path(), "--physical 16k --use sqlite");
    let command =
        planned.last().expect("a command").replace("/mnt", &scratch.path().display().to_string());
    if tool("sqlite3", &["-version".to_owned()]).is_some() {
        assert!(shell(scratch.path(), &command).status.success(), "{command}");
        // Big-endian, and 2 is the log's version.
        let file = scratch.path().join("data.sqlite");
        assert_eq!((number(&file, 16, 2), number(&file, 18, 1)), (0x0040, 2), "{command}");
    }
}

//! File systems in files: what FreeBSD's newfs writes, byte for byte, and what another newfs says
//! of the same fields.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use skip::skip;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use trueline_geom::newfs::{Flavour, Newfs, Options};

#[path = "../../../tests/skip.rs"]
mod skip;

/// A file that goes with the test.
struct Image(PathBuf);

impl Image {
    fn new(name: &str) -> Image {
        Image(std::env::temp_dir().join(format!("trueline-newfs-{}-{name}", std::process::id())))
    }

    /// A sparse file with a new file system.
    fn made(name: &str, length: u64, options: Options) -> Image {
        let image = Image::new(name);
        let file = File::create(&image.0).unwrap();
        file.set_len(length).unwrap();
        let newfs = Newfs::new(length, 512, None, &options).unwrap();
        let done: io::Result<()> =
            newfs.write(1_000_000_000, &mut || 0, &[0; 65536], &mut |at, bytes| {
                file.write_all_at(bytes, at)
            });
        done.unwrap();
        image
    }

    fn sha256(&self) -> String {
        let said = Command::new("sha256sum").arg(&self.0).output().unwrap();
        String::from_utf8(said.stdout).unwrap().split(' ').next().unwrap().to_string()
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// newfs with soft updates on a system whose group `operator` is 37.
fn before_13() -> Options {
    Options { maxphys: 128 << 10, soft_updates: true, operator_gid: 37, ..Options::default() }
}

#[test]
fn images_are_those_of_freebsd() {
    let small = Options { block_size: Some(16384), fragment_size: Some(2048), ..before_13() };
    let vectors = [
        (64, before_13(), "ac911ff0b8e91c89b6f59eff1c431b32ba4c00f534d5f2890968f47f31220800"),
        (
            64,
            Options { maxphys: 1 << 20, ..before_13() },
            "29aed824d14e4d7a77793cf3aaaf258d31488c91aeda2a239f242aad1156ac06",
        ),
        (256, before_13(), "84b06817bb0841ae171e66f67bf44e836c9a64896aa4bf1c0e8e1b7a095b856d"),
        (64, small, "45e542247322065112060cd809fc9ab74428bb2a2663a7964caaceb9ebc85fdf"),
        (
            64,
            Options { flavour: Flavour::FreeBsd12, ..before_13() },
            "8c67b4c164fbe8e9fe6945f6da9de2d15bef2bb2d86061df93a360b43a0183dd",
        ),
    ];
    for (i, (megabytes, options, sha256)) in vectors.into_iter().enumerate() {
        let image = Image::made(&format!("vector-{i}"), megabytes << 20, options);
        assert_eq!(image.sha256(), sha256, "vector {i}");
    }
}

/// What is at byte `at`.
fn field(image: &Path, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    File::open(image).unwrap().read_exact_at(&mut bytes, at).unwrap();
    bytes
}

#[test]
fn makefs_means_the_same() {
    let (theirs, tree) = (Image::new("makefs"), Image::new("tree"));
    fs::create_dir_all(&tree.0).unwrap();
    let options = "version=2,bsize=32768,fsize=4096,density=8192,minfree=8,optimization=time";
    let run = Command::new("makefs")
        .args(["-t", "ffs", "-s", "64m", "-o", options])
        .arg(&theirs.0)
        .arg(&tree.0)
        .output();
    fs::remove_dir(&tree.0).unwrap();
    let Ok(run) = run else { return skip("no makefs here") };
    assert!(run.status.success(), "{run:?}");
    let ours = Image::made("ours", 64 << 20, before_13());
    // What depends neither on how many blocks are in a group nor on the place of the superblock:
    // Debian's makefs puts it at 8192.
    let same: &[(&str, u64, usize)] = &[
        ("bsize, fsize, frag, minfree", 48, 16),
        ("bmask, fmask, bshift, fshift", 72, 16),
        ("fragshift, fsbtodb", 96, 8),
        ("nindir, inopb", 116, 8),
        ("optim", 128, 4),
        ("clean", 209, 1),
        ("size", 1080, 8),
        ("avgfilesize, avgfpdir", 1196, 8),
        ("maxsymlinklen", 1320, 4),
        ("maxfilesize, qbmask, qfmask", 1328, 24),
        ("magic", 1372, 4),
    ];
    for (name, at, length) in same {
        assert_eq!(
            field(&ours.0, 65536 + at, *length),
            field(&theirs.0, 8192 + at, *length),
            "{name}"
        );
    }
}

/// What Linux says of each file system: fragment size, fragments, free ones, inodes, free ones;
/// then of `.snap`: links, mode, group, size, 512-byte units, time.
const MOUNTED: &str = "\
set -e
mkdir -p /tmp/ufs
for disk in vda vdb vdc vdd; do
    mount -t ufs -o ro,ufstype=ufs2 /dev/$disk /tmp/ufs
    stat -f -c \"$disk %S %b %f %c %d\" /tmp/ufs >&3
    stat -c \"$disk %h %a %u %g %s %b %Y\" /tmp/ufs /tmp/ufs/.snap >&3
    (cd /tmp/ufs && find . | xargs) >&3
    umount /tmp/ufs
done";

#[test]
fn linux_mounts_it() {
    let disk = |name, length, sector: u64, options| {
        let image = Image::made(
            name,
            length,
            Options { flavour: Flavour::FreeBsd14, sector: Some(sector), ..options },
        );
        // Linux reads a superblock in pieces that a drive with larger sectors does not take.
        let argument = format!("{},lbs=512,pbs=4096", image.0.display());
        (image, argument)
    };
    let sizes = |block_size, fragment_size| Options {
        block_size: Some(block_size),
        fragment_size: Some(fragment_size),
        ..Options::default()
    };
    let disks = [
        disk("vda", 64 << 20, 512, before_13()),
        disk("vdb", 188_743_680 * 512, 512, before_13()),
        disk("vdc", 100 << 20, 512, sizes(4096, 512)),
        disk("vdd", 1 << 30, 4096, sizes(16384, 4096)),
    ];
    let mut boot =
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernel/boot.sh"));
    let ran = boot
        .args(["-m", "ufs", "-r", MOUNTED])
        .args(disks.iter().map(|(_, argument)| argument))
        .output()
        .unwrap();
    let (out, errors) =
        (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    if ran.status.code() == Some(2) {
        // boot.sh's own status for "something to boot with is missing"; it says what.
        return skip(&errors);
    }
    assert!(ran.status.success(), "{errors}");
    let said: Vec<&str> = out.lines().filter(|line| !line.starts_with('{')).collect();
    let expected = [
        "vda 4096 15751 15749 8704 8700",
        "vda 3 755 0 0 512 8 1000000000",
        "vda 2 775 0 37 512 8 1000000000",
        ". ./.snap",
        "vdb 4096 22848199 22848197 11877888 11877884",
        "vdb 3 755 0 0 512 8 1000000000",
        "vdb 2 775 0 37 512 8 1000000000",
        ". ./.snap",
        "vdc 512 152207 152205 104368 104364",
        "vdc 3 755 0 0 512 1 1000000000",
        "vdc 2 775 0 5 512 1 1000000000",
        ". ./.snap",
        "vdd 4096 253883 253881 131328 131324",
        "vdd 3 755 0 0 512 8 1000000000",
        "vdd 2 775 0 5 512 8 1000000000",
        ". ./.snap",
    ];
    assert_eq!(said, expected);
}

#[test]
fn only_what_counts_is_written() {
    let image = Image::made("90g", 188_743_680 * 512, before_13());
    let file = File::open(&image.0).unwrap();
    let allocated = std::os::unix::fs::MetadataExt::blocks(&file.metadata().unwrap()) * 512;
    assert!(allocated < 20 << 20, "{allocated} bytes");
}

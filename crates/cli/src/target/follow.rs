//! References out of containers: files that an image names, such as the backing file of a qcow2.
//!
//! The bytes of an image are a guest's or a stranger's, so a name in them leads nowhere by itself.
//! It is followed to a disk of the same target, and with `--follow` to a regular file in the
//! image's own directory or below; never to a device, through a link out of there, or to another
//! protocol.

use super::open::{image, stem};
use super::{DiskOverrides, Target};
use crate::failure::Reason;
use std::path::{Component, Path, PathBuf};
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::format::{Reference, Sign};
use trueline_geom::graph::{Bytes, Disk};
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry;
use trueline_host::disk::file::{self, Access};

/// Files that are followed to from the disks of one target.
const MOST: usize = 256;

/// Links the disks of `target` to what containers among them name, and opens further disks for
/// names that are followed. A name that is not is a finding about its disk.
pub(super) fn follow(target: &Target, disks: &mut Vec<Disk>, overrides: &DiskOverrides) {
    let mut paths: Vec<Option<PathBuf>> =
        target.sources().iter().map(|source| source.path().map(Path::to_owned)).collect();
    let named = disks.len();
    let mut signs: Vec<Option<Sign>> = paths
        .iter()
        .zip(&mut *disks)
        .map(|(path, disk)| sign(disk).filter(|_| path.is_some()))
        .collect();
    let mut at = 0;
    while at < disks.len() {
        let references = signs[at].as_ref().map(|sign| sign.references.clone());
        for reference in references.unwrap_or_default() {
            let Some(from) = paths[at].clone() else { continue };
            // One that has no name is known by its identity alone.
            let is = |sign: &Option<Sign>| {
                sign.as_ref().is_some_and(|sign| sign.identity.as_ref() == Some(&reference.name))
            };
            let known = paths
                .iter()
                .position(|path| leads_to(&from, &reference.name, path))
                .or_else(|| signs.iter().position(is));
            if let Some(known) = known.filter(|&known| known != at) {
                disks[at].references.push((reference.name, known));
                continue;
            }
            if !overrides.follow {
                continue;
            }
            let opened = if disks.len() - named < MOST {
                allowed(&from, &reference.name).and_then(|path| open(path, &reference, overrides))
            } else {
                Err(Reason(format!("{MOST} files were followed already")))
            };
            match opened {
                Ok((path, mut disk)) => {
                    let taken = disks.iter().any(|other| other.name == disk.name);
                    if taken || disk.name.is_empty() {
                        disk.name = format!("{}-{}", disk.name, disks.len());
                    }
                    let next = disks.len();
                    disks[at].references.push((reference.name, next));
                    signs.push(sign(&mut disk));
                    disks.push(disk);
                    paths.push(Some(path));
                }
                Err(Reason(why)) => disks[at].findings.push(refused(&reference, &why)),
            }
        }
        at += 1;
    }
}

/// The note about a name that is not followed.
fn refused(Reference { role, name, .. }: &Reference, why: &str) -> Finding {
    let message = format!("its {role} '{name}' is not followed: {why}");
    Finding::new(&finding::BLIND, Severity::Note, 0, message)
}

/// The sign of the container that a disk is.
fn sign(disk: &mut Disk) -> Option<Sign> {
    let Bytes::Store(store) = &mut disk.bytes else { return None };
    let empty = Box::new(trueline_geom::base::store::Sparse::new(0));
    let stores = [std::mem::replace(store, empty)];
    let route = Route::store(0, stores[0].length());
    let budget = Budget::new(Limits::default());
    let probe = Probe::new(&route, &stores, &budget, disk.topology.sector, Some(0), None);
    let found = registry::container(&probe, disk.format.as_deref());
    [*store] = stores;
    found
}

/// True if `name`, in the container `from`, is that of the disk at `path`.
fn leads_to(from: &Path, name: &str, path: &Option<PathBuf>) -> bool {
    let Some(path) = path else { return false };
    let meant = from.parent().unwrap_or(Path::new("")).join(name);
    let same = match (meant.canonicalize(), path.canonicalize()) {
        (Ok(meant), Ok(path)) => meant == path,
        _ => false,
    };
    same || Path::new(name).file_name().is_some_and(|name| path.file_name() == Some(name))
}

/// The file that `name`, in the container `from`, may lead to. Errors: the reason for which it may
/// not.
fn allowed(from: &Path, name: &str) -> Result<PathBuf, Reason> {
    let refuse = |why: &str| Err(Reason(why.into()));
    if name.contains(':') {
        return refuse("it names a protocol, or has a colon");
    }
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.is_empty() || name.contains('\0') {
        return refuse("it leads out of the image's directory");
    }
    let directory = from.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new(".")).canonicalize()?;
    let path = directory.join(name).canonicalize()?;
    if !path.starts_with(&directory) {
        return refuse("it is a link that leads out of the image's directory");
    }
    if !path.metadata()?.is_file() {
        return refuse("it is not a regular file");
    }
    Ok(path)
}

/// Opens a file that a container names, for reading.
fn open(
    path: PathBuf,
    reference: &Reference,
    overrides: &DiskOverrides,
) -> Result<(PathBuf, Disk), Reason> {
    let opened = file::open_for(&path, Access::Read)?;
    let disk = image(stem(&path), Box::new(opened.store), overrides);
    // QEMU's names for what blkid calls otherwise.
    let format = reference.format.as_deref().map(|format| match format {
        "vpc" => "vhd",
        "file" | "host_device" => "raw",
        other => other,
    });
    Ok((path, Disk { format: format.map(str::to_owned), ..disk }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_name_leads_to_no_other_place() {
        let root = std::env::temp_dir().join(format!("trueline-follow-{}", std::process::id()));
        let inside = root.join("images");
        fs::create_dir_all(inside.join("below")).unwrap();
        for file in ["images/vm.qcow2", "images/base.raw", "images/below/b.raw", "secret.raw"] {
            fs::write(root.join(file), b"").unwrap();
        }
        std::os::unix::fs::symlink("../secret.raw", inside.join("link.raw")).unwrap();
        std::os::unix::fs::symlink("/dev/null", inside.join("null")).unwrap();
        let from = inside.join("vm.qcow2");
        for (name, is_allowed) in [
            ("base.raw", true),
            ("below/b.raw", true),
            ("../secret.raw", false),
            ("below/../../secret.raw", false),
            ("link.raw", false),
            ("null", false),
            ("/dev/sda", false),
            ("/etc/passwd", false),
            ("json:{\"driver\":\"file\"}", false),
            ("nbd://localhost", false),
            ("fat:below", false),
            ("file:base.raw", false),
            ("below", false),
            ("absent.raw", false),
            ("base.raw\0", false),
            ("", false),
            (".", false),
        ] {
            assert_eq!(allowed(&from, name).is_ok(), is_allowed, "{name:?}");
        }
        fs::remove_dir_all(root).unwrap();
    }
}

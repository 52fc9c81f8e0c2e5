//! References out of containers: files that an image names, such as the backing file of a qcow2.
//!
//! The bytes of an image are a guest's or a stranger's, so a name in them leads nowhere by itself.
//! It is followed to a disk of the same target, and with `--follow` to a regular file in the
//! image's own directory or below; never to a device, through a link out of there, or to another
//! protocol.

use super::bands::Bundle;
use super::home::{Home, allowed, is_plain};
use super::open::image;
use super::parts::{Joined, Parts};
use super::{DiskOverrides, Target};
use crate::failure::Reason;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::format::{Reference, Sign};
use trueline_geom::graph::{Bytes, Disk};
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry;
use trueline_host::disk::file::{self, Access};

/// Links the disks of `target` to what containers among them name, and opens further disks for
/// names that are followed. A name that is not is a finding about its disk. Returns the paths of
/// those names, whether or not a file is there.
pub(super) fn follow(
    target: &Target,
    disks: &mut Vec<Disk>,
    overrides: &DiskOverrides,
) -> Vec<PathBuf> {
    let mut tried = Vec::new();
    let mut homes: Vec<Home> = target.sources().iter().map(Home::of).collect();
    let named = disks.len();
    let mut places: Vec<Option<PathBuf>> = homes.iter().map(Home::place).collect();
    for (home, disk) in homes.iter().zip(&mut *disks) {
        let path = home.file();
        let parts = path.and_then(Parts::of);
        // Several that are named are looked at each by itself.
        let apart = |parts: &Parts| !places.iter().flatten().any(|place| parts.include(place));
        if let (Some(path), Some(parts)) = (path, parts.filter(apart)) {
            let others = parts.others().filter(|_| overrides.follow);
            tried.extend(others.into_iter().flatten().map(Path::to_owned));
            join(path, &parts, disk, overrides);
        }
        if let Some(bundle) = path.and_then(Bundle::of) {
            tried.extend(bundle.files().into_iter().filter(|_| overrides.follow));
            join_bands(bundle, disk, overrides);
        }
    }
    let mut signs: Vec<Option<Sign>> = homes
        .iter()
        .zip(&mut *disks)
        .map(|(home, disk)| if home.is_none() { None } else { sign(disk) })
        .collect();
    let mut at = 0;
    while at < disks.len() {
        let mut references = signs[at].as_ref().map_or(Vec::new(), |sign| sign.references.clone());
        // An extent may be named twice, with another offset.
        let mut names = HashSet::new();
        references.retain(|reference| names.insert(reference.name.clone()));
        for reference in references {
            let from = homes[at].clone();
            let Some(path) = from.path() else { continue };
            let known = known(&reference, (&from, &path), at, &places, &signs);
            if let Some(known) = known {
                // The name says what the bytes are, and not the bytes themselves.
                let format = reference.format.as_deref().map(format_of);
                if disks[known].format.is_none() && format.is_some() {
                    disks[known].format = format;
                    signs[known] = sign(&mut disks[known]);
                }
                disks[at].references.push((reference.name, known));
                continue;
            }
            if !overrides.follow {
                continue;
            }
            let most = from.most();
            let opened = if disks.len() - named < most {
                let name = beside(&path, &reference.name);
                let is_tried = from.file().is_some() && is_plain(&name);
                tried.extend(is_tried.then(|| path.with_file_name(&name)));
                from.allowed(&name).and_then(|home| match home.place() == places[at] {
                    true => Err(Reason("it is the file itself".into())),
                    false => open(home, &reference, overrides),
                })
            } else {
                Err(Reason(format!("{most} files were followed already")))
            };
            match opened {
                Ok((home, mut disk)) => {
                    let taken = disks.iter().any(|other| other.name == disk.name);
                    if taken || disk.name.is_empty() {
                        disk.name = format!("{}-{}", disk.name, disks.len());
                    }
                    let next = disks.len();
                    disks[at].references.push((reference.name, next));
                    signs.push(sign(&mut disk));
                    disks.push(disk);
                    places.push(home.place());
                    homes.push(home);
                }
                Err(Reason(why)) => disks[at].refused.push((reference.name, why)),
            }
        }
        at += 1;
    }
    tried
}

/// Makes `disk`, the part of a disk at `from`, the whole of it where references are followed, or
/// notes that it is a part.
fn join(from: &Path, parts: &Parts, disk: &mut Disk, overrides: &DiskOverrides) {
    let followed = parts.others().filter(|_| overrides.follow);
    let Some(others) = followed else {
        disk.findings.extend(parts.are_even().then(|| parts.alone()));
        return;
    };
    if let Some(uneven) = parts.uneven() {
        disk.findings.push(uneven);
        return;
    }
    let mut stores: Vec<Box<dyn Store>> = Vec::new();
    for other in others {
        let name = other.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let opened = allowed(from, name).and_then(|path| Ok(file::open_for(&path, Access::Read)?));
        match opened {
            Ok(opened) => stores.push(Box::new(opened.store)),
            Err(Reason(why)) => {
                let message = format!("its part '{name}' is not followed: {why}");
                disk.findings.push(Finding::new(&finding::BLIND, Severity::Note, 0, message));
                return;
            }
        }
    }
    let Bytes::Store(own) = &mut disk.bytes else { return };
    stores.insert(0, std::mem::replace(own, Box::new(Sparse::new(0))));
    be_whole(disk, Box::new(Joined::new(stores)), overrides);
}

/// Makes `disk`, the property list of a bundle, the disk in its bands where references are
/// followed, or notes that it is none.
fn join_bands(bundle: Bundle, disk: &mut Disk, overrides: &DiskOverrides) {
    if !overrides.follow {
        disk.findings.push(bundle.alone());
        return;
    }
    match bundle.disk() {
        Ok(bands) => be_whole(disk, Box::new(bands), overrides),
        Err(Reason(why)) => disk.findings.push(Bundle::refused(&why)),
    }
}

/// Gives `disk` the bytes of `whole`.
fn be_whole(disk: &mut Disk, whole: Box<dyn Store>, overrides: &DiskOverrides) {
    let whole = image(std::mem::take(&mut disk.name), whole, overrides);
    let (findings, format) = (std::mem::take(&mut disk.findings), disk.format.take());
    *disk = Disk { findings, format, ..whole };
}

/// The disk of the target that a reference in number `at`, the file `from`, means: by its path;
/// else by its identity, or by the last part of its name if one disk alone has that.
fn known(
    reference: &Reference,
    (home, from): (&Home, &Path),
    at: usize,
    places: &[Option<PathBuf>],
    signs: &[Option<Sign>],
) -> Option<usize> {
    let others = || (0..places.len()).filter(|&other| other != at);
    let name = beside(from, &reference.name);
    let meant = home.place_of(from.parent().unwrap_or(Path::new("")).join(name));
    let exact = meant.and_then(|meant| others().find(|&n| places[n].as_ref() == Some(&meant)));
    // One that has no name is known by its identity alone.
    let by_identity = || {
        let is = |sign: &Option<Sign>| {
            let own = sign.as_ref().and_then(|sign| sign.identity.as_deref());
            own.is_some_and(|own| reference.means(own))
        };
        let is_nameless =
            reference.identity.as_ref().is_some_and(|id| id.starts_with(&reference.name));
        others().find(|&n| is_nameless && is(&signs[n]))
    };
    let by_last_part = || {
        let last = Path::new(&reference.name).file_name()?;
        let mut same =
            others().filter(|&n| places[n].as_ref().is_some_and(|p| p.file_name() == Some(last)));
        same.next().filter(|_| same.next().is_none())
    };
    exact.or_else(by_identity).or_else(by_last_part)
}

/// The name that a reference of the file `from` means. `*.E02` is a file with the same stem and
/// that ending, in the case and with the first letter that its own ending has; `Ex01` is of both
/// cases, and the ending stays as it is.
fn beside(from: &Path, name: &str) -> String {
    let parts = || {
        let ending = name.strip_prefix("*.")?;
        let own = from.extension()?.to_str()?;
        let (first, rest) = (own.get(..1)?, ending.get(1..)?);
        let is_lower = first.chars().all(|letter| letter.is_ascii_lowercase());
        let rest = match own.chars().any(|letter| letter.is_ascii_lowercase()) {
            _ if is_lower => rest.to_ascii_lowercase(),
            true => rest.to_owned(),
            false => rest.to_ascii_uppercase(),
        };
        Some(format!("{}.{first}{rest}", from.file_stem()?.to_str()?))
    };
    parts().unwrap_or_else(|| name.to_owned())
}

/// The name here of a format as QEMU calls it.
fn format_of(name: &str) -> String {
    match name {
        "vpc" => "vhd",
        "file" | "host_device" => "raw",
        other => other,
    }
    .to_owned()
}

/// The sign of the container that a disk is.
fn sign(disk: &mut Disk) -> Option<Sign> {
    let Bytes::Store(store) = &mut disk.bytes else { return None };
    container_in(store, disk.topology.sector, disk.format.as_deref())
}

/// The sign of the container that a store in sectors of `sector` bytes is; of one that is said to
/// have the `format`, of that one alone.
pub(super) fn container_in(
    store: &mut Box<dyn Store>,
    sector: u64,
    format: Option<&str>,
) -> Option<Sign> {
    let empty = Box::new(Sparse::new(0));
    let stores = [std::mem::replace(store, empty)];
    let route = Route::store(0, stores[0].length());
    let budget = Budget::new(Limits::default());
    let probe = Probe::new(&route, &stores, &budget, sector, Some(0), None);
    let found = registry::container(&probe, format);
    [*store] = stores;
    found
}

/// Opens a file or object that a container names, for reading.
fn open(
    home: Home,
    reference: &Reference,
    overrides: &DiskOverrides,
) -> Result<(Home, Disk), Reason> {
    let disk = home.open(overrides)?;
    let format = reference.format.as_deref().map(format_of);
    Ok((home, Disk { format, ..disk }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_ending_means_the_file_beside() {
        for (from, name, meant) in [
            ("images/disk.E01", "*.E02", "disk.E02"),
            ("disk.e98", "*.E99", "disk.e99"),
            ("disk.e99", "*.EAA", "disk.eaa"),
            ("disk.L01", "*.E02", "disk.L02"),
            ("a.b.s01", "*.s02", "a.b.s02"),
            ("vm.s01", "*.E02", "vm.s02"),
            ("vm.Ex01", "*.Ex02", "vm.Ex02"),
            ("vm.Ex99", "*.ExAA", "vm.ExAA"),
            ("vm.ex99", "*.ExAA", "vm.exaa"),
            ("vm.EX01", "*.Ex02", "vm.EX02"),
            ("disk", "*.E02", "*.E02"),
            ("disk.E01", "disk.E02", "disk.E02"),
            ("disk.E01", "*.", "*."),
            ("disk.\u{e9}01", "*.E02", "*.E02"),
        ] {
            assert_eq!(beside(Path::new(from), name), meant, "{from} {name}");
        }
    }

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
            ("below/./b.raw", true),
            ("./base.raw", true),
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

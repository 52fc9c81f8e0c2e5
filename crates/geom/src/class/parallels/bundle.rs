//! `DiskDescriptor.xml` of a Parallels directory (`.hdd`): the files of a disk and of its
//! snapshots.
//!
//! # On disk
//! XML in UTF-8. A `Storage` is a part of the disk by its first sector and the one behind its last,
//! and has an `Image` for each snapshot: a GUID, a type (`Plain` or `Compressed`, which has tables)
//! and a file. A `Shot` names the parent of a snapshot. What the guest writes to is the image of
//! `TopGUID`, or of a GUID of its own where there is none.
//!
//! # Topology
//! Each storage lies in its files as their own headers say.
//!
//! # Limits
//! A descriptor of up to 64 KiB and 64 images one on another are read. Comments, CDATA, a document
//! type and entities make it `unknown`, as do padding and encryption. Files have names of the
//! directory itself: an image has no identity by which another path could be known.
//!
//! # Sources
//! QEMU `docs/interop/prl-xml.rst`; dissect.hypervisor `disk/hdd.py` for storages of which there
//! are several.

use super::super::container::NotFollowed;
use super::{KIND, SECTOR};
use crate::base::ondisk;
use crate::format::Reference;
use crate::mapping::extents::{Extents, Run};
use crate::mapping::geom::Part;
use crate::probe::Probe;

/// Bytes that are read of a descriptor.
const MOST: u64 = 64 << 10;
/// Images that stand on each other.
const DEEPEST: usize = 64;
/// GUID of the image that a guest writes to, where the descriptor names no other.
const TOP: &str = "{5fbaabe3-6958-40ff-92a7-860e329aab41}";
/// GUID of nothing: the parent of the first snapshot, and the engine of no encryption.
const NONE: &str = "{00000000-0000-0000-0000-000000000000}";
/// Parts of XML that may mean something else than what stands there.
const OTHER_XML: [&str; 4] = ["<!--", "<![CDATA[", "<!ENTITY", "<!DOCTYPE"];

const DAMAGED: NotFollowed = NotFollowed("its descriptor is damaged");

/// Disk by its descriptor.
pub(super) struct Bundle {
    pub(super) disk: Extents,
    /// Files of its images, of each storage from the first snapshot on.
    pub(super) references: Vec<Reference>,
    /// Size of the guest's disk in bytes.
    pub(super) size: u64,
}

/// Part of a disk.
struct Storage {
    /// Bytes that it has.
    length: u64,
    images: Vec<Image>,
}

/// File of one snapshot of a storage.
struct Image {
    guid: String,
    is_plain: bool,
    file: String,
}

/// The text between the first `<tag>` and the `</tag>` behind it, in `text`.
fn element<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner)
}

/// The texts of all such elements; `None` where one does not end.
fn elements<'a>(text: &'a str, tag: &str) -> Option<Vec<&'a str>> {
    let end = format!("</{tag}>");
    let inner = |rest: &'a str| rest.split_once(&end).map(|(inner, _)| inner);
    text.split(&format!("<{tag}>")).skip(1).map(inner).collect()
}

/// A GUID, in lower case.
fn guid(text: &str, tag: &str) -> Option<String> {
    element(text, tag).map(|guid| guid.trim().to_ascii_lowercase())
}

fn sectors(text: &str, tag: &str) -> Result<u64, NotFollowed> {
    let number = element(text, tag).and_then(|number| number.trim().parse::<u64>().ok());
    number.ok_or(DAMAGED)
}

impl Image {
    fn of(text: &str) -> Result<Image, NotFollowed> {
        let is_plain = match element(text, "Type").map(str::trim) {
            Some("Plain") => true,
            Some("Compressed") => false,
            _ => return Err(NotFollowed("an image of it has a type that is not known here")),
        };
        let file = element(text, "File").filter(|file| !file.contains('&'));
        let file = file.and_then(|file| ondisk::text(file.trim().as_bytes())).ok_or(DAMAGED)?;
        Ok(Image { guid: guid(text, "GUID").ok_or(DAMAGED)?, is_plain, file })
    }
}

/// The storages of a disk of so many sectors, in order.
fn storages(text: &str, size: u64) -> Result<Vec<Storage>, NotFollowed> {
    let mut found = Vec::new();
    for text in elements(text, "Storage").ok_or(DAMAGED)? {
        let images = elements(text, "Image").ok_or(DAMAGED)?.into_iter().map(Image::of);
        let images = images.collect::<Result<Vec<_>, _>>()?;
        found.push((sectors(text, "Start")?, sectors(text, "End")?, images));
    }
    found.sort_by_key(|(start, ..)| *start);
    let (mut next, mut all) = (0, Vec::new());
    for (start, end, images) in found {
        let count = end.checked_sub(start).filter(|&count| count > 0 && start == next);
        let gap = NotFollowed("its storages are not one behind another");
        let length = count.ok_or(gap)?.checked_mul(SECTOR).ok_or(DAMAGED)?;
        all.push(Storage { length, images });
        next = end;
    }
    if next != size || size == 0 {
        return Err(NotFollowed("its storages are not as large as its disk"));
    }
    Ok(all)
}

/// GUIDs of the snapshots that the disk stands on, from the first to the one that is written to.
fn chain(text: &str, storages: &[Storage]) -> Result<Vec<String>, NotFollowed> {
    let snapshots = element(text, "Snapshots").unwrap_or_default();
    let mut shots = Vec::new();
    for shot in elements(snapshots, "Shot").ok_or(DAMAGED)? {
        let pair = guid(shot, "GUID").zip(guid(shot, "ParentGUID"));
        shots.push(pair.ok_or(DAMAGED)?);
    }
    if shots.is_empty() {
        // Without any snapshot an image is all of its storage.
        let first = storages.first().and_then(|storage| storage.images.first());
        return Ok(vec![first.ok_or(DAMAGED)?.guid.clone()]);
    }
    let mut next = guid(snapshots, "TopGUID").unwrap_or_else(|| TOP.into());
    let mut chain = Vec::new();
    while next != NONE {
        let shot = shots.iter().find(|(guid, _)| *guid == next);
        let (guid, parent) =
            shot.ok_or(NotFollowed("it does not list a snapshot that it stands on"))?;
        if chain.len() == DEEPEST {
            return Err(NotFollowed("more snapshots than are followed stand on each other"));
        }
        chain.push(guid.clone());
        next.clone_from(parent);
    }
    chain.reverse();
    Ok(chain)
}

impl Bundle {
    /// The disk by the text of a descriptor.
    ///
    /// Errors: the reason for which it is not followed.
    fn of(text: &str) -> Result<Bundle, NotFollowed> {
        if OTHER_XML.iter().any(|other| text.contains(other)) {
            return Err(NotFollowed("its descriptor is not as Parallels writes it"));
        }
        if element(text, "Padding").is_some_and(|padding| padding.trim() != "0") {
            return Err(NotFollowed("it has padding, which is not known here"));
        }
        if guid(text, "Engine").is_some_and(|engine| engine != NONE) {
            return Err(NotFollowed("it is encrypted"));
        }
        let size = sectors(text, "Disk_size")?;
        let storages = storages(text, size)?;
        let chain = chain(text, &storages)?;
        let (mut runs, mut parts, mut references) = (Vec::new(), Vec::new(), Vec::new());
        for storage in storages {
            let mut top = None;
            for guid in &chain {
                let image = storage.images.iter().find(|image| image.guid == *guid);
                let Image { is_plain, file, .. } =
                    image.ok_or(NotFollowed("a storage lacks the image of a snapshot"))?;
                let parent = top.map(|below| (below, 0));
                top = Some(references.len());
                let (length, is_sparse) = (storage.length, !is_plain);
                parts.push(Part { length, within: 0, is_sparse, parent });
                let format = if *is_plain { "raw" } else { KIND.name };
                let (name, format) = (file.clone(), Some(format.into()));
                references.push(Reference { role: "image", name, format, identity: None });
            }
            runs.push(Run { bytes: storage.length, place: top.map(|nth| (nth, 0)) });
        }
        let disk = Extents::new(runs, parts).ok_or(DAMAGED)?;
        if disk.has_too_many_tables() {
            return Err(NotFollowed("it has more images than are joined"));
        }
        Ok(Bundle { disk, references, size: size.saturating_mul(SECTOR) })
    }
}

/// The disk of the descriptor that a provider is, or the reason for which it is not followed;
/// `None` for anything else.
pub(super) fn found(probe: &Probe<'_>) -> Option<Result<Bundle, NotFollowed>> {
    if !probe.has(0, b"<?xml") || probe.kind().is_some() {
        return None;
    }
    let length = usize::try_from(probe.length().min(MOST)).ok()?;
    let bytes = probe.bytes(0, length)?;
    let text = String::from_utf8_lossy(&bytes);
    if !text.contains("<Parallels_disk_image") {
        return None;
    }
    if probe.length() > MOST {
        return Some(Err(NotFollowed("its descriptor is longer than is read of one")));
    }
    Some(Bundle::of(&text))
}

#[cfg(test)]
mod tests;

//! A target as `serve` opens it: its disks before they are tasted, each by itself or on a simulated
//! drive.

use super::follow::follow;
use super::open::{complete, distinct, image, laid_out, names, open_disk};
use super::simulated::image::Image;
use super::source::{Source, SourceKind};
use super::{DiskOverrides, Target, object, simulated};
use crate::failure::Reason;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::graph::{Bytes, Disk};
use trueline_host::disk::file::Access;
use trueline_sim::model::Model;

/// The disks of a target that is to be served.
pub(crate) struct Serving {
    pub(crate) disks: Vec<Disk>,
    /// The model of each disk, if all of them are simulated drives.
    pub(crate) models: Vec<Model>,
}

/// Opens the disks of a target. `drive`, `MODEL[@SIZE]`, is put under each of them, whatever they
/// are.
pub(crate) fn open(
    target: &Target,
    drive: Option<&str>,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Serving, Reason> {
    complete(target)?;
    object::read_as_asked(target)?;
    let drives = target.sources().iter().filter_map(Source::simulated);
    let images: Vec<&str> = drives.filter_map(simulated::Spelling::image).collect();
    if access.writes() {
        distinct(&images.join(","), &images)?;
    }
    let some_simulated = target.is_simulated();
    if drive.is_none() && !some_simulated {
        overrides.refuse_model_keys(&format!("open {target}"))?;
    }
    let (mut disks, mut models) = (Vec::new(), Vec::new());
    for (source, name) in target.sources().iter().zip(names(target.sources())) {
        let (disk, model) = match drive {
            Some(drive) => put_on(drive, source, name, overrides, access)
                .map(|(disk, model)| (disk, Some(model)))?,
            None if some_simulated => simulated::open_disk(source, &name, overrides, access)?
                .map(|(disk, model)| (disk, Some(model)))
                .ok_or_else(|| {
                    let disk = source.typed();
                    format!(
                        "open {target}: {disk} is no simulated drive and others are: --drive MODEL \
                    puts all disks on one, or write drive:MODEL={disk}"
                    )
                })?,
            None => (open_one(source, name, overrides, access)?, None),
        };
        if let Some(model) = &model {
            laid_out(target, model)?;
        }
        disks.push(disk);
        models.extend(model);
    }
    overrides.state_format(&mut disks);
    if models.is_empty() {
        follow(target, &mut disks, overrides);
    }
    Ok(Serving { disks, models })
}

/// Opens a disk. Memory that is to be written is allocated now.
fn open_one(
    source: &Source,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Disk, Reason> {
    match source.kind() {
        SourceKind::Memory(spelling) if access.writes() && source.is_memory() => {
            Ok(image(name, spelling.open(source.typed())?, overrides))
        }
        _ => open_disk(source, name, overrides, access),
    }
}

/// The bytes of a disk on a simulated drive: its boundaries are the drive's.
fn put_on(
    drive: &str,
    source: &Source,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<(Disk, Model), Reason> {
    let (model, size) = simulated::model_and_size(drive, &overrides.set)?;
    let (typed, disk) = (source.typed(), open_one(source, name, overrides, access)?);
    let advice = |has: u64| format!("say --drive {}@{has}", model.name);
    let store = Image::new(store(disk.bytes)?, typed, &model, size.is_some(), &advice)
        .map_err(|why| format!("open {typed}: {why}"))?;
    let length = store.length();
    let (bytes, topology, nop) =
        (Bytes::Store(Box::new(store)), model.topology(length), Some(overrides.nop(length)));
    Ok((
        Disk {
            name: disk.name,
            bytes,
            topology,
            start: Some(0),
            serial: disk.serial,
            nop,
            findings: Vec::new(),
            references: Vec::new(),
            refused: Vec::new(),
            format: None,
        },
        model,
    ))
}

/// The bytes of a disk as a store; for zeroes that no store holds, a sparse one. Errors: a disk
/// that is only reported.
pub(crate) fn store(bytes: Bytes) -> Result<Box<dyn Store>, Reason> {
    match bytes {
        Bytes::Store(store) => Ok(store),
        Bytes::Geom(zeroes) => {
            Ok(Box::new(Sparse::new(zeroes.providers().first().map_or(0, |slot| slot.length))))
        }
        Bytes::Reported(_) => {
            Err(Reason("it is known from a listing only and cannot be read".into()))
        }
    }
}

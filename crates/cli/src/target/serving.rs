//! A target as `serve` opens it: its disks before they are tasted, each by itself or on a simulated
//! drive.

use super::simulated::image::Image;
use super::{
    DiskOverrides, distinct, image, is_memory, laid_out, memory, names, open_disk, simulated, split,
};
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::graph::{Bytes, Disk};
use trueline_host::disk::file::Access;
use trueline_sim::model::Model;

/// The disks of a target that is to be served.
pub(crate) struct Serving {
    pub(crate) disks: Vec<Disk>,
    /// The provider named after the `#`.
    pub(crate) provider: Option<String>,
    /// The model of each disk, if all of them are simulated drives.
    pub(crate) models: Vec<Model>,
}

/// Opens the disks of a target. `drive`, `MODEL[@SIZE]`, is put under each of them, whatever they
/// are.
pub(crate) fn open(
    target: &str,
    drive: Option<&str>,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Serving, String> {
    let (typed, provider) = split(target);
    if typed.contains(&"") {
        return Err(format!(
            "open '{target}': the name of a disk is missing: write DISK[,DISK...][#PROVIDER]"
        ));
    }
    distinct(&typed)?;
    let images: Vec<&str> = typed.iter().filter_map(|disk| simulated::image(disk)).collect();
    if access.writes() {
        distinct(&images)?;
    }
    let some_simulated = typed.iter().any(|disk| simulated::is_simulated(disk));
    if drive.is_none() && !some_simulated {
        overrides.refuse_model_keys(&format!("open {target}"))?;
    }
    let (mut disks, mut models) = (Vec::new(), Vec::new());
    for (disk, name) in typed.iter().zip(names(&typed)) {
        let (disk, model) = match drive {
            Some(drive) => put_on(drive, disk, name, overrides, access).map(|(disk, model)| (disk, Some(model)))?,
            None if some_simulated => simulated::open_disk(disk, &name, overrides, access)?.map(|(disk, model)| (disk, Some(model))).ok_or_else(|| {
                format!("open {target}: {disk} is no simulated drive and others are: --drive MODEL puts all disks on one, or write drive:MODEL={disk}")
            })?,
            None => (open_one(disk, name, overrides, access)?, None),
        };
        if let Some(model) = &model {
            laid_out(target, model)?;
        }
        disks.push(disk);
        models.extend(model);
    }
    Ok(Serving { disks, provider, models })
}

/// Opens a disk. Memory that is to be written is allocated now.
fn open_one(
    disk: &str,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Disk, String> {
    let taken = if access.writes() && is_memory(disk) { memory::open(disk)? } else { None };
    match taken {
        Some(store) => Ok(image(name, store, overrides)),
        None => open_disk(disk, name, overrides, access),
    }
}

/// The bytes of a disk on a simulated drive: its boundaries are the drive's.
fn put_on(
    drive: &str,
    typed: &str,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<(Disk, Model), String> {
    let (model, size) = simulated::model_and_size(drive, &overrides.set)?;
    let disk = open_one(typed, name, overrides, access)?;
    let advice = |has: u64| format!("say --drive {}@{has}", model.name);
    let store = Image::new(store(disk.bytes)?, typed, &model, size.is_some(), &advice)
        .map_err(|why| format!("open {typed}: {why}"))?;
    let length = store.length();
    let (bytes, topology, nop) =
        (Bytes::Store(Box::new(store)), model.topology(length), Some(overrides.nop(length)));
    Ok((
        Disk { name: disk.name, bytes, topology, start: Some(0), nop, findings: Vec::new() },
        model,
    ))
}

/// The bytes of a disk as a store; for zeroes that no store holds, a sparse one. Errors: a disk
/// that is only reported.
pub(crate) fn store(bytes: Bytes) -> Result<Box<dyn Store>, String> {
    match bytes {
        Bytes::Store(store) => Ok(store),
        Bytes::Geom(zeroes) => {
            Ok(Box::new(Sparse::new(zeroes.providers().first().map_or(0, |slot| slot.length))))
        }
        Bytes::Reported(_) => Err("it is known from a listing only and cannot be read".into()),
    }
}

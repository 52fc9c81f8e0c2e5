//! `--overlay`: what clients write goes there, and the target is only read.

use crate::command::serve::args::Serve;
use crate::command::serve::args::overlay::Place;
use crate::failure::{Failure, complain};
use crate::target::{self, serving};
use crate::words;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use trueline_geom::base::store::Store;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Bytes, Disk, Graph, Id};
use trueline_serve::layer::overlay::{self, Base, Overlay};

/// The overlay of all disks of a target.
pub(super) struct Overlays {
    place: Place,
    /// In the order of the disks.
    disks: Vec<Overlay>,
}

/// Puts the overlay that was asked for over the disks, if one was.
pub(super) fn put(args: &Serve, disks: Vec<Disk>) -> Result<(Vec<Disk>, Option<Overlays>), Failure> {
    let Some(place) = args.overlay.clone() else { return Ok((disks, None)) };
    let typed = target::split(&args.target).0;
    if let Place::File(path) = &place {
        let own = file(path).map(|found| (found.dev(), found.ino()));
        let same = typed.iter().find(|disk| own.is_some() && file(disk).map(|found| (found.dev(), found.ino())) == own);
        if let Some(disk) = same {
            return Err(Failure::Message(format!("put an overlay over {disk}: it is that disk itself: name a new file")));
        }
    }
    let (mut bases, mut rest) = (Vec::new(), Vec::new());
    for (disk, typed) in disks.into_iter().zip(typed) {
        let Disk { name, bytes, topology, start, nop, findings } = disk;
        bases.push(Base { name: typed.into(), store: serving::store(bytes)?, changed: changed(typed) });
        rest.push((name, topology, start, nop, findings));
    }
    let over = match &place {
        Place::Memory => overlay::in_memory(bases),
        Place::File(path) => overlay::in_file(path, bases, !args.read_only),
    };
    let over = over.map_err(|e| e.to_string())?;
    let again = over.iter().cloned().zip(rest).map(|(over, (name, topology, start, nop, findings))| Disk {
        name,
        bytes: Bytes::Store(Box::new(over)),
        topology,
        start,
        nop,
        findings,
    });
    Ok((again.collect(), Some(Overlays { place, disks: over })))
}

/// The time at which a disk's file was last written, in ns since 1970; [`None`] of a disk that is no file.
fn changed(typed: &str) -> Option<u64> {
    let found = file(target::simulated::image(typed).unwrap_or(typed))?;
    u64::try_from(found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The file system's answer about a path, if a file is there.
fn file(path: impl AsRef<Path>) -> Option<fs::Metadata> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)
}

impl Overlays {
    /// The overlay's part of provider `id`, as [`Overlay::written`] tells it.
    pub(super) fn of(&self, graph: &Graph, id: Id) -> Arc<dyn Store> {
        let written = self.disks.iter().map(|disk| Box::new(disk.written()) as Box<dyn Store>);
        Arc::new(Through::over(written.collect(), graph.providers[id].route().clone()))
    }

    /// Says on stderr what was written where.
    pub(super) fn tell(&self, target: &str) {
        let changed = self.disks.iter().map(Overlay::changed);
        let (written, zero) = changed.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
        let after = match &self.place {
            Place::Memory => "are gone now",
            Place::File(_) => "are kept for the next time",
        };
        let blocks = format!("{} of written blocks and {} of zeroed or discarded ones", words::bytes(written), words::bytes(zero));
        complain(&format!("overlay {}: {blocks} {after}; {target} is unchanged", self.place));
    }
}

//! One overlay for all disks of a target, which are only read from then on.

use super::{Base, Overlay, in_file, in_memory};
use crate::error::Error;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;
use trueline_geom::base::store::Store;
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};

/// The place that writes go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OverlayStorage {
    /// Memory, until the server ends.
    Memory,
    /// A file, which keeps it.
    File(PathBuf),
}

impl fmt::Display for OverlayStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverlayStorage::Memory => f.write_str("mem"),
            OverlayStorage::File(path) => path.display().fmt(f),
        }
    }
}

/// A disk that is to be under an overlay.
pub struct Covered {
    /// The disk as it was named: a file that an overlay keeps remembers it by that.
    pub name: String,
    /// The file that its bytes are in, if they are in one.
    pub image: Option<PathBuf>,
    /// The bytes of the disk, which are only read.
    pub store: Box<dyn Store>,
}

/// The overlay of all disks of a target.
pub struct Overlays {
    place: OverlayStorage,
    /// In the order of the disks.
    disks: Vec<Overlay>,
}

impl Overlays {
    /// An overlay at `place` over `disks`. `writes`: whether anything is to be written.
    pub fn new(
        place: OverlayStorage,
        disks: Vec<Covered>,
        writes: bool,
    ) -> Result<Overlays, Error> {
        if let OverlayStorage::File(path) = &place {
            let own = file(path).map(|found| (found.dev(), found.ino()));
            let same = disks.iter().find(|disk| {
                own.is_some()
                    && disk.image.as_deref().and_then(file).map(|found| (found.dev(), found.ino()))
                        == own
            });
            if let Some(disk) = same {
                return Err(Error::OwnOverlay { disk: disk.name.clone() });
            }
        }
        let base = |disk: Covered| Base {
            changed: disk.image.as_deref().and_then(changed),
            name: disk.name,
            store: disk.store,
        };
        let bases = disks.into_iter().map(base).collect();
        let disks = match &place {
            OverlayStorage::Memory => in_memory(bases),
            OverlayStorage::File(path) => in_file(path, bases, writes),
        };
        Ok(Overlays { place, disks: disks? })
    }

    /// The disks as they are through the overlay, in their order.
    pub fn disks(&self) -> &[Overlay] {
        &self.disks
    }

    /// The place that writes go to.
    pub fn place(&self) -> &OverlayStorage {
        &self.place
    }

    /// The overlay's part of provider `id`, as [`Overlay::written`] tells it.
    pub fn part(&self, graph: &Graph, id: Id) -> Arc<dyn Store> {
        let written = self.disks.iter().map(|disk| Box::new(disk.written()) as Box<dyn Store>);
        Arc::new(Through::over(written.collect(), graph.providers[id].route().clone()))
    }

    /// Bytes of blocks that are written, and of blocks that were made zero or discarded, on all
    /// disks.
    pub fn changed(&self) -> (u64, u64) {
        self.disks
            .iter()
            .map(Overlay::changed)
            .fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}

/// The time at which an image was last written, in ns since 1970; [`None`] of what is no file.
fn changed(image: &Path) -> Option<u64> {
    u64::try_from(file(image)?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The file system's answer about a path, if a file is there.
fn file(path: &Path) -> Option<fs::Metadata> {
    fs::metadata(path).ok().filter(fs::Metadata::is_file)
}

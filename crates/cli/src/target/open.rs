//! The disks of a target, opened and tasted.

use super::follow::follow;
use super::source::{Source, SourceKind};
use super::{DiskOverrides, Target, object, remote, simulated};
use crate::failure::{Reason, without_direct};
use crate::measured;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trueline_geom::audit::profile;
use trueline_geom::base::size;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Grain, Source as Claim, Topology, Trust, Why};
use trueline_geom::class::zero::Zero;
use trueline_geom::class::{gpt, mbr};
use trueline_geom::graph::{Bytes, Disk, Graph, Provider};
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry::{recognises, shows_a_disk};
use trueline_host::device::Device;
use trueline_host::disk::file::{self, Access, Medium, Opened};
use trueline_host::engine::direct::Direct;
use trueline_serve::layer::sectored::Sectored;
use trueline_sim::model::Model;

/// Kinds of disks that are read, for people.
const READ: &str = "image files and block devices, md:SIZE, zero:SIZE, drive:MODEL, nbd:// and \
    nbd+unix://, and objects: s3://, gs://, az://, http:// and https://";

/// Opens and tastes a target, for reading.
pub(crate) fn open(target: &Target, overrides: &DiskOverrides) -> Result<Graph, Reason> {
    open_for(target, overrides, Access::Read)
}

/// As [`open`], for reading or writing.
pub(crate) fn open_for(
    target: &Target,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Graph, Reason> {
    complete(target)?;
    if !target.is_simulated() {
        overrides.refuse_model_keys(&format!("open {target}"))?;
    }
    if overrides.bounded {
        object::bound(target, false);
    }
    loop {
        let (opened, _) = disks(target, overrides, access)?;
        let graph = Graph::taste_with(opened, Limits::default(), overrides.keys());
        if overrides.bounded && holds_a_disk(&graph) {
            object::bound(target, true);
        }
        // What is not here of an object is fetched, and the whole is tasted again.
        if !object::fetch_missing(target)? {
            return Ok(graph);
        }
    }
}

/// True if what was seen so far is a container, whether or not its tables were.
fn holds_a_disk(graph: &Graph) -> bool {
    let is_container = |own: &Provider| {
        let mut names = own.signs.iter().map(|sign| sign.kind.name).chain([own.class]);
        names.any(shows_a_disk)
    };
    graph.providers.iter().any(is_container)
}

/// The disks of a target and those that they lead to, and the paths of all that names in them may
/// lead to.
fn disks(
    target: &Target,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<(Vec<Disk>, Vec<PathBuf>), Reason> {
    let mut opened: Vec<Disk> = target
        .sources()
        .iter()
        .zip(names(target.sources()))
        .map(|(source, name)| open_disk(source, name, overrides, access))
        .collect::<Result<_, _>>()?;
    overrides.state_format(&mut opened);
    let followed = follow(target, &mut opened, overrides);
    Ok((opened, followed))
}

/// Paths that the images of a target lead to where names in them are followed, whether or not a
/// file is there; none of a target that cannot be opened.
pub(crate) fn followed(target: &Target, overrides: &DiskOverrides) -> Vec<PathBuf> {
    if !overrides.follow {
        return Vec::new();
    }
    disks(target, overrides, Access::Read).map_or_else(|_| Vec::new(), |(_, followed)| followed)
}

/// Refuses a target with a disk that has no name, or with one that is named twice.
pub(super) fn complete(target: &Target) -> Result<(), Reason> {
    if target.sources().iter().any(|source| source.typed().is_empty()) {
        return Err(Reason(format!(
            "open '{target}': the name of a disk is missing: write DISK[,DISK...][#PROVIDER]"
        )));
    }
    let known = target.sources().iter().filter(|source| !source.is_made_up());
    distinct(target.disks().typed(), &known.map(Source::typed).collect::<Vec<_>>())
}

/// As [`open`], for a target of simulated drives; includes the model of each, in the order of the
/// graph's stores. `None` if no disk of it is simulated. Errors: only some are.
pub(crate) fn simulated(
    target: &Target,
    overrides: &DiskOverrides,
) -> Result<Option<Simulated>, Reason> {
    if !target.is_simulated() {
        return Ok(None);
    }
    let (mut opened, mut models) = (Vec::new(), Vec::new());
    for (source, name) in target.sources().iter().zip(names(target.sources())) {
        let opened_disk = simulated::open_disk(source, &name, overrides, Access::Read)?;
        let (disk, model) = opened_disk.ok_or_else(|| {
            let disk = source.typed();
            format!(
                "open {target}: {disk} is no simulated drive and others are: write drive:MODEL={disk} to put what is on it on one"
            )
        })?;
        laid_out(target, &model)?;
        opened.push(disk);
        models.push(model);
    }
    Ok(Some(Simulated {
        graph: Graph::taste_with(opened, Limits::default(), overrides.keys()),
        models,
    }))
}

/// Refuses a drive larger than the medium of its model: the model gives boundaries, but no tracks
/// for the rest.
pub(super) fn laid_out(target: &Target, model: &Model) -> Result<(), Reason> {
    let size = model.size;
    match model.disk.as_ref().map(|disk| disk.full_size_bytes).filter(|&full| size > full) {
        None => Ok(()),
        Some(full) => {
            let say = format!(
                "say --set full_size_bytes={size}, and what else is other in it: heads, outer_track_bytes"
            );
            let name = &model.name;
            Err(Reason(format!(
                "open {target}: {name} has a medium of {full} bytes, and nothing says how one of {size} is laid out: {say}"
            )))
        }
    }
}

/// A target of simulated drives, tasted.
pub(crate) struct Simulated {
    pub(crate) graph: Graph,
    /// The model of every store of the graph, in order.
    pub(crate) models: Vec<Model>,
}

/// Refuses a file that is named twice, in the text `typed`: each copy would be written as if it
/// were another disk.
pub(super) fn distinct(typed: &str, files: &[&str]) -> Result<(), Reason> {
    let identity = |disk: &str| fs::metadata(disk).ok().map(|m| (m.dev(), m.ino()));
    let known: Vec<_> = files.iter().map(|&disk| (disk, identity(disk))).collect();
    for (i, (disk, own)) in known.iter().enumerate() {
        let same = known[..i]
            .iter()
            .find(|(other, theirs)| other == disk || own.is_some() && own == theirs);
        if let Some((other, _)) = same {
            let twice = if other == disk {
                format!("{disk} is named twice")
            } else {
                format!("{other} and {disk} are the same disk")
            };
            return Err(Reason(format!("open {typed}: {twice}")));
        }
    }
    Ok(())
}

/// Names of a target's disks: empty for a single one, else the stems of their files (for a
/// simulated drive its image's, or its model), if these differ.
pub(super) fn names(disks: &[Source]) -> Vec<String> {
    if disks.len() < 2 {
        return vec![String::new(); disks.len()];
    }
    let stem_of = |disk: &Source| {
        Some(stem(Path::new(disk.named_by())))
            .filter(|stem| !stem.is_empty())
            .unwrap_or(disk.typed().into())
    };
    let stems: Vec<String> = disks.iter().map(stem_of).collect();
    let typed: Vec<String> = disks.iter().map(|disk| disk.typed().into()).collect();
    let differ = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let numbered = || {
        disks.iter().enumerate().map(|(i, disk)| format!("{}-{}", disk.typed(), i + 1)).collect()
    };
    [stems, typed].into_iter().find(differ).unwrap_or_else(numbered)
}

/// The name of a file without its extension; empty for a path without a name.
pub(super) fn stem(path: &Path) -> String {
    path.file_stem().map_or(String::new(), |name| name.to_string_lossy().into_owned())
}

/// Tastes stores that are already open; a single one needs no name.
pub(crate) fn taste_stores(
    stores: Vec<(String, Box<dyn Store>)>,
    overrides: &DiskOverrides,
) -> Graph {
    let several = stores.len() > 1;
    let disks = stores
        .into_iter()
        .map(|(name, store)| image(if several { name } else { String::new() }, store, overrides));
    Graph::taste_with(disks.collect(), Limits::default(), overrides.keys())
}

/// As [`open`], for a target of memory and zeroes alone; allocates the memory. `None` if no disk of
/// it is. Errors: only some are.
pub(crate) fn memory(target: &Target, overrides: &DiskOverrides) -> Result<Option<Graph>, Reason> {
    if !target.sources().iter().any(Source::is_memory) {
        return Ok(None);
    }
    overrides.refuse_model_keys(&format!("open {target}"))?;
    let mut opened = Vec::new();
    for (source, name) in target.sources().iter().zip(names(target.sources())) {
        let disk = source.typed();
        opened.push(match source.kind() {
            SourceKind::Memory(spelling) => image(name, spelling.open(disk)?, overrides),
            SourceKind::Zero(size) => zeroes(disk, size, name, overrides)?,
            _ => {
                return Err(Reason(format!(
                    "open {target}: {disk} is not memory and others are: write md:SIZE={disk} to take it there"
                )));
            }
        });
    }
    Ok(Some(Graph::taste_with(opened, Limits::default(), overrides.keys())))
}

/// The disk `zero:SIZE`, typed as `disk`. Errors: `size` is none.
fn zeroes(disk: &str, size: &str, name: String, overrides: &DiskOverrides) -> Result<Disk, Reason> {
    let length =
        size::bytes(size).ok_or_else(|| format!("{disk}: '{size}' is not a size: 64m, 1g"))?;
    let topology = topology(512, length, overrides);
    let bytes = Bytes::Geom(Arc::new(Zero { length }));
    Ok(Disk {
        name,
        bytes,
        topology,
        start: Some(0),
        serial: None,
        nop: Some(overrides.nop(length)),
        findings: Vec::new(),
        references: Vec::new(),
        refused: Vec::new(),
        format: None,
    })
}

/// Opens one disk under the name that it has in its graph.
pub(super) fn open_disk(
    source: &Source,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Disk, Reason> {
    let disk = source.typed();
    match source.kind() {
        SourceKind::Path => open_path(disk, name, overrides, access),
        SourceKind::Zero(size) => zeroes(disk, size, name, overrides),
        // A read needs no memory: such a disk may be larger than memory.
        SourceKind::Memory(spelling) if spelling.image().is_none() => {
            Ok(image(name, Box::new(Sparse::new(spelling.size(disk)?)), overrides))
        }
        SourceKind::Memory(spelling) => Ok(image(name, spelling.open(disk)?, overrides)),
        SourceKind::Simulated(spelling) => {
            spelling.disk(disk, &name, overrides, Access::Read).map(|(disk, _)| disk)
        }
        SourceKind::Remote => remote::open(disk, name, overrides, access),
        SourceKind::Object(spelling) => spelling.open(name, overrides, access),
        #[cfg(not(feature = "cloud"))]
        SourceKind::Uri if object::is_meant(disk) => Err(object::refusal(disk)),
        SourceKind::Uri => Err(Reason(format!("open {disk}: this version reads {READ}"))),
    }
}

/// Opens a file or device.
fn open_path(
    disk: &str,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Disk, Reason> {
    let opened =
        file::open_for(Path::new(disk), access).map_err(|e| match simulated::is_model(disk) {
            true => Reason(format!("{e}; drive:{disk} is the simulated drive of that name")),
            false => e.into(),
        })?;
    if !opened.block {
        return Ok(image(name, medium(opened.store, disk, overrides)?, overrides));
    }
    let start = opened.device.as_ref().map_or(Some(0), Device::medium_start);
    let (topology, findings) = match &opened.device {
        Some(device) => measured::topology(device),
        None => (ioctl_topology(&opened), Vec::new()),
    };
    let nop = Some(overrides.nop(topology.length));
    let serial = opened.device.as_ref().and_then(|device| device.serial.clone());
    Ok(Disk {
        name,
        bytes: Bytes::Store(medium(opened.store, disk, overrides)?),
        topology,
        start,
        serial,
        nop,
        findings,
        references: Vec::new(),
        refused: Vec::new(),
        format: None,
    })
}

/// An open file or device, past the page cache if the overrides want that.
fn medium(medium: Medium, disk: &str, overrides: &DiskOverrides) -> Result<Box<dyn Store>, Reason> {
    if !overrides.direct {
        return Ok(Box::new(medium));
    }
    let direct = Direct::new(medium, Path::new(disk))
        .map_err(|e| without_direct(e, "leave out --direct"))?;
    any_bytes(direct, disk)
}

/// A store that takes reads and writes of single bytes, whatever its unit.
pub(super) fn any_bytes(store: impl Store + 'static, disk: &str) -> Result<Box<dyn Store>, Reason> {
    if store.properties().unit == 1 {
        return Ok(Box::new(store));
    }
    let (unit, length) = (store.properties().unit, store.length());
    let view = Sectored::new(Arc::new(store), 1);
    Ok(Box::new(
        view.ok_or_else(|| {
            format!(
                "open {disk}: it takes units of {unit} bytes and has {length} bytes, which is not whole units"
            )
        })?,
    ))
}

/// Topology that a block device reports by ioctl, for devices that sysfs does not have.
fn ioctl_topology(opened: &Opened) -> Topology {
    let sector = opened.sector.unwrap_or(512);
    let mut topology = Topology::new(sector, opened.store.length());
    for (size, why) in [(Some(sector), Why::Logical), (opened.physical, Why::Physical)] {
        let grain = size.and_then(|size| Grain::new(size, 0));
        topology.facts.extend(grain.map(|grain| Fact {
            grain,
            why,
            source: Claim::Ioctl,
            trust: Trust::Claimed,
        }));
    }
    topology
}

/// Topology of a disk of `length` bytes that does not exist, as the options describe it; the rest
/// is assumed as for an image.
pub(crate) fn described(overrides: &DiskOverrides, length: u64) -> Topology {
    let nop = overrides.nop(length);
    nop.topology(0, &[topology(overrides.sector.unwrap_or(512), length, overrides)])
}

/// A disk with nothing known but its bytes. The sector is the one that its GPT or MBR fits, else
/// 512.
pub(super) fn image(name: String, store: Box<dyn Store>, overrides: &DiskOverrides) -> Disk {
    let length = store.length();
    let stores = [store];
    let sector = overrides.sector.unwrap_or_else(|| {
        let (route, budget) = (Route::store(0, length), Budget::new(Limits::default()));
        let probe = Probe::new(&route, &stores, &budget, 512, Some(0), None);
        gpt::sector_of(&probe).or_else(|| mbr::sector_of(&probe, recognises)).unwrap_or(512)
    });
    let topology = topology(sector, length, overrides);
    let [store] = stores;
    Disk {
        name,
        bytes: Bytes::Store(store),
        topology,
        start: Some(0),
        serial: None,
        nop: Some(overrides.nop(length)),
        findings: Vec::new(),
        references: Vec::new(),
        refused: Vec::new(),
        format: None,
    }
}

/// Topology assumed for a disk that does not describe itself.
pub(super) fn topology(sector: u64, length: u64, overrides: &DiskOverrides) -> Topology {
    let mut topology = Topology::new(sector, length);
    topology.facts = profile::assumed();
    if !overrides.facts.is_empty() {
        // The drive is named, so what tools do for unknown drives does not matter.
        topology.facts.retain(|f| f.why != Why::Convention);
    }
    topology
}

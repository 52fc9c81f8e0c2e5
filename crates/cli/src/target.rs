//! `TARGET := DISK[,DISK...][#PROVIDER]`: the target of a command, opened and tasted.

mod memory;
mod remote;
pub(crate) mod serving;
pub(crate) mod simulated;

use crate::disk_options::{DiskOptions, WhyGrain};
use crate::remembered::{self, Remembered};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use toml::Value;
use trueline_geom::audit::profile;
use trueline_geom::base::size;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::class::nop::Nop;
use trueline_geom::class::zero::Zero;
use trueline_geom::class::{gpt, mbr};
use trueline_geom::graph::{Bytes, Disk, Graph};
use trueline_geom::mapping::geom::Geom;
use trueline_geom::mapping::route::Route;
use trueline_geom::plan::edits;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry::recognises;
use trueline_host::device::Device;
use trueline_host::disk::file::{self, Access, Medium, Opened};
use trueline_host::engine::direct::Direct;
use trueline_serve::layer::sectored::Sectored;
use trueline_sim::model::Model;

/// Prefix of a disk of zeroes; its size follows.
const ZERO: &str = "zero:";

/// Options of the user that replace what a disk claims: sector and boundaries; for a simulated
/// drive, keys of its model.
#[derive(Clone)]
pub(crate) struct DiskOverrides {
    sector: Option<u64>,
    facts: Vec<Fact>,
    set: Vec<(String, Value)>,
    /// The options as they were typed.
    options: DiskOptions,
    /// The profile, and its source.
    judged: Option<Remembered>,
    /// True if a file (`nvme id-ns`) describes the drive.
    described: bool,
    /// True if files and devices are opened with `O_DIRECT`, past the page cache.
    direct: bool,
}

/// The refusal of an unknown profile: the one that was perhaps meant, and all that there are.
pub(crate) fn no_profile(name: &str) -> String {
    let names: Vec<&str> = profile::PROFILES.iter().map(|p| p.name).collect();
    let wanted = name.to_lowercase();
    let near = names
        .iter()
        .map(|known| (edits(&wanted, known), known))
        .min()
        .filter(|&(far, known)| far <= 1 + known.len() / 4);
    let near = near.map_or(String::new(), |(_, known)| format!("did you mean {known}? "));
    format!("no profile '{name}': {near}there are {}, raidCHUNKxDISKS", names.join(", "))
}

impl DiskOverrides {
    /// The overrides of the options alone, for no target in particular. Errors: an unknown profile.
    pub(crate) fn new(options: &DiskOptions) -> Result<DiskOverrides, String> {
        let profile = options.profile.as_deref();
        profile.map_or(Ok(()), remembered::known)?;
        let (mut sector, mut facts) = profile.and_then(profile::named).unwrap_or_default();
        sector = options.logical.or(sector);
        let physical =
            options.physical.map(|(size, phase)| WhyGrain { why: Why::Physical, size, phase });
        for grain in physical.into_iter().chain(options.grain.iter().copied()) {
            facts.retain(|f| f.why != grain.why);
            facts.extend(grain.fact());
        }
        let (set, options) = (options.set.clone(), options.clone());
        Ok(DiskOverrides {
            sector,
            facts,
            set,
            options,
            judged: None,
            described: false,
            direct: false,
        })
    }

    /// The overrides of the options and, if they name no profile, of what is remembered for
    /// `target`. Every command uses them.
    pub(crate) fn of(options: &DiskOptions, target: &str) -> Result<DiskOverrides, String> {
        DiskOverrides::new(options)?.remembering(target)
    }

    /// As [`DiskOverrides::of`], for a disk that is described and does not exist.
    pub(crate) fn for_described(options: &DiskOptions) -> Result<DiskOverrides, String> {
        DiskOverrides::new(options)?
            .judged_by(remembered::for_described(options.profile.as_deref())?)
    }

    /// As [`DiskOverrides::of`], with a line on stderr if the profile comes from elsewhere than the
    /// command line.
    pub(crate) fn announced(options: &DiskOptions, target: &str) -> Result<DiskOverrides, String> {
        let overrides = DiskOverrides::of(options, target)?;
        overrides.judged.iter().for_each(|judged| judged.announce(target));
        Ok(overrides)
    }

    /// The options that were typed, as words of a command line.
    pub(crate) fn words(&self) -> Vec<String> {
        self.options.words()
    }

    /// The profile and its source; `None` if none is named.
    pub(crate) fn judged(&self) -> Option<&Remembered> {
        self.judged.as_ref()
    }

    /// The same for `target`, with the profile remembered for it if none was typed. A drive
    /// described by a file keeps its description.
    pub(crate) fn remembering(&self, target: &str) -> Result<DiskOverrides, String> {
        let found = remembered::profile(self.options.profile.as_deref(), target)?;
        if self.described { Ok(self.clone()) } else { self.judged_by(found) }
    }

    fn judged_by(&self, judged: Option<Remembered>) -> Result<DiskOverrides, String> {
        let profile = judged.as_ref().map(|judged| judged.profile.clone());
        if profile == self.options.profile {
            return Ok(DiskOverrides { judged, ..self.clone() });
        }
        let own = DiskOverrides::new(&DiskOptions { profile, ..self.options.clone() })?;
        Ok(DiskOverrides { judged, direct: self.direct, ..own })
    }

    /// The same, with files and devices opened past the page cache if `direct`.
    pub(crate) fn bypass_cache(self, direct: bool) -> DiskOverrides {
        DiskOverrides { direct, ..self }
    }

    /// Refuses keys of a model for a disk that is no simulated drive; `what` names the attempt.
    pub(crate) fn refuse_model_keys(&self, what: &str) -> Result<(), String> {
        match self.set.first() {
            None => Ok(()),
            Some((key, _)) => Err(format!(
                "{what}: --set {key} is for simulated drives: drive:MODEL[=IMAGE], as trueline drives lists them"
            )),
        }
    }

    /// Adopts a drive's own description from a file; options of the user win.
    pub(crate) fn adopt(&mut self, drive: &Topology) {
        self.described = true;
        self.sector = self.sector.or(Some(drive.sector));
        let user: Vec<Why> = self.facts.iter().map(|f| f.why).collect();
        self.facts.extend(drive.facts.iter().filter(|f| !user.contains(&f.why)));
    }

    /// The overrides as a `gnop`-like layer over a disk of `length` bytes.
    pub(crate) fn nop(&self, length: u64) -> Nop {
        Nop::new(length, self.sector, self.facts.clone())
    }
}

/// Opens and tastes a target, for reading. Also returns the provider named after `#`.
pub(crate) fn open(
    target: &str,
    overrides: &DiskOverrides,
) -> Result<(Graph, Option<String>), String> {
    open_for(target, overrides, Access::Read)
}

/// True if a disk of the target is an NBD export.
pub(crate) fn is_remote(target: &str) -> bool {
    split(target).0.into_iter().any(remote::is_meant)
}

/// The files and devices that the target opens, as typed.
pub(crate) fn paths(target: &str) -> Vec<&Path> {
    split(target)
        .0
        .into_iter()
        .filter(|disk| !is_made_up(disk) && !remote::is_meant(disk))
        .map(Path::new)
        .collect()
}

/// As [`open`], for reading or writing.
pub(crate) fn open_for(
    target: &str,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<(Graph, Option<String>), String> {
    let (disks, provider) = split(target);
    if disks.contains(&"") {
        return Err(format!(
            "open '{target}': the name of a disk is missing: write DISK[,DISK...][#PROVIDER]"
        ));
    }
    distinct(&disks)?;
    if !disks.iter().any(|disk| simulated::is_simulated(disk)) {
        overrides.refuse_model_keys(&format!("open {target}"))?;
    }
    let opened: Vec<Disk> = disks
        .iter()
        .zip(names(&disks))
        .map(|(disk, name)| open_disk(disk, name, overrides, access))
        .collect::<Result<_, _>>()?;
    Ok((Graph::taste(opened, Limits::default()), provider))
}

/// As [`open`], for a target of simulated drives; includes the model of each, in the order of the
/// graph's stores. `None` if no disk of it is simulated. Errors: only some are.
pub(crate) fn simulated(
    target: &str,
    overrides: &DiskOverrides,
) -> Result<Option<Simulated>, String> {
    let (disks, provider) = split(target);
    if !disks.iter().any(|disk| simulated::is_simulated(disk)) {
        return Ok(None);
    }
    let (mut opened, mut models) = (Vec::new(), Vec::new());
    for (disk, name) in disks.iter().zip(names(&disks)) {
        let (disk, model) = simulated::open_disk(disk, &name, overrides, Access::Read)?.ok_or_else(|| {
            format!("open {target}: {disk} is no simulated drive and others are: write drive:MODEL={disk} to put what is on it on one")
        })?;
        laid_out(target, &model)?;
        opened.push(disk);
        models.push(model);
    }
    Ok(Some(Simulated { graph: Graph::taste(opened, Limits::default()), provider, models }))
}

/// Refuses a drive larger than the medium of its model: the model gives boundaries, but no tracks
/// for the rest.
fn laid_out(target: &str, model: &Model) -> Result<(), String> {
    let size = model.size;
    match model.disk.as_ref().map(|disk| disk.full_size_bytes).filter(|&full| size > full) {
        None => Ok(()),
        Some(full) => {
            let say = format!(
                "say --set full_size_bytes={size}, and what else is other in it: heads, outer_track_bytes"
            );
            let name = &model.name;
            Err(format!(
                "open {target}: {name} has a medium of {full} bytes, and nothing says how one of {size} is laid out: {say}"
            ))
        }
    }
}

/// A target of simulated drives, tasted.
pub(crate) struct Simulated {
    pub(crate) graph: Graph,
    /// The provider named after the `#`.
    pub(crate) provider: Option<String>,
    /// The model of every store of the graph, in order.
    pub(crate) models: Vec<Model>,
}

/// Refuses a disk that is named twice: each copy would be written as if it were another disk.
fn distinct(disks: &[&str]) -> Result<(), String> {
    let identity = |disk: &str| fs::metadata(disk).ok().map(|m| (m.dev(), m.ino()));
    let known: Vec<_> =
        disks.iter().filter(|disk| !is_made_up(disk)).map(|&disk| (disk, identity(disk))).collect();
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
            return Err(format!("open {}: {twice}", disks.join(",")));
        }
    }
    Ok(())
}

/// The disks and the provider of a target. A file name may hold a `#` or a `,`: existing files
/// decide.
pub(crate) fn split(target: &str) -> (Vec<&str>, Option<String>) {
    let (mut disks, mut rest) = (Vec::new(), target);
    while let Some(end) = end_of_name(rest) {
        let (name, after) = rest.split_at(end);
        disks.push(name);
        match (after.strip_prefix('#'), after.strip_prefix(',')) {
            (Some(provider), _) => return (disks, Some(provider.into())),
            (None, Some(next)) => rest = next,
            (None, None) => return (disks, None),
        }
    }
    // Nothing of that name exists, so it ends in an error: the text is taken as it reads.
    let (names, provider) = rest
        .split_once('#')
        .map_or((rest, None), |(names, provider)| (names, Some(provider.into())));
    disks.extend(names.split(','));
    (disks, provider)
}

/// Longest path that Linux takes, in bytes.
const PATH_MAX: usize = 4096;

/// End of the disk name that `text` begins with: the whole text if that exists, else the first mark
/// with an existing name before it.
fn end_of_name(text: &str) -> Option<usize> {
    let marks = text.match_indices([',', '#']).map(|(at, _)| at).take_while(|&at| at <= PATH_MAX);
    let mut ends = Some(text.len()).filter(|&end| end <= PATH_MAX).into_iter().chain(marks);
    ends.find(|&end| is_there(&text[..end]))
}

fn is_there(disk: &str) -> bool {
    Path::new(disk).exists() || is_made_up(disk) || remote::is_meant(disk)
}

/// The disks of a target as typed, if a command that names them would find them. A title, or a list
/// of another host, has none.
pub(crate) fn disks_of(target: &str) -> Option<&str> {
    let (disks, provider) = split(target);
    let found = disks.iter().all(|disk| is_there(disk) || disk.starts_with("/dev/"));
    let end = provider.map_or(target.len(), |name| target.len() - name.len() - 1);
    target.get(..end).filter(|_| found)
}

/// True if `disk` is memory, zeroes or a simulated drive: each use makes a new one.
pub(crate) fn is_made_up(disk: &str) -> bool {
    simulated::is_there(disk) || is_memory(disk)
}

/// True if `disk` is memory (`md:`) or zeroes (`zero:`).
pub(crate) fn is_memory(disk: &str) -> bool {
    memory::is_there(disk)
        || disk.strip_prefix(ZERO).is_some_and(|size| size::bytes(size).is_some())
}

/// Names of a target's disks: empty for a single one, else the stems of their files (for a
/// simulated drive its image's, or its model), if these differ.
fn names(disks: &[&str]) -> Vec<String> {
    if disks.len() < 2 {
        return vec![String::new(); disks.len()];
    }
    let stem = |disk: &&str| {
        let file = simulated::file(disk).or_else(|| memory::image(disk)).unwrap_or(disk);
        Path::new(file).file_stem().map_or((*disk).into(), |n| n.to_string_lossy().into_owned())
    };
    let stems: Vec<String> = disks.iter().map(stem).collect();
    let typed: Vec<String> = disks.iter().map(|&disk| disk.into()).collect();
    let differ = |names: &Vec<String>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let numbered =
        || disks.iter().enumerate().map(|(i, disk)| format!("{disk}-{}", i + 1)).collect();
    [stems, typed].into_iter().find(differ).unwrap_or_else(numbered)
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
    Graph::taste(disks.collect(), Limits::default())
}

/// As [`open`], for a target of memory and zeroes alone; allocates the memory. `None` if no disk of
/// it is. Errors: only some are.
pub(crate) fn memory(
    target: &str,
    overrides: &DiskOverrides,
) -> Result<Option<(Graph, Option<String>)>, String> {
    let (disks, provider) = split(target);
    if !disks.iter().any(|disk| is_memory(disk)) {
        return Ok(None);
    }
    overrides.refuse_model_keys(&format!("open {target}"))?;
    let mut opened = Vec::new();
    for (disk, name) in disks.iter().zip(names(&disks)) {
        opened.push(match (memory::open(disk)?, zeroes(disk, &name, overrides)?) {
            (Some(store), _) => image(name, store, overrides),
            (None, Some(zeroes)) => zeroes,
            (None, None) => {
                return Err(format!("open {target}: {disk} is not memory and others are: write md:SIZE={disk} to take it there"));
            }
        });
    }
    Ok(Some((Graph::taste(opened, Limits::default()), provider)))
}

/// The disk `zero:SIZE`; `None` if it is another kind of disk.
fn zeroes(disk: &str, name: &str, overrides: &DiskOverrides) -> Result<Option<Disk>, String> {
    let Some(length) = size_after(disk, ZERO)? else { return Ok(None) };
    let topology = topology(512, length, overrides);
    let bytes = Bytes::Geom(Arc::new(Zero { length }));
    Ok(Some(Disk {
        name: name.into(),
        bytes,
        topology,
        start: Some(0),
        nop: Some(overrides.nop(length)),
        findings: Vec::new(),
    }))
}

fn open_disk(
    disk: &str,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Disk, String> {
    if let Some(zeroes) = zeroes(disk, &name, overrides)? {
        return Ok(zeroes);
    }
    // A read needs no memory: such a disk may be larger than memory.
    if let Some(length) = memory::size(disk)? {
        return Ok(image(name, Box::new(Sparse::new(length)), overrides));
    }
    if let Some(store) = memory::open(disk)? {
        return Ok(image(name, store, overrides));
    }
    if let Some((disk, _)) = simulated::open_disk(disk, &name, overrides, Access::Read)? {
        return Ok(disk);
    }
    if remote::is_meant(disk) {
        return remote::open(disk, name, overrides, access);
    }
    if disk.contains("://") && !Path::new(disk).exists() {
        let kinds = format!(
            "image files and block devices, md:SIZE, {ZERO}SIZE, drive:MODEL, nbd:// and nbd+unix://"
        );
        return Err(format!("open {disk}: this version reads {kinds}"));
    }
    let opened =
        file::open_for(Path::new(disk), access).map_err(|e| match simulated::is_model(disk) {
            true => format!("{e}; drive:{disk} is the simulated drive of that name"),
            false => e.to_string(),
        })?;
    if !opened.block {
        return Ok(image(name, medium(opened.store, disk, overrides)?, overrides));
    }
    let start = opened.device.as_ref().map_or(Some(0), Device::medium_start);
    let (topology, findings) = match &opened.device {
        Some(device) => device.topology(),
        None => (ioctl_topology(&opened), Vec::new()),
    };
    let nop = Some(overrides.nop(topology.length));
    Ok(Disk {
        name,
        bytes: Bytes::Store(medium(opened.store, disk, overrides)?),
        topology,
        start,
        nop,
        findings,
    })
}

/// An open file or device, past the page cache if the overrides want that.
fn medium(medium: Medium, disk: &str, overrides: &DiskOverrides) -> Result<Box<dyn Store>, String> {
    if !overrides.direct {
        return Ok(Box::new(medium));
    }
    let direct = Direct::new(medium, Path::new(disk)).map_err(|e| e.to_string())?;
    any_bytes(direct, disk)
}

/// A store that takes reads and writes of single bytes, whatever its unit.
fn any_bytes(store: impl Store + 'static, disk: &str) -> Result<Box<dyn Store>, String> {
    if store.properties().unit == 1 {
        return Ok(Box::new(store));
    }
    let (unit, length) = (store.properties().unit, store.length());
    let view = Sectored::new(Arc::new(store), 1);
    Ok(Box::new(
        view.ok_or_else(|| format!("open {disk}: it takes units of {unit} bytes and has {length} bytes, which is not whole units"))?,
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
            source: Source::Ioctl,
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

/// The size in `KIND:SIZE`, in bytes; `None` if it is another kind of disk.
fn size_after(disk: &str, kind: &str) -> Result<Option<u64>, String> {
    let size = disk.strip_prefix(kind).filter(|_| !Path::new(disk).exists());
    size.map(|size| {
        size::bytes(size).ok_or_else(|| format!("{disk}: '{size}' is not a size: 64m, 1g"))
    })
    .transpose()
}

/// A disk with nothing known but its bytes. The sector is the one that its GPT or MBR fits, else
/// 512.
fn image(name: String, store: Box<dyn Store>, overrides: &DiskOverrides) -> Disk {
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
        nop: Some(overrides.nop(length)),
        findings: Vec::new(),
    }
}

/// Topology assumed for a disk that does not describe itself.
fn topology(sector: u64, length: u64, overrides: &DiskOverrides) -> Topology {
    let mut topology = Topology::new(sector, length);
    topology.facts = profile::assumed();
    if !overrides.facts.is_empty() {
        // The drive is named, so what tools do for unknown drives does not matter.
        topology.facts.retain(|f| f.why != Why::Convention);
    }
    topology
}

//! `TARGET := DISK[,DISK...][#PROVIDER]`: what the user points at, opened and tasted.

use crate::options::{DiskOptions, WhyGrain};
use std::path::Path;
use std::sync::Arc;
use trueline_geom::class::gpt;
use trueline_geom::class::nop::Nop;
use trueline_geom::class::zero::Zero;
use trueline_geom::graph::{Bytes, Disk, Graph};
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::profile;
use trueline_geom::route::Route;
use trueline_geom::store::{Sparse, Store};
use trueline_geom::topology::{Fact, Grain, Source, Topology, Trust, Why};
use trueline_host::device::Device;
use trueline_host::file::{self, Opened};

/// What the user says of a disk: its sector, and boundaries that replace those it claims.
pub(crate) struct Said {
    sector: Option<u64>,
    facts: Vec<Fact>,
}

impl Said {
    /// From the options; `Err` for a profile that is not known.
    pub(crate) fn new(options: &DiskOptions) -> Result<Said, String> {
        let (mut sector, mut facts) = match &options.profile {
            Some(name) => profile::named(name).ok_or_else(|| {
                let names: Vec<&str> = profile::PROFILES.iter().map(|p| p.name).collect();
                format!("no profile '{name}': there are {}, raidCHUNKxDISKS", names.join(", "))
            })?,
            None => (None, Vec::new()),
        };
        sector = options.logical.or(sector);
        let physical = options.physical.map(|(size, phase)| WhyGrain { why: Why::Physical, size, phase });
        for said in physical.into_iter().chain(options.grain.iter().copied()) {
            facts.retain(|f| f.why != said.why);
            facts.extend(said.fact());
        }
        Ok(Said { sector, facts })
    }

    /// What a drive says of itself elsewhere, where the user has not said otherwise.
    pub(crate) fn adopt(&mut self, drive: &Topology) {
        self.sector = self.sector.or(Some(drive.sector));
        let user: Vec<Why> = self.facts.iter().map(|f| f.why).collect();
        self.facts.extend(drive.facts.iter().filter(|f| !user.contains(&f.why)));
    }

    /// As a layer over a disk of `length` bytes.
    pub(crate) fn nop(&self, length: u64) -> Nop {
        Nop::new(length, self.sector, self.facts.clone())
    }
}

/// Opens and tastes a target; gives the provider named after `#` as well.
pub(crate) fn open(target: &str, said: &Said) -> Result<(Graph, Option<String>), String> {
    let (disks, provider) = match target.split_once('#') {
        // A file whose name has a `#` in it is a file.
        Some(_) if Path::new(target).exists() => (target, None),
        Some((disks, provider)) => (disks, Some(provider.to_string())),
        None => (target, None),
    };
    let names: Vec<&str> = if Path::new(disks).exists() { vec![disks] } else { disks.split(',').collect() };
    let several = names.len() > 1;
    let opened: Vec<Disk> = names.iter().map(|name| open_disk(name, several, said)).collect::<Result<_, _>>()?;
    Ok((Graph::taste(opened, Limits::default()), provider))
}

/// Tastes disks that are already open; the only one of a target needs no name.
pub(crate) fn taste_stores(stores: Vec<(String, Box<dyn Store>)>, said: &Said) -> Graph {
    let several = stores.len() > 1;
    let disks = stores.into_iter().map(|(name, store)| image(if several { name } else { String::new() }, store, said));
    Graph::taste(disks.collect(), Limits::default())
}

fn open_disk(disk: &str, several: bool, said: &Said) -> Result<Disk, String> {
    let name = if several { Path::new(disk).file_stem().map_or(disk.into(), |n| n.to_string_lossy().into_owned()) } else { String::new() };
    if let Some(length) = size_after(disk, "zero:")? {
        let topology = topology(512, length, said);
        let bytes = Bytes::Geom(Arc::new(Zero { length }));
        return Ok(Disk { name, bytes, topology, start: Some(0), nop: Some(said.nop(length)), findings: Vec::new() });
    }
    if let Some(length) = size_after(disk, "md:")? {
        return Ok(image(name, Box::new(Sparse::new(length)), said));
    }
    let opened = file::open(Path::new(disk)).map_err(|e| e.to_string())?;
    if !opened.block {
        return Ok(image(name, Box::new(opened.store), said));
    }
    let start = opened.device.as_ref().map_or(Some(0), Device::medium_start);
    let (topology, findings) = match &opened.device {
        Some(device) => device.topology(),
        None => (asked(&opened), Vec::new()),
    };
    let nop = Some(said.nop(topology.length));
    Ok(Disk { name, bytes: Bytes::Store(Box::new(opened.store)), topology, start, nop, findings })
}

/// What a block device that sysfs does not have says of itself.
fn asked(opened: &Opened) -> Topology {
    let sector = opened.sector.unwrap_or(512);
    let mut topology = Topology::new(sector, opened.store.length());
    for (size, why) in [(Some(sector), Why::Logical), (opened.physical, Why::Physical)] {
        let grain = size.and_then(|size| Grain::new(size, 0));
        topology.facts.extend(grain.map(|grain| Fact { grain, why, source: Source::Ioctl, trust: Trust::Claimed }));
    }
    topology
}

/// The size in `md:SIZE`; `None` if it is not that kind of disk.
fn size_after(disk: &str, kind: &str) -> Result<Option<u64>, String> {
    let size = disk.strip_prefix(kind).filter(|_| !Path::new(disk).exists());
    size.map(|size| profile::bytes(size).ok_or_else(|| format!("{disk}: '{size}' is not a size: 64m, 1g"))).transpose()
}

/// A disk of which only its bytes are known.
fn image(name: String, store: Box<dyn Store>, said: &Said) -> Disk {
    let length = store.length();
    let stores = [store];
    let sector = said.sector.unwrap_or_else(|| {
        let (route, budget) = (Route::store(0, length), Budget::new(Limits::default()));
        let probe = Probe::new(&route, &stores, &budget, 512, Some(0), None);
        gpt::sector_of(&probe).unwrap_or(512)
    });
    let topology = topology(sector, length, said);
    let [store] = stores;
    Disk { name, bytes: Bytes::Store(store), topology, start: Some(0), nop: Some(said.nop(length)), findings: Vec::new() }
}

/// What is assumed of a disk that nobody knows.
fn topology(sector: u64, length: u64, said: &Said) -> Topology {
    let mut topology = Topology::new(sector, length);
    topology.facts = profile::assumed();
    if !said.facts.is_empty() {
        // Somebody named the drive: what tools do for drives that nobody named does not matter here.
        topology.facts.retain(|f| f.why != Why::Convention);
    }
    topology
}

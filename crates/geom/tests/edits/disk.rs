//! A disk in memory, its table, and what the classes find on it.

use trueline_geom::base::ondisk::Guid;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::Topology;
use trueline_geom::graph::{Disk, Graph};
use trueline_geom::mapping::route::Route;
use trueline_geom::mapping::slices::PartitionType;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::table::scheme::{New, Scheme, TableSite};
use trueline_geom::table::{Refusal, Request, Rules, Table, Wanted};

/// Lets `look` see the disk as a class does. `kind` is what the table above says it is.
pub(crate) fn probe<T>(
    disk: &Sparse,
    sector: u64,
    kind: Option<PartitionType>,
    look: impl FnOnce(&Probe<'_>) -> T,
) -> T {
    let (route, stores) =
        (Route::store(0, disk.length()), [Box::new(disk.clone()) as Box<dyn Store>]);
    look(&Probe::new(
        &route,
        &stores,
        &Budget::new(Limits::default()),
        sector,
        Some(0),
        kind.as_ref(),
    ))
}

/// The table of `scheme` that is there.
pub(crate) fn read(scheme: &dyn Scheme, disk: &Sparse, sector: u64) -> Option<Table> {
    probe(disk, sector, None, |probe| scheme.read(probe))
}

/// Lets `edit` see what a disk's table lies on.
pub(crate) fn on<T>(disk: &Sparse, sector: u64, edit: impl FnOnce(&TableSite<'_>) -> T) -> T {
    let topology = Topology::new(sector, disk.length());
    edit(&TableSite { topology: &topology, base: 0, kind: None })
}

/// An empty table, not yet written.
pub(crate) fn create(
    scheme: &dyn Scheme,
    disk: &Sparse,
    sector: u64,
    new: &New,
) -> Result<Table, Refusal> {
    on(disk, sector, |ground| probe(disk, sector, None, |probe| scheme.create(probe, ground, new)))
}

/// A partition of that type at that place.
pub(crate) fn wanted(scheme: &dyn Scheme, kind: &str, start: u64, size: u64, uuid: u8) -> Wanted {
    let place = Request { start: Some(start), size: Some(size), align: None };
    let kind = scheme.kind(kind).unwrap_or_else(|| panic!("{} has no type {kind}", scheme.name()));
    Wanted { kind, place, index: None, label: None, uuid: Some(Guid([uuid; 16])), attributes: 0 }
}

/// Adds partitions to a table.
pub(crate) fn add(table: &mut Table, wanted: impl IntoIterator<Item = Wanted>) {
    let topology = Topology::new(table.sector, table.length);
    let ground = TableSite { topology: &topology, base: 0, kind: None };
    for wanted in wanted {
        table.add(&ground, wanted, Rules::Aligned).unwrap();
    }
}

/// The disk after all of `patches`.
pub(crate) fn written(disk: &Sparse, patches: &[Patch]) -> Sparse {
    let mut disk = disk.clone();
    patches.iter().for_each(|p| disk.put(p.offset, &p.bytes));
    disk
}

/// `length` bytes at `offset`.
pub(crate) fn bytes(disk: &Sparse, offset: u64, length: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(length).unwrap()];
    disk.read_at(&mut bytes, offset).unwrap();
    bytes
}

/// Every partition that tasting finds, at any depth.
pub(crate) fn found(disk: &Sparse, sector: u64) -> Vec<String> {
    let topology = Topology::new(sector, disk.length());
    let disk = Disk { start: Some(0), ..Disk::new("", Box::new(disk.clone()), topology) };
    let graph = Graph::taste(vec![disk], Limits::default());
    let line = |p: &trueline_geom::graph::Provider| {
        format!(
            "{} {} {} {} {:?} {:?} {:?}",
            p.name,
            p.class,
            p.base(),
            p.topology.length,
            p.kind,
            p.label,
            p.uuid
        )
    };
    graph.providers.iter().skip(1).map(line).collect()
}

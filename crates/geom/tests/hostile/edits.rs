//! Whatever is on a disk, its table can be taken for an edit, and what comes of that is written
//! where it may be.

use crate::invariants::Subject;
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};
use trueline_geom::base::topology::{Topology, is_whole};
use trueline_geom::mapping::route::Route;
use trueline_geom::probe::{Budget, Limits, Probe};
use trueline_geom::registry::SCHEMES;
use trueline_geom::table::Table;
use trueline_geom::table::scheme::{Scheme, TableSite};

fn read(scheme: &dyn Scheme, disk: &Sparse, sector: u64) -> Option<Table> {
    let (route, stores) =
        (Route::store(0, disk.length()), [Box::new(disk.clone()) as Box<dyn Store>]);
    scheme.read(&Probe::new(
        &route,
        &stores,
        &Budget::new(Limits::default()),
        sector,
        Some(0),
        None,
    ))
}

/// The disk after `patches`, which write whole sectors that it has.
pub fn written(subject: &Subject, patches: &[Patch]) -> Sparse {
    let mut disk = subject.disk.clone();
    for patch in patches {
        assert!(
            patch.end() <= disk.length(),
            "{} ends at {} of {}",
            patch.what,
            patch.end(),
            disk.length()
        );
        assert!(
            is_whole(patch.offset, subject.sector)
                && is_whole(patch.bytes.len() as u64, subject.sector),
            "{}",
            patch.what
        );
        disk.put(patch.offset, &patch.bytes);
    }
    disk
}

/// Reads the table of each scheme, recovers or empties it, and removes it.
pub fn edits_hold(subject: &Subject) {
    let sector = subject.sector;
    let topology = Topology::new(sector, subject.disk.length());
    let ground = TableSite { topology: &topology, base: 0, kind: None };
    for scheme in SCHEMES {
        let Some(table) = read(*scheme, &subject.disk, sector) else { continue };
        let erased = written(subject, &scheme.erase(&table));
        assert!(
            read(*scheme, &erased, sector).is_none(),
            "{} is found after it was removed",
            scheme.name()
        );
        let after = match scheme.recover(&table, &ground) {
            Ok(_) if table.damage.is_empty() => Table { entries: Vec::new(), ..table.clone() },
            Ok(recovered) => recovered,
            Err(_) => continue,
        };
        let again = read(*scheme, &written(subject, &scheme.render(&table, &after)), sector);
        // An MBR without partitions may be any boot sector.
        let Some(again) = again else {
            assert!(after.entries.is_empty(), "{} is gone after {:?}", scheme.name(), table.damage);
            continue;
        };
        assert!(
            again.damage.is_empty(),
            "{}: {:?}, before {:?}",
            scheme.name(),
            again.damage,
            table.damage
        );
        assert_eq!(again.entries, after.entries, "{}", scheme.name());
    }
}

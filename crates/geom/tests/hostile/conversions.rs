//! Conversions of hostile disks to other sectors.

use trueline_geom::base::resize::Aim;
use trueline_geom::convert;
use trueline_geom::graph::Graph;

/// What a conversion to other sectors would write lies inside of the disk, apart, and can be read;
/// its bytes are bounded by what the disk holds.
pub fn hold(graph: &Graph) {
    let Some(disk) = graph.providers.first().filter(|disk| disk.topology.length > 0) else {
        return;
    };
    let from = disk.topology.sector;
    for (to, universal) in [(512, false), (4096, false), (from, true)] {
        let aim = Aim { from, to, universal };
        let Ok(conversion) = convert::plan(graph, 0, aim, true) else { continue };
        let mut end = 0;
        for write in &conversion.writes {
            assert!(
                write.at >= end && write.end() <= conversion.after.max(disk.topology.length),
                "{aim:?}: {write:?}"
            );
            end = write.end();
            let mut bytes = vec![0; usize::try_from(write.length().min(4096)).unwrap()];
            let mut read = |at: u64, out: &mut [u8]| graph.read_at(0, out, at);
            write.fill(0, &mut bytes, &mut read).unwrap();
        }
        assert!(conversion.partitions.iter().all(|kept| kept.after.end <= conversion.after));
    }
}

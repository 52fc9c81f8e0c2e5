//! `nbd://HOST[:PORT]/EXPORT`, `nbd+unix:///EXPORT?socket=PATH`: an export of a server, as a disk.
//!
//! Its boundaries are those the server announces. With `trueline:grain` and the like, units may
//! begin anywhere; the protocol's own sizes begin with the disk.

use super::DiskOverrides;
use super::open::{any_bytes, topology};
use crate::failure::Reason;
use trueline_geom::base::finding::{self, Finding, Severity};
use trueline_geom::base::store::Store;
use trueline_geom::base::topology::announced::Boundary;
use trueline_geom::base::topology::{Clash, Fact, Grain, Source, Topology, Trust, Why};
use trueline_geom::graph::{Bytes, Disk};
use trueline_host::disk::file::Access;
use trueline_host::nbd::client::{ExportInfo, Remote};
use trueline_host::nbd::uri::Uri;

/// True if `disk`, of which no file has the name, is a URI of NBD. A `#` or `,` ends a target's
/// disk, so a URI with one is none.
pub(super) fn is_meant(disk: &str) -> bool {
    Uri::is_meant(disk) && !disk.contains(['#', ','])
}

/// Connects, and returns the export as a disk called `name`.
pub(super) fn open(
    disk: &str,
    name: String,
    overrides: &DiskOverrides,
    access: Access,
) -> Result<Disk, Reason> {
    let remote = Remote::open(disk, !access.writes())?;
    let length = remote.length();
    let topology = topology_of(remote.told(), remote.boundaries(), overrides);
    let findings = topology.clashes.iter().filter(|clash| clash.why.costs()).map(clash).collect();
    let nop = Some(overrides.nop(length));
    Ok(Disk {
        name,
        bytes: Bytes::Store(any_bytes(remote, disk)?),
        topology,
        start: Some(0),
        serial: None,
        nop,
        findings,
        references: Vec::new(),
        refused: Vec::new(),
        format: None,
    })
}

/// Topology that a server announces for its export; the rest is assumed as for an image.
fn topology_of(told: ExportInfo, boundaries: &[Boundary], overrides: &DiskOverrides) -> Topology {
    let least = told.sizes.map_or(512, |[least, ..]| u64::from(least).max(512));
    let sector = boundaries
        .iter()
        .find(|boundary| boundary.why == Why::Logical)
        .and_then(|boundary| boundary.grain);
    let sector = sector.map_or(least, |grain| grain.size().max(least));
    let mut topology = topology(sector, told.length, overrides);
    let claimed = |why, grain| Fact { grain, why, source: Source::Nbd, trust: Trust::Claimed };
    if boundaries.is_empty() {
        let preferred = told
            .sizes
            .and_then(|[_, preferred, _]| Grain::new(u64::from(preferred), 0))
            .filter(|grain| grain.size() > sector);
        topology.facts.extend(preferred.map(|grain| claimed(Why::Preferred, grain)));
        return topology;
    }
    // The server knows the disk beneath its export.
    topology.facts.retain(|fact| fact.why == Why::Convention);
    for &Boundary { why, grain } in
        boundaries.iter().filter(|boundary| boundary.why != Why::Logical)
    {
        match grain {
            // Only a server that judges by it announces it; a device's claim of it is not judged
            // by.
            Some(grain) if why == Why::Optimal => {
                topology.facts.push(Fact { trust: Trust::Trusted, ..claimed(why, grain) })
            }
            Some(grain) => topology.facts.push(claimed(why, grain)),
            // Size, member and distance of a clash are not announced.
            None => topology.clashes.push(Clash { why, unit: 0, member: 0, remainder: 0 }),
        }
    }
    topology
}

fn clash(clash: &Clash) -> Finding {
    let message = format!(
        "the server says that what this stands on has no {} boundary in common",
        clash.why.name()
    );
    Finding::new(&finding::CLASH, Severity::Warning, 0, message)
        .fix("check it where it is served: trueline check names the member")
}

//! Host-managed drives in a world: their zones judge what is submitted, as Linux does before a
//! drive gets it (zone write plugging).

use super::{Port, Run, World, join};
use crate::drive::Op;
use trueline_geom::base::error::Errno;
use trueline_geom::mapping::geom;
use trueline_geom::mapping::route::{Piece, Route};

impl World {
    /// Judges the commands of a request by the zones of its drives, and moves write pointers if all
    /// of them are accepted.
    pub(super) fn pass_zones(&mut self, op: Op, pieces: &[Run]) -> Result<(), Errno> {
        for &(port, offset, length) in pieces {
            if let Some(zones) = self.ports.get(port).and_then(|port| port.zones.as_ref()) {
                zones.judge(op, offset, length).map_err(Errno::Zone)?;
            }
        }
        for &(port, offset, length) in pieces {
            if let Some(zones) = self.ports.get_mut(port).and_then(|port| port.zones.as_mut()) {
                zones.take(op, offset, length);
            }
        }
        Ok(())
    }

    /// Resets the zones of host-managed drives that lie wholly within a range of a provider. It
    /// takes no time. [`Errno::Range`] if the range is outside the provider.
    pub fn reset_zones(&mut self, route: &Route, offset: u64, length: u64) -> Result<(), Errno> {
        let mut runs: Vec<Run> = Vec::new();
        route.extents(offset, length, geom::Op::Write, &mut |_, piece| {
            if let Piece::Store { store, offset, length } = piece {
                join(&mut runs, (store, offset, length));
            }
            Ok(())
        })?;
        for (port, offset, length) in runs {
            if let Some(zones) = self.ports.get_mut(port).and_then(|port| port.zones.as_mut()) {
                zones.reset(offset, length);
            }
        }
        Ok(())
    }

    /// True if one of the routes may lead to a host-managed drive.
    pub(super) fn has_zones(&self, routes: &[Route]) -> bool {
        let is_zoned = |port: &Port| port.zones.is_some();
        routes.iter().any(|route| match route.medium() {
            Some(port) => self.ports.get(port).is_some_and(is_zoned),
            None => self.ports.iter().any(is_zoned),
        })
    }
}

#[cfg(test)]
mod tests;

//! Change of a table between two moves of partitions, sector by sector.
//!
//! A partition moves while the others stay, so the table changes many times. Each change is written
//! so that a reader finds the table before it or the one behind it, wherever it is cut short:
//! sectors that the table has not had yet come first, then those that lead to them.

use crate::base::patch::Patch;
use crate::base::store::Store;
use crate::table::scheme::TableSite;
use crate::table::{Refusal, Table};

/// Change of a table, in sectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Sectors that are written where nothing of the table was, before all others.
    pub fresh: Vec<Patch>,
    /// Sectors of the table that get other contents, in order.
    pub change: Vec<Patch>,
    /// Contents that `change` overwrites, one for one.
    pub was: Vec<Patch>,
    /// Sectors that are no longer of the table, with the contents that they had. With a move, those
    /// of a table in what is moved: they go along, and are written by the move.
    pub gone: Vec<Patch>,
}

impl Table {
    /// Gives the partition with number `index` the first byte `to`, and returns what that writes;
    /// [`Table::raw`] has it afterwards. For tables whose sectors stay where they are.
    pub fn turn(&mut self, site: &TableSite<'_>, index: u32, to: u64) -> Result<Turn, Refusal> {
        let mut after = self.clone();
        after.relocate(site, index, Some(to))?;
        let patches = self.scheme.render(self, &after);
        let size = usize::try_from(self.sector).unwrap_or(usize::MAX);
        let (mut change, mut was) = (Vec::<Patch>::new(), Vec::new());
        for patch in patches {
            let mut flush = patch.after_flush;
            for (at, bytes) in (patch.offset..).step_by(size).zip(patch.bytes.chunks(size)) {
                let mut now = vec![0; bytes.len()];
                // Bytes that were not read are zero.
                let _ = after.raw.read_at(&mut now, at);
                if now != bytes {
                    let sector = Patch::new(at, bytes.to_vec(), patch.what);
                    after.raw.put(at, bytes);
                    let flushed = std::mem::take(&mut flush) && !change.is_empty();
                    let sector = if flushed { sector.after_flush() } else { sector };
                    was.push(Patch { bytes: now, ..sector.clone() });
                    change.push(sector);
                }
            }
        }
        *self = after;
        Ok(Turn { change, was, ..Turn::default() })
    }
}

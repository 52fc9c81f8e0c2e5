//! Layouts: the wanted tables of a disk as a value, and the edits that make them.
//!
//! A layout names the partitions of a table, and inside each, optionally, another table, at any
//! depth. [`plan`] compares it with the tables on the disk: what agrees is kept, what is missing is
//! made, what contradicts is refused. A partition is never moved, resized or deleted by the way. A
//! table that agrees already gives no write, so a layout can be applied again and again.
//!
//! Shares in percent are of the range between the first and the last boundary of the usable range,
//! whatever else is on the disk: two halves fill it. (libparted counts percents of the whole device
//! and then looks for a free place near by, so that its halves never quite fit.) Several partitions
//! that take the rest share it equally.
//!
//! # Limits
//! The flavour of a BSD label and the geometry of a table on the disk are kept as they are.

use crate::base::ondisk::Guid;
use crate::mapping::slices::Dialect;
use crate::probe::Probe;
use crate::table::scheme::{Id, Scheme, TableSite};
use crate::table::{Refusal, Table};
use planning::Planning;

mod agree;
pub mod backup;
mod change;
mod lay;
mod planning;
pub mod sfdisk;
mod stages;

pub use stages::{Stage, in_order};

/// One percent in [`Size::Percent`], which counts hundredths.
pub const PERCENT: u32 = 100;

/// Wanted table of a disk or partition.
#[derive(Clone)]
pub struct Layout {
    /// Scheme of the table.
    pub scheme: &'static dyn Scheme,
    /// Identity of the table, such as GPT's disk GUID; `None` keeps any.
    pub id: Option<Id>,
    /// Number of entries it has room for; `None` keeps or chooses any.
    pub entries: Option<u32>,
    /// First byte and byte after the last of the range in which partitions may lie; `None` for the
    /// scheme's own.
    pub usable: Option<(u64, u64)>,
    /// Alignment in bytes on the medium of starts and ends that are chosen; `None` for the best
    /// grain there is.
    pub align: Option<u64>,
    /// Flavour of a BSD label.
    pub dialect: Option<Dialect>,
    /// True if starts count from the table above, as those of logical partitions do in sfdisk's
    /// scripts.
    pub from_above: bool,
    /// Partitions of the table, in order.
    pub parts: Vec<Part>,
}

/// Wanted partition. A `None` is chosen for a new partition, and leaves an existing one as it is.
#[derive(Clone)]
pub struct Part {
    /// Number from 1; `None` for the least that the layout does not name.
    pub index: Option<u32>,
    /// First byte, on the table's provider.
    pub start: Option<u64>,
    /// Size of the partition.
    pub size: Size,
    /// Type, as [`Scheme::kind`] knows it.
    pub kind: String,
    /// Name, of schemes that have names.
    pub label: Option<String>,
    /// GUID of the partition, of a GPT.
    pub uuid: Option<Guid>,
    /// Attribute bits of the scheme.
    pub attributes: Option<u64>,
    /// Table inside the partition; `None` leaves the contents alone.
    pub inside: Option<Layout>,
}

/// Wanted size of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Size in bytes, rounded up to whole sectors.
    Bytes(u64),
    /// A share of the usable range, in hundredths of a percent.
    Percent(u32),
    /// The rest of the free range. An existing partition keeps its size.
    Rest,
}

/// Permission to change a disk that contradicts the layout. The default permits nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct May {
    /// True if partitions that the layout does not name may be deleted.
    pub delete: bool,
    /// True if a new table may be written over any contents.
    pub replace: bool,
}

/// Plan of writes that carry a layout out.
#[derive(Default)]
pub struct Planned {
    /// Tables of the layout, the outer before the inner.
    pub steps: Vec<Step>,
    /// Writes, in the order of [`Stage`]s.
    pub stages: Vec<Stage>,
}

/// One table of the layout: its place, and its future contents.
pub struct Step {
    /// Name of its provider within the target: empty for the target itself, `s1`, `p2a`.
    pub provider: String,
    /// First byte of that provider on the target.
    pub offset: u64,
    /// Table after the edits.
    pub table: Table,
    /// Edits in words; empty if the table agrees already.
    pub edits: Vec<String>,
}

/// Refusal of a layout, with the provider that contradicts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of the provider, as [`Step::provider`].
    pub provider: String,
    /// Contradiction found there, and advice.
    pub why: Refusal,
}

/// Plans the tables of `layout` on the provider that `probe` sees, and their writes. Every refusal
/// comes before the first write. `medium` is the length of its disk in bytes. `random` gives the
/// identities of new tables and partitions.
pub fn plan(
    layout: &Layout,
    probe: &Probe<'_>,
    site: &TableSite<'_>,
    medium: u64,
    may: May,
    random: &mut dyn FnMut() -> [u8; 16],
) -> Result<Planned, Refused> {
    let mut planning = Planning { medium, may, random, steps: Vec::new() };
    let mut stages = planning.table(layout, probe, site, "", 0, 0)?;
    if let Some(last) = stages.last_mut() {
        last.leaves = None;
    }
    Ok(Planned { steps: planning.steps, stages })
}

#[cfg(test)]
mod tests;

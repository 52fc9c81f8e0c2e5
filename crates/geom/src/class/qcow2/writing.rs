//! Conditions under which an image is written, and what a writer needs to know of its header.

use super::refcounts::Width;
use super::{Clusters, DATA_FILE, DIRTY, EXTENDED_L2, Found, Header, found};
use crate::base::error::Errno;
use crate::base::topology::is_whole;
use crate::probe::Probe;
use std::fmt;
use std::mem::offset_of;

/// Largest refcount table in bytes, `QCOW_MAX_REFTABLE_SIZE`.
pub(super) const MOST_TABLE: u64 = 8 << 20;

/// Reason for which an image is not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotWritable {
    /// A rule of this program, in a few words.
    Reason(&'static str),
    /// A failure to read its tables.
    Failed(Errno),
}

impl fmt::Display for NotWritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotWritable::Reason(reason) => f.write_str(reason),
            NotWritable::Failed(errno) => write!(f, "its tables cannot be read: {errno}"),
        }
    }
}

impl std::error::Error for NotWritable {}

/// Places of an image's tables, of one that may be written.
#[derive(Clone)]
pub(crate) struct Layout {
    /// Places of the guest's clusters.
    pub(super) clusters: Clusters,
    /// Number of entries of the L1 table.
    pub(super) l1_entries: u64,
    /// First byte of the refcount table.
    pub(super) table: u64,
    /// Number of clusters of the refcount table.
    pub(super) table_clusters: u64,
    /// Width of a refcount.
    pub(super) width: Width,
    /// Size of the guest's disk in bytes.
    pub(crate) length: u64,
}

impl Layout {
    /// Size of a cluster in bytes.
    pub(crate) fn cluster(&self) -> u64 {
        1 << self.clusters.bits
    }

    /// The header's own words for a refcount table of `clusters` clusters at byte `table`, and
    /// their place in the file.
    pub(crate) fn refcount_table(table: u64, clusters: u64) -> (u64, Vec<u8>) {
        let clusters = u32::try_from(clusters).unwrap_or(u32::MAX);
        let at = offset_of!(Header, refcount_table_offset) as u64;
        (at, [&table.to_be_bytes()[..], &clusters.to_be_bytes()].concat())
    }

    /// Number of entries in the refcount table.
    pub(super) fn table_entries(&self) -> u64 {
        self.table_clusters.saturating_mul(self.cluster() / 8)
    }
}

/// The layout of the image on a provider.
///
/// Errors: the reason for which it is not written, as far as its header tells.
pub(crate) fn layout(probe: &Probe<'_>) -> Result<Layout, NotWritable> {
    match found(probe) {
        Some(Found { header, reason: None }) => of_header(&header),
        Some(Found { reason: Some(reason), .. }) => Err(NotWritable::Reason(reason)),
        None => Err(NotWritable::Reason("it has no header that is known here")),
    }
}

fn of_header(header: &Header) -> Result<Layout, NotWritable> {
    let features = header.incompatible_features.get();
    let is_old = header.version.get() == 2;
    let order = if is_old { 4 } else { header.refcount_order.get() };
    let bits = header.cluster_bits.get();
    let table = header.refcount_table_offset.get();
    let table_clusters = u64::from(header.refcount_table_clusters.get());
    let table_bytes = table_clusters << bits;
    let (dirty, corrupt) = (
        "it was not closed: qemu-img check -r all mends its refcounts",
        "its refcount table is not where one can be",
    );
    let reasons = [
        (features & DIRTY != 0, dirty),
        (features & DATA_FILE != 0, "its data are in another file"),
        (features & EXTENDED_L2 != 0, "its entries are extended"),
        (header.nb_snapshots.get() != 0, "it has snapshots inside"),
        (
            !is_old && header.autoclear_features.get() != 0,
            "it has bitmaps, or what else a write would make invalid",
        ),
        (order > 6, "its refcounts are wider than QEMU takes"),
        (table == 0 || !is_whole(table, 1 << bits) || table_clusters == 0, corrupt),
        (table_bytes > MOST_TABLE, "its refcount table is larger than QEMU takes"),
    ];
    if let Some((_, reason)) = reasons.into_iter().find(|(is_so, _)| *is_so) {
        return Err(NotWritable::Reason(reason));
    }
    Ok(Layout {
        clusters: Clusters::of(header),
        l1_entries: header.l1_size.get().into(),
        table,
        table_clusters,
        width: Width(order),
        length: header.size.get(),
    })
}

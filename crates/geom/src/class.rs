//! Traits of a class: tasting a provider, and assembling a set.
//!
//! Adding a class is one file in `class/`, a `mod` line and a line in [`crate::registry::CLASSES`],
//! and a golden disk in `tests/disks/`.

use crate::base::finding::Finding;
use crate::mapping::geom::Geom;
use crate::probe::Probe;
use std::sync::Arc;

pub mod apm;
pub mod bsd;
pub mod bsd64;
pub mod concat;
pub mod gpt;
pub mod mbr;
pub mod metadata;
pub mod minix;
pub mod mirror;
pub mod nop;
pub mod rdb;
pub mod sgi;
pub mod solaris;
pub mod stripe;
pub mod unixware;
pub mod vtoc8;
pub mod zero;

/// Kind of layer, such as `gpt` or `stripe`.
pub trait Class: Sync {
    /// Name as GEOM has it, in lower case.
    fn name(&self) -> &'static str;

    /// The geom, membership or refusal that this class finds on a provider. Never writes; damage is
    /// a result.
    fn taste(&self, probe: &Probe<'_>) -> Taste;

    /// The finding that the contents of its slices contradict a table of this class, as far as
    /// `recognises` knows them. Asked where [`Class::taste`] found one.
    fn contradicted(&self, probe: &Probe<'_>, recognises: Recognises) -> Option<Finding> {
        let _ = (probe, recognises);
        None
    }

    /// The set that `members` make; `None` if their labels disagree. The caller gives them with one
    /// [`Member::set`] and [`Member::count`], in order of [`Member::number`], each number once, at
    /// least [`Member::enough`] of them.
    fn assemble(&self, members: &[Member]) -> Option<Arc<dyn Geom>> {
        let _ = members;
        None
    }
}

/// True if some class or format recognises what is on a provider; [`crate::registry::recognises`]
/// asks all of them.
pub type Recognises = fn(&Probe<'_>) -> bool;

/// Answer of a class to a taste.
pub enum Taste {
    /// Provider without metadata of this class.
    No,
    /// Metadata of this class from which no geom can be made, with the reasons: an unreadable
    /// label, a table for another sector size, a stale one.
    Refused(Vec<Finding>),
    /// Geom over this one provider, with findings.
    Geom(Arc<dyn Geom>, Vec<Finding>),
    /// Member of a set.
    Member(Member),
}

/// Place of one provider in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Key that all members of one set share and no other set has.
    pub set: String,
    /// Name of the provider that the set makes: `stripe/data`.
    pub provider: String,
    /// Number of this member, from 0; `None` where any order will do.
    pub number: Option<usize>,
    /// Number of members in the set.
    pub count: usize,
    /// Least number of members with which there is a provider.
    pub enough: usize,
    /// Chunk in bytes; 0 for sets that have none.
    pub chunk: u64,
    /// Bytes of this member that the set may use.
    pub length: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::base::store::{Sparse, Store};
    use crate::mapping::route::Route;
    use crate::mapping::slices::{Kind, Slice};
    use crate::probe::{Budget, Limits};

    /// Largest number of bytes that one class may read of one provider, whatever its contents.
    const MOST_READ: u64 = 256 << 10;

    /// The partitions that a class finds on a disk or in a partition of some kind, and the messages
    /// of its findings; `None` where it finds nothing of its own. Its reads are bounded, and its
    /// partitions lie on the provider.
    pub(crate) fn read(
        class: &dyn Class,
        disk: Sparse,
        kind: Option<Kind>,
    ) -> Option<(Vec<Slice>, Vec<String>)> {
        let length = disk.length();
        let (route, budget) = (Route::store(0, length), Budget::new(Limits::default()));
        let stores: Vec<Box<dyn Store>> = vec![Box::new(disk)];
        let taste = class.taste(&Probe::new(&route, &stores, &budget, 512, Some(0), kind.as_ref()));
        assert!(budget.spent() <= MOST_READ, "{} bytes read", budget.spent());
        let (slices, findings) = match taste {
            Taste::No | Taste::Member(_) => return None,
            Taste::Refused(findings) => (Vec::new(), findings),
            Taste::Geom(geom, findings) => {
                (geom.table().expect("a table").entries.clone(), findings)
            }
        };
        assert!(slices.iter().all(|slice| slice.length > 0
            && slice.start.checked_add(slice.length).is_some_and(|end| end <= length)));
        Some((slices, findings.into_iter().map(|finding| finding.message).collect()))
    }

    /// Tastes disks that begin with `image`, each of its 32-bit words as small and as large as it
    /// can be, whole and cut short. `seal` mends the checksums, so that the numbers themselves are
    /// read.
    pub(crate) fn survives(
        class: &dyn Class,
        kind: Option<Kind>,
        image: &[u8],
        seal: fn(&mut [u8]),
    ) {
        for at in (0..image.len()).step_by(4) {
            for number in
                [0_u32, 1, 2, 0x0001_0001, 0x7fff_ffff, 0x8000_0000, u32::MAX - 1, u32::MAX]
            {
                let mut hostile = image.to_vec();
                hostile[at..at + 4].copy_from_slice(&number.to_be_bytes());
                seal(&mut hostile);
                for length in [image.len() as u64, 1 << 20, 1 << 40] {
                    read(class, crate::format::tests::disk(length, &[(0, &hostile)]), kind);
                }
                for length in [1_usize, 511, 512, 700, 1024, 1100] {
                    read(
                        class,
                        crate::format::tests::disk(
                            length as u64,
                            &[(0, &hostile[..image.len().min(length)])],
                        ),
                        kind,
                    );
                }
            }
        }
    }
}

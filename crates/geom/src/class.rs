//! Traits of a class: tasting a provider, and assembling a set.
//!
//! Adding a class is one file in `class/`, a `mod` line and a line in [`crate::registry::CLASSES`],
//! and a golden disk in `tests/disks/`.

use crate::base::finding::{self, Finding, Severity};
use crate::class::metadata::Relabels;
use crate::format;
use crate::mapping::geom::Geom;
use crate::probe::Probe;
use crate::table::scheme::Scheme;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub mod android_sparse;
pub mod apm;
pub mod bsd;
pub mod bsd64;
pub mod concat;
pub mod container;
pub mod dmg;
pub mod ewf;
pub mod ewf2;
pub mod gpt;
pub mod imsm;
pub mod integrity;
pub mod luks;
pub mod lvm;
pub mod mbr;
pub mod md;
pub mod metadata;
pub mod minix;
pub mod mirror;
pub mod nop;
pub mod packed;
pub mod parallels;
pub mod qcow;
pub mod qcow2;
pub mod qed;
pub mod rdb;
pub mod sgi;
pub mod solaris;
pub mod sparseimage;
pub mod stripe;
pub mod tar;
pub mod unixware;
pub mod vdi;
pub mod vhd;
pub mod vhdx;
pub mod vmdk;
pub mod vtoc8;
pub mod zero;

/// Kind of layer, such as `gpt` or `stripe`.
pub trait Class: Sync {
    /// Name as GEOM has it, in lower case.
    fn name(&self) -> &'static str;

    /// The geom, membership or refusal that this class finds on a provider. Never writes; damage is
    /// a result.
    fn taste(&self, probe: &Probe<'_>) -> Taste;

    /// The scheme by which its tables are edited; `None` for a class whose tables are only read.
    fn scheme(&self) -> Option<&'static dyn Scheme> {
        None
    }

    /// The finding that the contents of its slices contradict a table of this class, as far as
    /// `recognises` knows them. Asked where [`Class::taste`] found one.
    fn contradicted(&self, probe: &Probe<'_>, recognises: Recognises) -> Option<Finding> {
        let _ = (probe, recognises);
        None
    }

    /// The kind of the sign by which a member of this class is recognised as a format besides;
    /// `None` for a class whose members are known by their label alone.
    fn sign(&self) -> Option<format::FormatKind> {
        None
    }

    /// True if a member of this class is none under a partition table with entries: what makes such
    /// sets passes over a device that has one.
    fn yields_to_tables(&self) -> bool {
        false
    }

    /// True if the data area of a member in use is judged by its own start, as a format's is.
    fn judges_data_areas(&self) -> bool {
        false
    }

    /// True for a class that is asked only of a provider's own contents: not where it is a member
    /// of another set, or holds a format whose data begin at byte 0. Those show the same bytes, and
    /// end where they should.
    fn waits_for_contents(&self) -> bool {
        false
    }

    /// True if its metadata are found by the sectors of a member: in the last.
    fn lies_by_sectors(&self) -> bool {
        false
    }

    /// Its way of writing the metadata in a member's last sector for other sectors; `None` for a
    /// class that has none there, or whose sets have to be made anew.
    fn relabels(&self) -> Option<&'static dyn Relabels> {
        None
    }

    /// True if its geom shows a whole disk, as a guest sees it: what is on that has the names that
    /// it would have on a disk of its own.
    fn shows_a_disk(&self) -> bool {
        false
    }

    /// False if every member makes a provider of its own, even where two say the same: it has one
    /// device beneath, so that none is to be told from another.
    fn joins(&self) -> bool {
        true
    }

    /// The providers that the members present make, or `None` while too few are there. Asked again
    /// when there are more. With `degraded` it need not have all of them: no other is to come.
    /// Members that do not say of which set they are come last, and by themselves if no set has
    /// taken them.
    ///
    /// By default the one set of [`Class::assemble`], of members chosen by [`chosen`].
    fn build(&self, present: &[Present<'_>], degraded: bool) -> Option<Assembly> {
        let all: Vec<&Member> = present.iter().map(|present| present.member).collect();
        let (here, first) = (chosen(&all), *all.first()?);
        if here.len() < if degraded { first.enough } else { first.count } {
            return None;
        }
        let members: Vec<Member> = here.iter().map(|&at| all[at].clone()).collect();
        let Some(geom) = self.assemble(&members) else {
            return Some(Assembly::refused(self.name(), &here, first));
        };
        let below = here.iter().map(|&at| Below::Member(at)).collect();
        Some(Assembly { layers: vec![Layer::new(geom, below)], findings: Vec::new(), here })
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
    /// Key that all members of one set share and no other set has. Empty for a member that does not
    /// say which set it is of: every set of the class is asked.
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
    /// Knowledge of the class about this member, for itself.
    pub claim: Claim,
}

/// Knowledge of a class about a member, which nothing else reads. Two are equal if they are one.
#[derive(Clone, Default)]
pub struct Claim(Option<Arc<dyn Any + Send + Sync>>);

impl Claim {
    /// The claim that holds `value`.
    pub fn new(value: impl Any + Send + Sync) -> Claim {
        Claim(Some(Arc::new(value)))
    }

    /// The value, if it is one of this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.as_deref()?.downcast_ref()
    }
}

impl PartialEq for Claim {
    fn eq(&self, other: &Claim) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(own), Some(theirs)) => Arc::ptr_eq(own, theirs),
            _ => false,
        }
    }
}

impl Eq for Claim {}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Claim" } else { "None" })
    }
}

/// A member, and its bytes.
pub struct Present<'a> {
    /// The membership that tasting found.
    pub member: &'a Member,
    /// The provider that is the member.
    pub probe: Probe<'a>,
    /// Serial number of the disk that it is, if that is known.
    pub serial: Option<&'a str>,
}

/// Indices of the members of which a set is made: one for every number, the first found; all of
/// them where members have no numbers; in order of the numbers. A member with another count than
/// the first found is of another time or another set: GEOM refuses it too.
pub fn chosen(members: &[&Member]) -> Vec<usize> {
    let mut here: Vec<usize> = Vec::new();
    for (at, member) in members.iter().enumerate().filter(|(_, m)| m.count == members[0].count) {
        if member.number.is_none() || !here.iter().any(|&at| members[at].number == member.number) {
            here.push(at);
        }
    }
    here.sort_by_key(|&at| members[at].number);
    here
}

/// Providers that the members of one set make.
#[derive(Default)]
pub struct Assembly {
    /// Layers, each over members or over layers before it.
    pub layers: Vec<Layer>,
    /// Findings, each with the index of the member that it is about.
    pub findings: Vec<(usize, Finding)>,
    /// Indices of the members in use.
    pub here: Vec<usize>,
}

impl Assembly {
    /// No provider: the labels of the members in `here` disagree, or leave it no room.
    fn refused(class: &str, here: &[usize], first: &Member) -> Assembly {
        let message = format!(
            "{class} set {} cannot be made of its members: their labels disagree, or leave it no room",
            first.provider
        );
        let finding = Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message);
        let findings = here.first().map(|&at| (at, finding)).into_iter().collect();
        Assembly { layers: Vec::new(), findings, here: here.to_vec() }
    }
}

/// One geom of a set. A geom whose [`Geom::shift`] folds it into its one consumer makes a range of
/// that, as a slice is.
pub struct Layer {
    /// The mapping; names of its slots are whole names, unless [`Layer::adds_to_names`].
    pub geom: Arc<dyn Geom>,
    /// Its consumers, in order.
    pub below: Vec<Below>,
    /// For each slot its place in a further set, for a provider that is a part of one and nothing
    /// else: it is not tasted. Empty for a layer without such parts.
    /// A part of the class's own joins no set: another layer of the same assembly has it.
    pub parts: Vec<Option<(&'static dyn Class, Member)>>,
    /// Findings about its first provider.
    pub findings: Vec<Finding>,
    /// False if it is not known where the bytes of its providers are, so that they are not tasted.
    pub seen: bool,
    /// True if the names of its slots are suffixes to that of its first consumer.
    pub adds_to_names: bool,
}

impl Layer {
    /// A layer whose providers are tasted as any other.
    pub fn new(geom: Arc<dyn Geom>, below: Vec<Below>) -> Layer {
        let (parts, findings) = (Vec::new(), Vec::new());
        Layer { geom, below, parts, findings, seen: true, adds_to_names: false }
    }
}

/// Consumer of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// Member with this index among those present.
    Member(usize),
    /// Provider in `slot` of an earlier layer of the same assembly.
    Layer {
        /// Index of the layer.
        layer: usize,
        /// Slot of its geom.
        slot: usize,
    },
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::base::store::{Sparse, Store};
    use crate::mapping::route::Route;
    use crate::mapping::slices::{PartitionType, Slice};
    use crate::probe::{Budget, Limits};

    /// Largest number of bytes that one class may read of one provider, whatever its contents.
    const MOST_READ: u64 = 256 << 10;

    /// The partitions that a class finds on a disk or in a partition of some kind, and the messages
    /// of its findings; `None` where it finds nothing of its own. Its reads are bounded, and its
    /// partitions lie on the provider.
    pub(crate) fn read(
        class: &dyn Class,
        disk: Sparse,
        kind: Option<PartitionType>,
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
        assert!(slices.iter().all(|slice| {
            slice.partition.length > 0
                && slice
                    .partition
                    .start
                    .checked_add(slice.partition.length)
                    .is_some_and(|end| end <= length)
        }));
        Some((slices, findings.into_iter().map(|finding| finding.message).collect()))
    }

    /// Tastes disks that begin with `image`, each of its 32-bit words as small and as large as it
    /// can be, whole and cut short. `seal` mends the checksums, so that the numbers themselves are
    /// read.
    pub(crate) fn survives(
        class: &dyn Class,
        kind: Option<PartitionType>,
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
                    read(class, format::tests::disk(length, &[(0, &hostile)]), kind);
                }
                for length in [1_usize, 511, 512, 700, 1024, 1100] {
                    read(
                        class,
                        format::tests::disk(
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

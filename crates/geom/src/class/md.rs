//! `md`: Linux software RAID, assembled of its members.
//!
//! # On disk
//! Superblocks of versions 0.90, 1.0, 1.1 and 1.2, as [`crate::format::md`] recognises them. Their
//! checksums are verified: mdadm takes no member whose checksum is wrong, and neither is it taken
//! here.
//!
//! # Members
//! The newest superblock, by its count of events, says what the set is. A member that is more than
//! one event behind, that the newest does not know as active, or that says otherwise what the set
//! is, is left out and named. A member that is being rebuilt counts up to where that has come. A
//! replacement stands in for the member whose role it has.
//!
//! # Topology
//! Levels with parity: the chunk, and the full stripe; RAID0 and RAID10: the chunk, and the row.
//! A data area off its member's boundary is judged by itself, and clashes where chunks begin there.
//!
//! # Limits
//! What a journal, a log of partial parity or a backup file of a reshape holds is not read: the set
//! is shown as its members have it. A set that was not stopped in order, with a member missing,
//! may have parity that does not fit its data; Linux does not start it, here it is shown and said.
//!
//! # Sources
//! Linux `include/uapi/linux/raid/md_p.h`, `drivers/md/md.c`, `raid0.c`, `raid5.c`, `raid10.c`;
//! mdadm `super0.c`, `super1.c`, `Assemble.c`.

use super::{Assembly, Below, Claim, Class, Layer, Member, Present, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk;
use crate::format;
use crate::format::md::superblock;
use crate::format::md::superblock::{Role, Superblock, feature};
use crate::mapping::geom::Arrangement;
use crate::mapping::raid::layout::Layout;
use crate::mapping::raid::set::{Half, Part, Set};
use crate::mapping::raid::shape::RaidShape;
use crate::probe::Probe;
use std::sync::Arc;

mod build;

/// The class `md`, for Linux's sets.
pub struct Md;

/// Largest number of members of a set: as many as a superblock has roles for.
const MOST_MEMBERS: u32 = 1920;

impl Class for Md {
    fn name(&self) -> &'static str {
        "md"
    }

    fn sign(&self) -> Option<format::FormatKind> {
        Some(format::md::KIND)
    }

    fn judges_data_areas(&self) -> bool {
        true
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(sb) = superblock::find(probe) else { return Taste::No };
        if let Some(why) = sb.fault() {
            let message = format!("a member of the md set {} is not used: {why}", sb.short_name());
            let finding = Finding::new(&finding::INCOMPLETE, Severity::Warning, sb.at, message);
            return Taste::Refused(vec![
                finding.fix("mdadm does not take it either: mdadm --examine shows what it reads"),
            ]);
        }
        Taste::Member(member(sb, probe.length()))
    }

    fn build(&self, present: &[Present<'_>], degraded: bool) -> Option<Assembly> {
        let all: Vec<(usize, u64, &Superblock)> = present
            .iter()
            .enumerate()
            .filter_map(|(at, p)| Some((at, p.probe.length(), p.member.claim.get()?)))
            .collect();
        build::Building::new(&all)?.assembly(degraded)
    }
}

/// The membership that a superblock claims, on a provider of `length` bytes.
fn member(sb: Superblock, length: u64) -> Member {
    let disks = usize::try_from(sb.most_disks()).unwrap_or(usize::MAX);
    let number = match sb.role {
        Role::Active(role) => usize::try_from(role).ok().filter(|&role| role < disks),
        Role::Spare | Role::Faulty | Role::Journal => None,
    };
    let spared = match sb.shape.level {
        1 => disks.saturating_sub(1),
        4 | 5 => 1,
        6 => 2,
        // Which ones it can do without depends on the layout.
        10 => disks / 2,
        _ => 0,
    };
    Member {
        set: ondisk::uuid(&sb.uuid).unwrap_or_else(|| format!("md/{}", sb.short_name())),
        provider: format!("md/{}", sb.short_name()),
        number,
        count: disks,
        enough: disks.saturating_sub(spared).max(1),
        chunk: sb.shape.chunk,
        length: sb.used().min(length),
        claim: Claim::new(sb),
    }
}

impl Superblock {
    /// The reason for which nothing can be made of it, in words; `None` for one to build on.
    fn fault(&self) -> Option<String> {
        if self.computed != Some(self.sum) {
            let found = self.sum;
            return Some(match self.computed {
                Some(sum) => format!("its checksum is {found:08x}, computed {sum:08x}"),
                None => "its superblock says that it is longer than one can be".into(),
            });
        }
        let unknown = self.features & !feature::ALL;
        if unknown != 0 {
            return Some(format!("it has features that are not known here: {unknown:#x}"));
        }
        if self.most_disks() > MOST_MEMBERS || self.shape.disks == 0 {
            return Some(format!("it says that its set has {} members", self.shape.disks));
        }
        let end = self.data_offset.zip(self.room).and_then(|(at, room)| at.checked_add(room));
        end.is_none().then(|| "its data would end past 2^64 bytes".into())
    }

    /// Members of the set, before or after a reshape, whichever are more.
    fn most_disks(&self) -> u32 {
        self.reshape.map_or(0, |reshape| reshape.old.disks).max(self.shape.disks)
    }

    /// Bytes of this member that the set uses.
    fn used(&self) -> u64 {
        let room = self.room.unwrap_or(0);
        if self.all_of_members() { room } else { self.size.min(room) }
    }

    /// True for levels that use all of every member.
    fn all_of_members(&self) -> bool {
        matches!(self.shape.level, -1 | 0) || self.size == 0
    }

    /// The layout's number as the level takes it.
    fn shape(&self, shape: RaidShape) -> RaidShape {
        let said = self.features & feature::RAID0_LAYOUT != 0;
        let layout = if shape.level == 0 && !said { 0 } else { shape.layout };
        RaidShape { layout, ..shape }
    }
}

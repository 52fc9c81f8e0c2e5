//! `lvm`: volume groups of LVM2.
//!
//! # On disk
//! Every physical volume has a label in one of its first four sectors, and up to two metadata
//! areas: a header with a checksum, and a circular buffer of text, with a checksum too. The text
//! describes the whole group: its physical volumes, and for every logical volume the segments of
//! extents that make it. The newest text (`seqno`) of all that are whole counts.
//!
//! # Files
//! `format/lvm2/` reads labels and areas, `text` the text's grammar, `group` what it says,
//! `volumes` makes layers of that, `segments` maps one.
//!
//! # Topology
//! Logical volumes begin `pe_start` plus a number of extents into a physical volume; each segment
//! has the boundaries of where it lies, striped ones besides their chunk and row. Where segments
//! meet off a boundary there is a clash.
//!
//! Thin volumes, old snapshots and cached volumes have their chunk, and what is beneath as far as
//! that divides the chunk.
//!
//! # Limits
//! Volumes of integrity, VDO and unknown types are named with their type, and their contents stay
//! unknown, as those of a RAID volume whose level a reshape changes, an origin into which a
//! snapshot is being merged, and a volume whose map is larger than what is read of maps. A mirror's
//! log is not read: its copies count as the same.
//!
//! # Sources
//! LVM2 `lib/format_text/layout.h`, `format-text.c`, `import_vsn1.c`; `lib/label/label.h`;
//! `libdm/libdm-config.c`; segment types in `lib/striped`, `lib/mirror`, `lib/raid`, `lib/thin`,
//! `lib/snapshot`, `lib/cache_segtype`, `lib/writecache`.

use self::fault::Fault;
use super::{Assembly, Claim, Class, Member, Present, Taste};
use crate::base::finding::{self, Finding, Severity};
use crate::format::lvm2::label;
use crate::format::{self, lvm2};
use crate::probe::Probe;
use copies::Copy;
use group::{Group, Physical};
use std::cmp::Reverse;

pub mod chunks;
mod copies;
mod fault;
mod group;
mod text;
mod tree;
mod volumes;

/// The class `lvm`, for LVM2's volume groups.
pub struct Lvm;

/// Knowledge of a physical volume, from its own label and metadata.
struct Claimed {
    uuid: String,
    /// Newest text on it; `None` if it has none, or none that is whole.
    copy: Option<Copy>,
    findings: Vec<Finding>,
}

impl Claimed {
    /// Generation of its text; `None` without one.
    fn generation(&self) -> Option<u64> {
        self.copy.as_ref().map(|copy| copy.head.seqno)
    }
}

impl Class for Lvm {
    fn name(&self) -> &'static str {
        "lvm"
    }

    fn taste(&self, probe: &Probe<'_>) -> Taste {
        let Some(label) = label::find(probe) else { return Taste::No };
        let (copy, findings) = copies::newest(probe, &label);
        let Some(uuid) = label.uuid else { return Taste::No };
        let member = Member {
            set: String::new(),
            provider: String::new(),
            number: None,
            count: 1,
            enough: 1,
            chunk: 0,
            length: probe.length(),
            claim: Claim::default(),
        };
        let member = match &copy {
            Some(Copy { head, .. }) => Member {
                set: head.id.clone(),
                provider: head.name.clone(),
                number: head.volumes.iter().position(|id| *id == uuid),
                // A text that names no physical volume, not even this one, is wrong.
                count: head.volumes.len().max(1),
                ..member
            },
            // The text of another physical volume may name it.
            None => member,
        };
        Taste::Member(Member { claim: Claim::new(Claimed { uuid, copy, findings }), ..member })
    }

    fn sign(&self) -> Option<format::FormatKind> {
        Some(lvm2::KIND)
    }

    fn yields_to_tables(&self) -> bool {
        // LVM's filter of partitioned devices.
        true
    }

    fn build(&self, present: &[Present<'_>], degraded: bool) -> Option<Assembly> {
        let claims: Option<Vec<&Claimed>> =
            present.iter().map(|present| present.member.claim.get()).collect();
        let claims = claims.filter(|claims| !claims.is_empty())?;
        let mut findings = Vec::new();
        let own = |number: usize| claims[number].findings.iter().map(move |f| (number, f.clone()));
        let Some(group) = newest(&claims, &mut findings) else {
            findings.extend((0..claims.len()).flat_map(own));
            let here = (0..present.len()).collect();
            return Some(Assembly { layers: Vec::new(), findings, here });
        };
        let mut here = Vec::new();
        let at: Vec<Option<usize>> = group
            .physical
            .iter()
            .map(|physical| {
                let found = found(physical, &claims, &mut findings)?;
                here.push(found);
                (!physical.is_missing).then_some(found)
            })
            .collect();
        if here.len() < group.physical.len() && !degraded {
            return None;
        }
        for (number, claim) in claims.iter().enumerate() {
            let is_named = group.physical.iter().any(|physical| physical.id == claim.uuid);
            // One that no text here names is of another group, or of none.
            if is_named || claim.copy.is_some() {
                findings.extend(own(number));
            }
            let copy = claim.copy.as_ref().filter(|_| !is_named);
            findings.extend(copy.map(|copy| (number, left(copy, &group))));
        }
        for physical in group.physical.iter().filter(|physical| physical.is_missing) {
            let here = claims.iter().position(|claim| claim.uuid == physical.id);
            findings.extend(here.map(|number| (number, marked(&group))));
        }
        let sectors: Vec<u64> = present.iter().map(|present| present.probe.sector()).collect();
        findings.extend(volumes::shared(&group, &at, &sectors));
        if here.is_empty() {
            // Its volumes would stand on nothing.
            return Some(Assembly { layers: Vec::new(), findings, here });
        }
        let (layers, wrong) = volumes::layers(&group, &at, present);
        let first = here.first().copied().unwrap_or(0);
        findings.extend(wrong.into_iter().map(|finding| (first, finding)));
        Some(Assembly { layers, findings, here })
    }
}

/// The group as the newest text that can be parsed has it; adds findings about the others.
fn newest(claims: &[&Claimed], findings: &mut Vec<(usize, Finding)>) -> Option<Group> {
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|&at| Reverse(claims[at].generation()));
    let mut parsed: Option<(Group, &Copy)> = None;
    for at in order {
        let Some(copy) = &claims[at].copy else { continue };
        match &parsed {
            Some((_, best)) if best.checksum == copy.checksum => {}
            Some((_, best)) => findings.push((at, stale(copy, best))),
            None => match Group::parse(&copy.text) {
                Ok(group) => parsed = Some((group, copy)),
                Err(why) => findings.push((at, unreadable(copy, &why))),
            },
        }
    }
    parsed.map(|(group, _)| group)
}

/// The member that is `physical`: of several the first with the newest text.
fn found(
    physical: &Physical,
    claims: &[&Claimed],
    findings: &mut Vec<(usize, Finding)>,
) -> Option<usize> {
    let same = || (0..claims.len()).filter(|&at| claims[at].uuid == physical.id);
    let best = same().min_by_key(|&at| (Reverse(claims[at].generation()), at))?;
    for other in same().filter(|&at| at != best) {
        let message = format!(
            "it has the identity of another physical volume here, {}: a copy of it, or it a copy of this; the other is used",
            physical.id
        );
        let finding = Finding::new(&finding::AMBIVALENT, Severity::Warning, 0, message);
        findings.push((other, finding.fix("look at them one at a time; on a host: vgimportclone")));
    }
    Some(best)
}

fn unreadable(copy: &Copy, why: &Fault) -> Finding {
    let message = format!("the LVM metadata contradict themselves: {why}");
    Finding::new(&finding::LABEL, Severity::Error, copy.at, message)
        .fix("restore the group from a backup of its metadata: vgcfgrestore")
}

/// The finding about a physical volume whose text is not the one in use.
fn stale(copy: &Copy, best: &Copy) -> Finding {
    let (own, newest) = (copy.head.seqno, best.head.seqno);
    let message = if own == newest {
        format!(
            "its metadata of volume group {} are of generation {own}, as others that differ: those are used",
            best.head.name
        )
    } else {
        format!(
            "its metadata are of generation {own} of volume group {}, the newest of generation {newest} of {}: it was away when the group was changed",
            copy.head.name, best.head.name
        )
    };
    Finding::new(&finding::STALE, Severity::Warning, copy.at, message)
        .fix("bring it up to date: vgck --updatemetadata")
}

/// The finding about a physical volume that the newest text does not name.
fn left(copy: &Copy, group: &Group) -> Finding {
    let message = format!(
        "volume group {} does not name it any more: it was removed while it was away",
        group.name
    );
    Finding::new(&finding::STALE, Severity::Warning, copy.at, message)
        .fix("nothing in use is on it: pvremove it, or leave it out")
}

/// The finding about a physical volume that is here, but marked as missing.
fn marked(group: &Group) -> Finding {
    let message = format!(
        "volume group {} marks it as missing: it was away while the group was in use, so what is on it may be old",
        group.name
    );
    Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message).fix(format!(
        "if its contents are current: vgextend --restoremissing {} DEVICE",
        group.name
    ))
}

//! Layers of a group: one for every logical volume, after those that it stands on.

use super::Lvm;
use super::fault::Fault;
use super::group::{Group, Kind, Logical, On, Place, Segment};
use super::segments::{Places, Segments};
use crate::base::finding::{self, Finding, Severity};
use crate::class::{Below, Claim, Class, Layer, Member};
use crate::mapping::slices::{bounded, overlaps};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The layers of `group`. `at` is the member that each physical volume is, `lengths` those of the
/// members in bytes. Volumes that have none are said by the messages.
pub(super) fn layers(
    group: &Group,
    at: &[Option<usize>],
    lengths: &[u64],
) -> (Vec<Layer>, Vec<Finding>) {
    let mut maker = Maker {
        group,
        at,
        lengths,
        users: users(group),
        layers: Vec::new(),
        made: vec![None; group.logical.len()],
    };
    let (order, looped) = order(group);
    let mut wrong = Vec::new();
    for volume in order {
        match maker.layer(volume, looped[volume]) {
            Ok(layer) => {
                maker.made[volume] = Some(maker.layers.len());
                maker.layers.push(layer);
            }
            Err(why) => {
                wrong.push(Finding::new(
                    &finding::LABEL,
                    Severity::Error,
                    0,
                    format!("the LVM metadata contradict themselves: {why}"),
                ));
            }
        }
    }
    (maker.layers, bounded(wrong))
}

/// Findings about extents that two segments claim, each with its member; `sectors` are those of
/// the members.
pub(super) fn shared(
    group: &Group,
    at: &[Option<usize>],
    sectors: &[u64],
) -> Vec<(usize, Finding)> {
    let mut claimed: Vec<Vec<(String, Range<u64>)>> = vec![Vec::new(); group.physical.len()];
    for volume in &group.logical {
        for segment in volume.segments.iter().flatten() {
            for place in segment.kind.places() {
                let On::Physical(physical) = place.on else { continue };
                let start = group.byte(*place);
                let end = start.saturating_add(group.share(segment));
                claimed[physical].push((volume.path(group), start..end));
            }
        }
    }
    let here = claimed.iter().zip(at).filter_map(|(ranges, at)| Some((ranges, (*at)?)));
    here.flat_map(|(ranges, member)| {
        let sector = sectors.get(member).copied().unwrap_or(1);
        bounded(overlaps(ranges, sector)).into_iter().map(move |finding| (member, finding))
    })
    .collect()
}

impl Logical {
    /// Name of its provider.
    fn path(&self, group: &Group) -> String {
        format!("{}/{}", group.name, self.name)
    }
}

impl Group {
    /// The byte of the volume it stands on at which a place begins.
    fn byte(&self, place: Place) -> u64 {
        let start = match place.on {
            On::Physical(physical) => self.physical.get(physical).map_or(0, |pv| pv.start),
            On::Logical(_) => 0,
        };
        place.extent.saturating_mul(self.extent).saturating_add(start)
    }

    /// Bytes of a segment on each of its places.
    fn share(&self, segment: &Segment) -> u64 {
        let extents = match &segment.kind {
            Kind::Striped { places, .. } => segment.count / places.len().max(1) as u64,
            _ => segment.count,
        };
        extents.saturating_mul(self.extent)
    }
}

/// For every logical volume the first one that stands on it, and its number there.
fn users(group: &Group) -> Vec<Option<(usize, usize)>> {
    let mut users = vec![None; group.logical.len()];
    for (user, volume) in group.logical.iter().enumerate() {
        for (nth, under) in beneath(volume).enumerate() {
            users[under].get_or_insert((user, nth));
        }
    }
    users
}

/// Logical volumes that one stands on.
fn beneath(volume: &Logical) -> impl Iterator<Item = usize> {
    let segments = volume.segments.iter().flatten();
    let places = segments.flat_map(|segment| segment.kind.places().iter().chain(&segment.with));
    places.filter_map(|place| match place.on {
        On::Logical(under) => Some(under),
        On::Physical(_) => None,
    })
}

/// Logical volumes, each after those it stands on, and which of them stand on themselves.
fn order(group: &Group) -> (Vec<usize>, Vec<bool>) {
    let count = group.logical.len();
    let mut open: Vec<usize> = vec![0; count];
    let mut above: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (user, volume) in group.logical.iter().enumerate() {
        for under in beneath(volume) {
            open[user] += 1;
            above[under].push(user);
        }
    }
    let mut order: Vec<usize> = (0..count).filter(|&volume| open[volume] == 0).collect();
    let mut next = 0;
    while let Some(&volume) = order.get(next) {
        next += 1;
        for &user in &above[volume] {
            open[user] -= 1;
            if open[user] == 0 {
                order.push(user);
            }
        }
    }
    // What is left stands on itself, or on what does.
    let looped: Vec<bool> = open.iter().map(|&open| open > 0).collect();
    order.extend((0..count).filter(|&volume| looped[volume]));
    (order, looped)
}

struct Maker<'a> {
    group: &'a Group,
    at: &'a [Option<usize>],
    lengths: &'a [u64],
    users: Vec<Option<(usize, usize)>>,
    layers: Vec<Layer>,
    /// Layer of every logical volume that has one.
    made: Vec<Option<usize>>,
}

/// Pieces of one volume while they are put together.
#[derive(Default)]
struct Draft {
    below: Vec<Below>,
    runs: Vec<(u64, Places)>,
    /// Bytes on physical volumes that cannot be used.
    lost: BTreeMap<usize, u64>,
    findings: Vec<Finding>,
}

impl Draft {
    fn consumer(&mut self, below: Below) -> usize {
        self.below.iter().position(|own| *own == below).unwrap_or_else(|| {
            self.below.push(below);
            self.below.len() - 1
        })
    }
}

impl Maker<'_> {
    /// The layer of a logical volume; an `Err` says why there is none.
    fn layer(&self, volume: usize, looped: bool) -> Result<Layer, Fault> {
        let own = &self.group.logical[volume];
        let name = own.path(self.group);
        let segments = own.segments.as_ref().map_err(|why| why.clone().within(&name))?;
        if looped {
            return Err(Fault::Loop(name));
        }
        let mut draft = Draft::default();
        for segment in segments {
            self.run(segment, &mut draft);
        }
        for (&physical, &bytes) in &draft.lost {
            draft.findings.push(self.lost(physical, bytes));
        }
        // What is on a volume is known by its first bytes.
        let unseen = draft.runs.first().is_some_and(|(_, places)| *places == Places::Fail);
        if draft.below.is_empty() {
            // A provider stands on something, even if nothing of it can be read.
            draft.below.extend(self.at.iter().flatten().next().map(|&at| Below::Member(at)));
        }
        let parts = vec![self.part(volume)];
        let torn = draft.runs.iter().any(|(_, places)| *places == Places::Fail);
        let unwritten = self.unwritten(own, segments, torn);
        let geom = Segments::new(name.clone(), draft.runs)
            .ok_or(Fault::Segments(name))?
            .read_only_for(unwritten);
        let layer = Layer::new(Arc::new(geom), draft.below);
        Ok(Layer { parts, findings: draft.findings, seen: !unseen, ..layer })
    }

    /// The reason for which a volume is not written, in a few words.
    fn unwritten(&self, own: &Logical, segments: &[Segment], torn: bool) -> Option<&'static str> {
        let copied = segments.iter().any(|segment| matches!(segment.kind, Kind::Copies(_)));
        if own.has_snapshots {
            Some("its old snapshots would have to keep what a write replaces")
        } else if torn {
            Some("parts of it are missing, or not followed")
        } else if copied && self.at.iter().any(Option::is_none) {
            Some("a physical volume of its group is missing, and a copy on it would be stale")
        } else {
            None
        }
    }

    /// The membership of a hidden volume in the one that stands on it; `None` for one that is there
    /// to be used.
    fn part(&self, volume: usize) -> Option<(&'static dyn Class, Member)> {
        let own = &self.group.logical[volume];
        if own.is_visible {
            return None;
        }
        let (set, number) = match self.users[volume] {
            Some((user, nth)) => (self.group.logical[user].path(self.group), Some(nth)),
            None => (self.group.name.clone(), None),
        };
        let (count, length) = (number.map_or(1, |nth| nth + 1), self.length(volume));
        let provider = set.clone();
        let claim = Claim::default();
        Some((
            &Lvm,
            Member { set, provider, number, count, enough: count, chunk: 0, length, claim },
        ))
    }

    fn length(&self, volume: usize) -> u64 {
        self.group.logical[volume].extents().saturating_mul(self.group.extent)
    }

    /// Adds the run of a segment.
    fn run(&self, segment: &Segment, draft: &mut Draft) {
        let length = segment.count.saturating_mul(self.group.extent);
        let share = self.group.share(segment);
        match &segment.kind {
            Kind::Striped { places, .. } if places.len() == 1 => {
                let found = self.find(places[0], share, draft);
                let (room, on) = found.map_or((0, Places::Fail), |(at, byte, room)| {
                    (room.min(length), Places::Striped(0, vec![(at, byte)]))
                });
                draft.runs.extend(
                    [(room, on), (length - room, Places::Fail)].into_iter().filter(|run| run.0 > 0),
                );
            }
            Kind::Striped { chunk, places } => {
                let found: Vec<_> =
                    places.iter().map(|place| self.whole(*place, share, draft)).collect();
                let all: Option<Vec<(usize, u64)>> = found.into_iter().collect();
                let on = all.map_or(Places::Fail, |all| Places::Striped(*chunk, all));
                draft.runs.push((length, on));
            }
            Kind::Copies(places) => {
                let all: Vec<(usize, u64)> =
                    places.iter().filter_map(|place| self.whole(*place, share, draft)).collect();
                let on = match all.len() {
                    0 => Places::Fail,
                    1 => Places::Striped(0, all),
                    _ => Places::Copies(all),
                };
                draft.runs.push((length, on));
            }
            Kind::Zero => draft.runs.push((length, Places::Zero)),
            Kind::Error => draft.runs.push((length, Places::Fail)),
            Kind::Other(words) => {
                let message = format!("{words}: where its bytes are is not followed");
                draft.findings.push(Finding::new(&finding::UNREAD, Severity::Note, 0, message));
                draft.runs.push((length, Places::Fail));
            }
        }
        for place in &segment.with {
            self.find(*place, 0, draft);
        }
    }

    /// The consumer and the byte there of a place, and how many bytes it has from there; `None` if
    /// it has none.
    fn find(&self, place: Place, share: u64, draft: &mut Draft) -> Option<(usize, u64, u64)> {
        let byte = self.group.byte(place);
        let (below, end) = match place.on {
            On::Physical(physical) => match self.at.get(physical).copied().flatten() {
                Some(at) => (Below::Member(at), self.lengths.get(at).copied().unwrap_or(0)),
                None => {
                    let lost = draft.lost.entry(physical).or_default();
                    *lost = lost.saturating_add(share);
                    return None;
                }
            },
            On::Logical(volume) => {
                let layer = self.made.get(volume).copied().flatten()?;
                (Below::Layer { layer, slot: 0 }, self.length(volume))
            }
        };
        let room = end.saturating_sub(byte);
        if room < share {
            draft.findings.push(self.past(place, byte, share, end));
        }
        (room > 0).then(|| (draft.consumer(below), byte, room))
    }

    /// A place that has all of its bytes.
    fn whole(&self, place: Place, share: u64, draft: &mut Draft) -> Option<(usize, u64)> {
        let (at, byte, room) = self.find(place, share, draft)?;
        (room >= share).then_some((at, byte))
    }

    fn lost(&self, physical: usize, bytes: u64) -> Finding {
        let physical = &self.group.physical[physical];
        let seen =
            physical.device.as_ref().map_or(String::new(), |path| format!(", last seen as {path}"));
        let state = if physical.is_missing { "marked as missing" } else { "not here" };
        let message = format!(
            "{bytes} bytes of it lie on physical volume {} ({}{seen}), which is {state}",
            physical.name, physical.id
        );
        let finding = Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message);
        if physical.is_missing {
            finding
        } else {
            finding.fix("add its disk to the target: DISK,DISK")
        }
    }

    fn past(&self, place: Place, byte: u64, share: u64, end: u64) -> Finding {
        let on = match place.on {
            On::Physical(physical) => self.group.physical.get(physical).map(|pv| &pv.name),
            On::Logical(volume) => self.group.logical.get(volume).map(|lv| &lv.name),
        };
        let message = format!(
            "a segment of it lies at bytes {byte} to {} of {}, which ends at {end}: what lies past that cannot be read",
            byte.saturating_add(share),
            on.map_or("", |name| name)
        );
        Finding::new(&finding::RANGE, Severity::Error, 0, message).fix(
            "if the disk or image was cut short, restore its full length before anything writes",
        )
    }
}

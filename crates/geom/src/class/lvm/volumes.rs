//! Layers of a group: one for every logical volume, after those that it stands on.

use super::Lvm;
use super::fault::{Fault, MapFault};
use super::group::{ExtentAddress, Group, Logical, On, Segment, SegmentKind};
use crate::base::finding::{self, Finding, Severity};
use crate::class::{Below, Claim, Class, Layer, Member, Present};
use crate::mapping::geom::Geom;
use crate::mapping::route::Route;
use crate::mapping::segments::{Places, Segments};
use crate::mapping::slices::{bounded, overlaps};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use order::{Users, order};

mod cache;
mod mapped;
mod order;
mod raid;
mod snapshot;
mod thin;

/// Pieces of all maps of one group, at most: of what is read of maps some 100 MiB are made.
const MOST_RUNS: usize = 4 << 20;
/// Layers inside each other that are read through: the graph follows no more.
const DEEPEST: usize = 16;

/// The layers of `group`. `at` is the member that each physical volume is, of those `present`.
/// Volumes that have none are said by the messages.
pub(super) fn layers(
    group: &Group,
    at: &[Option<usize>],
    present: &[Present<'_>],
) -> (Vec<Layer>, Vec<Finding>) {
    let mut maker = Maker {
        group,
        at,
        present,
        users: Users::new(group),
        layers: Vec::new(),
        made: vec![None; group.logical.len()],
        pools: RefCell::default(),
        runs_left: Cell::new(MOST_RUNS),
    };
    let (order, looped) = order(group);
    let mut wrong = Vec::new();
    for volume in order {
        match maker.layer(volume, looped[volume]) {
            Ok((layer, is_whole)) => maker.add(volume, layer, is_whole),
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
    fn byte(&self, place: ExtentAddress) -> u64 {
        let start = match place.on {
            On::Physical(physical) => self.physical.get(physical).map_or(0, |pv| pv.start),
            On::Logical(_) => 0,
        };
        place.extent.saturating_mul(self.extent).saturating_add(start)
    }

    /// Length of a logical volume in bytes.
    fn bytes(&self, volume: &Logical) -> u64 {
        volume.extents().saturating_mul(self.extent)
    }

    /// Bytes of a segment on each of its places.
    fn share(&self, segment: &Segment) -> u64 {
        let extents = match &segment.kind {
            SegmentKind::Striped { places, .. } => segment.count / places.len().max(1) as u64,
            _ => segment.count,
        };
        extents.saturating_mul(self.extent)
    }
}

/// Layer of a logical volume, once it is made.
#[derive(Clone)]
struct Placed {
    /// Index of the layer.
    layer: usize,
    /// Route to its bytes; `None` where it has none, or stands on too many others.
    route: Option<Route>,
    /// Layers inside each other, those that fold left out.
    depth: usize,
    /// True if none of its bytes is lost.
    is_whole: bool,
}

struct Maker<'a> {
    group: &'a Group,
    at: &'a [Option<usize>],
    present: &'a [Present<'a>],
    users: Users,
    layers: Vec<Layer>,
    /// Every logical volume that has a layer.
    made: Vec<Option<Placed>>,
    /// Metadata of every pool that was looked for.
    pools: RefCell<HashMap<usize, Rc<Result<thin::Pool<'a>, MapFault>>>>,
    /// Pieces of maps that may still be made.
    runs_left: Cell<usize>,
}

/// Volume while it is put together.
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

/// A volume as it is read.
struct Drawn {
    geom: Arc<dyn Geom>,
    /// True if its first bytes have a known place.
    is_seen: bool,
    /// True if none of its bytes is lost.
    is_whole: bool,
}

impl Maker<'_> {
    /// The layer of a logical volume, and whether it is whole; an `Err` says why there is none.
    fn layer(&self, volume: usize, looped: bool) -> Result<(Layer, bool), Fault> {
        let own = &self.group.logical[volume];
        let name = own.path(self.group);
        let segments = own.segments.as_ref().map_err(|why| why.clone().within(&name))?;
        if looped {
            return Err(Fault::Loop(name));
        }
        if let Some(image) = self.users.twice(own) {
            let image = self.group.logical[image].path(self.group);
            return Err(Fault::Twice(image).within(&name));
        }
        let mut draft = Draft::default();
        let drawn = match &segments[..] {
            [segment] if !own.is_merging => match self.mapped(own, &segment.kind, &mut draft)? {
                Some(drawn) => drawn,
                None => self.pieces(own, segments, &mut draft)?,
            },
            _ => self.pieces(own, segments, &mut draft)?,
        };
        for place in segments.iter().flat_map(|segment| &segment.with) {
            self.find(*place, 0, &mut draft);
        }
        for (&physical, &bytes) in &draft.lost {
            draft.findings.push(self.lost(physical, bytes));
        }
        if draft.below.is_empty() {
            // A provider stands on something, even if nothing of it can be read.
            draft.below.extend(self.at.iter().flatten().next().map(|&at| Below::Member(at)));
        }
        let parts = vec![self.part(volume)];
        let layer = Layer::new(drawn.geom, draft.below);
        let layer = Layer { parts, findings: draft.findings, seen: drawn.is_seen, ..layer };
        Ok((layer, drawn.is_whole))
    }

    /// Notes the layer of a logical volume, and the route to its bytes.
    fn add(&mut self, volume: usize, layer: Layer, is_whole: bool) {
        let below = layer.below.iter().map(|below| match *below {
            Below::Member(at) => Some((self.present.get(at)?.probe.route().clone(), 0)),
            Below::Layer { layer, .. } => {
                let placed = self.made.iter().flatten().find(|placed| placed.layer == layer)?;
                Some((placed.route.clone()?, placed.depth))
            }
        });
        let below: Option<Vec<(Route, usize)>> = below.collect();
        let folds = layer.geom.shift(0).is_some();
        let under = below.iter().flatten().map(|(_, depth)| *depth);
        let depth = under.max().unwrap_or(0) + usize::from(!folds);
        let route = below.filter(|_| depth <= DEEPEST).map(|below| {
            let routes: Vec<Route> = below.into_iter().map(|(route, _)| route).collect();
            Route::new(&layer.geom, 0, self.length(volume), &routes)
        });
        self.made[volume] = Some(Placed { layer: self.layers.len(), route, depth, is_whole });
        self.layers.push(layer);
    }

    /// The route to the bytes of a logical volume.
    fn route(&self, volume: usize) -> Option<&Route> {
        self.made.get(volume)?.as_ref()?.route.as_ref()
    }

    /// True if none of the bytes of a logical volume is lost.
    fn is_whole(&self, volume: usize) -> bool {
        self.made.get(volume).and_then(Option::as_ref).is_some_and(|placed| placed.is_whole)
    }

    /// A volume of pieces, each somewhere else.
    fn pieces(
        &self,
        own: &Logical,
        segments: &[Segment],
        draft: &mut Draft,
    ) -> Result<Drawn, Fault> {
        for segment in segments {
            self.run(segment, draft);
        }
        if own.is_merging {
            let message = "a snapshot is being merged into it: where its bytes are is not followed";
            draft.findings.push(Finding::new(&finding::UNREAD, Severity::Note, 0, message.into()));
            draft.runs = vec![(self.group.bytes(own), Places::Fail)];
        }
        // What is on a volume is known by its first bytes.
        let unseen = draft.runs.first().is_some_and(|(_, places)| *places == Places::Fail);
        let torn = draft.runs.iter().any(|(_, places)| *places == Places::Fail);
        let unwritten = self.unwritten(own, segments, torn);
        let name = own.path(self.group);
        let geom = Segments::new(name.clone(), std::mem::take(&mut draft.runs))
            .ok_or(Fault::Segments(name))?
            .read_only_for(unwritten);
        let is_whole = !torn
            && segments.iter().flat_map(|segment| segment.kind.places()).all(|place| {
                match place.on {
                    On::Logical(under) => self.is_whole(under),
                    On::Physical(_) => true,
                }
            });
        Ok(Drawn { geom: Arc::new(geom), is_seen: !unseen, is_whole })
    }

    /// The reason for which a volume is not written, in a few words.
    fn unwritten(&self, own: &Logical, segments: &[Segment], torn: bool) -> Option<&'static str> {
        let copied = segments.iter().any(|segment| matches!(segment.kind, SegmentKind::Copies(_)));
        if own.kept.is_some() {
            own.kept
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
        let (set, number) = match self.users.first[volume] {
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
        self.group.bytes(&self.group.logical[volume])
    }

    /// Adds the run of a segment.
    fn run(&self, segment: &Segment, draft: &mut Draft) {
        let length = segment.count.saturating_mul(self.group.extent);
        let share = self.group.share(segment);
        match &segment.kind {
            SegmentKind::Striped { places, .. } if places.len() == 1 => {
                let found = self.find(places[0], share, draft);
                let (room, on) = found.map_or((0, Places::Fail), |(at, byte, room)| {
                    (room.min(length), Places::Striped(0, vec![(at, byte)]))
                });
                draft.runs.extend(
                    [(room, on), (length - room, Places::Fail)].into_iter().filter(|run| run.0 > 0),
                );
            }
            SegmentKind::Striped { chunk, places } => {
                let found: Vec<_> =
                    places.iter().map(|place| self.whole(*place, share, draft)).collect();
                let all: Option<Vec<(usize, u64)>> = found.into_iter().collect();
                let on = all.map_or(Places::Fail, |all| Places::Striped(*chunk, all));
                draft.runs.push((length, on));
            }
            SegmentKind::Copies(places) => {
                let all: Vec<(usize, u64)> =
                    places.iter().filter_map(|place| self.whole(*place, share, draft)).collect();
                let on = match all.len() {
                    0 => Places::Fail,
                    1 => Places::Striped(0, all),
                    _ => Places::Copies(all),
                };
                draft.runs.push((length, on));
            }
            SegmentKind::Zero => draft.runs.push((length, Places::Zero)),
            SegmentKind::Error => draft.runs.push((length, Places::Fail)),
            kind => {
                let words = match kind {
                    SegmentKind::Other(words) => words,
                    _ => "a segment among others of another type",
                };
                let message = format!("{words}: where its bytes are is not followed");
                draft.findings.push(Finding::new(&finding::UNREAD, Severity::Note, 0, message));
                draft.runs.push((length, Places::Fail));
            }
        }
    }

    /// The consumer and the byte there of a place, and how many bytes it has from there; `None` if
    /// it has none.
    fn find(
        &self,
        place: ExtentAddress,
        share: u64,
        draft: &mut Draft,
    ) -> Option<(usize, u64, u64)> {
        let byte = self.group.byte(place);
        let (below, end) = match place.on {
            On::Physical(physical) => match self.at.get(physical).copied().flatten() {
                Some(at) => {
                    let length = self.present.get(at).map(|present| present.probe.length());
                    (Below::Member(at), length.unwrap_or(0))
                }
                None => {
                    let lost = draft.lost.entry(physical).or_default();
                    *lost = lost.saturating_add(share);
                    return None;
                }
            },
            On::Logical(volume) => {
                let layer = self.made.get(volume)?.as_ref()?.layer;
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
    fn whole(&self, place: ExtentAddress, share: u64, draft: &mut Draft) -> Option<(usize, u64)> {
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

    fn past(&self, place: ExtentAddress, byte: u64, share: u64, end: u64) -> Finding {
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

//! The choice of disks, their order, and the volumes that they make.

use super::fault::Fault;
use super::*;
use crate::format::imsm::mpb::{DiskOrdinal, Map, Migration, Volume};
use crate::mapping::geom::Arrangement;
use crate::mapping::raid::fault::Exclusion;
use crate::mapping::raid::layout::Layout;
use crate::mapping::raid::set::{Half, Part, Set};
use crate::mapping::slices::{bounded, overlaps};
use std::sync::Arc;

/// Characters of a serial number that the metadata have room for.
const SERIAL: usize = 16;

/// Disks of one container while it is decided what to make of them.
pub(super) struct Building<'a> {
    /// The metadata that count.
    newest: &'a Mpb,
    /// Disks that have these metadata.
    here: Vec<Here>,
    /// Order of these disks; `None` where it cannot be told.
    order: Option<Order>,
    findings: Vec<(usize, Finding)>,
    /// Logical sector of the disks in bytes.
    sector: u64,
}

/// Disk that has the metadata that count.
struct Here {
    /// Index among those present.
    at: usize,
    /// Length of the disk in bytes.
    length: u64,
    /// First byte of its metadata.
    start: u64,
    /// Its serial number, as the metadata have such numbers.
    serial: Option<String>,
}

/// Order of the disks that are here.
struct Order {
    /// The disk that is each entry of the table, by its index among those in use.
    disks: Vec<Option<usize>>,
    /// True if another order could be the right one.
    assumed: bool,
}

impl<'a> Building<'a> {
    /// The disks with their places, as far as those are known; `None` if there are none.
    pub(super) fn new(present: &'a [Present<'a>]) -> Option<Building<'a>> {
        let all = || {
            present.iter().enumerate().filter_map(|(at, p)| Some((at, p, p.member.claim.get()?)))
        };
        let generation = all().map(|(_, _, mpb): (_, _, &Mpb)| mpb.generation).max()?;
        let newest: &Mpb = all().map(|(.., mpb)| mpb).find(|mpb| mpb.generation == generation)?;
        let (mut here, mut findings) = (Vec::new(), Vec::new());
        for (at, disk, mpb) in all() {
            if mpb.sum == newest.sum && mpb.generation == generation {
                here.push(Here {
                    at,
                    length: disk.probe.length(),
                    start: mpb.start,
                    serial: disk.serial.map(normal),
                });
            } else {
                findings.push((at, left_out(mpb, newest)));
            }
        }
        let order = Order::new(newest, &here);
        let sector = present.first()?.probe.sector();
        Some(Building { newest, here, order, findings, sector })
    }

    /// The volumes, if all disks are here that have not failed, or with `degraded` what can be made
    /// of fewer.
    pub(super) fn assembly(mut self, degraded: bool) -> Option<Assembly> {
        let listed = self.newest.live().count();
        if self.here.len() < listed && !degraded {
            return None;
        }
        let first = self.here.first()?.at;
        let mut findings = std::mem::take(&mut self.findings);
        let name = self.newest.volumes.first().map(Volume::short_name).unwrap_or_default();
        let failed = self.newest.disks.iter().filter(|disk| disk.failed).map(|disk| {
            let message =
                format!("a disk of the imsm container of {name} has failed: {}", disk.serial);
            Finding::new(&finding::INCOMPLETE, Severity::Warning, self.newest.at, message)
        });
        let failed = bounded(failed.collect());
        findings.extend(failed.into_iter().map(|finding| (first, finding)));
        // Disks of each volume: two that share none cannot overlap.
        let mut shared = Vec::new();
        for disk in 0..self.newest.disks.len() {
            let on = |map: &Map| map.members.iter().any(|place| place.disk == disk);
            let ranges: Vec<_> = self
                .newest
                .volumes
                .iter()
                .filter(|volume| on(&volume.map))
                .map(|volume| {
                    let map = &volume.map;
                    (volume.short_name(), map.start..map.start.saturating_add(map.share))
                })
                .collect();
            for finding in overlaps(&ranges, self.sector) {
                if shared.iter().all(|own: &Finding| own.message != finding.message) {
                    shared.push(finding);
                }
            }
        }
        let shared = bounded(shared);
        findings.extend(shared.into_iter().map(|finding| (first, finding)));
        let volumes = self.newest.volumes.iter();
        let layers: Vec<Layer> = volumes.filter_map(|volume| self.layer(volume)).collect();
        if layers.is_empty() && findings.is_empty() {
            // Members are only missing.
            return None;
        }
        let here = self.here.iter().map(|disk| disk.at).collect();
        Some(Assembly { layers, findings, here })
    }

    /// The layer of a volume, which says why if it cannot be read; `None` for one that only lacks
    /// disks.
    fn layer(&self, volume: &Volume) -> Option<Layer> {
        let name = format!("imsm/{}", volume.short_name());
        Some(match self.set(volume, name.clone()) {
            Ok((set, used)) => {
                let assumed = self.is_assumed(volume);
                let below =
                    used.into_iter().map(|disk| Below::Member(self.here[disk].at)).collect();
                let findings = assumed.then(|| self.assumption()).into_iter().collect();
                Layer { findings, ..Layer::new(Arc::new(set), below) }
            }
            Err(Fault::Order { here, listed }) if here < listed => return None,
            Err(why) => {
                let message = format!("where its bytes are is not followed: {why}");
                let unread = Finding::new(&finding::UNREAD, Severity::Note, 0, message);
                let shape = volume.shape();
                let members = shape.disks as usize;
                let arrangement = Arrangement {
                    level: shape.level_name(),
                    layout: shape.layout_name(),
                    chunk: Some(shape.chunk).filter(|_| shape.level != 1),
                    members,
                    present: self.here.len().min(members),
                };
                // Without parts every read fails.
                let set = Set {
                    name,
                    length: volume.size,
                    parts: Vec::new(),
                    roles: Vec::new(),
                    arrangement: Some(arrangement),
                    read_only: Some("where its bytes are is not known"),
                };
                let below = self.here.iter().map(|disk| Below::Member(disk.at)).collect();
                let layer = Layer::new(Arc::new(set), below);
                Layer { findings: vec![unread], seen: false, ..layer }
            }
        })
    }

    /// The set that a volume is, and the disks in use, as indices of those here, in the order of
    /// its consumers.
    fn set(&self, volume: &Volume, name: String) -> Result<(Set, Vec<usize>), Fault> {
        let (newest, map, shape) = (self.newest, &volume.map, volume.shape());
        if newest.unserved != 0 {
            return Err(Fault::Attributes(newest.unserved));
        }
        if volume.migration == Some(Migration::Reshape) {
            return Err(Fault::Reshape);
        }
        let disks = map.members.len();
        match map.level {
            0 | 1 => {}
            5 if disks >= 3 => {}
            10 if disks >= 4 && disks.is_multiple_of(2) => {}
            level => return Err(Fault::Level { level, disks }),
        }
        if map.failed {
            return Err(Fault::Failed);
        }
        let rooms = vec![map.share; disks];
        let layout = Layout::new(&shape, map.share, &rooms)?;
        let (size, room) = (volume.size, layout.length());
        if size > room || size == 0 {
            return Err(Fault::Size { size, room });
        }
        let holders = self.holders(volume)?;
        let missing = holders.iter().filter(|holder| holder.is_none()).count();
        let has = |role: usize| holders.get(role).is_some_and(Option::is_some);
        let enough = match &layout {
            Layout::Parity(_) => missing <= 1,
            Layout::Copies(copies) => copies.has_all(has),
            Layout::Mirror(_) => missing < disks,
            _ => missing == 0,
        };
        if !enough {
            return Err(Fault::Failed);
        }
        let parity = matches!(layout, Layout::Parity(_));
        if parity && missing > 0 && volume.unsynced {
            return Err(Fault::Unsynced);
        }
        let end = map.start.saturating_add(map.share);
        let mut used = Vec::new();
        let roles: Vec<Vec<Half>> = holders
            .iter()
            .map(|holder| holder.map(|(disk, at)| self.half(volume, disk, at, &mut used)))
            .map(|half| half.into_iter().collect())
            .collect();
        if let Some(start) = used.iter().map(|&disk| self.here[disk].start).find(|&s| s < end) {
            return Err(Fault::Past { end, start });
        }
        let arrangement = Arrangement {
            level: shape.level_name(),
            layout: shape.layout_name(),
            chunk: Some(shape.chunk).filter(|_| shape.level != 1),
            members: disks,
            present: disks - missing,
        };
        let bad = roles.iter().flatten().any(|half| !half.bad.is_empty());
        let read_only = if parity {
            Some("a write would have to change its parity as well")
        } else if missing > 0 {
            Some("disks of it are missing, and would be stale")
        } else if self.has_stranger() {
            Some("a disk has a serial number that its metadata do not list")
        } else if bad {
            Some("disks of it have bad blocks")
        } else if layout.copies() > 1 && volume.unsynced {
            Some("it was not stopped in order, so its copies may differ")
        } else if self.is_assumed(volume) {
            Some("the order of its disks is assumed")
        } else {
            None
        };
        let parts = vec![Part { end: size, layout, moved: false }];
        let arrangement = Some(arrangement);
        Ok((Set { name, length: size, parts, roles, arrangement, read_only }, used))
    }

    /// The disk that holds each place of a volume: its index in the table, and among those here.
    fn holders(&self, volume: &Volume) -> Result<Vec<Option<(usize, usize)>>, Fault> {
        let mut seen = vec![false; self.newest.disks.len()];
        for place in &volume.map.members {
            let first = seen.get_mut(place.disk).map(|seen| std::mem::replace(seen, true));
            if first != Some(false) {
                return Err(Fault::Disk(place.disk));
            }
        }
        let whole = |place: &DiskOrdinal| self.is_whole(place);
        let places = volume.map.members.iter();
        if let Some(order) = &self.order {
            let holder =
                |place: &DiskOrdinal| Some((place.disk, order.disks.get(place.disk).copied()??));
            return Ok(places.map(|place| holder(place).filter(|_| whole(place))).collect());
        }
        // Any disk of a mirror will do, if all are whole and no other volume's are among them.
        let fits = self.here.len() <= volume.map.members.len();
        let all = self.newest.live().all(|disk| places.clone().any(|place| place.disk == disk));
        if fits && all && self.is_same_in_any_order(volume) {
            let here = (0..self.here.len()).map(Some).chain(std::iter::repeat(None));
            return Ok(places.zip(here).map(|(place, at)| Some((place.disk, at?))).collect());
        }
        let (here, listed) = (self.here.len(), self.newest.live().count());
        Err(Fault::Order { here, listed })
    }

    /// Data of a volume on disk number `disk` of the table; `at` is its index among those
    /// here, which is added to `used`.
    fn half(&self, volume: &Volume, disk: usize, at: usize, used: &mut Vec<usize>) -> Half {
        used.push(at);
        let offset = volume.map.start;
        let own = self.newest.bad.iter().filter(|(bad, ..)| *bad == disk);
        Half {
            consumer: used.len() - 1,
            offset,
            new_offset: offset,
            recovered: u64::MAX,
            bad: own.map(|&(_, from, to)| (from, to)).collect(),
        }
    }

    /// True if a volume would be another one with its disks in another order, and that order is not
    /// known for sure.
    fn is_assumed(&self, volume: &Volume) -> bool {
        !self.is_same_in_any_order(volume) && self.order.as_ref().is_some_and(|order| order.assumed)
    }

    /// True if a disk has a serial number that is not in the table: it is a copy of one, which may
    /// be stale, or have made another one stale.
    fn has_stranger(&self) -> bool {
        let listed = |serial: &String| self.newest.disks.iter().any(|disk| disk.serial == *serial);
        self.here.iter().filter_map(|disk| disk.serial.as_ref()).any(|serial| !listed(serial))
    }

    /// True for a mirror whose disks all have all of it: while one is being rebuilt, or has bad
    /// blocks, which one that is counts.
    fn is_same_in_any_order(&self, volume: &Volume) -> bool {
        let whole = |place: &DiskOrdinal| self.is_whole(place);
        volume.map.level == 1 && volume.map.members.iter().all(whole) && self.newest.bad.is_empty()
    }

    /// True if the disk at a place has not failed, and is not being rebuilt.
    fn is_whole(&self, place: &DiskOrdinal) -> bool {
        !place.rebuilding && !self.newest.disks.get(place.disk).is_none_or(|disk| disk.failed)
    }

    /// The note that the order of disks is assumed.
    fn assumption(&self) -> Finding {
        let message = format!(
            "its disks are taken in the order in which they are named: its metadata list them by serial numbers, which are not known here: {}",
            self.serials()
        );
        Finding::new(&finding::BLIND, Severity::Note, 0, message)
            .fix("if what is on it is not found, name its disks in another order")
    }

    /// Serial numbers of the disks that have not failed, in the order of the table.
    fn serials(&self) -> String {
        let live = self.newest.live().map(|disk| self.newest.disks[disk].serial.as_str());
        live.collect::<Vec<_>>().join(", ")
    }
}

impl Order {
    /// The order of disks of one table: as their serial numbers say, else as their lengths do, else
    /// as they come; `None` if they are then not as many as the entries that have not failed.
    fn new(mpb: &Mpb, here: &[Here]) -> Option<Order> {
        let named = Order::by_serials(mpb, here);
        if named.is_some() {
            return named;
        }
        let live: Vec<usize> = mpb.live().collect();
        if live.len() != here.len() {
            return None;
        }
        let mut disks = vec![None; mpb.disks.len()];
        let length = |entry: &usize| mpb.disks[*entry].length;
        let alike =
            live.iter().enumerate().any(|(n, a)| live[..n].iter().any(|b| length(a) == length(b)));
        let mut left: Vec<usize> = (0..here.len()).collect();
        for &entry in &live {
            let Some(nth) = left.iter().position(|&disk| here[disk].length == length(&entry))
            else {
                // Lengths that are not those of the table tell nothing.
                for (disk, &entry) in live.iter().enumerate() {
                    disks[entry] = Some(disk);
                }
                return Some(Order { disks, assumed: live.len() > 1 });
            };
            disks[entry] = Some(left.remove(nth));
        }
        Some(Order { disks, assumed: alike })
    }

    /// The order that serial numbers tell; `None` if a disk has none, or one that is not in the
    /// table or another disk's too: one that was copied to another disk.
    fn by_serials(mpb: &Mpb, here: &[Here]) -> Option<Order> {
        let mut disks = vec![None; mpb.disks.len()];
        for (nth, disk) in here.iter().enumerate() {
            let serial = disk.serial.as_ref()?;
            let entry = mpb.disks.iter().position(|entry| entry.serial == *serial)?;
            if disks[entry].replace(nth).is_some() {
                return None;
            }
        }
        Some(Order { disks, assumed: false })
    }
}

/// A serial number as the metadata have it: printed characters alone, of which the last 16 fit, and
/// no `:`, which marks disks that failed.
fn normal(serial: &str) -> String {
    let printed = serial.chars().filter(|c| *c > ' ').map(|c| if c == ':' { ';' } else { c });
    let all: Vec<char> = printed.collect();
    all[all.len().saturating_sub(SERIAL)..].iter().collect()
}

/// The finding about a disk whose metadata are not those that count.
fn left_out(mpb: &Mpb, newest: &Mpb) -> Finding {
    let why = if mpb.generation < newest.generation {
        format!(
            "it is stale: its metadata are of generation {}, the newest of {}",
            mpb.generation, newest.generation
        )
    } else {
        Exclusion::Contradicts.to_string()
    };
    let name = newest.volumes.first().map(Volume::short_name).unwrap_or_default();
    let message = format!("left out of the imsm container of {name}: {why}");
    Finding::new(&finding::INCOMPLETE, Severity::Warning, mpb.at, message)
}

//! RAID volumes: images of which dm-raid's own metadata say which are current.
//!
//! # On disk
//! A metadata volume for each image begins with a superblock. Linux takes the newest one, by its
//! count of events, and from that which images have failed; each has how far its image is rebuilt.
//!
//! # Sources
//! Linux `drivers/md/dm-raid.c`: `struct dm_raid_superblock`, `super_init_validation`,
//! `super_validate`.

use super::super::fault::{Differs, Fault, LeftOut, MapFault};
use super::super::group::{Logical, On, Raid, SECTOR};
use super::{Draft, Maker};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use crate::base::topology::round_up;
use crate::mapping::geom::{Arrangement, Extent, Geom, Op};
use crate::mapping::raid::fault::Exclusion;
use crate::mapping::raid::layout::Layout;
use crate::mapping::raid::set::{Half, Part, Set};
use crate::mapping::raid::shape::RaidShape;
use crate::mapping::slices::bounded;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

const MAGIC: &[u8; 4] = b"DmRd";
/// `FEATURE_FLAG_SUPPORTS_V190`: the fields from `flags` on count.
const EXTENDED: u32 = 1;
/// Flags of a reshape under way, `SB_FLAG_RESHAPE_ACTIVE`, and of one that goes from the end to the
/// front, `SB_FLAG_RESHAPE_BACKWARDS`.
const RESHAPES: u32 = 1;
const BACKWARDS: u32 = 2;
/// Events by which an image may be behind: it missed the last write of superblocks alone.
const MARGIN: u64 = 1;

on_disk! {
    /// Superblock of an image, `struct dm_raid_superblock`.
    #[derive(Clone)]
    struct Superblock of 148 bytes {
        0 => magic: [u8; 4],
        4 => compat_features: U32,
        8 => num_devices: U32,
        12 => array_position: U32,
        16 => events: U64,
        24 => failed_devices: U64,
        32 => disk_recovery_offset: U64,
        40 => array_resync_offset: U64,
        48 => level: U32,
        52 => layout: U32,
        56 => stripe_sectors: U32,
        60 => flags: U32,
        64 => reshape_position: U64,
        72 => new_level: U32,
        76 => new_layout: U32,
        80 => new_stripe_sectors: U32,
        84 => delta_disks: U32,
        88 => array_sectors: U64,
        96 => data_offset: U64,
        104 => new_data_offset: U64,
        112 => sectors: U64,
        120 => extended_failed_devices: [U64; 3],
        144 => incompat_features: U32,
    }
}

impl Superblock {
    fn is_extended(&self) -> bool {
        self.compat_features.get() & EXTENDED != 0
    }

    /// True if it says that the image of `role` has failed.
    fn knows_failed(&self, role: usize) -> bool {
        let extended = self.extended_failed_devices.iter().filter(|_| self.is_extended());
        let words: Vec<u64> =
            std::iter::once(&self.failed_devices).chain(extended).map(|word| word.get()).collect();
        words.get(role / 64).is_some_and(|word| word >> (role % 64) & 1 != 0)
    }

    /// First bytes of the data on the image, before a reshape and after it.
    fn starts(&self) -> [u64; 2] {
        let byte = |sector: U64| sector.get().saturating_mul(SECTOR);
        match (self.is_extended(), self.reshapes()) {
            (false, _) => [0, 0],
            (true, false) => [byte(self.data_offset); 2],
            (true, true) => [byte(self.data_offset), byte(self.new_data_offset)],
        }
    }

    /// True if a reshape is under way.
    fn reshapes(&self) -> bool {
        self.is_extended() && self.flags.get() & RESHAPES != 0
    }

    /// The shape of a volume before its reshape. The number of images is that of the new one.
    fn old(&self, raid: &Raid) -> RaidShape {
        let disks = self.num_devices.get().wrapping_sub(self.delta_disks.get());
        let chunk = u64::from(self.stripe_sectors.get()) * SECTOR;
        RaidShape { layout: self.layout.get(), chunk, disks, ..raid.shape }
    }

    /// The contradiction to what the group says is `raid`, for which the volume is not made by it.
    fn contradicts(&self, raid: &Raid) -> Option<Differs> {
        let (level, layout, sectors) = match self.reshapes() {
            true => (self.new_level, self.new_layout, self.new_stripe_sectors),
            false => (self.level, self.layout, self.stripe_sectors),
        };
        let bytes = u64::from(sectors.get()) * SECTOR;
        let images = (level.get(), layout.get(), bytes, self.num_devices.get());
        let shape = &raid.shape;
        let level = u32::try_from(shape.level).unwrap_or(u32::MAX);
        let group = (level, shape.layout, shape.chunk, shape.disks);
        if self.reshapes() {
            let follows = images == group && self.level.get() == level;
            let is_followed = follows && self.old(raid).disks <= shape.disks;
            return (!is_followed).then_some(Differs::Reshapes);
        }
        // Images are added to a RAID1 and taken from it, and it has no chunk.
        let same = images == group || (images.0, level) == (1, 1);
        (!same).then_some(Differs::Shape { images, group })
    }

    /// First bytes of the data on the image, where the newest superblock says that a reshape is
    /// under way or is not: this one may be from before that. `None` where its data may be in
    /// either place.
    fn starts_by(&self, newest: &Superblock) -> Option<[u64; 2]> {
        let own = self.starts();
        match (self.reshapes(), newest.reshapes()) {
            (own_reshapes, newest_reshapes) if own_reshapes == newest_reshapes => Some(own),
            // The last step has ended meanwhile.
            (true, false) => Some([own[1]; 2]).filter(|_| own[1] == newest.starts()[0]),
            _ => None,
        }
    }

    /// The reason for which the image of `role` is left out, by its own superblock and the newest.
    fn fault(&self, role: usize, newest: &Superblock, is_mirror: bool) -> Option<LeftOut> {
        let (seen, newest_seen) = (self.events.get(), newest.events.get());
        if newest.knows_failed(role) {
            Some(LeftOut::Md(Exclusion::Failed))
        } else if seen.saturating_add(MARGIN) < newest_seen {
            Some(LeftOut::Md(Exclusion::Stale { seen, newest: newest_seen }))
        } else if usize::try_from(self.array_position.get()) != Ok(role) && !is_mirror {
            Some(LeftOut::Number(self.array_position.get()))
        } else if self.compat_features.get() & !EXTENDED != 0 || self.incompat_features.get() != 0 {
            Some(LeftOut::Features)
        } else {
            None
        }
    }
}

/// A RAID volume as it is read.
pub(super) struct Made {
    pub(super) set: Set,
    /// True if none of its bytes is lost.
    pub(super) is_whole: bool,
    /// True if its first bytes can be read.
    pub(super) is_seen: bool,
}

impl Maker<'_> {
    /// The volume that the images of `raid` make; adds findings to the draft.
    pub(super) fn raid(
        &self,
        own: &Logical,
        raid: &Raid,
        draft: &mut Draft,
    ) -> Result<Made, Fault> {
        let name = own.path(self.group);
        let length = own.extents().saturating_mul(self.group.extent);
        let share = size(raid, length);
        let layout = |shape: &RaidShape| {
            Layout::new(shape, share, &vec![length; raid.images.len()])
                .map_err(|why| Fault::Raid(why).within(&name))
        };
        let superblocks: Vec<Result<Option<Superblock>, MapFault>> =
            raid.metadata.iter().map(|&volume| self.superblock(volume)).collect();
        let newest = newest(&superblocks).cloned();
        let wrong = newest.as_ref().and_then(|newest| newest.contradicts(raid));
        let new = layout(&raid.shape)?;
        let mut parts = match newest.as_ref().filter(|sb| sb.reshapes() && wrong.is_none()) {
            None => Part::whole(new),
            Some(sb) => {
                let position = sb.reshape_position.get().saturating_mul(SECTOR);
                let backwards = sb.flags.get() & BACKWARDS != 0;
                Part::around(position, backwards, layout(&sb.old(raid))?, new)
            }
        };
        if let Some(why) = &wrong {
            let message = format!("{why}: its contents are not followed");
            draft.findings.push(Finding::new(&finding::UNREAD, Severity::Warning, 0, message));
        }
        let mut roles: Vec<Vec<Half>> = Vec::new();
        let mut left = Vec::new();
        for (role, found) in superblocks.iter().enumerate() {
            let image = self.image(raid, role, share, found, newest.as_ref(), draft);
            match image {
                Ok(half) if wrong.is_none() => roles.push(vec![half]),
                Ok(_) => roles.push(Vec::new()),
                Err(why) => {
                    // A set that is not followed needs no cure of its images.
                    left.extend(wrong.is_none().then(|| self.left_out(raid, role, &why)));
                    roles.push(Vec::new());
                }
            }
        }
        draft.findings.extend(bounded(left));
        let missing = roles.iter().filter(|halves| halves.is_empty()).count();
        let resynced = newest.as_ref().is_none_or(|sb| sb.array_resync_offset.get() == u64::MAX);
        // The last row may not be all of the volume's.
        parts.iter_mut().for_each(|part| part.end = part.end.min(length));
        let has_parity = parts.iter().any(|part| matches!(part.layout, Layout::Parity(_)));
        if missing > 0 && !resynced && has_parity {
            draft.findings.push(unsynced());
        }
        let has_enough = parts.iter().all(|part| has_enough(&part.layout, &roles, missing));
        let is_whole = wrong.is_none() && has_enough;
        if !is_whole && wrong.is_none() {
            draft.findings.push(too_few(raid, missing));
        }
        let read_only = match &parts[..] {
            [only] => read_only(&only.layout, &roles, missing, resynced),
            _ => Some("a reshape of it is under way"),
        };
        let end = parts.last().map_or(0, |part| part.end);
        let arrangement = Some(Arrangement {
            level: raid.word.clone(),
            layout: None,
            chunk: Some(raid.shape.chunk).filter(|&chunk| chunk > 0),
            members: roles.len(),
            present: roles.len() - missing,
        });
        let set = Set { name, length, parts, roles, arrangement, read_only };
        let is_seen = !matches!(set.map(0, 0, 1, Op::Read), Extent::Fail { .. });
        Ok(Made { set, is_whole: is_whole && end == length, is_seen })
    }

    /// The half of a set that the image of `role` makes, of which the volume takes `share` bytes
    /// and whose superblock is `found`.
    fn image(
        &self,
        raid: &Raid,
        role: usize,
        share: u64,
        found: &Result<Option<Superblock>, MapFault>,
        newest: Option<&Superblock>,
        draft: &mut Draft,
    ) -> Result<Half, LeftOut> {
        let place = raid.images[role];
        let is_whole = match place.on {
            On::Logical(volume) => self.is_whole(volume),
            On::Physical(_) => true,
        };
        let found_at = self.find(place, 0, draft).filter(|_| is_whole);
        let (consumer, first, length) = found_at.ok_or(LeftOut::Torn)?;
        let half = |recovered, starts: [u64; 2]| {
            let end = starts[0].max(starts[1]).saturating_add(share);
            if end > length {
                return Err(LeftOut::Md(Exclusion::Short { length, end }));
            }
            let [offset, new_offset] = starts.map(|start| first.saturating_add(start));
            Ok(Half { consumer, offset, new_offset, recovered, bad: Vec::new() })
        };
        match (found.as_ref().map_err(|_| LeftOut::Unreadable)?, newest) {
            // A set that was never started: all images are as they were made.
            (None, None) => half(u64::MAX, [0; 2]),
            (None, Some(_)) => Err(LeftOut::New),
            (Some(sb), newest) => {
                let is_mirror = matches!(raid.shape.level, 1 | 10);
                match sb.fault(role, newest.unwrap_or(sb), is_mirror) {
                    Some(why) => Err(why),
                    None => {
                        let recovered = sb.disk_recovery_offset.get().saturating_mul(SECTOR);
                        let starts = sb.starts_by(newest.unwrap_or(sb));
                        let behind = LeftOut::Md(Exclusion::Stale {
                            seen: sb.events.get(),
                            newest: newest.unwrap_or(sb).events.get(),
                        });
                        half(recovered, starts.ok_or(behind)?)
                    }
                }
            }
        }
    }

    /// The superblock on a metadata volume; `None` if it has none.
    fn superblock(&self, volume: Option<usize>) -> Result<Option<Superblock>, MapFault> {
        let Some(volume) = volume else { return Ok(None) };
        let lost = || MapFault::Lost;
        let route = self.route(volume).ok_or_else(lost)?;
        let mut raw = [0; 512];
        let probe = self.present.first().ok_or_else(lost)?.probe.over(route);
        probe.map(0, &mut raw).map_err(|_| lost())?;
        let found = Superblock::read_from_prefix(&raw).ok().map(|(sb, _)| sb);
        Ok(found.filter(|sb| sb.magic == *MAGIC))
    }

    fn left_out(&self, raid: &Raid, role: usize, why: &LeftOut) -> Finding {
        let name = match raid.images.get(role).map(|place| place.on) {
            Some(On::Logical(volume)) => self.group.logical[volume].path(self.group),
            _ => format!("number {role}"),
        };
        let message = format!("its image {name} is left out: {why}");
        Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message)
            .fix("if its disk is there and sound: lvchange --refresh; else lvconvert --repair")
    }
}

/// Bytes of every image that a volume of `length` bytes takes.
fn size(raid: &Raid, length: u64) -> u64 {
    let disks = u64::from(raid.shape.disks);
    let taken = match raid.shape.level {
        0 => length.div_ceil(disks.max(1)),
        4 | 5 => length.div_ceil(disks.saturating_sub(1).max(1)),
        6 => length.div_ceil(disks.saturating_sub(2).max(1)),
        10 => {
            let copies = u64::from(raid.shape.layout & 0xff);
            let all = length.checked_mul(copies).map(|bytes| bytes.div_ceil(disks.max(1)));
            all.unwrap_or(length)
        }
        _ => return length,
    };
    round_up(taken, raid.shape.chunk.max(1)).unwrap_or(taken)
}

/// The newest of the superblocks that can be read; of several as new as each other the first, as
/// Linux has it.
fn newest(superblocks: &[Result<Option<Superblock>, MapFault>]) -> Option<&Superblock> {
    let known = superblocks.iter().filter_map(|found| found.as_ref().ok()?.as_ref());
    known.rev().max_by_key(|sb| sb.events.get())
}

/// True if every byte can be had from the images in `roles`.
fn has_enough(layout: &Layout, roles: &[Vec<Half>], missing: usize) -> bool {
    let is_filled = |halves: &Vec<Half>| halves.iter().any(|half| half.recovered == u64::MAX);
    match layout {
        Layout::Parity(parity) => {
            // One that is being rebuilt is made of the others until then.
            let lost = roles.iter().filter(|halves| !is_filled(halves)).count();
            lost <= if parity.row(0).q.is_some() { 2 } else { 1 }
        }
        Layout::Mirror(_) => roles.iter().any(is_filled),
        Layout::Copies(copies) => copies.has_all(|role| roles.get(role).is_some_and(is_filled)),
        Layout::Linear(_) | Layout::Zones(_) => missing == 0,
    }
}

/// The reason for which a volume is not written, the first of several.
fn read_only(
    layout: &Layout,
    roles: &[Vec<Half>],
    missing: usize,
    resynced: bool,
) -> Option<&'static str> {
    if matches!(layout, Layout::Parity(_)) {
        Some("a write would have to change its parity as well")
    } else if missing > 0 {
        Some("images of it are missing or old, and would be left behind")
    } else if roles.iter().flatten().any(|half| half.recovered != u64::MAX) {
        Some("an image of it is being rebuilt")
    } else if !resynced {
        Some("its copies have not been made the same to the end")
    } else {
        None
    }
}

fn unsynced() -> Finding {
    let message =
        "its parity was not complete when an image was lost: what is made of it may be wrong";
    Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message.into())
        .fix("compare what is on it with a backup")
}

fn too_few(raid: &Raid, missing: usize) -> Finding {
    let message = format!(
        "{missing} of its {} images cannot be used, more than it can do without: what lies there cannot be read",
        raid.shape.disks
    );
    Finding::new(&finding::INCOMPLETE, Severity::Error, 0, message)
        .fix("add their disks to the target: DISK,DISK")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A superblock with these events, and data at these sectors around a reshape, of which
    /// only one under way has the latter.
    fn superblock(events: u64, data: u64, new: Option<u64>) -> Superblock {
        let mut raw = [0; 148];
        raw[4] = 1;
        raw[16..24].copy_from_slice(&events.to_le_bytes());
        raw[60] = u8::from(new.is_some());
        raw[96..104].copy_from_slice(&data.to_le_bytes());
        raw[104..112].copy_from_slice(&new.unwrap_or(0).to_le_bytes());
        Superblock::read_from_bytes(&raw).unwrap()
    }

    /// An image that missed the last step of a reshape has its data where the reshape left them.
    #[test]
    fn data_are_where_the_newest_superblock_has_left_them() {
        let (during, after) = (superblock(9, 2048, Some(0)), superblock(10, 0, None));
        let bytes = |sectors: [u64; 2]| Some(sectors.map(|sector| sector * SECTOR));
        assert_eq!(during.starts_by(&during), bytes([2048, 0]));
        assert_eq!(after.starts_by(&after), bytes([0, 0]));
        assert_eq!(during.starts_by(&after), bytes([0, 0]));
        // A reshape to another place, and one that had not begun.
        assert_eq!(superblock(9, 2048, Some(4096)).starts_by(&after), None);
        assert_eq!(after.starts_by(&during), None);
    }

    #[test]
    fn of_superblocks_as_new_as_each_other_the_first_counts() {
        let all = [Ok(None), Ok(Some(superblock(7, 1, None))), Ok(Some(superblock(8, 2, None)))];
        let more = [Ok(Some(superblock(8, 3, None))), Err(MapFault::Lost)];
        let all: Vec<_> = all.into_iter().chain(more).collect();
        assert_eq!(newest(&all).map(|sb| sb.data_offset.get()), Some(2));
        assert!(newest(&[Ok(None)]).is_none());
    }

    #[test]
    fn an_image_that_is_being_rebuilt_is_made_of_the_others() {
        let shape = RaidShape { level: 5, layout: 2, chunk: 4096, disks: 3 };
        let layout = Layout::new(&shape, 8192, &[8192; 3]).unwrap();
        let half = |recovered| {
            vec![Half { consumer: 0, offset: 0, new_offset: 0, recovered, bad: Vec::new() }]
        };
        let whole = || half(u64::MAX);
        let enough = |roles: [Vec<Half>; 3]| {
            let missing = roles.iter().filter(|halves| halves.is_empty()).count();
            has_enough(&layout, &roles, missing)
        };
        assert!(enough([whole(), whole(), half(4096)]));
        assert!(enough([whole(), whole(), Vec::new()]));
        assert!(!enough([whole(), half(4096), Vec::new()]));
    }
}

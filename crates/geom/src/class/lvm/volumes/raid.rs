//! RAID volumes: images of which dm-raid's own metadata say which are current.
//!
//! # On disk
//! A metadata volume for each image begins with a superblock. Linux takes the newest one, by its
//! count of events, and from that which images have failed; each has how far its image is rebuilt.
//!
//! # Sources
//! Linux `drivers/md/dm-raid.c`: `struct dm_raid_superblock`, `super_init_validation`,
//! `super_validate`.

use super::super::fault::{Fault, MapFault};
use super::super::group::{Logical, On, Raid};
use super::{Draft, Maker};
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::on_disk;
use crate::base::topology::round_up;
use crate::class::md::layout::Layout;
use crate::class::md::set::{Half, Part, Set};
use crate::mapping::geom::{Arrangement, Extent, Geom, Op};
use crate::mapping::slices::bounded;
use zerocopy::FromBytes;
use zerocopy::little_endian::{U32, U64};

const SECTOR: u64 = 512;
const MAGIC: &[u8; 4] = b"DmRd";
/// `FEATURE_FLAG_SUPPORTS_V190`: the fields from `flags` on count.
const EXTENDED: u32 = 1;
/// Flag of a reshape under way, `SB_FLAG_RESHAPE_ACTIVE`.
const RESHAPES: u32 = 1;
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

    /// First byte of the data on the image.
    fn start(&self) -> u64 {
        if self.is_extended() { self.data_offset.get().saturating_mul(SECTOR) } else { 0 }
    }

    /// The reason for which the volume is not made by it, if what the group says is `raid`.
    fn contradicts(&self, raid: &Raid) -> Option<String> {
        if self.is_extended() && self.flags.get() & RESHAPES != 0 {
            return Some("a reshape of it is under way, which is not followed".into());
        }
        let own = (self.level.get(), self.layout.get(), self.stripe_sectors.get());
        let chunk = u32::try_from(raid.shape.chunk / SECTOR).unwrap_or(u32::MAX);
        let said = (u32::try_from(raid.shape.level).unwrap_or(u32::MAX), raid.shape.layout, chunk);
        let same = own == said || own.0 == said.0 && said.0 == 1;
        let count = self.num_devices.get() == raid.shape.disks || said.0 == 1;
        (!same || !count).then(|| {
            format!(
                "the metadata of its images say level {}, layout {:#x}, stripes of {} bytes on {} images; those of the group level {}, layout {:#x}, {} bytes on {}",
                own.0, own.1, u64::from(own.2) * SECTOR, self.num_devices, said.0, said.1, raid.shape.chunk, raid.shape.disks
            )
        })
    }

    /// The reason for which the image of `role` is left out, by its own superblock and the newest.
    fn fault(&self, role: usize, newest: &Superblock, is_mirror: bool) -> Option<String> {
        let (own, events) = (self.events.get(), newest.events.get());
        if newest.knows_failed(role) {
            Some("the others know it as failed, so what it has is old".into())
        } else if own.saturating_add(MARGIN) < events {
            Some(format!("it is old: it has seen {own} events, the others {events}"))
        } else if usize::try_from(self.array_position.get()) != Ok(role) && !is_mirror {
            Some(format!("its metadata say that it is number {}", self.array_position))
        } else if self.compat_features.get() & !EXTENDED != 0 || self.incompat_features.get() != 0 {
            Some("its metadata have features that are not known here".into())
        } else {
            None
        }
    }
}

/// Image of one role.
struct Image {
    /// The half of a set that it makes; `Err` says why it is left out, if that is not said
    /// elsewhere.
    half: Result<Half, Option<String>>,
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
        let layout = Layout::new(&raid.shape, size(raid, length), &vec![length; raid.images.len()])
            .map_err(|why| Fault::Raid(why).within(&name))?;
        let superblocks: Vec<Result<Option<Superblock>, MapFault>> =
            raid.metadata.iter().map(|&volume| self.superblock(volume)).collect();
        let known = superblocks.iter().filter_map(|found| found.as_ref().ok()?.as_ref());
        let newest = known.max_by_key(|sb| sb.events.get()).cloned();
        let wrong = newest.as_ref().and_then(|newest| newest.contradicts(raid));
        if let Some(why) = &wrong {
            let message = format!("{why}: its contents are not followed");
            draft.findings.push(Finding::new(&finding::UNREAD, Severity::Warning, 0, message));
        }
        let mut roles: Vec<Vec<Half>> = Vec::new();
        let mut left = Vec::new();
        for (role, found) in superblocks.iter().enumerate() {
            let image = self.image(raid, role, found, newest.as_ref(), draft);
            match image.half {
                Ok(half) if wrong.is_none() => roles.push(vec![half]),
                Ok(_) => roles.push(Vec::new()),
                Err(why) => {
                    left.extend(why.map(|why| self.left_out(raid, role, &why)));
                    roles.push(Vec::new());
                }
            }
        }
        draft.findings.extend(bounded(left));
        let missing = roles.iter().filter(|halves| halves.is_empty()).count();
        let resynced = newest.as_ref().is_none_or(|sb| sb.array_resync_offset.get() == u64::MAX);
        if missing > 0 && !resynced && matches!(layout, Layout::Parity(_)) {
            draft.findings.push(unsynced());
        }
        let is_whole = wrong.is_none() && has_enough(&layout, &roles, missing);
        if !is_whole && wrong.is_none() {
            draft.findings.push(too_few(raid, missing));
        }
        let read_only = read_only(&layout, &roles, missing, resynced);
        let end = layout.length().min(length);
        let parts = vec![Part { end, layout, moved: false }];
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

    /// The image of `role`, whose superblock is `found`.
    fn image(
        &self,
        raid: &Raid,
        role: usize,
        found: &Result<Option<Superblock>, MapFault>,
        newest: Option<&Superblock>,
        draft: &mut Draft,
    ) -> Image {
        let place = raid.images[role];
        let consumer = self.find(place, 0, draft);
        let is_whole = match place.on {
            On::Logical(volume) => self.is_whole(volume),
            On::Physical(_) => true,
        };
        let half = |recovered, offset| match consumer.filter(|_| is_whole) {
            // Its own layer says what is missing of it.
            None => Err(Some("parts of it are missing, or not followed".into())),
            Some((consumer, first, _)) => {
                let offset = first.saturating_add(offset);
                Ok(Half { consumer, offset, new_offset: offset, recovered, bad: Vec::new() })
            }
        };
        let half = match (found, newest) {
            (_, _) if !is_whole => half(0, 0),
            (Err(_), _) => Err(Some("its metadata cannot be read".into())),
            // A set that was never started: all images are as they were made.
            (Ok(None), None) => half(u64::MAX, 0),
            (Ok(None), Some(_)) => Err(Some("it is new, and not rebuilt yet".into())),
            (Ok(Some(sb)), newest) => {
                let newest = newest.unwrap_or(sb);
                let is_mirror = matches!(raid.shape.level, 1 | 10);
                match sb.fault(role, newest, is_mirror) {
                    Some(why) => Err(Some(why)),
                    None => half(sb.disk_recovery_offset.get().saturating_mul(SECTOR), sb.start()),
                }
            }
        };
        Image { half }
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

    fn left_out(&self, raid: &Raid, role: usize, why: &str) -> Finding {
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
        5 => length.div_ceil(disks.saturating_sub(1).max(1)),
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

/// True if every byte can be had from the images in `roles`.
fn has_enough(layout: &Layout, roles: &[Vec<Half>], missing: usize) -> bool {
    let is_filled = |halves: &Vec<Half>| halves.iter().any(|half| half.recovered == u64::MAX);
    match layout {
        Layout::Parity(parity) => missing <= if parity.row(0).q.is_some() { 2 } else { 1 },
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

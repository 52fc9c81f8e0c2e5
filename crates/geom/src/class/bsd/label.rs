//! Bytes of a label: their places, their meaning, and changes that leave all other bytes alone.

use super::REPAIR;
use crate::base::finding::{self, Finding, Severity};
use crate::base::ondisk::{self, on_disk};
use std::ops::Range;
use zerocopy::byteorder::{BE, ByteOrder, LE, U16, U32};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

on_disk! {
    /// On-disk `struct disklabel`, with the fields of OpenBSD's version 1 in formerly free ones.
    #[derive(IntoBytes)]
    struct Disklabel<O: ByteOrder> of 148 bytes {
          0 => d_magic: U32<O>,
          4 => d_type: U16<O>,
          6 => d_subtype: U16<O>,
          8 => d_typename: [u8; 16],
         24 => d_packname: [u8; 16],
         40 => d_secsize: U32<O>,
         44 => d_nsectors: U32<O>,
         48 => d_ntracks: U32<O>,
         52 => d_ncylinders: U32<O>,
         56 => d_secpercyl: U32<O>,
         60 => d_secperunit: U32<O>,
         64 => d_uid: [u8; 8],
         72 => d_acylinders: U32<O>,
         76 => d_bstarth: U16<O>,
         78 => d_bendh: U16<O>,
         80 => d_bstart: U32<O>,
         84 => d_bend: U32<O>,
         88 => d_flags: U32<O>,
         92 => d_drivedata: [u8; 20],
        112 => d_secperunith: U16<O>,
        114 => d_version: U16<O>,
        116 => d_spare: [u8; 16],
        132 => d_magic2: U32<O>,
        136 => d_checksum: U16<O>,
        138 => d_npartitions: U16<O>,
        140 => d_bbsize: U32<O>,
        144 => d_sbsize: U32<O>,
    }
}

on_disk! {
    /// On-disk `struct partition`; the high halves are OpenBSD's, elsewhere a fragment size.
    #[derive(Clone, Copy, IntoBytes)]
    struct Partition<O: ByteOrder> of 16 bytes {
         0 => p_size: U32<O>,
         4 => p_offset: U32<O>,
         8 => p_offseth: U16<O>,
        10 => p_sizeh: U16<O>,
        12 => p_fstype: u8,
        13 => p_frag: u8,
        14 => p_cpg: U16<O>,
    }
}

const MAGIC: u32 = 0x8256_4557;
/// Bytes of a label before its entries.
const HEAD: usize = 148;
/// Range of the checksum in bytes.
const CHECKSUM: Range<usize> = 136..138;
const ENTRY: usize = 16;
/// Largest number of entries in the 512 bytes of a label.
pub(super) const MOST: usize = (512 - HEAD) / ENTRY;

/// Label, in this machine's byte order.
pub(super) struct Label {
    /// First byte on the provider.
    pub at: u64,
    pub sector: u64,
    pub tracks: (u32, u32),
    /// Sectors of the disk or the slice.
    pub total: u64,
    pub version: u16,
    /// Identity of the disk, by OpenBSD.
    pub uid: [u8; 8],
    /// Part of the disk that is OpenBSD's, in sectors.
    pub bounds: Range<u64>,
    pub name: Option<String>,
    pub stored: u16,
    pub computed: u16,
    pub entries: Vec<Part>,
    /// True if it is in big-endian order.
    big: bool,
}

/// Entry of a label, in bytes from the origin of its offsets.
pub(super) struct Part {
    pub offset: u64,
    pub length: u64,
    pub fstype: u8,
}

impl Part {
    pub(super) fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }
}

/// First bytes of labels, in the order in which they are looked for: 512 (LBA 1, and OpenBSD's
/// whatever the sector), LBA 1 of other sectors, and in sector 0 of some ports (alpha, sparc).
pub(super) fn places(sector: u64) -> [u64; 7] {
    [512, 4096, 1024, 2048, 64, 128, sector]
}

/// A reader of so many bytes from a byte of the provider; `None` if it cannot read them.
pub(super) type Get<'a> = dyn Fn(u64, usize) -> Option<Vec<u8>> + 'a;

/// The first label on the provider; `Err` if it has both magics and the rest is no label.
pub(super) fn find(get: &Get<'_>, sector: u64) -> Option<Result<Label, Finding>> {
    places(sector).into_iter().find_map(|at| read(get, at))
}

/// True if both magics stand at byte `at`.
pub(super) fn is_magic(get: &Get<'_>, at: u64) -> bool {
    let magics = [MAGIC.to_le_bytes(), MAGIC.to_be_bytes()];
    get(at, 136)
        .is_some_and(|label| magics.iter().any(|m| label.starts_with(m) && label.ends_with(m)))
}

/// The label at byte `at`, if both magics stand there in one byte order; `Err` if the rest is no
/// label.
fn read(get: &Get<'_>, at: u64) -> Option<Result<Label, Finding>> {
    let raw = get(at, 512)?;
    match raw.first_chunk::<4>()? {
        m if u32::from_le_bytes(*m) == MAGIC => decode::<LE>(at, &raw, false),
        m if u32::from_be_bytes(*m) == MAGIC => decode::<BE>(at, &raw, true),
        _ => None,
    }
}

fn decode<O: ByteOrder>(at: u64, raw: &[u8], big: bool) -> Option<Result<Label, Finding>> {
    let (d, mut rest) = Disklabel::<O>::read_from_prefix(raw).ok()?;
    let elsewhere = at > 512 && at != u64::from(d.d_secsize.get());
    if d.d_magic2.get() != MAGIC || elsewhere {
        return None;
    }
    let (sector, count) = (u64::from(d.d_secsize.get()), usize::from(d.d_npartitions.get()));
    if !sector.is_power_of_two() || !(512..=65536).contains(&sector) || !(1..=MOST).contains(&count)
    {
        let message = format!(
            "the disklabel at byte {at} has both magics, but sectors of {sector} bytes and {count} partitions"
        );
        return Some(Err(Finding::new(&finding::LABEL, Severity::Error, at, message).fix(REPAIR)));
    }
    let word = |pair: &[u8]| U16::<O>::read_from_bytes(pair).map_or(0, U16::get);
    let sum = raw.get(..size(count))?.chunks_exact(2).map(word).fold(0, |a, b| a ^ b);
    let version = d.d_version.get();
    let high = |h: U16<O>| if version == 1 { u64::from(h.get()) << 32 } else { 0 };
    let mut entries = Vec::new();
    for _ in 0..count {
        let (p, after) = Partition::<O>::read_from_prefix(rest).ok()?;
        let bytes = |n: u64| n.saturating_mul(sector);
        let offset = bytes(high(p.p_offseth) | u64::from(p.p_offset.get()));
        entries.push(Part {
            offset,
            length: bytes(high(p.p_sizeh) | u64::from(p.p_size.get())),
            fstype: p.p_fstype,
        });
        rest = after;
    }
    let bounds = (high(d.d_bstarth) | u64::from(d.d_bstart.get()))
        ..(high(d.d_bendh) | u64::from(d.d_bend.get()));
    let stored = d.d_checksum.get();
    let tracks = (d.d_nsectors.get(), d.d_ntracks.get());
    let total = high(d.d_secperunith) | u64::from(d.d_secperunit.get());
    let (uid, name) = (d.d_uid, ondisk::text(&d.d_packname));
    Some(Ok(Label {
        at,
        sector,
        tracks,
        total,
        version,
        uid,
        bounds,
        name,
        stored,
        computed: sum ^ stored,
        entries,
        big,
    }))
}

/// The size in bytes of a label with `count` entries.
fn size(count: usize) -> usize {
    HEAD + count * ENTRY
}

/// Change of an entry's bytes. Numbers are sectors, from the origin of offsets.
pub(super) enum Slot {
    /// Bytes that stay as they are.
    Keep,
    /// Bytes of an entry that is removed.
    Clear,
    /// Bytes of that entry, with the other fields of the entry that was read at index `from`,
    /// counted from 0.
    Put { offset: u64, size: u64, fstype: u8, from: Option<usize> },
}

/// Fields of a label's head that are written; a `None` stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// Bytes of a sector.
    pub sector: Option<u32>,
    /// Sectors a track, and tracks a cylinder.
    pub tracks: Option<(u32, u32)>,
    /// Identity of the disk, by OpenBSD.
    pub uid: Option<[u8; 8]>,
    /// Part of the disk that is OpenBSD's, in sectors.
    pub bounds: Option<(u64, u64)>,
    /// Sectors of the whole disk or slice.
    pub total: Option<u64>,
}

/// The largest number of sectors that a label holds: 48 bits in OpenBSD's (`wide`), 32 in others.
pub(super) fn most(wide: bool) -> u64 {
    if wide { (1 << 48) - 1 } else { u64::from(u32::MAX) }
}

impl Label {
    /// The size of the label in bytes.
    pub(super) fn size(&self) -> usize {
        size(self.entries.len())
    }

    /// True if sizes and offsets have 48 bits.
    pub(super) fn is_wide(&self) -> bool {
        self.version == 1
    }

    /// The largest number that its fields hold.
    pub(super) fn most(&self) -> u64 {
        most(self.is_wide())
    }

    /// Writes `head` and `slots` into the label's `bytes`, with a right checksum.
    pub(super) fn write(&self, bytes: &mut [u8], head: &Head, slots: &[Slot]) {
        if self.big { write::<BE>(bytes, head, slots) } else { write::<LE>(bytes, head, slots) }
    }
}

fn write<O: ByteOrder>(bytes: &mut [u8], head: &Head, slots: &[Slot]) {
    let Ok((d, rest)) = Disklabel::<O>::mut_from_prefix(bytes) else { return };
    let wide = d.d_version.get() == 1;
    put_head(d, head);
    let Ok((parts, _)) = <[Partition<O>]>::mut_from_prefix_with_elems(rest, slots.len()) else {
        return;
    };
    let old = parts.to_vec();
    for (part, slot) in parts.iter_mut().zip(slots) {
        match *slot {
            Slot::Keep => {}
            Slot::Clear => *part = Partition::new_zeroed(),
            Slot::Put { offset, size, fstype, from } => {
                let kept = from.and_then(|i| old.get(i).copied());
                let mut new = kept.unwrap_or_else(Partition::new_zeroed);
                (new.p_offset, new.p_size, new.p_fstype) = (low(offset), low(size), fstype);
                if wide {
                    (new.p_offseth, new.p_sizeh) = (high(offset), high(size));
                }
                *part = new;
            }
        }
    }
    seal(bytes, slots.len());
}

fn put_head<O: ByteOrder>(d: &mut Disklabel<O>, head: &Head) {
    let wide = d.d_version.get() == 1;
    if let Some(sector) = head.sector {
        d.d_secsize = U32::new(sector);
    }
    if let Some((sectors, tracks)) = head.tracks {
        let cylinder = sectors.saturating_mul(tracks);
        (d.d_nsectors, d.d_ntracks, d.d_secpercyl) =
            (U32::new(sectors), U32::new(tracks), U32::new(cylinder));
    }
    if let Some(uid) = head.uid {
        d.d_uid = uid;
    }
    if let Some((start, end)) = head.bounds {
        (d.d_bstart, d.d_bstarth, d.d_bend, d.d_bendh) =
            (low(start), high(start), low(end), high(end));
    }
    if let Some(total) = head.total {
        d.d_secperunit = low(total);
        let cylinders = total.checked_div(u64::from(d.d_secpercyl.get())).unwrap_or(0);
        d.d_ncylinders = low(cylinders.min(u64::from(u32::MAX)));
        if wide {
            d.d_secperunith = high(total);
        }
    }
}

/// The low 32 bits of a number; those that do not fit were refused before.
fn low<O: ByteOrder>(n: u64) -> U32<O> {
    U32::new(u32::try_from(n & u64::from(u32::MAX)).unwrap_or(0))
}

/// The 16 bits of a number above its low 32.
fn high<O: ByteOrder>(n: u64) -> U16<O> {
    U16::new(u16::try_from(n >> 32).unwrap_or(u16::MAX))
}

/// Writes the checksum, which makes the XOR of all words 0. The byte order of words does not matter
/// to it.
fn seal(bytes: &mut [u8], count: usize) {
    let Some(bytes) = bytes.get_mut(..size(count)) else { return };
    bytes[CHECKSUM].fill(0);
    let sum = bytes.chunks_exact(2).fold([0, 0], |a, pair| [a[0] ^ pair[0], a[1] ^ pair[1]]);
    bytes[CHECKSUM].copy_from_slice(&sum);
}

/// Fields of a new label of `count` entries, which every dialect has.
pub(super) struct Blank {
    pub sector: u32,
    pub count: u16,
    pub version: u16,
    pub rpm: u16,
    pub interleave: u16,
    pub sbsize: u32,
}

/// Length in bytes of the boot area, of which the label is a part.
pub(super) const BBSIZE: u32 = 8192;

/// The 512 bytes of a new label, in little-endian order. Its checksum is wrong, so that it differs
/// from the label it becomes once it is written.
pub(super) fn blank(new: &Blank, head: &Head, slots: &[Slot]) -> Vec<u8> {
    let mut d: Disklabel<LE> = Disklabel::new_zeroed();
    (d.d_magic, d.d_magic2, d.d_secsize) = (U32::new(MAGIC), U32::new(MAGIC), U32::new(new.sector));
    (d.d_npartitions, d.d_version) = (U16::new(new.count), U16::new(new.version));
    (d.d_bbsize, d.d_sbsize) = (U32::new(BBSIZE), U32::new(new.sbsize));
    // Two fields of 16 bits, before OpenBSD put one of 32 there.
    d.d_acylinders = U32::new(u32::from(new.rpm) | u32::from(new.interleave) << 16);
    let mut bytes = d.as_bytes().to_vec();
    bytes.resize(512, 0);
    write::<LE>(&mut bytes, head, slots);
    bytes[CHECKSUM].iter_mut().for_each(|b| *b = !*b);
    bytes
}

//! Segments of a logical volume, as a group's text describes them.

use super::super::fault::Fault;
use super::super::text::{Section, Value};
use super::{ExtentAddress, On, SECTOR};
use crate::mapping::raid::shape::RaidShape;
use std::collections::HashMap;

/// Images of one RAID volume, at most: as many as dm-raid takes.
const MOST_IMAGES: u32 = 253;

/// Run of extents of a logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Segment {
    /// First extent of the run.
    pub(in super::super) first: u64,
    /// Number of extents; at least 1.
    pub(in super::super) count: u64,
    /// Places of its bytes.
    pub(in super::super) kind: SegmentKind,
    /// Logical volumes that belong to it and hold none of its bytes, or none that are followed.
    pub(in super::super) with: Vec<ExtentAddress>,
}

/// Type of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum SegmentKind {
    /// Chunks on one place after another; one place alone is linear.
    Striped {
        /// Bytes on one place before the next one follows; 0 for one place alone.
        chunk: u64,
        /// Places, each of as many extents.
        places: Vec<ExtentAddress>,
    },
    /// The same bytes in every place.
    Copies(Vec<ExtentAddress>),
    /// Images of one of dm-raid's levels, with parity or copies.
    Raid(Raid),
    /// Thin pool: a volume of data in blocks, and one of metadata that say whose each is.
    Pool {
        /// Volume with the data.
        data: usize,
        /// Volume with the metadata.
        metadata: usize,
        /// Size of a block in bytes.
        chunk: u64,
        /// Number of the last change that LVM made to the pool.
        transaction: Option<u64>,
    },
    /// Volume of a thin pool.
    Thin {
        /// Volume that is the pool.
        pool: usize,
        /// Number of the volume in the metadata of the pool.
        device: u64,
        /// Volume outside of the pool that has what is not provisioned.
        origin: Option<usize>,
    },
    /// Old snapshot: another volume, but for what was changed since.
    Snapshot {
        /// Volume that it is a snapshot of.
        origin: usize,
        /// Volume that holds what is not the same.
        store: usize,
        /// Size of a chunk in bytes.
        chunk: u64,
    },
    /// Pool of dm-cache: a volume of data, and one of metadata.
    CachePool {
        /// Volume with the data.
        data: usize,
        /// Volume with the metadata.
        metadata: usize,
        /// Size of a chunk in bytes, and when a write is done.
        chunks: (u64, CacheMode),
    },
    /// Volume behind a dm-cache.
    Cached(Cached),
    /// Volume behind a dm-writecache.
    WriteCached {
        /// Volume that is the cache.
        cache: usize,
        /// Volume behind the cache.
        origin: usize,
    },
    /// Image with tags on another volume, by dm-integrity; its data are in their own places.
    Tagged {
        /// Volume with the data.
        origin: usize,
    },
    /// Zeros without a place.
    Zero,
    /// No place: every I/O fails.
    Error,
    /// Type that is not mapped: its name, and what else is worth knowing.
    Other(String),
}

/// Images of a RAID volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Raid {
    /// Type of the segment, as LVM calls it.
    pub(in super::super) word: String,
    /// Level, layout and chunk, as md counts them.
    pub(in super::super) shape: RaidShape,
    /// Volumes with the data of each role.
    pub(in super::super) images: Vec<ExtentAddress>,
    /// Volume with the metadata of each role, if it has any.
    pub(in super::super) metadata: Vec<Option<usize>>,
}

/// Moment at which a write to a cached volume is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum CacheMode {
    /// Once the cache has it: the volume behind may be old.
    Writeback,
    /// Once both have it.
    Writethrough,
    /// Once the volume behind has it; what the cache had of it is dropped.
    Passthrough,
}

impl CacheMode {
    /// Name of the mode, as LVM has it.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            CacheMode::Writeback => "writeback",
            CacheMode::Writethrough => "writethrough",
            CacheMode::Passthrough => "passthrough",
        }
    }
}

/// Volume behind a dm-cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Cached {
    /// Volume behind the cache.
    pub(in super::super) origin: usize,
    /// Pool of the cache, or the one volume that has both of its parts.
    pub(in super::super) pool: usize,
    /// First bytes of the metadata and the data on a pool that is one volume, its chunk in bytes
    /// and its mode; `None` for a pool that says so itself.
    pub(in super::super) parts: Option<([u64; 2], u64, CacheMode)>,
}

impl SegmentKind {
    /// Places on other volumes that hold the bytes at addresses which the text has.
    pub(in super::super) fn places(&self) -> &[ExtentAddress] {
        match self {
            SegmentKind::Striped { places, .. } | SegmentKind::Copies(places) => places,
            SegmentKind::Raid(raid) => &raid.images,
            _ => &[],
        }
    }
}

/// The segments of a volume with extents of `extent` bytes, in ascending order.
pub(super) fn segments(
    lv: &Section<'_>,
    extent: u64,
    names: &HashMap<&str, On>,
) -> Result<Vec<Segment>, Fault> {
    let mut all = Vec::new();
    for (name, section) in lv.sections().filter(|(name, _)| name.starts_with("segment")) {
        all.push(segment(section, extent, names).map_err(|fault| fault.within(name))?);
    }
    all.sort_by_key(|segment| segment.first);
    let mut next = 0u64;
    for segment in &all {
        if segment.first != next {
            return Err(Fault::Gap { first: segment.first, end: next });
        }
        next = next.saturating_add(segment.count);
    }
    if next.checked_mul(extent).is_none_or(|bytes| bytes == 0 || bytes > i64::MAX.unsigned_abs()) {
        return Err(Fault::Size(next, extent));
    }
    Ok(all)
}

fn segment(
    section: &Section<'_>,
    extent: u64,
    names: &HashMap<&str, On>,
) -> Result<Segment, Fault> {
    let number = |key| section.number(key).ok_or(Fault::Without(key));
    let (first, count) = (number("start_extent")?, number("extent_count")?);
    if count == 0 {
        return Err(Fault::Without("extents"));
    }
    let word = section.text("type").ok_or(Fault::Without("type"))?;
    // A compatibility mark stands behind a plus: `cache+CACHE_USES_CACHEVOL`.
    let kind = match word.split('+').next().unwrap_or(word) {
        "striped" | "linear" => {
            striped(pairs(section.list("stripes"), names)?, section, extent, count)?
        }
        "mirror" => SegmentKind::Copies(pairs(section.list("mirrors"), names)?),
        "zero" => SegmentKind::Zero,
        "error" => SegmentKind::Error,
        "raid0" => {
            let images: Result<_, _> =
                section.list("raid0_lvs").iter().map(|name| image(name, names)).collect();
            striped(images?, section, extent, count)?
        }
        "raid0_meta" => striped(images(section.list("raids"), names)?, section, extent, count)?,
        other => match shape(other, section) {
            Some(shape) => raid(other, shape, section, names)?,
            None => {
                mapped(other, section, names).unwrap_or(SegmentKind::Other(named(word, section)))
            }
        },
    };
    // The extents of the text include the room that a reshape takes on every image, and keeps until
    // LVM takes it away.
    let room = match &kind {
        SegmentKind::Raid(raid) => room(&raid.shape, section),
        _ => 0,
    };
    let left = count.checked_sub(room).filter(|&left| left > 0);
    let count = left.ok_or(Fault::Room { room, of: count })?;
    let used = |place: &ExtentAddress| kind.places().iter().any(|own| own.on == place.on);
    let with = mentioned(section, &kind, names).into_iter().filter(|place| !used(place)).collect();
    Ok(Segment { first, count, kind, with })
}

/// Extents of a RAID volume that are a reshape's, which counts them for every image with data:
/// LVM's `_seg_len`.
fn room(shape: &RaidShape, section: &Section<'_>) -> u64 {
    let parity = match shape.level {
        4 | 5 => 1,
        6 => 2,
        _ => 0,
    };
    let each = section.number("reshape_count").unwrap_or(0);
    each.saturating_mul(u64::from(shape.disks.saturating_sub(parity)))
}

/// Stripes of `count` extents of `extent` bytes together.
fn striped(
    places: Vec<ExtentAddress>,
    section: &Section<'_>,
    extent: u64,
    count: u64,
) -> Result<SegmentKind, Fault> {
    let stripes = places.len() as u64;
    if stripes == 0 {
        return Err(Fault::Without("stripes"));
    }
    if stripes == 1 {
        return Ok(SegmentKind::Striped { chunk: 0, places });
    }
    let chunk = section.number("stripe_size").unwrap_or(0).saturating_mul(SECTOR);
    if !count.is_multiple_of(stripes) {
        return Err(Fault::Uneven { extents: count, stripes });
    }
    let on_each = (count / stripes).checked_mul(extent);
    if chunk == 0 || on_each.is_none_or(|bytes| !bytes.is_multiple_of(chunk)) {
        return Err(Fault::Stripe { size: chunk, extent });
    }
    Ok(SegmentKind::Striped { chunk, places })
}

/// Names, each with an extent behind it, as `stripes` and `mirrors` have them.
fn pairs(list: &[Value<'_>], names: &HashMap<&str, On>) -> Result<Vec<ExtentAddress>, Fault> {
    let pair = |pair: &[Value<'_>]| match pair {
        [Value::Text(name), Value::Number(extent)] => {
            let on = *names.get(&**name).ok_or_else(|| Fault::NoVolume(name.to_string()))?;
            let extent =
                u64::try_from(*extent).map_err(|_| Fault::Extent(*extent, name.to_string()))?;
            Ok(ExtentAddress { on, extent })
        }
        _ => Err(Fault::Places),
    };
    list.chunks(2).map(pair).collect()
}

/// Images of a RAID, each behind its metadata.
fn images(list: &[Value<'_>], names: &HashMap<&str, On>) -> Result<Vec<ExtentAddress>, Fault> {
    list.chunks(2).map(|pair| image(pair.get(1).ok_or(Fault::NoImage)?, names)).collect()
}

/// The whole of a volume that is named.
fn image(name: &Value<'_>, names: &HashMap<&str, On>) -> Result<ExtentAddress, Fault> {
    let Value::Text(name) = name else { return Err(Fault::Image) };
    let on = *names.get(&**name).ok_or_else(|| Fault::NoVolume(name.to_string()))?;
    Ok(ExtentAddress { on, extent: 0 })
}

/// Keys of a segment whose values are names of volumes; others have words that may be such names.
const NAMING: [&str; 14] = [
    "cache_pool",
    "cow_store",
    "data",
    "external_origin",
    "merging_store",
    "meta_dev",
    "metadata",
    "mirror_log",
    "origin",
    "pool",
    "raids",
    "thin_pool",
    "vdo_pool",
    "writecache",
];

/// Logical volumes that a section names, each once.
fn mentioned(
    section: &Section<'_>,
    kind: &SegmentKind,
    names: &HashMap<&str, On>,
) -> Vec<ExtentAddress> {
    // A thin snapshot shares blocks with its origin, and does not stand on it.
    let stands = |key: &str| key != "origin" || !matches!(kind, SegmentKind::Thin { .. });
    let entries = section.entries.iter().filter(|(key, _)| NAMING.contains(&&**key) && stands(key));
    let values = entries.flat_map(|(_, value)| match value {
        Value::List(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    });
    let mut found: Vec<ExtentAddress> = Vec::new();
    for value in values {
        let Value::Text(name) = value else { continue };
        let on = names.get(&**name).copied().filter(|on| matches!(on, On::Logical(_)));
        found.extend(
            on.map(|on| ExtentAddress { on, extent: 0 }).filter(|place| !found.contains(place)),
        );
    }
    found
}

/// The level, layout and chunk of a RAID segment, as dm-raid takes its name; `None` for one of
/// another type.
fn shape(word: &str, section: &Section<'_>) -> Option<RaidShape> {
    // LVM 2.03 writes 1 of a raid10 that it reshapes, and takes that for 2.
    let copies = section.number("data_copies").and_then(|n| u32::try_from(n).ok());
    let copies = copies.filter(|&copies| copies > 1).unwrap_or(2);
    let (level, layout) = match word {
        "raid1" => (1, 0),
        // Its parity is on the first image, which md's own RAID4 has on the last.
        "raid4" => (5, 4),
        "raid5_la" => (5, 0),
        "raid5_ra" => (5, 1),
        "raid5" | "raid5_ls" => (5, 2),
        "raid5_rs" => (5, 3),
        "raid5_n" => (5, 5),
        "raid6_n_6" => (6, 5),
        "raid6" | "raid6_zr" => (6, 8),
        "raid6_nr" => (6, 9),
        "raid6_nc" => (6, 10),
        "raid6_la_6" => (6, 16),
        "raid6_ra_6" => (6, 17),
        "raid6_ls_6" => (6, 18),
        "raid6_rs_6" => (6, 19),
        "raid10" | "raid10_near" => (10, 0x100 | copies & 0xff),
        _ => return None,
    };
    // dm-raid's chunk is a number of 32 bits.
    let sectors = section.number("stripe_size").unwrap_or(0);
    let chunk = u64::from(u32::try_from(sectors).ok()?) * SECTOR;
    Some(RaidShape { level, layout, chunk: if level == 1 { 0 } else { chunk }, disks: 0 })
}

/// The images of a RAID segment.
fn raid(
    word: &str,
    shape: RaidShape,
    section: &Section<'_>,
    names: &HashMap<&str, On>,
) -> Result<SegmentKind, Fault> {
    let list = section.list("raids");
    let images = images(list, names)?;
    let disks =
        u32::try_from(images.len()).ok().filter(|&disks| (1..=MOST_IMAGES).contains(&disks));
    let disks = disks.ok_or(Fault::Images(images.len()))?;
    let volume = |value: &Value<'_>| match value {
        Value::Text(name) => logical(name, names),
        _ => None,
    };
    let metadata = list.chunks(2).map(|pair| pair.first().and_then(volume)).collect();
    let (word, shape) = (word.to_owned(), RaidShape { disks, ..shape });
    Ok(SegmentKind::Raid(Raid { word, shape, images, metadata }))
}

/// The logical volume with a name.
fn logical(name: &str, names: &HashMap<&str, On>) -> Option<usize> {
    match names.get(name)? {
        On::Logical(volume) => Some(*volume),
        On::Physical(_) => None,
    }
}

/// A segment whose bytes have their addresses in metadata of their own; `None` if it is of another
/// type, or says too little.
fn mapped(word: &str, section: &Section<'_>, names: &HashMap<&str, On>) -> Option<SegmentKind> {
    let volume = |key| logical(section.text(key)?, names);
    let bytes = |key| section.number(key)?.checked_mul(SECTOR);
    let chunk = || bytes("chunk_size").filter(|&chunk| chunk > 0);
    Some(match word {
        "thin-pool" => SegmentKind::Pool {
            data: volume("pool")?,
            metadata: volume("metadata")?,
            chunk: chunk()?,
            transaction: section.number("transaction_id"),
        },
        "thin" => SegmentKind::Thin {
            pool: volume("thin_pool")?,
            device: section.number("device_id")?,
            origin: match section.text("external_origin") {
                Some(name) => Some(logical(name, names)?),
                None => None,
            },
        },
        "snapshot" => SegmentKind::Snapshot {
            origin: volume("origin")?,
            store: volume("cow_store")?,
            chunk: chunk()?,
        },
        "cache-pool" => SegmentKind::CachePool {
            data: volume("data")?,
            metadata: volume("metadata")?,
            chunks: (chunk()?, mode(section)),
        },
        "cache" => {
            let parts = match (bytes("metadata_start"), bytes("data_start")) {
                (Some(metadata), Some(data)) => Some(([metadata, data], chunk()?, mode(section))),
                _ => None,
            };
            SegmentKind::Cached(Cached {
                origin: volume("origin")?,
                pool: volume("cache_pool")?,
                parts,
            })
        }
        // Without a volume of their own the tags would lie between the data.
        "integrity" => {
            volume("meta_dev").and(Some(SegmentKind::Tagged { origin: volume("origin")? }))?
        }
        "writecache" => {
            SegmentKind::WriteCached { cache: volume("writecache")?, origin: volume("origin")? }
        }
        _ => return None,
    })
}

/// The mode of a cache; LVM's own default where it does not say.
fn mode(section: &Section<'_>) -> CacheMode {
    match section.text("cache_mode") {
        Some("writeback") => CacheMode::Writeback,
        Some("passthrough") => CacheMode::Passthrough,
        _ => CacheMode::Writethrough,
    }
}

/// A segment type that is not mapped, in words.
fn named(word: &str, section: &Section<'_>) -> String {
    let mut words = format!("segment type {word}");
    for (key, name) in [("chunk_size", "chunks"), ("stripe_size", "stripes")] {
        if let Some(bytes) = section.number(key).and_then(|sectors| sectors.checked_mul(SECTOR)) {
            words.push_str(&format!(", {name} of {bytes} bytes"));
        }
    }
    if let Some(mode) = section.text("cache_mode") {
        words.push_str(&format!(", {mode}"));
    }
    words
}

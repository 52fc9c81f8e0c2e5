//! Volume group, as its text metadata describe it.

use super::fault::Fault;
use super::text::{self, Malformed, Section};
use crate::base::escape;
use segment::segments;
use std::collections::HashMap;

mod segment;

pub(super) use segment::{CacheMode, Cached, Raid, Segment, SegmentKind};

/// Size of a sector of the metadata in bytes, whatever the device's are.
pub(super) const SECTOR: u64 = 512;
/// Logical volumes of one group, at most: above any in use, below what would take long to sort out.
const MOST_VOLUMES: usize = 1 << 16;

/// First part of a group's text: what tells which group a physical volume is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Name of the group.
    pub(super) name: String,
    /// Identity of the group.
    pub(super) id: String,
    /// Generation of the text: one more with every change.
    pub(super) seqno: u64,
    /// Identity of every physical volume, in order.
    pub(super) volumes: Vec<String>,
}

impl Head {
    /// The head of `text`; an `Err` says what it lacks, and where.
    pub(super) fn parse(text: &str) -> Result<Head, Malformed> {
        let lacks = |why| Malformed { at: 0, why };
        // LVM writes the logical volumes last: the long part need not be read to know the group.
        let short = text::parse(text, Some("logical_volumes"))?;
        let whole;
        let root = match group(&short).and_then(|(_, vg)| vg.section("physical_volumes")) {
            Some(_) => &short,
            None => {
                whole = text::parse(text, None)?;
                &whole
            }
        };
        let (name, vg) = group(root).ok_or(lacks("it has no volume group"))?;
        let id = vg.text("id").ok_or(lacks("the volume group has no id"))?;
        let seqno = vg.number("seqno").ok_or(lacks("the volume group has no seqno"))?;
        let volumes = vg.section("physical_volumes").into_iter().flat_map(Section::sections);
        let volumes = volumes.map(|(_, pv)| pv.text("id").unwrap_or_default().to_owned()).collect();
        Ok(Head { name: escape::plain(name), id: id.to_owned(), seqno, volumes })
    }
}

/// The first section with an identity, and its name: beside it stand only strings and numbers.
fn group<'t, 'a>(root: &'t Section<'a>) -> Option<(&'t str, &'t Section<'a>)> {
    root.sections().find(|(_, section)| section.get("id").is_some())
}

/// A volume group with its volumes.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Name of the group.
    pub(super) name: String,
    /// Size of an extent in bytes; at least 1.
    pub(super) extent: u64,
    /// Physical volumes, in order.
    pub(super) physical: Vec<Physical>,
    /// Logical volumes, in order, hidden ones among them.
    pub(super) logical: Vec<Logical>,
}

/// Physical volume of a group.
#[derive(Clone, Debug)]
pub(super) struct Physical {
    /// Name within the text: `pv0`.
    pub(super) name: String,
    /// Identity, as its label has it.
    pub(super) id: String,
    /// Path of the device when the text was written.
    pub(super) device: Option<String>,
    /// First byte of extent 0.
    pub(super) start: u64,
    /// True if LVM marked it as missing.
    pub(super) is_missing: bool,
}

/// Logical volume of a group.
#[derive(Clone, Debug)]
pub(super) struct Logical {
    /// Name of the volume.
    pub(super) name: String,
    /// True if it is a volume of its own, not a part of another one.
    pub(super) is_visible: bool,
    /// The reason for which others need what it has, so that it is not written.
    pub(super) kept: Option<&'static str>,
    /// True if a snapshot is being merged into it, so that what it has is in two places.
    pub(super) is_merging: bool,
    /// Segments in ascending order, without gaps; an `Err` says what is wrong with them.
    pub(super) segments: Result<Vec<Segment>, Fault>,
}

/// First extent of a run somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExtentAddress {
    /// Volume that holds it.
    pub(super) on: On,
    /// First extent on that volume.
    pub(super) extent: u64,
}

/// Volume that a segment stands on, as an index in its list of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum On {
    /// Physical volume of the group.
    Physical(usize),
    /// Logical volume of the group.
    Logical(usize),
}

impl Group {
    /// The group that `text` describes; an `Err` says what it lacks. A logical volume that is
    /// described wrongly is kept, and says so.
    pub(super) fn parse(text: &str) -> Result<Group, Fault> {
        let root = text::parse(text, None)?;
        let (name, vg) = group(&root).ok_or(Fault::NoGroup)?;
        let number = |key| vg.number(key).ok_or(Fault::NoNumber { group: name.into(), key });
        let extent = number("extent_size")?
            .checked_mul(SECTOR)
            .filter(|&bytes| bytes > 0)
            .ok_or(Fault::ExtentSize(name.into()))?;
        let physical: Vec<Physical> = vg
            .section("physical_volumes")
            .into_iter()
            .flat_map(Section::sections)
            .map(|(name, pv)| physical(name, pv))
            .collect();
        let volumes: Vec<(&str, &Section<'_>)> = vg
            .section("logical_volumes")
            .into_iter()
            .flat_map(Section::sections)
            .take(MOST_VOLUMES)
            .collect();
        let mut names: HashMap<&str, On> = HashMap::new();
        let logical = volumes.iter().enumerate().map(|(at, (name, _))| (*name, On::Logical(at)));
        // The two lists share no name: a physical volume's has no other use.
        names.extend(logical);
        names.extend(physical.iter().enumerate().map(|(at, pv)| (&*pv.name, On::Physical(at))));
        let logical: Vec<Logical> = volumes
            .iter()
            .map(|(name, lv)| {
                let segments = segments(lv, extent, &names);
                Logical {
                    name: escape::plain(name),
                    is_visible: lv.has("status", "VISIBLE") && !is_pool(&segments),
                    kept: None,
                    is_merging: false,
                    segments,
                }
            })
            .collect();
        let stores: Vec<Changes> = volumes
            .iter()
            .enumerate()
            .filter_map(|(at, (_, lv))| changes(at, lv, &names))
            .collect();
        let mut logical = snapshots(logical, stores);
        // A thin snapshot takes the place of its origin when that is next activated.
        for origin in volumes.iter().filter_map(|(_, lv)| merged(lv, &names)) {
            logical[origin].is_merging = true;
        }
        for origin in external_origins(&logical) {
            logical[origin].kept = Some("thin volumes have what it has");
        }
        Ok(Group { name: escape::plain(name), extent, physical, logical })
    }
}

/// Volumes outside of pools that have what thin volumes do not.
fn external_origins(logical: &[Logical]) -> Vec<usize> {
    let segments = logical.iter().flat_map(|volume| volume.segments.iter().flatten());
    let origins = segments.filter_map(|segment| match segment.kind {
        SegmentKind::Thin { origin, .. } => origin,
        _ => None,
    });
    origins.collect()
}

/// Reason for which a volume with old snapshots is not written.
const SNAPSHOTS: &str = "its old snapshots would have to keep what a write replaces";

/// True for a pool: what it has belongs to the volumes that stand on it.
fn is_pool(segments: &Result<Vec<Segment>, Fault>) -> bool {
    let kind = segments.as_ref().ok().and_then(|all| all.first()).map(|segment| &segment.kind);
    matches!(kind, Some(SegmentKind::Pool { .. } | SegmentKind::CachePool { .. }))
}

/// Logical volumes of an old snapshot, by their places in the list.
struct Changes {
    /// The snapshot as the text has it.
    snapshot: usize,
    /// The volume that holds what was changed.
    store: usize,
    /// The volume that it is a snapshot of.
    origin: Option<usize>,
    /// True if it is being merged into that.
    is_merging: bool,
}

/// The volumes of a snapshot; `None` if `lv`, the one in place `snapshot`, is none.
fn changes(snapshot: usize, lv: &Section<'_>, names: &HashMap<&str, On>) -> Option<Changes> {
    let segment = lv.section("segment1").filter(|s| s.text("type") == Some("snapshot"))?;
    let volume = |name| match names.get(name)? {
        On::Logical(volume) => Some(*volume),
        On::Physical(_) => None,
    };
    let merging = segment.text("merging_store");
    let store = segment.text("cow_store").or(merging).and_then(volume)?;
    let (origin, is_merging) = (segment.text("origin").and_then(volume), merging.is_some());
    Some(Changes { snapshot, store, origin, is_merging })
}

/// The volume that the thin snapshot `lv` is being merged into; `None` for any other volume.
fn merged(lv: &Section<'_>, names: &HashMap<&str, On>) -> Option<usize> {
    let segment = lv.section("segment1").filter(|s| s.text("type") == Some("thin"))?;
    match names.get(segment.text("merge")?)? {
        On::Logical(volume) => Some(*volume),
        On::Physical(_) => None,
    }
}

/// The volumes with snapshots as the kernel shows them: in the text the name is that of the store
/// of changes, and the snapshot is hidden. The store becomes `NAME-cow`.
fn snapshots(mut logical: Vec<Logical>, stores: Vec<Changes>) -> Vec<Logical> {
    for Changes { snapshot, store, origin, is_merging } in stores {
        if let Some(origin) = origin {
            logical[origin].kept = Some(SNAPSHOTS);
            logical[origin].is_merging |= is_merging;
        }
        if snapshot == store {
            continue;
        }
        logical[snapshot].name = logical[store].name.clone();
        logical[snapshot].is_visible = true;
        logical[store].name.push_str("-cow");
        logical[store].is_visible = false;
    }
    logical
}

fn physical(name: &str, pv: &Section<'_>) -> Physical {
    Physical {
        name: name.to_owned(),
        id: pv.text("id").unwrap_or_default().to_owned(),
        device: pv.text("device").filter(|path| !path.is_empty()).map(str::to_owned),
        start: pv.number("pe_start").unwrap_or(0).saturating_mul(SECTOR),
        is_missing: pv.has("status", "MISSING") || pv.has("flags", "MISSING"),
    }
}

impl Logical {
    /// Extents of the volume; 0 if its segments are wrong.
    pub(super) fn extents(&self) -> u64 {
        self.segments
            .as_ref()
            .ok()
            .and_then(|all| all.last())
            .map_or(0, |last| last.first + last.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group of two physical volumes, with these logical ones.
    fn group(volumes: &str) -> Group {
        let text = format!(
            "vg {{ id = \"i\" seqno = 4 extent_size = 8 physical_volumes {{ pv0 {{ id = \"a\" pe_start = 2048 }} pv1 {{ id = \"b\" status = [\"MISSING\"] }} }} logical_volumes {{ {volumes} }} }}"
        );
        let head = Head::parse(&text).unwrap();
        assert_eq!((&*head.name, &*head.id, head.seqno, head.volumes.len()), ("vg", "i", 4, 2));
        Group::parse(&text).unwrap()
    }

    fn lv(segments: &str) -> Result<Vec<Segment>, Fault> {
        group(&format!("a {{ status = [\"VISIBLE\"] {segments} }}")).logical[0].segments.clone()
    }

    #[test]
    fn physical_volumes_have_a_start_and_may_be_missing() {
        let physical = group("").physical;
        assert_eq!((physical[0].start, physical[0].is_missing), (1 << 20, false));
        assert!(physical[1].is_missing);
    }

    #[test]
    fn a_name_cannot_command_a_terminal() {
        let name = &group("a\u{1b}c { }").logical[0].name;
        assert!(!name.contains('\u{1b}'), "{name:?}");
    }

    #[test]
    fn a_volume_may_be_called_as_a_type_is() {
        let own = "segment1 { start_extent = 0 extent_count = 1 type = \"striped\" stripes = \
            [\"pv0\", 0] }";
        let group = group(&format!("striped {{ {own} }}"));
        assert!(group.logical[0].segments.as_ref().unwrap()[0].with.is_empty());
    }

    #[test]
    fn segments_follow_one_another() {
        let segment = |first, rest: &str| {
            format!("segment1 {{ start_extent = {first} extent_count = 2 {rest} }}")
        };
        let linear = "type = \"striped\" stripe_count = 1 stripes = [\"pv1\", 3]";
        let two = format!("{} {}", segment(2, "type = \"zero\""), segment(0, linear));
        let place = ExtentAddress { on: On::Physical(1), extent: 3 };
        assert_eq!(
            lv(&two).unwrap(),
            [
                Segment {
                    first: 0,
                    count: 2,
                    with: Vec::new(),
                    kind: SegmentKind::Striped { chunk: 0, places: vec![place] }
                },
                Segment { first: 2, count: 2, kind: SegmentKind::Zero, with: vec![] },
            ]
        );
        let wrong = |text: &str| lv(text).unwrap_err().to_string();
        assert!(wrong(&segment(1, linear)).contains("begins at extent 1"));
        assert!(wrong("").contains("no possible size"));
        assert!(wrong(&segment(0, "")).contains("no type"));
        assert!(wrong("segment1 { extent_count = 1 }").contains("no start_extent"));
        let stripes = "type = \"striped\" stripes = [\"pv0\", 0, \"pv1\", 0]";
        assert!(wrong(&segment(0, stripes)).contains("a stripe size of 0 bytes"));
        assert!(lv(&segment(0, &format!("{stripes} stripe_size = 4"))).is_ok());
        assert!(wrong(&segment(0, "type = \"striped\" stripes = [\"pv9\", 0]")).contains("pv9"));
        assert!(wrong(&segment(0, "type = \"striped\" stripes = [\"pv0\"]")).contains("no list"));
        let cache = segment(0, "type = \"cache+X\" chunk_size = 128 cache_mode = \"writeback\"");
        let words = "segment type cache+X, chunks of 65536 bytes, writeback".to_string();
        assert_eq!(lv(&cache).unwrap()[0].kind, SegmentKind::Other(words));
        let raid = |room: u64| {
            format!(
                "segment1 {{ start_extent = 0 extent_count = 12 type = \"raid5+RESHAPE\" \
                stripe_size = 128 reshape_count = {room} \
                raids = [\"a\", \"a\", \"a\", \"a\", \"a\", \"a\"] }}"
            )
        };
        // dm-raid's chunk is a number of 32 bits.
        let large = raid(0).replace("= 128", "= 9007199254740992");
        assert!(matches!(lv(&large).unwrap()[0].kind, SegmentKind::Other(_)));
        // Two of three images have data, and each of them has that room.
        assert_eq!(lv(&raid(0)).unwrap()[0].count, 12);
        assert_eq!(lv(&raid(4)).unwrap()[0].count, 4);
        assert!(wrong(&raid(6)).contains("12 extents for a reshape, of 12"));
    }
}

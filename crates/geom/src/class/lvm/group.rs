//! Volume group, as its text metadata describe it.

use super::fault::Fault;
use super::text::{self, Malformed, Section, Value};
use std::collections::HashMap;

/// Size of a sector of the metadata in bytes, whatever the device's are.
const SECTOR: u64 = 512;
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
        Ok(Head { name: name.to_owned(), id: id.to_owned(), seqno, volumes })
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
    /// True if old snapshots of it exist: what a write to it replaces belongs to them.
    pub(super) has_snapshots: bool,
    /// Segments in ascending order, without gaps; an `Err` says what is wrong with them.
    pub(super) segments: Result<Vec<Segment>, Fault>,
}

/// Run of extents of a logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// First extent of the run.
    pub(super) first: u64,
    /// Number of extents; at least 1.
    pub(super) count: u64,
    /// Places of its bytes.
    pub(super) kind: Kind,
    /// Logical volumes that belong to it and hold none of its bytes, or none that are followed.
    pub(super) with: Vec<Place>,
}

/// Type of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Chunks on one place after another; one place alone is linear.
    Striped {
        /// Bytes on one place before the next one follows; 0 for one place alone.
        chunk: u64,
        /// Places, each of as many extents.
        places: Vec<Place>,
    },
    /// The same bytes in every place.
    Copies(Vec<Place>),
    /// Zeros without a place.
    Zero,
    /// No place: every I/O fails.
    Error,
    /// Type that is not mapped: its name, and what else is worth knowing.
    Other(String),
}

/// First extent of a run somewhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
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
            .map(|(name, lv)| Logical {
                name: (*name).to_owned(),
                is_visible: lv.has("status", "VISIBLE"),
                has_snapshots: false,
                segments: segments(lv, extent, &names),
            })
            .collect();
        let stores: Vec<Changes> = volumes
            .iter()
            .enumerate()
            .filter_map(|(at, (_, lv))| changes(at, lv, &names))
            .collect();
        Ok(Group { name: name.to_owned(), extent, physical, logical: snapshots(logical, stores) })
    }
}

/// Logical volumes of an old snapshot, by their places in the list.
struct Changes {
    /// The snapshot as the text has it.
    snapshot: usize,
    /// The volume that holds what was changed.
    store: usize,
    /// The volume that it is a snapshot of.
    origin: Option<usize>,
}

/// The volumes of a snapshot; `None` if `lv`, the one in place `snapshot`, is none.
fn changes(snapshot: usize, lv: &Section<'_>, names: &HashMap<&str, On>) -> Option<Changes> {
    let segment = lv.section("segment1").filter(|s| s.text("type") == Some("snapshot"))?;
    let volume = |name| match names.get(name)? {
        On::Logical(volume) => Some(*volume),
        On::Physical(_) => None,
    };
    let store = segment.text("cow_store").or(segment.text("merging_store")).and_then(volume)?;
    Some(Changes { snapshot, store, origin: segment.text("origin").and_then(volume) })
}

/// The volumes with snapshots as the kernel shows them: in the text the name is that of the store of
/// changes, and the snapshot is hidden. The store becomes `NAME-cow`.
fn snapshots(mut logical: Vec<Logical>, stores: Vec<Changes>) -> Vec<Logical> {
    for Changes { snapshot, store, origin } in stores {
        if let Some(origin) = origin {
            logical[origin].has_snapshots = true;
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

impl Kind {
    /// Places on other volumes.
    pub(super) fn places(&self) -> &[Place] {
        match self {
            Kind::Striped { places, .. } | Kind::Copies(places) => places,
            Kind::Zero | Kind::Error | Kind::Other(_) => &[],
        }
    }
}

/// The segments of a volume with extents of `extent` bytes, in ascending order.
fn segments(
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
        "mirror" => Kind::Copies(pairs(section.list("mirrors"), names)?),
        "zero" => Kind::Zero,
        "error" => Kind::Error,
        "raid1" => Kind::Copies(images(section.list("raids"), names)?),
        "raid0" => {
            let images: Result<_, _> =
                section.list("raid0_lvs").iter().map(|name| image(name, names)).collect();
            striped(images?, section, extent, count)?
        }
        "raid0_meta" => striped(images(section.list("raids"), names)?, section, extent, count)?,
        _ => Kind::Other(named(word, section)),
    };
    let used = |place: &Place| kind.places().iter().any(|own| own.on == place.on);
    let with = mentioned(section, names).into_iter().filter(|place| !used(place)).collect();
    Ok(Segment { first, count, kind, with })
}

/// Stripes of `count` extents of `extent` bytes together.
fn striped(
    places: Vec<Place>,
    section: &Section<'_>,
    extent: u64,
    count: u64,
) -> Result<Kind, Fault> {
    let stripes = places.len() as u64;
    if stripes == 0 {
        return Err(Fault::Without("stripes"));
    }
    if stripes == 1 {
        return Ok(Kind::Striped { chunk: 0, places });
    }
    let chunk = section.number("stripe_size").unwrap_or(0).saturating_mul(SECTOR);
    if !count.is_multiple_of(stripes) {
        return Err(Fault::Uneven { extents: count, stripes });
    }
    let on_each = (count / stripes).checked_mul(extent);
    if chunk == 0 || on_each.is_none_or(|bytes| !bytes.is_multiple_of(chunk)) {
        return Err(Fault::Stripe { size: chunk, extent });
    }
    Ok(Kind::Striped { chunk, places })
}

/// Names, each with an extent behind it, as `stripes` and `mirrors` have them.
fn pairs(list: &[Value<'_>], names: &HashMap<&str, On>) -> Result<Vec<Place>, Fault> {
    let pair = |pair: &[Value<'_>]| match pair {
        [Value::Text(name), Value::Number(extent)] => {
            let on = *names.get(&**name).ok_or_else(|| Fault::NoVolume(name.to_string()))?;
            let extent =
                u64::try_from(*extent).map_err(|_| Fault::Extent(*extent, name.to_string()))?;
            Ok(Place { on, extent })
        }
        _ => Err(Fault::Places),
    };
    list.chunks(2).map(pair).collect()
}

/// Images of a RAID, each behind its metadata.
fn images(list: &[Value<'_>], names: &HashMap<&str, On>) -> Result<Vec<Place>, Fault> {
    list.chunks(2).map(|pair| image(pair.get(1).ok_or(Fault::NoImage)?, names)).collect()
}

/// The whole of a volume that is named.
fn image(name: &Value<'_>, names: &HashMap<&str, On>) -> Result<Place, Fault> {
    let Value::Text(name) = name else { return Err(Fault::Image) };
    let on = *names.get(&**name).ok_or_else(|| Fault::NoVolume(name.to_string()))?;
    Ok(Place { on, extent: 0 })
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
fn mentioned(section: &Section<'_>, names: &HashMap<&str, On>) -> Vec<Place> {
    let entries = section.entries.iter().filter(|(key, _)| NAMING.contains(&&**key));
    let values = entries.flat_map(|(_, value)| match value {
        Value::List(values) => values.as_slice(),
        value => std::slice::from_ref(value),
    });
    let mut found: Vec<Place> = Vec::new();
    for value in values {
        let Value::Text(name) = value else { continue };
        let on = names.get(&**name).copied().filter(|on| matches!(on, On::Logical(_)));
        found.extend(on.map(|on| Place { on, extent: 0 }).filter(|place| !found.contains(place)));
    }
    found
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
    fn a_volume_may_be_called_as_a_type_is() {
        let own = "segment1 { start_extent = 0 extent_count = 1 type = \"striped\" stripes = [\"pv0\", 0] }";
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
        let place = Place { on: On::Physical(1), extent: 3 };
        assert_eq!(
            lv(&two).unwrap(),
            [
                Segment {
                    first: 0,
                    count: 2,
                    with: Vec::new(),
                    kind: Kind::Striped { chunk: 0, places: vec![place] }
                },
                Segment { first: 2, count: 2, kind: Kind::Zero, with: vec![] },
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
        assert_eq!(lv(&cache).unwrap()[0].kind, Kind::Other(words));
    }
}

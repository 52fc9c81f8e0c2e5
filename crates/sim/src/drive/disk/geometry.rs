//! Where a physical sector is: zones of tracks, skewed so that a stream loses no revolution at the end of one.
//!
//! A track is numbered outside in, first the heads of a cylinder, then the next cylinder. Angles are spans of one revolution in
//! picoseconds; the first sector of a track is turned against that of the track before by what it takes to get there. Positions are
//! exact: what ends at one angle and begins at the same one waits for nothing.

use crate::time::Ps;

/// Tracks of one length.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// First physical sector.
    first: u64,
    /// First cylinder.
    cylinder: u64,
    /// Sectors of a track.
    per_track: u64,
}

/// Where a sector begins. It is kept with every dirty extent, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Where on the circle.
    pub(super) angle: Ps,
    /// Cylinder, 0 outermost.
    pub(super) cylinder: u32,
    /// Head.
    pub(super) head: u32,
    /// Which sector of its track.
    pub(super) index: u32,
    /// How many its track has.
    pub(super) per_track: u32,
}

impl Place {
    /// Sectors from here to the end of its track.
    pub(super) fn left_on_track(&self) -> u64 {
        (self.per_track - self.index).into()
    }
}

/// The platters.
#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    /// Cylinders.
    pub(super) cylinders: u64,
    heads: u64,
    /// A revolution.
    pub(super) rev: Ps,
    head_skew: Ps,
    /// By how much one cylinder's first track is turned against that of the cylinder before.
    cylinder_skew: Ps,
}

/// What a geometry is made from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measures {
    /// Physical sectors there must be.
    pub(super) sectors: u64,
    /// Heads.
    pub(super) heads: u64,
    /// Zones.
    pub(super) zones: u64,
    /// Sectors of the outermost track.
    pub(super) outer: u64,
    /// Sectors of the innermost track.
    pub(super) inner: u64,
    /// A revolution.
    pub(super) rev: Ps,
    /// Skew from one head to the next.
    pub(super) head_skew: Ps,
    /// Skew from the last head of a cylinder to the first of the next.
    pub(super) cylinder_skew: Ps,
}

impl Measures {
    /// Sectors of a track of every zone, outside in: equal steps.
    fn tracks(&self) -> impl Iterator<Item = u64> + '_ {
        let steps = self.zones.saturating_sub(1).max(1);
        (0..self.zones).map(move |zone| self.outer - (self.outer - self.inner) * zone / steps)
    }

    /// Cylinders of a zone, the same in all, so that all sectors find room.
    fn cylinders_a_zone(&self) -> u64 {
        let row: u64 = self.tracks().sum::<u64>().saturating_mul(self.heads).max(1);
        self.sectors.div_ceil(row).max(1)
    }

    /// Cylinders in all.
    pub(crate) fn cylinders(&self) -> u64 {
        self.cylinders_a_zone().saturating_mul(self.zones)
    }
}

impl Geometry {
    pub(super) fn new(measures: &Measures) -> Geometry {
        let (each, rev) = (measures.cylinders_a_zone(), measures.rev);
        let mut zones = Vec::new();
        let (mut first, mut cylinder) = (0, 0);
        for per_track in measures.tracks() {
            zones.push(Zone { first, cylinder, per_track });
            first += each * measures.heads * per_track;
            cylinder += each;
        }
        let head_skew = measures.head_skew % rev;
        let cylinder_skew = ((measures.heads - 1) * head_skew + measures.cylinder_skew % rev) % rev;
        Geometry { zones, cylinders: measures.cylinders(), heads: measures.heads, rev, head_skew, cylinder_skew }
    }

    /// Where a sector is.
    pub(super) fn locate(&self, sector: u64) -> Place {
        let after = self.zones.partition_point(|zone| zone.first <= sector).max(1);
        let Zone { first, cylinder, per_track } = self.zones[after - 1];
        let (track, index) = ((sector - first) / per_track, (sector - first) % per_track);
        let (cylinder, head) = (cylinder + track / self.heads, track % self.heads);
        let start = (cylinder * self.cylinder_skew + head * self.head_skew) % self.rev;
        let angle = start + self.arc(index, per_track);
        let angle = if angle >= self.rev { angle - self.rev } else { angle };
        #[allow(clippy::cast_possible_truncation, reason = "cylinders are fewer than 2^24, sectors of a track 2^19")]
        let [cylinder, head, index, per_track] = [cylinder as u32, head as u32, index as u32, per_track as u32];
        Place { angle, cylinder, head, index, per_track }
    }

    /// The angle from the first sector of a track to sector `index`.
    fn arc(&self, index: u64, per_track: u64) -> Ps {
        index * self.rev / per_track
    }

    /// How long `sectors` take to pass from `place` on; on the track of `place`.
    pub(super) fn passing(&self, place: &Place, sectors: u64) -> Ps {
        let (index, per_track) = (place.index.into(), place.per_track.into());
        self.arc(index + sectors, per_track) - self.arc(index, per_track)
    }

    /// How many sectors have wholly passed `span` after `place` did.
    pub(super) fn passed(&self, place: &Place, span: Ps) -> u64 {
        let (index, per_track) = (u64::from(place.index), u64::from(place.per_track));
        let angle = span.min(self.rev) + self.arc(index, per_track);
        // The largest n with arc(n) <= angle, where arc rounds down.
        (((angle + 1) * per_track - 1) / self.rev).saturating_sub(index)
    }
}

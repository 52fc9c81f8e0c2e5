//! The places of physical sectors: zones of tracks, skewed so that a stream loses no revolution
//! between tracks.
//!
//! Tracks are numbered from the outside in, first the heads of a cylinder, then the next cylinder.
//! Angles are times within a revolution, in picoseconds. The first sector of a track is turned
//! against that of the track before by the time of the switch. Positions are exact: an operation
//! that begins at the angle where the last ended waits for nothing.

use crate::time::Ps;

/// A zone of tracks of equal length.
#[derive(Clone, Copy, Debug)]
struct Zone {
    /// The first physical sector.
    first: u64,
    /// The first cylinder of the zone.
    cylinder: u64,
    /// Sectors on a track.
    per_track: u64,
}

/// The place of a sector. Every dirty extent holds one, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SectorPosition {
    /// The angle at which the sector begins, in picoseconds.
    pub(super) angle: Ps,
    /// The cylinder, 0 being the outermost.
    pub(super) cylinder: u32,
    /// The head within the cylinder.
    pub(super) head: u32,
    /// The index of the sector on its track.
    pub(super) index: u32,
    /// The number of sectors on its track.
    pub(super) per_track: u32,
}

impl SectorPosition {
    /// Sectors from this one to the end of its track.
    pub(super) fn left_on_track(&self) -> u64 {
        (self.per_track - self.index).into()
    }
}

/// The geometry of a disk's platters.
#[derive(Debug)]
pub(super) struct Geometry {
    zones: Vec<Zone>,
    /// The number of cylinders.
    pub(super) cylinders: u64,
    heads: u64,
    /// The time of a revolution in picoseconds.
    pub(super) rev: Ps,
    head_skew: Ps,
    /// The angle between the first tracks of two neighbouring cylinders.
    cylinder_skew: Ps,
}

/// The measures that determine a geometry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measures {
    /// The least number of physical sectors.
    pub(super) sectors: u64,
    /// The number of heads.
    pub(super) heads: u64,
    /// The number of zones.
    pub(super) zones: u64,
    /// Sectors on the outermost track.
    pub(super) outer: u64,
    /// Sectors on the innermost track.
    pub(super) inner: u64,
    /// The time of a revolution in picoseconds.
    pub(super) rev: Ps,
    /// The skew from one head to the next, in picoseconds.
    pub(super) head_skew: Ps,
    /// The skew from the last head of a cylinder to the first of the next, in picoseconds.
    pub(super) cylinder_skew: Ps,
}

impl Measures {
    /// Sectors on a track of each zone, from the outside in, in equal steps.
    fn tracks(&self) -> impl Iterator<Item = u64> + '_ {
        let steps = self.zones.saturating_sub(1).max(1);
        (0..self.zones).map(move |zone| self.outer - (self.outer - self.inner) * zone / steps)
    }

    /// Cylinders in a zone, equal for all, enough for all sectors.
    fn cylinders_a_zone(&self) -> u64 {
        let row: u64 = self.tracks().sum::<u64>().saturating_mul(self.heads).max(1);
        self.sectors.div_ceil(row).max(1)
    }

    /// The number of cylinders of all zones.
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
        Geometry {
            zones,
            cylinders: measures.cylinders(),
            heads: measures.heads,
            rev,
            head_skew,
            cylinder_skew,
        }
    }

    /// The place of a physical sector.
    pub(super) fn locate(&self, sector: u64) -> SectorPosition {
        let after = self.zones.partition_point(|zone| zone.first <= sector).max(1);
        let Zone { first, cylinder, per_track } = self.zones[after - 1];
        let (track, index) = ((sector - first) / per_track, (sector - first) % per_track);
        let (cylinder, head) = (cylinder + track / self.heads, track % self.heads);
        let start = (cylinder * self.cylinder_skew + head * self.head_skew) % self.rev;
        let angle = start + self.arc(index, per_track);
        let angle = if angle >= self.rev { angle - self.rev } else { angle };
        #[allow(
            clippy::cast_possible_truncation,
            reason = "cylinders are fewer than 2^24, sectors of a track 2^19"
        )]
        let [cylinder, head, index, per_track] =
            [cylinder as u32, head as u32, index as u32, per_track as u32];
        SectorPosition { angle, cylinder, head, index, per_track }
    }

    /// The angle from the first sector of a track to sector `index`.
    fn arc(&self, index: u64, per_track: u64) -> Ps {
        index * self.rev / per_track
    }

    /// The time in which `sectors` pass under the head, from `place` on; all on its track.
    pub(super) fn passing(&self, place: &SectorPosition, sectors: u64) -> Ps {
        let (index, per_track) = (place.index.into(), place.per_track.into());
        self.arc(index + sectors, per_track) - self.arc(index, per_track)
    }

    /// The number of sectors that have passed completely, `span` after the beginning of `place`
    /// did.
    pub(super) fn passed(&self, place: &SectorPosition, span: Ps) -> u64 {
        let (index, per_track) = (u64::from(place.index), u64::from(place.per_track));
        let angle = span.min(self.rev) + self.arc(index, per_track);
        // The largest n with arc(n) <= angle, where arc rounds down.
        (((angle + 1) * per_track - 1) / self.rev).saturating_sub(index)
    }
}

//! The arm and the platters: one operation at a time, in set-up, seek, settle, rotation and
//! transfer.

use super::geometry::{Geometry, SectorPosition};
use crate::counters::Counters;
use crate::time::{MS, Ps, span};

/// The parts of an operation's duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans {
    pub(super) setup: Ps,
    pub(super) seek: Ps,
    pub(super) rotate: Ps,
    pub(super) transfer: Ps,
}

impl Spans {
    pub(super) fn sum(&self) -> Ps {
        self.setup + self.seek + self.rotate + self.transfer
    }

    /// The parts spent after `elapsed`, in their order.
    pub(super) fn first(&self, elapsed: Ps) -> Spans {
        let setup = self.setup.min(elapsed);
        let seek = self.seek.min(elapsed - setup);
        let rotate = self.rotate.min(elapsed - setup - seek);
        let transfer = self.transfer.min(elapsed - setup - seek - rotate);
        Spans { setup, seek, rotate, transfer }
    }

    pub(super) fn count(&self, counters: &mut Counters) {
        counters.setup += self.setup;
        counters.seek += self.seek;
        counters.rotate += self.rotate;
        counters.transfer += self.transfer;
    }
}

/// The parameters of a mechanism's times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) average_seek_ms: f64,
    pub(super) track_to_track_ms: f64,
    pub(super) head_switch: Ps,
    pub(super) write_settle: Ps,
    pub(super) setup: Ps,
}

/// Cylinders below which seek times are tabulated.
const NEAR: u64 = 2048;

/// The time of a seek over `distance` cylinders. A square root is exact to the last bit on every
/// machine; a logarithm is not.
fn seek(fixed: f64, root: f64, distance: u64) -> Ps {
    if distance == 0 {
        return 0;
    }
    #[allow(clippy::cast_precision_loss, reason = "cylinders are fewer than 2^24")]
    let of_distance = (distance as f64).sqrt();
    span(fixed + root * of_distance, MS)
}

/// The arm over the platters.
#[derive(Debug)]
pub(super) struct Mechanism {
    pub(super) geometry: Geometry,
    times: Times,
    /// A seek over `d` cylinders takes `fixed + root * sqrt(d)`, in ms.
    fixed: f64,
    root: f64,
    /// Times of seeks over the fewest cylinders, which are the most frequent.
    near: Vec<Ps>,
    /// The angle of the platters at time 0.
    phase: Ps,
    cylinder: u32,
    head: u32,
    /// The sector after the last that passed under the head, and true if that was written.
    next: u64,
    writing: bool,
    /// True if the head stopped within a sector, so that no operation can continue from here.
    broken: bool,
    /// Waits of more than half a revolution for a sector that had just passed.
    pub(super) lost: u64,
}

impl Mechanism {
    pub(super) fn new(geometry: Geometry, times: Times, phase: Ps) -> Mechanism {
        // E sqrt|x - y| = 8/15 for x, y uniform in [0, 1]: so is the mean over all pairs of
        // cylinders the average seek, and the shortest the track-to-track.
        #[allow(clippy::cast_precision_loss, reason = "cylinders are fewer than 2^24")]
        let mean_root = (geometry.cylinders as f64).sqrt() * 8.0 / 15.0;
        let root = if mean_root > 1.0 {
            (times.average_seek_ms - times.track_to_track_ms) / (mean_root - 1.0)
        } else {
            0.0
        };
        let fixed = times.track_to_track_ms - root;
        let near = (0..NEAR).map(|distance| seek(fixed, root, distance)).collect();
        Mechanism {
            geometry,
            times,
            fixed,
            root,
            near,
            phase,
            cylinder: 0,
            head: 0,
            next: 0,
            writing: false,
            broken: true,
            lost: 0,
        }
    }

    /// The sector after the last one that passed under the head.
    pub(super) fn next_sector(&self) -> u64 {
        self.next
    }

    /// Forgets the last position: the head stopped within a sector.
    pub(super) fn interrupt(&mut self) {
        self.broken = true;
    }

    /// Sets the last position, after an operation was cut short at the end of a sector.
    pub(super) fn stop_at(&mut self, sector: u64) {
        self.next = sector;
    }

    /// The time of a seek over `distance` cylinders.
    pub(super) fn seek(&self, distance: u64) -> Ps {
        let near = usize::try_from(distance).ok().and_then(|distance| self.near.get(distance));
        near.copied().unwrap_or_else(|| seek(self.fixed, self.root, distance))
    }

    /// The time to move from the current track to another.
    fn reach(&self, cylinder: u32, head: u32, write: bool) -> Ps {
        if cylinder != self.cylinder {
            self.seek(cylinder.abs_diff(self.cylinder).into())
                + if write { self.times.write_settle } else { 0 }
        } else if head != self.head {
            self.times.head_switch
        } else {
            0
        }
    }

    /// The angle under the heads at time `at`.
    pub(super) fn angle(&self, at: Ps) -> Ps {
        (at + self.phase) % self.geometry.rev
    }

    /// The time until `angle` comes under the heads, if `now` is there.
    fn wait(&self, now: Ps, angle: Ps) -> Ps {
        if angle >= now { angle - now } else { angle + self.geometry.rev - now }
    }

    /// True if an operation continues where the last one ended, and so needs no set-up.
    pub(super) fn continues(&self, sector: u64, write: bool) -> bool {
        sector == self.next && write == self.writing && !self.broken
    }

    /// The time from `at` until the head can begin at `sector`, whose place is `place`.
    pub(super) fn cost(&self, at: Ps, sector: u64, place: &SectorPosition, write: bool) -> Ps {
        let ready = self.ready(place, self.continues(sector, write), write);
        self.first(self.round(self.angle(at), place), ready)
    }

    /// The time of set-up and seek, after which the head waits for the sector.
    pub(super) fn ready(&self, place: &SectorPosition, continues: bool, write: bool) -> Ps {
        let setup = if continues { 0 } else { self.times.setup };
        setup + self.reach(place.cylinder, place.head, write)
    }

    /// The time until a sector comes round, if `angle` is under the heads now: less than a
    /// revolution, regardless of the arm.
    pub(super) fn round(&self, angle: Ps, place: &SectorPosition) -> Ps {
        self.wait(angle, place.angle)
    }

    /// The first time at or after `ready` at which a sector that comes round at `round` does so.
    pub(super) fn first(&self, round: Ps, ready: Ps) -> Ps {
        // Most sectors are ready within two revolutions, which costs less than a division.
        let rev = self.geometry.rev;
        if round >= ready {
            round
        } else if round + rev >= ready {
            round + rev
        } else {
            round + (ready - round).div_ceil(rev) * rev
        }
    }

    /// A bound on cylinders that a write cannot reach within `span`, set-up included. It may be
    /// somewhat above the least.
    pub(super) fn beyond(&self, span: Ps) -> u32 {
        let left = span.saturating_sub(self.times.setup + self.times.write_settle);
        #[allow(clippy::cast_precision_loss, reason = "a bound, to which a cylinder is added")]
        let root = (left as f64 / MS as f64 - self.fixed).max(0.0) / self.root;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates, and without a root there is no bound"
        )]
        let crossed = (root * root * 1.000_001) as u32;
        if self.root > 0.0 { crossed.saturating_add(1) } else { u32::MAX }
    }

    /// The cylinder that the arm is on.
    pub(super) fn cylinder(&self) -> u32 {
        self.cylinder
    }

    /// Makes a pass over the sectors `from..to`, starting at `at`. `again`: it belongs to the
    /// operation before and needs no set-up.
    pub(super) fn pass(&mut self, at: Ps, from: u64, to: u64, write: bool, again: bool) -> Spans {
        let mut spans = Spans::default();
        let continues = self.continues(from, write);
        if !continues && !again {
            spans.setup = self.times.setup;
        }
        let mut sector = from;
        while sector < to {
            let place = self.geometry.locate(sector);
            spans.seek += self.reach(place.cylinder, place.head, write);
            (self.cylinder, self.head) = (place.cylinder, place.head);
            let wait = self.wait(self.angle(at + spans.sum()), place.angle);
            if wait > self.geometry.rev / 2 && (continues || again || sector > from) {
                self.lost += 1;
            }
            spans.rotate += wait;
            let sectors = place.left_on_track().min(to - sector);
            spans.transfer += self.geometry.passing(&place, sectors);
            sector += sectors;
        }
        (self.next, self.writing, self.broken) = (to, write, false);
        spans
    }
}

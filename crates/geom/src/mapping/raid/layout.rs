//! Places of a set's bytes on its members, as Linux computes them: roles and member addresses,
//! without regard to which members are there.

use super::fault::Fault;
use crate::base::size::PAGE;
use crate::base::topology::{Source, Topology, round_down};
use crate::mapping::raid::shape::RaidShape;
pub use copies::Copies;
pub use parity::{Parity, Row};

pub mod copies;
pub mod parity;

/// Layouts of a RAID0 of several zones: original, alternate.
const RAID0_ORIG: u32 = 1;
const RAID0_ALT_MULTIZONE: u32 = 2;

/// Place of every byte of a set, for one shape of it.
#[derive(Clone, Debug)]
pub enum Layout {
    /// One member after another.
    Linear(Linear),
    /// Chunks on one member after another, in zones.
    Zones(Zones),
    /// The same on every member.
    Mirror(Mirror),
    /// Chunks, and their parity.
    Parity(Parity),
    /// Chunks in several copies (RAID10).
    Copies(Copies),
}

impl Layout {
    /// The layout of a set of `shape` over members of `rooms` bytes each by number, of which it
    /// uses `size` (0: all of them).
    pub fn new(shape: &RaidShape, size: u64, rooms: &[u64]) -> Result<Layout, Fault> {
        let RaidShape { level, layout, chunk, disks } = *shape;
        let disks = u64::from(disks);
        let power = |least: u64| chunk.is_power_of_two() && chunk >= least;
        match level {
            -1 => Linear::new(rooms, chunk).map(Layout::Linear),
            0 if chunk == 0 || !chunk.is_multiple_of(512) => Err(Fault::Chunk(chunk)),
            0 => Zones::new(rooms, chunk, layout).map(Layout::Zones),
            1 => Ok(Layout::Mirror(Mirror { order: (0..rooms.len()).collect(), length: size })),
            4..=6 if !power(PAGE) => Err(Fault::Chunk(chunk)),
            4..=6 => Parity::new(level, layout, disks, chunk, size).map(Layout::Parity),
            10 if !power(PAGE) => Err(Fault::Chunk(chunk)),
            10 => Copies::new(layout, disks, chunk, size).map(Layout::Copies),
            -4 | -5 => Err(Fault::NoStorage),
            _ => Err(Fault::Level(level)),
        }
    }

    /// Length of the set in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Layout::Linear(linear) => linear.ends.last().copied().unwrap_or(0),
            Layout::Zones(zones) => zones.length,
            Layout::Mirror(mirror) => mirror.length,
            Layout::Parity(parity) => parity.length,
            Layout::Copies(copies) => copies.length,
        }
    }

    /// Copies of every byte.
    pub fn copies(&self) -> usize {
        match self {
            Layout::Linear(_) | Layout::Zones(_) | Layout::Parity(_) => 1,
            Layout::Mirror(mirror) => mirror.order.len(),
            Layout::Copies(copies) => copies.count(),
        }
    }

    /// Role, and byte of the data there, of copy `nth` of byte `x` of the set.
    pub fn place(&self, x: u64, nth: usize) -> (usize, u64) {
        match self {
            Layout::Linear(linear) => linear.place(x),
            Layout::Zones(zones) => zones.place(x),
            Layout::Mirror(mirror) => (mirror.order.get(nth).copied().unwrap_or(0), x),
            Layout::Parity(parity) => parity.place(x),
            Layout::Copies(copies) => copies.place(x, nth),
        }
    }

    /// Bytes from `x` on that lie one after another on the same members.
    pub fn run(&self, x: u64) -> u64 {
        let chunk = match self {
            Layout::Linear(linear) => return linear.run(x),
            Layout::Mirror(mirror) => return mirror.length.saturating_sub(x),
            Layout::Zones(zones) => zones.chunk,
            Layout::Parity(parity) => parity.chunk,
            Layout::Copies(copies) => copies.chunk,
        };
        chunk - x % chunk
    }

    /// The topology of the set, given those of the data of all members in order of their roles.
    pub fn topology(&self, below: &[Topology], length: u64) -> Topology {
        match self {
            Layout::Linear(linear) => {
                let starts: Vec<u64> = std::iter::once(0)
                    .chain(linear.ends.iter().copied())
                    .take(below.len())
                    .collect();
                Topology::concat(below, &starts, length)
            }
            Layout::Zones(zones) => zones.topology(below),
            Layout::Mirror(_) => Topology::mirror(below, length),
            Layout::Parity(p) => Topology::parity(below, p.chunk, p.data(), length),
            Layout::Copies(c) => Topology::copies(below, c.rows(), length),
        }
    }
}

/// Members one after another, each cut to whole chunks.
#[derive(Clone, Debug)]
pub struct Linear {
    /// Byte of the set at which each member ends.
    ends: Vec<u64>,
}

impl Linear {
    fn new(rooms: &[u64], chunk: u64) -> Result<Linear, Fault> {
        let mut end = 0u64;
        let mut ends = Vec::new();
        for &room in rooms {
            end = end
                .checked_add(round_down(room, chunk))
                .filter(|&sum| sum > end)
                .ok_or(Fault::NoChunk)?;
            ends.push(end);
        }
        Ok(Linear { ends })
    }

    fn member(&self, x: u64) -> usize {
        self.ends.partition_point(|&end| end <= x)
    }

    fn place(&self, x: u64) -> (usize, u64) {
        let at = self.member(x);
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        (at, x - start.unwrap_or(0))
    }

    fn run(&self, x: u64) -> u64 {
        self.ends.get(self.member(x)).map_or(0, |end| end - x)
    }
}

/// Chunks on one member after another: in the first zone on all members, up to the end of the
/// shortest, in the next on those that are longer.
#[derive(Clone, Debug)]
pub struct Zones {
    chunk: u64,
    length: u64,
    /// True if each zone counts its chunks from its own first; false if from the set's.
    alternate: bool,
    zones: Vec<Zone>,
}

#[derive(Clone, Debug)]
struct Zone {
    /// Byte of the set after its last.
    end: u64,
    /// Byte of each member at which it begins.
    start: u64,
    /// Roles of the members in it, in order.
    members: Vec<usize>,
}

impl Zones {
    /// The zones of members of `rooms` bytes each, with RAID0's number of a layout.
    pub fn new(rooms: &[u64], chunk: u64, layout: u32) -> Result<Zones, Fault> {
        let whole: Vec<u64> = rooms.iter().map(|&room| round_down(room, chunk)).collect();
        let (mut zones, mut start, mut end) = (Vec::new(), 0, 0u64);
        loop {
            let members: Vec<usize> =
                (0..whole.len()).filter(|&member| whole[member] > start).collect();
            let Some(next) = members.iter().map(|&member| whole[member]).min() else { break };
            let length = (next - start).checked_mul(members.len() as u64);
            end = length.and_then(|n| end.checked_add(n)).ok_or(Fault::TooLarge)?;
            zones.push(Zone { end, start, members });
            start = next;
        }
        if zones.first().is_none_or(|zone| zone.members.len() != rooms.len()) {
            return Err(Fault::NoChunk);
        }
        if zones.len() > 1 && ![RAID0_ORIG, RAID0_ALT_MULTIZONE].contains(&layout) {
            return Err(Fault::Unsaid);
        }
        // Linux masks sectors with those of a chunk less one, whatever the chunk: where that is no
        // power of two, the set ends before its last chunks.
        let masked = |&room: &u64| ((room / 512) & !(chunk / 512 - 1)) * 512;
        let length = if chunk.is_power_of_two() { end } else { whole.iter().map(masked).sum() };
        Ok(Zones { chunk, length, alternate: layout == RAID0_ALT_MULTIZONE, zones })
    }

    /// The zone of byte `x`, and the first byte of that on the set.
    fn zone(&self, x: u64) -> (&Zone, u64) {
        let at = self.zones.partition_point(|zone| zone.end <= x).min(self.zones.len() - 1);
        let start = at.checked_sub(1).map_or(0, |before| self.zones[before].end);
        (&self.zones[at], start)
    }

    fn place(&self, x: u64) -> (usize, u64) {
        let (zone, first) = self.zone(x);
        let members = zone.members.len() as u64;
        let (n, within) = ((x - first) / self.chunk, x % self.chunk);
        let counted = if self.alternate { n } else { x / self.chunk };
        // Below the number of members.
        let turn = usize::try_from(counted % members).unwrap_or(0);
        (zone.members[turn], zone.start + n / members * self.chunk + within)
    }

    fn topology(&self, below: &[Topology]) -> Topology {
        let (mut starts, mut parts, mut first) = (Vec::new(), Vec::new(), 0);
        for zone in &self.zones {
            let length = zone.end.min(self.length).saturating_sub(first);
            if length == 0 {
                break;
            }
            let turn = if self.alternate { 0 } else { first / self.chunk };
            let members: Vec<Topology> = (0..zone.members.len() as u64)
                .filter_map(|at| {
                    let at = usize::try_from((turn + at) % zone.members.len() as u64).ok()?;
                    let member = below.get(*zone.members.get(at)?)?;
                    Some(member.shift(zone.start, member.length.saturating_sub(zone.start)))
                })
                .collect();
            starts.push(first);
            parts.push(Topology::stripe(&members, self.chunk, length, Source::Label));
            first = zone.end;
        }
        match parts.as_slice() {
            [one] => one.clone(),
            _ => Topology::concat(&parts, &starts, self.length).without_clashing(),
        }
    }
}

/// The same bytes on every member.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Roles in the order in which they are read.
    pub order: Vec<usize>,
    length: u64,
}

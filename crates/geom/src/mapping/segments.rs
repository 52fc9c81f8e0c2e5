//! Geom of one logical volume: pieces one after another, each somewhere else.

use crate::base::topology::{Clash, Source, Topology};
use crate::mapping::geom::{Extent, Geom, Op, Slot};

/// Logical volume of pieces. One plain range of one consumer folds, as a slice does.
pub struct Segments {
    name: String,
    pieces: Vec<Piece>,
    length: u64,
    read_only: Option<&'static str>,
}

/// Run of bytes of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// First byte of the run on the volume.
    start: u64,
    /// Length of the run in bytes; at least 1.
    length: u64,
    /// Places of its bytes.
    on: Places,
}

/// Places of the bytes of a run; each place is a consumer and the first byte there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Places {
    /// One after another in chunks of so many bytes, of which the run is whole rows. One place
    /// alone has no chunks.
    Striped(u64, Vec<(usize, u64)>),
    /// In each the same.
    Copies(Vec<(usize, u64)>),
    /// Zeros without a place.
    Zero,
    /// Nowhere: every I/O fails.
    Fail,
}

impl Places {
    fn all(&self) -> &[(usize, u64)] {
        match self {
            Places::Striped(_, all) | Places::Copies(all) => all,
            Places::Zero | Places::Fail => &[],
        }
    }
}

impl Segments {
    /// The volume of these runs with their lengths in bytes; `None` if it would be empty or too
    /// large. A run that goes on where the one before ends is joined to it.
    pub fn new(name: String, runs: impl IntoIterator<Item = (u64, Places)>) -> Option<Segments> {
        let (mut pieces, mut start) = (Vec::<Piece>::new(), 0u64);
        for (length, on) in runs {
            let end = start.checked_add(length).filter(|_| length > 0)?;
            match pieces.last_mut() {
                Some(last) if last.goes_on_in(&on) => last.length += length,
                _ => pieces.push(Piece { start, length, on }),
            }
            start = end;
        }
        (start > 0).then_some(Segments { name, pieces, length: start, read_only: None })
    }

    /// The same volume, which is not written for this reason; it then folds no more.
    #[must_use]
    pub fn read_only_for(self, reason: Option<&'static str>) -> Segments {
        Segments { read_only: reason, ..self }
    }

    fn at(&self, offset: u64) -> &Piece {
        let next = self.pieces.partition_point(|piece| piece.start <= offset);
        // The first piece begins at byte 0.
        &self.pieces[next.saturating_sub(1)]
    }
}

impl Piece {
    /// True if `next` begins where this ends, in its one place.
    fn goes_on_in(&self, next: &Places) -> bool {
        match (&self.on, next) {
            (Places::Striped(_, own), Places::Striped(_, next)) => match (&own[..], &next[..]) {
                (&[(own, at)], &[(next, to)]) => {
                    own == next && at.checked_add(self.length) == Some(to)
                }
                _ => false,
            },
            (Places::Zero, Places::Zero) | (Places::Fail, Places::Fail) => true,
            _ => false,
        }
    }

    fn topology(&self, below: &[Topology]) -> Topology {
        let share = self.length / (self.on.all().len().max(1) as u64);
        let part = |&(consumer, at): &(usize, u64), length| {
            below.get(consumer).map(|under| under.shift(at, length))
        };
        let named = |mut top: Topology, own: &[Topology]| {
            for clash in top.clashes.iter_mut().filter(|clash| is_new(clash, own)) {
                clash.member = self.on.all().get(clash.member).map_or(0, |(consumer, _)| *consumer);
            }
            top
        };
        match &self.on {
            Places::Striped(_, one) if one.len() == 1 => part(&one[0], self.length),
            Places::Striped(chunk, all) => {
                let own: Vec<Topology> = all.iter().filter_map(|at| part(at, share)).collect();
                Some(named(Topology::stripe(&own, *chunk, self.length, Source::Label), &own))
            }
            Places::Copies(all) => {
                let own: Vec<Topology> =
                    all.iter().filter_map(|at| part(at, self.length)).collect();
                Some(named(Topology::mirror(&own, self.length), &own))
            }
            Places::Zero | Places::Fail => None,
        }
        .unwrap_or_else(|| Topology::new(1, self.length))
    }
}

/// True if the clash is none of what a set stands on, so that its member is one of the set's.
fn is_new(clash: &Clash, below: &[Topology]) -> bool {
    !below.iter().any(|under| under.clashes.contains(clash))
}

impl Geom for Segments {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        if let [piece] = &self.pieces[..] {
            return piece.topology(below);
        }
        let parts: Vec<Topology> = self.pieces.iter().map(|piece| piece.topology(below)).collect();
        let starts: Vec<u64> = self.pieces.iter().map(|piece| piece.start).collect();
        let mut top = Topology::concat(&parts, &starts, self.length);
        for clash in top.clashes.iter_mut().filter(|clash| is_new(clash, &parts)) {
            let places = self.pieces.get(clash.member).map_or(&[][..], |piece| piece.on.all());
            clash.member = places.first().map_or(0, |(consumer, _)| *consumer);
        }
        top
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        if op == Op::Write && self.read_only.is_some() {
            return Extent::ReadOnly { length };
        }
        let piece = self.at(offset);
        let within = offset - piece.start;
        let length = length.min(piece.length - within);
        match &piece.on {
            Places::Striped(_, one) if one.len() == 1 => {
                Extent::At { consumer: one[0].0, offset: one[0].1 + within, length }
            }
            Places::Striped(chunk, all) => {
                let stripes = all.len() as u64;
                let (n, in_chunk) = (within / chunk, within % chunk);
                let (row, nth) = (n / stripes, n % stripes);
                let (consumer, at) = all[usize::try_from(nth).unwrap_or(0)];
                Extent::At {
                    consumer,
                    offset: at + row * chunk + in_chunk,
                    length: length.min(chunk - in_chunk),
                }
            }
            Places::Copies(all) => Extent::Copies { count: all.len(), length },
            Places::Zero => Extent::Zero { length },
            Places::Fail => Extent::Fail { length },
        }
    }

    fn copy(&self, _slot: usize, offset: u64, nth: usize) -> (usize, u64) {
        let piece = self.at(offset);
        // Copies are asked for by the count that was answered.
        let (consumer, at) = piece.on.all().get(nth).copied().unwrap_or((usize::MAX, 0));
        (consumer, at + (offset - piece.start))
    }

    fn shift(&self, _slot: usize) -> Option<u64> {
        match &self.pieces[..] {
            [Piece { on: Places::Striped(_, one), .. }]
                if one.len() == 1 && self.read_only.is_none() =>
            {
                Some(one[0].1)
            }
            _ => None,
        }
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        self.read_only
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A volume that folded would be written past its own word.
    #[test]
    fn a_volume_that_is_not_written_does_not_fold() {
        let volume = || {
            let runs = [(8192, Places::Striped(0, vec![(0, 4096)]))];
            Segments::new("vg/lv".into(), runs).unwrap()
        };
        assert_eq!((volume().shift(0), volume().read_only(0)), (Some(4096), None));
        let kept = volume().read_only_for(Some("of its snapshots"));
        assert_eq!((kept.shift(0), kept.read_only(0)), (None, Some("of its snapshots")));
        assert_eq!(kept.map(0, 0, 512, Op::Write), Extent::ReadOnly { length: 512 });
        let place = Extent::At { consumer: 0, offset: 4096, length: 512 };
        assert_eq!(kept.map(0, 0, 512, Op::Read), place);
    }
}

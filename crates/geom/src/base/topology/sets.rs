//! Boundaries of sets with parity, and of sets with copies in several places.

use super::{Fact, Grain, Source, Topology, Trust, Why};

/// Rows of a set with copies of each chunk (RAID10), as far as they decide alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Chunk of the set in bytes.
    pub chunk: u64,
    /// Bytes of the set after which its rows repeat.
    pub row: u64,
    /// Bytes of every member that such a row takes in one place.
    pub span: u64,
    /// Places of a member in which it does.
    pub places: u64,
    /// Bytes of a member from one such place to the next.
    pub stride: u64,
}

impl Rows {
    /// The class that the grain of one member allows for the set; `None` if no row begins on it in
    /// every place.
    fn lift(self, grain: Grain) -> Option<Grain> {
        if self.row == self.chunk && self.places == 1 {
            // A mirror: the set's addresses are the member's.
            return Some(grain);
        }
        if self.chunk.is_multiple_of(grain.size) {
            return (grain.phase == 0).then_some(grain);
        }
        let first = Grain::new(self.span, 0)?.intersect(grain)?;
        let rows = (1..self.places).try_fold(first, |rows, place| {
            rows.intersect(grain.shift(self.stride.checked_mul(place)?))
        })?;
        let scaled = |bytes: u64| (bytes / self.span).checked_mul(self.row);
        Grain::new(scaled(rows.size)?, scaled(rows.phase)?)
    }
}

impl Topology {
    /// The topology of a set with parity in chunks of `chunk` bytes, `data` of them in a row, over
    /// `below`; adds the chunk and the full stripe.
    ///
    /// Its promise holds for the parity too, which every write changes: at the same bytes of its chunk
    /// as the data. A unit that divides the chunk is never cut. One that does not is whole
    /// where the rows that a write fills begin and end on it, and their parity with them.
    pub fn parity(below: &[Topology], chunk: u64, data: u64, length: u64) -> Topology {
        let lift = |grain: Grain| grain.stretch(chunk, data).ok_or(grain.remainder(0));
        let mut top = Topology::combine(below, length, |_, grain| lift(grain));
        // A write that fails half-way may have changed the data and not their parity.
        top.facts.retain(|fact| fact.why != Why::Atomic);
        top.in_chunks(chunk, chunk.checked_mul(data), Why::FullStripe)
    }

    /// The topology of a set with copies of each chunk over `below`; adds the chunk and the row.
    ///
    /// Members that begin off their units clash, also where only some of them do and the copies of
    /// an odd number of members would leave them a class.
    pub fn copies(below: &[Topology], rows: Rows, length: u64) -> Topology {
        let lift = |grain: Grain| rows.lift(grain).ok_or(grain.remainder(0));
        Topology::combine(below, length, |_, grain| lift(grain)).in_chunks(
            rows.chunk,
            Some(rows.row),
            Why::Row,
        )
    }

    /// This topology without the promises of a kind that clashes in some part of it, and with one
    /// clash of each kind.
    pub(crate) fn without_clashing(mut self) -> Topology {
        let clashes = std::mem::take(&mut self.clashes);
        for clash in clashes {
            if self.clashes.iter().all(|own| own.why != clash.why) {
                self.facts.retain(|fact| fact.why != clash.why);
                self.clashes.push(clash);
            }
        }
        self
    }

    /// This topology with the chunk and the row of a set, which take the place of its members'.
    fn in_chunks(mut self, chunk: u64, row: Option<u64>, why: Why) -> Topology {
        let fact = |why, size| {
            let grain = Grain::new(size, 0)?;
            Some(Fact { grain, why, source: Source::Label, trust: Trust::Trusted })
        };
        self.facts.extend(fact(Why::Chunk, chunk));
        self.facts.extend(row.and_then(|row| fact(why, row)));
        self
    }
}

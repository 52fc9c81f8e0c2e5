//! Boundaries of sets: stripes, mirrors, members one after another, rows with parity, rows of
//! copies.

use super::{Clash, Fact, Grain, Source, Topology, Trust, Why, gcd, lcm};

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
    /// The topology of a stripe in chunks of `chunk` bytes over `below`, each cut to whole chunks;
    /// adds the chunk and the row.
    pub fn stripe(below: &[Topology], chunk: u64, length: u64, source: Source) -> Topology {
        let members = u64::try_from(below.len()).unwrap_or(u64::MAX);
        let mut top = Topology::combine(below, length, |_, grain| {
            grain.stretch(chunk, members).ok_or(grain.remainder(0))
        });
        for fact in &mut top.facts {
            let grains: Vec<(u64, Grain)> = (0..)
                .zip(below)
                .flat_map(|(i, t)| t.grains(fact.why).map(move |g| (i, g)))
                .collect();
            fact.grain = fact.grain.tighten(chunk, members, &grains);
        }
        let of = |size| Grain::new(size, 0);
        for (why, grain) in
            [(Why::Chunk, of(chunk)), (Why::Row, chunk.checked_mul(members).and_then(of))]
        {
            top.facts.extend(grain.map(|grain| Fact { grain, why, source, trust: Trust::Trusted }));
        }
        top
    }

    /// Every believed grain of one purpose.
    fn grains(&self, why: Why) -> impl Iterator<Item = Grain> {
        self.facts
            .iter()
            .filter(move |f| f.why == why && f.trust > Trust::Untrusted)
            .map(|f| f.grain)
    }

    /// The topology of a mirror over `below`: the boundaries that all members share.
    pub fn mirror(below: &[Topology], length: u64) -> Topology {
        Topology::combine(below, length, |_, grain| Ok(grain))
    }

    /// The topology of members one after another; member `i` begins at `starts[i]` and ends where
    /// the next begins.
    ///
    /// An I/O across a seam begins member `i` at its byte 0 and ends the one before at its last, so
    /// both must be on the grain, or that member clashes.
    pub fn concat(below: &[Topology], starts: &[u64], length: u64) -> Topology {
        let last = below.len().saturating_sub(1);
        Topology::combine(below, length, |i, grain| {
            let start = starts.get(i).copied().unwrap_or(length);
            let end = starts.get(i + 1).copied().unwrap_or(length);
            let (before, after) = (grain.remainder(0), grain.remainder(end.saturating_sub(start)));
            // The outer ends of the set are no seams: no I/O crosses them.
            match (i == 0 || before == 0, i == last || after == 0) {
                (false, _) => Err(before),
                (_, false) => Err(after),
                // The member's address 0 is the set's address `start`: a slice's shift, the other
                // way round.
                _ => Ok(grain.shift(grain.size - start % grain.size)),
            }
        })
    }

    /// Intersects the grains that `lift` makes of each member's facts, purpose by purpose. An `Err`
    /// is the member's distance past the boundary in bytes.
    pub(super) fn combine(
        below: &[Topology],
        length: u64,
        lift: impl Fn(usize, Grain) -> Result<Grain, u64>,
    ) -> Topology {
        let sector = below.iter().try_fold(1, |a, t| lcm(a, t.sector)).unwrap_or(1);
        let mut top = Topology::new(sector, length);
        for clash in below.iter().flat_map(|t| &t.clashes) {
            if !top.clashes.contains(clash) {
                top.clashes.push(*clash);
            }
        }
        // The convention for starts of partitions on a drive says nothing of a set.
        // A boundary that one of them has lost to a clash is lost for all of them.
        let lost = |why| {
            below.iter().any(|t| {
                t.clashes.iter().any(|clash| clash.why == why) && t.grains(why).next().is_none()
            })
        };
        for why in Why::ALL.into_iter().filter(|&why| why != Why::Convention && !lost(why)) {
            let of_why =
                below.iter().enumerate().flat_map(|(i, t)| t.facts.iter().map(move |f| (i, f)));
            let mut believed = of_why.filter(|(_, f)| f.why == why && f.trust > Trust::Untrusted);
            let joined = believed.try_fold(None, |so_far, (member, fact)| {
                // Rows may be compared, of which a unit is a part.
                let clash = |remainder: u64| {
                    let unit = fact.grain.size;
                    Clash { why, unit, member, remainder: remainder % unit }
                };
                join(so_far, Fact { grain: lift(member, fact.grain).map_err(clash)?, ..*fact })
                    .map(Some)
                    .map_err(clash)
            });
            match joined {
                Ok(fact) => top.facts.extend(fact),
                Err(clash) => top.clashes.push(clash),
            }
        }
        top
    }

    /// The topology of a set with parity in chunks of `chunk` bytes, `data` of them in a row, over
    /// `below`; adds the chunk and the full stripe.
    ///
    /// Its promise holds for the parity too, which every write changes: at the same bytes of its
    /// chunk as the data. A unit that divides the chunk is never cut. One that does not is whole
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

    /// The topology of `length` bytes in chunks of `chunk` bytes, each on any multiple of that from
    /// `base` on; adds the chunk.
    #[must_use]
    pub fn in_chunks_anywhere(&self, base: u64, chunk: u64, length: u64) -> Topology {
        let mut below = self.clone();
        below.facts.retain(|fact| fact.why != Why::Chunk);
        below.in_areas(base, chunk, length).in_chunks(chunk, None, Why::Chunk)
    }

    /// The topology of `length` bytes in areas that begin anywhere, but at a multiple of `step`
    /// bytes from `base`, and are multiples of it long.
    ///
    /// A unit that divides the step is never cut if areas begin on it. One that does not is cut
    /// at the end of some area or other.
    #[must_use]
    pub fn in_areas(&self, base: u64, step: u64, length: u64) -> Topology {
        let lift = |grain: Grain| {
            let own = grain.shift(base);
            if !step.is_multiple_of(grain.size) {
                return Err(step % grain.size);
            }
            if own.phase == 0 { Ok(own) } else { Err(own.remainder(0)) }
        };
        // A hint that many devices make of a transfer limit is not lost, but was none.
        let hint = |fact: &Fact| fact.why.costs() && !fact.counts() && fact.grain.size > 1;
        let mut below = self.clone();
        below.facts.retain(|fact| !hint(fact));
        Topology::combine(&[below], length, |_, grain| lift(grain))
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

    /// This topology with the chunk and the row of a set, behind those of its members.
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

/// Combines two members' facts for one purpose; an `Err` is the distance of the second past the
/// first's boundary, in bytes.
fn join(first: Option<Fact>, second: Fact) -> Result<Fact, u64> {
    let Some(first) = first else { return Ok(second) };
    match first.grain.intersect(second.grain) {
        Some(grain) => Ok(Fact { grain, trust: first.trust.min(second.trust), ..first }),
        // They meet where their phases are equal modulo what their sizes have in common: nowhere.
        None => {
            Err(first.grain.remainder(second.grain.phase)
                % gcd(first.grain.size, second.grain.size))
        }
    }
}

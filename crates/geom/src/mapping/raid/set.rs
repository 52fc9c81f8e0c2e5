//! A set as it is read: members that are there, and the layout over them.

use super::galois;
use super::layout::{Layout, Parity};
use crate::base::error::Errno;
use crate::base::topology::Topology;
use crate::mapping::geom::{Arrangement, Extent, Geom, Op, ReadConsumer, Rows, Slot};

/// Largest number of bytes that are made of parity at once.
const PIECE: usize = 64 << 10;

/// One provider that holds the data of a role, or part of them.
#[derive(Clone, Debug)]
pub struct Half {
    /// Index of the consumer.
    pub consumer: usize,
    /// First byte of the data on it.
    pub offset: u64,
    /// The same in the new shape of a set that is being reshaped.
    pub new_offset: u64,
    /// Bytes of the data that it has; `u64::MAX` for all.
    pub recovered: u64,
    /// Stretches that cannot be read: first byte on the consumer, and the byte after the last.
    pub bad: Vec<(u64, u64)>,
}

impl Half {
    /// True if it has byte `at` of its consumer, which is byte `data` of the data; and the number
    /// of bytes for which the answer stays the same.
    fn state(&self, at: u64, data: u64) -> (bool, u64) {
        let Some(left) = self.recovered.checked_sub(data).filter(|&left| left > 0) else {
            return (false, u64::MAX);
        };
        let (mut good, mut run) = (true, left);
        for &(from, to) in &self.bad {
            if from <= at && at < to {
                (good, run) = (false, run.min(to - at));
            } else if at < from {
                run = run.min(from - at);
            }
        }
        (good, run)
    }
}

/// One shape of the set, and the bytes that it covers: all of them, but for a set that is being
/// reshaped.
#[derive(Clone, Debug)]
pub struct Part {
    /// Byte of the set after its last.
    pub end: u64,
    /// The layout of these bytes.
    pub layout: Layout,
    /// True if the data begin at [`Half::new_offset`].
    pub moved: bool,
}

impl Part {
    /// The parts of a set without a reshape.
    pub fn whole(layout: Layout) -> Vec<Part> {
        vec![Part { end: layout.length(), layout, moved: false }]
    }

    /// The parts of a set that goes from one layout to another, and has come to byte `position` of
    /// its own: from the front, or from the end.
    pub fn around(position: u64, backwards: bool, old: Layout, new: Layout) -> Vec<Part> {
        let length = old.length().min(new.length());
        let position = position.min(length);
        let new = |end| Part { end, layout: new, moved: true };
        let old = |end| Part { end, layout: old, moved: false };
        if backwards { vec![old(position), new(length)] } else { vec![new(position), old(length)] }
    }
}

/// A set with one of md's layouts, over those of its members that are there.
pub struct Set {
    /// Name of its provider.
    pub name: String,
    /// Length of the set in bytes.
    pub length: u64,
    /// Its parts in order; none for a set whose bytes have no known place: every read fails.
    pub parts: Vec<Part>,
    /// Holders of the data of each role; none for one that is missing.
    pub roles: Vec<Vec<Half>>,
    /// The arrangement by its newest superblock: of a set that is being reshaped, the one it gets.
    pub arrangement: Option<Arrangement>,
    /// The reason for which it is not written.
    pub read_only: Option<&'static str>,
}

/// Holder of a run of a role's data, if one is here.
#[derive(Clone, Copy)]
struct Holder<'a> {
    half: Option<&'a Half>,
    /// Byte on the consumer of the half.
    at: u64,
    /// Bytes for which this stays so.
    run: u64,
}

impl Set {
    fn part(&self, x: u64) -> Option<&Part> {
        self.parts.get(self.parts.partition_point(|part| part.end <= x))
    }

    /// The holder of byte `data` of the data of `role`.
    fn find(&self, role: usize, data: u64, moved: bool) -> Holder<'_> {
        let mut place = Holder { half: None, at: 0, run: u64::MAX };
        for half in self.roles.get(role).map_or(&[][..], |halves| halves) {
            let offset = if moved { half.new_offset } else { half.offset };
            let Some(at) = offset.checked_add(data) else { continue };
            let (good, run) = half.state(at, data);
            place.run = place.run.min(run);
            if good && place.half.is_none() {
                (place.half, place.at) = (Some(half), at);
            }
        }
        place
    }

    /// The copies of byte `x` that can be read, in order.
    fn copies<'a>(&'a self, part: &'a Part, x: u64) -> impl Iterator<Item = Holder<'a>> {
        (0..part.layout.copies()).map(move |nth| {
            let (role, data) = part.layout.place(x, nth);
            self.find(role, data, part.moved)
        })
    }

    /// True if what `role` holds at byte `data` in row number `row` can be made of the others.
    fn can_rebuild(&self, parity: &Parity, row: u64, data: u64, moved: bool) -> bool {
        let row = parity.row(row);
        let lost = |role| self.find(role, data, moved).half.is_none();
        let missing = (0..parity.disks()).filter(|&role| lost(role)).count();
        missing <= 1 + usize::from(row.q.is_some())
    }

    /// Makes what `own` holds of the rest of its row. `lost` says which roles cannot be used.
    fn remake(
        &self,
        place: &Remade<'_>,
        lost: &mut [bool],
        own: usize,
        buffer: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        // Every attempt that fails loses one more member.
        while !place.is_lost_for_good(lost) {
            match self.attempt(place, lost, own, buffer, read) {
                Ok(()) => return Ok(()),
                Err(role) => lost[role] = true,
            }
        }
        Err(Errno::Io)
    }

    /// As [`Set::remake`], with the roles that are not `lost`; an error is the role that could not
    /// be read.
    fn attempt(
        &self,
        place: &Remade<'_>,
        lost: &[bool],
        own: usize,
        buffer: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), usize> {
        let row = place.parity.row(place.row);
        let is_data = |role: usize| role != row.p && Some(role) != row.q;
        let other = (0..lost.len()).find(|&role| role != own && lost[role] && is_data(role));
        // The sum alone is enough for one chunk; where it is lost too, the weighted one is.
        let with_p = !lost[row.p];
        let with_q = row.q.filter(|_| other.is_some() || !with_p);
        let (mut p, mut q) = (vec![0; buffer.len()], vec![0; buffer.len()]);
        let mut from = vec![0; buffer.len()];
        for role in (0..lost.len()).filter(|&role| !lost[role]) {
            let used = is_data(role) || role == row.p && with_p || Some(role) == with_q;
            let found = self.find(role, place.data, place.moved);
            let Some(half) = found.half.filter(|_| used) else { continue };
            read(half.consumer, &mut from, found.at).map_err(|_| role)?;
            if is_data(role) || role == row.p {
                galois::add(&mut p, &from, 1);
            }
            if with_q.is_some() && is_data(role) {
                galois::add(&mut q, &from, galois::coefficient(place.parity.weight(row, role)));
            } else if Some(role) == with_q {
                galois::add(&mut q, &from, 1);
            }
        }
        let weight = |role| place.parity.weight(row, role);
        match other {
            Some(other) => galois::from_both(&mut p, &q, weight(own), weight(other)),
            None if with_p => {}
            None => {
                p = q;
                galois::from_q(&mut p, weight(own));
            }
        }
        buffer.copy_from_slice(&p);
        Ok(())
    }
}

/// Place in a row from which data are made.
struct Remade<'a> {
    parity: &'a Parity,
    row: u64,
    /// Byte of every member's data.
    data: u64,
    moved: bool,
}

impl Remade<'_> {
    /// True if more roles are lost than parity can make up for.
    fn is_lost_for_good(&self, lost: &[bool]) -> bool {
        let both = self.parity.row(self.row).q.is_some();
        lost.iter().filter(|&&lost| lost).count() > 1 + usize::from(both)
    }
}

impl Geom for Set {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: self.name.clone(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, below: &[Topology]) -> Topology {
        // A role that is missing has no boundaries of its own; one with two holders has both.
        let nothing = || Topology::new(1, u64::MAX);
        let mut parts = self.parts.iter().map(|part| {
            let data: Vec<Topology> = self
                .roles
                .iter()
                .map(|halves| {
                    let of = |half: &Half| {
                        let offset = if part.moved { half.new_offset } else { half.offset };
                        let member = below.get(half.consumer)?;
                        Some(member.shift(offset, member.length.saturating_sub(offset)))
                    };
                    let found: Vec<Topology> = halves.iter().filter_map(of).collect();
                    match found.as_slice() {
                        [] => nothing(),
                        [one] => one.clone(),
                        several => Topology::mirror(several, u64::MAX),
                    }
                })
                .collect();
            part.layout.topology(&data, self.length)
        });
        // Of a set that is being reshaped, the shape that it will have.
        let moved = self.parts.iter().position(|part| part.moved).unwrap_or(0);
        parts.nth(moved).unwrap_or_else(|| Topology::new(1, self.length))
    }

    fn map(&self, _slot: usize, offset: u64, length: u64, op: Op) -> Extent {
        if op == Op::Write && self.read_only.is_some() {
            return Extent::ReadOnly { length };
        }
        let Some(part) = self.part(offset) else { return Extent::Fail { length } };
        let length = length.min(part.end - offset).min(part.layout.run(offset));
        let (mut run, mut good, mut first) = (length, 0, None);
        for place in self.copies(part, offset) {
            run = run.min(place.run);
            if let Some(half) = place.half {
                good += 1;
                first = first.or(Some((half.consumer, place.at)));
            }
        }
        match (first, &part.layout) {
            (Some((consumer, offset)), _) if good == 1 => {
                Extent::At { consumer, offset, length: run }
            }
            (Some(_), _) => Extent::Copies { count: good, length: run },
            (None, Layout::Parity(parity)) => {
                let ((row, _), (_, data)) = (parity.row_of(offset), part.layout.place(offset, 0));
                if self.can_rebuild(parity, row, data, part.moved) {
                    Extent::Rebuilt { length: run }
                } else {
                    Extent::Fail { length: run }
                }
            }
            (None, _) => Extent::Fail { length: run },
        }
    }

    fn copy(&self, _slot: usize, offset: u64, nth: usize) -> (usize, u64) {
        let part = self.part(offset);
        let found = part.and_then(|part| {
            let mut good = self.copies(part, offset).filter_map(|p| Some((p.half?.consumer, p.at)));
            good.nth(nth)
        });
        // No consumer has this number: the read fails.
        found.unwrap_or((usize::MAX, 0))
    }

    fn rebuild(
        &self,
        _slot: usize,
        offset: u64,
        buffer: &mut [u8],
        read: &mut ReadConsumer<'_>,
    ) -> Result<(), Errno> {
        let (mut x, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let part = self.part(x).ok_or(Errno::Io)?;
            let Layout::Parity(parity) = &part.layout else { return Err(Errno::Io) };
            let ((row, _), (own, data)) = (parity.row_of(x), part.layout.place(x, 0));
            let place = Remade { parity, row, data, moved: part.moved };
            let (mut lost, mut run) = (Vec::new(), part.layout.run(x).min(part.end - x));
            for role in 0..parity.disks() {
                let found = self.find(role, data, part.moved);
                lost.push(role == own || found.half.is_none());
                run = run.min(found.run);
            }
            let step = usize::try_from(run).unwrap_or(PIECE).min(PIECE).min(rest.len());
            let (piece, after) = rest.split_at_mut(step);
            self.remake(&place, &mut lost, own, piece, read)?;
            (x, rest) = (x + step as u64, after);
        }
        Ok(())
    }

    fn rows(&self, _slot: usize) -> Option<&dyn Rows> {
        let whole =
            |halves: &Vec<Half>| matches!(halves.as_slice(), [one] if one.recovered == u64::MAX);
        let [Part { layout: Layout::Parity(_), .. }] = self.parts.as_slice() else { return None };
        self.roles.iter().all(whole).then_some(self)
    }

    fn arrangement(&self, _slot: usize) -> Option<Arrangement> {
        self.arrangement.clone()
    }

    fn read_only(&self, _slot: usize) -> Option<&'static str> {
        self.read_only
    }
}

impl Set {
    /// The layout of a set that has one shape, with parity, as every caller of [`Geom::rows`] has
    /// it.
    fn parity(&self) -> Option<&Parity> {
        match &self.parts.first()?.layout {
            Layout::Parity(parity) => Some(parity),
            _ => None,
        }
    }

    /// The consumer of the only holder of `role`.
    fn holder(&self, role: usize) -> usize {
        self.roles.get(role).and_then(|halves| halves.first()).map_or(usize::MAX, |h| h.consumer)
    }
}

impl Rows for Set {
    fn chunk(&self) -> u64 {
        self.parity().map_or(u64::MAX, Parity::chunk)
    }

    fn data(&self) -> u64 {
        self.parity().map_or(1, Parity::data)
    }

    fn member(&self, row: u64, nth: u64) -> usize {
        self.parity()
            .map_or(usize::MAX, |parity| self.holder(parity.data_role(parity.row(row), nth)))
    }

    fn parity(&self, row: u64) -> [Option<usize>; 2] {
        let Some(row) = self.parity().map(|parity| parity.row(row)) else { return [None; 2] };
        [Some(self.holder(row.p)), row.q.map(|q| self.holder(q))]
    }

    fn begin(&self, member: usize) -> u64 {
        let own = self.roles.iter().flatten().find(|half| half.consumer == member);
        own.map_or(0, |half| half.offset)
    }
}

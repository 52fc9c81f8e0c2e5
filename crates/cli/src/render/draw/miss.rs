//! Starts that miss their boundary, and the part of a disk that a magnification shows.
//!
//! Addresses in a [`View`] count from the unit before the one in which the start lies, so that
//! every boundary is a multiple of the unit.

use crate::render::report::group;
use crate::report;
use crate::report::{Finding, Provider, Target, Verdict};
use crate::words::{self, size};
use trueline_geom::base::finding::Severity;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{Grain, Source, Trust, Why};

/// Units of more bytes than this are not drawn: no device has one.
const SANE: u64 = 1 << 48;
/// Most characters of names in a title.
const NAMES: usize = 30;

/// Starts that miss at one cost, or one that hits; the picture shows the first.
pub(super) struct Miss<'a> {
    /// The provider in the picture.
    pub provider: &'a Provider,
    /// Names of all of them, each with its distance past a boundary in bytes.
    pub all: Vec<(String, u64)>,
    /// The finding of the first, if it misses.
    pub finding: Option<&'a Finding>,
    /// Bytes from one boundary to the next.
    pub unit: u64,
    /// Name of the unit: `physical unit`, `chunk`.
    pub what: &'static str,
    /// True if a unit that is written in part is read first.
    pub rmw: bool,
    /// True if the unit is assumed, not reported.
    pub assumed: bool,
    /// Distance past the last boundary in bytes.
    pub remainder: u64,
    /// Size of the layer's I/O in bytes, and true if it was read from the layer.
    pub block: u64,
    pub block_known: bool,
    /// Start of the first one, on the medium or its set.
    pub offset: u64,
}

/// The starts that miss their boundary and pay for it, the costliest first.
pub(super) fn misses(target: &Target) -> Vec<Miss<'_>> {
    let mut all: Vec<Miss<'_>> = Vec::new();
    for f in target.findings.iter().filter(|f| shows(f)) {
        let Some(p) = target.providers.iter().find(|p| p.provider == f.provider) else { continue };
        let miss = Miss::new(target, p, f.unit, f.remainder, f.offset, Some(f));
        let same = |m: &Miss<'_>| {
            let (cost, content) = (words::cost(f), words::content(target, p));
            (m.unit, m.block) == (f.unit, miss.block)
                && m.finding.is_some_and(|first| words::cost(first) == cost)
                && words::content(target, m.provider) == content
        };
        match all.iter_mut().find(|m| same(m)) {
            Some(first) => first.all.extend(miss.all),
            None => all.push(miss),
        }
    }
    let factor = |m: &Miss<'_>| m.finding.map_or(0.0, |f| f.rmw_factor);
    all.sort_by(|a, b| factor(b).total_cmp(&factor(a)));
    all
}

/// The first start on its grain, of a target with everything that does I/O on its grain.
pub(super) fn hit(target: &Target) -> Option<Miss<'_>> {
    let p = target
        .providers
        .iter()
        .find(|p| p.data_bearing && p.verdict == Verdict::Aligned && p.base > 0)?;
    let judged = |g: &&report::Grain| {
        matches!(g.why, Why::Physical | Why::Chunk) && g.trust != Trust::Untrusted && g.phase == 0
    };
    // The largest grain includes the smaller ones: a chunk begins on a sector.
    let grain = p
        .grains
        .iter()
        .filter(judged)
        .max_by_key(|g| g.size)
        .filter(|g| (2..SANE).contains(&g.size))?;
    (target.verdict == Verdict::Aligned)
        .then(|| Miss::new(target, p, grain.size, 0, words::start(p), None))
}

/// For each boundary of `--grain` that no finding shows yet: the first start that misses it, else
/// the first on it.
pub(super) fn requested<'a>(target: &'a Target, shown: &[Miss<'_>]) -> Vec<Miss<'a>> {
    let mut all: Vec<Miss<'a>> = Vec::new();
    let bears = |p: &&Provider| p.data_bearing && p.placed && p.base > 0;
    for p in target.providers.iter().filter(bears) {
        let requested = |g: &&report::Grain| {
            g.source == Source::User
                && !matches!(g.why, Why::Logical | Why::Physical)
                && (2..SANE).contains(&g.size)
        };
        for g in p.grains.iter().filter(requested) {
            let Some(remainder) = Grain::new(g.size, g.phase).map(|grain| grain.remainder(0))
            else {
                continue;
            };
            if shown.iter().any(|miss| miss.unit == g.size) {
                continue;
            }
            let miss = Miss::new(target, p, g.size, remainder, words::start(p), None);
            match all.iter_mut().find(|other| other.unit == g.size) {
                None => all.push(miss),
                Some(other) if other.remainder == 0 && remainder > 0 => *other = miss,
                Some(_) => {}
            }
        }
    }
    all
}

/// True if a finding can be magnified: a start past a boundary that costs something, in numbers
/// that a drawing can hold.
fn shows(f: &Finding) -> bool {
    let start = matches!(f.rule, "TL0001" | "TL0003") && f.severity != Severity::Note;
    start && f.unit < SANE && (1..f.unit).contains(&f.remainder)
}

impl<'a> Miss<'a> {
    fn new(
        target: &'a Target,
        p: &'a Provider,
        unit: u64,
        remainder: u64,
        offset: u64,
        finding: Option<&'a Finding>,
    ) -> Miss<'a> {
        let grain = p.grains.iter().find(|g| {
            g.size == unit
                && Grain::new(g.size, g.phase).is_some_and(|g| g.remainder(0) == remainder)
        });
        let what = grain.map_or("unit", |g| words::unit(g.why));
        // A data area does I/O in the blocks of the format it belongs to.
        let outer = || {
            target.providers.iter().find(|o| {
                p.parent.as_deref() == Some(&o.provider) && o.sign.as_deref() == Some(p.class)
            })
        };
        let known = p.block_size.or_else(|| outer()?.block_size).filter(|b| (1..SANE).contains(b));
        Miss {
            provider: p,
            all: vec![(words::name(&p.provider), remainder)],
            finding,
            unit,
            what,
            rmw: grain.is_some_and(|g| g.why.is_rmw()),
            assumed: grain.is_some_and(|g| g.trust == Trust::Assumed),
            remainder,
            block: known.unwrap_or(PAGE),
            block_known: known.is_some(),
            offset,
        }
    }

    /// `s4a, s4d begin 3584 bytes past a boundary of 4 KiB`; for many, or different distances, the
    /// first and a summary of the others.
    pub(super) fn title(&self) -> String {
        let unit = size::human(self.unit);
        let begin = if self.all.len() > 1 { "begin" } else { "begins" };
        let alike = self.all.iter().all(|(_, r)| *r == self.remainder);
        let names = group::runs(self.all.iter().map(|(name, _)| name.clone()));
        let first = || {
            format!(
                "{} begins {} past a boundary of {unit}",
                self.all[0].0,
                words::bytes(self.remainder)
            )
        };
        let others = || words::count(self.all.len() - 1, "other");
        let theirs = || self.all.iter().skip(1).map(|(_, r)| *r);
        match theirs().min().zip(theirs().max()) {
            _ if self.remainder == 0 => format!("{names} {begin} on a boundary of {unit}"),
            _ if alike && names.chars().count() <= NAMES => {
                format!(
                    "{names} {begin} {} past a boundary of {unit}",
                    words::bytes(self.remainder)
                )
            }
            _ if alike => format!("{}; so do {}", first(), others()),
            Some((least, most)) if least == most => {
                format!("{}; {}, by {}", first(), others(), words::bytes(most))
            }
            Some((least, most)) => {
                format!("{}; {}, by {least} to {}", first(), others(), words::bytes(most))
            }
            None => first(),
        }
    }

    /// Name of its blocks, with their size.
    pub(super) fn blocks(&self) -> String {
        let size = size::human(self.block);
        match (&self.provider.sign, self.block_known) {
            (Some(sign), true) => format!("{sign} blocks of {size}"),
            (None, true) => format!("{} blocks of {size}", self.provider.class),
            (_, false) => format!("writes of {size}"),
        }
    }

    /// The address of the boundary before the start; on a disk with a phase it may be negative.
    pub(super) fn boundary(&self) -> i128 {
        i128::from(self.offset) - i128::from(self.remainder)
    }

    /// True if a fix names `address` as a start.
    pub(super) fn mends(&self, address: i128) -> bool {
        let named = format!("byte {address} ");
        self.finding.is_some_and(|f| f.fix.iter().any(|fix| fix.contains(&named)))
    }
}

/// The magnified part: the unit before the start, and some blocks from the boundary on.
pub(super) struct View {
    /// Bytes from one boundary to the next.
    pub unit: u64,
    /// Start of the layer, in bytes of the view.
    pub start: u64,
    /// Length of the view in bytes.
    pub shown: u64,
    block: u64,
}

impl View {
    pub(super) fn new(miss: &Miss<'_>) -> View {
        let (unit, block) = (miss.unit, miss.block);
        // Two blocks and their surroundings; of large blocks only the first six units.
        let units = if block <= unit.saturating_mul(5) { 2 * block.div_ceil(unit) } else { 6 };
        View {
            unit,
            start: unit.saturating_add(miss.remainder),
            shown: (units.max(2) + 2).saturating_mul(unit),
            block,
        }
    }

    /// The boundaries, from the left edge.
    pub(super) fn boundaries(&self) -> impl Iterator<Item = u64> {
        (0..self.shown / self.unit).map(|nth| nth * self.unit)
    }

    /// Number of blocks that begin in view.
    pub(super) fn count(&self) -> u64 {
        self.shown.saturating_sub(self.start).div_ceil(self.block)
    }

    /// The blocks that begin in view; the last one may leave it. If there are more than `most`,
    /// only those across a boundary.
    pub(super) fn blocks(&self, most: u64) -> Vec<(u64, u64)> {
        let whole = |from: u64| (from, from.saturating_add(self.block));
        if self.count() <= most {
            return (0..self.count()).map(|nth| whole(self.start + nth * self.block)).collect();
        }
        let Some(grain) = Grain::new(self.block, self.start) else { return Vec::new() };
        let across = |&boundary: &u64| boundary > self.start && !grain.contains(boundary);
        self.boundaries()
            .filter(across)
            .filter_map(|boundary| grain.previous(boundary))
            .map(whole)
            .collect()
    }

    /// The units that a block touches, by first byte, each with true if the block has only a part
    /// of it.
    pub(super) fn parts(&self, (from, to): (u64, u64)) -> Vec<(u64, bool)> {
        let Some(first) = Grain::new(self.unit, 0).and_then(|grain| grain.previous(from)) else {
            return Vec::new();
        };
        let units =
            (0..self.touches((from, to)).0).map(|nth| first.saturating_add(nth * self.unit));
        units.map(|unit| (unit, unit < from || unit.saturating_add(self.unit) > to)).collect()
    }

    /// Number of units that a block touches, and number that it needs.
    pub(super) fn touches(&self, (from, to): (u64, u64)) -> (u64, u64) {
        let ends = || {
            let grain = Grain::new(self.unit, 0)?;
            Some((grain.previous(from)?, grain.next(to)?))
        };
        let need = (to - from).div_ceil(self.unit);
        ends().map_or((need, need), |(first, last)| ((last - first) / self.unit, need))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_a_block_has_in_part_is_read_first() {
        let view = View { unit: 4096, start: 4608, shown: 1 << 20, block: 4096 };
        assert_eq!(view.parts((4608, 8704)), [(4096, true), (8192, true)]);
        assert_eq!(
            view.parts((4608, 4608 + 16384)),
            [(4096, true), (8192, false), (12288, false), (16384, false), (20480, true)]
        );
        assert_eq!(view.parts((4096, 8192)), [(4096, false)]);
    }
}

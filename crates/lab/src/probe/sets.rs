//! Chunks of a set, the boundaries at which one of its drives follows another, found by reads.
//!
//! A read that lies in one chunk waits for one drive, and one that cuts two for the slower of two.
//! That shows only if all drives are as busy: reads at one place keep one of them busy, and reads
//! that cut a chunk two, which is faster. So reads of all kinds are in flight together, and the
//! latency of each is measured.

use super::field::{Field, doublings};
use super::instrument::{Instrument, Pace, Spread};
use super::search::{Bounds, Outcome, search};
use super::{FINE, MeasuredUnit, ProbeVerdict, pinned};
use crate::error::Error;
use trueline_geom::base::topology::Why;

/// The largest chunk in bytes that is searched.
const LARGEST: u64 = 16 << 20;
/// The logarithm of the ratio below which a boundary is no chunk's: the slower of two drives that
/// are busy takes up to half as long again. Pages of flash cost 1 %.
const EFFECT: f64 = 0.1;

/// Reads after which a first look gives up where no grain looks likely: large chunks, and small
/// ones, show in fewer, and each look finds nothing where the other one's are.
const LOOK: usize = 6000;
/// Reads after which a search is at its end.
const MOST: usize = 50_000;

/// Searches the chunks of a set with `depth` reads in flight, smaller ones first: the rows of a set
/// of small chunks may look like large ones. The largest size that was looked for, and the verdict.
pub(super) fn chunks(
    instrument: &mut Instrument<'_>,
    depth: usize,
    units: &mut Vec<MeasuredUnit>,
) -> Result<(u64, ProbeVerdict), Error> {
    let sector = instrument.sector();
    instrument.pace = Pace::Mixed { depth };
    instrument.spread = Spread::Far;
    let until = instrument.until;
    let most = LARGEST.min(instrument.length() / 16);
    let largest = doublings(FINE * 2, most).last().copied();
    let large = largest.map(|largest| Field::of_sets(FINE, largest));
    let small = Field::fine(sector, FINE);
    let searched = largest.unwrap_or(FINE);
    // The most that a boundary costs, if it is known of all of both kinds.
    let mut bounded = [large.as_ref().map_or(Some(1.0), |_| None), None];
    for patience in [LOOK, usize::MAX] {
        let bounds = Bounds { first: LOOK / 2, most: MOST, patience, effect: EFFECT };
        if bounded[1].is_none() {
            instrument.largest = FINE;
            let spent = instrument.spent();
            instrument.until = spent.saturating_add(until.saturating_sub(spent) / 2);
            let outcome = search(instrument, &small, sector, bounds)?;
            instrument.until = until;
            match outcome {
                Outcome::Found(found) if found.ratio.ln() >= EFFECT => {
                    units.push(MeasuredUnit::exact(found, Why::Chunk));
                    return Ok((searched, ProbeVerdict::Found));
                }
                Outcome::Nothing(ratio) => bounded[1] = Some(ratio),
                Outcome::Found(_) | Outcome::Open => {}
            }
        }
        if let Some(field) = large.as_ref().filter(|_| bounded[0].is_none()) {
            instrument.largest = searched;
            match search(instrument, field, FINE / 2, bounds)? {
                Outcome::Found(rough) if rough.ratio.ln() >= EFFECT => {
                    units.push(pinned(instrument, field, rough, Why::Chunk)?);
                    return Ok((searched, ProbeVerdict::Found));
                }
                Outcome::Nothing(ratio) => bounded[0] = Some(ratio),
                Outcome::Found(_) | Outcome::Open => {}
            }
        }
        if let [Some(one), Some(other)] = bounded {
            let nothing = ProbeVerdict::Nothing { largest: searched, ratio: one.max(other) };
            return Ok((searched, nothing));
        }
    }
    Ok((searched, ProbeVerdict::Unsure))
}

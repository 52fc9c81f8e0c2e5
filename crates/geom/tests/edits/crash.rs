//! Power fails while an edit is written.
//!
//! What a disk may then hold: every write before the last flush, any of the writes after it, and of
//! one of them only the front, up to any sector, or only the back. In each of these states tasting
//! must find the table as it was or as it was to be.

use crate::disk::{found, written};
use trueline_geom::base::patch::Patch;
use trueline_geom::base::store::{Sparse, Store};

/// Writes between two flushes whose every subset is tried; of more, only the prefixes and what
/// leaves out one.
const SUBSETS: usize = 5;

/// Up to where the last write may be cut.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A sector is written whole or not at all.
    Sector,
    /// A sector may be cut at any byte: what checksums cover.
    Byte,
}

/// Checks every state of `disk` that an interrupted write of `patches` may leave; gives how many
/// there were.
pub(crate) fn every_state(disk: &Sparse, patches: &[Patch], sector: u64, cut: Cut) -> usize {
    every_state_or(disk, patches, sector, cut, &[])
}

/// The same, where what is found may also be one of `between`: states that are said to be left.
pub(crate) fn every_state_or(
    disk: &Sparse,
    patches: &[Patch],
    sector: u64,
    cut: Cut,
    between: &[Vec<String>],
) -> usize {
    let (old, new) = (found(disk, sector), found(&written(disk, patches), sector));
    let mut states = 0;
    let mut check = |state: &Sparse, what: &dyn Fn() -> String| {
        let seen = found(state, sector);
        let told = seen == old || seen == new || between.contains(&seen);
        assert!(
            told,
            "{}: found {seen:#?}\nneither {old:#?}\nnor {new:#?}\nnor {between:#?}",
            what()
        );
        states += 1;
    };
    let mut flushed = disk.clone();
    for group in groups(patches) {
        for subset in subsets(group.len()) {
            let some: Vec<Patch> = subset.iter().map(|&n| group[n].clone()).collect();
            let state = written(&flushed, &some);
            let names = || some.iter().map(|p| p.what).collect::<Vec<_>>().join(", ");
            check(&state, &names);
            for last in (0..group.len()).filter(|n| !subset.contains(n)) {
                for at in cuts(&state, &group[last], sector, cut) {
                    let patch = &group[last];
                    let mut torn = state.clone();
                    torn.put(patch.offset, &patch.bytes[..at]);
                    check(&torn, &|| {
                        format!("{} and the first {at} bytes of {}", names(), patch.what)
                    });
                    let mut torn = state.clone();
                    torn.put(patch.offset + at as u64, &patch.bytes[at..]);
                    check(&torn, &|| {
                        format!("{} and all but the first {at} bytes of {}", names(), patch.what)
                    });
                }
            }
        }
        flushed = written(&flushed, group);
    }
    states
}

/// The writes between flushes.
fn groups(patches: &[Patch]) -> Vec<&[Patch]> {
    patches.chunk_by(|_, next| !next.after_flush).collect()
}

fn subsets(n: usize) -> Vec<Vec<usize>> {
    if n <= SUBSETS {
        return (0..1_usize << n)
            .map(|mask| (0..n).filter(|bit| mask >> bit & 1 == 1).collect())
            .collect();
    }
    let prefixes = (0..=n).map(|length| (0..length).collect());
    let without_one = (0..n).map(|out| (0..n).filter(|&i| i != out).collect());
    prefixes.chain(without_one).collect()
}

/// After how many bytes of `patch` to stop: only where the bytes before change something since the
/// last stop.
fn cuts(disk: &Sparse, patch: &Patch, sector: u64, cut: Cut) -> Vec<usize> {
    let mut now = vec![0; patch.bytes.len()];
    disk.read_at(&mut now, patch.offset).unwrap();
    let sector = usize::try_from(sector).unwrap();
    let step = if cut == Cut::Byte { 1 } else { sector };
    let mut stops: Vec<usize> = (step..patch.bytes.len())
        .step_by(step)
        .filter(|&at| now[at - step..at] != patch.bytes[at - step..at])
        .collect();
    // A checksum that misses one byte misses them all: enough of each kind of field, and both ends.
    if stops.len() > 400 {
        let whole = stops.iter().copied().filter(|at| at % sector < 96 || at % sector > sector - 8);
        stops = whole.collect();
    }
    stops
}

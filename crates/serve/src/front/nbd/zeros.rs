//! `WRITE_ZEROES` and `TRIM`: no payload bounds their length, so they are done in pieces, and end
//! when their client has gone.

use crate::export::Export;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store;
use trueline_geom::base::topology::Grain;
use trueline_host::nbd::request::Request;
use trueline_host::nbd::wire::flag;

/// The most bytes of one piece: a kernel that has to write the zeros cannot be interrupted before
/// it has.
const PIECE: u64 = 1 << 30;

/// Zeros the range of a request; `gone` tells if its client has gone.
pub(super) fn zero(
    export: &Export,
    request: &Request,
    gone: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    let store = &*export.store;
    in_pieces(export, request, gone, &mut |offset, length| match store.try_zero(
        offset,
        length,
        request.has(flag::NO_HOLE),
    ) {
        Err(Errno::Unsupported) if !request.has(flag::FAST_ZERO) => {
            store::write_zeros(length, &mut |done, zeros| {
                if done > 0 && gone() {
                    return Err(Errno::NoDevice);
                }
                store.write_at(zeros, offset.checked_add(done).ok_or(Errno::Range)?)
            })
        }
        done => done,
    })
}

/// Discards the range of a request; `gone` as in [`zero`].
pub(super) fn discard(
    export: &Export,
    request: &Request,
    gone: &dyn Fn() -> bool,
) -> Result<(), Errno> {
    in_pieces(export, request, gone, &mut |offset, length| export.store.discard(offset, length))
}

/// Calls `each` for every piece of the range, with offset and length.
fn in_pieces(
    export: &Export,
    request: &Request,
    gone: &dyn Fn() -> bool,
    each: &mut dyn FnMut(u64, u64) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let (mut at, end) =
        (request.offset, request.offset.checked_add(request.length).ok_or(Errno::Range)?);
    loop {
        let next = cut(at, end, export.unit());
        each(at, next - at)?;
        if next == end {
            return Ok(());
        }
        if gone() {
            return Err(Errno::NoDevice);
        }
        at = next;
    }
}

/// The end of a piece that starts at `at`: on a unit's boundary, so that no unit is divided and
/// written twice.
fn cut(at: u64, end: u64, grain: Option<Grain>) -> u64 {
    if end - at <= PIECE {
        return end;
    }
    let whole = grain.or(Grain::new(PIECE, 0)).and_then(|grain| grain.previous(at + PIECE));
    whole.filter(|&whole| whole > at).unwrap_or(at + PIECE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn pieces_end_on_units() {
        let grain = Grain::new(4096, 512);
        for (at, end, grain, want) in [
            (0, PIECE, grain, PIECE),
            (0, PIECE + 1, grain, PIECE - 3584),
            (PIECE - 3584, 3 * PIECE, grain, 2 * PIECE - 3584),
            (5, u64::MAX, grain, PIECE - 3584),
            (5, u64::MAX, None, PIECE),
            (PIECE, u64::MAX, None, 2 * PIECE),
            (PIECE - 1, PIECE + MIB, None, PIECE + MIB),
            // Units longer than a piece are divided.
            (PIECE, 9 * PIECE, Grain::new(4 * PIECE, 0), 2 * PIECE),
        ] {
            assert_eq!(cut(at, end, grain), want, "{at} {end} {grain:?}");
        }
    }
}

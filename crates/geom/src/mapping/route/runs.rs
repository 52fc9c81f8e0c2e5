//! Pieces of a request that follow each other on a store: the chunks of a set alternate, and a long
//! range of it is one run on each disk.

use super::{Piece, Route};
use crate::base::error::Errno;
use crate::mapping::geom::Op;
use std::collections::VecDeque;

/// Operation on one run: the index of its store, its first byte there, and its bytes.
pub type EachRun<'a> = dyn FnMut(usize, u64, u64) -> Result<(), Errno> + 'a;

/// Runs that are open at a time: more members than that are punched in more pieces.
const MOST_OPEN: usize = 64;

impl Route {
    /// Calls `each` on every run of a range that is to be written; runs of zeros without a store
    /// are left out. Of an error those that came before are done, and perhaps not all of these.
    pub fn runs(&self, offset: u64, length: u64, each: &mut EachRun<'_>) -> Result<(), Errno> {
        let mut open: VecDeque<(usize, u64, u64)> = VecDeque::new();
        self.extents(offset, length, Op::Write, &mut |_, piece| match piece {
            Piece::Store { store, offset, length } => {
                let goes_on = |(of, from, run): &&mut (usize, u64, u64)| {
                    *of == store && from.checked_add(*run) == Some(offset)
                };
                if let Some((_, _, run)) = open.iter_mut().find(goes_on) {
                    *run = run.checked_add(length).ok_or(Errno::Range)?;
                    return Ok(());
                }
                let oldest = if open.len() < MOST_OPEN { None } else { open.pop_front() };
                open.push_back((store, offset, length));
                oldest.map_or(Ok(()), |(store, offset, length)| each(store, offset, length))
            }
            Piece::Zero { .. } | Piece::Table { .. } => Ok(()),
            Piece::Rebuilt { .. } => Err(Errno::ReadOnly),
        })?;
        open.into_iter().try_for_each(|(store, offset, length)| each(store, offset, length))
    }
}

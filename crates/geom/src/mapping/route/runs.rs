//! Pieces of a request that follow each other on a store: the chunks of a set alternate, and a long
//! range of it is one run on each disk.

use super::{Piece, Route};
use crate::base::error::Errno;
use crate::mapping::geom::Op;

/// Operation on one run: the index of its store, its first byte there, and its bytes.
pub type EachRun<'a> = dyn FnMut(usize, u64, u64) -> Result<(), Errno> + 'a;

impl Route {
    /// Calls `each` on every run of a range that is to be written; runs of zeros without a store
    /// are left out. Of an error those that came before are done, and perhaps not all of these.
    pub fn runs(&self, offset: u64, length: u64, each: &mut EachRun<'_>) -> Result<(), Errno> {
        let mut open: Vec<(usize, u64, u64)> = Vec::new();
        self.extents(offset, length, Op::Write, &mut |_, piece| match piece {
            Piece::Store { store, offset, length } => {
                match open.iter_mut().find(|(of, ..)| *of == store) {
                    None => open.push((store, offset, length)),
                    Some((_, from, run)) if from.checked_add(*run) == Some(offset) => {
                        *run = run.checked_add(length).ok_or(Errno::Range)?;
                    }
                    Some(last) => {
                        let (store, from, run) = std::mem::replace(last, (store, offset, length));
                        each(store, from, run)?;
                    }
                }
                Ok(())
            }
            Piece::Zero { .. } | Piece::Table { .. } => Ok(()),
            Piece::Rebuilt { .. } => Err(Errno::ReadOnly),
        })?;
        open.into_iter().try_for_each(|(store, offset, length)| each(store, offset, length))
    }
}

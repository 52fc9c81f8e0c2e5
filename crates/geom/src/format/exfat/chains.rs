//! The FAT of an exFAT, in windows that are kept.
//!
//! # Limits
//! [`WINDOWS`] of [`WINDOW`] bytes are in memory, the latest that were read. A FAT that fits is
//! read once, whatever its chains do. Of a larger one windows are read again, [`AGAIN`] times in
//! all.

use super::free::to_index;
use crate::base::patch::Read;
use crate::format::free_space::{Unsure, damaged};
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a window.
const WINDOW: u64 = 64 << 10;
/// Windows that are kept, 32 MiB.
const WINDOWS: usize = 512;
/// Largest number of windows that are read beside each of a FAT once.
const AGAIN: u64 = 16384;
/// Bytes of an entry.
const ENTRY: u64 = 4;

/// A FAT, as far as it was read.
pub(super) struct Chains {
    /// First byte of the FAT.
    at: u64,
    /// Bytes of its entries.
    length: u64,
    windows: BTreeMap<u64, Vec<u8>>,
    /// Numbers of the windows, the oldest first.
    order: VecDeque<u64>,
    /// Windows that may still be read.
    left: u64,
}

impl Chains {
    /// The FAT at byte `at` of the volume, with `entries`.
    pub(super) fn new(at: u64, entries: u64) -> Chains {
        let length = entries.saturating_mul(ENTRY);
        let left = length.div_ceil(WINDOW) + AGAIN;
        Chains { at, length, windows: BTreeMap::new(), order: VecDeque::new(), left }
    }

    /// The value of the FAT at a cluster, as it is numbered on disk.
    pub(super) fn follow(&mut self, cluster: u32, read: &mut Read<'_>) -> Result<u32, Unsure> {
        let at = u64::from(cluster) * ENTRY;
        let (number, inside) = (at / WINDOW, at % WINDOW);
        if !self.windows.contains_key(&number) {
            self.load(number, read)?;
        }
        let window = self.windows.get(&number);
        match window.and_then(|bytes| bytes.get(to_index(inside)..)?.first_chunk()) {
            Some(value) => Ok(u32::from_le_bytes(*value)),
            None => damaged("its FAT ends too early"),
        }
    }

    fn load(&mut self, number: u64, read: &mut Read<'_>) -> Result<(), Unsure> {
        let Some(left) = self.left.checked_sub(1) else {
            return Err(Unsure::Unknown("its files are scattered over too large a FAT".into()));
        };
        self.left = left;
        let first = number * WINDOW;
        let mut bytes = vec![0; to_index(self.length.saturating_sub(first).min(WINDOW))];
        let place = self.at + first;
        read(place, &mut bytes).map_err(|errno| Unsure::Failed(place, errno))?;
        if self.order.len() >= WINDOWS
            && let Some(oldest) = self.order.pop_front()
        {
            self.windows.remove(&oldest);
        }
        self.order.push_back(number);
        self.windows.insert(number, bytes);
        Ok(())
    }
}

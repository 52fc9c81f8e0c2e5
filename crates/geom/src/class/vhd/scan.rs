//! A look at the table of a VHD: the places of its blocks, as far as a bound allows.

use super::{Blocks, KIND, NONE, SECTOR, is_aligned};
use crate::base::finding::{self, Finding, Severity};
use crate::mapping::tables::PAGE;
use crate::probe::Probe;

/// Entries of the table that are looked at, 1 MiB of it.
pub(super) const MOST_ENTRIES: u64 = 256 << 10;

/// Blocks of a VHD that have a place in its file.
#[derive(Default)]
pub(super) struct Scan {
    /// First byte of each block for the guest, and of its data in the file.
    pub(super) places: Vec<(u64, u64)>,
    /// Blocks of which the end lies past the end of the file.
    past: u64,
    /// True if the whole table was looked at.
    is_whole: bool,
}

impl Scan {
    /// The places that the table of `blocks` says; those after the first read that fails are not
    /// known.
    pub(super) fn of(probe: &Probe<'_>, blocks: &Blocks) -> Scan {
        let mut scan = Scan { is_whole: blocks.entries <= MOST_ENTRIES, ..Scan::default() };
        let wanted = blocks.entries.min(MOST_ENTRIES);
        let mut first = 0;
        while first < wanted {
            let count = (wanted - first).min(PAGE / 4);
            let mut page = vec![0; usize::try_from(count * 4).unwrap_or_default()];
            if probe.map(blocks.table.saturating_add(first * 4), &mut page).is_err() {
                scan.is_whole = false;
                break;
            }
            for (nth, entry) in (first..).zip(page.as_chunks::<4>().0) {
                scan.note(blocks, nth, u32::from_be_bytes(*entry), probe.length());
            }
            first += count;
        }
        scan
    }

    fn note(&mut self, blocks: &Blocks, nth: u64, entry: u32, file: u64) {
        if entry == NONE {
            return;
        }
        let start = u64::from(entry) * SECTOR + blocks.bitmap;
        self.places.push((nth * blocks.block, start));
        self.past += u64::from(start + blocks.block > file);
    }

    /// `Alignment` as `Get-VHD` of Windows prints it: 1 if every block and the length of the file
    /// are multiples of 4096; `None` where not the whole table was looked at.
    pub(super) fn alignment(&self, file: u64) -> Option<&'static str> {
        let all = is_aligned(file) && self.places.iter().all(|&(_, start)| is_aligned(start));
        self.is_whole.then_some(if all { "1" } else { "0" })
    }

    /// The finding about blocks that the file is too short for.
    pub(super) fn cut(&self) -> Option<Finding> {
        let (past, all) = (self.past, self.places.len());
        let message =
            format!("{KIND}: {past} of {all} blocks reach past the end of the file: it was cut");
        (past > 0).then(|| {
            Finding::new(&finding::SIZE, Severity::Error, 0, message).fix(
                "copy the file again from where it is whole: what is missing reads as an error",
            )
        })
    }
}

//! One page of a ring buffer, as `trace_pipe_raw` gives it: a header, then records.
//!
//! # On disk
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 8 | time of the page in ns |
//! | 8 | a machine's word | bytes of records; bits 30 and 31: events were lost before |
//! | then | | records: 5 bits of type and 27 of time since the one before, then data |
//!
//! The machine's order, the width of the word and the place of the records are in
//! `events/header_page`.

use super::layout::{EventLayout, number};
use std::ops::Range;

/// Bits of the length that are flags: how many events were lost is asked of `stats`.
const FLAGS: u64 = 3 << 30;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that an absolute one has; those above are the page's.
const STAMP_BITS: u32 = 59;

/// A record of a page: its time in ns, and its bytes.
pub(super) struct Record<'a> {
    pub(super) at_ns: u64,
    pub(super) bytes: &'a [u8],
}

/// The layout of a page.
#[derive(Clone, Debug)]
pub(super) struct PageLayout {
    header: EventLayout,
    /// The place of the records.
    data: Range<usize>,
}

impl PageLayout {
    /// The layout in the text of `events/header_page`; `None` if it cannot be read.
    pub(super) fn parse(text: &str) -> Option<PageLayout> {
        // It has no number of its own.
        let header = EventLayout::parse(&format!("ID: 0\n{text}"))?;
        let data = header.place("data")?;
        Some(PageLayout { header, data })
    }

    /// The size of a page in bytes.
    pub(super) fn size(&self) -> usize {
        self.data.end
    }

    /// Calls `see` with each record of `page`. A page that ends within a record ends there.
    pub(super) fn records(&self, page: &[u8], mut see: impl FnMut(&Record<'_>)) {
        // `None` at a record that the page does not have whole.
        let _ = self.walk(page, &mut see);
    }

    fn walk(&self, page: &[u8], see: &mut dyn FnMut(&Record<'_>)) -> Option<()> {
        let mut now = self.header.number(page, "timestamp")?;
        let length = usize::try_from(self.header.number(page, "commit")? & !FLAGS).ok()?;
        let data = page.get(self.data.start..)?;
        let mut rest = data.get(..length.min(data.len()))?;
        while let Some(head) = word(rest, 0) {
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let further = word(rest, 4);
            let (body, end) = match kind {
                PADDING if delta == 0 => return Some(()),
                PADDING => (None, 4 + usize::try_from(further?).ok()?),
                TIME_EXTEND => {
                    now = now.wrapping_add((u64::from(further?) << 27) + delta);
                    (None, 8)
                }
                TIME_STAMP => {
                    let stamp = (u64::from(further?) << 27) + delta;
                    now = stamp | now >> STAMP_BITS << STAMP_BITS;
                    (None, 8)
                }
                0 => {
                    let end = 4 + usize::try_from(further?).ok()?;
                    (Some(8..end), end)
                }
                words => {
                    let end = 4 + 4 * usize::try_from(words).ok()?;
                    (Some(4..end), end)
                }
            };
            if let Some(range) = body {
                now = now.wrapping_add(delta);
                see(&Record { at_ns: now, bytes: rest.get(range)? });
            } else if kind == PADDING {
                now = now.wrapping_add(delta);
            }
            // The next record begins at a word.
            rest = rest.get(end.checked_next_multiple_of(4)?.max(4)..)?;
        }
        Some(())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = number(bytes.get(at..at.checked_add(4)?)?)?;
    u32::try_from(word).ok()
}

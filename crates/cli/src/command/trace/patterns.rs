//! Shapes of the requests that miss a unit through no layer's fault, and reads that are written
//! again: from these, causes are suspected.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use trueline_geom::audit::io::{CLASSES, IoKind, alignment_of, class_start};
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{Placement, is_whole};
use trueline_host::tracefs::Process;
use trueline_serve::counting::CountedRequest;

/// Lengths that are told apart in one layer, at most.
const MOST_LENGTHS: usize = 256;
/// Senders that are told apart in one layer, at most.
const MOST_SENDERS: usize = 256;
/// Reads that a write may still follow, at most.
const MOST_READS: usize = 1 << 16;
/// Time in ns after which no page waits for its write any more: the kernel lets one be dirty for 30
/// s, and looks every 5 s; twice that.
const WRITTEN_BACK: u64 = 70_000_000_000;

/// Shapes of the requests of each layer, by its number.
#[derive(Default)]
pub(crate) struct Patterns {
    layers: BTreeMap<usize, LayerPatterns>,
    reads: RecentReads,
}

/// Shapes of the requests of one layer.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayerPatterns {
    missed: HashMap<Length, [u64; CLASSES]>,
    /// Requests of lengths that are not told apart.
    untold: u64,
    /// Misaligned requests of each process among them.
    senders: HashMap<Process, u64>,
    /// Reads of a page or less.
    pub(super) small_reads: u64,
    /// Those of them whose bytes were written again soon.
    pub(super) rewritten: u64,
}

/// Key of requests that are counted together.
type Length = (IoKind, Placement, u64);

/// Requests of one kind, verdict and length that miss a unit through no layer's fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missed<'a> {
    pub(super) kind: IoKind,
    pub(super) fit: Placement,
    /// Length of each in bytes.
    pub(super) length: u64,
    /// Their number, by the class of the largest power of two that divides their distance from the
    /// first byte of the layer.
    pub(super) starts: &'a [u64; CLASSES],
}

impl Missed<'_> {
    /// The number of these requests.
    pub(super) fn count(&self) -> u64 {
        self.starts.iter().sum()
    }

    /// The number of those that are whole blocks of `block` bytes, counted from the layer's start.
    pub(super) fn whole_blocks(&self, block: u64) -> u64 {
        if !block.is_power_of_two() || !is_whole(self.length, block) {
            return 0;
        }
        let at = |class: &usize| class_start(*class) >= block;
        (0..CLASSES).filter(at).map(|class| self.starts[class]).sum()
    }

    /// The number of those at whole multiples of their own length; 0 where that is no power of two.
    pub(super) fn at_multiples_of_itself(&self) -> u64 {
        self.whole_blocks(self.length)
    }
}

impl LayerPatterns {
    /// Requests that miss a unit through no layer's fault, in the order of their lengths.
    pub(super) fn missed(&self) -> Vec<Missed<'_>> {
        let one = |(&(kind, fit, length), starts)| Missed { kind, fit, length, starts };
        let mut missed: Vec<Missed<'_>> = self.missed.iter().map(one).collect();
        missed.sort_by_key(|missed| (missed.length, missed.kind, missed.fit.index()));
        missed
    }

    /// The process that sent most of the misaligned ones, and their number; `None` where none is
    /// known.
    pub(super) fn worst_sender(&self) -> Option<(&Process, u64)> {
        let all = self.senders.iter().map(|(process, &count)| (process, count));
        all.max_by_key(|&(process, count)| (count, Reverse(process)))
    }

    fn send(&mut self, process: &Process) {
        let has_room = self.senders.len() < MOST_SENDERS;
        if let Some(count) = self.senders.get_mut(process) {
            *count += 1;
        } else if has_room {
            self.senders.insert(process.clone(), 1);
        }
    }

    fn add(&mut self, length: Length, start: u64) {
        if self.missed.len() >= MOST_LENGTHS && !self.missed.contains_key(&length) {
            self.untold += 1;
            return;
        }
        self.missed.entry(length).or_default()[alignment_of(start)] += 1;
    }
}

impl Patterns {
    /// The shapes of the requests to a layer; `None` without any.
    pub(super) fn layer(&self, number: usize) -> Option<&LayerPatterns> {
        self.layers.get(&number)
    }

    /// Adds a request that began `at` this time, in ns; `process` handed it on, if one is known.
    pub(super) fn see(
        &mut self,
        at: u64,
        (kind, offset, length): (IoKind, u64, u64),
        counted: &CountedRequest,
        process: Option<&Process>,
    ) {
        let CountedRequest { judged, layer, start } = counted;
        let own = self.layers.entry(*layer).or_default();
        let moves = matches!(kind, IoKind::Read | IoKind::Write);
        let misses = match judged.fit {
            Placement::Misaligned => !judged.blamed,
            Placement::Partial => true,
            Placement::Aligned | Placement::Unknown => false,
        };
        if moves && misses {
            own.add((kind, judged.fit, length), offset.saturating_sub(*start));
            let process = process.filter(|_| judged.fit == Placement::Misaligned);
            process.into_iter().for_each(|process| own.send(process));
        }
        match kind {
            IoKind::Read if length <= PAGE => {
                own.small_reads += 1;
                self.reads.add(at, (offset, length), *layer);
            }
            IoKind::Write => {
                for layer in self.reads.take(at, offset, length) {
                    self.layers.entry(layer).or_default().rewritten += 1;
                }
            }
            _ => {}
        }
    }
}

/// Small reads whose bytes were not written since.
#[derive(Default)]
struct RecentReads {
    /// Time, length and layer of each, by its first byte.
    by_offset: BTreeMap<u64, (u64, u64, usize)>,
    /// Time and first byte of each, the oldest first; some are written by now.
    in_order: VecDeque<(u64, u64)>,
}

impl RecentReads {
    fn add(&mut self, at: u64, (offset, length): (u64, u64), layer: usize) {
        self.by_offset.insert(offset, (at, length, layer));
        self.in_order.push_back((at, offset));
        while self.in_order.len() > MOST_READS {
            let Some((at, offset)) = self.in_order.pop_front() else { return };
            // It may have been read again since.
            if self.by_offset.get(&offset).is_some_and(|read| read.0 == at) {
                self.by_offset.remove(&offset);
            }
        }
    }

    /// The layers of the reads all of whose bytes a write covers now, in time.
    fn take(&mut self, now: u64, offset: u64, length: u64) -> Vec<usize> {
        let end = offset.saturating_add(length);
        let covered = |(&from, &(at, length, layer)): (&u64, &(u64, u64, usize))| {
            let is_recent = now.saturating_sub(at) <= WRITTEN_BACK;
            (from.saturating_add(length) <= end).then_some((from, layer, is_recent))
        };
        let found: Vec<_> = self.by_offset.range(offset..end).filter_map(covered).collect();
        for (from, ..) in &found {
            self.by_offset.remove(from);
        }
        found.into_iter().filter(|(.., is_recent)| *is_recent).map(|(_, layer, _)| layer).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::audit::io::JudgedRequest;

    /// A request to layer 1, which begins at byte 512.
    fn see(seen: &mut Patterns, at: u64, kind: IoKind, offset: u64, length: u64, fit: Placement) {
        let judged = JudgedRequest { kind, fit, length, blamed: false };
        let counted = CountedRequest { judged, layer: 1, start: 512 };
        let process = Process { pid: u32::try_from(at).unwrap_or(0), name: "one".into() };
        seen.see(at, (kind, offset, length), &counted, Some(&process));
    }

    #[test]
    fn blocks_are_counted_from_the_start_of_their_layer() {
        let mut seen = Patterns::default();
        for offset in [512, 512 + 8192, 4096] {
            see(&mut seen, 0, IoKind::Write, offset, 8192, Placement::Partial);
        }
        see(&mut seen, 0, IoKind::Write, 0, 8192, Placement::Aligned);
        let missed = seen.layer(1).expect("a layer").missed();
        let [one] = missed[..] else { panic!("{missed:?}") };
        assert_eq!((one.length, one.count(), one.at_multiples_of_itself()), (8192, 3, 2));
        assert_eq!([512, 4096, 16384].map(|block| one.whole_blocks(block)), [3, 2, 0]);
    }

    #[test]
    fn a_read_is_written_again_once_and_soon() {
        let mut seen = Patterns::default();
        let mut at = |at, kind, offset, length| {
            see(&mut seen, at, kind, offset, length, Placement::Aligned);
        };
        at(0, IoKind::Read, 4096, 4096);
        at(1, IoKind::Read, 8192, 4096);
        // Merged with others, and again.
        at(2, IoKind::Write, 0, 1 << 20);
        at(3, IoKind::Write, 0, 1 << 20);
        // A part of what was read is another write.
        at(4, IoKind::Read, 4096, 4096);
        at(5, IoKind::Write, 4096, 512);
        at(WRITTEN_BACK + 5, IoKind::Write, 4096, 4096);
        // More than a page is read for its own sake.
        at(6, IoKind::Read, 0, 8192);
        let layer = seen.layer(1).expect("a layer");
        assert_eq!((layer.small_reads, layer.rewritten), (3, 2));
    }

    #[test]
    fn memory_is_bounded() {
        let mut seen = Patterns::default();
        for nth in 0..200_000 {
            see(&mut seen, nth, IoKind::Read, nth * 4096, 4096, Placement::Aligned);
            see(&mut seen, nth, IoKind::Write, 0, nth, Placement::Misaligned);
        }
        assert_eq!(seen.reads.in_order.len(), MOST_READS);
        assert!(seen.reads.by_offset.len() <= MOST_READS);
        let layer = seen.layer(1).expect("a layer");
        assert_eq!((layer.missed.len(), layer.untold), (MOST_LENGTHS, 200_000 - 256));
        assert_eq!(layer.senders.len(), MOST_SENDERS);
    }
}

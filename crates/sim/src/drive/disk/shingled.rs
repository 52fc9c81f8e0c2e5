//! The media cache of shingled tracks: room in it, and cleaning.
//!
//! The cache is a ring of tracks that do not overlap, before the first band. Its oldest data say
//! which band is cleaned next: the band is read, then what of it is in the cache, and the band is
//! written again as a whole. All data of the band have left the cache then. Cleaning is done while
//! the host is idle, and before a write that finds no room.
//!
//! # Sources
//! A. Aghayev and P. Desnoyers, "Skylight: a window on shingled disk operation" (FAST 2015): one
//! persistent cache on the disk, a static map of bands, cleaning while idle, in order of arrival.
//!
//! # Limits
//! A band is rewritten in place: the copy elsewhere that saves it from a loss of power is not made.

use super::firmware::{Bands, Target};
use super::job::Work;
use super::mechanism::Spans;
use super::write_cache::Taken;
use super::{Disk, Ps};
use trueline_geom::base::topology::units;

/// The state of the media cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct MediaCache {
    pub(super) bands: Bands,
    /// The most extents in the map of the cache.
    most: usize,
    /// The host's idle time before cleaning.
    pub(super) idle: Ps,
    /// The next sector of the ring, and the oldest that is in use, counted from the first one ever
    /// written; equal if it is empty.
    head: u64,
    tail: u64,
}

impl MediaCache {
    pub(super) fn new(bands: Bands, most: u32, idle: Ps) -> MediaCache {
        MediaCache { bands, most: most as usize, idle, head: 0, tail: 0 }
    }

    /// The free bytes up to the end of the ring of `sectors`, or to the oldest data.
    fn room(&self, sectors: u64) -> u64 {
        (sectors - (self.head - self.tail)).min(sectors - self.head % sectors)
    }
}

impl Disk {
    /// The bytes that can be written to the log in one piece. The next sector of a media cache is
    /// set.
    pub(super) fn log_room(&mut self) -> u64 {
        let Some(mut cache) = self.media_cache else {
            return (self.log_first + self.log_sectors - self.log_next) * self.sector;
        };
        if self.log.len() >= cache.most {
            return 0;
        }
        if self.log.is_empty() {
            cache.tail = cache.head;
        } else if cache.room(self.log_sectors) == 0 {
            cache.tail = self.oldest_logged(&cache).map_or(cache.head, |(tail, _)| tail);
        }
        self.media_cache = Some(cache);
        self.log_next = self.log_first + cache.head % self.log_sectors;
        cache.room(self.log_sectors) * self.sector
    }

    /// The oldest data in the media cache: their first sector as a count, and where they belong.
    fn oldest_logged(&self, cache: &MediaCache) -> Option<(u64, u64)> {
        let (sectors, head) = (self.log_sectors, cache.head % self.log_sectors);
        let count = |at: u64| {
            let behind = (head + sectors - (at / self.sector - self.log_first)) % sectors;
            cache.head - if behind == 0 { sectors } else { behind }
        };
        self.log.within(0, u64::MAX).map(|(start, extent)| (count(extent.at), start)).min()
    }

    /// Counts the sectors that were appended to the media cache, if there is one.
    pub(super) fn fill_media_cache(&mut self, sectors: u64) {
        if let Some(cache) = &mut self.media_cache {
            cache.head += sectors;
        }
    }

    /// Starts to clean the band of the oldest data. False if the media cache is empty.
    pub(super) fn clean(&mut self, now: Ps) -> bool {
        let mut spans = Spans::default();
        let cleans = self.clean_band(now, &mut spans);
        if cleans {
            // The data in the cache were counted as destaged when they were put there.
            self.begin(now, Work::Destage { taken: Vec::new(), target: Target::Home }, spans);
        }
        cleans
    }

    /// Cleans a band: adds the passes to `spans`. False if the media cache is empty.
    fn clean_band(&mut self, now: Ps, spans: &mut Spans) -> bool {
        let Some(cache) = self.media_cache else { return false };
        let Some((_, oldest)) = self.oldest_logged(&cache) else { return false };
        let (from, to) = (cache.bands.begin(oldest), cache.bands.end(oldest));
        let mut pieces: Vec<(u64, u64)> = self
            .log
            .within(from, to)
            .map(|(start, extent)| (extent.at, extent.at + (extent.end - start)))
            .collect();
        let band = units(from, to, self.sector);
        if pieces.iter().map(|(at, end)| end - at).sum::<u64>() < to - from {
            self.pass(now, spans, band, false, false);
            self.counters.rmw += 1;
            self.counters.rmw_reads += 1;
        }
        pieces.sort_unstable();
        for run in pieces.chunk_by(|one, next| one.1 == next.0) {
            let end = run.last().map_or(0, |last| last.1);
            self.pass(now, spans, units(run[0].0, end, self.sector), false, false);
        }
        self.pass(now, spans, band, true, false);
        self.counters.media_written += (band.1 - band.0) * self.sector;
        self.log.cut(from, to, &self.mechanism.geometry);
        true
    }

    /// Writes `start..end` of write `seq` to the media cache. Bands are cleaned first if there is
    /// no room.
    pub(super) fn write_to_cache(
        &mut self,
        now: Ps,
        spans: &mut Spans,
        (start, end): (u64, u64),
        seq: u64,
    ) {
        let mut at = start;
        while let Some(cache) = self.media_cache.filter(|_| at < end) {
            let room = self.log_room();
            if room == 0 && self.clean_band(now, spans) {
                continue;
            }
            let to = end.min(cache.bands.end(at)).min(at + room.max(self.sector));
            let mut taken = [Taken { start: at, end: to, seq, at }];
            self.append(now, spans, &mut taken);
            self.log.log(&taken[0], &self.mechanism.geometry);
            at = to;
        }
    }
}

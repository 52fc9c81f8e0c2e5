//! Volumes whose bytes have their addresses in metadata of their own, not in the group's text.

use super::super::chunks::{Chunks, Run};
use super::super::fault::{Fault, MapFault};
use super::super::group::{CacheMode, Cached, Logical, SegmentKind};
use super::{Draft, Drawn, Maker, Places, Segments, thin};
use crate::base::finding::{self, Finding, Severity};
use crate::mapping::route::Route;
use crate::probe::Blind;
use std::rc::Rc;
use std::sync::Arc;

/// Volume in chunks, by the volumes that it stands on.
struct Stands {
    /// Volume that holds the chunks.
    store: usize,
    /// Volume that has the rest, if one does.
    origin: Option<usize>,
    /// Size of a chunk, and the first byte of chunk 0 on the store.
    chunk: u64,
    base: u64,
    /// Type of the segment as LVM calls it, and the mode of a cache.
    level: (&'static str, Option<&'static str>),
}

impl Maker<'_> {
    /// The volume of one segment of `kind`; `None` if its bytes have their addresses in the text.
    pub(super) fn mapped(
        &self,
        own: &Logical,
        kind: &SegmentKind,
        draft: &mut Draft,
    ) -> Result<Option<Drawn>, Fault> {
        Ok(Some(match kind {
            SegmentKind::Raid(raid) => {
                let mut made = self.raid(own, raid, draft)?;
                made.set.read_only = own.kept.or(made.set.read_only);
                Drawn { geom: Arc::new(made.set), is_seen: made.is_seen, is_whole: made.is_whole }
            }
            &SegmentKind::Pool { data, metadata, chunk, transaction } => {
                let pool = self.pool(metadata, chunk);
                draft.findings.extend(thin::findings(&pool, transaction));
                self.plain(own, data, None, draft)?
            }
            &SegmentKind::CachePool { data, .. } => self.plain(own, data, None, draft)?,
            &SegmentKind::Tagged { origin } => {
                let tagged = Some("a write would have to change its tags as well");
                self.plain(own, origin, tagged, draft)?
            }
            &SegmentKind::Thin { pool, device, origin } => {
                self.thin(own, pool, device, origin, draft)
            }
            &SegmentKind::Snapshot { origin, store, chunk } => {
                let level = ("snapshot", None);
                let on = Stands { store, origin: Some(origin), chunk, base: 0, level };
                let runs = self.exceptions(store, chunk);
                let unwritten = Some("its store of changes would have to know of a write");
                self.chunks(own, on, runs, unwritten, draft)
            }
            SegmentKind::Cached(cached) => self.behind_cache(own, cached, draft),
            &SegmentKind::WriteCached { cache, origin } => {
                let map = self.write_cached(cache);
                let (chunk, base) = map.as_ref().map_or((1, 0), |map| (map.chunk, map.base));
                let level = ("writecache", None);
                let on = Stands { store: cache, origin: Some(origin), chunk, base, level };
                let written = Some("its cache would have to know of a write");
                self.chunks(own, on, map.map(|map| map.runs), written, draft)
            }
            _ => return Ok(None),
        }))
    }

    /// The metadata of a pool, read once.
    fn pool(&self, metadata: usize, chunk: u64) -> Rc<Result<thin::Pool<'_>, MapFault>> {
        let known = self.pools.borrow().get(&metadata).cloned();
        known.unwrap_or_else(|| {
            let pool = Rc::new(self.read_pool(metadata, chunk));
            self.pools.borrow_mut().insert(metadata, pool.clone());
            pool
        })
    }

    /// A pool, or an image with tags: the whole of its data volume, of which nothing is known but
    /// through the volumes above. `read_only` is the reason for which it is not written.
    fn plain(
        &self,
        own: &Logical,
        data: usize,
        read_only: Option<&'static str>,
        draft: &mut Draft,
    ) -> Result<Drawn, Fault> {
        let length = self.group.bytes(own);
        let at = self.consumer(data, draft);
        let room = at.map_or(0, |_| length.min(self.length(data)));
        let on = at.map(|at| (room, Places::Striped(0, vec![(at, 0)])));
        let runs = on.into_iter().chain([(length - room, Places::Fail)]);
        let name = own.path(self.group);
        let geom = Segments::new(name.clone(), runs.filter(|run| run.0 > 0))
            .ok_or(Fault::Segments(name))?
            .read_only_for(match room < length {
                true => Some("parts of it are missing, or not followed"),
                false => read_only,
            });
        let is_whole = room == length && self.is_whole(data);
        Ok(Drawn { geom: Arc::new(geom), is_seen: false, is_whole })
    }

    fn thin(
        &self,
        own: &Logical,
        pool: usize,
        device: u64,
        origin: Option<usize>,
        draft: &mut Draft,
    ) -> Drawn {
        let level = ("thin", None);
        let kind = self.group.logical.get(pool).and_then(|pool| pool.only());
        let Some(&SegmentKind::Pool { metadata, chunk, transaction, .. }) = kind else {
            let on = Stands { store: pool, origin: None, chunk: 1, base: 0, level };
            return self.chunks(own, on, Err(MapFault::NoPool), None, draft);
        };
        let known = self.pool(metadata, chunk);
        let runs = match &*known {
            Ok(known) => known
                .runs(device, self.length(pool), &self.runs_left)
                .map_err(|fault| MapFault::Device(device, Box::new(fault))),
            Err(_) => Err(MapFault::Pool),
        };
        let on = Stands { store: pool, origin, chunk, base: 0, level };
        let copied = "what it has of its origin would have to be copied";
        let unwritten = known.as_ref().as_ref().ok().and_then(|pool| pool.read_only(transaction));
        self.chunks(own, on, runs, unwritten.or(origin.map(|_| copied)), draft)
    }

    /// A volume behind a dm-cache.
    fn behind_cache(&self, own: &Logical, cached: &Cached, draft: &mut Draft) -> Drawn {
        let kind = self.group.logical.get(cached.pool).and_then(|pool| pool.only());
        let (map, chunk, base, mode) = match (&cached.parts, kind) {
            (&Some(([metadata, base], chunk, mode)), _) => {
                let whole = self.route(cached.pool);
                let map = whole.and_then(|whole| self.part_of(whole, metadata, base));
                (map, chunk, base, mode)
            }
            (None, Some(&SegmentKind::CachePool { metadata, chunks: (chunk, mode), .. })) => {
                (self.route(metadata).cloned(), chunk, 0, mode)
            }
            _ => (None, 1, 0, CacheMode::Writeback),
        };
        let room = self.length(cached.pool).saturating_sub(base);
        let map = map.ok_or(MapFault::Lost);
        let runs = map
            .and_then(|map| self.cached(&map, chunk, room))
            .map_err(|fault| MapFault::Cache(Box::new(fault)));
        let level = ("cache", Some(mode.name()));
        let origin = Some(cached.origin);
        let on = Stands { store: cached.pool, origin, chunk, base, level };
        let whole = self.is_whole(cached.pool);
        let runs = match runs {
            // All that was written is on the origin as well.
            Err(why) if mode != CacheMode::Writeback => Ok(self.uncached(&why.to_string(), draft)),
            Ok(_) if mode != CacheMode::Writeback && !whole => {
                Ok(self.uncached("parts of its cache are missing", draft))
            }
            other => other,
        };
        let unwritten = match mode {
            CacheMode::Writeback => "its cache, in writeback mode, would have to know of a write",
            CacheMode::Writethrough => "its cache, in writethrough mode, would have to change too",
            CacheMode::Passthrough => "its cache, in passthrough mode, would have to change too",
        };
        self.chunks(own, on, runs, Some(unwritten), draft)
    }

    /// No chunk of a cache, because the origin has all of them.
    fn uncached(&self, why: &str, draft: &mut Draft) -> Vec<Run> {
        let message = format!("its cache is left out, and what is behind it is read: {why}");
        draft.findings.push(Finding::new(&finding::INCOMPLETE, Severity::Warning, 0, message));
        Vec::new()
    }

    /// The route to bytes `start` to `end` of what `whole` leads to.
    fn part_of(&self, whole: &Route, start: u64, end: u64) -> Option<Route> {
        let length = end.checked_sub(start).filter(|_| end <= whole.length())?;
        Some(self.present.first()?.probe.over(whole).route_within(start, length))
    }

    /// A volume in chunks, with the `runs` that its map has; an `Err` of these says why it is not
    /// known where its bytes are.
    fn chunks(
        &self,
        own: &Logical,
        on: Stands,
        runs: Result<Vec<Run>, MapFault>,
        unwritten: Option<&'static str>,
        draft: &mut Draft,
    ) -> Drawn {
        let (name, length) = (own.path(self.group), self.group.bytes(own));
        let store = self.consumer(on.store, draft);
        let origin = on.origin.map(|origin| (self.consumer(origin, draft), self.length(origin)));
        let runs = match (runs, store, origin) {
            (Ok(runs), Some(_), None | Some((Some(_), _))) => Ok(runs),
            (Err(why), ..) => Err(why),
            _ => Err(MapFault::NotMade),
        };
        let is_seen = runs.is_ok();
        let runs = runs.unwrap_or_else(|why| {
            let message = format!("where its bytes are is not known: {why}");
            draft.findings.push(Finding::new(&finding::BLIND, Severity::Warning, 0, message));
            // Nothing of it is read: one run of chunks without a place.
            let count = length.div_ceil(on.chunk);
            vec![Run { first: 0, count, store: None, is_shared: true }]
        });
        let torn = runs.iter().any(|run| run.store.is_none());
        let whole = |volume: usize| self.is_whole(volume);
        let is_whole = !torn && whole(on.store) && on.origin.is_none_or(whole);
        let unwritten = own.kept.or(unwritten).or(match (is_seen, torn) {
            (false, _) => Some("where its bytes are is not known"),
            (true, true) => Some("chunks of it would lie past the end of what they are on"),
            (true, false) => None,
        });
        let members = 1 + usize::from(on.origin.is_some());
        let mut geom = Chunks::new(name, length, on.chunk, on.base, runs)
            .arranged(on.level.0, on.level.1, members);
        if let Some((_, length)) = origin {
            geom = geom.over_origin(length);
        }
        Drawn { geom: Arc::new(geom.read_only_for(unwritten)), is_seen, is_whole }
    }

    /// Fills `buffer` with a part of a map.
    pub(super) fn read_map(
        &self,
        route: &Route,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), MapFault> {
        let present = self.present.first().ok_or(MapFault::Lost)?;
        present.probe.over(route).map(offset, buffer).map_err(|blind| match blind {
            Blind::Budget => MapFault::TooLarge,
            Blind::Unreadable(_, errno) => MapFault::Unreadable(offset, errno),
        })
    }

    /// Counts one more run of a map.
    pub(super) fn count_run(&self) -> Result<(), MapFault> {
        let left = self.runs_left.get().checked_sub(1);
        self.runs_left.set(left.ok_or(MapFault::Pieces)?);
        Ok(())
    }

    /// The consumer that is a logical volume.
    fn consumer(&self, volume: usize, draft: &mut Draft) -> Option<usize> {
        let place = super::ExtentAddress { on: super::On::Logical(volume), extent: 0 };
        self.find(place, 0, draft).map(|(at, ..)| at)
    }
}

impl Logical {
    /// The kind of its one segment.
    fn only(&self) -> Option<&SegmentKind> {
        match self.segments.as_deref() {
            Ok([segment]) => Some(&segment.kind),
            _ => None,
        }
    }
}

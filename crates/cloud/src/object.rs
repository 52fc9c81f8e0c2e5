//! One object, read by ranges in rounds.

use crate::choice::{Counts, MOST_BYTES, chosen};
use crate::error::{ErrorClass, ObjectError};
use crate::known::Known;
use crate::location::Location;
use crate::ranges;
use crate::runtime;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use object_store::{GetOptions, GetRange, ObjectMeta};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::{Properties, Store};
use trueline_geom::base::topology::{round_down, round_up};

/// First bytes that are fetched of every object.
const HEAD: u64 = 68 << 10;
/// Last bytes that are fetched of every object: a backup GPT of 128 entries, footers, labels.
const TAIL: u64 = 40 << 10;
/// Rounds in which what tasting misses is fetched; whatever it reads then is fetched as it reads.
const MOST_ROUNDS: u64 = 8;
/// Bytes that are kept of one object while it is tasted; reads beyond that are fetched as they
/// come.
const MOST_KEPT: u64 = 3 << 20;
/// Bytes that one round fetches: what is missed beyond that is fetched as it is read, so that an
/// object cannot say how much memory it takes.
const MOST_MISSED: u64 = 2 << 20;
/// Requests for one object that is tasted: more than any disk takes.
const MOST_REQUESTS: u64 = 256;
/// Unit in which an object is read by a program that is not tasting, in bytes.
const UNIT: u64 = 256 << 10;
/// The same for what is looked at once more of what was tasted.
const LOOK_UNIT: u64 = 64 << 10;
/// Units that are kept of an object which is read so.
const UNITS: usize = 8;

/// State of an object as a listing has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Length of the object in bytes.
    pub size: u64,
    /// Word that changes whenever the object is written; empty where the store has none.
    pub etag: String,
}

/// An object that was connected to.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Length of the object in bytes.
    pub length: u64,
    /// Word that every further request demands; empty where the store has none.
    pub etag: String,
}

/// An object by its URI; nothing is asked for until [`Object::connect`].
pub struct Object {
    uri: String,
    listed: Option<Listed>,
    connected: OnceLock<Result<(Location, Opened), ObjectError>>,
    state: Mutex<State>,
    requests: AtomicU64,
    bytes: AtomicU64,
    rounds: AtomicU64,
}

/// Bytes that are here, and those that are wanted.
#[derive(Default)]
struct State {
    known: Known,
    /// First byte and end of each, once: every format asks for the same head.
    missing: HashSet<(u64, u64)>,
    missing_bytes: u64,
    /// True if a read has failed since the last round: what was tasted then does not count.
    has_missed: bool,
    /// True once reads are fetched as they come.
    is_direct: bool,
    /// Requests, bytes and rounds that it may take while it is tasted.
    bounds: Option<Counts>,
    /// True once nothing more is fetched, by its bounds.
    is_over: bool,
    /// True if a program reads it that may read all of it.
    is_unbounded: bool,
    /// Units that were read last, by their number; the last one first.
    units: Vec<(u64, Arc<[u8]>)>,
    /// First error of a request behind the first round.
    failure: Option<ObjectError>,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl Object {
    /// The object of that URI, in the state in which it was listed, if it was.
    pub fn new(uri: &str, listed: Option<Listed>) -> Object {
        Object {
            uri: uri.into(),
            listed,
            connected: OnceLock::new(),
            state: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
        }
    }

    /// URI that it was given.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// State in which it was listed.
    pub fn listed(&self) -> Option<&Listed> {
        self.listed.as_ref()
    }

    /// Fetches the head and the tail, once: later calls give the same answer.
    ///
    /// Errors: an object that cannot be read, or is not in the state that was listed.
    pub fn connect(&self) -> Result<&Opened, ObjectError> {
        self.connection().map(|(_, opened)| opened)
    }

    fn connection(&self) -> Result<&(Location, Opened), ObjectError> {
        self.connected.get_or_init(|| self.first_round()).as_ref().map_err(Clone::clone)
    }

    /// A store of its bytes. Errors: as [`Object::connect`].
    pub fn store(self: &Arc<Object>) -> Result<ObjectStore, ObjectError> {
        let length = self.connect()?.length;
        Ok(ObjectStore { object: self.clone(), length })
    }

    /// Fetches what reads have missed so far, all at once; false if they missed nothing.
    ///
    /// Errors: the first request that failed.
    pub fn fetch_missing(&self) -> Result<bool, ObjectError> {
        let (location, opened) = self.connection()?;
        let (missing, has_missed) = {
            let mut state = self.state();
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            state.missing_bytes = 0;
            let has_missed = std::mem::take(&mut state.has_missed);
            (std::mem::take(&mut state.missing), has_missed)
        };
        let missing: Vec<Range<u64>> = missing.into_iter().map(|(from, to)| from..to).collect();
        if missing.is_empty() {
            self.state().is_direct = true;
            return Ok(has_missed);
        }
        let counts = self.counts();
        let left = self.bounds().map(|bounds| bounds.less(counts));
        let ranges = chosen(missing, counts, left, opened.length);
        let is_last = left.is_some_and(|left| left.rounds <= 1);
        self.state().is_over |= is_last || ranges.is_empty();
        let found = self.fetch(location, opened, &ranges).inspect_err(|e| {
            self.state().failure = Some(e.clone());
        })?;
        let mut state = self.state();
        for (range, bytes) in ranges.iter().zip(found) {
            state.known.put(range.start, &bytes);
        }
        let is_last = self.rounds.load(Ordering::Relaxed) > MOST_ROUNDS;
        state.is_direct |= is_last || state.known.bytes() > MOST_KEPT;
        Ok(true)
    }

    /// State of the object, by a request for one byte: the store's, not that of the listing. The
    /// object is connected to later, if it is.
    ///
    /// Errors: an object that cannot be read, or has no bytes.
    pub fn peek(&self) -> Result<Opened, ObjectError> {
        let location = Location::parse(&self.uri)?;
        let (_, _, meta) = self.wait(self.get(&location, GetRange::Bounded(0..1), ""))?;
        Ok(Opened { length: meta.size, etag: meta.e_tag.unwrap_or_default() })
    }

    /// Has reads fetched as they come from now on, without bounds. Errors: as [`Object::connect`].
    pub fn read_as_asked(&self) -> Result<(), ObjectError> {
        self.connect()?;
        let mut state = self.state();
        (state.is_direct, state.is_unbounded) = (true, true);
        // Bounds are of what is looked at.
        (state.bounds, state.is_over) = (None, false);
        state.units.clear();
        Ok(())
    }

    /// True if reads are fetched as they come because a program reads it.
    pub fn reads_as_asked(&self) -> bool {
        self.state().is_unbounded
    }

    /// Has no more fetched of it than `bounds`: reads of the rest fail with [`Errno::Unfetched`].
    pub fn bound(&self, bounds: Counts) {
        self.state().bounds = Some(bounds);
    }

    /// Bounds of what is fetched of it, if there are any.
    pub fn bounds(&self) -> Option<Counts> {
        self.state().bounds
    }

    /// Requests that it took so far.
    pub fn counts(&self) -> Counts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Counts { requests: of(&self.requests), bytes: of(&self.bytes), rounds: of(&self.rounds) }
    }

    /// The error that ended its reading, if one did.
    pub fn failure(&self) -> Option<ObjectError> {
        let connected = self.connected.get().and_then(|result| result.as_ref().err()).cloned();
        connected.or_else(|| self.state().failure.clone())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head and the tail, and what the store says of the object.
    fn first_round(&self) -> Result<(Location, Opened), ObjectError> {
        let location = Location::parse(&self.uri)?;
        if let Some(Listed { size, etag }) = &self.listed {
            let opened = Opened { length: *size, etag: etag.clone() };
            let ranges = ends(*size);
            let found = self.fetch(&location, &opened, &ranges)?;
            let mut state = self.state();
            ranges
                .iter()
                .zip(found)
                .for_each(|(range, bytes)| state.known.put(range.start, &bytes));
            drop(state);
            return Ok((location, opened));
        }
        // Without a length the head says it; the tail may be asked for at the same time.
        self.rounds.fetch_add(1, Ordering::Relaxed);
        let head = self.get(&location, GetRange::Bounded(0..HEAD), "");
        let found = match location.has_suffixes {
            false => self.wait(async { head.await.map(|head| (head, None)) }),
            true => {
                let tail = self.get(&location, GetRange::Suffix(TAIL), "");
                self.wait(async {
                    let (head, tail) = futures_util::join!(head, tail);
                    // A server that knows no suffixes has refused one; its head is as good.
                    head.map(|head| (head, tail.ok()))
                })
            }
        };
        let ((head, at, meta), tail) = match found {
            // An object of no bytes has no range.
            Err(e) if e.class == ErrorClass::Refused => {
                (self.wait(self.empty(&location, e))?, None)
            }
            found => found?,
        };
        let opened = Opened { length: meta.size, etag: meta.e_tag.unwrap_or_default() };
        let mut state = self.state();
        state.known.put(at, &head);
        if let Some((tail, at, meta)) = tail {
            if meta.size != opened.length || meta.e_tag.unwrap_or_default() != opened.etag {
                return Err(self.error(ErrorClass::Changed, "it was written while it was read"));
            }
            state.known.put(at, &tail);
        }
        let missing: Vec<Range<u64>> =
            ends(opened.length).into_iter().flat_map(|end| state.known.missing(end)).collect();
        drop(state);
        let found = self.fetch(&location, &opened, &missing)?;
        let mut state = self.state();
        missing.iter().zip(found).for_each(|(range, bytes)| state.known.put(range.start, &bytes));
        drop(state);
        Ok((location, opened))
    }

    /// An object to which a range was refused, as a whole if it has no bytes; else `refusal`.
    async fn empty(
        &self,
        location: &Location,
        refusal: ObjectError,
    ) -> Result<(Bytes, u64, ObjectMeta), ObjectError> {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let found = location.store.get_opts(&location.path, options).await;
        match found.map_err(|e| ObjectError::from_store(&self.uri, &e))?.meta {
            meta if meta.size == 0 => Ok((Bytes::new(), 0, meta)),
            _ => Err(refusal),
        }
    }

    fn error(&self, class: ErrorClass, why: &str) -> ObjectError {
        ObjectError::new(&self.uri, class, why)
    }

    fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, ObjectError>>,
    ) -> Result<T, ObjectError> {
        runtime::wait(work).unwrap_or_else(|e| Err(self.error(e.class(), &e.to_string())))
    }

    /// The bytes of all `ranges`, asked for at once, in the state that was opened.
    fn fetch(
        &self,
        location: &Location,
        opened: &Opened,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Bytes>, ObjectError> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        let asked = self.requests.load(Ordering::Relaxed).saturating_add(ranges.len() as u64);
        if asked > MOST_REQUESTS && !self.state().is_unbounded {
            return Err(self.error(ErrorClass::Refused, "it takes more requests than a disk does"));
        }
        self.rounds.fetch_add(1, Ordering::Relaxed);
        let gets = ranges.iter().map(|range| async {
            let asked = GetRange::Bounded(range.clone());
            let (bytes, _, meta) = self.get(location, asked, &opened.etag).await?;
            match (bytes.len() as u64 == range.end - range.start, meta.size == opened.length) {
                (_, false) => Err(self.error(ErrorClass::Changed, "its length changed")),
                (false, _) => Err(self.error(ErrorClass::Truncated, "a reply was cut short")),
                (true, true) => Ok(bytes),
            }
        });
        self.wait(try_join_all(gets))
    }

    /// One range, and where it begins, of an object in the state `etag` or, if that is empty, in
    /// any.
    async fn get(
        &self,
        location: &Location,
        range: GetRange,
        etag: &str,
    ) -> Result<(Bytes, u64, ObjectMeta), ObjectError> {
        let failed = |e: object_store::Error| ObjectError::from_store(&self.uri, &e);
        let most = match &range {
            GetRange::Bounded(range) => range.end - range.start,
            GetRange::Suffix(length) | GetRange::Offset(length) => *length,
        };
        self.requests.fetch_add(1, Ordering::Relaxed);
        let if_match = (!etag.is_empty()).then(|| etag.to_owned());
        let options = GetOptions { range: Some(range), if_match, ..GetOptions::default() };
        let reply = location.store.get_opts(&location.path, options).await.map_err(failed)?;
        let (meta, at) = (reply.meta.clone(), reply.range.start);
        let (mut stream, mut bytes) = (reply.into_stream(), Vec::new());
        while let Some(part) = stream.next().await {
            let part = part.map_err(failed)?;
            self.bytes.fetch_add(part.len() as u64, Ordering::Relaxed);
            if (bytes.len() + part.len()) as u64 > most {
                return Err(
                    self.error(ErrorClass::Truncated, "a reply is longer than what was asked for")
                );
            }
            bytes.extend_from_slice(&part);
        }
        Ok((bytes.into(), at, meta))
    }

    /// Fills `buffer` from `offset` with bytes of units, which are fetched unless they are here.
    fn read_units(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let (location, opened) = self.connection().map_err(|_| Errno::Io)?;
        let size = if self.state().is_unbounded { UNIT } else { LOOK_UNIT };
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let first = round_down(at, size);
            let kept = {
                let mut state = self.state();
                let place = state.units.iter().position(|(start, _)| *start == first);
                place.map(|place| {
                    let unit = state.units.remove(place);
                    state.units.insert(0, unit.clone());
                    unit.1
                })
            };
            let unit = match kept {
                Some(unit) => unit,
                None => {
                    let end = round_up(first + 1, size).unwrap_or(u64::MAX).min(opened.length);
                    let range = first..end;
                    let found = self.fetch(location, opened, std::slice::from_ref(&range));
                    let found = found.map_err(|e| {
                        self.state().failure.get_or_insert(e);
                        Errno::Io
                    })?;
                    let unit: Arc<[u8]> = found.concat().into();
                    let mut state = self.state();
                    state.units.insert(0, (first, unit.clone()));
                    state.units.truncate(UNITS);
                    unit
                }
            };
            let from = usize::try_from(at - first).map_err(|_| Errno::Range)?;
            let rest = unit.get(from..).filter(|rest| !rest.is_empty()).ok_or(Errno::Io)?;
            let count = rest.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&rest[..count]);
            done += count;
        }
        Ok(())
    }
}

/// The head and the tail of an object of `length` bytes, as one range where they meet.
fn ends(length: u64) -> Vec<Range<u64>> {
    ranges::requests(vec![0..HEAD.min(length), length.saturating_sub(TAIL)..length], MOST_BYTES, 1)
}

/// Bytes of an object that was connected to, as a disk that is read only.
pub struct ObjectStore {
    object: Arc<Object>,
    length: u64,
}

impl Store for ObjectStore {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let end = offset.checked_add(buffer.len() as u64).filter(|&end| end <= self.length);
        let end = end.ok_or(Errno::Range)?;
        let mut state = self.object.state();
        if state.known.copy(buffer, offset) {
            return Ok(());
        }
        if state.is_over {
            return Err(Errno::Unfetched);
        }
        if !state.is_direct {
            let missing = state.known.missing(offset..end);
            let has_room = state.missing_bytes <= MOST_MISSED;
            for part in missing.into_iter().filter(|_| has_room) {
                if state.missing.insert((part.start, part.end)) {
                    state.missing_bytes += part.end - part.start;
                }
            }
            if state.missing_bytes <= MOST_MISSED || state.bounds.is_some() {
                state.has_missed = true;
                return Err(Errno::Awaited);
            }
            // From here on nothing is kept but the last units.
            state.is_direct = true;
            state.missing.clear();
        }
        drop(state);
        self.object.read_units(buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn flush(&self) -> Result<(), Errno> {
        Ok(())
    }

    fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
        Err(Errno::ReadOnly)
    }

    fn properties(&self) -> Properties {
        Properties { depth: 64, is_far: true, ..Properties::default() }
    }
}

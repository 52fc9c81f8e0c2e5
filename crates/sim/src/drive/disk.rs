//! `disk`: a hard disk with zones, an arm, caches and a firmware.
//!
//! The link and the mechanism are two servers: commands and data move while the arm does. Reads,
//! and writes that bypass the cache, wait in the `queue`. Written data wait in the `write_cache`
//! until there is a reason to destage, and the `firmware` decides which go to the medium together.
//! A physical sector that is written in part is read, and written when it comes round again. All
//! places inside are bytes of the medium: those of the host, moved by `alignment_offset` and the
//! jumper.

use super::zones::Zones;
use super::{Command, Completion, Drive, Op};
use crate::counters::Counters;
use crate::model::Model;
use crate::model::disk::{Order, Parameters, Personality};
use crate::random::Random;
use crate::time::{MS, Ps, S, span};
use firmware::{Bands, Firmware};
use geometry::{Geometry, Measures};
use job::{Running, Work};
use ledger::Ledger;
use mechanism::{Mechanism, Times};
use queue::{Queue, Waiting};
use read_cache::ReadCache;
use read_modify_write::EdgeCache;
use shingled::MediaCache;
use std::collections::VecDeque;
use trueline_geom::base::topology::Grain;
use write_cache::{Taken, WriteCache};

mod dispatch;
mod firmware;
mod geometry;
mod job;
mod ledger;
mod mechanism;
mod queue;
mod read_cache;
mod read_modify_write;
mod shingled;
mod write_cache;

/// An arrival at either end of the link.
#[derive(Clone, Copy, Debug)]
enum Arrival {
    /// A command, with the data of a write.
    Command(Command),
    /// The data of the read with this tag have reached the host.
    Sent(u64),
}

/// A flush that waits for every write up to `seq`.
#[derive(Clone, Copy, Debug)]
struct Flush {
    tag: u64,
    seq: u64,
}

/// Limits of the write cache, from the model.
#[derive(Clone, Copy, Debug)]
struct Limits {
    bytes: u64,
    high: u64,
    low: u64,
    slots: usize,
    idle: Ps,
}

/// A hard disk under simulation.
#[derive(Debug)]
pub struct Disk {
    /// The size of a physical sector in bytes.
    sector: u64,
    /// Bytes by which the host's addresses are moved on the medium.
    shift: u64,
    tags: usize,
    zones: Option<Zones>,
    mechanism: Mechanism,
    running: Option<Running>,
    /// The time at which the mechanism last became free.
    free: Ps,
    overhead: Ps,
    per_byte: f64,
    link_free: Ps,
    link: VecDeque<(Ps, Arrival)>,
    queue: Queue,
    reads: ReadCache,
    writes: WriteCache,
    /// A vector reused for extents on their way to the medium.
    spare: Vec<Taken>,
    limits: Limits,
    write_through: bool,
    destage_order: Order,
    firmware: Box<dyn Firmware>,
    edges: EdgeCache,
    /// The map of the log on the medium, if the firmware has one; its first sector, its length in
    /// sectors, and the next sector to be written. The log starts again when everything in it has
    /// been rewritten.
    log: WriteCache,
    log_first: u64,
    log_sectors: u64,
    log_next: u64,
    /// The media cache and the bands behind it, if tracks are shingled; its ring is the log.
    media_cache: Option<MediaCache>,
    /// The end of the sectors that the host's data have at home.
    home_end: u64,
    /// Writes that wait for room in the cache.
    stalled: VecDeque<Command>,
    flushes: VecDeque<Flush>,
    /// The time of a flush after its data are on the medium.
    flush_cost: Ps,
    /// The last write that a flush has paid for.
    flushed: u64,
    /// True from the high to the low mark: dirty data are destaged although no command needs it.
    urgent: bool,
    /// True if destaging has the next turn, where both commands and destaging are urgent.
    destage_turn: bool,
    outstanding: usize,
    /// The time of the host's last command or its completion.
    touched: Ps,
    /// The time at which a read was last answered.
    answered: Ps,
    /// The number of writes taken into the cache.
    arrivals: u64,
    clock: Ps,
    /// The time of the next event, as of the last call.
    due: Option<Ps>,
    done: Vec<Completion>,
    counters: Counters,
    ledger: Ledger,
}

/// The measures of a model's platters at nominal speed.
pub(crate) fn measures(model: &Model, parameters: &Parameters) -> Measures {
    let sector = model.physical_block_size;
    let outer = (parameters.outer_track_bytes / sector).max(1);
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sectors of a track"
    )]
    let inner = ((outer as f64 * parameters.inner_outer_ratio) as u64).clamp(1, outer);
    let log = match parameters.personality {
        Personality::Log | Personality::Shingled => parameters.log_bytes,
        Personality::Command | Personality::Stream | Personality::Window => 0,
    };
    // One sector more for the data that alignment_offset moves past the end.
    let bytes =
        parameters.full_size_bytes.max(model.size).saturating_add(sector).saturating_add(log);
    let head_skew = span(parameters.head_switch_ms, MS);
    Measures {
        sectors: bytes.div_ceil(sector),
        heads: parameters.heads.into(),
        zones: parameters.zones.into(),
        outer,
        inner,
        rev: span(60.0 / parameters.rpm, S),
        head_skew,
        cylinder_skew: head_skew
            .max(span(parameters.track_to_track_ms + parameters.write_settle_ms, MS)),
    }
}

impl Disk {
    /// A disk switched on at time 0. `seed` determines the angle of the platters and their actual
    /// speed.
    pub fn new(model: &Model, parameters: &Parameters, seed: u64) -> Disk {
        let sector = model.physical_block_size;
        let mut random = Random::new(seed);
        let slow_or_fast =
            1.0 + parameters.rpm_spread_percent / 100.0 * (2.0 * random.unit() - 1.0);
        let rev = span(60.0 / (parameters.rpm * slow_or_fast), S).max(1);
        let measures = measures(model, parameters);
        let geometry = Geometry::new(&Measures { rev, ..measures });
        let times = Times {
            average_seek_ms: parameters.average_seek_ms,
            track_to_track_ms: parameters.track_to_track_ms,
            head_switch: span(parameters.head_switch_ms, MS),
            write_settle: span(parameters.write_settle_ms, MS),
            setup: span(parameters.setup_ms, MS),
        };
        let shingled = parameters.personality == Personality::Shingled;
        let logs = shingled || parameters.personality == Personality::Log;
        let log_sectors = if logs { parameters.log_bytes / sector } else { 0 };
        // A media cache is on the outermost tracks, a log behind all data.
        let home_end = if shingled { measures.sectors } else { measures.sectors - log_sectors };
        let log_first = if shingled { 0 } else { home_end };
        let first = if shingled { log_sectors * sector } else { 0 };
        let bytes = parameters.band_bytes;
        let bands = shingled.then_some(Bands { first, bytes, end: home_end * sector });
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a cache"
        )]
        let share = |percent: f64| (parameters.cache_bytes as f64 * percent / 100.0) as u64;
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let per_byte = S as f64 / parameters.link_rate_bytes as f64;
        Disk {
            sector,
            shift: first + Grain::new(sector, model.phase()).map_or(0, |grain| grain.remainder(0)),
            tags: parameters.tags as usize,
            zones: model.zones(),
            mechanism: Mechanism::new(geometry, times, random.below(rev)),
            running: None,
            free: 0,
            overhead: span(parameters.command_overhead_ms, MS),
            per_byte,
            link_free: 0,
            link: VecDeque::new(),
            queue: Queue::new(parameters.order, span(parameters.age_limit_ms, MS)),
            reads: ReadCache::new(parameters.read_segments as usize, parameters.read_ahead_bytes),
            writes: WriteCache::new(sector),
            spare: Vec::new(),
            limits: Limits {
                bytes: parameters.cache_bytes,
                high: share(parameters.high_percent),
                low: share(parameters.low_percent),
                slots: parameters.slots as usize,
                idle: span(parameters.idle_ms, MS),
            },
            write_through: !parameters.write_cache,
            destage_order: parameters.destage_order,
            firmware: firmware::personality(parameters, sector, bands),
            edges: EdgeCache::new(parameters.edge_cache_sectors as usize),
            log: WriteCache::new(sector),
            log_first,
            log_sectors,
            log_next: log_first,
            media_cache: bands.map(|bands| {
                let idle = span(parameters.clean_idle_ms, MS);
                MediaCache::new(bands, parameters.log_entries, idle)
            }),
            home_end,
            stalled: VecDeque::new(),
            flushes: VecDeque::new(),
            flush_cost: span(parameters.flush_ms, MS),
            flushed: 0,
            urgent: false,
            destage_turn: false,
            outstanding: 0,
            touched: 0,
            answered: 0,
            arrivals: 0,
            clock: 0,
            due: None,
            done: Vec::new(),
            counters: Counters::default(),
            ledger: Ledger::default(),
        }
    }

    /// The range of a command on the medium: (first byte, end).
    fn place(&self, command: &Command) -> (u64, u64) {
        (command.offset + self.shift, command.offset + self.shift + command.length)
    }

    fn on_link(&self, bytes: u64) -> Ps {
        #[allow(clippy::cast_precision_loss, reason = "bytes of one command")]
        span(bytes as f64 * self.per_byte, 1)
    }

    /// Completes a command at time `at`.
    fn complete(&mut self, at: Ps, tag: u64) {
        self.ledger.complete(tag);
        self.outstanding -= 1;
        self.touched = at;
        self.done.push(Completion { tag, at });
    }

    /// Sends a read's data, available from `since` on, to the host. It ends after the last sector
    /// has gone.
    fn send(&mut self, command: &Command, since: Ps, now: Ps) {
        let begin = self.link_free.max(since);
        let end = (begin + self.on_link(command.length))
            .max(now + self.on_link(self.sector.min(command.length)));
        self.link_free = end.max(self.link_free);
        self.link.push_back((self.link_free, Arrival::Sent(command.tag)));
    }

    /// The time at which dirty data are destaged because the host is idle; `None` if it is not, or
    /// nothing is dirty.
    fn idle_at(&self) -> Option<Ps> {
        let dirty = !self.writes.is_empty() || !self.log.is_empty();
        let wait = if self.writes.is_empty() { self.clean_idle() } else { self.limits.idle };
        (self.running.is_none() && self.outstanding == 0 && dirty)
            .then(|| self.touched.saturating_add(wait))
    }

    /// The host's idle time before the log is emptied.
    fn clean_idle(&self) -> Ps {
        self.media_cache.as_ref().map_or(self.limits.idle, |cache| cache.idle)
    }

    /// The time before which dirty data are not destaged merely for their amount: the next read is
    /// often near the last.
    fn held_until(&self) -> Ps {
        if self.answered == 0 { 0 } else { self.answered.saturating_add(self.limits.idle) }
    }

    /// Simulates everything up to and including `now`.
    fn run(&mut self, now: Ps) {
        while let Some(at) = self.due.filter(|&at| at <= now) {
            debug_assert!(at >= self.clock, "time goes back");
            self.clock = at.max(self.clock);
            self.counters.events += 1;
            if self.running.as_ref().is_some_and(|running| running.end() <= at) {
                self.finish(at);
            } else if self.link.front().is_some_and(|(due, _)| *due <= at) {
                match self.link.pop_front() {
                    Some((_, Arrival::Sent(tag))) => {
                        self.answered = at;
                        self.complete(at, tag);
                    }
                    Some((_, Arrival::Command(command))) => self.arrive(at, command),
                    None => {}
                }
            }
            self.dispatch(at);
            self.due = self.event();
        }
        self.clock = self.clock.max(now);
    }

    /// The time of the next internal event.
    fn event(&self) -> Option<Ps> {
        let running = self.running.as_ref().map(Running::end);
        let link = self.link.front().map(|(due, _)| *due);
        let held = self.urgent.then(|| self.held_until()).filter(|&until| until > self.clock);
        let next = running.into_iter().chain(link).chain(held).chain(self.idle_at()).min();
        // An idle timer that ran out while the mechanism was busy is due now.
        next.map(|at| at.max(self.clock))
    }

    /// Handles a command that has come over the link.
    fn arrive(&mut self, now: Ps, command: Command) {
        match command.op {
            Op::Flush => {
                self.flushes.push_back(Flush { tag: command.tag, seq: self.arrivals });
                if self.flushes.len() == 1 {
                    self.writes.cover(self.arrivals);
                }
            }
            Op::Write if command.length == 0 => self.complete(now, command.tag),
            Op::Write if self.write_through || command.fua => {
                self.enqueue(now, command, command.offset + self.shift)
            }
            Op::Write => self.stalled.push_back(command),
            Op::Read => self.arrive_read(now, command),
        }
    }

    fn arrive_read(&mut self, now: Ps, command: Command) {
        self.note_ahead(now);
        let (start, end) = self.place(&command);
        self.reads.ask(start, end);
        let missing = self.missing(start, end);
        if missing >= end {
            self.counters.cache_hits += 1;
            self.send(&command, now, now);
        } else {
            self.enqueue(now, command, missing);
        }
    }

    /// The physical sector from which a byte of the medium is read, in the log or at home.
    fn lies(&self, byte: u64) -> u64 {
        self.log.lies(byte, byte + 1).0.unwrap_or(byte) / self.sector
    }

    fn enqueue(&mut self, now: Ps, command: Command, from: u64) {
        let sector = if command.op == Op::Read { self.lies(from) } else { from / self.sector };
        let place = self.mechanism.geometry.locate(sector);
        self.queue.push(Waiting { command, at: now, sector, place });
    }

    /// The first byte of `start..end` that is in no cache; `end` if all are.
    fn missing(&self, start: u64, end: u64) -> u64 {
        let mut at = start;
        while at < end {
            let next = self.reads.covered(at).max(self.writes.covered(at)).max(self.in_flight(at));
            if next == at {
                break;
            }
            at = next;
        }
        at.min(end)
    }

    /// The end of the data on their way to the medium that contain `at`; `at` if none do.
    fn in_flight(&self, at: u64) -> u64 {
        let Some(Running { work: Work::Destage { taken, .. }, .. }) = &self.running else {
            return at;
        };
        taken.iter().find(|taken| taken.start <= at && at < taken.end).map_or(at, |taken| taken.end)
    }
}

impl Drive for Disk {
    fn submit(&mut self, now: Ps, command: Command) {
        self.run(now);
        self.ledger.submit(command.tag);
        self.outstanding += 1;
        self.touched = now;
        self.counters.events += 1;
        let data = match command.op {
            Op::Read => {
                (self.counters.reads, self.counters.bytes_read) =
                    (self.counters.reads + 1, self.counters.bytes_read + command.length);
                0
            }
            Op::Write => {
                self.counters.writes += 1;
                self.counters.bytes_written += command.length;
                command.length
            }
            Op::Flush => {
                self.counters.flushes += 1;
                0
            }
        };
        self.link_free = self.link_free.max(now) + self.overhead + self.on_link(data);
        self.link.push_back((self.link_free, Arrival::Command(command)));
        self.due = self.event();
    }

    fn next(&self) -> Option<Ps> {
        if self.done.is_empty() { self.due } else { Some(self.clock) }
    }

    fn advance(&mut self, now: Ps, done: &mut Vec<Completion>) {
        self.run(now);
        done.append(&mut self.done);
    }

    fn tags(&self) -> usize {
        self.tags
    }

    fn zones(&self) -> Option<Zones> {
        self.zones.clone()
    }

    fn counters(&self, now: Ps) -> Counters {
        let mut counters = self.counters;
        counters.lost_revolutions = self.mechanism.lost;
        match &self.running {
            Some(running) => {
                running.spans.first(now.max(self.clock) - running.start).count(&mut counters)
            }
            None => counters.idle += now.max(self.clock) - self.free,
        }
        counters
    }
}

#[cfg(test)]
mod tests;

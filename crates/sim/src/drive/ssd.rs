//! `ssd`: flash behind an indirection unit, as in large SSDs and, with a few open allocation units,
//! in cards.
//!
//! A command passes the controller (a server, `controller_ns` each) and, after `command_ns`, the
//! link (a server). A write enters the buffer one unit at a time, as there is room, and is then
//! done, unless it is FUA without power-loss protection or there is no buffer. A unit that was
//! written whole is programmed at once. One that was written in part waits for the rest for
//! `merge_ns`, or until half of the buffer waits, or a FLUSH comes. Then its missing part is read
//! first, unless it is still in memory: a read-modify-write. Sequential writes off the unit pay for
//! that only at their ends.
//!
//! Programs go to the die that is free first, a group of `planes` pages together if so many wait.
//! Where a page holds several units, those that are ready fill it in the order in which they became
//! so. A page that is not full waits for `merge_ns` too, and not at all if a command waits for it;
//! what is missing then is programmed as padding.
//!
//! Reads go to the die of the page, striped over the dies. Data that the host has not written since
//! time 0 are read like others. A write to an allocation unit that is not open closes another
//! (`open`), which is counted as a read-modify-write.
//!
//! With a spare area garbage is collected (`garbage`, `collect`): reads, programs and erasures that
//! take the time of dies and channels from the host.
//!
//! # Time
//! The mechanism is the dies together. `transfer`: at least one reads, programs or copies. `setup`:
//! none does, and a command is in the drive, in the controller, on the link or in a queue. `idle`:
//! neither. They add up to the time that passed; nothing seeks or rotates.

use super::{Command, Completion, Drive, Op};
use crate::counters::Counters;
use crate::model::{Model, ssd::Parameters};
use crate::time::{NS, Ps, S, span};
use buffer::{Buffer, Unit};
use collect::Owed;
use flash::Flash;
use garbage::Garbage;
use open::OpenUnits;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use trueline_geom::base::topology::{Grain, round_down};

mod buffer;
mod collect;
mod enter;
mod flash;
mod garbage;
mod open;
mod program;
mod read_modify_write;

/// An event; those at the same time happen in the order in which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The controller has finished a command.
    Decoded(u64),
    /// The data of a write have arrived; a flush is behind all writes before it.
    Arrived(u64),
    /// The data of a read are in the drive's memory.
    Read(u64),
    /// A command is done.
    Sent(u64),
    /// The rest of a unit that was written in part has been read.
    Merged(u64),
    /// A group of units is programmed.
    Programmed(u64),
    /// A die has become free.
    Free,
    /// A page that begins with this unit has waited for the units that would have filled it.
    Waited(u64),
}

/// A command in progress.
#[derive(Clone, Copy, Debug)]
struct Open {
    command: Command,
    /// The number of its arrival.
    order: u64,
    /// Bytes of a write that have entered the buffer.
    entered: u64,
    /// Units that must be programmed before it is done.
    waits: u64,
    /// True if all of it has entered the buffer.
    whole: bool,
}

/// An SSD or card under simulation.
#[derive(Debug)]
pub struct Ssd {
    /// The size of an indirection unit in bytes, and the shift of addresses that makes units begin
    /// at multiples of it.
    unit: u64,
    lead: u64,
    /// The end of the last unit's data, in shifted addresses.
    end: u64,
    page: u64,
    /// Units in a page, and pages in a unit: one of them is 1.
    packed: u64,
    pages: u64,
    tags: usize,
    command: Ps,
    controller: Ps,
    link_per_byte: f64,
    merge: Ps,
    /// The capacity of the buffer in units.
    capacity: usize,
    cache_units: usize,
    gc: f64,
    /// True if data in the buffer survive a loss of power; and true if there is no buffer.
    protected: bool,
    through: bool,

    now: Ps,
    numbers: u64,
    events: BinaryHeap<Reverse<(Ps, u64, Event)>>,
    finished: Vec<Completion>,
    open: BTreeMap<u64, Open>,
    controller_free: Ps,
    link_free: Ps,
    /// Writes and flushes waiting to enter the buffer, in order.
    entering: VecDeque<u64>,
    buffer: Buffer,
    /// Units that left the buffer: waiting for a read, for a die, and being programmed.
    merging: BTreeMap<u64, Unit>,
    ready: VecDeque<Unit>,
    programs: BTreeMap<u64, Vec<Unit>>,
    on_their_way: usize,
    /// The number of times each unit is in memory, on its way or in the cache; `cached` has the
    /// cache's order.
    resident: BTreeMap<u64, usize>,
    cached: VecDeque<u64>,
    /// True if an event will look for free dies; and if one will for a page that waits to be full.
    look: bool,
    padding: bool,
    flash: Flash,
    allocation: Option<OpenUnits>,
    /// Picoseconds for a copied byte of an allocation unit, if not a die alone copies it.
    copy_per_byte: Option<f64>,
    /// Garbage collection as a process, and the work that it has still to do.
    garbage: Option<Garbage>,
    owed: Owed,
    erase_block: u64,
    /// Bytes of writes: entered, overwritten in the buffer, programmed.
    entered: u64,
    replaced: u64,
    programmed: u64,
    counters: Counters,
}

impl Ssd {
    /// A drive switched on at time 0.
    pub fn new(model: &Model, parameters: &Parameters) -> Ssd {
        let unit = model.physical_block_size.max(1);
        let lead = Grain::new(unit, model.alignment_offset).map_or(0, |units| units.remainder(0));
        let units = |bytes: u64| usize::try_from(bytes / unit).unwrap_or(usize::MAX);
        #[allow(clippy::cast_precision_loss, reason = "a rate")]
        let per_byte = |rate: u64| S as f64 / rate as f64;
        let link_per_byte = per_byte(parameters.link_rate_bytes);
        let copy_rate = parameters.copy_rate_bytes;
        let copy_per_byte = (copy_rate > 0).then(|| per_byte(copy_rate));
        Ssd {
            unit,
            lead,
            end: model.size.saturating_add(lead),
            page: parameters.page_bytes,
            packed: (parameters.page_bytes / unit).max(1),
            pages: (unit / parameters.page_bytes).max(1),
            tags: parameters.queue_depth as usize,
            command: span(parameters.command_ns, NS),
            controller: span(parameters.controller_ns, NS),
            link_per_byte,
            merge: span(parameters.merge_ns, NS),
            capacity: units(parameters.buffer_bytes).max(1),
            cache_units: units(parameters.cache_bytes),
            gc: parameters.gc_factor - 1.0,
            protected: parameters.power_loss_protection && parameters.buffer_bytes > 0,
            through: parameters.buffer_bytes == 0,
            now: 0,
            numbers: 0,
            events: BinaryHeap::new(),
            finished: Vec::new(),
            open: BTreeMap::new(),
            controller_free: 0,
            link_free: 0,
            entering: VecDeque::new(),
            buffer: Buffer::default(),
            merging: BTreeMap::new(),
            ready: VecDeque::new(),
            programs: BTreeMap::new(),
            on_their_way: 0,
            resident: BTreeMap::new(),
            cached: VecDeque::new(),
            look: false,
            padding: false,
            flash: Flash::new(parameters),
            allocation: OpenUnits::new(
                parameters.allocation_unit_bytes,
                parameters.open_units,
                parameters.unit_style,
            ),
            copy_per_byte,
            garbage: Garbage::new(
                parameters,
                model.size.saturating_add(lead).div_ceil(unit),
                (parameters.page_bytes / unit).max(1),
            ),
            owed: Owed::default(),
            erase_block: parameters.erase_block_bytes,
            entered: 0,
            replaced: 0,
            programmed: 0,
            counters: Counters::default(),
        }
    }

    /// A number larger than all before.
    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn set(&mut self, at: Ps, event: Event) {
        let number = self.number();
        self.events.push(Reverse((at, number, event)));
    }

    /// Lets time pass, and counts how it was spent.
    fn pass(&mut self, to: Ps) {
        self.counters = self.counters(to);
        self.now = self.now.max(to);
    }

    /// Takes the link for `bytes`. Returns the end of the transfer.
    fn send(&mut self, bytes: u64) -> Ps {
        #[allow(clippy::cast_precision_loss, reason = "bytes of one command")]
        let transfer = span(bytes as f64 * self.link_per_byte, 1);
        self.link_free = self.link_free.max(self.now) + transfer;
        self.link_free
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Decoded(tag) => self.decoded(tag),
            Event::Arrived(tag) => {
                self.entering.push_back(tag);
                self.enter();
            }
            Event::Read(tag) => {
                let length = self.open.get(&tag).map_or(0, |open| open.command.length);
                let at = self.send(length);
                self.set(at, Event::Sent(tag));
            }
            Event::Sent(tag) => self.complete(tag),
            Event::Merged(number) => {
                let unit = self.merging.remove(&number);
                debug_assert!(unit.is_some(), "a unit is read once");
                self.ready.extend(unit);
                self.program(false);
            }
            Event::Programmed(number) => self.programmed(number),
            Event::Free => {
                self.look = false;
                self.program(true);
            }
            Event::Waited(first) => self.pad(first),
        }
    }

    fn decoded(&mut self, tag: u64) {
        let Some(&Open { command, .. }) = self.open.get(&tag) else { return };
        let (at, event) = match command.op {
            Op::Read => (self.read(command), Event::Read(tag)),
            Op::Write => (self.send(command.length), Event::Arrived(tag)),
            Op::Flush => (self.send(0), Event::Arrived(tag)),
        };
        self.set(at, event);
    }

    /// Reads the data of a command from memory or flash. Returns the time at which all are there.
    fn read(&mut self, command: Command) -> Ps {
        let (start, end) = self.shifted(command);
        let (mut done, mut at, mut from_flash) = (self.now, start, false);
        while at < end {
            let page = round_down(at, self.page);
            let next = (page + self.page).min(end);
            let missing = self.missing(at, next);
            if missing > 0 {
                done = done.max(self.flash.read(self.now, self.home(page), missing));
                self.counters.media_ops += 1;
                self.counters.media_read += missing;
                from_flash = true;
            }
            at = next;
        }
        self.counters.cache_hits += u64::from(!from_flash);
        done
    }

    /// The bytes of a page's `start..end` that no unit in memory has.
    fn missing(&self, start: u64, end: u64) -> u64 {
        let (mut at, mut missing) = (start, 0);
        while at < end {
            let unit = round_down(at, self.unit);
            let next = (unit + self.unit).min(end);
            let is_held = self.resident.contains_key(&unit)
                || self.buffer.get(unit).is_some_and(|unit| unit.covers(at, next));
            missing += if is_held { 0 } else { next - at };
            at = next;
        }
        missing
    }

    /// The die that a page lies on.
    fn home(&self, page: u64) -> usize {
        let nth =
            self.allocation.as_ref().map_or(page / self.page, |allocation| allocation.number(page));
        self.flash.home(nth)
    }

    /// The first byte and the end of a command, in shifted addresses, where units begin at
    /// multiples of their size.
    fn shifted(&self, command: Command) -> (u64, u64) {
        let start = command.offset.saturating_add(self.lead);
        (start, start.saturating_add(command.length).min(self.end))
    }

    /// The length of a unit in bytes, shorter at the ends of the drive.
    fn length(&self, unit: u64) -> u64 {
        (unit + self.unit).min(self.end) - unit.max(self.lead)
    }

    /// Completes a command now.
    fn complete(&mut self, tag: u64) {
        let Some(Open { command, order, .. }) = self.open.remove(&tag) else {
            debug_assert!(false, "a command is done twice");
            return;
        };
        debug_assert!(
            command.op != Op::Flush
                || self.protected
                || self.in_memory().all(|unit| unit.order > order),
            "a flush is done before a write that came before it is on the medium"
        );
        self.finished.push(Completion { tag, at: self.now });
    }

    /// All units that are not programmed yet.
    fn in_memory(&self) -> impl Iterator<Item = &Unit> {
        let programs = self.programs.values().flatten();
        self.buffer.units().chain(self.merging.values()).chain(&self.ready).chain(programs)
    }
}

impl Drive for Ssd {
    fn submit(&mut self, now: Ps, command: Command) {
        self.pass(now);
        let counters = &mut self.counters;
        match command.op {
            Op::Read => {
                (counters.reads, counters.bytes_read) =
                    (counters.reads + 1, counters.bytes_read + command.length)
            }
            Op::Write => {
                (counters.writes, counters.bytes_written) =
                    (counters.writes + 1, counters.bytes_written + command.length)
            }
            Op::Flush => counters.flushes += 1,
        }
        let order = self.number();
        let before = self
            .open
            .insert(command.tag, Open { command, order, entered: 0, waits: 0, whole: false });
        debug_assert!(before.is_none(), "two commands are called {}", command.tag);
        self.controller_free = self.controller_free.max(self.now) + self.controller;
        self.set(self.controller_free + self.command, Event::Decoded(command.tag));
    }

    fn next(&self) -> Option<Ps> {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        let deadline = self.buffer.oldest().map(|(at, _)| at);
        event.into_iter().chain(deadline).min()
    }

    fn advance(&mut self, now: Ps, done: &mut Vec<Completion>) {
        while let Some(at) = self.next().filter(|&at| at <= now) {
            self.pass(at);
            if let Some(&Reverse((_, _, event))) =
                self.events.peek().filter(|Reverse((own, ..))| *own == at)
            {
                self.events.pop();
                self.happen(event);
            } else if let Some((_, unit)) = self.buffer.oldest() {
                self.destage(unit);
                self.program(false);
            }
        }
        self.pass(now);
        done.append(&mut self.finished);
        debug_assert!(
            self.on_their_way > 0
                || self.buffer.len() > 0
                || self.entered == self.replaced + self.programmed,
            "{} bytes were written, {} again and {} programmed",
            self.entered,
            self.replaced,
            self.programmed
        );
    }

    fn tags(&self) -> usize {
        self.tags
    }

    fn counters(&self, now: Ps) -> Counters {
        let mut counters = self.counters;
        let spent = now.saturating_sub(self.now);
        let busy = self.flash.busy.saturating_sub(self.now).min(spent);
        counters.transfer += busy;
        let rest = if self.open.is_empty() { &mut counters.idle } else { &mut counters.setup };
        *rest += spent - busy;
        counters
    }
}

#[cfg(test)]
mod tests;

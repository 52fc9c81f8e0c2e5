//! `replay`: the requests of a block trace ([`crate::trace`]), as fast as they complete or at their
//! recorded times.
//!
//! As fast as they complete, `qd` of them are in flight at a time, in the order of the trace. At
//! their times, each is submitted independently of those in flight; if the target cannot keep up,
//! requests wait, and their latency includes the wait.

use super::{Blocks, MOST_BYTES, Needs, Parameters, Watch, WorkloadKind, regular, watched};
use crate::error::{Error, Remedy};
use crate::rig::{FinishedRequest, Op, Request, Rig};
use crate::run::Run;
use crate::streams::{Ask, Limit};
use crate::trace::{Trace, TracedRequest};
use std::io::BufReader;
use std::iter;
use std::path::PathBuf;
use trueline_geom::base::topology::{is_whole, round_down, round_up};

/// The workload `replay` as listed.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "replay",
    title: "the requests of a block trace: blktrace, blkparse, fio's log, our own",
    needs: Needs::Blocks(make),
};

struct Replay {
    path: PathBuf,
    offset: u64,
    depth: usize,
    limit: Limit,
    timed: bool,
    wrap: bool,
    scan: Scan,
}

/// Totals of a trace, found by reading it once before the run.
#[derive(Default)]
struct Scan {
    requests: u64,
    /// The number of reads and writes, their furthest end and the longest, in bytes.
    transfers: u64,
    end: u64,
    longest: u64,
    writes: bool,
    skipped: u64,
    /// Reads and writes that are not whole sectors of [`SECTOR`] bytes.
    odd: u64,
}

/// The sector size in bytes that every rig supports.
const SECTOR: u64 = 512;
/// The most bytes by which a request grows on either side to become whole sectors.
const MARGIN: u64 = 4096;

fn make(parameters: &Parameters) -> Result<Box<dyn Blocks>, Error> {
    let path = parameters
        .file
        .clone()
        .ok_or_else(|| Error::new("replay: there is no trace".into()).with(Remedy::NameTrace))?;
    let limit = match (parameters.count, parameters.seconds) {
        (None, None) => Limit::Source,
        _ => parameters.limit(0)?,
    };
    let mut scan = Scan::default();
    let mut trace = open(&path)?;
    while let Some(entry) = trace.next() {
        let TracedRequest { op, offset, length, .. } =
            entry.map_err(|refusal| failed(&path, &refusal))?;
        if length > MOST_BYTES {
            return Err(failed(
                &path,
                &format!("{}: a request of {length} bytes: {MOST_BYTES} at most", trace.place()),
            ));
        }
        scan.requests += 1;
        if op != Op::Flush {
            scan.transfers += 1;
            scan.end = scan.end.max(offset + length);
            scan.longest = scan.longest.max(length);
            scan.writes |= op == Op::Write;
            scan.odd += u64::from(!is_whole(offset, SECTOR) || !is_whole(length, SECTOR));
        }
    }
    scan.skipped = trace.skipped();
    if scan.transfers == 0 {
        return Err(failed(&path, &"it has no queued read or write"));
    }
    let (timed, wrap) = (parameters.timed, parameters.wrap);
    Ok(Box::new(Replay {
        path,
        offset: parameters.offset,
        depth: parameters.depth(1)?,
        limit,
        timed,
        wrap,
        scan,
    }))
}

fn failed(path: &std::path::Path, why: &dyn std::fmt::Display) -> Error {
    Error::new(format!("read {}: {why}", path.display()))
}

fn open(path: &std::path::Path) -> Result<Trace<'static>, Error> {
    let file = regular(path).map_err(|e| Error::unread(path, &e))?;
    Trace::new(Box::new(BufReader::with_capacity(1 << 16, file)))
        .map_err(|refusal| failed(path, &refusal))
}

impl Replay {
    /// The length of the area that requests are folded into: whole pages, so that folding keeps
    /// their alignment. Unlimited if all fit.
    fn span(&self, rig: &dyn Rig) -> Result<u64, Error> {
        let room = rig.length().saturating_sub(self.offset);
        if self.scan.end <= room {
            return Ok(u64::MAX);
        }
        let span = round_down(room.saturating_sub(self.scan.longest), 4096);
        if self.wrap && span > 0 {
            return Ok(span);
        }
        let outside =
            |entry: &TracedRequest| entry.op != Op::Flush && entry.offset + entry.length > room;
        let (mut count, mut first) = (0_u64, None);
        let mut trace = open(&self.path)?;
        while let Some(entry) = trace.next() {
            if outside(&entry.map_err(|refusal| failed(&self.path, &refusal))?) {
                count += 1;
                first.get_or_insert(trace.place());
            }
        }
        let (all, first) = (
            self.scan.transfers,
            first.map_or_else(String::new, |place| format!(", the first at {place}")),
        );
        let message = format!(
            "{count} of {all} requests end past the target's {} bytes{first}",
            rig.length()
        );
        if self.wrap {
            let why = format!("{message}: it is too small for the longest of them");
            return Err(failed(&self.path, &why));
        }
        Err(failed(&self.path, &message).with(Remedy::Wrap))
    }

    /// The requests of the trace, moved and folded. One that is not whole sectors becomes what a
    /// host makes of it: a read of the whole sectors and, for a write, the write of them.
    fn asks(
        &self,
        span: u64,
        sector: u64,
    ) -> Result<impl Iterator<Item = Result<(u64, Ask), Error>>, Error> {
        let (path, shift) = (self.path.clone(), self.offset);
        let mut trace = open(&self.path)?;
        let mut second = None;
        Ok(iter::from_fn(move || {
            if let Some(ask) = second.take() {
                return Some(Ok(ask));
            }
            let TracedRequest { at_ns, op, offset, length, fua } = match trace.next()? {
                Ok(entry) => entry,
                Err(refusal) => return Some(Err(failed(&path, &refusal))),
            };
            let offset = if op == Op::Flush { 0 } else { offset % span + shift };
            if is_whole(offset, sector) && is_whole(length, sector) {
                return Some(Ok((at_ns, Ask { op, offset, length, fua })));
            }
            let start = round_down(offset, sector);
            let Some(length) = round_up(offset + length, sector).map(|end| end - start) else {
                return Some(Err(failed(
                    &path,
                    &format!("{}: past the end of any device", trace.place()),
                )));
            };
            second = (op == Op::Write).then_some((at_ns, Ask { op, offset: start, length, fua }));
            Some(Ok((at_ns, Ask { op: Op::Read, offset: start, length, fua: false })))
        }))
    }
}

impl Blocks for Replay {
    fn writes(&self) -> bool {
        self.scan.writes
    }

    fn depth(&self) -> usize {
        if self.timed { self.depth.max(IN_FLIGHT) } else { self.depth }
    }

    fn largest(&self) -> u64 {
        self.scan.longest + if self.scan.odd > 0 { 2 * MARGIN } else { 0 }
    }

    fn extent(&self, _length: u64) -> Option<u64> {
        match self.limit {
            Limit::Count(count) => Some(count.min(self.scan.requests)),
            Limit::Source => Some(self.scan.requests),
            Limit::Time(_) => None,
        }
    }

    fn warning(&self) -> Option<String> {
        let Scan { requests, skipped, odd, .. } = self.scan;
        let passed = format!(
            "{skipped} of {} requests of the trace are discards, which are skipped",
            requests + skipped
        );
        let grown = format!(
            "{odd} of {requests} requests of the trace are not whole sectors: all sectors that they touch are read and, for a write, written back"
        );
        let said: Vec<String> = [(skipped, passed), (odd, grown)]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(_, said)| said)
            .collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn run(&self, rig: &mut dyn Rig, _seed: u64, watch: &mut Watch<'_>) -> Result<Run, Error> {
        let span = self.span(rig)?;
        let mut asks = self.asks(span, rig.sector())?;
        if self.timed {
            return timed(rig, self.limit, &mut asks, watch);
        }
        let mut broken = None;
        let run = watched(rig, self.depth, self.limit, watch, &mut |_| match asks.next()? {
            Ok((_, ask)) => Some(ask),
            Err(error) => {
                broken = Some(error);
                None
            }
        });
        broken.map_or(run, Err)
    }
}

/// The most requests in flight with recorded times; the next one waits.
const IN_FLIGHT: usize = 256;
/// The host's rest in ns while requests are in flight, and so the precision of their completion
/// times.
const NAP_NS: u64 = 50_000;
/// The host's rest in ns while none are: the observer may end the run this often.
const LOOK_NS: u64 = 1_000_000_000;

/// The requests in flight, and the run they are recorded in.
struct Flight {
    run: Run,
    /// Requests by tag, with the time at which they were due.
    asked: Vec<Option<(u64, Ask)>>,
    free: Vec<usize>,
    done: Vec<FinishedRequest>,
    last: u64,
}

impl Flight {
    fn is_empty(&self) -> bool {
        self.free.len() == self.asked.len()
    }

    /// Takes at least `least` completions.
    fn take(&mut self, rig: &mut dyn Rig, least: usize) -> Result<(), Error> {
        rig.wait(least, &mut self.done)
            .map_err(|errno| Error::new(format!("wait for requests: {errno}")))?;
        if self.done.len() < least {
            return Err(Error::new("requests were never answered".into()));
        }
        for FinishedRequest { tag, at, error } in self.done.drain(..) {
            let Some(place) = usize::try_from(tag).ok().filter(|&place| place < self.asked.len())
            else {
                continue;
            };
            let Some((since, ask)) = self.asked[place].take() else { continue };
            match error {
                None => self.run.record(ask.length, at.saturating_sub(since)),
                Some(errno) => self.run.fail("request", ask.offset, errno),
            }
            self.last = self.last.max(at);
            self.free.push(place);
        }
        Ok(())
    }
}

/// Submits every request at its recorded time, counted from the first.
fn timed(
    rig: &mut dyn Rig,
    limit: Limit,
    asks: &mut dyn Iterator<Item = Result<(u64, Ask), Error>>,
    watch: &mut Watch<'_>,
) -> Result<Run, Error> {
    let most = IN_FLIGHT.min(rig.depth()).max(1);
    let begin = rig.now();
    let mut flight = Flight {
        run: Run::new(),
        asked: vec![None; most],
        free: (0..most).rev().collect(),
        done: Vec::new(),
        last: begin,
    };
    let (mut first, mut sent) = (None, 0);
    'asks: for ask in asks {
        let (at, ask) = ask?;
        let due = begin.saturating_add(at - *first.get_or_insert(at));
        let over = match limit {
            Limit::Count(most) => sent >= most,
            Limit::Time(span) => due - begin >= span,
            Limit::Source => false,
        };
        if over || !watch(sent) {
            break;
        }
        sent += 1;
        loop {
            let now = rig.now();
            if now >= due {
                break;
            }
            rig.rest((due - now).min(if flight.is_empty() { LOOK_NS } else { NAP_NS }));
            flight.take(rig, 0)?;
            if !watch(sent) {
                break 'asks;
            }
            // Virtual time may have reached its end: then the request is refused.
            if rig.now() == now {
                break;
            }
        }
        if flight.free.is_empty() {
            flight.take(rig, 1)?;
        }
        let Some(place) = flight.free.pop() else {
            return Err(Error::new("requests were never answered".into()));
        };
        let Ask { op, offset, length, fua } = ask;
        match rig.push(Request { tag: place as u64, op, offset, length, fua }) {
            Ok(()) => flight.asked[place] = Some((due, ask)),
            Err(errno) => {
                flight.run.fail("request", offset, errno);
                flight.free.push(place);
            }
        }
    }
    while !flight.is_empty() {
        flight.take(rig, 1)?;
    }
    flight.run.ns = flight.last.saturating_sub(begin);
    Ok(flight.run)
}

#[cfg(test)]
mod tests;

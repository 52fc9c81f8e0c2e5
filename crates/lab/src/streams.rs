//! Streams of requests, each with one in flight: a queue depth, the processes of raidtest, a program that waits for every write.

use crate::error::Error;
use crate::rig::{Done, Op, Request, Rig};
use crate::run::{Alike, Run};

/// What a stream asks next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What it does.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Whether a write is done only when it is on the medium.
    pub fua: bool,
}

/// Where requests come from.
pub trait Source {
    /// What `stream` asks next; `None`: it has ended.
    fn next(&mut self, stream: usize) -> Option<Ask>;
}

impl<F: FnMut(usize) -> Option<Ask>> Source for F {
    fn next(&mut self, stream: usize) -> Option<Ask> {
        self(stream)
    }
}

/// When a run ends that its source does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// After so many requests.
    Count(u64),
    /// After so many ns; what is in flight is waited for.
    Time(u64),
    /// With its source.
    Source,
}

/// Runs `count` streams on a rig. Requests that fail are counted; a rig that fails ends the run with its error.
pub fn run(rig: &mut dyn Rig, count: usize, limit: Limit, source: &mut dyn Source) -> Result<Run, Error> {
    let mut run = Run::new();
    let count = count.clamp(1, rig.depth());
    let begin = rig.now();
    // When each stream asked, and for how much.
    let mut asked: Vec<(u64, Ask)> = Vec::with_capacity(count);
    let mut done: Vec<Done> = Vec::with_capacity(count);
    let mut alike = Alike::default();
    let (mut in_flight, mut sent, mut now) = (0, 0, begin);
    let over = |sent: u64, now: u64| match limit {
        Limit::Count(most) => sent >= most,
        Limit::Time(span) => now - begin >= span,
        Limit::Source => false,
    };
    let mut idle: Vec<usize> = (0..count).rev().collect();
    loop {
        while let Some(stream) = idle.pop() {
            let ask = if over(sent, now) { None } else { source.next(stream) };
            let Some(ask) = ask else { continue };
            let Ask { op, offset, length, fua } = ask;
            if asked.len() <= stream {
                asked.resize(stream + 1, (now, ask));
            }
            asked[stream] = (now, ask);
            sent += 1;
            match rig.push(Request { tag: stream as u64, op, offset, length, fua }) {
                Ok(()) => in_flight += 1,
                Err(errno) => {
                    failed(&mut run, ask, errno);
                    idle.push(stream);
                }
            }
        }
        if in_flight == 0 {
            break;
        }
        rig.wait(1, &mut done).map_err(|errno| Error(format!("wait for {in_flight} requests: {errno}")))?;
        if done.is_empty() {
            return Err(Error(format!("{in_flight} requests were never answered")));
        }
        for Done { tag, at, error } in done.drain(..) {
            let Some(stream) = usize::try_from(tag).ok().filter(|&stream| stream < asked.len()) else { continue };
            let (since, ask) = asked[stream];
            match error {
                None => {
                    let latency = at.saturating_sub(since);
                    // Requests that were sent together and came back together took equally long: they are counted once.
                    if latency != alike.latency_ns {
                        run.record_alike(&mut alike);
                    }
                    alike = Alike { latency_ns: latency, ops: alike.ops + 1, bytes: alike.bytes + ask.length };
                }
                Some(errno) => failed(&mut run, ask, errno),
            }
            now = now.max(at);
            in_flight -= 1;
            idle.push(stream);
        }
    }
    run.record_alike(&mut alike);
    run.ns = now - begin;
    Ok(run)
}

fn failed(run: &mut Run, ask: Ask, errno: trueline_geom::error::Errno) {
    let attempt = match ask.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    };
    run.errors += 1;
    run.first_error.get_or_insert_with(|| Error::io(attempt, ask.offset, errno).to_string());
}

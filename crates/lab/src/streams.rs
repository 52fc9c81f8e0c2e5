//! Streams of requests, each with one in flight: a queue depth, the processes of raidtest, a
//! program that waits for every write.

use crate::error::Error;
use crate::rig::{FinishedRequest, Op, Request, Rig};
use crate::run::{Run, Tally};
use trueline_geom::base::error::Errno;

/// The next request of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The operation of the request.
    pub op: Op,
    /// The offset of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
    /// True if a write must be on the medium before it is done (force unit access).
    pub fua: bool,
}

/// A source of requests for streams.
pub trait Source {
    /// The next request of `stream`; `None` if the stream has ended.
    fn next(&mut self, stream: usize) -> Option<Ask>;
}

impl<F: FnMut(usize) -> Option<Ask>> Source for F {
    fn next(&mut self, stream: usize) -> Option<Ask> {
        self(stream)
    }
}

/// The limit of a run whose source does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A number of requests, at which the run ends.
    Count(u64),
    /// A duration in ns, after which requests in flight are still waited for.
    Time(u64),
    /// No limit: the run ends with its source.
    Source,
}

/// Consecutive failures that end a run: a target that no longer answers is not asked until the time
/// is over.
const GIVE_UP: u64 = 1000;

/// Runs `count` streams on a rig, each with one request in flight. Failed requests are counted;
/// 1000 consecutive failures end the run. A failure of the rig itself ends the run with its error.
pub fn run(
    rig: &mut dyn Rig,
    count: usize,
    limit: Limit,
    source: &mut dyn Source,
) -> Result<Run, Error> {
    let mut run = Run::new();
    let count = count.clamp(1, rig.depth());
    let begin = rig.now();
    // The time and request of each stream's last submission.
    let mut asked = vec![(begin, Ask { op: Op::Flush, offset: 0, length: 0, fua: false }); count];
    let mut done: Vec<FinishedRequest> = Vec::with_capacity(count);
    let mut tally = Tally::new();
    let (mut in_flight, mut sent, mut now, mut failures) = (0, 0, begin, 0);
    let over = |sent: u64, now: u64, failures: u64| match limit {
        _ if failures >= GIVE_UP => true,
        Limit::Count(most) => sent >= most,
        Limit::Time(span) => now - begin >= span,
        Limit::Source => false,
    };
    let mut idle: Vec<usize> = (0..count).rev().collect();
    loop {
        while let Some(stream) = idle.pop() {
            let ask = if over(sent, now, failures) { None } else { source.next(stream) };
            let Some(ask) = ask else { continue };
            let Ask { op, offset, length, fua } = ask;
            asked[stream] = (now, ask);
            sent += 1;
            match rig.push(Request { tag: stream as u64, op, offset, length, fua }) {
                Ok(()) => in_flight += 1,
                Err(errno) => {
                    failed(&mut run, ask, errno);
                    failures += 1;
                    idle.push(stream);
                }
            }
        }
        if in_flight == 0 {
            break;
        }
        rig.wait(1, &mut done)
            .map_err(|errno| Error::new(format!("wait for {in_flight} requests: {errno}")))?;
        if done.is_empty() {
            return Err(Error::new(format!("{in_flight} requests were never answered")));
        }
        for &FinishedRequest { tag, at, error } in &done {
            let Some(stream) = usize::try_from(tag).ok().filter(|&stream| stream < asked.len())
            else {
                continue;
            };
            let (since, ask) = asked[stream];
            match error {
                None => {
                    failures = 0;
                    let latency = at.saturating_sub(since);
                    if !tally.count(latency, ask.length) {
                        run.record(ask.length, latency);
                    }
                }
                Some(errno) => {
                    failed(&mut run, ask, errno);
                    failures += 1;
                }
            }
            now = now.max(at);
            in_flight -= 1;
            idle.push(stream);
        }
        done.clear();
    }
    run.add(&tally);
    run.ns = now - begin;
    Ok(run)
}

fn failed(run: &mut Run, ask: Ask, errno: Errno) {
    let attempt = match ask.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    };
    run.fail(attempt, ask.offset, errno);
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_geom::mapping::route::Route;
    use trueline_sim::drive::memory::Memory;
    use trueline_sim::model::memory::Parameters;
    use trueline_sim::world::{Schedule, World};

    fn memory(length: u64) -> crate::rig::simulated::Simulated {
        let drive = Memory::new(&Parameters { command_ns: 1000.0, rate_bytes: 0 });
        crate::rig::simulated::Simulated::new(
            World::new(vec![(Box::new(drive), 512)], Schedule::Fifo),
            Route::store(0, length),
            512,
            0,
        )
    }

    #[test]
    fn every_request_is_counted_once() {
        let mut ask = |_| Some(Ask { op: Op::Read, offset: 0, length: 512, fua: false });
        let run = run(&mut memory(4096), 4, Limit::Count(10), &mut ask).unwrap();
        assert_eq!((run.ops, run.bytes, run.errors, run.ns), (10, 5120, 0, 10_000));
        // The first four wait for 1, 2, 3 and 4 commands, the others for 4.
        assert_eq!(
            (run.latency.len(), run.waited_ns, run.longest_ns),
            (10, 1000 + 2000 + 3000 + 7 * 4000, 4000)
        );
    }

    #[test]
    fn what_only_fails_ends() {
        let mut ask = |_| Some(Ask { op: Op::Write, offset: 4096, length: 512, fua: false });
        let run = run(&mut memory(4096), 2, Limit::Time(1), &mut ask).unwrap();
        assert_eq!((run.ops, run.errors), (0, GIVE_UP));
        assert_eq!(run.first_error.as_deref(), Some("write at 4096: outside the device"));
    }
}

//! Idle times of emulated drives that the emulating machine causes.
//!
//! A real drive waits for its host too, and the host's time is part of every measurement. Where
//! virtual time runs ten times as fast, the host's part grows tenfold: a stream of writes then
//! misses its next sector for want of the next write, and that cost is not the drive's. [`Pace`]
//! sums both by kind of request: a request that finds the drives idle has waited for the machine
//! since the last one was done.
//!
//! # Limits
//! A pause of more than [`PAUSE_NS`] is the client's own. Of concurrent requests, the first
//! determines the kind of the time. A client's own work between two requests counts as the
//! machine's, if it is shorter than that.

use trueline_lab::rig::{Op, Request};
use trueline_sim::time::{self, Ps};

/// The longest pause between two requests that counts as the machine's, in real ns.
const PAUSE_NS: u64 = 10_000_000;
/// The machine's share of a kind's time above which a measurement does not describe the drive.
pub const MUCH: f64 = 0.1;

/// Drive time and machine time of requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestPace {
    /// True for writes, false for reads.
    pub write: bool,
    /// True if each begins where the previous one of the same operation ended.
    pub sequential: bool,
    /// The number of requests.
    pub requests: u64,
    /// Virtual time in which the drives worked on them.
    pub drive: Ps,
    /// Virtual time in which the drives waited for them.
    pub machine: Ps,
}

impl RequestPace {
    /// The machine's time over the drives'; [`None`] if the drives took none.
    pub fn share(&self) -> Option<f64> {
        (self.drive > 0).then(|| time::seconds(self.machine) / time::seconds(self.drive))
    }

    /// True if the time of these requests is essentially the drives'.
    pub fn is_the_drives(&self) -> bool {
        self.share().is_none_or(|share| share <= MUCH)
    }
}

/// The sums of drive and machine time.
#[derive(Debug)]
pub(super) struct Pace {
    /// The pause [`PAUSE_NS`] in virtual time.
    pause: Ps,
    /// Random reads, sequential reads, random writes, sequential writes.
    kinds: [RequestPace; 4],
    /// The ends of the last read and of the last write.
    ends: [Option<u64>; 2],
    /// Requests that the drives work on.
    open: usize,
    /// The time at which the drives last became busy or idle.
    since: Ps,
    /// The kind they work on; `None` for a flush.
    on: Option<usize>,
}

impl Pace {
    /// The sums for drives at `ps_per_ns` picoseconds of virtual time a nanosecond. The time before
    /// the first request does not count.
    pub(super) fn new(ps_per_ns: u64) -> Pace {
        let kind = |nth| RequestPace {
            write: nth >= 2,
            sequential: nth % 2 == 1,
            ..RequestPace::default()
        };
        let pause = PAUSE_NS.saturating_mul(ps_per_ns);
        Pace {
            pause,
            kinds: [0, 1, 2, 3].map(kind),
            ends: [None; 2],
            open: 0,
            since: Ps::MAX,
            on: None,
        }
    }

    /// Notes a request that reaches the drives at `at`; `base` is the start of its provider.
    pub(super) fn enter(&mut self, at: Ps, base: u64, request: &Request) {
        let kind = self.kind(base, request);
        if let Some(kind) = kind {
            self.kinds[kind].requests += 1;
        }
        if self.open == 0 {
            let waited = at.checked_sub(self.since).filter(|&waited| waited <= self.pause);
            if let Some((kind, waited)) = kind.zip(waited) {
                self.kinds[kind].machine += waited;
            }
            (self.since, self.on) = (at, kind);
        }
        self.open += 1;
    }

    /// Notes a request that is done at `at`.
    pub(super) fn leave(&mut self, at: Ps) {
        self.open = self.open.saturating_sub(1);
        if self.open == 0 {
            if let Some(kind) = self.on {
                self.kinds[kind].drive += at.saturating_sub(self.since);
            }
            self.since = at;
        }
    }

    /// The kinds with requests.
    pub(super) fn kinds(&self) -> Vec<RequestPace> {
        self.kinds.iter().copied().filter(|kind| kind.requests > 0).collect()
    }

    fn kind(&mut self, base: u64, request: &Request) -> Option<usize> {
        let write = match request.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => return None,
        };
        let start = base.saturating_add(request.offset);
        let end = self.ends[write].replace(start.saturating_add(request.length));
        Some(2 * write + usize::from(end == Some(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_sim::time::{MS, US};

    fn request(op: Op, offset: u64) -> Request {
        Request { tag: 0, op, offset, length: 4096, fua: false }
    }

    #[test]
    fn what_the_drives_wait_for_is_the_machines() {
        // Ten times as fast: a pause of 100 ms of the drives is the machine's yet.
        let mut pace = Pace::new(10_000);
        let mut at = MS;
        for nth in 0..10 {
            pace.enter(at, 0, &request(Op::Write, nth * 4096));
            pace.leave(at + 50 * US);
            at += 50 * US + if nth == 4 { 101 * MS } else { 500 * US };
        }
        let [random, sequential] = pace.kinds()[..] else { panic!("{pace:?}") };
        assert_eq!(
            (random.write, random.sequential, random.requests, random.drive, random.machine),
            (true, false, 1, 50 * US, 0)
        );
        // Of nine gaps one is the client's pause.
        assert_eq!(
            (sequential.requests, sequential.drive, sequential.machine),
            (9, 450 * US, 8 * 500 * US)
        );
        assert!(!sequential.is_the_drives() && random.is_the_drives());
        assert!(sequential.share().is_some_and(|share| (share - 4000.0 / 450.0).abs() < 1e-9));
    }

    #[test]
    fn drives_that_are_never_without_work_wait_for_nothing() {
        let mut pace = Pace::new(1000);
        pace.enter(0, 0, &request(Op::Read, 1 << 20));
        for nth in 1..5 {
            pace.enter(nth * MS - 10 * US, 0, &request(Op::Read, nth * 8192));
            pace.leave(nth * MS);
        }
        pace.leave(5 * MS);
        let [random] = pace.kinds()[..] else { panic!("{pace:?}") };
        assert_eq!(
            (random.write, random.requests, random.drive, random.machine),
            (false, 5, 5 * MS, 0)
        );
        // A flush is neither a read nor a write, and what it takes is not counted.
        pace.enter(6 * MS, 0, &request(Op::Flush, 0));
        pace.leave(9 * MS);
        assert_eq!(pace.kinds(), [random]);
    }
}

//! A store with requests that fail or are late by a plan ([`trueline_geom::class::nop::fault`]):
//! here are the delays and the counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trueline_geom::base::error::Errno;
use trueline_geom::base::store::filter::{Action, Filter, Request};
use trueline_geom::base::store::{Properties, Store};
use trueline_geom::class::nop::fault::{Decision, Failure, FaultPlan, NumberedRequest, Op, Rule};
use trueline_host::lock::lock;

/// Faults shared by several stores: the requests of all are numbered in one sequence.
pub struct Faults {
    plan: FaultPlan,
    asked: [AtomicU64; Op::ALL.len()],
    of_all: AtomicU64,
    /// The effects of each rule.
    done: Mutex<Vec<RuleHits>>,
}

/// The most request numbers remembered for a rule.
const REMEMBERED: usize = 8;

/// The effects of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleHits {
    /// The number of requests it hit.
    pub count: u64,
    /// The first of these, by their numbers among the requests that the rule is for.
    pub first: Vec<u64>,
}

impl Faults {
    /// The faults of a plan, before the first request.
    pub fn new(plan: FaultPlan) -> Faults {
        let done = Mutex::new(vec![RuleHits::default(); plan.rules.len()]);
        Faults { plan, asked: Default::default(), of_all: AtomicU64::new(0), done }
    }

    /// The plan with its rules.
    pub fn plan(&self) -> &FaultPlan {
        &self.plan
    }

    /// The effects of each rule, in order.
    pub fn done(&self) -> Vec<RuleHits> {
        lock(&self.done).clone()
    }

    /// The number of requests that a rule is for.
    pub fn asked(&self, rule: &Rule) -> u64 {
        rule.op().map_or(&self.of_all, |op| &self.asked[op.place()]).load(Ordering::Relaxed)
    }

    /// Numbers a request, decides about it, and waits for its delay.
    fn befall(&self, op: Op, offset: u64, length: u64) -> (NumberedRequest, Option<Failure>) {
        if !self.plan.concerns(op) {
            return (NumberedRequest { number: 0, of_all: 0, op, offset, length }, None);
        }
        let next = |count: &AtomicU64| count.fetch_add(1, Ordering::Relaxed) + 1;
        let asked = NumberedRequest {
            number: next(&self.asked[op.place()]),
            of_all: next(&self.of_all),
            op,
            offset,
            length,
        };
        let Decision { delay_ns, failure, rules } = self.plan.decide(&asked);
        if !rules.is_empty() {
            let mut done = lock(&self.done);
            for rule in rules {
                done[rule].count += 1;
                if done[rule].first.len() < REMEMBERED {
                    done[rule].first.push(self.plan.rules[rule].number(&asked));
                }
            }
        }
        if delay_ns > 0 {
            std::thread::sleep(Duration::from_nanos(delay_ns));
        }
        (asked, failure)
    }
}

/// A store with faults.
pub struct Faulty {
    below: Arc<dyn Store>,
    /// The sector size in bytes; a torn write writes whole sectors.
    sector: u64,
    faults: Arc<Faults>,
}

impl Faulty {
    /// The store `below`, in sectors of `sector` bytes, with `faults`.
    pub fn new(below: Arc<dyn Store>, sector: u64, faults: Arc<Faults>) -> Faulty {
        Faulty { below, sector, faults }
    }

    /// True if no rule concerns requests of this kind.
    fn spares(&self, op: Op) -> bool {
        !self.faults.plan.concerns(op)
    }
}

/// The kind of a request in a plan of faults: zeros are writes, which may be torn.
fn op_of(action: Action) -> Op {
    match action {
        Action::Read => Op::Read,
        Action::Write | Action::Zero => Op::Write,
        Action::Discard => Op::Discard,
        Action::Flush => Op::Flush,
    }
}

impl Filter for Faulty {
    fn inner(&self) -> &dyn Store {
        &*self.below
    }

    fn pass(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self.faults.befall(op_of(request.action), request.offset, request.length).1 {
            // Only reads are flipped, in `read_at`.
            None | Some(Failure::Flip) => run(),
            Some(Failure::Error(errno)) => Err(errno),
            Some(Failure::Torn) => Err(Errno::Io),
        }
    }

    fn attempt<T>(
        &self,
        request: &Request,
        run: impl FnOnce() -> Result<Option<T>, Errno>,
    ) -> Result<Option<T>, Errno> {
        // A request is counted once: by the one that waits.
        if self.spares(op_of(request.action)) { run() } else { Ok(None) }
    }

    fn pass_read(&self, buffer: &mut [u8], offset: u64) -> Result<(), Errno> {
        let (asked, failure) = self.faults.befall(Op::Read, offset, buffer.len() as u64);
        match failure {
            Some(Failure::Error(errno)) => Err(errno),
            Some(Failure::Torn) => Err(Errno::Io),
            None => self.below.read_at(buffer, offset),
            Some(Failure::Flip) => {
                self.below.read_at(buffer, offset)?;
                let bit = self.faults.plan.flipped(&asked);
                if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| buffer.get_mut(at))
                {
                    *byte ^= 1 << (bit % 8);
                }
                Ok(())
            }
        }
    }

    fn pass_write(&self, bytes: &[u8], offset: u64, durable: bool) -> Result<(), Errno> {
        let write = |bytes: &[u8]| {
            if durable {
                self.below.write_through(bytes, offset)
            } else {
                self.below.write_at(bytes, offset)
            }
        };
        let (asked, failure) = self.faults.befall(Op::Write, offset, bytes.len() as u64);
        match failure {
            None | Some(Failure::Flip) => write(bytes),
            Some(Failure::Error(errno)) => Err(errno),
            Some(Failure::Torn) => {
                let kept = usize::try_from(self.faults.plan.kept(&asked, self.sector)).unwrap_or(0);
                let kept = bytes.get(..kept).unwrap_or_default();
                if !kept.is_empty() {
                    write(kept)?;
                }
                Err(Errno::Io)
            }
        }
    }

    fn offered(&self) -> Properties {
        let below = self.below.properties();
        // A request that waits for a delay does not work.
        let delays = self.faults.plan.rules.iter().any(Rule::delays);
        Properties {
            depth: if delays { below.depth.max(WAITING) } else { below.depth },
            write_back: below.write_back && self.spares(Op::Write),
            non_blocking: below.non_blocking && Op::ALL.into_iter().all(|op| self.spares(op)),
            ..below
        }
    }
}

/// The most requests that may be late at one time.
const WAITING: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use trueline_host::disk::memory::Memory;

    fn faulty(rules: &[&str]) -> Faulty {
        let plan = FaultPlan {
            rules: rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect(),
            seed: 1,
        };
        Faulty::new(Arc::new(Memory::new(1 << 20).unwrap()), 512, Arc::new(Faults::new(plan)))
    }

    #[test]
    fn the_right_request_fails_with_the_right_error() {
        let store = faulty(&[
            "read:error=eio,every=3",
            "write:error=enospc,after=2",
            "flush:error=eperm",
            "discard:error=enotsup",
        ]);
        let mut buffer = [0; 512];
        let reads: Vec<_> = (0..6).map(|_| store.read_at(&mut buffer, 0)).collect();
        assert_eq!(reads, [Ok(()), Ok(()), Err(Errno::Io), Ok(()), Ok(()), Err(Errno::Io)]);
        let writes: Vec<_> = (0..4).map(|_| store.write_at(&[1; 512], 0)).collect();
        assert_eq!(writes, [Ok(()), Ok(()), Err(Errno::NoSpace), Err(Errno::NoSpace)]);
        assert_eq!(
            (store.flush(), store.discard(0, 512)),
            (Err(Errno::ReadOnly), Err(Errno::Unsupported))
        );
        let done = store.faults.done();
        assert_eq!(done[0], RuleHits { count: 2, first: vec![3, 6] });
        assert_eq!(done[1], RuleHits { count: 2, first: vec![3, 4] });
        let asked: Vec<u64> =
            store.faults.plan.rules.iter().map(|rule| store.faults.asked(rule)).collect();
        assert_eq!(asked, [6, 4, 1, 1]);
    }

    #[test]
    fn a_torn_write_is_a_prefix_of_whole_sectors() {
        let store = faulty(&["write:torn"]);
        let mut kept = Vec::new();
        for nth in 0..64 {
            let offset = nth * 8192;
            assert_eq!(store.write_at(&[7; 8192], offset), Err(Errno::Io));
            let mut read = [0; 8192];
            store.below.read_at(&mut read, offset).unwrap();
            let prefix = read.iter().position(|&byte| byte == 0).unwrap();
            assert!(prefix % 512 == 0 && read[prefix..].iter().all(|&byte| byte == 0), "{prefix}");
            kept.push(prefix);
        }
        kept.sort_unstable();
        kept.dedup();
        assert!(kept.len() > 4, "{kept:?}");
    }

    /// The same bit of the same read each time, and what is stored stays as it is.
    #[test]
    fn a_flipped_read_differs_in_one_bit() {
        let flips = || {
            let store = faulty(&["read:flip,every=2"]);
            store.write_at(&[0x55; 4096], 0).unwrap();
            let read = || {
                let mut bytes = [0; 4096];
                store.read_at(&mut bytes, 0).unwrap();
                bytes
                    .iter()
                    .enumerate()
                    .filter(|(_, byte)| **byte != 0x55)
                    .map(|(at, byte)| (at, byte ^ 0x55))
                    .collect::<Vec<_>>()
            };
            let found: Vec<_> = (0..40).map(|_| read()).collect();
            assert_eq!(store.faults.done()[0].count, 20);
            found
        };
        let found = flips();
        for (nth, found) in found.iter().enumerate() {
            let one = matches!(found.as_slice(), [(_, bit)] if bit.count_ones() == 1);
            assert!(if nth % 2 == 1 { one } else { found.is_empty() }, "{nth}: {found:?}");
        }
        let places: std::collections::BTreeSet<usize> =
            found.iter().flatten().map(|(at, _)| *at).collect();
        assert!(places.len() > 10, "{places:?}");
        assert_eq!(found, flips());
        for wrong in ["write:flip", "flush:flip", "read:flip,error=eio"] {
            assert!(Rule::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_no_rule_concerns_goes_by() {
        let store = faulty(&["write:delay=1ns"]);
        assert_eq!(store.try_read(&mut [0; 512], 0), Ok(true));
        assert!(!store.properties().write_back);
        assert_eq!(store.try_zero(0, 512, false), Err(Errno::Unsupported));
        let store = faulty(&["read:error=eio"]);
        assert!(store.properties().write_back);
        // `*` counts what it cannot befall.
        let all = faulty(&["*:readonly,after=2"]);
        assert_eq!(all.try_read(&mut [0; 512], 0), Ok(false));
        assert_eq!(
            (all.read_at(&mut [0; 512], 0), all.flush(), all.write_at(&[0; 512], 0)),
            (Ok(()), Ok(()), Err(Errno::ReadOnly))
        );
        assert_eq!(all.faults.done(), [RuleHits { count: 1, first: vec![3] }]);
        assert_eq!(store.try_read(&mut [0; 512], 0), Ok(false));
    }
}

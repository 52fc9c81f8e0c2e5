//! Faults and delays that a nop adds, as gnop(8) and dm-flakey do, and the requests that they hit.
//!
//! A fault depends on the seed and the request's number alone, so that the same requests in the
//! same order meet the same faults. Nothing is done or waited for here.

use crate::base::error::Errno;
use crate::base::size;
use crate::base::topology::round_down;
use std::fmt;

mod invalid;

pub use invalid::InvalidRule;

/// Operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read of a range of bytes.
    Read,
    /// Write of bytes, also of zeros.
    Write,
    /// Wait until everything written would survive a loss of power.
    Flush,
    /// Discard of bytes that are not needed any more.
    Discard,
}

impl Op {
    /// All operations, in the order of [`Op::place`].
    pub const ALL: [Op; 4] = [Op::Read, Op::Write, Op::Flush, Op::Discard];

    /// Index of this operation in [`Op::ALL`].
    pub fn place(self) -> usize {
        match self {
            Op::Read => 0,
            Op::Write => 1,
            Op::Flush => 2,
            Op::Discard => 3,
        }
    }

    fn name(self) -> &'static str {
        ["read", "write", "flush", "discard"][self.place()]
    }
}

/// Request, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedRequest {
    /// Number among requests of its kind, from 1.
    pub number: u64,
    /// Number among all requests, from 1.
    pub of_all: u64,
    /// Operation of the request.
    pub op: Op,
    /// First byte of the range.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
}

/// Way in which a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Error before anything is done.
    Error(Errno),
    /// Torn write: whole sectors at the beginning are written, then the medium fails.
    Torn,
    /// Flipped bit in the bytes that are read, without an error.
    Flip,
}

/// Rule: a fault or delay, and the requests that it hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    text: String,
    /// Operation that it is for; `None` for every one.
    op: Option<Op>,
    failure: Option<Failure>,
    /// True if only operations that change the medium fail.
    writes_only: bool,
    delay_ns: u64,
    /// Probability of a hit, in units of 1/[`CERTAIN`].
    probability: u64,
    every: u64,
    after: u64,
    /// First byte, and byte after the last, of the range it is for; `None` for all.
    range: Option<(u64, u64)>,
}

/// Probability of a certain hit, in the unit of a rule's probability.
const CERTAIN: u64 = 1_000_000_000;

/// Longest delay in nanoseconds, one hour: any client has given up by then.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Rule {
    /// Parses a rule as it is typed: `OP:WHAT[,WHEN...]`.
    pub fn parse(text: &str) -> Result<Rule, InvalidRule> {
        let (op, items) = text.split_once(':').ok_or(InvalidRule::Form)?;
        let op = match op {
            "*" => None,
            name => Some(
                Op::ALL
                    .into_iter()
                    .find(|op| op.name() == name)
                    .ok_or_else(|| InvalidRule::Operation(name.into()))?,
            ),
        };
        let text = text.to_owned();
        let mut rule = Rule {
            text,
            op,
            failure: None,
            writes_only: false,
            delay_ns: 0,
            probability: CERTAIN,
            every: 1,
            after: 0,
            range: None,
        };
        items.split(',').try_for_each(|item| rule.take(item))?;
        if rule.failure.is_none() && rule.delay_ns == 0 {
            return Err(InvalidRule::Nothing);
        }
        if rule.writes_only && !Op::ALL.into_iter().any(|op| rule.concerns(op)) {
            return Err(InvalidRule::OnlyWrites);
        }
        if rule.failure == Some(Failure::Flip) && !rule.concerns(Op::Read) {
            return Err(InvalidRule::OnlyReads);
        }
        Ok(rule)
    }

    fn take(&mut self, item: &str) -> Result<(), InvalidRule> {
        let wrong = |value: &str| InvalidRule::Value { item: item.into(), value: value.into() };
        match item.split_once('=').unwrap_or((item, "")) {
            ("error", name) => {
                self.fail(Failure::Error(errno(name).ok_or_else(|| wrong(name))?), item)?
            }
            ("torn", "") => {
                self.writes_only = true;
                self.fail(Failure::Torn, item)?;
            }
            ("flip", "") => self.fail(Failure::Flip, item)?,
            ("readonly", "") => {
                self.writes_only = true;
                self.fail(Failure::Error(Errno::ReadOnly), item)?;
            }
            ("delay", time) => self.delay_ns = span(time).ok_or_else(|| wrong(time))?,
            ("probability", share) => {
                self.probability = probability(share).ok_or_else(|| wrong(share))?
            }
            ("every", n) => {
                self.every = n.parse().ok().filter(|&n| n > 0).ok_or_else(|| wrong(n))?
            }
            ("after", n) => self.after = n.parse().map_err(|_| wrong(n))?,
            ("offset", range) => {
                let (from, to) = range.split_once("..").ok_or_else(|| wrong(range))?;
                let (from, to) = (size::bytes(from), size::bytes(to));
                self.range =
                    Some(from.zip(to).filter(|(from, to)| from < to).ok_or_else(|| wrong(range))?);
            }
            _ => return Err(InvalidRule::Item(item.into())),
        }
        Ok(())
    }

    fn fail(&mut self, failure: Failure, item: &str) -> Result<(), InvalidRule> {
        match self.failure.replace(failure) {
            None => Ok(()),
            Some(_) => Err(InvalidRule::Second(item.into())),
        }
    }

    /// True if it can hit requests with the operation `op`.
    pub fn concerns(&self, op: Op) -> bool {
        let can = match self.failure {
            Some(Failure::Torn) => op == Op::Write,
            Some(Failure::Flip) => op == Op::Read,
            _ => !self.writes_only || matches!(op, Op::Write | Op::Discard),
        };
        can && self.op.is_none_or(|own| own == op)
    }

    /// The operation that it is for; `None` for every one.
    pub fn op(&self) -> Option<Op> {
        self.op
    }

    /// The number of a request among those that the rule is for, from 1.
    pub fn number(&self, asked: &NumberedRequest) -> u64 {
        if self.op.is_some() { asked.number } else { asked.of_all }
    }

    /// True if it delays requests.
    pub fn delays(&self) -> bool {
        self.delay_ns > 0
    }

    /// True if it hits a request, as rule `place` of a plan.
    fn hits(&self, asked: &NumberedRequest, seed: u64, place: u64) -> bool {
        let number = self.number(asked);
        let inside = self.range.is_none_or(|(from, to)| {
            asked.op != Op::Flush
                && asked.offset < to
                && asked.offset.saturating_add(asked.length) > from
        });
        let chance = || {
            self.probability == CERTAIN
                || below(hash(&[seed, place, number]), CERTAIN) < self.probability
        };
        self.concerns(asked.op)
            && number > self.after
            && (number - self.after).is_multiple_of(self.every)
            && inside
            && chance()
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Rules with the seed of their randomness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// Rules in order; the first that makes a request fail decides the failure.
    pub rules: Vec<Rule>,
    /// Seed: the same seed gives the same faults.
    pub seed: u64,
}

/// Faults that hit one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Delay in nanoseconds, of all rules together.
    pub delay_ns: u64,
    /// Failure of the request; `None` if it succeeds.
    pub failure: Option<Failure>,
    /// Indices of the rules that hit it.
    pub rules: Vec<usize>,
}

impl FaultPlan {
    /// The faults that hit a request.
    pub fn decide(&self, asked: &NumberedRequest) -> Decision {
        let mut decision = Decision::default();
        for (place, rule) in self.rules.iter().enumerate() {
            if !rule.hits(asked, self.seed, place as u64)
                || rule.delay_ns == 0 && decision.failure.is_some()
            {
                continue;
            }
            decision.delay_ns = decision.delay_ns.saturating_add(rule.delay_ns);
            decision.failure = decision.failure.or(rule.failure);
            decision.rules.push(place);
        }
        decision
    }

    /// Bytes of a torn write that reach the medium: whole sectors, and at least one fewer than all.
    pub fn kept(&self, asked: &NumberedRequest, sector: u64) -> u64 {
        round_down(below(hash(&[self.seed, u64::MAX, asked.number]), asked.length), sector)
    }

    /// Index of the bit of a read that is flipped, among all its bits.
    pub fn flipped(&self, asked: &NumberedRequest) -> u64 {
        below(hash(&[self.seed, u64::MAX - 1, asked.number]), asked.length.saturating_mul(8))
    }

    /// True if requests with that operation have to be examined: a rule can hit them, or counts
    /// them with all others.
    pub fn concerns(&self, op: Op) -> bool {
        self.rules.iter().any(|rule| rule.op.is_none() || rule.concerns(op))
    }
}

/// The error with a name of errno(3), such as `EIO`; `None` for another name.
fn errno(name: &str) -> Option<Errno> {
    Some(match name.to_ascii_lowercase().as_str() {
        "eio" => Errno::Io,
        "enospc" => Errno::NoSpace,
        "eperm" | "erofs" => Errno::ReadOnly,
        // Every front reports this to its clients as EINVAL. A range outside the device, the other
        // candidate, means that a store has become shorter.
        "einval" => Errno::Unaligned,
        "enotsup" => Errno::Unsupported,
        _ => return None,
    })
}

/// Nanoseconds of a time such as `10ms` or `1.5s`; `None` for other text, 0, or more than an hour.
fn span(text: &str) -> Option<u64> {
    let units = [("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];
    let (number, places) =
        units.into_iter().find_map(|(unit, places)| Some((text.strip_suffix(unit)?, places)))?;
    size::decimal(number, places).filter(|&ns| (1..=LONGEST_NS).contains(&ns))
}

/// A probability such as `1%` or `0.01`, in units of 1/[`CERTAIN`]; `None` for other text or 0.
fn probability(text: &str) -> Option<u64> {
    let share = match text.strip_suffix('%') {
        Some(percent) => size::decimal(percent, 7),
        None => size::decimal(text, 9),
    };
    share.filter(|&share| (1..=CERTAIN).contains(&share))
}

/// 64 bits that depend on all of `words`: SplitMix64's finish (Steele, Lea, Flood 2014) over each.
fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0, |state: u64, word| {
        let z = (state ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// A uniform number in `0..below`, from 64 random bits; 0 if `below` is 0.
fn below(bits: u64, below: u64) -> u64 {
    u64::try_from((u128::from(bits) * u128::from(below)) >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests;

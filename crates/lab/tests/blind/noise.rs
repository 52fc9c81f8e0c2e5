//! The noise of a machine around a rig: a host that takes its time, a drive that gets warm, pauses,
//! and another program that asks the same drive.

use trueline_geom::base::error::Errno;
use trueline_lab::rig::{FinishedRequest, Op, Request, Rig};
use trueline_sim::random::Random;

/// How much of each noise there is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noise {
    /// The deviation of a request's own time, relative to it.
    pub(crate) spread: f64,
    /// The slow rise and fall of all times, relative to them.
    pub(crate) drift: f64,
    /// Pauses of the host a second, each of up to 20 ms.
    pub(crate) pauses: f64,
    /// Requests a second of another program.
    pub(crate) others: f64,
}

/// A rig with noise.
pub(crate) struct Noisy<R> {
    rig: R,
    noise: Noise,
    random: Random,
    last: u64,
    next_other: u64,
    found: Vec<FinishedRequest>,
}

/// The tag of another program's requests.
const OTHER: u64 = u64::MAX;
/// The period in ns of the slow rise and fall.
const PERIOD: f64 = 7e9;

impl<R: Rig> Noisy<R> {
    pub(crate) fn new(rig: R, noise: Noise, seed: u64) -> Noisy<R> {
        Noisy { rig, noise, random: Random::new(seed), last: 0, next_other: 0, found: Vec::new() }
    }

    /// A normal variable, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let (one, other) = (self.random.unit().max(1e-12), self.random.unit());
        (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn delay(&mut self, ns: u64, now: u64) -> u64 {
        let drift = self.noise.drift * (1.0 + (now as f64 / PERIOD).sin()) / 2.0;
        let own = (self.noise.spread * self.normal()).abs();
        let due = ns as f64 * self.noise.pauses / 1e9;
        let pause = if self.random.unit() < due { self.random.unit() * 2e7 } else { 0.0 };
        (ns as f64 * (drift + own) + pause) as u64
    }
}

impl<R: Rig> Rig for Noisy<R> {
    fn length(&self) -> u64 {
        self.rig.length()
    }

    fn sector(&self) -> u64 {
        self.rig.sector()
    }

    fn depth(&self) -> usize {
        self.rig.depth()
    }

    fn now(&mut self) -> u64 {
        self.rig.now()
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let now = self.rig.now();
        if self.noise.others > 0.0 && now >= self.next_other {
            let gap = -self.random.unit().max(1e-9).ln() / self.noise.others * 1e9;
            self.next_other = now + gap as u64;
            let offset = self.random.below(self.rig.length() / 65536 - 1) * 65536;
            let op = if self.random.below(2) == 0 { Op::Read } else { Op::Write };
            self.rig.push(Request { tag: OTHER, op, offset, length: 65536, fua: false })?;
        }
        self.last = self.last.max(now);
        self.rig.push(request)
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        let before = done.len();
        while done.len() < before + least.max(1) {
            self.rig.wait(1, &mut self.found)?;
            if self.found.is_empty() {
                break;
            }
            for finished in std::mem::take(&mut self.found) {
                if finished.tag == OTHER {
                    continue;
                }
                let extra = self.delay(finished.at.saturating_sub(self.last), finished.at);
                self.rig.think(extra);
                self.last = self.rig.now();
                done.push(FinishedRequest { at: finished.at + extra, ..finished });
            }
        }
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.rig.think(ns);
    }

    fn rest(&mut self, ns: u64) {
        self.rig.rest(ns);
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

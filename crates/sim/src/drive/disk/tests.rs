//! Requirements of physics and of the specification on the drive, one subject a file.

#![allow(clippy::cast_possible_truncation, reason = "small counts as indices")]

use super::*;
use toml::Value;

mod books;
mod closed;
mod firmware;
mod orders;
mod pitfalls;
mod seeds;
mod shingled;

/// A model with keys set to other values.
fn model(name: &str, set: &[(&str, Value)]) -> Model {
    let set: Vec<(String, Value)> =
        set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Model::parse_with(Model::named(name).unwrap(), &set).unwrap()
}

fn f(value: f64) -> Value {
    Value::Float(value)
}

fn i(value: i64) -> Value {
    Value::Integer(value)
}

fn t(value: &str) -> Value {
    Value::String(value.to_owned())
}

/// A drive with a host before it that keeps `depth` commands in it.
struct Bench {
    drive: Box<dyn Drive>,
    now: Ps,
    next: u64,
    open: usize,
    done: Vec<Completion>,
}

impl Bench {
    fn new(model: &Model, seed: u64) -> Bench {
        Bench { drive: model.drive(seed), now: 0, next: 0, open: 0, done: Vec::new() }
    }

    fn submit(&mut self, op: Op, offset: u64, length: u64, fua: bool) {
        self.next += 1;
        self.open += 1;
        self.drive.submit(self.now, Command { tag: self.next, op, offset, length, fua });
    }

    /// Runs the drive until at most `left` commands are open.
    fn wait(&mut self, left: usize) {
        while self.open > left {
            self.now = self.drive.next().expect("a drive at rest with commands in it");
            let before = self.done.len();
            self.drive.advance(self.now, &mut self.done);
            self.open -= self.done.len() - before;
        }
    }

    /// One command, alone; how long it took.
    fn finish(&mut self, op: Op, offset: u64, length: u64) -> Ps {
        let begun = self.now;
        self.submit(op, offset, length, false);
        self.wait(0);
        self.now - begun
    }

    fn counters(&self) -> Counters {
        self.drive.counters(self.now)
    }

    fn pass(&mut self, span: Ps) {
        self.now += span;
        let before = self.done.len();
        self.drive.advance(self.now, &mut self.done);
        self.open -= self.done.len() - before;
    }

    /// Flushes, and returns the time of completion.
    fn flush(&mut self) -> Ps {
        self.finish(Op::Flush, 0, 0)
    }
}

/// The time in revolutions at `rpm`.
#[allow(clippy::cast_precision_loss, reason = "for people")]
fn revolutions(span: Ps, rpm: f64) -> f64 {
    span as f64 / (60e12 / rpm)
}

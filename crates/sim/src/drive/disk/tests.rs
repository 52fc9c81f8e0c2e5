//! What physics and the specification demand of the drive, one subject a file.

use super::*;
use toml::Value;

mod seeds;

/// A model with keys set to other values.
fn model(name: &str, set: &[(&str, Value)]) -> Model {
    let set: Vec<(String, Value)> = set.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    Model::parse_with(Model::named(name).unwrap(), &set).unwrap()
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

    /// Until at most `left` commands are open.
    fn wait(&mut self, left: usize) {
        while self.open > left {
            self.now = self.drive.next().expect("a drive at rest with commands in it");
            let before = self.done.len();
            self.drive.advance(self.now, &mut self.done);
            self.open -= self.done.len() - before;
        }
    }

    /// One command, alone; how long it took.
    fn one(&mut self, op: Op, offset: u64, length: u64) -> Ps {
        let begun = self.now;
        self.submit(op, offset, length, false);
        self.wait(0);
        self.now - begun
    }

    /// Everything is on the medium.
    fn flush(&mut self) -> Ps {
        self.one(Op::Flush, 0, 0)
    }
}

//! A stack of layers over a rig: what each of them plans is sent in its phases, and counted.

use super::counts::{LayerCounts, NamedCounts, RequestCounts};
use super::steps::Steps;
use super::{Layer, LayerKind};
use crate::error::Error;
use crate::rig::{FinishedRequest, Op, Request, Rig};
use crate::run::Run;
use crate::streams::Ask;
use serde::Deserialize;
use std::collections::{BTreeMap, VecDeque};
use toml::{Table, Value};
use trueline_geom::base::error::Errno;
use trueline_geom::base::topology::is_whole;
use trueline_host::process::signal;

/// The most layers of a stack.
const DEEPEST: usize = 16;

/// The most requests that all layers of a stack make together: so many at first, and so many more
/// for each request of the client. Each of several databases over one another makes five of one,
/// and the first write to a thin chunk of 1 GiB 2048.
const REQUESTS_MOST: (u64, u64) = (1 << 20, 1 << 13);

/// The layers of a stack as they were typed, the outermost first: what [`LayerRig`]s are made of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "Vec<Table>")]
pub struct LayerStack {
    layers: Vec<(&'static str, Table)>,
}

impl TryFrom<Vec<Table>> for LayerStack {
    type Error = Error;

    /// `kind` of a layer is its name; the other keys are its own.
    fn try_from(layers: Vec<Table>) -> Result<LayerStack, Error> {
        let named = layers.into_iter().map(|mut keys| match keys.remove("kind") {
            Some(Value::String(name)) => Ok((name, keys)),
            _ => Err(Error::new("a layer needs a kind: { kind = \"page-cache\" }".into())),
        });
        LayerStack::new(named.collect::<Result<_, Error>>()?)
    }
}

impl LayerStack {
    /// Checks the names, the keys and the number of the layers, the outermost first.
    pub fn new(layers: Vec<(String, Table)>) -> Result<LayerStack, Error> {
        if layers.len() > DEEPEST {
            return Err(Error::new(format!("{} layers: at most {DEEPEST}", layers.len())));
        }
        let checked = layers.into_iter().map(|(name, keys)| {
            let kind = LayerKind::named(&name)?;
            kind.make(keys.clone())?;
            Ok((kind.name, keys))
        });
        Ok(LayerStack { layers: checked.collect::<Result<_, Error>>()? })
    }

    /// True if there is no layer.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// Does `work` on `beneath` through the layers, if there are any, and ends its run with what
    /// they still hold. The counts of every layer come with its result. Errors: the work's own, or
    /// the layers' refusal.
    pub fn run<T: AsMut<Run>>(
        &self,
        beneath: &mut dyn Rig,
        work: impl FnOnce(&mut dyn Rig) -> Result<T, Error>,
    ) -> Result<(T, Vec<NamedCounts>), Error> {
        if self.is_empty() {
            return Ok((work(beneath)?, Vec::new()));
        }
        let mut layers = self.over(beneath)?;
        let done = work(&mut layers);
        if let Some(refusal) = layers.refused.take() {
            return Err(refusal);
        }
        let mut done = done?;
        layers.finish(done.as_mut())?;
        Ok((done, layers.counts().collect()))
    }

    /// The layers over `beneath`, as nothing has been asked of them.
    pub fn over<'a>(&self, beneath: &'a mut dyn Rig) -> Result<LayerRig<'a>, Error> {
        let layers = self.layers.iter().map(|(name, keys)| {
            let kind = LayerKind::named(name)?;
            Ok((kind.name, kind.make(keys.clone())?))
        });
        LayerRig::new(layers.collect::<Result<_, Error>>()?, beneath)
    }
}

/// A rig behind a stack of layers.
pub struct LayerRig<'a> {
    /// The layers, the outermost first.
    levels: Vec<Level>,
    beneath: &'a mut dyn Rig,
    /// Requests of all levels that are not done, by number.
    open: BTreeMap<u64, Open>,
    next: u64,
    /// Requests for the rig beneath that it has no room for yet.
    waiting: VecDeque<Request>,
    in_flight: usize,
    ready: VecDeque<FinishedRequest>,
    finished: Vec<FinishedRequest>,
    /// Requests that layers may still make.
    budget: u64,
    /// The reason why nothing more is taken, if there is one.
    refused: Option<Error>,
}

/// A layer, what it shows, and what has passed it.
struct Level {
    name: &'static str,
    layer: Box<dyn Layer>,
    length: u64,
    sector: u64,
    counts: LayerCounts,
}

/// An unfinished request at one level.
struct Open {
    from: From,
    level: usize,
    steps: Steps,
    /// Requests of the present phase that are not done.
    left: usize,
    error: Option<Errno>,
}

/// The origin of a request.
#[derive(Clone, Copy)]
enum From {
    /// The client, with the tag of its request.
    Client(u64),
    /// The layer above, with the number of its request.
    Above(u64),
}

impl<'a> LayerRig<'a> {
    /// Stacks `layers`, the outermost first, on `beneath`. It is an error if one cannot stand on
    /// what is beneath it.
    pub fn new(
        layers: Vec<(&'static str, Box<dyn Layer>)>,
        beneath: &'a mut dyn Rig,
    ) -> Result<LayerRig<'a>, Error> {
        let (mut length, mut sector) = (beneath.length(), beneath.sector());
        let mut levels = Vec::with_capacity(layers.len());
        for (name, mut layer) in layers.into_iter().rev() {
            layer
                .attach(length, sector)
                .map_err(|e| Error { message: format!("layer {name}: {}", e.message), ..e })?;
            let below = length;
            (length, sector) = (layer.length(length), layer.sector(sector));
            if length == 0 {
                return Err(Error::new(format!("layer {name}: {below} bytes beneath are too few")));
            }
            let counts = LayerCounts::default();
            levels.push(Level { name, layer, length, sector, counts });
        }
        levels.reverse();
        Ok(LayerRig {
            levels,
            beneath,
            open: BTreeMap::new(),
            next: 0,
            waiting: VecDeque::new(),
            in_flight: 0,
            ready: VecDeque::new(),
            finished: Vec::new(),
            budget: REQUESTS_MOST.0,
            refused: None,
        })
    }

    /// The counts of every layer with its name, the outermost first.
    pub fn counts(&self) -> impl Iterator<Item = NamedCounts> + '_ {
        self.levels.iter().map(|level| (level.name, level.counts))
    }

    /// The number of reads that writes and flushes have caused in all layers.
    pub fn caused_reads(&self) -> u64 {
        self.levels.iter().map(|level| level.counts.caused_reads).sum()
    }

    /// Ends a run with a flush, whose time is the run's too: what caches still hold is written and
    /// counted. The error is that of the flush, or of the rig beneath.
    fn finish(&mut self, run: &mut Run) -> Result<(), Error> {
        let begin = self.now();
        let failed = |errno| Error::new(format!("the flush at the end of the run: {errno}"));
        let mut done = Vec::new();
        let mut flushed =
            self.push(Request { tag: 0, op: Op::Flush, offset: 0, length: 0, fua: false });
        while flushed.is_ok() && !self.open.is_empty() {
            let before = done.len();
            flushed = self.wait(1, &mut done);
            if done.len() == before {
                break;
            }
        }
        // A flush that is refused beneath at once is done without a wait.
        if flushed.is_ok() {
            flushed = self.wait(0, &mut done);
        }
        run.ns += self.now().saturating_sub(begin);
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let errors = flushed.err().into_iter().chain(done.into_iter().filter_map(|end| end.error));
        errors.map(failed).next().map_or(Ok(()), Err)
    }

    /// Pays for a request of a layer.
    fn pay(&mut self, level: usize) -> Result<(), Errno> {
        let name = self.levels.get(level.saturating_sub(1)).map_or("", |above| above.name);
        match self.budget.checked_sub(1) {
            None => {
                let each = REQUESTS_MOST.1;
                let why = format!("layer {name}: more than {each} requests for each that came");
                self.refused.get_or_insert(Error::new(why));
                Err(Errno::Unsupported)
            }
            Some(left) if left % 1024 == 0 && signal::happened() => {
                self.refused.get_or_insert(Error::new("interrupted".into()));
                Err(Errno::Io)
            }
            Some(left) => {
                self.budget = left;
                Ok(())
            }
        }
    }

    /// Takes a request in at `level`: it is planned, and its first phase is sent.
    fn enter(&mut self, level: usize, ask: Ask, from: From, now: u64) -> Result<(), Errno> {
        self.pay(level)?;
        let Some(own) = self.levels.get_mut(level) else {
            let tag =
                self.number(Open { from, level, steps: Steps::default(), left: 1, error: None });
            let Ask { op, offset, length, fua } = ask;
            self.waiting.push_back(Request { tag, op, offset, length, fua });
            return Ok(());
        };
        let mut steps = Steps::default();
        if ask.op != Op::Flush {
            let end = ask.offset.checked_add(ask.length).ok_or(Errno::Range)?;
            if end > own.length {
                return Err(Errno::Range);
            }
            if !is_whole(ask.offset, own.sector) || !is_whole(ask.length, own.sector) {
                return Err(Errno::Unaligned);
            }
        }
        own.layer.plan(ask, &mut steps)?;
        own.counts.count(ask, RequestCounts::of(steps.asks()));
        let number = self.number(Open { from, level, steps, left: 0, error: None });
        self.go_on(number, now);
        Ok(())
    }

    fn number(&mut self, open: Open) -> u64 {
        let number = self.next;
        self.next += 1;
        self.open.insert(number, open);
        number
    }

    /// Sends the next phase of a request that waits for nothing. Without one it is done, and what
    /// waits for it goes on.
    fn go_on(&mut self, number: u64, at: u64) {
        let mut ended = vec![number];
        while let Some(number) = ended.pop() {
            let Some(open) = self.open.get_mut(&number) else { continue };
            if open.left > 0 {
                continue;
            }
            let phase = if open.error.is_none() { open.steps.next_phase() } else { Vec::new() };
            let (level, from, error) = (open.level, open.from, open.error);
            if phase.is_empty() {
                self.open.remove(&number);
                match from {
                    From::Client(tag) => self.ready.push_back(FinishedRequest { tag, at, error }),
                    From::Above(above) => {
                        self.settle(above, error);
                        ended.push(above);
                    }
                }
                continue;
            }
            open.left = phase.len() + 1;
            for ask in phase {
                if let Err(errno) = self.enter(level + 1, ask, From::Above(number), at) {
                    self.settle(number, Some(errno));
                }
            }
            // The one more kept the request from ending while its phase was sent.
            self.settle(number, None);
            ended.push(number);
        }
    }

    /// Counts one of the requests that `number` waits for as done.
    fn settle(&mut self, number: u64, error: Option<Errno>) {
        if let Some(open) = self.open.get_mut(&number) {
            open.left = open.left.saturating_sub(1);
            open.error = open.error.or(error);
        }
    }

    /// Sends what waits to the rig beneath, as far as it has room.
    fn send(&mut self) {
        while self.in_flight < self.beneath.depth()
            && let Some(request) = self.waiting.pop_front()
        {
            match self.beneath.push(request) {
                Ok(()) => self.in_flight += 1,
                Err(errno) => {
                    let at = self.beneath.now();
                    self.end(FinishedRequest { tag: request.tag, at, error: Some(errno) });
                }
            }
        }
    }

    /// Takes the end of a request of the rig beneath.
    fn end(&mut self, FinishedRequest { tag, at, error }: FinishedRequest) {
        self.settle(tag, error);
        self.go_on(tag, at);
    }
}

impl Rig for LayerRig<'_> {
    fn length(&self) -> u64 {
        self.levels.first().map_or(self.beneath.length(), |level| level.length)
    }

    fn sector(&self) -> u64 {
        self.levels.first().map_or(self.beneath.sector(), |level| level.sector)
    }

    fn depth(&self) -> usize {
        self.beneath.depth()
    }

    fn now(&mut self) -> u64 {
        self.beneath.now()
    }

    fn push(&mut self, request: Request) -> Result<(), Errno> {
        let Request { tag, op, offset, length, fua } = request;
        if self.refused.is_some() {
            return Err(Errno::Unsupported);
        }
        self.budget = self.budget.saturating_add(REQUESTS_MOST.1);
        let now = self.beneath.now();
        self.enter(0, Ask { op, offset, length, fua }, From::Client(tag), now)?;
        self.send();
        Ok(())
    }

    fn wait(&mut self, least: usize, done: &mut Vec<FinishedRequest>) -> Result<(), Errno> {
        self.send();
        let mut looked = false;
        while self.in_flight > 0 && (self.ready.len() < least || !looked) {
            // A client that only looks has what is done by now.
            let short = self.ready.len() < least;
            looked = true;
            let mut finished = std::mem::take(&mut self.finished);
            self.beneath.wait(usize::from(short), &mut finished)?;
            if finished.is_empty() {
                break;
            }
            self.in_flight -= finished.len().min(self.in_flight);
            finished.drain(..).for_each(|end| self.end(end));
            self.finished = finished;
            self.send();
        }
        done.extend(self.ready.drain(..));
        Ok(())
    }

    fn think(&mut self, ns: u64) {
        self.beneath.think(ns);
    }

    fn rest(&mut self, ns: u64) {
        self.beneath.rest(ns);
    }

    fn is_virtual(&self) -> bool {
        self.beneath.is_virtual()
    }
}

#[cfg(test)]
mod tests;

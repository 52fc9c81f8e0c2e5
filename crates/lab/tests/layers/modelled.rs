//! What a stack of models asks of a device.

use toml::Table;
use trueline_geom::base::size::PAGE;
use trueline_geom::base::topology::{round_down, round_up};
use trueline_geom::mapping::route::Route;
use trueline_lab::layer::counts::{LayerCounts, RequestCounts};
use trueline_lab::layer::stack::LayerStack;
use trueline_lab::layer::steps::Steps;
use trueline_lab::layer::{FLUSH, LayerKind, ask};
use trueline_lab::rig::simulated::Simulated;
use trueline_lab::rig::{Op, Request, Rig};
use trueline_lab::streams::Ask;
use trueline_sim::model::Model;
use trueline_sim::random::Random;
use trueline_sim::world::{Schedule, World};

/// A disk of memory with this many bytes.
pub(crate) fn memory(size: u64) -> Simulated {
    let model = Model::parse(Model::named("md").expect("a model")).expect("a model");
    let world = World::new(vec![(model.drive(1), 512)], Schedule::Fifo);
    Simulated::new(world, Route::store(0, size), 512, 0)
}

/// The requests that one layer makes of a device of `size` bytes, for each of `asks`.
pub(crate) fn plans(name: &str, keys: &str, size: u64, asks: &[Ask]) -> Vec<Vec<Ask>> {
    let kind = LayerKind::named(name).expect("a layer");
    let mut layer = kind.make(keys.parse().expect("keys")).expect("a layer");
    layer.attach(size, 512).expect("it stands there");
    asks.iter()
        .map(|ask| {
            let mut steps = Steps::default();
            layer.plan(*ask, &mut steps).expect("a plan");
            steps.asks().collect()
        })
        .collect()
}

/// The same, in the order of their operations and places.
pub(crate) fn sorted(mut plans: Vec<Vec<Ask>>) -> Vec<Vec<Ask>> {
    plans.iter_mut().for_each(|plan| plan.sort_by_key(|ask| (ask.op as u8, ask.offset)));
    plans
}

/// The counts of every layer of a stack, the outermost first, over a disk of `size` bytes, after
/// `asks` one after another.
pub(crate) fn counted(layers: &[(&str, &str)], size: u64, asks: &[Ask]) -> Vec<LayerCounts> {
    let layers = layers
        .iter()
        .map(|(name, keys)| ((*name).to_owned(), keys.parse::<Table>().expect("keys")));
    let stack = LayerStack::new(layers.collect()).expect("a stack");
    let mut inner = memory(size);
    let mut rig = stack.over(&mut inner).expect("it stands there");
    let mut done = Vec::new();
    for (tag, Ask { op, offset, length, fua }) in (0..).zip(asks) {
        let request = Request { tag, op: *op, offset: *offset, length: *length, fua: *fua };
        rig.push(request).expect("it is in the device");
        rig.wait(1, &mut done).expect("the rig stands");
    }
    assert!(done.len() == asks.len() && done.iter().all(|end| end.error.is_none()), "{done:?}");
    rig.counts().map(|(_, counts)| counts).collect()
}

/// The counts of requests.
pub(crate) fn sum(plans: &[Vec<Ask>]) -> RequestCounts {
    RequestCounts::of(plans.iter().flatten().copied())
}

/// 300 requests in the first `room` bytes, in sectors of 512 bytes: reads, writes of up to 64 KiB,
/// some of which wait for the medium, and a flush now and then.
pub(crate) fn mixed(seed: u64, room: u64) -> Vec<Ask> {
    const LONGEST: u64 = 128;
    let mut random = Random::new(seed);
    let mut next = || {
        let op = match random.below(8) {
            0 => return FLUSH,
            1 | 2 => Op::Read,
            _ => Op::Write,
        };
        let length = 512 * (1 + random.below(LONGEST));
        let offset = 512 * random.below((room - length) / 512);
        // One in three on whole pages, so that neighbours meet.
        match random.below(3) {
            0 => ask(op, round_down(offset, PAGE), round_up(length, PAGE).unwrap_or(PAGE)),
            _ => {
                Ask { fua: op == Op::Write && length.is_multiple_of(5), ..ask(op, offset, length) }
            }
        }
    };
    (0..300).map(|_| next()).collect()
}

//! What a stack of models asks of a device.

use toml::Table;
use trueline_geom::mapping::route::Route;
use trueline_lab::layer::counts::{LayerCounts, RequestCounts};
use trueline_lab::layer::stack::LayerStack;
use trueline_lab::layer::steps::Steps;
use trueline_lab::layer::{Layer, LayerKind};
use trueline_lab::rig::simulated::Simulated;
use trueline_lab::rig::{Request, Rig};
use trueline_lab::streams::Ask;
use trueline_sim::model::Model;
use trueline_sim::world::{Schedule, World};

/// A disk of memory with this many bytes.
pub fn memory(size: u64) -> Simulated {
    let model = Model::parse(Model::named("md").expect("a model")).expect("a model");
    let world = World::new(vec![(model.drive(1), 512)], Schedule::Fifo);
    Simulated::new(world, Route::store(0, size), 512, 0)
}

/// The requests that one layer makes of a device of `size` bytes, for each of `asks`.
pub fn plans(name: &str, keys: &str, size: u64, asks: &[Ask]) -> Vec<Vec<Ask>> {
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

/// The counts of every layer of a stack, the outermost first, over a disk of `size` bytes, after
/// `asks` one after another.
pub fn counted(layers: &[(&str, &str)], size: u64, asks: &[Ask]) -> Vec<LayerCounts> {
    let layers = layers.iter().map(|(name, keys)| {
        ((*name).to_owned(), keys.parse::<Table>().expect("keys"))
    });
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
pub fn sum(plans: &[Vec<Ask>]) -> RequestCounts {
    RequestCounts::of(plans.iter().flatten().copied())
}

//! Layers between a client and a device, in the order in which they are listed. Each turns the
//! requests that it gets into others, and is measured by the counts of the real one: requests,
//! bytes and the reads that writes cause.
//!
//! A layer decides and does nothing: [`Layer::plan`] changes its state and says what is asked of
//! the device, [`stack::LayerRig`] asks and counts. It has no clock, so nothing happens in it
//! between two requests.
//!
//! # Adding one
//! One file, a `mod` line, a line in [`LAYERS`], and a test that holds it to the real one
//! (`tests/layers`).

use crate::error::Error;
use crate::rig::Op;
use crate::streams::Ask;
use serde::de::DeserializeOwned;
use toml::{Table, Value};
use trueline_geom::base::error::Errno;

pub mod counts;
pub mod crypt;
pub mod innodb;
pub mod loop_device;
pub mod page_cache;
pub mod partition;
pub mod postgresql;
pub mod qcow2;
pub mod stack;
pub mod steps;
pub mod thin;
pub mod zfs;

use steps::Steps;

/// All layers, in the order in which they are listed.
pub const LAYERS: &[LayerKind] = &[
    page_cache::KIND,
    loop_device::KIND,
    partition::KIND,
    qcow2::KIND,
    thin::KIND,
    crypt::KIND,
    zfs::KIND,
    postgresql::KIND,
    innodb::KIND,
];

/// The definition of a layer, without parameters.
#[derive(Clone, Copy)]
pub struct LayerKind {
    /// The name on the command line and in labs.
    pub name: &'static str,
    /// The title, one line for people.
    pub title: &'static str,
    /// The names of its keys.
    pub keys: fn() -> &'static [&'static str],
    /// The constructor, from the layer's own keys.
    make: fn(Table) -> Result<Box<dyn Layer>, Error>,
}

impl LayerKind {
    /// The layer of the name; the error lists those there are.
    pub fn named(name: &str) -> Result<&'static LayerKind, Error> {
        LAYERS.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names: Vec<&str> = LAYERS.iter().map(|kind| kind.name).collect();
            Error::new(format!("no layer '{name}': there are {}", names.join(", ")))
        })
    }

    /// A layer with these keys, as nothing has been asked of it.
    pub fn make(&self, keys: Table) -> Result<Box<dyn Layer>, Error> {
        (self.make)(keys)
            .map_err(|e| Error { message: format!("layer {}: {}", self.name, e.message), ..e })
    }
}

/// A layer's parameters from its keys.
fn parameters<T: DeserializeOwned>(keys: Table) -> Result<T, Error> {
    Value::Table(keys)
        .try_into()
        .map_err(|e: toml::de::Error| Error::new(e.to_string().trim().replace('\n', " ")))
}

/// A layer between a client and a device: the requests that it makes of one.
pub trait Layer {
    /// The bytes that the layer shows over a device of `beneath` bytes; 0 where that is too small.
    fn length(&self, beneath: u64) -> u64 {
        beneath
    }

    /// The smallest unit of a request in bytes, over a device with sectors of `beneath` bytes.
    fn sector(&self, beneath: u64) -> u64 {
        beneath
    }

    /// The device that the layer stands on, told before the first request: its length and its
    /// sector size in bytes. The error says what the layer cannot be over it.
    fn attach(&mut self, length: u64, sector: u64) -> Result<(), Error> {
        let _ = (length, sector);
        Ok(())
    }

    /// Adds the requests that `ask` becomes to `steps`. It lies within the layer, in whole sectors.
    fn plan(&mut self, ask: Ask, steps: &mut Steps) -> Result<(), Errno>;
}

/// A request of an operation, of data that need not be on the medium when it is done.
pub fn ask(op: Op, offset: u64, length: u64) -> Ask {
    Ask { op, offset, length, fua: false }
}

/// The request of a flush.
pub const FLUSH: Ask = Ask { op: Op::Flush, offset: 0, length: 0, fua: false };

//! `zero`: zeros of any length.
//!
//! # Topology
//! Every byte is a boundary.
//!
//! # Limits
//! No consumers and no metadata: it is made by hand (`zero:SIZE`).

use crate::base::topology::Topology;
use crate::mapping::geom::{Extent, Geom, Op, Slot};

/// A provider that reads as zeros.
pub struct Zero {
    /// Length of the provider in bytes.
    pub length: u64,
}

impl Geom for Zero {
    fn providers(&self) -> Vec<Slot> {
        vec![Slot { name: String::new(), length: self.length, kind: None }]
    }

    fn topology(&self, _slot: usize, _below: &[Topology]) -> Topology {
        Topology::new(1, self.length)
    }

    fn map(&self, _slot: usize, _offset: u64, length: u64, _op: Op) -> Extent {
        Extent::Zero { length }
    }
}

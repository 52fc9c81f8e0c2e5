//! Ground floor of the library: on-disk integers, errors, alignment arithmetic, findings, ordered writes, and the store
//! that they go to.

pub mod error;
pub mod finding;
pub mod ondisk;
pub mod patch;
pub mod size;
pub mod store;
pub mod topology;

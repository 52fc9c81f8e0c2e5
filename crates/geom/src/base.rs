//! Ground floor of the library: on-disk integers, errors, alignment arithmetic, findings, ordered
//! writes, the store that they go to, and escaped text.

pub mod error;
pub mod escape;
pub mod finding;
pub mod ondisk;
pub mod patch;
pub mod resize;
pub mod size;
pub mod store;
pub mod topology;

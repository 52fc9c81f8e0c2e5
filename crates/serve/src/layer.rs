//! Layers between an export and its disks, one a file: each is a store that changes one thing about
//! the store beneath.

pub mod counted;
pub mod emulated;
pub mod faulty;
pub(crate) mod held_ranges;
pub mod offset;
pub mod overlay;
pub mod recorded;
pub mod sectored;
pub mod strict;
pub mod watched;

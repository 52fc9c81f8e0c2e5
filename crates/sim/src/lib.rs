//! Drives in virtual time.
//!
//! A [`model::Model`] is read from a documented TOML file and makes a [`drive::Drive`]; a [`world::World`] runs several of them
//! under the classes of `trueline-geom`, and its clock moves only as far as the next thing that happens. Nothing here reads a clock
//! or is random without a seed: the same commands give the same completions to the picosecond.

#![deny(unsafe_code)]

pub mod counters;
pub mod drive;
pub mod model;
pub mod random;
pub mod time;
pub mod world;

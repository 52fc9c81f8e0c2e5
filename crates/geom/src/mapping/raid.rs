//! RAID as md, LVM and firmware share it: the shape of a set, the places of its bytes on members,
//! parity, and the set as it is read.
//!
//! A format that keeps its own labels describes its set as a [`shape::RaidShape`] in md's numbers,
//! and has the rest from here.

pub mod fault;
pub mod galois;
pub mod layout;
pub mod set;
pub mod shape;

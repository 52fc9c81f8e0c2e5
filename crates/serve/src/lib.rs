//! A provider as a block device, by three ways in: NBD, FUSE and the ublk driver.
//!
//! A way in ([`front`]) finds an [`export::Export`] by its name and hands every request to its store. Between that store and the disks
//! stand layers ([`layer`]), each one file that changes one thing: it counts, records, delays, fails, refuses, keeps writes elsewhere.

#![forbid(unsafe_code)]

pub mod errseq;
pub mod export;
pub mod front;
mod generations;
pub mod layer;
pub mod retaste;
pub(crate) mod workers;

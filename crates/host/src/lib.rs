//! Files, block devices, and what the host says of them. All I/O of the program is here.
//!
//! [`sysfs::host`] lists this host's block devices, [`lsblk::parse`] another host's from what its `lsblk` printed, and
//! [`nvme::parse`] what `nvme id-ns` printed. [`file::open`] opens one image or device as a store, [`file::open_for`] also for writing.

#![deny(unsafe_code)]

pub mod buffers;
pub mod busy;
pub mod cache;
pub mod clock;
pub mod counted;
pub mod device;
pub mod direct;
pub mod engine;
pub mod error;
pub mod errseq;
pub mod export;
mod extents;
pub mod faulty;
pub mod file;
pub mod front;
pub mod fuse;
pub mod gather;
pub mod http;
pub mod interrupt;
pub mod kernel;
pub mod lane;
mod latest;
pub mod locks;
pub mod lsblk;
pub mod memory;
pub mod nbd;
pub mod nvme;
pub mod offset;
pub mod overlay;
pub mod processes;
pub mod random;
mod ranges;
pub mod ring;
pub mod sectored;
mod shared;
pub mod stat;
pub mod strict;
pub mod sync;
pub mod sysfs;
pub mod tasted;
pub mod tool;
pub mod ublk;
pub mod udev;
pub mod unnamed;
mod workers;

pub use device::{Device, Kind};
pub use error::Error;

//! Files, block devices, and what the host says of them. All I/O of the program is here.
//!
//! [`sysfs::host`] lists this host's block devices, [`lsblk::parse`] another host's from what its `lsblk` printed, and
//! [`nvme::parse`] what `nvme id-ns` printed. [`file::open`] opens one image or device as a store, [`file::open_for`] also for writing.

#![deny(unsafe_code)]

pub mod buffers;
pub mod busy;
pub mod cache;
pub mod clock;
pub mod device;
pub mod engine;
pub mod error;
pub mod file;
pub mod interrupt;
pub mod kernel;
pub mod lane;
pub mod lsblk;
pub mod memory;
pub mod nvme;
pub mod random;
pub mod ring;
pub mod stat;
pub mod sync;
pub mod sysfs;
pub mod tool;
pub mod udev;
pub mod unnamed;

pub use device::{Device, Kind};
pub use error::Error;

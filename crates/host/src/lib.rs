//! Files, block devices, and what the host says of them. All I/O of the program is here.
//!
//! [`sysfs::host`] lists this host's block devices, [`lsblk::parse`] another host's from what its `lsblk` printed, and
//! [`nvme::parse`] what `nvme id-ns` printed. [`file::open`] opens one image or device as a store, [`file::open_for`] also for writing.

#![deny(unsafe_code)]

pub mod clock;
pub mod device;
pub mod disk;
pub mod engine;
pub(crate) mod errno;
pub mod error;

pub mod nbd;
pub mod process;
pub mod random;
pub mod ublk;

pub use device::{Device, Kind};
pub use error::Error;

//! What an operating system does between a program and its drive, one system a file.

pub mod freebsd_ufs;
pub mod linux_bdev;
mod buffers;
mod names;
pub mod openbsd_ffs;
mod queue;

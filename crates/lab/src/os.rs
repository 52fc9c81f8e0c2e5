//! Models of operating systems between a program and its drive, one system a file.

mod buffers;
mod extents;
pub mod freebsd_ufs;
pub mod linux_writeback;
mod names;
mod numbered;
pub mod openbsd_ffs;
mod queue;

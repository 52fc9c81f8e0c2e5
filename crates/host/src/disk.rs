//! Disks as stores: files, block devices and memory; their locks, caches, and what the kernel knows
//! of them.

pub mod buffers;
mod discard;
pub mod extents;
pub mod file;
pub mod locks;
pub mod look;
pub mod memory;
pub mod page_cache;
pub mod reread;
pub mod room;
pub(crate) mod shared;
mod writeback;

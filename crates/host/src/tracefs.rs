//! Requests of block devices as the kernel sees them, from tracefs.
//!
//! [`BlockTrace`] makes an instance of the kernel's tracing of its own, with the events of some
//! devices alone, and reads its ring buffers. Nothing else of tracefs is touched; the instance is
//! removed when the trace ends, and one that a killed program left is removed by the next trace.
//!
//! # Which events
//! | device | a request | its end |
//! |---|---|---|
//! | with queues (`mq` in sysfs) | `block_rq_issue`: as the drive gets it | `block_rq_complete` |
//! | without (md, dm, zram, brd) | `block_bio_queue`: as it was submitted | `block_bio_complete` |
//!
//! A request that a driver puts back (`block_rq_requeue`) is issued again, and counts once.
//!
//! # Limits
//! Needs root and tracefs. The process of a request is the one that handed it to the driver: of
//! writes out of the page cache, that is most often a worker of the kernel.
//!
//! # Sources
//! Linux `Documentation/trace/ftrace.rst`, `Documentation/trace/events.rst`,
//! `Documentation/trace/ring-buffer-design.rst`, `include/linux/ring_buffer.h`,
//! `include/trace/events/block.h`, `kernel/trace/blktrace.c` (`blk_fill_rwbs`).

mod event;
mod in_flight;
mod instance;
mod layout;
mod page;
mod rwbs;
mod session;

pub use event::{Phase, Process, SeenRequest};
pub use rwbs::{Operation, RequestFlags};
pub use session::{BlockTrace, TraceEnd, TracedDevice};

#[cfg(test)]
#[path = "tracefs/tests.rs"]
mod tests;

//! The ublk driver's side of a block device: commands, queues, and the forms of their messages.
//!
//! # Sources
//! Linux `Documentation/block/ublk.rst`, `include/uapi/linux/ublk_cmd.h`,
//! `drivers/block/ublk_drv.c`.

pub mod control;
pub mod queue;
pub mod wire;

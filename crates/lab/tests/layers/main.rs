//! Models of layers held to the real ones: the same requests, and what is beneath has seen of them.

#[path = "../../../../tests/skip.rs"]
mod skip;

mod device;
mod loop_device;
mod modelled;
mod page_cache;
mod qcow2;

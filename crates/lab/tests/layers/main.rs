//! Models of layers held to the real ones: the same requests, and what is beneath has seen of them.

#[path = "../../../../tests/skip.rs"]
mod skip;

mod crypt;
mod device;
mod innodb;
mod loop_device;
mod modelled;
mod page_cache;
mod postgresql;
mod qcow2;
mod recorded;
mod thin;
mod zfs;

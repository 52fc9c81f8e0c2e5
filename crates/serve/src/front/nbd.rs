//! The server of NBD, from socket to store.
//!
//! [`negotiate`] is the handshake before the first request, and [`validate`] decides which requests
//! are allowed: neither does I/O. [`server`], [`connection`] and `transmit` move the bytes,
//! `execute` asks the store, `reply` sends. [`limits`] bounds the time and connections of a client,
//! [`memory_budget`] the memory of all together, and [`notices`] reports those cut off.
//!
//! # Sources
//! The NBD protocol, `doc/proto.md` of NetworkBlockDevice/nbd; its sections are named where they
//! matter.

pub(crate) mod buffer;
pub mod connection;
pub(crate) mod execute;
pub(crate) mod input;
pub mod limits;
pub mod memory_budget;
pub mod negotiate;
pub mod notices;
pub(crate) mod progress;
pub(crate) mod reply;
pub mod server;
pub(crate) mod transmit;
pub mod validate;
pub(crate) mod zeros;

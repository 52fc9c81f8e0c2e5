//! The NBD server.
//!
//! [`negotiate`] is what comes before the first request and [`validate`] what a request may ask: neither does I/O. [`server`],
//! [`connection`] and `transmit` move the bytes, `answer` asks the store, `reply` sends. [`limits`] says how long and how much a
//! client may keep of all that, [`memory_budget`] how much all of them together, and [`notices`] who kept more.
//!
//! # Sources
//! The NBD protocol, `doc/proto.md` of NetworkBlockDevice/nbd; its sections are named where they matter.

pub(crate) mod answer;
pub(crate) mod buffer;
pub mod connection;
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

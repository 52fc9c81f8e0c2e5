//! The server: its ways in, their protocols, and clients that mean harm.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod config;
mod example;
mod fuse;
mod layers;
mod nbd;
mod nbd_batches;
#[path = "../../../../tests/scratch.rs"]
mod scratch;
#[path = "../../../../tests/skip.rs"]
mod skip;

use scratch::Scratch;

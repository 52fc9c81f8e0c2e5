//! Writing to a qcow2: what is read back, and what a loss of power leaves.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod blank;
mod crash;
mod guest;
pub mod hostile;
mod model;
mod recording;
mod refusals;
mod tape;

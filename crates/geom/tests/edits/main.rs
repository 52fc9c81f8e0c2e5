//! Edits of partition tables: what is written, in which order, and what is found if it stops
//! half-way.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bsd;
mod crash;
mod disk;
mod ebr;
mod gpt;
mod layout;
mod mbr;
mod random;

//! The command `trueline`.
mod report;
fn main() {}

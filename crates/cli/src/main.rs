//! The command `trueline`.
mod out;
mod report;
fn main() {}

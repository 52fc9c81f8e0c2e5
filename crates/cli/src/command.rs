//! One command a file.

pub mod check;
pub mod completions;
pub mod demo;
pub mod explain;
pub mod info;
pub mod man;
pub mod show;

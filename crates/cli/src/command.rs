//! One command a file.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod converting;
pub(crate) mod demo;
pub(crate) mod drives;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod info;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod mkfs;
pub(crate) mod moving;
pub(crate) mod part;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod serve;
pub(crate) mod set;
pub(crate) mod show;
pub(crate) mod trace;

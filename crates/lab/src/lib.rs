//! Measurements of misalignment: workloads, A/B runs with intervals, labs.
//!
//! A workload is written once against [`rig::Rig`] (blocks) or [`files::Files`] (a file system) and cannot know whether its time is
//! real (`host`) or virtual (`sim`). What an operating system does between a program and its drive is in `host`, one system a file.

#![deny(unsafe_code)]

pub mod ab;
pub mod emulated;
pub mod error;
pub mod files;
pub mod host;
pub mod lab;
pub mod latency;
pub mod recorded;
pub mod result;
pub mod rig;
pub mod run;
pub mod statistics;
pub mod streams;
pub mod sweep;
pub mod trace;
pub mod workload;

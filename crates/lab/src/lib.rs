//! Measurements of misalignment: workloads, A/B runs with intervals, labs.
//!
//! A workload is written once against [`rig::Rig`] (blocks) or [`files::Files`] (a file system) and cannot know whether its time is
//! real (`host`) or virtual (`sim`). What an operating system does between a program and its drive is in `host`, one system a file.

#![deny(unsafe_code)]

pub mod ab;
pub mod error;
pub mod files;
pub mod latency;
pub mod os;
pub mod result;
pub mod rig;
pub mod run;
pub mod statistics;
pub mod streams;
pub mod study;
pub mod sweep;
pub mod trace;
pub mod workload;

//! Drives in virtual time.
//!
//! A [`model::Model`] is read from a documented TOML file and makes a [`drive::Drive`]; a
//! [`world::World`] runs several of them under the classes of `trueline-geom`, and its clock moves
//! only as far as the next thing that happens. Nothing here reads a clock or is random without a
//! seed: the same commands give the same completions to the picosecond.
//!
//! # Example
//! One write, off the sectors of a hard disk that emulates 512 bytes: the drive reads both sectors
//! before it writes them.
//!
//! ```
//! use trueline_sim::drive::{Command, Op};
//! use trueline_sim::model::Model;
//!
//! let model = Model::parse(Model::named("wd10ears").expect("it is built in"))?;
//! let mut drive = model.drive(1);
//! drive.submit(0, Command { tag: 1, op: Op::Write, offset: 63 * 512, length: 4096, fua: true });
//! let (mut now, mut done) = (0, Vec::new());
//! while let Some(next) = drive.next().filter(|_| done.is_empty()) {
//!     now = next;
//!     drive.advance(now, &mut done);
//! }
//! assert_eq!(done[0].tag, 1);
//! // Picoseconds of virtual time: milliseconds have passed in it.
//! assert!(now > 1_000_000_000);
//! # Ok::<(), trueline_sim::model::ModelRefusal>(())
//! ```
//!
//! # Folders
//! | folder | what is in it |
//! |---|---|
//! | [`model`] | a drive's parameters, from TOML, with where each value comes from |
//! | [`drive`] | hard disks, SSDs and memory, driven by commands and time |
//! | [`world`] | several drives under one clock, their queues |

#![deny(unsafe_code)]

pub mod counters;
pub mod drive;
pub mod model;
pub mod random;
pub mod time;
pub mod world;

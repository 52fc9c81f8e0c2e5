//! Measurements of misalignment: workloads, A/B runs with intervals, labs.
//!
//! A workload is written once against [`rig::Rig`] (blocks) or [`files::Files`] (a file system),
//! and does not know whether its time is real (`host`) or virtual (`sim`). Models of operating
//! systems between a program and its drive are in [`os`], one system a file.
//!
//! # Example
//! A hundred writes on a simulated disk, off its sectors and on them:
//!
//! ```
//! use trueline_geom::mapping::route::Route;
//! use trueline_lab::rig::Op;
//! use trueline_lab::rig::simulated::Simulated;
//! use trueline_lab::streams::{Ask, Limit, run};
//! use trueline_sim::model::Model;
//! use trueline_sim::world::{Schedule, World};
//!
//! let seconds = |first: u64| {
//!     let model = Model::parse(Model::named("wd10ears").expect("it is built in")).expect("a
//! model");
//!     let world = World::new(vec![(model.drive(1), 512)], Schedule::default());
//!     let mut rig = Simulated::new(world, Route::store(0, model.size), 512, 0);
//!     let mut places = (0..).map(|nth| first + nth * (8 << 20));
//!     let mut source = |_stream: usize| Some(Ask { op: Op::Write, offset: places.next()?, length:
//! 4096, fua: true });
//!     let run = run(&mut rig, 1, Limit::Count(100), &mut source).expect("nothing fails");
//!     run.seconds()
//! };
//! assert!(seconds(63 * 512) > seconds(64 * 512));
//! ```
//!
//! # Folders
//! | folder | what is in it |
//! |---|---|
//! | [`rig`], [`files`] | blocks and file systems, real or virtual |
//! | [`workload`], [`trace`], [`streams`] | what is asked of them |
//! | [`os`] | what an operating system does in between, one system a file |
//! | [`ab`], [`statistics`], [`result`](mod@result) | runs in pairs, intervals, results |
//! | [`study`], [`sweep`] | labs, and models over ranges of their parameters |

#![deny(unsafe_code)]

pub mod ab;
pub mod error;
pub mod files;
pub mod latency;
pub mod layer;
pub mod os;
pub mod probe;
pub mod result;
pub mod rig;
pub mod run;
pub mod statistics;
pub mod streams;
pub mod study;
pub mod sweep;
pub mod trace;
pub mod workload;

//! A provider as a block device, by three ways in: NBD, FUSE and the ublk driver.
//!
//! A way in ([`front`]) finds an [`export::Export`] by its name and hands every request to its store. Between that store and the disks
//! stand layers ([`layer`]), each one file that changes one thing: it counts, records, delays, fails, refuses, keeps writes elsewhere.
//!
//! # Example
//! An export over memory, which a client writes and reads back. `examples/serve_memory.rs` adds a table and counters.
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use trueline_geom::base::store::Store;
//! use trueline_geom::base::topology::Topology;
//! use trueline_host::disk::memory::Memory;
//! use trueline_host::nbd::client::Remote;
//! use trueline_host::nbd::listener::Listener;
//! use trueline_host::nbd::tls::Encryption;
//! use trueline_serve::export::{BlockSizes, Export, Exports};
//! use trueline_serve::front::nbd::{limits::Limits, memory_budget::MemoryBudget};
//! use trueline_serve::front::{Front, Nbd};
//!
//! let store = Arc::new(Memory::new(1 << 20)?);
//! let sizes = BlockSizes::of(&Topology::new(512, 1 << 20), &*store);
//! let export = Export {
//!     name: String::new(),
//!     description: "a MiB of memory".into(),
//!     store,
//!     read_only: false,
//!     rotational: false,
//!     sizes,
//!     boundaries: Vec::new(),
//!     errors: Arc::default(),
//!     overlay: None,
//!     refusals: Vec::new(),
//! };
//! let socket = std::env::temp_dir().join(format!("trueline-serve-{}", std::process::id()));
//! let front = Nbd {
//!     listener: Listener::unix(&socket)?,
//!     exports: Arc::new(Exports(vec![export])),
//!     encryption: Encryption::Off,
//!     certificates: None,
//!     limits: Limits::default(),
//!     room: Arc::new(MemoryBudget::new(32 << 20)),
//!     tell: Box::new(|line| eprintln!("{line}")),
//! };
//! let stop = AtomicBool::new(false);
//! std::thread::scope(|scope| {
//!     let server = scope.spawn(|| front.run(&stop));
//!     let read = Remote::open(&front.place(), false).map(|client| {
//!         let mut bytes = [0; 4];
//!         client.write_at(b"here", 4096).and_then(|()| client.read_at(&mut bytes, 4096)).map(|()| bytes)
//!     });
//!     stop.store(true, Ordering::Relaxed);
//!     assert_eq!(read.expect("it is connected"), Ok(*b"here"));
//!     server.join().expect("the server ends").expect("nothing failed");
//! });
//! # Ok::<(), trueline_host::Error>(())
//! ```
//!
//! # Folders
//! | folder | what is in it |
//! |---|---|
//! | [`front`] | the ways in: NBD, FUSE, ublk, and HTTP for one page |
//! | [`layer`] | what stands between a way in and the disks, one file a layer |
//! | [`retaste`] | when a table that a client writes is tasted again |

#![forbid(unsafe_code)]

pub mod counting;
pub mod error;
pub mod errseq;
pub mod export;
pub mod front;
mod generations;
pub mod layer;
pub mod layer_stack;
pub mod notice;
pub mod retaste;
pub mod selection;
pub mod server;
pub(crate) mod workers;

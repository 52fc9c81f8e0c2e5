//! A provider as a block device, by three ways in: NBD, FUSE and the ublk driver.
//!
//! A way in ([`front`]) finds an [`export::Export`] by its name and hands every request to its
//! store. Between that store and the disks stand layers ([`layer`]), each one file that changes one
//! thing: it counts, records, delays, fails, refuses, keeps writes elsewhere.
//!
//! A server is put together out of plain values: a [`layer_stack::LayerConfig`] says which layers
//! there are, a [`selection::Selection`] which providers are exported, a
//! [`front::config::FrontConfig`] where clients find them. [`server::run`] serves. Nothing is
//! printed: what a user is to know is an [`error::Error`], a [`notice::Notice`], or a value such as
//! [`counting::ServerCounts`].
//!
//! # Example
//! A disk in memory, which a client writes and reads back; its server counts how the requests lie
//! on units of 4096 bytes. `examples/serve_memory.rs` adds a table to it.
//!
//! ```
//! use std::sync::Arc;
//! use trueline_geom::base::store::Store;
//! use trueline_geom::base::topology::{Fact, Grain, Placement, Source, Topology, Trust, Why};
//! use trueline_geom::graph::{Disk, Graph};
//! use trueline_geom::probe::Limits;
//! use trueline_host::disk::memory::Memory;
//! use trueline_host::nbd::client::Remote;
//! use trueline_serve::front::config::{Address, FrontConfig};
//! use trueline_serve::layer_stack::{LayerConfig, LayerStack};
//! use trueline_serve::notice::Tell;
//! use trueline_serve::selection::Selection;
//! use trueline_serve::server;
//!
//! let unit = Grain::new(4096, 0).expect("a power of two");
//! let (why, source, trust) = (Why::Physical, Source::User, Trust::Trusted);
//! let physical = Fact { grain: unit, why, source, trust };
//! let topology = Topology { facts: vec![physical], ..Topology::new(512, 1 << 20) };
//! let disk = Disk::new("", Box::new(Memory::new(1 << 20)?), topology);
//! let graph = Graph::taste(vec![disk], Limits::default());
//!
//! let tell: Arc<Tell> = Arc::new(|notice| eprintln!("{notice}"));
//! let counted = LayerConfig { count: true, ..LayerConfig::default() };
//! let layers = LayerStack::new(&graph, 0, &counted, &tell)?;
//! let exports = Arc::new(Selection::default().exports(&graph, 0, &layers, None)?);
//! let socket = std::env::temp_dir().join(format!("trueline-serve-{}", std::process::id()));
//! let nbd = FrontConfig { nbd: Some(Address::Unix(socket)), ..FrontConfig::default() };
//! let fronts = nbd.open(&exports, &tell)?;
//!
//! let counting = layers.counting().expect("it was asked for");
//! let read = server::run(&fronts, Some(&**counting), |_ended| {
//!     let client = Remote::open(&fronts[0].place(), false).expect("it is served");
//!     let mut bytes = [0; 4096];
//!     client.write_at(&[7; 4096], 4096)?;
//!     client.read_at(&mut bytes, 512).map(|()| bytes)
//! })?;
//! assert_eq!(read.map(|bytes| (bytes[0], bytes[4095])), Ok((0, 7)));
//! let disk = &counting.counts().exports[0].layers[0];
//! assert_eq!(disk.requests(Placement::Aligned), 1);
//! assert_eq!(disk.requests(Placement::Misaligned), 1);
//! # Ok::<(), trueline_serve::error::Error>(())
//! ```
//!
//! # Folders
//! | folder | content |
//! |---|---|
//! | [`front`] | the ways in: NBD, FUSE, ublk, and HTTP for one page |
//! | [`layer`] | layers between a way in and the disks, one file each |
//! | [`counting`] | counters of exports, the stack they follow, their value |
//! | [`retaste`] | the moment at which a table that a client writes is tasted again |

#![forbid(unsafe_code)]

pub mod counting;
pub mod error;
pub mod error_sequence;
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

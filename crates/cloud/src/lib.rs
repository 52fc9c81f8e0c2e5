//! Objects as disks: `s3://`, `gs://`, `az://`, `http://` and `https://`, read by ranges.
//!
//! Tasting reads little, here and there, and each read of an object is a request that takes 20 to
//! 200 ms. So an object is read in rounds. The first brings its head and its tail. Tasting then
//! runs over what is here: a read of anything else fails, and is noted. All that was noted is
//! fetched at once, and tasting runs again, until it misses nothing. Tasting takes a tenth of a
//! millisecond and is the same each time, so classes need not know of it.
//!
//! This crate alone speaks to object stores, and has the only asynchronous runtime.
//!
//! ```no_run
//! use std::sync::Arc;
//! use trueline_cloud::{Object, ObjectError};
//! use trueline_geom::base::topology::Topology;
//! use trueline_geom::graph::{Disk, Graph};
//! use trueline_geom::probe::Limits;
//!
//! fn tasted(uri: &str) -> Result<Graph, ObjectError> {
//!     let object = Arc::new(Object::new(uri, None));
//!     let length = object.connect()?.length;
//!     loop {
//!         let disk = Disk::new("", Box::new(object.store()?), Topology::new(512, length));
//!         let graph = Graph::taste(vec![disk], Limits::default());
//!         if !object.fetch_missing()? {
//!             return Ok(graph);
//!         }
//!     }
//! }
//! # let _ = tasted;
//! ```

mod choice;
mod error;
mod known;
mod listing;
mod location;
mod object;
mod ranges;
mod runtime;

pub use choice::{CONTAINER, Counts, DISK};
pub use error::{ErrorClass, ObjectError};
pub use listing::{ListedObject, list};
pub use location::is_meant;
pub use object::{Listed, Object, ObjectStore, Opened};

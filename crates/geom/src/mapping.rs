//! Mapping of bytes: the answers of a geom, partitions as it offers them, RAID's places on
//! members, segments of volumes, extents in files, and routes compiled from several geoms.

pub(crate) mod extents;
pub mod geom;
pub mod partition;
pub mod pieces;
pub mod raid;
pub mod route;
pub mod segments;
pub mod slices;
pub mod tables;
pub(crate) mod unpack;

//! A userspace GEOM in which alignment is a first-class fact.
//!
//! Every class is a pure answerer of three questions: *what am I looking at* ([`class::Class::taste`]), *what do I know
//! about boundaries* ([`class::Geom::topology`]), *where do these bytes live* ([`class::Geom::map`]). [`graph::Graph`] puts
//! the answers together for a set of disks, [`route::Route`] compiles a provider for I/O, [`audit`] turns the result into
//! findings. Bytes come from a [`store::Store`] that the caller provides; nothing here does I/O, reads a clock, or knows
//! an operating system.

#![forbid(unsafe_code)]

pub mod audit;
pub mod base;
pub mod class;
pub mod format;
pub mod graph;
pub mod layout;
pub mod mapping;
pub mod newfs;
pub mod plan;
pub mod probe;
pub mod registry;
pub mod relocate;
pub mod table;

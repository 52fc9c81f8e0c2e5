//! A userspace GEOM in which alignment is a first-class fact.
//!
//! Every class is a pure answerer of three questions: *what am I looking at* ([`class::Class::taste`]), *what do I know
//! about boundaries* ([`class::Geom::topology`]), *where do these bytes live* ([`class::Geom::map`]). [`graph::Graph`] puts
//! the answers together for a set of disks, [`route::Route`] compiles a provider for I/O, [`audit`] turns the result into
//! findings. Bytes come from a [`store::Store`] that the caller provides; nothing here does I/O, reads a clock, or knows
//! an operating system.

#![forbid(unsafe_code)]

pub mod audit;
pub mod backup;
pub mod class;
pub mod error;
pub mod finding;
pub mod graph;
pub mod kinds;
pub mod layout;
pub mod limits;
pub mod looked;
pub mod newfs;
pub mod ondisk;
pub mod patch;
pub mod plan;
pub mod probe;
pub mod profile;
pub mod realign;
pub mod route;
pub mod scheme;
pub mod sfdisk;
pub mod sign;
pub mod slices;
pub mod store;
pub mod table;
pub mod there;
pub mod through;
pub mod topology;
pub mod watch;

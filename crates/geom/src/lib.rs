//! A userspace GEOM in which alignment is a first-class fact.
//!
//! Every class is a pure answerer of three questions: *what am I looking at*
//! ([`class::Class::taste`]), *what do I know about boundaries*
//! ([`mapping::geom::Geom::topology`]), *where do these bytes live* ([`mapping::geom::Geom::map`]).
//! [`graph::Graph`] puts the answers together for a set of disks, [`mapping::route::Route`]
//! compiles a provider for I/O, [`audit`] turns the result into findings. Bytes come from a
//! [`base::store::Store`] that the caller provides; nothing here does I/O, reads a clock, or knows
//! an operating system.
//!
//! # Example
//! A partition table in memory is tasted and judged: its partition begins 3584 bytes past a
//! boundary of the drive's 4096-byte sectors.
//!
//! ```
//! use trueline_geom::audit::{Verdict, audit};
//! use trueline_geom::base::store::Sparse;
//! use trueline_geom::base::topology::{Fact, Grain, Source, Topology, Trust, Why};
//! use trueline_geom::graph::{Disk, Graph};
//! use trueline_geom::probe::Limits;
//!
//! let mut image = Sparse::new(64 << 20);
//! // An MBR: type 0x83, from sector 63, 65536 sectors.
//! image.put(446, &[0, 0, 0, 0, 0x83, 0, 0, 0, 63, 0, 0, 0, 0, 0, 1, 0]);
//! image.put(510, &[0x55, 0xaa]);
//! let grain = Grain::new(4096, 0).expect("a size that is not 0");
//! let physical = Fact { grain, why: Why::Physical, source: Source::User, trust: Trust::Trusted };
//! let topology = Topology { facts: vec![physical], ..Topology::new(512, 64 << 20) };
//! let graph = Graph::taste(vec![Disk::new("", Box::new(image), topology)], Limits::default());
//! let found = audit(&graph);
//! let s1 = graph.find("s1").expect("the partition was found");
//! assert_eq!(found.verdicts[s1], Verdict::Misaligned);
//! assert!(found.findings.iter().any(|(id, finding)| *id == s1 && finding.rule.id == "TL0001"));
//! ```
//!
//! # Folders
//! | folder | what is in it |
//! |---|---|
//! | [`base`] | errors, sizes, findings, patches, stores, the arithmetic of boundaries |
//! | [`mapping`] | what a geom answers; slices, RAID and compiled routes |
//! | [`probe`] | bounded reads of a provider that is not trusted |
//! | [`table`] | partition tables as they are edited |
//! | [`class`], [`format`](mod@format) | one class, or one recognised format, a file |
//! | [`registry`] | the lists of classes, formats and schemes |
//! | [`graph`], [`audit`] | disks put together, and the findings on them |
//! | [`layout`], [`relocate`], [`plan`], [`newfs`] | layouts, moves, plans of stacks, a UFS made |

#![forbid(unsafe_code)]

pub mod audit;
pub mod base;
pub mod class;
pub mod convert;
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

//! Forms of output that several commands share: each turns a value, mostly a
//! [`crate::report::Report`], into text, a drawing or a document.
//!
//! | where | form |
//! |---|---|
//! | `report/` | a report as text, JSON, SARIF, Prometheus, a list, a page; `group.rs` merges findings of one kind |
//! | `draw/` | a stack as a tree, to scale, magnified where it misses, as SVG |
//! | `charts/` | parts of charts in pages: strips, positions on a line, seconds of drives |
//! | `gpart.rs` | tables as gpart(8) shows them |
//! | `spent.rs` | the time of simulated drives by its causes |
//! | `traffic.rs` | requests by layer as a table, and why they miss |
//! | `made.rs` | the line of a page on its own making |
//!
//! Output of a single command is in that command's folder. The same value gives the same bytes.
//! Text is written with colour, which the caller's stream keeps or strips. Labels come from hostile
//! disks, so every string is escaped where it is written.

pub(crate) mod charts;
pub(crate) mod draw;
pub(crate) mod gpart;
pub(crate) mod layers;
pub(crate) mod made;
pub(crate) mod report;
pub(crate) mod spent;
pub(crate) mod traffic;

#[cfg(test)]
pub(crate) mod samples;

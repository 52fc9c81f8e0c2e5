//! Forms in which several commands print: each turns a value, mostly a [`crate::report::Report`], into text, a drawing or a document.
//!
//! | where | form |
//! |---|---|
//! | `report/` | a report as text, JSON, SARIF, Prometheus, a list, a page; `group.rs` says once what was found many times |
//! | `draw/` | a stack as a tree, to scale, magnified where it misses, as SVG |
//! | `gpart.rs` | tables as gpart(8) shows them |
//! | `after_help.rs` | examples and lists behind the options of `--help` |
//! | `spent.rs` | where the time of simulated drives went |
//! | `made.rs` | what a page says of itself |
//!
//! What one command alone prints is in that command's folder. The same value gives the same bytes. Text is written with colour, which the
//! caller's stream keeps or strips; labels come from hostile disks, so every string is escaped where it is written.

pub(crate) mod draw;
pub(crate) mod gpart;
pub(crate) mod made;
pub(crate) mod report;
pub(crate) mod spent;

#[cfg(test)]
pub(crate) mod samples;

//! A report in each of its forms: text, JSON, SARIF, Code Quality, Prometheus, a line, a page, a
//! list.

pub(crate) mod alignment;
pub(crate) mod alignment_scan;
pub(crate) mod changes;
pub(crate) mod gitlab;
pub(crate) mod group;
pub(crate) mod json;
pub(crate) mod list;
pub(crate) mod nagios;
pub(crate) mod page;
pub(crate) mod prometheus;
pub(crate) mod rows;
pub(crate) mod sarif;
pub(crate) mod text;

//! Providers without any that does I/O: nothing is judged, which differs from aligned.

use super::{Audit, Role, Verdict};
use crate::base::finding::{self, Finding, Severity};
use crate::graph::{Graph, Id};

/// The finding that none of `kept` does I/O, and the first of them, which it is about. `None` where
/// one does, or where a finding already says that something is unknown.
pub fn vacant(graph: &Graph, audit: &Audit, kept: &[Id]) -> Option<(Id, Finding)> {
    let &first = kept.first()?;
    let is_judged =
        |&id: &Id| audit.roles[id] == Role::Data || audit.verdicts[id] != Verdict::Aligned;
    if kept.iter().any(is_judged) {
        return None;
    }
    let p = &graph.providers[first];
    let found = match (&p.table, p.slices()) {
        (Some((scheme, _)), Some(slices)) if slices.entries.is_empty() => {
            format!("its {scheme} table has no partition")
        }
        _ if kept.len() > 1 => {
            "it holds tables, boot code or reserved space, and no partition for data".into()
        }
        _ => "it is for boot code or other partitions, or reserved".into(),
    };
    Some((
        first,
        Finding::new(
            &finding::EMPTY,
            Severity::Note,
            0,
            format!("there is nothing to judge: {found}"),
        ),
    ))
}

//! Moves of a whole disk that stand between two steps: nothing on it is half done, and it has no
//! mark. Only the journal beside it says so.

use super::beside;
use super::sought::Its;
use crate::failure::Failure;
use crate::placed::half_moved;
use crate::target::Target;
use std::path::PathBuf;
use trueline_geom::convert::owned::{GLANCE, Head, Kind, Owned};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::Mark;
use trueline_geom::relocate::draft::{draft, is_draft};
use trueline_geom::relocate::sequence::progress::Progress;
use trueline_host::disk::file::{self, Access};
use trueline_host::disk::look::look;

/// Journal at the usual place of a disk that has no mark.
pub(crate) enum Beside {
    /// Moves of a whole disk, of which some are done and some are not.
    UnderWay(Box<Between>),
    /// Journal that was never complete.
    Draft(PathBuf),
    /// Journal of moves of this disk of which none has begun, or, if true, all are done.
    End(Its, bool),
    /// Journal of nothing that is under way on the disk.
    Idle(PathBuf, Kind),
}

/// Moves of a whole disk between two steps.
pub(crate) struct Between {
    /// The provider with the table.
    pub(crate) on: Id,
    pub(crate) progress: Progress,
    pub(crate) journal: Its,
    /// True if a partition begins with a mark of it: it is in the middle of a move.
    is_marked: bool,
}

impl Between {
    /// The state of the disk in words.
    pub(crate) fn found(&self) -> String {
        let Progress { done, stages, is_half, .. } = self.progress;
        let at = match (self.is_marked, is_half) {
            (true, _) => "within a step",
            (false, true) => "while it wrote the table",
            (false, false) => "between two steps",
        };
        format!("a move of all partitions was interrupted {at}: {done} of {stages} steps are done")
    }
}

/// The journal at the usual place of `target`, seen from the disk in `graph`; `None` if there is
/// none, or if a mark on the disk is of it.
pub(crate) fn beside_disk(target: &Target, graph: &Graph) -> Option<Beside> {
    found(target, graph, false)
}

/// As [`beside_disk`]; `with_mark` has moves of a whole disk too that a mark on the disk is of.
fn found(target: &Target, graph: &Graph, with_mark: bool) -> Option<Beside> {
    if target.paths().is_empty() {
        return None;
    }
    let path = beside(target);
    let real = std::fs::canonicalize(&path).ok()?;
    let bytes = look(&real, draft(&[0; 16]).len().max(GLANCE))?.bytes;
    let Some(head) = Head::read(&bytes) else {
        let opened = file::open_for(&path, Access::Read).ok()?;
        return (is_draft(&opened.store) == Ok(true)).then_some(Beside::Draft(path));
    };
    let roots: Vec<Id> =
        (0..graph.providers.len()).filter(|&id| graph.providers[id].parents.is_empty()).collect();
    let marked = roots.iter().find_map(|&root| half_moved(graph, root));
    if marked.is_some() && !with_mark {
        return None;
    }
    let idle = Some(Beside::Idle(path.clone(), head.kind));
    if head.kind != Kind::Disk {
        return idle;
    }
    let opened = file::open_for(&path, Access::Read).ok()?;
    let Ok((Owned::Disk(sequence), words)) = Owned::open(&opened.store) else { return idle };
    let is_of = |id: Id| {
        let mut first = [0; 512];
        let mark = graph.read_at(id, &mut first, 0).ok().and_then(|()| Mark::read(&first));
        mark.is_some_and(|mark| sequence.has(&mark.id))
    };
    let is_marked = marked.is_some();
    if marked.is_some_and(|id| !is_of(id)) {
        return None;
    }
    let named = Target::parse(&words);
    let on = named.provider().map_or(Some(graph.disk(0)), |name| graph.find(name));
    let Some(on) = on else { return idle };
    match sequence.progress(&Through::new(graph, on)) {
        Ok(Some(progress)) => {
            let journal = Its { path, words, kind: Kind::Disk };
            Some(match is_marked || progress.is_under_way() {
                true => Beside::UnderWay(Box::new(Between { on, progress, journal, is_marked })),
                false => Beside::End(journal, progress.done > 0),
            })
        }
        _ => idle,
    }
}

/// Refuses a write to provider `id` where that has sectors of a table between two steps of a move:
/// the move could neither go on nor back. `attempt` begins the message.
pub(crate) fn require_none(
    attempt: &str,
    target: &Target,
    graph: &Graph,
    id: Id,
) -> Result<(), Failure> {
    let Some(Beside::UnderWay(between)) = found(target, graph, true) else { return Ok(()) };
    let Between { on, progress, journal, is_marked } = &*between;
    let (p, table) = (&graph.providers[id], graph.providers[*on].base());
    let own = p.base()..p.base().saturating_add(p.topology.length);
    let covers = progress.tables.iter().any(|range| {
        let at = |offset: u64| table.saturating_add(offset);
        at(range.start) < own.end && at(range.end) > own.start
    });
    if graph.root(id) != graph.root(*on) && !graph.is_within(id, *on) || !covers {
        return Ok(());
    }
    let found = between.found();
    let (on, back) = (journal.command(target), journal.with("--rollback", target));
    let left = match progress.is_half || *is_marked {
        true => String::new(),
        false => {
            format!("; to leave every partition where it is now, remove {}", journal.path.display())
        }
    };
    Err(Failure::Message(format!(
        "{attempt} {target}: {found}: go on with that first: {on}, or go back: {back}{left}: \
         nothing was written"
    )))
}

//! Findings on a disk without a mark, by the journal at its usual place.

use crate::move_journal::between::{Beside, Between, beside_disk};
use crate::report;
use crate::target::Target;
use crate::words::escape::shell;
use trueline_geom::base::finding::{self, Severity};
use trueline_geom::graph::{Graph, Id};

/// The finding on the journal of `target`; `None` without one, or if none of the providers `kept`
/// is concerned.
pub(super) fn finding(target: &Target, graph: &Graph, kept: &[Id]) -> Option<report::Finding> {
    let (id, severity, message, fix, commands) = match beside_disk(target, graph)? {
        Beside::UnderWay(between) => {
            let Between { on, progress, journal, .. } = &*between;
            let severity = if progress.is_half { Severity::Error } else { Severity::Warning };
            let whole = match progress.is_half {
                true => "the table may be of two states until it is resumed",
                false => "every partition is whole where the table says",
            };
            let message = format!("{}; {whole}: change no table until it is", between.found());
            let command = journal.command(target);
            let back = format!("or back: {}", journal.with("--rollback", target));
            (*on, severity, message, vec![command.clone(), back], vec![command])
        }
        Beside::Draft(path) => {
            let message = format!(
                "{} is a journal that was never complete: nothing on the disk had changed",
                path.display()
            );
            let fix = format!("rm {}", shell(&path.to_string_lossy()));
            (graph.disk(0), Severity::Note, message, vec![fix], Vec::new())
        }
        Beside::End(journal, is_done) => {
            let (shown, command) = (journal.path.display(), journal.command(target));
            let (state, rest) = match is_done {
                true => ("is done", "removes it"),
                false => ("has not begun", "begins it; to leave everything as it is, remove it"),
            };
            let message =
                format!("{shown} is the journal of a move of all partitions that {state}");
            (graph.disk(0), Severity::Note, message, vec![format!("{command} {rest}")], Vec::new())
        }
        Beside::Idle(path, kind) => {
            let (shown, command) = (path.display(), kind.command());
            let message = format!(
                "{shown} is the journal of a trueline {command}, and none is under way on this \
                 disk: it is of another one, or has not begun or is done"
            );
            let fix = format!(
                "trueline {command} --resume {} --dry-run tells more; if it is of no disk any \
                 more, remove it",
                shell(&path.to_string_lossy())
            );
            (graph.disk(0), Severity::Note, message, vec![fix], Vec::new())
        }
    };
    let p = Some(&graph.providers[id]).filter(|_| kept.contains(&id))?;
    Some(report::Finding {
        rule: finding::MOVING.id,
        severity,
        provider: p.name.clone(),
        offset: p.base(),
        unit: 0,
        remainder: 0,
        straddle: 0.0,
        rmw_factor: 1.0,
        message,
        fix,
        commands,
    })
}

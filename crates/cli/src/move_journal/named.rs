//! The journal and the disk of `--resume [JOURNAL] [TARGET]`: what is named is taken as it is, and
//! what is not is searched for.

use super::sought::{Belonging, in_words, of_mark, of_table};
use super::{beside, is_journal, mark, unreadable};
use crate::disk_options::DiskOptions;
use crate::failure::{Failure, complain};
use crate::placed::half_moved;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use crate::words::escape::shell;
use std::path::{Path, PathBuf};
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::Mark;

/// The journal, and the disk that the user names.
pub(crate) struct Named {
    pub(crate) journal: PathBuf,
    /// The disk and, if it is named, its provider; `None`: as the journal says.
    pub(crate) typed: Option<Target>,
    /// True if only the disk was named, and the journal was found.
    pub(crate) is_sought: bool,
}

impl Named {
    /// The target of a journal that knows its disk as `words`. The table may be on a slice or a
    /// set, which the journal names.
    pub(crate) fn target(&self, words: &str) -> Target {
        match &self.typed {
            Some(disk) if self.is_sought => {
                Target::from_sources(disk.sources().to_vec(), Target::parse(words).provider())
            }
            Some(typed) => typed.clone(),
            None => Target::parse(words),
        }
    }
}

/// Command that goes on, and the option that was given to it.
#[derive(Clone, Copy)]
pub(crate) struct Going {
    /// Name of the command: `move` or `convert`.
    pub(crate) command: &'static str,
    /// Option of it: `--resume` or `--rollback`.
    pub(crate) option: &'static str,
    /// End of every refusal.
    pub(crate) nothing: &'static str,
}

impl Going {
    fn failed(self, disk: &Target, found: &str) -> Failure {
        Failure::Message(format!("resume {disk}: {found}: {}", self.nothing))
    }

    /// The command with `rest` behind its option.
    fn with(self, rest: &str) -> String {
        format!("trueline {} {} {rest}", self.command, self.option)
    }
}

/// The journal and the disk. A single word that is no journal is the TARGET.
pub(crate) fn named(
    going: Going,
    journal: Option<&Path>,
    typed: Option<&Target>,
    options: &DiskOptions,
) -> Result<Named, Failure> {
    if let (Some(journal), Some(typed)) = (journal, typed) {
        return Ok(Named { journal: journal.into(), typed: Some(typed.clone()), is_sought: false });
    }
    // `--resume --dry-run JOURNAL` has it in the place of the TARGET.
    let last = typed.filter(|_| journal.is_none()).and_then(Target::only_path);
    let (journal, typed) = match last.filter(|path| is_journal(path)) {
        Some(path) => (Some(path), None),
        None => (journal, typed),
    };
    let word = journal.filter(|path| !is_journal(path)).and_then(Path::to_str);
    let alone = word.map(Target::parse).filter(is_disk);
    match (typed.or(alone.as_ref()), journal) {
        (Some(disk), _) => {
            let journal = find(going, disk, options)?;
            Ok(Named { journal, typed: Some(disk.clone()), is_sought: true })
        }
        (None, Some(journal)) => {
            Ok(Named { journal: journal.into(), typed: None, is_sought: false })
        }
        (None, None) => Err(Failure::Message(format!(
            "resume: name the disk or the journal: {}: {}",
            going.with("disk.img"),
            going.nothing
        ))),
    }
}

/// True if the target is a disk: an existing file, a provider or a server.
fn is_disk(target: &Target) -> bool {
    target.only_path().is_some_and(Path::exists)
        || target.provider().is_some()
        || target.is_remote()
}

/// The journal of what was interrupted on `disk`: that at the usual place, or the only one that has
/// the identity of the mark on it.
fn find(going: Going, disk: &Target, options: &DiskOptions) -> Result<PathBuf, Failure> {
    let usual = beside(disk);
    let graph = DiskOverrides::new(options).and_then(|overrides| open(disk, &overrides));
    let graph = match graph {
        Ok(graph) => graph,
        // The journal may know how to open it: the size of its sectors.
        Err(_) if usual.exists() => return Ok(usual),
        Err(why) => return Err(going.failed(disk, &why.0)),
    };
    match marked(disk, &graph) {
        Some(mark) => found(going, disk, &mark),
        None if usual.exists() => Ok(usual),
        None => {
            let mut all = of_table(disk, &graph);
            match (all.pop(), all.as_slice()) {
                (Some(its), []) if going.command == its.kind.command() => {
                    complain(&format!("note: the journal of its move is {}", its.path.display()));
                    Ok(its.path)
                }
                (Some(its), rest) if going.command == its.kind.command() => {
                    let all = rest.iter().map(|its| &its.path).chain([&its.path]);
                    Err(several(going, disk, all))
                }
                _ => Err(going.failed(disk, none_under_way(going, disk))),
            }
        }
    }
}

/// The first mark on `disk`, or on the provider of it that is named.
fn marked(disk: &Target, graph: &Graph) -> Option<Mark> {
    let named = disk.provider().and_then(|name| graph.find(name));
    let roots = (0..graph.providers.len()).filter(|&id| graph.providers[id].parents.is_empty());
    let from: Vec<Id> = named.into_iter().chain(roots).collect();
    from.into_iter().find_map(|id| mark(graph, half_moved(graph, id)?))
}

/// The journal of `mark`, which is on `disk`, or the reason why none can be taken.
fn found(going: Going, disk: &Target, mark: &Mark) -> Result<PathBuf, Failure> {
    let right = if mark.is_of_disk() { "convert" } else { "move" };
    if going.command != right {
        let what = if mark.is_of_disk() { "conversion" } else { "move" };
        let command = format!("trueline {right} {} {}", going.option, shell(disk.typed()));
        let found = format!("a {what} of it was interrupted: go on with that: {command}");
        return Err(going.failed(disk, &found));
    }
    let by_name = |path: &Path| {
        going.with(&format!("{} {}", shell(&path.to_string_lossy()), shell(disk.typed())))
    };
    match of_mark(disk, &mark.id) {
        Belonging::One(its) => {
            if its.path != beside(disk) {
                complain(&format!("note: the journal of its {right} is {}", its.path.display()));
            }
            Ok(its.path)
        }
        Belonging::Several(paths) => Err(several(going, disk, paths.iter())),
        Belonging::Shared(its, other) => Err(going.failed(
            disk,
            &format!(
                "{} is the journal, and {other} has the same mark: one of the two can be gone on \
                 with: if it is this one: {}",
                its.path.display(),
                by_name(&its.path)
            ),
        )),
        Belonging::Unusable(path, why) => {
            Err(going
                .failed(disk, &format!("{} is the journal: {}", path.display(), unreadable(why))))
        }
        Belonging::Missing(directories, is_cut) => {
            let usual = beside(disk);
            let other = match usual.exists() {
                true => format!("{} is not the journal of it, and ", usual.display()),
                false => String::new(),
            };
            Err(going.failed(
                disk,
                &format!(
                    "{other}no journal of it is at {} or elsewhere {}: name it: {}",
                    usual.display(),
                    in_words(&directories, is_cut),
                    going.with(&format!("JOURNAL {}", shell(disk.typed())))
                ),
            ))
        }
    }
}

/// The refusal where several files are journals of one mark.
fn several<'a>(going: Going, disk: &Target, paths: impl Iterator<Item = &'a PathBuf>) -> Failure {
    let all: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    going.failed(
        disk,
        &format!(
            "{} are journals of it: name the one that the interruption left: {}",
            all.join(" and "),
            going.with(&format!("JOURNAL {}", shell(disk.typed())))
        ),
    )
}

/// The finding where neither a mark nor a journal is there.
fn none_under_way(going: Going, disk: &Target) -> &'static str {
    let path = Path::new(disk.typed());
    match (going.command, path.extension().is_some_and(|extension| extension == "journal")) {
        ("move", true) => {
            "it is not a complete journal of a move: if the move was killed as it began, begin it \
             again with --journal and another name"
        }
        ("move", false) => {
            "no move of it is under way: if one without a journal was interrupted, begin it again"
        }
        (_, true) => "it is not a complete journal of a conversion",
        (_, false) => "no conversion of it is under way",
    }
}

//! Search for the journal of an interrupted move or conversion by the mark on its disk.
//!
//! # Limits
//! The usual name comes first. Then regular files are looked at: beside each image of the target,
//! and in the current directory. Of each directory 4096 names are read, of each file 100 bytes;
//! at most [`OPENED`] files whose first bytes have the mark's identity are read further. Symbolic
//! links are not followed, and nothing but a regular file is opened.

use super::{beside, mark};
use crate::disk_options::DiskOptions;
use crate::target::open::open;
use crate::target::{DiskOverrides, Target};
use crate::words::escape::shell;
use std::fs::{self, Metadata};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use trueline_geom::base::store::Store;
use trueline_geom::convert::owned::{GLANCE, Head, Kind, Owned};
use trueline_geom::graph::provider_store::Through;
use trueline_geom::graph::{Graph, Id};
use trueline_geom::relocate::Unreadable;
use trueline_host::disk::file::{self, Access};
use trueline_host::disk::look::{FILES, files, look};

/// Largest number of files whose heads are read.
const OPENED: usize = 16;
/// Largest number of directories that are looked into.
const DIRECTORIES: usize = 8;

/// Journal that belongs to a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Its {
    pub(crate) path: PathBuf,
    /// The words by which it knows the disk.
    pub(crate) words: String,
    pub(crate) kind: Kind,
}

impl Its {
    /// The command that goes on with it on `target`, which it names if the journal does not.
    pub(crate) fn command(&self, target: &Target) -> String {
        self.with("--resume", target)
    }

    /// The command with the option `--resume` or `--rollback`.
    pub(crate) fn with(&self, option: &str, target: &Target) -> String {
        let (command, path) = (self.kind.command(), shell(&self.path.to_string_lossy()));
        let named = Target::parse(&self.words);
        let disk = match is_same(&named, target) {
            true => String::new(),
            false => {
                let disk = Target::from_sources(target.sources().to_vec(), named.provider());
                format!(" {}", shell(disk.typed()))
            }
        };
        format!("trueline {command} {option} {path}{disk}")
    }
}

/// Result of a search for the journal of a mark.
#[derive(Debug)]
pub(crate) enum Belonging {
    /// Only journal of it.
    One(Its),
    /// Several files that are journals of it.
    Several(Vec<PathBuf>),
    /// Journal of it that another disk, with the same mark, needs as well.
    Shared(Its, String),
    /// Journal of it that cannot be gone on with.
    Unusable(PathBuf, Unreadable),
    /// No journal of it in these directories; true if one has more files than are looked at.
    Missing(Vec<PathBuf>, bool),
}

impl Belonging {
    /// The path of the journal, if there is only one.
    pub(crate) fn only_path(self) -> Option<PathBuf> {
        match self {
            Belonging::One(its) | Belonging::Shared(its, _) => Some(its.path),
            Belonging::Unusable(path, _) => Some(path),
            Belonging::Several(_) | Belonging::Missing(..) => None,
        }
    }
}

/// The journal of the mark on provider `id`; `None` without a mark.
pub(crate) fn of_provider(target: &Target, graph: &Graph, id: Id) -> Option<Belonging> {
    Some(of_mark(target, &mark(graph, id)?.id))
}

/// The journal of the mark `id`, which is on `target`.
pub(crate) fn of_mark(target: &Target, id: &[u8; 16]) -> Belonging {
    let usual = beside(target);
    let first = usual.is_file().then(|| read(&usual, id)).flatten();
    if let Some(Ok(its)) = first {
        return shared(its, target, id);
    }
    let (directories, more, found) = heads(target, &|head| head.may_be_of(id));
    let (mut its, mut unusable) = (Vec::new(), None);
    for path in found {
        match read(&path, id) {
            Some(Ok(found)) => its.push(found),
            Some(Err(why)) => unusable = unusable.or(Some((path, why))),
            None => {}
        }
    }
    match (its.pop(), unusable) {
        (Some(only), _) if its.is_empty() => shared(only, target, id),
        (Some(last), _) => {
            let all = its.into_iter().chain([last]).map(|its| its.path);
            Belonging::Several(all.collect())
        }
        (None, Some((path, why))) => Belonging::Unusable(path, why),
        (None, None) => Belonging::Missing(directories, more),
    }
}

/// Journals of a whole disk that name `target`, and of which its table on `graph` is a state: one
/// that stands between two moves has no mark.
pub(crate) fn of_table(target: &Target, graph: &Graph) -> Vec<Its> {
    let (_, _, found) = heads(target, &|head| head.kind == Kind::Disk);
    let open = |path: PathBuf| {
        let opened = file::open_for(&path, Access::Read).ok()?;
        let Ok((Owned::Disk(sequence), words)) = Owned::open(&opened.store) else { return None };
        let named = Target::parse(&words);
        let id = named.provider().map_or(Some(graph.disk(0)), |name| graph.find(name))?;
        let is_its = is_same(&named, target)
            && sequence.progress(&Through::new(graph, id)).is_ok_and(|at| at.is_some());
        is_its.then_some(Its { path, words, kind: Kind::Disk })
    };
    found.into_iter().filter_map(open).collect()
}

/// The journal at `path`, if its first bytes say that it is of the mark `id`; or the reason why it
/// cannot be gone on with.
fn read(path: &Path, id: &[u8; 16]) -> Option<Result<Its, Unreadable>> {
    let opened = file::open_for(path, Access::Read).ok()?;
    let mut first = [0; GLANCE];
    let length = usize::try_from(opened.store.length()).unwrap_or(GLANCE).min(GLANCE);
    opened.store.read_at(&mut first[..length], 0).ok()?;
    Head::read(&first[..length]).filter(|head| head.may_be_of(id))?;
    match Owned::open(&opened.store) {
        Ok((owned, words)) => {
            let its = Its { path: path.into(), words, kind: owned.kind() };
            owned.is_of(id).then_some(Ok(its))
        }
        Err(why) => Some(Err(why)),
    }
}

/// Files whose first bytes are the head of a journal that `wanted` takes, each once; with the
/// directories that were looked into, and true if one has more files than are looked at.
fn heads(target: &Target, wanted: &dyn Fn(&Head) -> bool) -> (Vec<PathBuf>, bool, Vec<PathBuf>) {
    let (mut found, mut seen, mut is_cut) = (Vec::new(), Vec::new(), false);
    let directories = directories(target);
    for directory in &directories {
        let (files, more) = files(directory);
        is_cut |= more;
        for path in files {
            let Some(look) = look(&path, GLANCE) else { continue };
            let is_wanted = Head::read(&look.bytes).is_some_and(|head| wanted(&head));
            if !is_wanted || seen.contains(&look.identity) {
                continue;
            }
            is_cut |= found.len() == OPENED;
            if found.len() < OPENED {
                seen.push(look.identity);
                found.push(path.strip_prefix(".").map_or(path.clone(), Path::to_path_buf));
            }
        }
    }
    (directories, is_cut, found)
}

/// Directories of the images of `target`, also those that symbolic links lead to, and the current
/// one; each once.
fn directories(target: &Target) -> Vec<PathBuf> {
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    let images = target.paths().into_iter().filter(|path| path.is_file());
    let around = images.flat_map(|path| {
        [Some(path.to_path_buf()), fs::canonicalize(path).ok()].into_iter().flatten()
    });
    let around = around.filter_map(|path| path.parent().map(Path::to_path_buf));
    for directory in around.chain([PathBuf::from(".")]).take(2 * DIRECTORIES) {
        let directory = if directory.as_os_str().is_empty() { ".".into() } else { directory };
        let Ok(real) = fs::canonicalize(&directory) else { continue };
        if !seen.contains(&real) && all.len() < DIRECTORIES {
            seen.push(real);
            all.push(directory);
        }
    }
    all
}

/// The journal as the only one of `target`, unless another disk that it names, or is named after,
/// has the mark `id` too: the end of the move on one of them would take it from the other.
fn shared(its: Its, target: &Target, id: &[u8; 16]) -> Belonging {
    let after = its.path.to_str().and_then(|path| path.strip_suffix(".journal"));
    let after = after.map(Target::file);
    let others = [Some(Target::parse(&its.words).disks()), after].into_iter().flatten();
    let others = others.filter(|other| !other.is_remote() && other.known_disks().is_some());
    let owner = others.filter(|other| !is_same(other, target)).find(|other| {
        let overrides = DiskOverrides::new(&DiskOptions::default());
        let graph = overrides.and_then(|overrides| open(other, &overrides));
        graph.is_ok_and(|graph| {
            let mut all = 0..graph.providers.len();
            all.any(|on| mark(&graph, on).is_some_and(|mark| mark.id == *id))
        })
    });
    match owner {
        Some(owner) => Belonging::Shared(its, owner.typed().to_owned()),
        None => Belonging::One(its),
    }
}

/// True if both are the same files and devices, in the same order.
pub(super) fn is_same(one: &Target, other: &Target) -> bool {
    let (one, other) = (one.paths(), other.paths());
    let same = |(a, b): (&&Path, &&Path)| {
        let (Ok(a), Ok(b)) = (fs::metadata(a), fs::metadata(b)) else { return false };
        identity(&a) == identity(&b)
    };
    !one.is_empty() && one.len() == other.len() && one.iter().zip(&other).all(same)
}

/// Numbers by which a file is known under all its names: those of a device are its own.
fn identity(file: &Metadata) -> (bool, u64, u64) {
    let is_device = file.file_type().is_block_device();
    if is_device { (true, file.rdev(), 0) } else { (false, file.dev(), file.ino()) }
}

/// The directories in words, for a message; with the bound, where it was reached.
pub(crate) fn in_words(directories: &[PathBuf], is_cut: bool) -> String {
    let names = directories.iter().map(|directory| match directory.to_str() {
        Some(".") => "the current directory".into(),
        _ => directory.display().to_string(),
    });
    let names = names.collect::<Vec<_>>().join(", or in ");
    let cut = format!(", as far as {FILES} files of each and {OPENED} journals");
    format!("in {names}{}", if is_cut { cut } else { String::new() })
}

//! `check --recursive`: the files of a directory tree that may be images.

use crate::failure::Reason;
use crate::report::{Provider, Target};
use crate::target::{self, Named, Target as Name, object};
use crate::words::{self, escape};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use trueline_geom::base::finding::Severity;
use trueline_geom::format::by_magic::ENDINGS;

/// Extensions of file names that say "image", whatever the file holds.
const IMAGES: [&str; 20] = [
    "img",
    "raw",
    "iso",
    "qcow2",
    "qcow",
    "qed",
    "vmdk",
    "vhd",
    "vhdx",
    "vdi",
    "hdd",
    "hds",
    "dd",
    "wic",
    "bin",
    "sparseimage",
    "dmg",
    "e01",
    "s01",
    "ex01",
];
/// Bytes of the smallest file that can hold a sector.
const SECTOR: u64 = 512;

/// The files beneath `directory` with at least a sector or an image's name, in order of their
/// names, and errors for what could not be read. Links are not followed; names that begin with a
/// dot are left out.
pub(super) fn files(directory: &Path) -> (Vec<Named>, Vec<String>) {
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    let mut todo = vec![directory.to_path_buf()];
    while let Some(at) = todo.pop() {
        let entries = match fs::read_dir(&at) {
            Ok(entries) => entries,
            Err(e) => {
                failures.push(format!("read {}: {}", at.display(), words::os(&e)));
                continue;
            }
        };
        for entry in
            entries.flatten().filter(|entry| !entry.file_name().as_bytes().starts_with(b"."))
        {
            let path = entry.path();
            // Metadata of the entry itself, so a link is neither.
            match entry.metadata() {
                Ok(kind) if kind.is_dir() => todo.push(path),
                // An image that was cut short to nothing is a finding, not a file to leave out.
                Ok(kind) if kind.is_file() && (kind.len() >= SECTOR || is_named(&path)) => {
                    found.push(path)
                }
                Ok(_) => {}
                Err(e) => failures.push(format!("read {}: {}", path.display(), words::os(&e))),
            }
        }
    }
    found.sort();
    (found.iter().map(|path| target::found(path.as_os_str())).collect(), failures)
}

/// The objects whose names begin with `prefix`, of which the same are left out as of files: those
/// without a sector and an image's name, and those in or beneath what begins with a dot. An error
/// is the last.
pub(super) fn objects(prefix: &str) -> impl Iterator<Item = Result<Name, Reason>> + Send + use<> {
    let begin = prefix.to_owned();
    object::list(prefix).filter_map(move |found| match found {
        Ok((target, length)) => {
            // What was named itself is looked into, as a directory is.
            let name = target.typed().strip_prefix(&begin).unwrap_or_default();
            let is_hidden = name.split('/').any(|part| part.starts_with('.'));
            let is_one = length >= SECTOR || is_named(Path::new(target.typed()));
            (is_one && !is_hidden).then_some(Ok(target))
        }
        Err(e) => Some(Err(e)),
    })
}

/// Names of files that were passed over, in the note of them.
pub(super) const NAMED: usize = 3;

/// The note of `count` files that hold nothing known, with the names of the first of them, beneath
/// a directory or several.
pub(super) fn passed_over(directory: Option<&Path>, count: usize, first: &[String]) -> String {
    let place = directory.map_or(String::new(), |directory| format!("{}: ", directory.display()));
    let names: Vec<String> = first.iter().take(NAMED).map(|name| escape::plain(name)).collect();
    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
    let what = if count == 1 {
        "1 file that holds nothing known was"
    } else {
        &format!("{count} files that hold nothing known were")
    };
    format!("note: {place}{what} passed over: {}{more}", names.join(", "))
}

/// True if a file of a tree is an image: it has recognised contents, or findings, or an image's
/// name.
pub(super) fn is_image(target: &Target) -> bool {
    let packed = |p: &Provider| {
        p.sign.as_deref().is_some_and(|sign| ENDINGS.iter().any(|(kind, _)| kind.name == sign))
    };
    let recognised = |p: &Provider| {
        p.sign.is_some() || !p.signs.is_empty() || p.table.is_some() || !p.members.is_empty()
    };
    if let [file, rest @ ..] = target.providers.as_slice()
        && packed(file)
        && !rest.iter().any(recognised)
    {
        return is_packed_image(Path::new(&target.target));
    }
    let is_more =
        target.providers.len() > 1 || target.findings.iter().any(|f| f.severity != Severity::Note);
    is_more || target.providers.iter().any(recognised) || is_named(Path::new(&target.target))
}

/// True if a compressed file may hold an image, by its name: `disk.img.xz`, `disk.gz`. Archives,
/// modules, pages of the manual, documents and programs are compressed files too.
fn is_packed_image(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let stem = path.file_stem().map(Path::new);
    let plain = || stem.is_some_and(|stem| stem.extension().is_none() || is_named(stem));
    is_named(path) || ENDINGS.iter().any(|(_, known)| known.eq_ignore_ascii_case(ending)) && plain()
}

/// True if the extension of the name says "image".
fn is_named(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    IMAGES.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

//! `check --recursive`: the files of a directory tree that may be images.

use crate::report::{Provider, Target};
use crate::words;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trueline_geom::base::finding::Severity;

/// Endings of names that say "image", whatever is in it.
const ENDINGS: [&str; 11] = ["img", "raw", "iso", "qcow2", "vmdk", "vhd", "vhdx", "vdi", "dd", "wic", "bin"];
/// The smallest file that can hold a sector.
const SECTOR: u64 = 512;

/// The files beneath `directory` that can hold something, in order of their names, and what could not be read. Links are not followed;
/// what begins with a dot is passed over.
pub(super) fn files(directory: &Path) -> (Vec<OsString>, Vec<String>) {
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
        for entry in entries.flatten().filter(|entry| !entry.file_name().as_bytes().starts_with(b".")) {
            let path = entry.path();
            // Of the entry itself, so a link is neither.
            match entry.metadata() {
                Ok(kind) if kind.is_dir() => todo.push(path),
                // An image that was cut short to nothing is a finding, not a file to pass over.
                Ok(kind) if kind.is_file() && (kind.len() >= SECTOR || is_named(&path)) => found.push(path),
                Ok(_) => {}
                Err(e) => failures.push(format!("read {}: {}", path.display(), words::os(&e))),
            }
        }
    }
    found.sort();
    (found.into_iter().map(PathBuf::into_os_string).collect(), failures)
}

/// Whether a file of a tree is an image: something was recognised on it or was wrong with it, or its name says so.
pub(super) fn is_image(target: &Target) -> bool {
    let recognised = |p: &Provider| p.sign.is_some() || !p.signs.is_empty() || p.table.is_some() || !p.members.is_empty();
    let is_more = target.providers.len() > 1 || target.findings.iter().any(|f| f.severity != Severity::Note);
    is_more || target.providers.iter().any(recognised) || is_named(Path::new(&target.target))
}

/// An ending of the name that says "image".
fn is_named(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending))
}

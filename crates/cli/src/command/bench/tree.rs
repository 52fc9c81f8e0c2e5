//! The list of files in a real tarball.

use crate::failure::Reason;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use trueline_lab::workload::tree::plan::TreeEntry;
use trueline_lab::workload::tree::tar;

/// Names and sizes of the tarball's entries; contents are skipped. Errors: no plain file, no
/// tarball, an empty one.
pub(super) fn list(path: &Path) -> Result<Arc<Vec<TreeEntry>>, Reason> {
    let failed = |why: Reason| why.behind(format_args!("read {}", path.display()));
    // An open of a pipe would block, and a pipe cannot seek.
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(failed("it is not a regular file: a list is read from a tarball".into()));
        }
        Ok(_) => {}
        Err(e) => return Err(failed(e.into())),
    }
    let file = File::open(path).map_err(|e| failed(e.into()))?;
    let entries = tar::list(&mut BufReader::new(file)).map_err(|e| failed(e.into()))?;
    if entries.is_empty() {
        return Err(failed("no file and no directory is in it".into()));
    }
    Ok(Arc::new(entries))
}

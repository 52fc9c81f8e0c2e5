//! The place of an overlay: memory or a file.

use crate::failure::Reason;
use trueline_serve::layer::overlay::OverlayStorage;

/// Parses `mem` or a file; a file of that name is `./mem`.
pub(super) fn parse(text: &str) -> Result<OverlayStorage, Reason> {
    match text {
        "" => Err(Reason("write FILE or mem".into())),
        "mem" => Ok(OverlayStorage::Memory),
        path => Ok(OverlayStorage::File(path.into())),
    }
}

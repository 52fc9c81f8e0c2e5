//! The place of an overlay: memory or a file.

use crate::failure::Reason;
use trueline_serve::layer::overlay::Place;

/// Parses `mem` or a file; a file of that name is `./mem`.
pub(super) fn parse(text: &str) -> Result<Place, Reason> {
    match text {
        "" => Err(Reason("write FILE or mem".into())),
        "mem" => Ok(Place::Memory),
        path => Ok(Place::File(path.into())),
    }
}

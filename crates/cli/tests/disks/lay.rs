//! A golden disk as files again.

use crate::recipe::Recipe;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use trueline_geom::base::store::{Sparse, Store};

/// Lays the dumps out as sparse files in `directory`; their names.
pub(crate) fn lay(recipe: &Recipe, directory: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for (name, dump) in &recipe.dumps {
        let disk = Sparse::from_hexdump(dump).map_err(|e| e.to_string())?;
        let file = File::create(directory.join(name)).map_err(|e| e.to_string())?;
        file.set_len(disk.length()).map_err(|e| e.to_string())?;
        for (offset, bytes) in disk.runs() {
            file.write_all_at(bytes, offset).map_err(|e| e.to_string())?;
        }
        names.push(name.clone());
    }
    Ok(names)
}

//! The disk in an image file, as it is served for writing.

use crate::words;
use std::sync::Arc;
use trueline_geom::class::qcow2::writing::NotWritable;
use trueline_geom::graph::image_store::ImageStore;
use trueline_geom::graph::{Disk, Graph, Id};
use trueline_geom::probe::Limits;
use trueline_geom::probe::unlock::Unlock;

/// The graph and provider to serve instead of `id` of `graph`, and a note on that. If `id` lies in
/// a container that can be written, the disk in it is a disk of its own, on which everything is as
/// it was. `busy`: another program may use the file.
pub(super) fn for_writing(
    graph: Graph,
    id: Id,
    keys: Option<Arc<dyn Unlock>>,
    busy: bool,
) -> (Graph, Id, Option<String>) {
    let Some(contents) = graph.contents_beneath(id) else { return (graph, id, None) };
    let file = graph.providers[contents].parents.first();
    let name = file.map_or(String::new(), |&file| graph.providers[file].name.clone());
    let shown = words::name(&graph.providers[contents].name);
    let opened = if busy {
        Err(NotWritable::Reason("with --allow-busy another program may change its tables"))
    } else {
        ImageStore::open(&graph, contents)
    };
    let store = match opened {
        Ok(store) => store,
        Err(why) => {
            let note = format!("note: {shown} is served read-only: {why}");
            return (graph, id, Some(note));
        }
    };
    let unchecked = if store.is_checked() {
        ""
    } else {
        "; its tables are large, and its refcounts were not counted anew"
    };
    let topology = graph.providers[contents].topology.clone();
    let written = Graph::taste_with(
        vec![Disk::new(name, Box::new(store), topology)],
        Limits::default(),
        keys,
    );
    let same = if id == contents { Some(0) } else { written.find(&graph.providers[id].name) };
    match same {
        Some(same) => {
            let note = format!(
                "note: {shown} is written in its file, at the end of which clusters are added{unchecked}"
            );
            (written, same, Some(note))
        }
        None => (graph, id, None),
    }
}

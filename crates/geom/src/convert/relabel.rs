//! Members of sets whose metadata are in their last sector: that is another one then.
//!
//! # On disk
//! The metadata of GEOM's classes have 512 bytes at the start of the last sector. For larger
//! sectors they lie 3584 bytes further from the end, where bytes of the set may be: the new last
//! sector has to be zero but for them, and what is in a set that gets shorter has to end before.

use super::{Planner, is_chain};
use crate::base::resize::Write;
use crate::base::store::Store;
use crate::base::topology::is_whole;
use crate::class::metadata::{Relabel, magic};
use crate::graph::Id;
use crate::graph::provider_store::Through;
use crate::registry;
use crate::table::Refusal;

/// Bytes of metadata, in sectors of any size.
const METADATA: usize = 512;

impl Planner<'_> {
    /// The writes of the metadata of the member `id`, which will have `after` bytes, in its own
    /// addresses.
    pub(super) fn relabel(&self, id: Id, class: &str, after: u64) -> Result<Vec<Write>, Refusal> {
        let anew = "make the set anew on the other sectors";
        let last = format!("the metadata of its {class} are in its last sector");
        let Some(relabels) = registry::relabels_of(class) else {
            return Err(Refusal::new(last, anew));
        };
        let p = &self.graph.providers[id];
        if self.aim.universal {
            return Err(Refusal::new(format!("{last}, which cannot be one for both"), anew));
        }
        if !self.is_plain(id) {
            return Err(Refusal::new(format!("{last}, and it lies on a set itself"), anew));
        }
        let (from, to, before) = (self.aim.from, self.aim.to, p.topology.length);
        let on = Relabel { from, to, before, after };
        let places = before.checked_sub(from).zip(after.checked_sub(to));
        let Some((old, new)) = places.filter(|_| is_whole(after, to)) else {
            let found = format!("{last}, and its {after} bytes are no multiple of that");
            return Err(Refusal::new(found, anew));
        };
        if from == to {
            return Ok(Vec::new());
        }
        let through = Through::new(self.graph, id);
        let mut metadata = [0; METADATA];
        through
            .read_at(&mut metadata, old)
            .map_err(|errno| Refusal::new(format!("it cannot be read: {errno}"), ""))?;
        let relabelled = relabels.relabel(&metadata, on)?;
        let [had, has] = relabelled.data;
        if had != has {
            self.require_spare(id, had.saturating_sub(has))?;
        }
        let is_free = |from: u64, to: u64| from >= to || self.is_zero(id, from..to);
        let tail = old.saturating_add(METADATA as u64);
        // What it gets behind its old end is no part of it yet.
        let end = after.min(before);
        if !is_free(has, had) || !is_free(new, old) || !is_free(tail.max(new), end) {
            let new = if has < had { new.min(has) } else { new };
            let found = format!("there are bytes from byte {new} on, where its metadata would be");
            return Err(Refusal::new(found, anew));
        }
        let mut writes = vec![Write::new(new, relabelled.metadata, "metadata of its set")];
        if old != new {
            writes.push(Write::new(old, vec![0; METADATA], "metadata of its set"));
        }
        Ok(writes)
    }

    /// Refuses metadata of GEOM in the last sector that no class here knows: of `geli`, `glabel`
    /// and others, under a table too. Where a partition has that sector, they are of that.
    pub(super) fn require_no_label(&self, id: Id) -> Result<(), Refusal> {
        let p = &self.graph.providers[id];
        let at = p.topology.length.checked_sub(self.aim.from);
        let is_inside = p.slices().is_some_and(|slices| {
            slices.entries.iter().any(|slice| slice.partition.end() >= p.topology.length)
        });
        let is_asked = p.member.is_none() && !is_chain(self.graph, id) && !is_inside;
        let Some(at) = at.filter(|_| is_asked && self.aim.from != self.aim.to) else {
            return Ok(());
        };
        let mut last = [0; METADATA];
        let read = Through::new(self.graph, id).read_at(&mut last, at);
        match read.ok().and_then(|()| magic(&last)) {
            None => Ok(()),
            Some(magic) => {
                let found = format!("the metadata of {magic} are in its last sector");
                Err(Refusal::new(found, "make it anew on the other sectors"))
            }
        }
    }

    /// Refuses a set on the member `id` that would lose so many bytes at its end, or get some,
    /// unless what is in it is known and ends before.
    fn require_spare(&self, id: Id, lost: u64) -> Result<(), Refusal> {
        let set = self.graph.children(id).find(|&child| self.graph.providers[child].is_set);
        let Some(set) = set else {
            let found = "its set would have another length, and its other members are elsewhere";
            return Err(Refusal::new(found, "make the set anew on the other sectors"));
        };
        let p = &self.graph.providers[set];
        let used = p.in_use().filter_map(|sign| sign.size).max();
        let length = p.topology.length.saturating_sub(lost);
        let is_spare = p.table.is_none()
            && p.member.is_none()
            && used.is_some_and(|used| used <= length)
            && self.keeps_to_its_size(set);
        if is_spare {
            return Ok(());
        }
        let found = format!(
            "its set would have {length} bytes, and what is in it counts from its end, or is \
             longer"
        );
        Err(Refusal::new(found, "make it shorter first, or the set anew"))
    }
}

//! The content of a provider in brief: formats, a table, membership of a set, a type.

use super::{Graph, Id};
use crate::mapping::slices::PartitionType;
use crate::table::types;

/// Facts that tell a reader what a provider holds. Several may be true at once; the first that is
/// known says most.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recognised {
    /// Formats in use, each by its name.
    pub signs: Vec<String>,
    /// The scheme of the table on it.
    pub table: Option<&'static str>,
    /// The set that it is a member of.
    pub set: Option<String>,
    /// Its type in the table that it is an entry of, by name.
    pub kind: Option<String>,
    /// The class that offers it.
    pub class: &'static str,
    /// Level of a set that says one.
    pub level: Option<String>,
    /// True of a set with members.
    pub is_set: bool,
    /// True if it is the disk that a container shows.
    pub is_contents: bool,
    /// True of a range of one other provider.
    pub is_part: bool,
}

impl Graph {
    /// The content of provider `id`.
    pub fn recognised(&self, id: Id) -> Recognised {
        let p = &self.providers[id];
        let set = self.children(id).find(|&above| self.providers[above].is_set);
        Recognised {
            signs: p.in_use().map(|sign| sign.kind.to_string()).collect(),
            table: p.table.as_ref().zip(p.slices()).map(|((scheme, _), _)| *scheme),
            set: set.map(|set| self.providers[set].name.clone()),
            // An MBR has no entry of type 0.
            kind: p.kind.filter(|&kind| kind != PartitionType::Mbr(0)).map(types::name),
            class: p.class,
            level: p.arrangement.as_ref().map(|set| set.level.clone()),
            is_set: p.is_set && !p.is_contents && !p.parents.is_empty(),
            is_part: !p.is_set && p.parents.len() == 1,
            is_contents: p.is_contents,
        }
    }
}

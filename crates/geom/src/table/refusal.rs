//! Refusal of an edit: the value that is wrong, and advice.

use std::fmt;

/// Refusal of an edit. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Reason in words: the value that is wrong.
    pub found: String,
    /// Advice on the next attempt.
    pub advice: Advice,
}

/// Advice with a refusal. A command line words it with its options; as text here it names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// A sentence about the value itself, or about another program; may be empty.
    Words(String),
    /// Leaving a property out, which is then chosen, or which the scheme does not have.
    LeaveOut(Property),
    /// Deleting what has the index, or leaving the index to be chosen.
    DeleteOrChooseIndex,
    /// Naming the partition by its index.
    NameIndex,
    /// Recovering the damaged table before it is edited.
    Recover,
    /// Putting partitions on the grain first.
    Align,
    /// Adding an extended partition to an MBR first.
    AddExtended,
    /// Naming a type otherwise: those with a name like the one that was given.
    Type(Vec<&'static str>),
    /// Showing the disk with the sectors of so many bytes that a script counts, or changing the
    /// script.
    ShowSectors(u64),
    /// Insisting on a layout in the place of another table.
    ReplaceTable,
    /// Insisting on a layout over other contents.
    ReplaceContents,
    /// Adding the partitions that are there to a layout, or deleting them.
    AddOrDeleteOthers,
}

/// Property of an edit that may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Property {
    /// Index of a partition.
    Index,
    /// Name of a partition.
    Label,
    /// Number of entries of a chain, which has no size of its own.
    Entries,
    /// Name of a provider that a member is bound to.
    ProviderName,
}

impl Refusal {
    /// A refusal for the reason `found`, with `advice`.
    pub fn new(found: impl Into<String>, advice: impl Into<Advice>) -> Refusal {
        Refusal { found: found.into(), advice: advice.into() }
    }

    /// The refusal with its advice worded as `advice`, which may be empty.
    pub fn worded(&self, advice: &str) -> String {
        let found = &self.found;
        if advice.is_empty() { found.clone() } else { format!("{found}: {advice}") }
    }
}

impl From<&str> for Advice {
    fn from(text: &str) -> Advice {
        Advice::Words(text.into())
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Advice {
        Advice::Words(text)
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Advice::Words(text) => text,
            Advice::LeaveOut(Property::Index) => "leave out the index",
            Advice::LeaveOut(Property::Label) => "leave out the label",
            Advice::LeaveOut(Property::Entries) => "leave out the number of entries",
            Advice::LeaveOut(Property::ProviderName) => "leave out the provider's name",
            Advice::DeleteOrChooseIndex => "delete it first, or leave out the index",
            Advice::NameIndex => "name one by its index",
            Advice::Recover => "recover it first",
            Advice::Align => "put it on the grain first",
            Advice::AddExtended => "add one to an MBR first",
            Advice::Type(near) if near.is_empty() => "name another, or a number or GUID after a !",
            Advice::Type(near) => return write!(f, "there are {}", near.join(", ")),
            Advice::ShowSectors(size) => {
                return write!(f, "show the disk with sectors of {size} bytes");
            }
            Advice::ReplaceTable | Advice::ReplaceContents => "insist on replacing it",
            Advice::AddOrDeleteOthers => "add them to it, or delete them",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.worded(&self.advice.to_string()))
    }
}

impl std::error::Error for Refusal {}

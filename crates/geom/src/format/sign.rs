//! Signs of formats: the kind that was recognised, and the numbers that decide alignment inside it.

use super::{FormatKind, OTHER};
use crate::probe::Probe;
use std::ops::Range;

/// Sign of a format: its kind, and the numbers that decide alignment inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sign {
    /// Its kind, and with it the format.
    pub kind: FormatKind,
    /// The byte of the provider at which the magic stands.
    pub magic: u64,
    /// Bytes that it takes at the end, where its magic counts from there: in a slice that has all
    /// of them it is the slice's.
    pub tail: Option<Range<u64>>,
    /// Knowledge of the inside: the place of its blocks, or the reason for which that is unknown.
    pub inside: Inside,
    /// Its version, as its own tools print it.
    pub version: Option<String>,
    /// Label, as its own tools print it; `None` without one.
    pub label: Option<String>,
    /// Its UUID or serial number, as blkid prints it.
    pub uuid: Option<String>,
    /// Bytes that it claims to cover, from the provider's byte 0; `None` if it records no size.
    pub size: Option<u64>,
    /// The sector it was written for, in bytes, where it records one.
    pub sector: Option<u64>,
    /// The unit of its own I/O in bytes: block, cluster, page.
    pub block: Option<u64>,
    /// The smallest piece it writes by itself, if smaller than the block: a fragment, a log sector,
    /// a journal block.
    pub piece: Option<Piece>,
    /// The pieces in which it hands out space, in bytes, where it writes smaller ones (ext4
    /// bigalloc).
    pub cluster: Option<u64>,
    /// The pieces in which it hands out space to volumes, in bytes: extents of LVM.
    pub extent: Option<u64>,
    /// Where its data begin, if not at byte 0 in whole blocks.
    pub data: Option<Data>,
    /// The chunk of a striped set it was laid out for, in bytes.
    pub chunk: Option<u64>,
    /// The full stripe it was laid out for, in bytes.
    pub stripe: Option<u64>,
    /// Other files that have part of its data, in order: a backing file.
    pub references: Vec<Reference>,
    /// Identity by which other files know it as their parent, where they know it by more than a
    /// name.
    pub identity: Option<String>,
    /// Further facts for people, in its own tools' words: ("level", "raid5").
    pub details: Vec<(&'static str, String)>,
}

impl Sign {
    /// A format recognised by the magic at that byte.
    pub fn new(kind: FormatKind, magic: u64) -> Sign {
        Sign {
            kind,
            magic,
            tail: None,
            inside: Inside::default(),
            version: None,
            label: None,
            uuid: None,
            size: None,
            sector: None,
            block: None,
            piece: None,
            cluster: None,
            extent: None,
            data: None,
            chunk: None,
            stripe: None,
            references: Vec::new(),
            identity: None,
            details: Vec::new(),
        }
    }

    /// A format that is known by a name alone, which no kind here has.
    pub(crate) fn other(block: Option<u64>) -> Sign {
        Sign {
            inside: Inside::Unknown("a format that is known by name only"),
            block,
            ..Sign::new(OTHER, 0)
        }
    }

    /// True if its data are a provider of their own, which is judged instead.
    pub fn shows_data(&self) -> bool {
        self.data.is_some() || self.inside == Inside::Container
    }

    /// Every size it writes, its block first.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> {
        self.block.map(|size| Piece { size, name: "block" }).into_iter().chain(self.piece)
    }

    /// Sets the data area that the disk records. A place that is no number (`None`), past the end,
    /// or around the very signature that names it is not followed: nothing is then known of the
    /// inside.
    pub(super) fn data_at(
        &mut self,
        probe: &Probe<'_>,
        offset: Option<u64>,
        length: Option<u64>,
        plain: bool,
    ) {
        match offset.filter(|&offset| offset < probe.length()) {
            None => {
                self.inside =
                    Inside::Unknown("its data would begin past the end of what it stands on")
            }
            Some(offset)
                if offset <= self.magic
                    && length.is_none_or(|length| self.magic - offset < length) =>
            {
                self.inside = Inside::Unknown("its data would lie over its own signature");
            }
            Some(offset) => self.data = Some(Data { offset, length, plain }),
        }
    }
}

/// A piece of one size that a format writes by itself, at multiples of that size from where its
/// blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Size of the piece in bytes.
    pub size: u64,
    /// Its name: "block", "fragment", "log sector".
    pub name: &'static str,
}

impl Piece {
    /// True if files are written in it, and not only what a format keeps about them now and then.
    pub fn is_data(&self) -> bool {
        matches!(self.name, "block" | "fragment")
    }
}

/// Another file that a container names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Its part: "backing file".
    pub role: &'static str,
    /// Its name as the container has it. Nothing is known of where that leads.
    pub name: String,
    /// Its format as the container has it: `raw`, `qcow2`.
    pub format: Option<String>,
    /// The [`Sign::identity`] that it must have.
    pub identity: Option<String>,
}

impl Reference {
    /// True if a file with this identity is the one that is meant. Of an identity in two parts the
    /// first alone may be known.
    pub fn means(&self, identity: &str) -> bool {
        let first = identity.split_once('/').map_or(identity, |(first, _)| first);
        self.identity.as_deref().is_some_and(|wanted| wanted == identity || wanted == first)
    }
}

/// An inner data area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its first byte, from the provider's byte 0.
    pub offset: u64,
    /// Length in bytes; `None` reaches to the provider's end.
    pub length: Option<u64>,
    /// True if the area has the contents as they are (RAID1, a bcache backing device), so that it
    /// can be tasted in turn.
    pub plain: bool,
}

/// Knowledge of a format's inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    /// Its blocks lie at multiples of [`Sign::block`] from byte 0, or from [`Sign::data`].
    #[default]
    Understood,
    /// Format with I/O at unknown places, and the reason in a few words. Never called aligned.
    Unknown(&'static str),
    /// Container whose contents are a provider of their own, and judged there.
    Container,
    /// Interrupted move of [`crate::relocate`]: only its journal knows which part is where.
    Moving,
    /// Format that is never written in place (ISO 9660, squashfs): reads do not cost.
    ReadOnly,
}

impl Inside {
    /// An image file of a disk: where its tables and data lie in the file is the container's
    /// business.
    pub const CONTAINER: Inside = Inside::Unknown(
        "a container: convert it with qemu-img convert -O raw, or serve it with qemu-nbd, and check that",
    );

    /// By its name alone, a format whose data begin behind something else.
    pub(super) const FURTHER_IN: Inside =
        Inside::Unknown("where its data begin is not known without reading it");

    /// By its name alone, a format that does I/O from byte 0, in blocks of so many bytes as far as
    /// that is known.
    pub(super) fn from_zero(block: Option<u64>) -> Inside {
        match block {
            Some(_) => Inside::Understood,
            None => Inside::Unknown(
                "its start is judged; the size of its blocks is not known without reading it",
            ),
        }
    }
}

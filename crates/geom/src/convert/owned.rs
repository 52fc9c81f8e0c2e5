//! Journals of every kind, told apart by their heads: which move or conversion one is of.
//!
//! # On disk
//! A journal begins with seven bytes of its kind and a version; the identity of the move or the
//! conversion is at byte 84 (`TLMOVE`), 68 (`TLDISK`) or 20 (`TLCONV`). A partition's mark has the
//! same identity; those of the moves of a whole disk are made of it, with other first four bytes.
//!
//! # Limits
//! [`GLANCE`] bytes of a file tell whether it can be of a mark; only then is its head read, which
//! has at most [`LONGEST`](crate::relocate::LONGEST) bytes.

use super::rewrite::{self, Rewrite};
use crate::base::store::Store;
use crate::relocate::sequence::{self, Sequence};
use crate::relocate::{self, Journal, Move, Unreadable};

/// Bytes of a file that tell the kind and the identity of a journal.
pub const GLANCE: usize = 100;

/// First bytes of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Kind of the journal.
    pub kind: Kind,
    id: [u8; 16],
}

/// Kind of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Journal of the move of one partition.
    Partition,
    /// Journal of the moves of all partitions of a disk.
    Disk,
    /// Journal of a conversion to other sectors.
    Sectors,
}

impl Kind {
    /// The command of trueline that goes on with such a journal.
    pub fn command(self) -> &'static str {
        match self {
            Kind::Partition | Kind::Disk => "move",
            Kind::Sectors => "convert",
        }
    }
}

/// Contents of the head of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owned {
    /// Move of one partition.
    Partition(Box<Move>),
    /// Moves of all partitions of a disk.
    Disk(Box<Sequence>),
    /// Conversion to other sectors.
    Sectors(Box<Rewrite>),
}

impl Head {
    /// The head that `bytes` begin with, of any version; `None` if they are of no journal.
    pub fn read(bytes: &[u8]) -> Option<Head> {
        let (magic, rest) = bytes.split_first_chunk::<7>()?;
        let (kind, at) = match magic {
            relocate::JOURNAL => (Kind::Partition, 84),
            sequence::MAGIC => (Kind::Disk, 68),
            rewrite::MAGIC => (Kind::Sectors, 20),
            _ => return None,
        };
        // Version 0 was never written.
        rest.first().filter(|&&version| version > 0)?;
        let id = *bytes.get(at..)?.first_chunk()?;
        Some(Head { kind, id })
    }

    /// False if no journal with this head is of the mark `id`.
    pub fn may_be_of(&self, id: &[u8; 16]) -> bool {
        match self.kind {
            Kind::Partition | Kind::Sectors => self.id == *id,
            Kind::Disk => {
                let number = |id: &[u8; 16]| id.first_chunk().map(|n| u32::from_le_bytes(*n));
                let apart = number(&self.id).zip(number(id)).map(|(own, its)| own ^ its);
                self.id[4..] == id[4..]
                    && apart.is_some_and(|n| u64::from(n) < 2 * sequence::STAGES as u64)
            }
        }
    }
}

impl Owned {
    /// The head of the journal in `store`, read whole and checked, and the words by which its user
    /// knows the disk.
    pub fn open(store: &dyn Store) -> Result<(Owned, String), Unreadable> {
        match Journal::open(store) {
            Err(Unreadable::Other) => {}
            found => {
                return found.map(|(_, plan, words)| (Owned::Partition(Box::new(plan)), words));
            }
        }
        match Sequence::open(store) {
            Err(Unreadable::Other) => {}
            found => return found.map(|(plan, words, _)| (Owned::Disk(Box::new(plan)), words)),
        }
        Rewrite::open(store).map(|plan| {
            let words = plan.words.clone();
            (Owned::Sectors(Box::new(plan)), words)
        })
    }

    /// True if it is the journal of the mark `id`.
    pub fn is_of(&self, id: &[u8; 16]) -> bool {
        match self {
            Owned::Partition(plan) => plan.id == *id,
            Owned::Disk(plan) => plan.has(id),
            Owned::Sectors(plan) => plan.id == *id,
        }
    }

    /// Kind of the journal.
    pub fn kind(&self) -> Kind {
        match self {
            Owned::Partition(_) => Kind::Partition,
            Owned::Disk(_) => Kind::Disk,
            Owned::Sectors(_) => Kind::Sectors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(magic: &[u8; 7], at: usize, id: [u8; 16]) -> Vec<u8> {
        let mut bytes = vec![0; GLANCE];
        bytes[..7].copy_from_slice(magic);
        bytes[7] = 9;
        bytes[at..at + 16].copy_from_slice(&id);
        bytes
    }

    #[test]
    fn heads_tell_whose_they_are() {
        let id = [7; 16];
        for (magic, at, kind) in [
            (relocate::JOURNAL, 84, Kind::Partition),
            (sequence::MAGIC, 68, Kind::Disk),
            (rewrite::MAGIC, 20, Kind::Sectors),
        ] {
            let bytes = head(magic, at, id);
            let found = Head::read(&bytes).unwrap();
            assert!(found.kind == kind && found.may_be_of(&id));
            let mut other = id;
            other[0] ^= 5;
            assert_eq!(found.may_be_of(&other), kind == Kind::Disk);
            other[1] ^= 8;
            assert!(!found.may_be_of(&other));
            assert_eq!(Head::read(&bytes[..at + 15]), None);
        }
        assert_eq!(Head::read(&head(b"TLOTHER", 20, id)), None);
        assert_eq!(Head::read(&[]), None);
    }
}

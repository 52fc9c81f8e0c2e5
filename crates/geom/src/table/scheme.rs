//! Schemes: the classes whose tables can be edited, and their answers to an editor.
//!
//! A scheme knows its own bytes: it reads a table into a [`Table`], checks the entries of one, and
//! renders the difference of two tables as ordered writes. Everything that is the same for all
//! schemes is in [`crate::table`].

use crate::base::ondisk::Guid;
use crate::base::patch::Patch;
use crate::base::resize::{Aim, Tables, Write};
use crate::base::topology::{Grain, Topology, is_whole};
use crate::mapping::slices::{Dialect, PartitionType, place};
use crate::probe::Probe;
use crate::table::types::{self, ALIASES};
use crate::table::{Advice, Entry, Refusal, Rules, Table};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use crate::table::geometry::Geometry;

/// Class whose tables can be edited.
pub trait Scheme: Sync {
    /// Name as gpart(8) writes it: `GPT`.
    fn name(&self) -> &'static str;

    /// False for a table that is shown and never written.
    fn is_editable(&self) -> bool {
        true
    }

    /// The table on the provider, damaged or not; `None` if there is none of this scheme.
    /// [`Table::raw`] holds every byte that an edit may write again.
    fn read(&self, probe: &Probe<'_>) -> Option<Table>;

    /// An empty table for a provider that has none. [`Table::raw`] holds the bytes that are on it
    /// now.
    fn create(&self, probe: &Probe<'_>, site: &TableSite<'_>, new: &New) -> Result<Table, Refusal>;

    /// The suffix of a partition's name after that of its provider: `p1`, `s5`, `a`.
    fn suffix(&self, entry: &Entry) -> String;

    /// The type called `name`: an alias of gpart(8), a number `!165`, a GUID `!516e7cb4-…`, or a
    /// name of sfdisk's.
    fn kind(&self, name: &str) -> Option<PartitionType>;

    /// [`Scheme::kind`] in `table`, where the number of a type depends on the table's flavour.
    fn kind_in(&self, table: &Table, name: &str) -> Option<PartitionType> {
        let _ = table;
        self.kind(name)
    }

    /// True if every partition has a GUID.
    fn has_guids(&self) -> bool {
        false
    }

    /// True if the table itself records the range in which partitions may lie.
    fn keeps_usable(&self) -> bool {
        false
    }

    /// True if it leaves its boot sector to others: then the remains of another table are not its
    /// to remove.
    fn is_guest(&self) -> bool {
        false
    }

    /// Attributes that an entry or the table can have.
    fn attributes(&self) -> &'static [Attribute] {
        &[]
    }

    /// The bits that setting `attribute` sets: its own, and those it needs.
    fn sets(&self, attribute: &Attribute) -> u64 {
        attribute.bit
    }

    /// Checks if `table` can hold `entry` as it is now. A refusal names the size that does not fit
    /// a field, the label that is too long or not supported, or the type of another scheme.
    fn accept(&self, table: &Table, entry: &Entry) -> Result<(), Refusal>;

    /// The ordered writes that turn the one into the other. Pure; bytes that neither table
    /// describes stay as in `before.raw`. At every prefix, and with the last write cut at any
    /// sector, tasting finds one table or the other.
    ///
    /// `before` comes from [`Scheme::read`] or [`Scheme::create`]: a table that was created has
    /// nothing on the disk yet.
    fn render(&self, before: &Table, after: &Table) -> Vec<Patch>;

    /// The writes by which a table whose numbers count from elsewhere is right where its provider
    /// begins at byte `origin` in those numbers, in addresses of the provider; `None` if it cannot
    /// be.
    fn follow(&self, table: &Table, origin: u64) -> Option<Vec<Patch>> {
        let _ = (table, origin);
        None
    }

    /// The partitions that it names and that are not all within its provider: their numbers, and
    /// their bytes counted from where its numbers do.
    fn outside(&self, table: &Table) -> Vec<(u32, Range<u64>)> {
        let _ = table;
        Vec::new()
    }

    /// The writes after which it names the partitions with those numbers from other first bytes on,
    /// counted as [`Scheme::outside`] counts them; `None` for one takes its entry away. `None` for
    /// all if a number would not fit its field.
    fn rename(&self, table: &Table, starts: &[(u32, Option<u64>)]) -> Option<Vec<Patch>> {
        let _ = (table, starts);
        None
    }

    /// Bytes that it needs behind the last partition of a disk, in sectors of another size.
    fn tail(&self, table: &Table, aim: &Aim) -> u64 {
        let _ = (table, aim);
        0
    }

    /// The writes after which the table says the same in sectors of another size. A refusal names
    /// what does not fit its numbers.
    fn convert(&self, table: &Table, tables: &Tables<'_>) -> Result<Vec<Write>, Refusal> {
        let _ = (table, tables);
        let found = format!("tables of {} are not converted", self.name());
        Err(Refusal::new(found, "make one anew on a disk of the other sectors"))
    }

    /// The writes after which no reader finds the table any more.
    fn erase(&self, table: &Table) -> Vec<Patch>;

    /// Gives the entries the numbers they will be read with, and updates the table's own ranges.
    /// Called after every change of the entries or their places; schemes whose entries keep their
    /// numbers have nothing to do.
    fn settle(&self, table: &mut Table) {
        let _ = table;
    }

    /// Bytes at the start of the provider for boot code and the table itself, to which no partition
    /// is moved although it may lie there.
    fn boot_area(&self) -> u64 {
        0
    }

    /// The range in which a partition may lie if that very place is asked for: larger than
    /// `table.usable`, where that follows a convention.
    fn bounds(&self, table: &Table) -> Range<u64> {
        table.usable.clone()
    }

    /// The table as it should be written to be whole again and to fit the provider as it is now.
    fn recover(&self, table: &Table, site: &TableSite<'_>) -> Result<Table, Refusal> {
        let _ = site;
        Ok(table.clone())
    }
}

impl fmt::Display for dyn Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for dyn Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The type that the user means by `name` in `table`: an alias of the scheme, a raw number or GUID,
/// or a file system. A file system gets the type that holds it, and that alias besides.
pub fn typed_kind(
    table: &Table,
    name: &str,
) -> Result<(PartitionType, Option<&'static str>), Refusal> {
    let scheme = table.scheme;
    let held = || {
        types::holding(name)
            .iter()
            .find_map(|&holder| Some((scheme.kind_in(table, holder)?, Some(holder))))
    };
    scheme
        .kind_in(table, name)
        .map(|kind| (kind, None))
        .or_else(held)
        .ok_or_else(|| unknown(table, name))
}

/// The refusal of a type, with the names that look like it.
fn unknown(table: &Table, name: &str) -> Refusal {
    let scheme = table.scheme;
    let valid =
        || ALIASES.iter().map(|a| a.name).filter(|known| scheme.kind_in(table, known).is_some());
    let typed = name.to_lowercase();
    let family = typed.split_once('-').map_or(typed.as_str(), |(system, _)| system);
    let mut near: Vec<&'static str> =
        valid().filter(|known| !typed.is_empty() && known.contains(&typed)).collect();
    if near.is_empty() {
        near = valid().filter(|known| !family.is_empty() && known.starts_with(family)).collect();
    }
    Refusal::new(format!("type '{name}' is unknown to {}", scheme.name()), Advice::Type(near))
}

/// Provider that a table lies on.
#[derive(Clone, Copy, Debug)]
pub struct TableSite<'a> {
    /// Topology of the provider, in its own addresses.
    pub topology: &'a Topology,
    /// Byte of the medium at which the provider begins.
    pub base: u64,
    /// Type of the provider in the table above, if it is in one.
    pub kind: Option<PartitionType>,
}

impl TableSite<'_> {
    /// Grains for chosen places, the best first: multiples of `align` on the medium, or the best
    /// there are.
    pub(crate) fn grains(&self, align: Option<u64>) -> Vec<Grain> {
        match align {
            None => self.topology.places(self.base),
            Some(align) => self.topology.sectors_on(align, self.base).into_iter().collect(),
        }
    }
}

/// Properties of a new table, beyond its entries.
#[derive(Clone, Copy, Debug, Default)]
pub struct New {
    /// Number of entries it has room for; `None` for the usual one.
    pub entries: Option<u32>,
    /// Identity of the table; `None` to make it of `random`.
    pub id: Option<Id>,
    /// Random bytes for identities.
    pub random: [u8; 16],
    /// Flavour of a BSD label; `None` for that of the table above, else FreeBSD's.
    pub dialect: Option<Dialect>,
    /// Sectors a track and tracks a cylinder; `None` for those that gpart(8) derives from the size.
    pub geometry: Option<Geometry>,
    /// Length of the medium in bytes, which BSD labels record too; `None` if it ends with the
    /// provider.
    pub medium: Option<u64>,
    /// Rules by which the usable range is chosen.
    pub rules: Rules,
    /// First byte and byte after the last of the range for partitions, where a layout gives it.
    pub usable: Option<(u64, u64)>,
}

impl New {
    /// The range in which partitions may lie: the given one, if it is whole sectors within `outer`,
    /// or the usual one.
    pub(crate) fn usable(
        &self,
        usual: Range<u64>,
        outer: Range<u64>,
        sector: u64,
    ) -> Result<Range<u64>, Refusal> {
        let Some((start, end)) = self.usable else { return Ok(usual) };
        if start < outer.start
            || end > outer.end
            || start >= end
            || !is_whole(start, sector)
            || !is_whole(end, sector)
        {
            let found = format!(
                "a usable range from {} up to {}",
                place(start, sector),
                place(end, sector)
            );
            let advice = format!(
                "here it can be {} up to {}, in whole sectors",
                place(outer.start, sector),
                place(outer.end, sector)
            );
            return Err(Refusal::new(found, advice));
        }
        Ok(start..end)
    }
}

/// Identity of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    /// Disk GUID of a GPT.
    Guid(Guid),
    /// Disk signature of an MBR.
    Signature(u32),
    /// Disklabel UID of OpenBSD.
    Duid([u8; 8]),
}

impl FromStr for Id {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Id, InvalidId> {
        let hex = text.strip_prefix("0x").unwrap_or(text);
        let number = || {
            u64::from_str_radix(hex, 16).ok().filter(|_| hex.bytes().all(|b| b.is_ascii_hexdigit()))
        };
        let id = match hex.len() {
            36 => text.parse().ok().map(Id::Guid),
            8 => number().and_then(|n| n.try_into().ok()).map(Id::Signature),
            16 => number().map(|n| Id::Duid(n.to_be_bytes())),
            _ => None,
        };
        id.ok_or_else(|| InvalidId(text.into()))
    }
}

/// Text that is no identity of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidId(String);

impl fmt::Display for InvalidId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no identity: a GUID for GPT, eight hex digits for MBR, sixteen for OpenBSD",
            self.0
        )
    }
}

impl std::error::Error for InvalidId {}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Guid(guid) => write!(f, "{guid}"),
            Id::Signature(n) => write!(f, "{n:08x}"),
            Id::Duid(bytes) => bytes.iter().try_for_each(|b| write!(f, "{b:02x}")),
        }
    }
}

/// Attribute that can be set and unset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// Name as typed after `-a`.
    pub name: &'static str,
    /// Its bit, in [`Entry::attributes`] or [`Table::attributes`].
    pub bit: u64,
    /// True if it belongs to the table, not to an entry.
    pub of_table: bool,
    /// True if only one entry has it at a time.
    pub exclusive: bool,
}

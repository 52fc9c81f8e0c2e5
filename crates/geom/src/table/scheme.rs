//! The classes whose tables can be edited, and what each must answer for that.
//!
//! A scheme knows its own bytes: it reads a table into a [`Table`], says what may be in one, and renders the difference of two
//! tables as ordered writes. Everything that is the same for all schemes is in [`crate::table`].

use crate::base::ondisk::Guid;
use crate::base::patch::Patch;
use crate::base::topology::{Grain, Topology, is_whole};
use crate::mapping::slices::{Dialect, Kind, place};
use crate::probe::Probe;
use crate::registry::SCHEMES;
use crate::table::types::{self, ALIASES};
use crate::table::{Entry, Refusal, Rules, Table};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

pub use crate::table::geometry::Geometry;

/// A class that can be edited.
pub trait Scheme: Sync {
    /// As gpart(8) writes it: `GPT`.
    fn name(&self) -> &'static str;

    /// The table that is there, damaged or not; `None` if there is none of this scheme. [`Table::raw`] holds every byte that
    /// an edit may write again.
    fn read(&self, probe: &Probe<'_>) -> Option<Table>;

    /// An empty table for a provider that has none. [`Table::raw`] holds the bytes that are there now.
    fn create(&self, probe: &Probe<'_>, ground: &TableSite<'_>, new: &New) -> Result<Table, Refusal>;

    /// What follows the provider's name in that of a partition: `p1`, `s5`, `a`.
    fn suffix(&self, entry: &Entry) -> String;

    /// The type called `name`: an alias of gpart(8), a number `!165`, a GUID `!516e7cb4-…`, or how sfdisk writes it.
    fn kind(&self, name: &str) -> Option<Kind>;

    /// [`Scheme::kind`] in `table`, where the number of a type depends on the table's flavour.
    fn kind_in(&self, table: &Table, name: &str) -> Option<Kind> {
        let _ = table;
        self.kind(name)
    }

    /// Whether every partition has a GUID.
    fn has_guids(&self) -> bool {
        false
    }

    /// Whether the table itself says where partitions may lie.
    fn keeps_usable(&self) -> bool {
        false
    }

    /// Whether it leaves the boot sector that it stands in to others: what of another table is there is not its to remove.
    fn is_guest(&self) -> bool {
        false
    }

    /// What can be set and unset, on an entry or on the table.
    fn attributes(&self) -> &'static [Attribute] {
        &[]
    }

    /// The bits that setting `attribute` sets: its own, and what means nothing without.
    fn sets(&self, attribute: &Attribute) -> u64 {
        attribute.bit
    }

    /// Whether `table` can hold its entry numbered `index` as it is now: sizes that do not fit a field, labels too long or not
    /// supported at all, types of another scheme.
    fn accept(&self, table: &Table, entry: &Entry) -> Result<(), Refusal>;

    /// What turns the one into the other, as ordered writes. Pure; what neither table says anything about stays as it is in
    /// `before.raw`. At every prefix, and with the last write cut at any sector, tasting finds one table or the other.
    ///
    /// `before` is what [`Scheme::read`] or [`Scheme::create`] gave: a table that was created has nothing on the disk yet.
    fn render(&self, before: &Table, after: &Table) -> Vec<Patch>;

    /// What removes the table so that nobody finds it again.
    fn erase(&self, table: &Table) -> Vec<Patch>;

    /// Gives the entries the numbers they will be read with, and says what of the table's own bytes the edit has moved. Called
    /// after every change of which entries there are and where; schemes whose entries keep their numbers have nothing to do.
    fn settle(&self, table: &mut Table) {
        let _ = table;
    }

    /// Where a partition may lie if that very place is asked for: more than `table.usable`, where that keeps to a custom.
    fn bounds(&self, table: &Table) -> Range<u64> {
        table.usable.clone()
    }

    /// The table as it should be written to be whole again and to fit the provider as it is now.
    fn recover(&self, table: &Table, ground: &TableSite<'_>) -> Result<Table, Refusal> {
        let _ = ground;
        Ok(table.clone())
    }
}

/// The scheme called `name`, in any case.
///
/// Linux's tools call an MBR `dos`, parted `msdos`.
pub fn named(name: &str) -> Option<&'static dyn Scheme> {
    let is_dos = ["dos", "msdos"].iter().any(|other| other.eq_ignore_ascii_case(name));
    let name = if is_dos { "MBR" } else { name };
    SCHEMES.iter().copied().find(|s| s.name().eq_ignore_ascii_case(name))
}

/// The type that a person means by `name` in `table`: an alias of the scheme, a raw number or GUID, or a file system, which gets the type
/// that holds it, and that alias besides.
pub fn typed_kind(scheme: &dyn Scheme, table: &Table, name: &str) -> Result<(Kind, Option<&'static str>), Refusal> {
    let held = || types::holding(name).iter().find_map(|&holder| Some((scheme.kind_in(table, holder)?, Some(holder))));
    scheme.kind_in(table, name).map(|kind| (kind, None)).or_else(held).ok_or_else(|| unknown(scheme, table, name))
}

/// The refusal of a type, with the names that look like it.
fn unknown(scheme: &dyn Scheme, table: &Table, name: &str) -> Refusal {
    let valid = || ALIASES.iter().map(|a| a.name).filter(|known| scheme.kind_in(table, known).is_some());
    let typed = name.to_lowercase();
    let family = typed.split_once('-').map_or(typed.as_str(), |(system, _)| system);
    let mut near: Vec<&str> = valid().filter(|known| !typed.is_empty() && known.contains(&typed)).collect();
    if near.is_empty() {
        near = valid().filter(|known| !family.is_empty() && known.starts_with(family)).collect();
    }
    let some = if near.is_empty() { String::new() } else { format!("there are {}; ", near.join(", ")) };
    let advice = format!("{some}trueline part add --help lists the names; any other is a number or GUID after a !");
    Refusal::new(format!("type '{name}' is unknown to {}", scheme.name()), advice)
}

/// What a table lies on.
#[derive(Clone, Copy, Debug)]
pub struct TableSite<'a> {
    /// What the provider knows of the boundaries beneath it, in its own addresses.
    pub topology: &'a Topology,
    /// Its byte 0 on the medium.
    pub base: u64,
    /// What the table above says it is.
    pub kind: Option<Kind>,
}

impl TableSite<'_> {
    /// What chosen places are on, the best first: multiples of `align` on the medium, or the best there is.
    pub(crate) fn grains(&self, align: Option<u64>) -> Vec<Grain> {
        match align {
            None => self.topology.places(self.base),
            Some(align) => Grain::new(align, 0).map(|grain| grain.shift(self.base)).into_iter().collect(),
        }
    }
}

/// What a new table is to be, beyond empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct New {
    /// Entries it has room for; `None`: as many as usual.
    pub entries: Option<u32>,
    /// Its identity; `None`: made of `random`.
    pub id: Option<Id>,
    /// Randomness for what has an identity.
    pub random: [u8; 16],
    /// The flavour of a BSD label; `None`: what the table above says, else FreeBSD's.
    pub dialect: Option<Dialect>,
    /// Sectors a track and tracks a cylinder; `None`: what gpart(8) makes of the size.
    pub geometry: Option<Geometry>,
    /// Bytes of the medium, which BSD labels name too; `None`: it ends where the provider does.
    pub medium: Option<u64>,
    /// By whose rules the usable range is chosen.
    pub rules: Rules,
    /// First byte and byte after the last of where partitions may lie, where a layout says so.
    pub usable: Option<(u64, u64)>,
}

impl New {
    /// Where partitions may lie: what is said, in whole sectors of `outer`, or as usual.
    pub(crate) fn usable(&self, usual: Range<u64>, outer: Range<u64>, sector: u64) -> Result<Range<u64>, Refusal> {
        let Some((start, end)) = self.usable else { return Ok(usual) };
        if start < outer.start || end > outer.end || start >= end || !is_whole(start, sector) || !is_whole(end, sector) {
            let found = format!("a usable range from {} up to {}", place(start, sector), place(end, sector));
            let advice = format!("here it can be {} up to {}, in whole sectors", place(outer.start, sector), place(outer.end, sector));
            return Err(Refusal::new(found, advice));
        }
        Ok(start..end)
    }
}

/// What tells one table from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    /// GPT's disk GUID.
    Guid(Guid),
    /// MBR's disk signature.
    Signature(u32),
    /// OpenBSD's disklabel UID.
    Duid([u8; 8]),
}

impl FromStr for Id {
    type Err = String;

    fn from_str(text: &str) -> Result<Id, String> {
        let hex = text.strip_prefix("0x").unwrap_or(text);
        let number = || u64::from_str_radix(hex, 16).ok().filter(|_| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let id = match hex.len() {
            36 => text.parse().ok().map(Id::Guid),
            8 => number().and_then(|n| n.try_into().ok()).map(Id::Signature),
            16 => number().map(|n| Id::Duid(n.to_be_bytes())),
            _ => None,
        };
        id.ok_or_else(|| format!("'{text}' is no identity: a GUID for GPT, eight hex digits for MBR, sixteen for OpenBSD"))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Guid(guid) => write!(f, "{guid}"),
            Id::Signature(n) => write!(f, "{n:08x}"),
            Id::Duid(bytes) => bytes.iter().try_for_each(|b| write!(f, "{b:02x}")),
        }
    }
}

/// What can be set and unset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// As typed after `-a`.
    pub name: &'static str,
    /// Its bit, in [`Entry::attributes`] or [`Table::attributes`].
    pub bit: u64,
    /// Whether it is the table's, not an entry's.
    pub of_table: bool,
    /// Whether only one entry has it at a time.
    pub exclusive: bool,
}

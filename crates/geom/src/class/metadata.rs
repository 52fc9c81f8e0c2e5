//! Metadata of GEOM's sets: the last sector of every member, as `label` writes it and `dump` shows
//! it.
//!
//! Each class encodes its own ([`crate::class::stripe::label`], [`crate::class::mirror::label`],
//! [`crate::class::concat::label`]); the shared parts are here.
//!
//! # Limits
//! Names have 15 bytes at most, as GEOM cuts longer ones off in silence. Sectors of 512 bytes or
//! more.
//!
//! # Sources
//! FreeBSD `lib/geom/stripe/geom_stripe.c`, `lib/geom/mirror/geom_mirror.c`,
//! `lib/geom/concat/geom_concat.c`, `lib/geom/misc/subr.c`.

use super::Member;
use crate::base::ondisk;
use crate::base::topology::lcm;
use crate::table::{Advice, Property, Refusal};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Provider of which a set is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Length of the provider in bytes.
    pub length: u64,
    /// Logical sector in bytes.
    pub sector: u64,
    /// GEOM's name of the only provider that the label is valid on; `None` for any.
    pub hardcoded: Option<String>,
}

impl Component {
    /// Bytes before the metadata, which the set can use.
    pub fn share(&self) -> u64 {
        self.length.saturating_sub(self.sector)
    }
}

/// Fields of a label that every class has.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    /// Name of the set.
    pub name: &'a str,
    /// Random identity of this labelling, so that halves of two never make one set.
    pub id: u32,
    /// Members of the set, in order.
    pub components: &'a [Component],
}

/// Member with its label.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// Contents of its last sector.
    pub sector: Vec<u8>,
    /// Membership that its class reads from that sector.
    pub member: Member,
}

/// Member that is to have sectors of another size. All numbers are bytes.
#[derive(Clone, Copy, Debug)]
pub struct Relabel {
    /// Logical sector that it has now.
    pub from: u64,
    /// Logical sector that it will have.
    pub to: u64,
    /// Length that it has now.
    pub before: u64,
    /// Length that it will have.
    pub after: u64,
}

impl Relabel {
    /// Bytes before the metadata, now and then.
    pub(super) fn shares(&self) -> [u64; 2] {
        [self.before.saturating_sub(self.from), self.after.saturating_sub(self.to)]
    }
}

/// Metadata of a member for its new sectors.
#[derive(Clone, Debug)]
pub struct Relabelled {
    /// First bytes of its new last sector, 512 of them.
    pub metadata: Vec<u8>,
    /// Bytes of it that the set uses, before and after.
    pub data: [u64; 2],
}

/// Class whose members can have sectors of another size.
pub trait Relabels: Sync {
    /// The metadata of a member for its new sectors, made of its last sector. Refused where the
    /// bytes of the set would lie elsewhere.
    fn relabel(&self, last: &[u8], on: Relabel) -> Result<Relabelled, Refusal>;
}

/// Longest name in bytes; GEOM wants a zero after it.
const NAME: usize = 15;

impl Label<'_> {
    /// The sector of the set, as the least common multiple of its members'. Refused without `least`
    /// to `most` members, or with names that do not fit.
    pub(super) fn sector(&self, least: usize, most: usize) -> Result<u64, Refusal> {
        let count = self.components.len();
        if !(least..=most).contains(&count) {
            return Err(Refusal::new(
                format!("{count} members"),
                format!("name {least} to {most}"),
            ));
        }
        let bad = |name: &str| {
            name.is_empty() || name.contains(|c: char| c.is_control() || c.is_whitespace())
        };
        if bad(self.name) || self.name.contains('/') {
            return Err(Refusal::new(
                format!("'{}' is no name for a set", self.name),
                "use letters, digits and signs but for /",
            ));
        }
        for name in self.components.iter().filter_map(|c| c.hardcoded.as_deref()).chain([self.name])
        {
            if name.len() > NAME {
                let found = format!("the name '{name}' has {} bytes", name.len());
                return Err(Refusal::new(found, format!("GEOM's metadata has room for {NAME}")));
            }
            if bad(name) {
                return Err(Refusal::new(
                    format!("'{name}' is no provider's name"),
                    Advice::LeaveOut(Property::ProviderName),
                ));
            }
        }
        let sectors = self.components.iter().map(|c| Some(c.sector).filter(|&s| s >= 512));
        let sector = sectors.reduce(|a, b| lcm(a?, b?)).flatten();
        sector.ok_or_else(|| {
            Refusal::new(
                "sectors that cannot be joined",
                "use members of like sectors of 512 bytes or more",
            )
        })
    }

    /// Least number of bytes that any member has before its metadata.
    pub fn smallest(&self) -> u64 {
        self.components.iter().map(Component::share).min().unwrap_or(0)
    }
}

/// The text in a field of zeros. It is at most [`NAME`] bytes long.
pub(super) fn field(text: &str) -> [u8; 16] {
    let mut field = [0; 16];
    for (to, from) in field.iter_mut().zip(text.bytes().take(NAME)) {
        *to = from;
    }
    field
}

/// `metadata` at the front of a sector of zeros.
pub(super) fn sector_of(metadata: &(impl IntoBytes + Immutable), size: u64) -> Vec<u8> {
    let mut sector = metadata.as_bytes().to_vec();
    sector.resize(usize::try_from(size).unwrap_or(0).max(sector.len()), 0);
    sector
}

/// The label with the membership that its own class reads from it; a refusal if it reads none, for
/// numbers that no disk has.
pub(super) fn labelled(
    sector: Vec<u8>,
    member: Option<Member>,
    length: u64,
) -> Result<Labelled, Refusal> {
    let refusal = || Refusal::new(format!("a member of {length} bytes"), "use a larger one");
    member.map(|member| Labelled { sector, member }).ok_or_else(refusal)
}

/// One field of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name that FreeBSD prints.
    pub name: &'static str,
    /// Name for programs, in JSON.
    pub key: &'static str,
    /// Value of the field.
    pub value: Value,
}

/// Value of a field of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Number of any width.
    Number(u64),
    /// Text, empty where nothing is set.
    Text(String),
    /// Names of the bits that are set.
    Flags(Vec<&'static str>),
}

impl Value {
    /// The text in a fixed field, up to the first NUL.
    pub(super) fn text(field: &[u8]) -> Value {
        Value::Text(ondisk::text(field).unwrap_or_default())
    }

    /// The value as FreeBSD prints it.
    pub fn print(&self) -> String {
        match self {
            Value::Number(n) => n.to_string(),
            Value::Text(text) => text.clone(),
            Value::Flags(flags) if flags.is_empty() => "NONE".into(),
            Value::Flags(flags) => flags.join(" "),
        }
    }
}

/// A [`Field`] with a number.
pub(super) fn number(name: &'static str, key: &'static str, value: impl Into<u64>) -> Field {
    Field { name, key, value: Value::Number(value.into()) }
}

/// A [`Field`] with the text in a fixed field.
pub(super) fn text(name: &'static str, key: &'static str, field: &[u8]) -> Field {
    Field { name, key, value: Value::text(field) }
}

/// The metadata at the front of a last sector, if it is of the class with that magic.
pub(super) fn read<T: FromBytes>(sector: &[u8], magic: &[u8; 16]) -> Result<T, Refusal> {
    let wanted = || ondisk::text(magic).unwrap_or_default();
    let found = match self::magic(sector) {
        Some(found) if found == wanted() => {
            return T::read_from_prefix(sector).map(|(md, _)| md).map_err(|_| too_short());
        }
        Some(found) => format!("its last sector holds {found}"),
        None => "its last sector holds no metadata".into(),
    };
    Err(Refusal::new(format!("{found}, not {}", wanted()), "name a member of such a set"))
}

fn too_short() -> Refusal {
    Refusal::new("its last sector is too short for metadata", "")
}

/// The magic of the GEOM class whose metadata are in this last sector, such as `GEOM::ELI`; `None`
/// if there are none.
pub fn magic(sector: &[u8]) -> Option<String> {
    let field = sector.get(..16).filter(|field| field.starts_with(b"GEOM::"))?;
    ondisk::text(field)
}

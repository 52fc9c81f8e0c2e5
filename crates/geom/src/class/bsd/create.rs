//! Creation of a label: its fields by the caller, by the table above, and by its system.

use super::label::{self, BBSIZE, Blank, Head, MOST, Slot};
use super::{C, D, UNUSED, dialect_of};
use crate::base::topology::is_whole;
use crate::mapping::slices::{Dialect, PartitionType};
use crate::probe::Probe;
use crate::table::Refusal;
use crate::table::scheme::{Geometry, Id, New, TableSite};

/// Label that is to be made.
pub(super) struct NewLabel {
    pub(super) dialect: Dialect,
    pub(super) sector: u64,
    pub(super) length: u64,
    pub(super) origin: u64,
    /// Length of the disk in bytes.
    pub(super) medium: u64,
    pub(super) count: u16,
    pub(super) geometry: Geometry,
    pub(super) uid: Option<[u8; 8]>,
}

impl NewLabel {
    pub(super) fn new(
        probe: &Probe<'_>,
        site: &TableSite<'_>,
        new: &New,
    ) -> Result<NewLabel, Refusal> {
        let (sector, length) = (probe.sector(), probe.length());
        let dialect = chosen(site, new)?;
        if !(512..=u64::from(BBSIZE)).contains(&sector)
            || !is_whole(u64::from(BBSIZE), sector)
            || length < u64::from(BBSIZE)
        {
            let found = format!(
                "a BSD label needs {BBSIZE} bytes in sectors of 512 or more; here are {length} in sectors of {sector}"
            );
            return Err(Refusal::new(found, ""));
        }
        let origin = if dialect == Dialect::FreeBsd { 0 } else { site.base };
        if !is_whole(origin, sector) {
            return Err(Refusal::new(
                format!("byte {origin} of the disk is no whole sector of {sector} bytes"),
                "offsets count from there",
            ));
        }
        let geometry = new.geometry.unwrap_or_else(|| Geometry::derive(length, sector));
        if !(1..=255).contains(&geometry.sectors) || !(1..=255).contains(&geometry.heads) {
            let found =
                format!("{} sectors a track and {} tracks", geometry.sectors, geometry.heads);
            return Err(Refusal::new(found, "FreeBSD refuses a label beyond 1 to 255"));
        }
        let medium = new.medium.unwrap_or(0).max(site.base.saturating_add(length));
        let (count, uid) = (entries(dialect, new)?, identity(dialect, new)?);
        Ok(NewLabel { dialect, sector, length, origin, medium, count, geometry, uid })
    }

    /// Byte of the label: OpenBSD's does not move with the sector.
    pub(super) fn at(&self) -> u64 {
        if self.dialect == Dialect::OpenBsd { 512 } else { self.sector }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let sectors = |bytes: u64| bytes / self.sector;
        let (own, medium) = (sectors(self.length), sectors(self.medium));
        let start = sectors(self.origin);
        // FreeBSD's kernel cuts numbers that have no room; the field can hold no more.
        let wide = self.dialect == Dialect::OpenBsd;
        let cut = |n: u64| n.min(label::most(wide));
        let whole = |offset, size| Slot::Put { offset, size, fstype: UNUSED, from: None };
        let (c, d, total) = match self.dialect {
            Dialect::OpenBsd => (whole(0, cut(medium)), Slot::Clear, cut(medium)),
            Dialect::NetBsd => (whole(cut(start), cut(own)), whole(0, cut(medium)), cut(medium)),
            Dialect::FreeBsd | Dialect::DragonFly => (whole(0, cut(own)), Slot::Clear, cut(own)),
        };
        let mut slots: Vec<Slot> = (0..self.count).map(|_| Slot::Clear).collect();
        (slots[C], slots[D]) = (c, d);
        let head = Head {
            sector: None,
            tracks: Some((self.geometry.sectors, self.geometry.heads)),
            uid: self.uid,
            bounds: wide.then(|| (start, cut(start.saturating_add(own)))),
            total: Some(total),
        };
        let (rpm, interleave, sbsize) = match self.dialect {
            Dialect::OpenBsd => (0, 0, 65536),
            Dialect::NetBsd => (3600, 1, 8192),
            // Values that gpart(8) writes.
            Dialect::FreeBsd | Dialect::DragonFly => (3600, 0, 0),
        };
        let sector = u32::try_from(self.sector).unwrap_or(0);
        label::blank(
            &Blank { sector, count: self.count, version: u16::from(wide), rpm, interleave, sbsize },
            &head,
            &slots,
        )
    }
}

/// The flavour of a new label.
fn chosen(site: &TableSite<'_>, new: &New) -> Result<Dialect, Refusal> {
    let by_table = site.kind.as_ref().and_then(dialect_of);
    if matches!(site.kind, Some(PartitionType::Bsd(..))) {
        return Err(Refusal::new(
            "this is a partition of a BSD label, which holds no other",
            "label the slice it is in",
        ));
    }
    match (new.dialect, by_table) {
        (Some(Dialect::DragonFly), _) => {
            Err(Refusal::new("DragonFly's 64-bit label is another scheme", "use FreeBSD's"))
        }
        (Some(asked), Some(above)) if asked != above => {
            let found = format!(
                "the table above says that this is {}'s, so its label would not be read as {}'s",
                above.name(),
                asked.name()
            );
            Err(Refusal::new(found, "give the slice another type first"))
        }
        (asked, above) => Ok(asked.or(above).unwrap_or(Dialect::FreeBsd)),
    }
}

/// Number of entries of a new label: by default that of gpart(8), or of the other systems' kernels.
fn entries(dialect: Dialect, new: &New) -> Result<u16, Refusal> {
    let (least, usual, most) = match dialect {
        Dialect::FreeBsd | Dialect::DragonFly => (8, 8, 20),
        Dialect::OpenBsd => (8, 16, MOST),
        Dialect::NetBsd => (8, 16, 16),
    };
    let asked = new.entries.map_or(usual, |n| usize::try_from(n).unwrap_or(usize::MAX));
    match u16::try_from(asked) {
        Ok(count) if (least..=most).contains(&asked) => Ok(count),
        _ => Err(Refusal::new(
            format!("{asked} entries"),
            format!("a label of {}'s has {least} to {most}", dialect.name()),
        )),
    }
}

/// OpenBSD's identity of the disk; the others have none.
fn identity(dialect: Dialect, new: &New) -> Result<Option<[u8; 8]>, Refusal> {
    match (new.id, dialect) {
        (Some(Id::Duid(uid)), Dialect::OpenBsd) => Ok(Some(uid)),
        (None, Dialect::OpenBsd) => Ok(new.random.first_chunk().copied()),
        (None, _) => Ok(None),
        (Some(_), _) => {
            Err(Refusal::new("only OpenBSD's label has an identity, of 8 bytes", "leave it out"))
        }
    }
}

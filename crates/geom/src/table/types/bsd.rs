//! The `fstype` of BSD labels: disklabel(8)'s names and gpart(8)'s aliases, by dialect.
//!
//! Up to 13 the systems agree; above they do not: 18 is NTFS in FreeBSD and NetBSD and a ccd in
//! OpenBSD.
//!
//! # Sources
//! FreeBSD `sys/sys/disk/bsd.h`, `sys/geom/part/g_part_bsd.c`; OpenBSD and NetBSD
//! `sys/sys/disklabel.h` (`fstypenames`).

use super::ALIASES;
use crate::mapping::slices::Dialect;

/// Names of types 0 to 13, which all systems share.
const COMMON: [&str; 14] = [
    "unused",
    "swap",
    "Version6",
    "Version7",
    "SystemV",
    "4.1BSD",
    "Eighth-Edition",
    "4.2BSD",
    "MSDOS",
    "4.4LFS",
    "unknown",
    "HPFS",
    "ISO9660",
    "boot",
];

/// Names of FreeBSD and DragonFly above those; both leave 19 and 25 free.
const FREEBSD: &[(u8, &str)] = &[
    (14, "vinum"),
    (15, "RAID"),
    (16, "Filecore"),
    (17, "ext2fs"),
    (18, "NTFS"),
    (20, "ccd"),
    (21, "jfs2"),
    (22, "HAMMER"),
    (23, "HAMMER2"),
    (24, "UDF"),
    (26, "EFS"),
    (27, "ZFS"),
    (30, "nandfs"),
];

const OPENBSD: &[(u8, &str)] = &[
    (14, "ADOS"),
    (15, "HFS"),
    (16, "ADFS"),
    (17, "ext2fs"),
    (18, "ccd"),
    (19, "RAID"),
    (20, "NTFS"),
    (21, "UDF"),
];

const NETBSD: &[(u8, &str)] = &[
    (14, "ADOS"),
    (15, "HFS"),
    (16, "Filecore"),
    (17, "ext2fs"),
    (18, "NTFS"),
    (19, "RAID"),
    (20, "ccd"),
    (21, "jfs2"),
    (22, "Apple-UFS"),
    (23, "vinum"),
    (24, "UDF"),
    (25, "SysVBFS"),
    (26, "EFS"),
    (27, "NiLFS"),
];

/// Names of a dialect above [`COMMON`], by number.
fn own(dialect: Dialect) -> &'static [(u8, &'static str)] {
    match dialect {
        Dialect::FreeBsd | Dialect::DragonFly => FREEBSD,
        Dialect::OpenBsd => OPENBSD,
        Dialect::NetBsd => NETBSD,
    }
}

/// The name of `fstype` in disklabel(8); `None` for an unknown one.
pub fn name(dialect: Dialect, fstype: u8) -> Option<&'static str> {
    let common = COMMON.get(usize::from(fstype)).copied();
    common.or_else(|| own(dialect).iter().find(|(n, _)| *n == fstype).map(|(_, name)| *name))
}

/// The alias of `fstype` in gpart(8). It accepts DragonFly's types and shows them as numbers.
pub fn alias(dialect: Dialect, fstype: u8) -> Option<&'static str> {
    let same = name(dialect, fstype) == name(Dialect::FreeBsd, fstype);
    let shown = |name: &str| name.starts_with("freebsd-");
    ALIASES.iter().find(|a| same && a.bsd == Some(fstype) && shown(a.name)).map(|a| a.name)
}

/// The `fstype` called `text`, in any case: disklabel(8)'s name, gpart(8)'s alias, or a number
/// `!7`, `!0x1b`.
pub fn fstype(dialect: Dialect, text: &str) -> Option<u8> {
    if let Some(number) = text.strip_prefix('!') {
        return raw(number).filter(|&n| n != 0);
    }
    let by_alias = || {
        let number = ALIASES.iter().find(|a| a.name.eq_ignore_ascii_case(text))?.bsd?;
        by_name(dialect, name(Dialect::FreeBsd, number)?)
    };
    by_name(dialect, text).or_else(by_alias)
}

fn by_name(dialect: Dialect, text: &str) -> Option<u8> {
    (0..=u8::MAX).find(|&n| name(dialect, n).is_some_and(|name| name.eq_ignore_ascii_case(text)))
}

/// A byte as C's strtol reads it in base 0.
fn raw(text: &str) -> Option<u8> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u8::from_str_radix(hex, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => u8::from_str_radix(text, 8).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Dialect::{FreeBsd, NetBsd, OpenBsd};

    #[test]
    fn names_are_the_dialects_own_and_come_back() {
        for dialect in [FreeBsd, OpenBsd, NetBsd] {
            for n in (0..=u8::MAX).filter(|&n| name(dialect, n).is_some()) {
                assert_eq!(fstype(dialect, name(dialect, n).unwrap()), Some(n), "{dialect:?} {n}");
            }
        }
        let of = |text| [FreeBsd, OpenBsd, NetBsd].map(|d| fstype(d, text));
        assert_eq!(of("NTFS"), [Some(18), Some(20), Some(18)]);
        assert_eq!(of("4.2bsd"), [Some(7); 3]);
        assert_eq!(of("freebsd-ufs"), [Some(7); 3]);
        assert_eq!(of("freebsd-vinum"), [Some(14), None, Some(23)]);
        assert_eq!(of("freebsd-zfs"), [Some(27), None, None]);
        assert_eq!(of("!0x1b"), [Some(27); 3]);
        assert_eq!(
            (fstype(FreeBsd, "!0"), fstype(FreeBsd, "!256"), fstype(FreeBsd, "linux-data")),
            (None, None, None)
        );
        assert_eq!(
            (alias(FreeBsd, 7), alias(FreeBsd, 22), alias(OpenBsd, 14), alias(NetBsd, 1)),
            (Some("freebsd-ufs"), None, None, Some("freebsd-swap"))
        );
    }
}

//! Partition types by name: gpart(8)'s aliases, and those of other systems.
//!
//! # Sources
//! FreeBSD `sys/sys/disk/{gpt,mbr,bsd}.h`, `sys/geom/part/g_part.c`; UEFI discoverable partitions
//! specification; Linux `libfdisk` for the MBR bytes gpart has no alias for.

use crate::mapping::slices::{Kind, Purpose};

pub mod bsd;

/// Alias of a type, with its value in each scheme; `None` where it has none.
pub struct Alias {
    /// Name that gpart uses, or one made like it.
    pub name: &'static str,
    /// Type GUID of a GPT, as text.
    pub gpt: Option<&'static str>,
    /// Type byte of an MBR.
    pub mbr: Option<u8>,
    /// `fstype` of a BSD label.
    pub bsd: Option<u8>,
}

/// Every alias of a partition type, gpart's first.
#[rustfmt::skip]
pub static ALIASES: &[Alias] = &[
    Alias { name: "apple-apfs", gpt: Some("7c3457ef-0000-11aa-aa11-00306543ecac"), mbr: None, bsd: None },
    Alias { name: "apple-boot", gpt: Some("426f6f74-0000-11aa-aa11-00306543ecac"), mbr: Some(0xab), bsd: None },
    Alias { name: "apple-core-storage", gpt: Some("53746f72-6167-11aa-aa11-00306543ecac"), mbr: None, bsd: None },
    Alias { name: "apple-hfs", gpt: Some("48465300-0000-11aa-aa11-00306543ecac"), mbr: Some(0xaf), bsd: None },
    Alias { name: "apple-label", gpt: Some("4c616265-6c00-11aa-aa11-00306543ecac"), mbr: None, bsd: None },
    Alias { name: "apple-raid", gpt: Some("52414944-0000-11aa-aa22-00306543ecac"), mbr: None, bsd: None },
    Alias { name: "apple-raid-offline", gpt: Some("52414944-5f4f-11aa-aa22-00306543ecac"), mbr: None, bsd: None },
    Alias { name: "apple-tv-recovery", gpt: Some("5265636f-7665-11aa-aa11-00306543ecac"), mbr: None, bsd: None },
    Alias { name: "apple-ufs", gpt: Some("55465300-0000-11aa-aa11-00306543ecac"), mbr: Some(0xa8), bsd: None },
    Alias { name: "apple-zfs", gpt: Some("6a898cc3-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "bios-boot", gpt: Some("21686148-6449-6e6f-744e-656564454649"), mbr: None, bsd: None },
    Alias { name: "chromeos-firmware", gpt: Some("cab6e88e-abf3-4102-a07a-d4bb9be3c1d3"), mbr: None, bsd: None },
    Alias { name: "chromeos-kernel", gpt: Some("fe3a2a5d-4f32-41a7-b725-accc3285a309"), mbr: None, bsd: None },
    Alias { name: "chromeos-reserved", gpt: Some("2e0a753d-9e48-43b0-8337-b15192cb1b5e"), mbr: None, bsd: None },
    Alias { name: "chromeos-root", gpt: Some("3cb8e202-3b7e-47dd-8a3c-7ff2a13cfcec"), mbr: None, bsd: None },
    Alias { name: "dragonfly-ccd", gpt: Some("dbd5211b-1ca5-11dc-8817-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "dragonfly-hammer", gpt: Some("61dc63ac-6e38-11dc-8513-01301bb8a9f5"), mbr: None, bsd: Some(22) },
    Alias { name: "dragonfly-hammer2", gpt: Some("5cbb9ad1-862d-11dc-a94d-01301bb8a9f5"), mbr: None, bsd: Some(23) },
    Alias { name: "dragonfly-label32", gpt: Some("9d087404-1ca5-11dc-8817-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "dragonfly-label64", gpt: Some("3d48ce54-1d16-11dc-8696-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "dragonfly-legacy", gpt: Some("bd215ab2-1d16-11dc-8696-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "dragonfly-swap", gpt: Some("9d58fdbd-1ca5-11dc-8817-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "dragonfly-ufs", gpt: Some("9d94ce7c-1ca5-11dc-8817-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "dragonfly-vinum", gpt: Some("9dd4478f-1ca5-11dc-8817-01301bb8a9f5"), mbr: None, bsd: None },
    Alias { name: "efi", gpt: Some("c12a7328-f81f-11d2-ba4b-00a0c93ec93b"), mbr: Some(0xef), bsd: None },
    Alias { name: "fat16", gpt: None, mbr: Some(0x06), bsd: None },
    Alias { name: "fat32", gpt: None, mbr: Some(0x0b), bsd: None },
    Alias { name: "fat32lba", gpt: None, mbr: Some(0x0c), bsd: None },
    Alias { name: "freebsd", gpt: Some("516e7cb4-6ecf-11d6-8ff8-00022d09712b"), mbr: Some(0xa5), bsd: None },
    Alias { name: "freebsd-boot", gpt: Some("83bd6b9d-7f41-11dc-be0b-001560b84f0f"), mbr: None, bsd: None },
    Alias { name: "freebsd-nandfs", gpt: Some("74ba7dd9-a689-11e1-bd04-00e081286acf"), mbr: None, bsd: Some(30) },
    Alias { name: "freebsd-swap", gpt: Some("516e7cb5-6ecf-11d6-8ff8-00022d09712b"), mbr: None, bsd: Some(1) },
    Alias { name: "freebsd-ufs", gpt: Some("516e7cb6-6ecf-11d6-8ff8-00022d09712b"), mbr: None, bsd: Some(7) },
    Alias { name: "freebsd-vinum", gpt: Some("516e7cb8-6ecf-11d6-8ff8-00022d09712b"), mbr: None, bsd: Some(14) },
    Alias { name: "freebsd-zfs", gpt: Some("516e7cba-6ecf-11d6-8ff8-00022d09712b"), mbr: None, bsd: Some(27) },
    Alias { name: "hifive-bbl", gpt: Some("2e54b353-1271-4842-806f-e436d6af6985"), mbr: None, bsd: None },
    Alias { name: "hifive-fsbl", gpt: Some("5b193300-fc78-40cd-8002-e86c45580b47"), mbr: None, bsd: None },
    Alias { name: "linux-data", gpt: Some("0fc63daf-8483-4772-8e79-3d69d8477de4"), mbr: Some(0x83), bsd: None },
    Alias { name: "linux-lvm", gpt: Some("e6d6d379-f507-44c2-a23c-238f2a3df928"), mbr: Some(0x8e), bsd: None },
    Alias { name: "linux-raid", gpt: Some("a19d880f-05fc-4d3b-a006-743f0f84911e"), mbr: Some(0xfd), bsd: None },
    Alias { name: "linux-swap", gpt: Some("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"), mbr: Some(0x82), bsd: None },
    Alias { name: "mbr", gpt: Some("024dee41-33e7-11d3-9d69-0008c781f39f"), mbr: None, bsd: None },
    Alias { name: "ms-basic-data", gpt: Some("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"), mbr: None, bsd: None },
    Alias { name: "ms-ldm-data", gpt: Some("af9b60a0-1431-4f62-bc68-3311714a69ad"), mbr: Some(0x42), bsd: None },
    Alias { name: "ms-ldm-metadata", gpt: Some("5808c8aa-7e8f-42e0-85d2-e1e90434cfb3"), mbr: None, bsd: None },
    Alias { name: "ms-recovery", gpt: Some("de94bba4-06d1-4d40-a16a-bfd50179d6ac"), mbr: None, bsd: None },
    Alias { name: "ms-reserved", gpt: Some("e3c9e316-0b5c-4db8-817d-f92df00215ae"), mbr: None, bsd: None },
    Alias { name: "ms-spaces", gpt: Some("e75caf8f-f680-4cee-afa3-b001e56efc2d"), mbr: None, bsd: None },
    Alias { name: "netbsd-ccd", gpt: Some("2db519c4-b10f-11dc-b99b-0019d1879648"), mbr: None, bsd: None },
    Alias { name: "netbsd-cgd", gpt: Some("2db519ec-b10f-11dc-b99b-0019d1879648"), mbr: None, bsd: None },
    Alias { name: "netbsd-ffs", gpt: Some("49f48d5a-b10e-11dc-b99b-0019d1879648"), mbr: None, bsd: None },
    Alias { name: "netbsd-lfs", gpt: Some("49f48d82-b10e-11dc-b99b-0019d1879648"), mbr: None, bsd: None },
    Alias { name: "netbsd-raid", gpt: Some("49f48daa-b10e-11dc-b99b-0019d1879648"), mbr: None, bsd: None },
    Alias { name: "netbsd-swap", gpt: Some("49f48d32-b10e-11dc-b99b-0019d1879648"), mbr: None, bsd: None },
    Alias { name: "ntfs", gpt: None, mbr: Some(0x07), bsd: None },
    Alias { name: "openbsd-data", gpt: Some("824cc7a0-36a8-11e3-890a-952519ad3f61"), mbr: None, bsd: None },
    Alias { name: "prep-boot", gpt: Some("9e1a2d38-c612-4316-aa26-8b49521e5a8b"), mbr: Some(0x41), bsd: None },
    Alias { name: "solaris-altsec", gpt: Some("6a9283a5-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-backup", gpt: Some("6a8b642b-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-boot", gpt: Some("6a82cb45-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-home", gpt: Some("6a90ba39-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-reserved", gpt: Some("6a945a3b-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-root", gpt: Some("6a85cf4d-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-swap", gpt: Some("6a87c46f-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "solaris-var", gpt: Some("6a8ef2e9-1dd2-11b2-99a6-080020736631"), mbr: None, bsd: None },
    Alias { name: "vmware-reserved", gpt: Some("9198effc-31c0-11db-8f78-000c2911d1b8"), mbr: None, bsd: None },
    Alias { name: "vmware-vmfs", gpt: Some("aa31e02a-400f-11db-9590-000c2911d1b8"), mbr: Some(0xfb), bsd: None },
    Alias { name: "vmware-vmkdiag", gpt: Some("9d275380-40ad-11db-bf97-000c2911d1b8"), mbr: Some(0xfc), bsd: None },
    Alias { name: "vmware-vsanhdr", gpt: Some("381cfccc-7288-11e0-92ee-000c2911d0b2"), mbr: None, bsd: None },
    Alias { name: "linux-root-x86-64", gpt: Some("4f68bce3-e8cd-4db1-96e7-fbcaf984b709"), mbr: None, bsd: None },
    Alias { name: "linux-root-arm64", gpt: Some("b921b045-1df0-41c3-af44-4c6f280d3fae"), mbr: None, bsd: None },
    Alias { name: "linux-home", gpt: Some("933ac7e1-2eb4-4f13-b844-0e14e2aef915"), mbr: None, bsd: None },
    Alias { name: "linux-srv", gpt: Some("3b8f8425-20e0-4f3b-907f-1a25a76f98e8"), mbr: None, bsd: None },
    Alias { name: "linux-xbootldr", gpt: Some("bc13c2ff-59e6-4262-a352-b275fd6f7172"), mbr: None, bsd: None },
    Alias { name: "linux-luks", gpt: Some("ca7d7ccb-63ed-4c53-861c-1742536059cc"), mbr: Some(0xe8), bsd: None },
    Alias { name: "fat12", gpt: None, mbr: Some(0x01), bsd: None },
    Alias { name: "fat16-small", gpt: None, mbr: Some(0x04), bsd: None },
    Alias { name: "fat16lba", gpt: None, mbr: Some(0x0e), bsd: None },
    Alias { name: "extended", gpt: None, mbr: Some(0x05), bsd: None },
    Alias { name: "extended-lba", gpt: None, mbr: Some(0x0f), bsd: None },
    Alias { name: "extended-linux", gpt: None, mbr: Some(0x85), bsd: None },
    Alias { name: "ntfs-recovery", gpt: None, mbr: Some(0x27), bsd: None },
    Alias { name: "unixware", gpt: None, mbr: Some(0x63), bsd: None },
    Alias { name: "minix", gpt: None, mbr: Some(0x81), bsd: None },
    Alias { name: "solaris", gpt: None, mbr: Some(0xbf), bsd: None },
    Alias { name: "openbsd", gpt: None, mbr: Some(0xa6), bsd: None },
    Alias { name: "netbsd", gpt: None, mbr: Some(0xa9), bsd: None },
    Alias { name: "gpt-protective", gpt: None, mbr: Some(0xee), bsd: None },
];

/// Letters and words of sfdisk, with the aliases they mean, where gpart has no alias of that name.
const SHORTCUTS: [(&str, &str); 12] = [
    ("L", "linux-data"),
    ("linux", "linux-data"),
    ("S", "linux-swap"),
    ("swap", "linux-swap"),
    ("H", "linux-home"),
    ("home", "linux-home"),
    ("U", "efi"),
    ("uefi", "efi"),
    ("R", "linux-raid"),
    ("raid", "linux-raid"),
    ("V", "linux-lvm"),
    ("lvm", "linux-lvm"),
];

/// The alias called `name`, in upper or lower case, or that of sfdisk's shortcut `name`.
pub fn named(name: &str) -> Option<&'static Alias> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    let full = SHORTCUTS.iter().find(|(short, _)| same(short)).map_or(name, |(_, full)| full);
    ALIASES.iter().find(|a| a.name.eq_ignore_ascii_case(full))
}

/// File systems that users name instead of a partition's type, with the types that hold one; the
/// first that a scheme has is taken.
const CONTENTS: &[(&str, &[&str])] = &[
    ("ext2", &["linux-data"]),
    ("ext3", &["linux-data"]),
    ("ext4", &["linux-data"]),
    ("xfs", &["linux-data"]),
    ("btrfs", &["linux-data"]),
    ("f2fs", &["linux-data"]),
    ("bcachefs", &["linux-data"]),
    ("jfs", &["linux-data"]),
    ("fat", &["fat32lba", "ms-basic-data", "msdos"]),
    ("vfat", &["fat32lba", "ms-basic-data", "msdos"]),
    ("msdos", &["fat32lba", "ms-basic-data"]),
    ("fat12", &["ms-basic-data"]),
    ("fat16", &["ms-basic-data"]),
    ("fat32", &["ms-basic-data", "msdos"]),
    ("exfat", &["ntfs", "ms-basic-data"]),
    ("ntfs", &["ms-basic-data"]),
    ("luks", &["linux-luks"]),
    ("zfs", &["freebsd-zfs"]),
    ("ufs", &["freebsd-ufs", "freebsd"]),
];

/// Types that hold a file system called `name`, the best first; empty for another name.
pub fn holding(name: &str) -> &'static [&'static str] {
    CONTENTS.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map_or(&[], |(_, types)| types)
}

/// The name of a type; unknown ones as gpart shows them: `!165`, `!516e7cb4-...`.
pub fn name(kind: Kind) -> String {
    let found = match kind {
        Kind::Gpt(guid) => {
            let text = guid.to_string();
            return ALIASES
                .iter()
                .find(|a| a.gpt == Some(&text))
                .map_or(format!("!{text}"), |a| a.name.into());
        }
        Kind::Mbr(byte) => ALIASES.iter().find(|a| a.mbr == Some(byte)).map(|a| a.name).ok_or(byte),
        Kind::Bsd(dialect, byte) => bsd::name(dialect, byte).ok_or(byte),
        Kind::Tag(tag) => return tag.name.map_or_else(|| format!("!{}", tag.code), Into::into),
    };
    found.map_or_else(|byte| format!("!{byte}"), Into::into)
}

/// True if a database elsewhere on the disk, not the partition's place, records the start of its
/// volumes.
pub fn is_described_elsewhere(kind: Kind) -> bool {
    matches!(kind, Kind::Mbr(_) | Kind::Gpt(_))
        && matches!(name(kind).as_str(), "ms-ldm-data" | "ms-spaces")
}

/// True if the type alone describes the contents: swap without a header, in pages from its first
/// byte.
pub fn is_bare_swap(kind: Kind) -> bool {
    match kind {
        Kind::Gpt(_) => matches!(
            name(kind).as_str(),
            "freebsd-swap" | "netbsd-swap" | "dragonfly-swap" | "solaris-swap"
        ),
        Kind::Bsd(_, fstype) => fstype == 1,
        Kind::Tag(tag) => tag.purpose == Purpose::Swap,
        Kind::Mbr(_) => false,
    }
}

/// First alias that is not gpart(8)'s; those after it are not either.
const OURS: &str = "linux-root-x86-64";

/// The name of a type by which gpart(8) can read it back; a number or a GUID where it has no name.
pub fn gpart_name(kind: Kind) -> String {
    let gparts = || ALIASES.iter().take_while(|a| a.name != OURS);
    let found = match kind {
        Kind::Gpt(guid) => {
            let text = guid.to_string();
            gparts().find(|a| a.gpt == Some(&text))
        }
        Kind::Mbr(0x05 | 0x0f) => return "ebr".into(),
        Kind::Mbr(byte) => gparts().find(|a| a.mbr == Some(byte)),
        Kind::Bsd(dialect, byte) => {
            return bsd::alias(dialect, byte).map_or_else(|| format!("!{byte}"), Into::into);
        }
        Kind::Tag(_) => None,
    };
    found.map_or_else(|| format!("!{}", raw_name(kind)), |a| a.name.into())
}

/// A type as it is on the disk: a GUID, or a number.
pub fn raw_name(kind: Kind) -> String {
    match kind {
        Kind::Gpt(guid) => guid.to_string(),
        Kind::Mbr(byte) | Kind::Bsd(_, byte) => byte.to_string(),
        Kind::Tag(tag) => tag.code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::slices::Dialect;

    #[test]
    fn gparts_names_are_gparts() {
        let bsd = |byte| gpart_name(Kind::Bsd(Dialect::FreeBsd, byte));
        assert_eq!(
            [1, 7, 8, 22, 27].map(bsd),
            ["freebsd-swap", "freebsd-ufs", "!8", "!22", "freebsd-zfs"]
        );
        assert_eq!(
            [0xa5, 0x05, 0x0f, 0x01, 0x83].map(|b| gpart_name(Kind::Mbr(b))),
            ["freebsd", "ebr", "ebr", "!1", "linux-data"]
        );
        // The last alias that is gpart's has a byte of its own before it.
        assert_eq!(
            (gpart_name(Kind::Mbr(0xfc)), gpart_name(Kind::Mbr(0xe8))),
            ("vmware-vmkdiag".into(), "!232".into())
        );
    }

    #[test]
    fn names_are_found_in_any_case_and_shortcuts_lead_to_aliases() {
        let found = |name| named(name).map(|a| a.name);
        assert_eq!(found("FreeBSD-UFS"), Some("freebsd-ufs"));
        assert_eq!(found("l"), Some("linux-data"));
        assert!(SHORTCUTS.iter().all(|(short, full)| found(short) == Some(full)));
        assert_eq!(found("ext4"), None);
        assert!(CONTENTS.iter().all(|(_, types)| types.iter().any(|name| named(name).is_some())));
        assert_eq!((holding("EXT4"), holding("nonsense")), (&["linux-data"][..], &[][..]));
    }

    #[test]
    fn every_guid_is_lower_case_and_no_alias_twice() {
        for (i, alias) in ALIASES.iter().enumerate() {
            assert!(
                alias.gpt.is_none_or(|g| g.len() == 36 && g == g.to_lowercase()),
                "{}",
                alias.name
            );
            assert!(!ALIASES[..i].iter().any(|other| other.name == alias.name), "{}", alias.name);
        }
    }
}

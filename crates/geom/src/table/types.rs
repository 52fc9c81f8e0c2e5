//! Partition types by name: gpart(8)'s aliases, and those of other systems.
//!
//! # Sources
//! FreeBSD `sys/sys/disk/{gpt,mbr,bsd}.h`, `sys/geom/part/g_part.c`; UEFI discoverable partitions
//! specification; Linux `libfdisk` for the MBR bytes gpart has no alias for.

use crate::mapping::slices::{PartitionType, Purpose};

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

/// A row of [`ALIASES`]: name, type GUID, type byte of an MBR, `fstype` of a BSD label.
const fn alias(
    name: &'static str,
    gpt: Option<&'static str>,
    mbr: Option<u8>,
    bsd: Option<u8>,
) -> Alias {
    Alias { name, gpt, mbr, bsd }
}

/// Every alias of a partition type, gpart's first.
#[rustfmt::skip]
pub static ALIASES: &[Alias] = &[
    alias("apple-apfs", Some("7c3457ef-0000-11aa-aa11-00306543ecac"), None, None),
    alias("apple-boot", Some("426f6f74-0000-11aa-aa11-00306543ecac"), Some(0xab), None),
    alias("apple-core-storage", Some("53746f72-6167-11aa-aa11-00306543ecac"), None, None),
    alias("apple-hfs", Some("48465300-0000-11aa-aa11-00306543ecac"), Some(0xaf), None),
    alias("apple-label", Some("4c616265-6c00-11aa-aa11-00306543ecac"), None, None),
    alias("apple-raid", Some("52414944-0000-11aa-aa22-00306543ecac"), None, None),
    alias("apple-raid-offline", Some("52414944-5f4f-11aa-aa22-00306543ecac"), None, None),
    alias("apple-tv-recovery", Some("5265636f-7665-11aa-aa11-00306543ecac"), None, None),
    alias("apple-ufs", Some("55465300-0000-11aa-aa11-00306543ecac"), Some(0xa8), None),
    alias("apple-zfs", Some("6a898cc3-1dd2-11b2-99a6-080020736631"), None, None),
    alias("bios-boot", Some("21686148-6449-6e6f-744e-656564454649"), None, None),
    alias("chromeos-firmware", Some("cab6e88e-abf3-4102-a07a-d4bb9be3c1d3"), None, None),
    alias("chromeos-kernel", Some("fe3a2a5d-4f32-41a7-b725-accc3285a309"), None, None),
    alias("chromeos-reserved", Some("2e0a753d-9e48-43b0-8337-b15192cb1b5e"), None, None),
    alias("chromeos-root", Some("3cb8e202-3b7e-47dd-8a3c-7ff2a13cfcec"), None, None),
    alias("dragonfly-ccd", Some("dbd5211b-1ca5-11dc-8817-01301bb8a9f5"), None, None),
    alias("dragonfly-hammer", Some("61dc63ac-6e38-11dc-8513-01301bb8a9f5"), None, Some(22)),
    alias("dragonfly-hammer2", Some("5cbb9ad1-862d-11dc-a94d-01301bb8a9f5"), None, Some(23)),
    alias("dragonfly-label32", Some("9d087404-1ca5-11dc-8817-01301bb8a9f5"), None, None),
    alias("dragonfly-label64", Some("3d48ce54-1d16-11dc-8696-01301bb8a9f5"), None, None),
    alias("dragonfly-legacy", Some("bd215ab2-1d16-11dc-8696-01301bb8a9f5"), None, None),
    alias("dragonfly-swap", Some("9d58fdbd-1ca5-11dc-8817-01301bb8a9f5"), None, None),
    alias("dragonfly-ufs", Some("9d94ce7c-1ca5-11dc-8817-01301bb8a9f5"), None, None),
    alias("dragonfly-vinum", Some("9dd4478f-1ca5-11dc-8817-01301bb8a9f5"), None, None),
    alias("efi", Some("c12a7328-f81f-11d2-ba4b-00a0c93ec93b"), Some(0xef), None),
    alias("fat16", None, Some(0x06), None),
    alias("fat32", None, Some(0x0b), None),
    alias("fat32lba", None, Some(0x0c), None),
    alias("freebsd", Some("516e7cb4-6ecf-11d6-8ff8-00022d09712b"), Some(0xa5), None),
    alias("freebsd-boot", Some("83bd6b9d-7f41-11dc-be0b-001560b84f0f"), None, None),
    alias("freebsd-nandfs", Some("74ba7dd9-a689-11e1-bd04-00e081286acf"), None, Some(30)),
    alias("freebsd-swap", Some("516e7cb5-6ecf-11d6-8ff8-00022d09712b"), None, Some(1)),
    alias("freebsd-ufs", Some("516e7cb6-6ecf-11d6-8ff8-00022d09712b"), None, Some(7)),
    alias("freebsd-vinum", Some("516e7cb8-6ecf-11d6-8ff8-00022d09712b"), None, Some(14)),
    alias("freebsd-zfs", Some("516e7cba-6ecf-11d6-8ff8-00022d09712b"), None, Some(27)),
    alias("hifive-bbl", Some("2e54b353-1271-4842-806f-e436d6af6985"), None, None),
    alias("hifive-fsbl", Some("5b193300-fc78-40cd-8002-e86c45580b47"), None, None),
    alias("linux-data", Some("0fc63daf-8483-4772-8e79-3d69d8477de4"), Some(0x83), None),
    alias("linux-lvm", Some("e6d6d379-f507-44c2-a23c-238f2a3df928"), Some(0x8e), None),
    alias("linux-raid", Some("a19d880f-05fc-4d3b-a006-743f0f84911e"), Some(0xfd), None),
    alias("linux-swap", Some("0657fd6d-a4ab-43c4-84e5-0933c84b4f4f"), Some(0x82), None),
    alias("mbr", Some("024dee41-33e7-11d3-9d69-0008c781f39f"), None, None),
    alias("ms-basic-data", Some("ebd0a0a2-b9e5-4433-87c0-68b6b72699c7"), None, None),
    alias("ms-ldm-data", Some("af9b60a0-1431-4f62-bc68-3311714a69ad"), Some(0x42), None),
    alias("ms-ldm-metadata", Some("5808c8aa-7e8f-42e0-85d2-e1e90434cfb3"), None, None),
    alias("ms-recovery", Some("de94bba4-06d1-4d40-a16a-bfd50179d6ac"), None, None),
    alias("ms-reserved", Some("e3c9e316-0b5c-4db8-817d-f92df00215ae"), None, None),
    alias("ms-spaces", Some("e75caf8f-f680-4cee-afa3-b001e56efc2d"), None, None),
    alias("netbsd-ccd", Some("2db519c4-b10f-11dc-b99b-0019d1879648"), None, None),
    alias("netbsd-cgd", Some("2db519ec-b10f-11dc-b99b-0019d1879648"), None, None),
    alias("netbsd-ffs", Some("49f48d5a-b10e-11dc-b99b-0019d1879648"), None, None),
    alias("netbsd-lfs", Some("49f48d82-b10e-11dc-b99b-0019d1879648"), None, None),
    alias("netbsd-raid", Some("49f48daa-b10e-11dc-b99b-0019d1879648"), None, None),
    alias("netbsd-swap", Some("49f48d32-b10e-11dc-b99b-0019d1879648"), None, None),
    alias("ntfs", None, Some(0x07), None),
    alias("openbsd-data", Some("824cc7a0-36a8-11e3-890a-952519ad3f61"), None, None),
    alias("prep-boot", Some("9e1a2d38-c612-4316-aa26-8b49521e5a8b"), Some(0x41), None),
    alias("solaris-altsec", Some("6a9283a5-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-backup", Some("6a8b642b-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-boot", Some("6a82cb45-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-home", Some("6a90ba39-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-reserved", Some("6a945a3b-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-root", Some("6a85cf4d-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-swap", Some("6a87c46f-1dd2-11b2-99a6-080020736631"), None, None),
    alias("solaris-var", Some("6a8ef2e9-1dd2-11b2-99a6-080020736631"), None, None),
    alias("vmware-reserved", Some("9198effc-31c0-11db-8f78-000c2911d1b8"), None, None),
    alias("vmware-vmfs", Some("aa31e02a-400f-11db-9590-000c2911d1b8"), Some(0xfb), None),
    alias("vmware-vmkdiag", Some("9d275380-40ad-11db-bf97-000c2911d1b8"), Some(0xfc), None),
    alias("vmware-vsanhdr", Some("381cfccc-7288-11e0-92ee-000c2911d0b2"), None, None),
    alias("linux-root-x86-64", Some("4f68bce3-e8cd-4db1-96e7-fbcaf984b709"), None, None),
    alias("linux-root-arm64", Some("b921b045-1df0-41c3-af44-4c6f280d3fae"), None, None),
    alias("linux-home", Some("933ac7e1-2eb4-4f13-b844-0e14e2aef915"), None, None),
    alias("linux-srv", Some("3b8f8425-20e0-4f3b-907f-1a25a76f98e8"), None, None),
    alias("linux-xbootldr", Some("bc13c2ff-59e6-4262-a352-b275fd6f7172"), None, None),
    alias("linux-luks", Some("ca7d7ccb-63ed-4c53-861c-1742536059cc"), Some(0xe8), None),
    alias("fat12", None, Some(0x01), None),
    alias("fat16-small", None, Some(0x04), None),
    alias("fat16lba", None, Some(0x0e), None),
    alias("extended", None, Some(0x05), None),
    alias("extended-lba", None, Some(0x0f), None),
    alias("extended-linux", None, Some(0x85), None),
    alias("ntfs-recovery", None, Some(0x27), None),
    alias("unixware", None, Some(0x63), None),
    alias("minix", None, Some(0x81), None),
    alias("solaris", None, Some(0xbf), None),
    alias("openbsd", None, Some(0xa6), None),
    alias("netbsd", None, Some(0xa9), None),
    alias("gpt-protective", None, Some(0xee), None),
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

/// Every name that stands for a type where a user types one, with the aliases that it means: those
/// of [`ALIASES`] mean themselves, the others are file systems and sfdisk's words.
pub fn typed_names() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let own = ALIASES.iter().map(|alias| (alias.name, vec![alias.name]));
    let is_alias = |name: &str| ALIASES.iter().any(|alias| alias.name == name);
    let contents = CONTENTS.iter().filter(move |(name, _)| !is_alias(name));
    let contents = contents.map(|&(name, holders)| (name, holders.to_vec()));
    own.chain(contents).chain(SHORTCUTS.iter().map(|&(short, full)| (short, vec![full])))
}

/// The name of a type; unknown ones as gpart shows them: `!165`, `!516e7cb4-...`.
pub fn name(kind: PartitionType) -> String {
    let found = match kind {
        PartitionType::Gpt(guid) => {
            let text = guid.to_string();
            return ALIASES
                .iter()
                .find(|a| a.gpt == Some(&text))
                .map_or(format!("!{text}"), |a| a.name.into());
        }
        PartitionType::Mbr(byte) => {
            ALIASES.iter().find(|a| a.mbr == Some(byte)).map(|a| a.name).ok_or(byte)
        }
        PartitionType::Bsd(dialect, byte) => bsd::name(dialect, byte).ok_or(byte),
        PartitionType::Tag(tag) => {
            return tag.name.map_or_else(|| format!("!{}", tag.code), Into::into);
        }
    };
    found.map_or_else(|byte| format!("!{byte}"), Into::into)
}

/// True if a database elsewhere on the disk, not the partition's place, records the start of its
/// volumes.
pub fn is_described_elsewhere(kind: PartitionType) -> bool {
    matches!(kind, PartitionType::Mbr(_) | PartitionType::Gpt(_))
        && matches!(name(kind).as_str(), "ms-ldm-data" | "ms-spaces")
}

/// True if the type alone describes the contents: swap without a header, in pages from its first
/// byte.
pub fn is_bare_swap(kind: PartitionType) -> bool {
    match kind {
        PartitionType::Gpt(_) => matches!(
            name(kind).as_str(),
            "freebsd-swap" | "netbsd-swap" | "dragonfly-swap" | "solaris-swap"
        ),
        PartitionType::Bsd(_, fstype) => fstype == 1,
        PartitionType::Tag(tag) => tag.purpose == Purpose::Swap,
        PartitionType::Mbr(_) => false,
    }
}

/// True if no format is in a partition of that type: swap without a header, code of a loader, room
/// that is kept.
pub fn is_without_format(kind: PartitionType) -> bool {
    let is_named = |kind| {
        matches!(name(kind).as_str(), "bios-boot" | "freebsd-boot" | "prep-boot" | "ms-reserved")
    };
    is_bare_swap(kind) || matches!(kind, PartitionType::Gpt(_)) && is_named(kind)
}

/// First alias that is not gpart(8)'s; those after it are not either.
const OURS: &str = "linux-root-x86-64";

/// The name of a type by which gpart(8) can read it back; a number or a GUID where it has no name.
pub fn gpart_name(kind: PartitionType) -> String {
    let gparts = || ALIASES.iter().take_while(|a| a.name != OURS);
    let found = match kind {
        PartitionType::Gpt(guid) => {
            let text = guid.to_string();
            gparts().find(|a| a.gpt == Some(&text))
        }
        PartitionType::Mbr(0x05 | 0x0f) => return "ebr".into(),
        PartitionType::Mbr(byte) => gparts().find(|a| a.mbr == Some(byte)),
        PartitionType::Bsd(dialect, byte) => {
            return bsd::alias(dialect, byte).map_or_else(|| format!("!{byte}"), Into::into);
        }
        PartitionType::Tag(_) => None,
    };
    found.map_or_else(|| format!("!{}", raw_name(kind)), |a| a.name.into())
}

/// A type as it is on the disk: a GUID, or a number.
pub fn raw_name(kind: PartitionType) -> String {
    match kind {
        PartitionType::Gpt(guid) => guid.to_string(),
        PartitionType::Mbr(byte) | PartitionType::Bsd(_, byte) => byte.to_string(),
        PartitionType::Tag(tag) => tag.code.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapping::slices::Dialect;

    #[test]
    fn gparts_names_are_gparts() {
        let bsd = |byte| gpart_name(PartitionType::Bsd(Dialect::FreeBsd, byte));
        assert_eq!(
            [1, 7, 8, 22, 27].map(bsd),
            ["freebsd-swap", "freebsd-ufs", "!8", "!22", "freebsd-zfs"]
        );
        assert_eq!(
            [0xa5, 0x05, 0x0f, 0x01, 0x83].map(|b| gpart_name(PartitionType::Mbr(b))),
            ["freebsd", "ebr", "ebr", "!1", "linux-data"]
        );
        // The last alias that is gpart's has a byte of its own before it.
        assert_eq!(
            (gpart_name(PartitionType::Mbr(0xfc)), gpart_name(PartitionType::Mbr(0xe8))),
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
    fn every_name_that_may_be_typed_is_told_once() {
        let told: Vec<_> = typed_names().map(|(name, _)| name).collect();
        for (i, name) in told.iter().enumerate() {
            assert!(named(name).is_some() || !holding(name).is_empty(), "{name}");
            assert!(!told[..i].contains(name), "{name}");
        }
        let is_told = |name: &str| told.contains(&name);
        assert!(CONTENTS.iter().all(|(name, _)| is_told(name)));
        assert!(["linux-data", "ext4", "fat16", "lvm"].iter().all(|name| is_told(name)));
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

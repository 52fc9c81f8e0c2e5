//! The three ordered lists: classes that taste, formats that are recognised, schemes that are
//! edited.
//!
//! A new one is a file in `class/` or `format/`, its `mod` line, its line here, and a golden disk.
//! A format that is only to be known by its magic is a line in `format/by_magic.rs`.

use crate::class::metadata::Relabels;
use crate::class::{self, Class, Taste};
use crate::format::by_magic::compressed;
use crate::format::{self, Format, FormatKind, Sign};
use crate::probe::Probe;
use crate::table::scheme::Scheme;

/// Classes that taste, in the order in which they are asked.
///
/// `gpt` comes before `mbr`: a protective MBR is part of a GPT, not a table; where an MBR of real
/// entries hides a GPT, `gpt` reports it and yields. `sgi` and `vtoc8` prove themselves by a
/// checksum over their whole sector, which `mbr` lacks; `apm` declines a sector that ends as an MBR
/// does, and Linux asks for `rdb` after `mbr`. The labels come next: a disk with both an MBR and a
/// label behind it is read by its MBR, as every kernel does. Tables that only an MBR's type
/// announces exclude each other. Sets come last; GEOM's metadata are in the last sector and exclude
/// no table at the front, LVM's label leaves room for an MBR.
pub static CLASSES: &[&dyn Class] = &[
    &class::gpt::Gpt,
    &class::sgi::Sgi,
    &class::vtoc8::Vtoc8,
    &class::mbr::Mbr,
    &class::apm::Apm,
    &class::rdb::Rdb,
    &class::bsd64::Bsd64,
    &class::bsd::Bsd,
    &class::minix::Minix,
    &class::solaris::Solaris,
    &class::unixware::UnixWare,
    &class::stripe::Stripe,
    &class::mirror::Mirror,
    &class::concat::Concat,
    &class::lvm::Lvm,
    &class::md::Md,
    &class::imsm::Imsm,
    &class::integrity::Integrity,
    &class::luks::Luks,
    // Containers: what a guest calls its disk.
    &class::qcow2::Qcow2,
    &class::vhd::Vhd,
    &class::vhdx::Vhdx,
    &class::qcow::Qcow,
    &class::qed::Qed,
    &class::vdi::Vdi,
    &class::parallels::Parallels,
    &class::vmdk::Vmdk,
    &class::sparseimage::SparseImage,
    // Files that are unpacked before a guest runs.
    &class::android_sparse::AndroidSparse,
    &class::ewf::Ewf,
    &class::ewf2::Ewf2,
    &class::dmg::Dmg,
    &class::tar::Tar,
    // Files that are compressed as a whole, whose names are known by magic.
    &class::packed::Gzip,
    &class::packed::Xz,
    &class::packed::Zstd,
    &class::packed::Bzip2,
    &class::packed::Lz4,
];

/// Every format, in the order of blkid's own list where it matters: wrappers of others come first.
/// Where no format and no class answers, [`LAST`] is asked.
pub static FORMATS: &[&dyn Format] = &[
    // Interrupted moves, then containers, members of sets and other wrappers of a file system.
    &format::moving::Moving,
    &class::qcow2::Qcow2,
    &class::qcow::Qcow,
    &class::qed::Qed,
    &class::parallels::Parallels,
    &class::vmdk::Vmdk,
    &class::vhd::Vhd,
    &class::vhdx::Vhdx,
    &class::vdi::Vdi,
    &class::sparseimage::SparseImage,
    &class::android_sparse::AndroidSparse,
    &class::ewf::Ewf,
    &class::ewf2::Ewf2,
    &class::dmg::Dmg,
    &class::tar::Tar,
    &format::md::Md,
    &format::lvm2::Lvm2,
    &format::luks::Luks,
    &format::integrity::Integrity,
    &format::bitlocker::BitLocker,
    &format::bcache::Bcache,
    &format::bcachefs::Bcachefs,
    &format::drbd::Drbd,
    &format::vdo::Vdo,
    &format::zfs::Zfs,
    &format::imsm::Imsm,
    &format::ddf::Ddf,
    &format::by_magic::Firmware,
    // File systems.
    &format::fat::Fat,
    &format::swap::Swap,
    &format::xfs::Xfs,
    &format::ext::Ext,
    &format::reiserfs::ReiserFs,
    &format::jfs::Jfs,
    &format::udf::Udf,
    &format::iso9660::Iso9660,
    &format::hfsplus::HfsPlus,
    &format::ufs::Ufs,
    &format::ntfs::Ntfs,
    &format::squashfs::SquashFs,
    &format::btrfs::Btrfs,
    &format::nilfs2::Nilfs2,
    &format::exfat::Exfat,
    &format::f2fs::F2fs,
    &format::apfs::Apfs,
    &format::erofs::Erofs,
    &format::minix::Minix,
    &format::hfs::Hfs,
];

/// Kinds that are known by their magic alone, for a provider on which nothing else was recognised.
pub static LAST: &dyn Format = &format::by_magic::ByMagic;

/// Schemes that are edited, in the order in which they are asked. An extended partition is read by
/// the EBR alone, so that comes first; the others are ordered as in [`CLASSES`].
pub static SCHEMES: &[&dyn Scheme] =
    &[&class::mbr::Ebr, &class::gpt::Gpt, &class::mbr::Mbr, &class::bsd::Bsd];

/// True if what the class called `class` shows is a disk: a container.
pub fn shows_a_disk(class: &str) -> bool {
    CLASSES.iter().any(|known| known.name() == class && known.shows_a_disk())
}

/// True if metadata of the class called `class` are found by the sectors of a member.
pub fn lies_by_sectors(class: &str) -> bool {
    CLASSES.iter().any(|known| known.name() == class && known.lies_by_sectors())
}

/// The way in which the class called `class` writes its metadata for sectors of another size;
/// `None` for one whose sets have to be made anew.
pub fn relabels_of(class: &str) -> Option<&'static dyn Relabels> {
    CLASSES.iter().find(|known| known.name() == class)?.relabels()
}

/// The scheme called `name` in any case; `None` for an unknown one. Linux's tools call an MBR
/// `dos`, parted `msdos`.
pub fn scheme_named(name: &str) -> Option<&'static dyn Scheme> {
    let is_dos = ["dos", "msdos"].iter().any(|other| other.eq_ignore_ascii_case(name));
    let name = if is_dos { "MBR" } else { name };
    SCHEMES.iter().copied().find(|s| s.name().eq_ignore_ascii_case(name))
}

/// The scheme that edits tables of the class called `class`; `None` for a class whose tables are
/// only read.
pub fn scheme_of(class: &str) -> Option<&'static dyn Scheme> {
    CLASSES.iter().find(|known| known.name() == class)?.scheme()
}

/// The sign of a format that is not read: a kernel, udev, lsblk or a mount table calls it `name`,
/// and may report that its blocks are of `block` bytes.
pub fn reported_sign(name: &str, block: Option<u64>) -> Sign {
    let inside = |format: &&dyn Format| {
        let kind = format.kinds().into_iter().find(|kind: &FormatKind| kind.name == name)?;
        Some(Sign { inside: format.by_name(kind, block)?, block, ..Sign::new(kind, 0) })
    };
    FORMATS.iter().chain([&LAST]).find_map(inside).unwrap_or_else(|| Sign::other(block))
}

/// The sign of the container that a provider is, with the files that it names; of one that is said
/// to have the `format`, of that one alone.
pub fn container(probe: &Probe<'_>, format: Option<&str>) -> Option<Sign> {
    let kinds: Vec<FormatKind> = CLASSES
        .iter()
        .filter(|class| class.shows_a_disk())
        .filter_map(|class| class.sign())
        .filter(|kind| format.is_none_or(|format| format == kind.name))
        .collect();
    let is_shown = |kind: &FormatKind| kinds.contains(kind);
    // What holds no disk says nothing of one.
    let containers = FORMATS.iter().filter(|format| format.kinds().iter().any(is_shown));
    let mut signs = containers.filter_map(|format| format.recognise(probe));
    signs
        .find(|sign| is_shown(&sign.kind))
        .or_else(|| compressed(probe).filter(|sign| is_shown(&sign.kind)))
}

/// The names of the containers that are looked into, as blkid and QEMU have them.
pub fn containers() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().filter(|class| class.shows_a_disk()).map(|class| class.name())
}

/// True if a class makes something of what is on a provider, or a format that fits it.
pub fn recognises(probe: &Probe<'_>) -> bool {
    let fits = |sign: Sign| sign.size.is_none_or(|size| size <= probe.length());
    FORMATS.iter().any(|format| format.recognise(probe).is_some_and(fits))
        || CLASSES
            .iter()
            .any(|class| matches!(class.taste(probe), Taste::Geom(..) | Taste::Member(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Inside;
    use std::collections::BTreeMap;

    #[test]
    fn a_name_alone_is_not_understood() {
        let unknown = |name, block| matches!(reported_sign(name, block).inside, Inside::Unknown(_));
        assert!(
            unknown("ext4", None)
                && unknown("vfat", Some(4096))
                && unknown("whatever", Some(4096))
                && unknown("jbd", Some(1024))
        );
        assert_eq!(
            (reported_sign("ext4", Some(1024)).inside, reported_sign("cramfs", None).inside),
            (Inside::Understood, Inside::ReadOnly)
        );
        assert_eq!(
            (reported_sign("ext4", None).kind.name, reported_sign("drbd", None).kind.name),
            ("ext4", "other")
        );
    }

    /// A table that is edited is one that is tasted, but for the chain of an extended partition.
    #[test]
    fn every_scheme_but_the_ebr_belongs_to_one_class() {
        let of_classes: Vec<_> =
            CLASSES.iter().filter_map(|class| Some(class.scheme()?.name())).collect();
        let edited: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name()).collect();
        assert_eq!(edited, [&["EBR"], of_classes.as_slice()].concat());
    }

    /// Kinds are compared by name, so a name must lead to one format.
    #[test]
    fn every_kind_leads_to_the_format_that_has_it() {
        let mut owners = BTreeMap::new();
        for (nth, format) in FORMATS.iter().chain([&LAST]).enumerate() {
            for kind in format.kinds() {
                assert!(kind.format.kinds().contains(&kind), "{kind}");
                // A log of XFS is found by its record, or by a magic further in.
                assert!(
                    owners.insert(kind.name, nth).is_none() || kind == format::xfs::EXTERNAL_LOG,
                    "{kind}"
                );
            }
        }
        assert!(owners.len() > 90, "{}", owners.len());
    }
}

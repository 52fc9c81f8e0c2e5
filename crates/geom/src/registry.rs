//! The three ordered lists: classes that taste, formats that are recognised, schemes that are edited.
//!
//! A new one is a file in `class/` or `format/`, and its line here.

use crate::class::{self, Class};
use crate::format::{self, Format};
use crate::table::scheme::Scheme;

/// Classes that taste, in the order in which they are asked.
///
/// `gpt` comes before `mbr`: a protective MBR is part of a GPT, not a table; where an MBR of real entries hides a GPT,
/// `gpt` reports it and yields. `sgi` and `vtoc8` prove themselves by a checksum over their whole sector, which `mbr`
/// lacks; `apm` declines a sector that ends as an MBR does, and Linux asks for `rdb` after `mbr`. The labels come next:
/// a disk with both an MBR and a label behind it is read by its MBR, as every kernel does. Tables that only an MBR's
/// type announces exclude each other. Sets come last; their metadata is in the last sector and excludes no table at the
/// front.
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
];

/// Every format, in the order of blkid's own list where it matters: wrappers of others come first. Where no format and
/// no class answers, [`format::known`] is asked.
pub static FORMATS: &[Format] = &[
    // Interrupted moves, then containers, members of sets and other wrappers of a file system.
    format::moving::FORMAT,
    format::qcow2::FORMAT,
    format::vmdk::FORMAT,
    format::vhd::FORMAT,
    format::vhdx::FORMAT,
    format::vdi::FORMAT,
    format::md::FORMAT,
    format::lvm2::FORMAT,
    format::luks::FORMAT,
    format::bitlocker::FORMAT,
    format::bcache::FORMAT,
    format::bcachefs::FORMAT,
    format::drbd::FORMAT,
    format::vdo::FORMAT,
    format::zfs::FORMAT,
    format::known::FIRMWARE,
    // File systems.
    format::fat::FORMAT,
    format::swap::FORMAT,
    format::xfs::FORMAT,
    format::ext::FORMAT,
    format::reiserfs::FORMAT,
    format::jfs::FORMAT,
    format::udf::FORMAT,
    format::iso9660::FORMAT,
    format::hfsplus::FORMAT,
    format::ufs::FORMAT,
    format::ntfs::FORMAT,
    format::squashfs::FORMAT,
    format::btrfs::FORMAT,
    format::nilfs2::FORMAT,
    format::exfat::FORMAT,
    format::f2fs::FORMAT,
    format::apfs::FORMAT,
    format::erofs::FORMAT,
];

/// Schemes that are edited, in the order in which they are asked. An extended partition is read by the EBR alone, so
/// that comes first; the others are ordered as in [`CLASSES`].
pub static SCHEMES: &[&dyn Scheme] = &[&class::mbr::Ebr, &class::gpt::Gpt, &class::mbr::Mbr, &class::bsd::Bsd];

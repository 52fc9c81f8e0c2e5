//! Linux swap, and swap that holds a suspended system (`swsuspend` to blkid).
//!
//! # On disk
//! The last ten bytes of the first page say what it is, so the page's size is where they are. Page
//! `n` is at `n` × page size from byte 0. The header of version 1 is at byte 1024, in the byte
//! order of the machine that made it.
//!
//! # Sources
//! Linux `include/linux/swap.h` (`union swap_header`); libblkid `superblocks/swap.c` for the
//! signatures of suspended systems and when a label counts.

use super::maker::Maker;
use super::{Format, FormatKind, Inside, Sign};
use crate::base::ondisk::{self, on_disk};
use crate::probe::Probe;
use zerocopy::little_endian::U32;

/// The format, for the registry.
pub struct Swap;

/// The kind that blkid calls `swap`.
pub const SWAP: FormatKind = FormatKind::new("swap", &Swap);
/// The kind that blkid calls `swsuspend`.
pub const SWSUSPEND: FormatKind = FormatKind::new("swsuspend", &Swap);

static MAKER: Maker = Maker { device: &["-f"], ..Maker::new("mkswap", "util-linux") };

impl Format for Swap {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![SWAP, SWSUSPEND]
    }

    fn by_name(&self, kind: FormatKind, block: Option<u64>) -> Option<Inside> {
        (kind == SWAP).then(|| Inside::from_zero(block))
    }

    fn keeps_to_its_size(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn maker(&self) -> Option<&'static Maker> {
        Some(&MAKER)
    }
}

on_disk! {
    /// `union swap_header` from byte 1024, with the first words of its padding.
    struct Header of 180 bytes {
         0 => version: U32,
         4 => last_page: U32,
         8 => nr_badpages: U32,
        12 => sws_uuid: [u8; 16],
        28 => sws_volume: [u8; 16],
        44 => padding: [U32; 34],
    }
}

const AT: u64 = 1024;
const PAGES: [u64; 5] = [4096, 8192, 16384, 32768, 65536];
/// Bytes of the mark at the end of the page.
const MARK: usize = 10;
/// TuxOnIce's own mark at byte 0; it leaves the swap mark in place.
const TUXONICE: &[u8; 8] = b"\xed\xc3\x02\xe9\x98\x56\xe5\x0c";

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let header: Header = probe.read(AT)?;
    let marked = PAGES
        .into_iter()
        .filter(|&page| probe.reaches(page - MARK as u64))
        .find_map(|page| version(probe, page).map(|(kind, version)| (page, kind, version)));
    let (page, kind, version) = marked?;
    let swapped = header.version.get().swap_bytes() == 1;
    let last = if swapped { header.last_page.get().swap_bytes() } else { header.last_page.get() };
    if version == "1" && (last == 0 || (header.version.get() != 1 && !swapped)) {
        return None;
    }
    let mut sign = Sign::new(kind, if version == "tuxonice" { 0 } else { page - MARK as u64 });
    sign.version = Some(version.into());
    sign.block = Some(page);
    // Version 0 has a bit map here, and anything but 0 in the padding is not a header.
    if version != "0" && header.padding[32].get() == 0 && header.padding[33].get() == 0 {
        sign.label = ondisk::text(&header.sws_volume);
        sign.uuid = ondisk::uuid(&header.sws_uuid);
        sign.size = Some((u64::from(last) + 1) * page);
    }
    Some(sign)
}

/// The kind and version by the mark at the end of a first page of `page` bytes; `None` without a
/// known mark.
fn version(probe: &Probe<'_>, page: u64) -> Option<(FormatKind, &'static str)> {
    let mark = probe.bytes(page - MARK as u64, MARK)?;
    let tuxonice = probe.has(0, TUXONICE);
    match mark.as_slice() {
        b"SWAPSPACE2" | b"SWAP-SPACE" if tuxonice => Some((SWSUSPEND, "tuxonice")),
        b"SWAPSPACE2" => Some((SWAP, "1")),
        b"SWAP-SPACE" => Some((SWAP, "0")),
        b"LINHIB0001" => Some((SWSUSPEND, "linhib0001")),
        _ if mark.starts_with(b"S1SUSPEND") => Some((SWSUSPEND, "s1suspend")),
        _ if mark.starts_with(b"S2SUSPEND") => Some((SWSUSPEND, "s2suspend")),
        _ if mark.starts_with(b"ULSUSPEND") => Some((SWSUSPEND, "ulsuspend")),
        _ => None,
    }
}

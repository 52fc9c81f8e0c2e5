//! LVM2: a physical volume.
//!
//! # On disk
//! A label in one of the first four 512-byte sectors: `LABELONE`, its own sector number, a CRC,
//! then the physical volume's identity, its size, a list of data areas and a list of metadata
//! areas, each ended by a zero pair. A metadata area begins with a 512-byte header that points into
//! a circular buffer of text.
//!
//! # Topology
//! Extents lie at multiples of the extent size from the data area (`pe_start`).
//!
//! # Limits
//! Of the text only its first 4 KiB are looked at, for the volume group's name and extent size;
//! the class `lvm` reads all of it.
//!
//! # Sources
//! LVM2 `lib/label/label.h`, `lib/format_text/layout.h`, `lib/misc/crc.c`.

use super::{Format, FormatKind, Inside, Sign, StrayData};
use crate::base::ondisk;
use crate::probe::Probe;

pub mod label;

/// The format, for the registry.
pub struct Lvm2;

/// The kind that blkid calls `LVM2_member`.
pub const KIND: FormatKind = FormatKind::new("LVM2_member", &Lvm2);

impl Format for Lvm2 {
    fn kinds(&self) -> Vec<FormatKind> {
        vec![KIND]
    }

    fn by_name(&self, _kind: FormatKind, _block: Option<u64>) -> Option<Inside> {
        Some(Inside::FURTHER_IN)
    }

    fn only_carries(&self) -> bool {
        true
    }

    fn recognise(&self, probe: &Probe<'_>) -> Option<Sign> {
        recognise(probe)
    }

    fn shift_data(&self, area: &StrayData<'_>) -> String {
        format!(
            "empty it (pvmove, vgreduce, pvremove), then pvcreate --dataalignment {}b and vgextend",
            area.unit
        )
    }
}

const SECTOR: u64 = 512;
/// Enough for the head of the text, where the extent size stands.
const TEXT: u64 = 4096;

fn recognise(probe: &Probe<'_>) -> Option<Sign> {
    let label = label::find(probe)?;
    let mut sign = Sign::new(KIND, label.at + 24);
    sign.version = Some("LVM2 001".to_string());
    sign.uuid = label.uuid;
    sign.size = Some(label.size).filter(|&size| size > 0);
    match label.data.first() {
        Some(area) => {
            sign.data_at(probe, Some(area.offset), Some(area.size).filter(|&size| size > 0), false)
        }
        None => sign.inside = Inside::Unknown("its label names no data area"),
    }
    let header = label.metadata.first().and_then(|area| label::header(probe, area.offset));
    // The text may run over the end of its circular buffer; its head is before that.
    if let Some(text) = header.and_then(|header| header.head(probe, TEXT)) {
        describe(&mut sign, &String::from_utf8_lossy(&text));
    }
    Some(sign)
}

/// The text begins with the group's name and a brace; its extent size is in 512-byte sectors.
fn describe(sign: &mut Sign, text: &str) {
    let name = text.split_once('{').and_then(|(name, _)| ondisk::text(name.trim().as_bytes()));
    let extent = text.lines().find_map(|line| line.trim().strip_prefix("extent_size = "));
    let extent = extent.and_then(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok()?.checked_mul(SECTOR)
    });
    sign.extent = extent;
    sign.details.extend(name.map(|name| ("volume group", name)));
    sign.details.extend(extent.map(|bytes| ("extent size", bytes.to_string())));
}

#[cfg(test)]
mod tests {
    use super::super::tests::{disk, recognised};
    use super::*;

    #[test]
    fn hostile_numbers_are_not_followed() {
        let mut label = [0xffu8; 512];
        label[..8].copy_from_slice(b"LABELONE");
        label[8..16].copy_from_slice(&3u64.to_le_bytes());
        label[20..24].copy_from_slice(&32u32.to_le_bytes());
        label[24..32].copy_from_slice(b"LVM2 001");
        let sum = label::crc(&label[20..]);
        label[16..20].copy_from_slice(&sum.to_le_bytes());
        let sign = recognised(&Lvm2, disk(1 << 20, &[(1536, &label)])).unwrap();
        assert_eq!((sign.uuid, sign.data), (None, None));
        assert!(matches!(sign.inside, Inside::Unknown(_)));
        // In another sector than it says, or with another sum, it is no label.
        assert_eq!(recognised(&Lvm2, disk(1 << 20, &[(1024, &label)])), None);
        label[500] = 0;
        assert_eq!(recognised(&Lvm2, disk(1 << 20, &[(1536, &label)])), None);
    }

    /// A physical volume whose metadata area of `size` bytes, at 4096, says it begins at `start`
    /// and has text at its byte 512.
    fn volume(offset_xl: u32, start: u64, size: u64) -> Vec<u8> {
        let mut disk = vec![0; 8192];
        disk[512..520].copy_from_slice(b"LABELONE");
        disk[536..544].copy_from_slice(b"LVM2 001");
        let words = [
            (520, 1),
            (584, 1 << 20),
            (616, 4096),
            (624, size),
            (4096 + 20, 1),
            (4096 + 24, start),
            (4096 + 32, size),
            (4096 + 40, 512),
            (4096 + 48, 4096),
        ];
        for (at, value) in words.into_iter().chain([(532, u64::from(offset_xl))]) {
            disk[at..at + 4].copy_from_slice(&u32::try_from(value).unwrap().to_le_bytes());
        }
        let sum = label::crc(&disk[532..1024]);
        disk[528..532].copy_from_slice(&sum.to_le_bytes());
        disk[4100..4116].copy_from_slice(b" LVM2 x[5A%r0N*>");
        disk[4608..4640].copy_from_slice(b"data {\nextent_size = 8192\n      ");
        disk
    }

    #[test]
    fn the_text_is_read_where_its_area_is_and_no_further() {
        let details = |disk_bytes: &[u8]| {
            recognised(&Lvm2, disk(8 << 20, &[(0, disk_bytes)])).map(|sign| sign.details)
        };
        let (group, extent) =
            (("volume group", "data".to_string()), ("extent size", "4194304".to_string()));
        assert_eq!(details(&volume(32, 4096, 1024)), Some(vec![group.clone(), extent]));
        // The area ends behind the name.
        assert_eq!(details(&volume(32, 4096, 512 + 8)), Some(vec![group]));
        assert_eq!(details(&volume(32, 8192, 1024)), Some(vec![]));
        assert_eq!(details(&volume(40, 4096, 1024)), None);
    }
}

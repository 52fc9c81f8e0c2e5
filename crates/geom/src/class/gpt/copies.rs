//! The two copies of a GPT: reading and checking each.
//!
//! A copy is valid if its header has the signature, a right CRC, its own LBA and possible ranges,
//! and its table a right CRC.
//!
//! # Sources
//! UEFI 2.10 §5.3.2; FreeBSD `sys/geom/part/g_part_gpt.c` (what is checked).

use super::structures::{GptEntry, Header, SIGNATURE};
use crate::mapping::slices::place;
use crate::probe::Probe;
use zerocopy::FromBytes;

/// Reason for which a place has no valid copy.
pub(super) enum Flaw {
    /// Place without a header's signature.
    Missing(String),
    /// Damaged header, and the LBA at which it puts the other copy.
    Damaged(String, u64),
}

impl Flaw {
    pub(super) fn text(&self) -> &str {
        match self {
            Flaw::Missing(text) | Flaw::Damaged(text, _) => text,
        }
    }

    /// The LBA at which it puts the other copy, if it has a header.
    pub(super) fn alternate(&self) -> Option<u64> {
        match self {
            Flaw::Missing(_) => None,
            Flaw::Damaged(_, alternate) => Some(*alternate),
        }
    }
}

/// Valid copy of a GPT, header and array.
pub(super) struct Copy {
    pub(super) header: Header,
    pub(super) entries: Vec<u8>,
}

impl Copy {
    /// The entries in use, each with its number from 1.
    pub(super) fn used(&self) -> impl Iterator<Item = (u32, GptEntry)> {
        let stride =
            usize::try_from(self.header.size_of_partition_entry.get()).unwrap_or(usize::MAX);
        let entries = self.entries.chunks_exact(stride.max(size_of::<GptEntry>()));
        (1..)
            .zip(entries)
            .filter_map(|(n, raw)| Some((n, GptEntry::read_from_prefix(raw).ok()?.0)))
            .filter(|(_, e)| !e.partition_type_guid.is_nil())
    }
}

/// Both copies, as they would be for sectors of `unit` bytes.
pub(super) struct Copies {
    pub(super) unit: u64,
    pub(super) primary: Result<Copy, Flaw>,
    pub(super) backup: Result<Copy, Flaw>,
}

impl Copies {
    /// Reads both. `protected`: the last sector of the protective entry, if there is one.
    pub(super) fn read(probe: &Probe<'_>, unit: u64, protected: Option<u64>) -> Copies {
        let last = (probe.length() / unit).saturating_sub(1);
        let primary = copy(probe, unit, 1, "primary");
        let alternate = primary
            .as_ref()
            .map_or_else(Flaw::alternate, |copy| Some(copy.header.alternate_lba.get()));
        // A valid primary knows the place of its backup. Otherwise it is last, or was before the
        // disk grew.
        let places = match &primary {
            Ok(_) => [alternate, None, None],
            Err(_) => [Some(last), alternate, protected],
        };
        let mut backup = None;
        for lba in places.into_iter().flatten().filter(|&lba| lba > 1) {
            let found = copy(probe, unit, lba, "backup");
            if found.is_ok() || backup.is_none() {
                backup = Some(found);
            }
            if matches!(backup, Some(Ok(_))) {
                break;
            }
        }
        let backup =
            backup.unwrap_or_else(|| Err(Flaw::Missing("backup header is named nowhere".into())));
        Copies { unit, primary, backup }
    }

    /// True if the primary names itself as the backup, as images for embedded systems do that have
    /// none.
    pub(super) fn is_single(&self) -> bool {
        self.primary.as_ref().is_ok_and(|copy| copy.header.alternate_lba == copy.header.my_lba)
    }

    /// The copy to use and its name; `None` if neither is valid.
    pub(super) fn best(&self) -> Option<(&Copy, &'static str)> {
        match (&self.primary, &self.backup) {
            (Ok(copy), _) => Some((copy, "primary")),
            (Err(_), Ok(copy)) => Some((copy, "backup")),
            (Err(_), Err(_)) => None,
        }
    }

    /// The number of partitions and the start of the first, in words.
    pub(super) fn describe(&self) -> String {
        let starts: Vec<u64> = self
            .best()
            .map(|(c, _)| c.used().map(|(_, e)| e.starting_lba.get()).collect())
            .unwrap_or_default();
        let at = |lba: u64| {
            lba.checked_mul(self.unit)
                .map_or_else(|| format!("LBA {lba}"), |byte| place(byte, self.unit))
        };
        match (starts.len(), starts.iter().min()) {
            (1, Some(&first)) => format!("1 partition, at {}", at(first)),
            (n, Some(&first)) => format!("{n} partitions, the first at {}", at(first)),
            (_, None) => "no partitions".into(),
        }
    }
}

/// Reads and checks the copy with its header in sector `lba`; `name` is for messages.
fn copy(probe: &Probe<'_>, unit: u64, lba: u64, name: &str) -> Result<Copy, Flaw> {
    let header = header(probe, unit, lba, name)?;
    let damaged =
        |text: String| Flaw::Damaged(format!("{name} {text}"), header.alternate_lba.get());
    let (count, size) =
        (header.number_of_partition_entries.get(), header.size_of_partition_entry.get());
    if !(1..=4096).contains(&count) || !(128..=1024).contains(&size) || !size.is_multiple_of(8) {
        return Err(damaged(format!(
            "table of {count} entries of {size} bytes is not one that can be read"
        )));
    }
    let table = header.partition_entry_lba.get();
    let bytes = u64::from(count) * u64::from(size);
    let end = table.saturating_add(bytes.div_ceil(unit));
    let (first, last) = (header.first_usable_lba.get(), header.last_usable_lba.get());
    if table < 2 || table <= last && end > first {
        return Err(damaged(format!(
            "table in LBA {table} to {} lies over its header or among the partitions",
            end - 1
        )));
    }
    let read = table
        .checked_mul(unit)
        .zip(usize::try_from(bytes).ok())
        .and_then(|(at, bytes)| probe.bytes(at, bytes));
    let Some(entries) = read else {
        return Err(damaged(format!("table in LBA {table} to {} cannot be read", end - 1)));
    };
    let (stored, computed) = (header.partition_entry_array_crc32.get(), crc32fast::hash(&entries));
    if stored != computed {
        return Err(damaged(format!("table CRC is {stored:08x}, computed {computed:08x}")));
    }
    Ok(Copy { header, entries })
}

/// The CRC of a header of `covered`'s length, its own field counted as zero.
pub(super) fn header_crc(covered: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&covered[..16]);
    crc.update(&[0; 4]);
    crc.update(&covered[20..]);
    crc.finalize()
}

/// Reads and checks a header alone, without its array.
pub(super) fn header(probe: &Probe<'_>, unit: u64, lba: u64, name: &str) -> Result<Header, Flaw> {
    let at = lba.checked_mul(unit);
    let missing = |what: &str| {
        let place = at.map_or_else(|| format!("LBA {lba}"), |at| place(at, unit));
        Flaw::Missing(format!("{name} header is not at {place}: {what}"))
    };
    let sector = at.zip(usize::try_from(unit).ok()).and_then(|(at, unit)| probe.bytes(at, unit));
    let Some(sector) = sector else {
        let past = at.is_none_or(|at| at.saturating_add(unit) > probe.length());
        return Err(missing(if past {
            "that is past the end, so the disk or image was cut short"
        } else {
            "it cannot be read"
        }));
    };
    let Some((header, _)) =
        Header::read_from_prefix(&sector).ok().filter(|(h, _)| h.signature == *SIGNATURE)
    else {
        return Err(missing("no EFI PART"));
    };
    let damaged = |text: String| {
        Err(Flaw::Damaged(format!("{name} header {text}"), header.alternate_lba.get()))
    };
    let size = usize::try_from(header.header_size.get()).unwrap_or(usize::MAX);
    let Some(covered) = sector.get(..size).filter(|c| c.len() >= size_of::<Header>()) else {
        return damaged(format!("says it is {size} bytes long"));
    };
    let (stored, computed) = (header.header_crc32.get(), header_crc(covered));
    if stored != computed {
        return damaged(format!("CRC is {stored:08x}, computed {computed:08x}"));
    }
    let (own, first, last) =
        (header.my_lba.get(), header.first_usable_lba.get(), header.last_usable_lba.get());
    if own != lba {
        return damaged(format!("is in LBA {lba} and says it is in LBA {own}"));
    }
    // A primary without a backup names itself; Linux, blkid and sfdisk read it.
    if header.alternate_lba.get() == own && own != 1 {
        return damaged(format!("in LBA {own} names itself as the other copy"));
    }
    if header.revision.get() < 0x1_0000 || first < 2 || first > last.saturating_add(1) {
        return damaged(format!(
            "has revision {:08x} and usable LBA {first} to {last}",
            header.revision.get()
        ));
    }
    Ok(header)
}

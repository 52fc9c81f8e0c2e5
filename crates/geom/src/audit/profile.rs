//! Drives that `--for` can name, with the boundaries by which an image is judged.

use crate::base::size::bytes;
use crate::base::topology::{Fact, Grain, Source, Trust, Why};

/// Kind of drive, by its boundaries.
pub struct Profile {
    /// Name, as typed after `--for`.
    pub name: &'static str,
    /// Description of a few words, for lists.
    pub about: &'static str,
    /// Logical sector in bytes; `None` where the kind does not decide it.
    pub sector: Option<u64>,
    /// Boundaries as (bytes, purpose).
    pub units: &'static [(u64, Why)],
}

/// Every profile but the sets, which are spelled `raidCHUNKxDISKS`.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "512n",
        about: "a hard disk of 512-byte sectors",
        sector: Some(512),
        units: &[(512, Why::Physical)],
    },
    Profile {
        name: "512e",
        about: "4096-byte sectors shown as 512",
        sector: Some(512),
        units: &[(4096, Why::Physical)],
    },
    Profile {
        name: "4kn",
        about: "4096-byte sectors shown as such",
        sector: Some(4096),
        units: &[(4096, Why::Physical)],
    },
    Profile {
        name: "ssd-4k",
        about: "an SSD with a 4 KiB indirection unit",
        sector: None,
        units: &[(4096, Why::Physical)],
    },
    Profile {
        name: "ssd-8k",
        about: "an SSD with an 8 KiB indirection unit",
        sector: None,
        units: &[(8192, Why::Physical)],
    },
    Profile {
        name: "ssd-16k",
        about: "an SSD with a 16 KiB indirection unit",
        sector: None,
        units: &[(16384, Why::Physical)],
    },
    Profile {
        name: "ssd-32k",
        about: "an SSD with a 32 KiB indirection unit",
        sector: None,
        units: &[(32768, Why::Physical)],
    },
    Profile {
        name: "ssd-64k",
        about: "an SSD with a 64 KiB indirection unit",
        sector: None,
        units: &[(65536, Why::Physical)],
    },
    Profile {
        name: "sd-4m",
        about: "an SD card or eMMC with 4 MiB allocation units",
        sector: Some(512),
        units: &[(4096, Why::Physical), (4 << 20, Why::Erase)],
    },
];

/// The boundaries by which an image is judged when no drive is named: a 4096-byte unit, and 1 MiB
/// starts as a note.
pub fn assumed() -> Vec<Fact> {
    let fact = |size, why| {
        Grain::new(size, 0).map(|grain| Fact {
            grain,
            why,
            source: Source::Assumed,
            trust: Trust::Assumed,
        })
    };
    [fact(4096, Why::Physical), fact(1 << 20, Why::Convention)].into_iter().flatten().collect()
}

/// The facts of the drive called `name`, and its logical sector if that is decided; `None` for a
/// name that is not known.
///
/// `raid64kx4` is a set of chunks of 64 KiB over 4 data disks of 4096-byte sectors.
pub fn named(name: &str) -> Option<(Option<u64>, Vec<Fact>)> {
    let fact = |size, why| {
        Grain::new(size, 0).map(|grain| Fact {
            grain,
            why,
            source: Source::User,
            trust: Trust::Trusted,
        })
    };
    if let Some(set) = name.strip_prefix("raid") {
        let (chunk, disks) = set.trim_start_matches([' ', ':', '=']).split_once(['x', '×'])?;
        let (chunk, disks) =
            (bytes(chunk).filter(|&c| c >= 512)?, disks.parse().ok().filter(|&d| d > 0)?);
        let units = [
            (4096.min(chunk), Why::Physical),
            (chunk, Why::Chunk),
            (chunk.checked_mul(disks)?, Why::FullStripe),
        ];
        return Some((None, units.into_iter().filter_map(|(size, why)| fact(size, why)).collect()));
    }
    let profile = PROFILES.iter().find(|p| p.name.eq_ignore_ascii_case(name))?;
    Some((
        profile.sector,
        profile.units.iter().filter_map(|&(size, why)| fact(size, why)).collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_spelled_chunk_by_disks() {
        for name in ["raid64kx4", "raid 64kx4", "raid:64kx4", "raid=65536x4"] {
            let (_, facts) = named(name).unwrap();
            let sizes: Vec<u64> = facts.iter().map(|f| f.grain.size()).collect();
            assert_eq!(sizes, [4096, 65536, 262_144], "{name}");
        }
        assert!(
            named("raid64k").is_none() && named("raid0x4").is_none() && named("nonsense").is_none()
        );
    }
}

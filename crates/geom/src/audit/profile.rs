//! Drives that `--for` can name: what to judge an image by.

use crate::base::topology::{Fact, Grain, Source, Trust, Why};

/// A kind of drive.
pub struct Profile {
    /// As typed after `--for`.
    pub name: &'static str,
    /// A few words.
    pub about: &'static str,
    /// Logical sector in bytes, where the kind decides it.
    pub sector: Option<u64>,
    /// Its boundaries: size and purpose.
    pub units: &'static [(u64, Why)],
}

/// Every profile but the sets, which are spelled `raidCHUNKxDISKS`.
pub static PROFILES: &[Profile] = &[
    Profile { name: "512n", about: "a hard disk of 512-byte sectors", sector: Some(512), units: &[(512, Why::Physical)] },
    Profile { name: "512e", about: "4096-byte sectors shown as 512", sector: Some(512), units: &[(4096, Why::Physical)] },
    Profile { name: "4kn", about: "4096-byte sectors shown as such", sector: Some(4096), units: &[(4096, Why::Physical)] },
    Profile { name: "ssd-4k", about: "an SSD with a 4 KiB indirection unit", sector: None, units: &[(4096, Why::Physical)] },
    Profile { name: "ssd-8k", about: "an SSD with an 8 KiB indirection unit", sector: None, units: &[(8192, Why::Physical)] },
    Profile { name: "ssd-16k", about: "an SSD with a 16 KiB indirection unit", sector: None, units: &[(16384, Why::Physical)] },
    Profile { name: "ssd-32k", about: "an SSD with a 32 KiB indirection unit", sector: None, units: &[(32768, Why::Physical)] },
    Profile { name: "ssd-64k", about: "an SSD with a 64 KiB indirection unit", sector: None, units: &[(65536, Why::Physical)] },
    Profile {
        name: "sd-4m",
        about: "an SD card or eMMC with 4 MiB allocation units",
        sector: Some(512),
        units: &[(4096, Why::Physical), (4 << 20, Why::Erase)],
    },
];

/// What an image is judged by when nobody named its drive: a 4096-byte unit, and 1 MiB starts as a note.
pub fn assumed() -> Vec<Fact> {
    let fact = |size, why| Grain::new(size, 0).map(|grain| Fact { grain, why, source: Source::Assumed, trust: Trust::Assumed });
    [fact(4096, Why::Physical), fact(1 << 20, Why::Convention)].into_iter().flatten().collect()
}

/// The facts of the drive called `name`, and its logical sector if that is decided; `None` for a name that is not known.
///
/// `raid64kx4` is a set of chunks of 64 KiB over 4 data disks of 4096-byte sectors.
pub fn named(name: &str) -> Option<(Option<u64>, Vec<Fact>)> {
    let fact = |size, why| Grain::new(size, 0).map(|grain| Fact { grain, why, source: Source::User, trust: Trust::Trusted });
    if let Some(set) = name.strip_prefix("raid") {
        let (chunk, disks) = set.trim_start_matches([' ', ':', '=']).split_once(['x', '×'])?;
        let (chunk, disks) = (bytes(chunk).filter(|&c| c >= 512)?, disks.parse().ok().filter(|&d| d > 0)?);
        let units = [(4096.min(chunk), Why::Physical), (chunk, Why::Chunk), (chunk.checked_mul(disks)?, Why::FullStripe)];
        return Some((None, units.into_iter().filter_map(|(size, why)| fact(size, why)).collect()));
    }
    let profile = PROFILES.iter().find(|p| p.name.eq_ignore_ascii_case(name))?;
    Some((profile.sector, profile.units.iter().filter_map(|&(size, why)| fact(size, why)).collect()))
}

/// A size: `4096`, `4k`, `1MiB`, `90g`, binary unless written `kB`/`MB`; `8s` are sectors of 512 bytes. `None` if it is not one.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    if suffix == "s" {
        return number.checked_mul(512);
    }
    let decimal = matches!(suffix, "kB" | "KB" | "MB" | "GB" | "TB" | "PB" | "EB");
    let lower = suffix.to_ascii_lowercase();
    let letter = lower.strip_suffix("ib").or_else(|| lower.strip_suffix('b').filter(|_| decimal)).unwrap_or(&lower);
    let power = match letter {
        "" | "b" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        "e" => 6,
        _ => return None,
    };
    let base: u64 = if decimal { 1000 } else { 1024 };
    number.checked_mul(base.checked_pow(power)?)
}

/// A decimal number in units of 10^-`places`: `1.5` with 3 places is 1500. `None` if it is none, or finer than that.
pub fn decimal(text: &str, places: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > places || !digits(part) || !digits(whole) {
        return None;
    }
    format!("{whole}{part:0<places$}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(["1.5", "0", "10", "0.001", "2."].map(|text| decimal(text, 3)), [1500, 0, 10_000, 1, 2000].map(Some));
        for text in ["", ".", ".5", "-1", "+1", "1e3", "0.0001", "1.5.5", "99999999999999999999"] {
            assert_eq!(decimal(text, 3), None, "{text}");
        }
    }

    #[test]
    fn sizes_are_binary_unless_decimal() {
        let read = ["4096", "4k", "4K", "1MiB", "90g", "2kB", "3MB", "1b", "8s"].map(bytes);
        assert_eq!(read, [4096, 4096, 4096, 1 << 20, 90 << 30, 2000, 3_000_000, 1, 4096].map(Some));
        assert_eq!(["", "k", "4x", "-1", "99999999999e", "1 k"].map(bytes), [None; 6]);
    }

    #[test]
    fn sets_are_spelled_chunk_by_disks() {
        for name in ["raid64kx4", "raid 64kx4", "raid:64kx4", "raid=65536x4"] {
            let (_, facts) = named(name).unwrap();
            let sizes: Vec<u64> = facts.iter().map(|f| f.grain.size()).collect();
            assert_eq!(sizes, [4096, 65536, 262_144], "{name}");
        }
        assert!(named("raid64k").is_none() && named("raid0x4").is_none() && named("nonsense").is_none());
    }
}

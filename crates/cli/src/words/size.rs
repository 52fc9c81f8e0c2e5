//! Sizes for people, in binary multiples.

const UNITS: [&str; 7] = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// `4 KiB`, `74.5 GiB`, `512 bytes`. A size without a decimal point is exact, any other is rounded.
pub(crate) fn human(bytes: u64) -> String {
    if bytes == 1 {
        return "1 byte".into();
    }
    let mut power = bytes.checked_ilog2().map_or(0, |log| usize::try_from(log / 10).unwrap_or(0));
    loop {
        let shift = 10 * power;
        let unit = UNITS[power];
        if bytes.trailing_zeros() as usize >= shift {
            return format!("{} {unit}", bytes >> shift);
        }
        let tenths = ((u128::from(bytes) * 10) + (1 << shift >> 1)) >> shift;
        // 1023.96 KiB is 1.0 MiB, not 1024.0 KiB.
        if tenths < 10240 || power + 1 == UNITS.len() {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        power += 1;
    }
}

/// A short and exact size for a column with a heading: `512`, `4K`, `1M`.
pub(crate) fn short(bytes: u64) -> String {
    let power = (bytes.trailing_zeros() as usize / 10).min(UNITS.len() - 1);
    let letter = ["", "K", "M", "G", "T", "P", "E"][power];
    if bytes == 0 { "0".into() } else { format!("{}{letter}", bytes >> (10 * power)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let all =
            [0, 1, 512, 1023, 1024, 1536, 1_048_575, 80_026_361_856, 1 << 40, u64::MAX].map(human);
        let want = [
            "0 bytes",
            "1 byte",
            "512 bytes",
            "1023 bytes",
            "1 KiB",
            "1.5 KiB",
            "1.0 MiB",
            "74.5 GiB",
            "1 TiB",
            "16.0 EiB",
        ];
        assert_eq!(all, want);
        assert_eq!(
            [0, 512, 4096, 1 << 20, 1536, 1 << 63].map(short),
            ["0", "512", "4K", "1M", "1536", "8E"]
        );
    }
}

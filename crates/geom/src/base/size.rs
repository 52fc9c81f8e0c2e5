//! Numbers in users' notation: sizes with a unit, decimals in fixed units.

/// Bytes of a page of memory: the unit in which a kernel's page cache, swap and md do their I/O on
/// machines with pages of 4096 bytes, and the block that is assumed where none is known.
pub const PAGE: u64 = 4096;

/// Bytes of a size such as `4096`, `4k`, `1MiB`, `90g`: binary unless written `kB`/`MB`; `8s` are
/// sectors of 512 bytes. `None` for other text, or from 2^64 on.
pub fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    if suffix == "s" {
        return number.checked_mul(512);
    }
    let decimal = matches!(suffix, "kB" | "KB" | "MB" | "GB" | "TB" | "PB" | "EB");
    let lower = suffix.to_ascii_lowercase();
    let letter = lower
        .strip_suffix("ib")
        .or_else(|| lower.strip_suffix('b').filter(|_| decimal))
        .unwrap_or(&lower);
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

/// A decimal number in units of 10^-`places`: `1.5` with 3 places is 1500. `None` for other text,
/// or one with more digits after the point.
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
        assert_eq!(
            ["1.5", "0", "10", "0.001", "2."].map(|text| decimal(text, 3)),
            [1500, 0, 10_000, 1, 2000].map(Some)
        );
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
}

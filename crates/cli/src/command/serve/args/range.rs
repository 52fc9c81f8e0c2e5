//! A range of the target: `N[+LEN]`.

use crate::disk_options::parse_size;
use crate::failure::Reason;
use trueline_serve::export::Range;

/// Parses `N` or `N+LEN`, both in bytes.
pub(super) fn parse(text: &str) -> Result<Range, Reason> {
    let (start, length) =
        text.split_once('+').map_or((text, None), |(start, length)| (start, Some(length)));
    let zero = start == "0";
    let start = if zero { 0 } else { parse_size(start)? };
    Ok(Range { start, length: length.map(parse_size).transpose()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let range = |start, length| Ok(Range { start, length });
        let ranges = [
            ("0", range(0, None)),
            ("1m", range(1 << 20, None)),
            ("512+4k", range(512, Some(4096))),
        ];
        for (text, want) in ranges {
            assert_eq!(parse(text), want, "{text}");
        }
        for wrong in ["", "+", "1+", "-1", "x", "1+x", "1+2+3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

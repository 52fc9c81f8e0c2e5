//! A range of the target: `N[+LEN]`.

use crate::disk_options::parse_size;

/// Range of the target that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// First byte of the range.
    pub(crate) start: u64,
    /// Length in bytes; [`None`]: to the end.
    pub(crate) length: Option<u64>,
}

impl Range {
    /// Parses `N` or `N+LEN`, both in bytes.
    pub(super) fn parse(text: &str) -> Result<Range, String> {
        let (start, length) = text.split_once('+').map_or((text, None), |(start, length)| (start, Some(length)));
        let zero = start == "0";
        let start = if zero { 0 } else { parse_size(start)? };
        Ok(Range { start, length: length.map(parse_size).transpose()? })
    }

    /// Length in bytes of the range on a target of `length` bytes. Errors: an empty range, or one that ends past the target.
    pub(crate) fn of(self, length: u64) -> Result<u64, String> {
        let room = length.checked_sub(self.start).filter(|&room| room > 0);
        let room = room.ok_or_else(|| format!("--offset {}: the target has {length} bytes", self.start))?;
        match self.length {
            None => Ok(room),
            Some(length) if (1..=room).contains(&length) => Ok(length),
            Some(length) => Err(format!("--offset {}+{length}: {room} bytes are there from byte {} on", self.start, self.start)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        let range = |start, length| Ok(Range { start, length });
        let ranges = [("0", range(0, None)), ("1m", range(1 << 20, None)), ("512+4k", range(512, Some(4096)))];
        for (text, want) in ranges {
            assert_eq!(Range::parse(text), want, "{text}");
        }
        for wrong in ["", "+", "1+", "-1", "x", "1+x", "1+2+3"] {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
        let of = |start, length, of: u64| Range { start, length }.of(of).ok();
        assert_eq!([of(0, None, 10), of(4, None, 10), of(4, Some(6), 10)], [Some(10), Some(6), Some(6)]);
        assert_eq!([of(10, None, 10), of(4, Some(7), 10), of(4, Some(0), 10), of(u64::MAX, Some(u64::MAX), 10)], [None; 4]);
    }
}

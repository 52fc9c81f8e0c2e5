//! A range of an export's bytes.

use std::fmt;

/// A part of a target that is served instead of all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The offset of the first byte.
    pub start: u64,
    /// The number of bytes; [`None`]: to the end.
    pub length: Option<u64>,
}

/// A range that is not inside its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outside {
    /// The range that was asked for.
    pub range: Range,
    /// Bytes of the target.
    pub length: u64,
}

impl Range {
    /// The number of its bytes in a target of `length` bytes, of which it has at least one.
    pub fn within(self, length: u64) -> Result<u64, Outside> {
        let outside = Outside { range: self, length };
        let room = length.checked_sub(self.start).filter(|&room| room > 0).ok_or(outside)?;
        match self.length {
            None => Ok(room),
            Some(length) if (1..=room).contains(&length) => Ok(length),
            Some(_) => Err(outside),
        }
    }
}

impl Outside {
    /// Bytes of the target from the start of the range on; `None` if it starts at the end or behind
    /// it.
    fn room(&self) -> Option<u64> {
        self.length.checked_sub(self.range.start).filter(|&room| room > 0)
    }

    /// The range as a user writes it: `START+LENGTH`, or `START` alone where that is wrong already.
    pub fn written(&self) -> String {
        match (self.room(), self.range) {
            (Some(_), Range { start, length: Some(length) }) => format!("{start}+{length}"),
            (_, Range { start, .. }) => start.to_string(),
        }
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.room(), self.range) {
            (Some(room), Range { start, length: Some(_) }) => {
                write!(f, "{room} bytes are there from byte {start} on")
            }
            _ => write!(f, "the target has {} bytes", self.length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_what_is_inside_of_a_target() {
        let within = |start, length, of: u64| Range { start, length }.within(of).ok();
        assert_eq!(
            [within(0, None, 10), within(4, None, 10), within(4, Some(6), 10)],
            [Some(10), Some(6), Some(6)]
        );
        assert_eq!(
            [within(10, None, 10), within(4, Some(7), 10), within(4, Some(0), 10)],
            [None; 3]
        );
        assert_eq!(within(u64::MAX, Some(u64::MAX), 10), None);
        let refused = |start, length| {
            let outside = Range { start, length }.within(10).unwrap_err();
            format!("{}: {outside}", outside.written())
        };
        assert_eq!(refused(10, Some(1)), "10: the target has 10 bytes");
        assert_eq!(refused(4, Some(7)), "4+7: 6 bytes are there from byte 4 on");
    }
}
